/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a codec belongs to a plan or a name, never to an address. Random numbers
 * are drawn from a seed and a counter: different in each call, plan and run, the same
 * on all ranks.
 */
#include <math.h>
#include <sys/mman.h>

#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { COUNT = 2048 };

static void run(ranks_fn fn, void *arg, int size, const char *config)
{
    ranks_pass(.size = size, .fn = fn, .arg = arg, .config = config);
}

/* Run with load/store reach, and over sockets. */
static void run_both(ranks_fn fn, const char *settings)
{
    char config[200];

    for (int size = 2; size <= 3; size++) {
        snprintf(config, sizeof(config), "transport=shm;%s", settings);
        run(fn, NULL, size, config);
        snprintf(config, sizeof(config), "transport=tcp;%s", settings);
        run(fn, NULL, size, config);
    }
}

/* Check that all ranks have these bytes. */
static void same_everywhere(struct ranks_self *self, const void *x, size_t bytes,
                            const char *what)
{
    uint64_t mine = oracle_hash(x, bytes), all[RANKS_MAX];

    ranks_ok(self, trib_allgather(self->comm, &mine, all, sizeof(mine), TRIB_I8));
    for (int r = 0; r < self->size; r++)
        if (all[r] != mine)
            ranks_die(self, "%s: rank %d has other bits", what, r);
}

/* Fill with another input for each rank and step. */
static void fill(float *x, int rank, uint64_t step)
{
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(oracle_mix(((uint64_t)rank << 40) + (step << 20) + i) % 2000) /
                   1000 -
               1;
}

static void fill_with(float *x, float value)
{
    for (size_t i = 0; i < COUNT; i++)
        x[i] = value;
}

static size_t count_nonzero(const float *x)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT; i++)
        n += x[i] != 0;
    return n;
}

static trib_plan_t *make(struct ranks_self *self, const char *codec, const char *name,
                         uint64_t seed)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .count = COUNT, .op = TRIB_MEAN,
                      .codec = codec, .name = name, .seed = seed);
}

static void run_plan(struct ranks_self *self, trib_plan_t *plan, const void *send,
                     void *recv)
{
    trib_status_t st = trib_plan_start_with(plan, send, recv);

    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    if (st != TRIB_OK)
        ranks_die(self, "%s: %s", trib_status_name(st), trib_last_error(self->comm));
}

static uint64_t hash_of(struct ranks_self *self, trib_plan_t *plan, uint64_t step)
{
    float x[COUNT];

    fill(x, self->rank, step);
    run_plan(self, plan, NULL, x);
    same_everywhere(self, x, sizeof(x), "a plan");
    return oracle_hash(x, sizeof(x));
}

/* ---- two layers of one size in one buffer ---- */

static int two_layers(struct ranks_self *self)
{
    float x[COUNT];
    trib_plan_t *plans[2] = {make(self, NULL, NULL, 0), make(self, NULL, NULL, 0)};

    for (int step = 0; step < 3; step++) {
        fill_with(x, 1);
        ranks_refused(self,
                      trib_allreduce(self->comm, NULL, x, COUNT, TRIB_F32, TRIB_MEAN),
                      TRIB_ERR_UNSUPPORTED,
                      WORDS("TRIB_CODEC=topk:ratio=0.1", "trib_allreduce_named",
                            "trib_plan_start_with", "ef=0"));
        ranks_ok(self, trib_allreduce_named(self->comm, "layer 1", NULL, x, COUNT,
                                            TRIB_F32, TRIB_MEAN));
        ranks_assert(self, count_nonzero(x) >= COUNT / 10);
        fill_with(x, 0);
        ranks_ok(self, trib_allreduce_named(self->comm, "layer 2", NULL, x, COUNT,
                                            TRIB_F32, TRIB_MEAN));
        ranks_assert(self, count_nonzero(x) == 0);
        fill_with(x, 1);
        run_plan(self, plans[0], NULL, x);
        ranks_assert(self, count_nonzero(x) >= COUNT / 10);
        fill_with(x, 0);
        run_plan(self, plans[1], NULL, x);
        ranks_assert(self, count_nonzero(x) == 0);
    }
    ranks_ok(self, trib_plan_free(plans[0]));
    ranks_ok(self, trib_plan_free(plans[1]));
    return 0;
}

TEST(test_two_layers_in_one_buffer)
{
    run_both(two_layers, "codec=topk:ratio=0.1");
}

/* ---- codecs with a state are refused without a name ---- */

static int refuses(struct ranks_self *self)
{
    const char *const *words = self->arg;
    float x[COUNT];

    fill(x, self->rank, 0);
    ranks_refused(self, trib_allreduce(self->comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_UNSUPPORTED, words);
    ranks_ok(self,
             trib_allreduce_named(self->comm, "x", NULL, x, COUNT, TRIB_F32, TRIB_SUM));
    same_everywhere(self, x, sizeof(x), "a named call");
    return 0;
}

TEST(test_state_needs_a_name)
{
    static const struct {
        const char *config;
        const char *words[3];
    } cases[] = {
        {"codec=topk:ratio=0.1", {"TRIB_CODEC", "residual"}},
        {"codec=efsign", {"TRIB_CODEC", "residual"}},
        {"codec=gradiveq", {"TRIB_CODEC", "trained model"}},
        {"codec=powersgd", {"TRIB_CODEC", "trained model"}},
        {"codec=qsgd:bits=4;feedback=ef14", {"TRIB_FEEDBACK=ef14", "residual"}},
        {"codec=topk:ratio=0.1;feedback=ef21", {"TRIB_FEEDBACK=ef21", "residual"}},
        {"codec=topk:ratio=0.1;feedback=none:warmup=5", {"TRIB_FEEDBACK", "warm-up"}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run(refuses, (void *)(uintptr_t)cases[i].words, 2, cases[i].config);
}

static int takes(struct ranks_self *self)
{
    float x[COUNT];

    for (uint64_t k = 0; k < 5; k++) {
        fill(x, self->rank, k);
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM));
        same_everywhere(self, x, sizeof(x), "a call");
    }
    return 0;
}

TEST(test_what_keeps_nothing_needs_none)
{
    static const char *const configs[] = {
        "codec=none",          "codec=bf16",
        "codec=qsgd:bits=4",   "codec=topk:ratio=0.1,ef=0;window=8",
        "codec=natural",       "codec=topk:ratio=0.1;feedback=none:clip=1",
        "codec=terngrad",      "codec=randomk:ratio=0.1,unbiased=1;window=8",
        "codec=hadamard+qsgd", "codec=efsign;feedback=none",
    };

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
        run(takes, NULL, 3, configs[i]);
}

/* ---- each call draws new numbers ---- */

enum { CALLS = 200, SHAPES = 70 };

static void check_distinct(struct ranks_self *self, const uint64_t *hashes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (hashes[i] == hashes[k])
                ranks_die(self, "results %zu and %zu have the same bits", k, i);
}

/* The same input in each call, in one buffer; more shapes in turn than the cache keeps
 * plans. */
static int draws_anew(struct ranks_self *self)
{
    static uint64_t hashes[CALLS];
    static double sum[COUNT];
    static float in[COUNT + SHAPES], out[COUNT + SHAPES];
    double error = 0, whole = 0;

    for (size_t i = 0; i < COUNT + SHAPES; i++)
        in[i] = (float)(oracle_mix(i) % 2000) / 1000 - 1;
    for (int k = 0; k < CALLS; k++) {
        ranks_ok(self, trib_allreduce(self->comm, in, out, COUNT, TRIB_F32, TRIB_MEAN));
        hashes[k] = oracle_hash(out, COUNT * sizeof(float));
        for (size_t i = 0; i < COUNT; i++)
            sum[i] += (double)out[i];
        for (size_t s = 1; k % 50 == 0 && s <= SHAPES; s++)
            ranks_ok(self, trib_allreduce(self->comm, in, out, COUNT + s, TRIB_F32,
                                          TRIB_MEAN));
    }
    same_everywhere(self, hashes, sizeof(hashes), "calls");
    check_distinct(self, hashes, CALLS);
    for (size_t i = 0; i < COUNT; i++) {
        error += pow(sum[i] / CALLS - (double)in[i], 2);
        whole += pow((double)in[i], 2);
    }
    if (sqrt(error / whole) > 0.3)
        ranks_die(self, "the mean of all results is off by %.3f", sqrt(error / whole));
    return 0;
}

TEST(test_each_call_draws_anew)
{
    run(draws_anew, NULL, 2, "transport=shm;codec=qsgd:bits=2");
    run(draws_anew, NULL, 3, "transport=tcp;codec=randomk:ratio=0.1,unbiased=1");
}

/* ---- addresses that repeat on one rank only ---- */

static int other_addresses(struct ranks_self *self)
{
    static float places[8][COUNT];
    trib_plan_t *plan = make(self, NULL, "by a plan", 0);

    for (uint64_t k = 0; k < 12; k++) {
        float *x = places[self->rank == 0 ? 0 : k % 8];
        fill(x, self->rank, k);
        ranks_ok(self, trib_allreduce_named(self->comm, "by a name", NULL, x, COUNT,
                                            TRIB_F32, TRIB_MEAN));
        same_everywhere(self, x, COUNT * sizeof(float), "a named call");
        fill(x, self->rank, k);
        run_plan(self, plan, self->rank == 1 ? x : NULL, x);
        same_everywhere(self, x, COUNT * sizeof(float), "a plan");
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_addresses_that_differ)
{
    static const char *const settings[] = {
        "codec=topk:ratio=0.1;feedback=ef21", "codec=gradiveq", "codec=powersgd:rank=2",
        "codec=lgc:ratio=0.1,dense=3,train=3", "codec=qsgd:bits=4;feedback=ef14"};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        run_both(other_addresses, settings[i]);
}

/* ---- the source of noise ---- */

/* Ranks create their plans in different orders, and start them in one order. */
static int other_order(struct ranks_self *self)
{
    trib_plan_t *plans[4];

    for (int i = 0; i < 4; i++)
        plans[(i + self->rank) % 4] = make(self, "randomk:ratio=0.1,ef=0", NULL, 0);
    for (uint64_t k = 0; k < 12; k++)
        (void)hash_of(self, plans[k % 4], k);
    for (int i = 0; i < 4; i++)
        ranks_ok(self, trib_plan_free(plans[i]));
    return 0;
}

TEST(test_order_of_creation)
{
    run_both(other_order, "codec=none");
}

/* Results of the same input with: a name, the same again, another one, none, none
 * again, a seed. */
static int streams(struct ranks_self *self)
{
    static const char *const names[] = {"a", "a", "b", NULL, NULL, "a"};
    uint64_t *shared = self->arg, hashes[8];
    trib_comm_t *home = self->comm, *child;

    for (int i = 0; i < 6; i++) {
        trib_plan_t *plan = make(self, "qsgd:bits=2", names[i], i == 5 ? 77 : 0);
        hashes[i] = hash_of(self, plan, 0);
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_assert(self, hashes[0] == hashes[1]);
    check_distinct(self, hashes + 1, 5);
    for (int i = 6; i < 8; i++) { /* two communicators of the same ranks */
        ranks_ok(self, trib_split(home, 0, 0, &child));
        self->comm = child;
        trib_plan_t *plan = make(self, "qsgd:bits=2", "a", 0);
        hashes[i] = hash_of(self, plan, 0);
        ranks_ok(self, trib_plan_free(plan));
        ranks_ok(self, trib_free_comm(child));
        self->comm = home;
    }
    check_distinct(self, hashes + 1, 7);
    if (self->rank == 0)
        memcpy(shared, hashes, sizeof(hashes));
    return 0;
}

static void run_streams(uint64_t *hashes_out, const char *config)
{
    uint64_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(shared, MAP_FAILED);
    run(streams, shared, 2, config);
    memcpy(hashes_out, shared, 8 * sizeof(*hashes_out));
    munmap(shared, 4096);
}

/* Runs with one seed draw the same numbers, with another seed others; the seed of a
 * plan overrides it. */
TEST(test_seeds)
{
    uint64_t first[8], again[8], other[8];

    run_streams(first, "seed=0");
    run_streams(again, "seed=0");
    run_streams(other, "seed=5");
    assert_memory_equal(first, again, sizeof(first));
    for (int i = 0; i < 8; i++)
        assert_true(i == 5 ? first[i] == other[i] : first[i] != other[i]);
}

/* ---- ranks that disagree ---- */

static void expect_mismatch(struct ranks_self *self, trib_plan_t *plan,
                            const char *const *words)
{
    float x[COUNT] = {1};
    trib_status_t st = trib_plan_start_with(plan, NULL, x);

    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    ranks_refused(self, st, TRIB_ERR_MISMATCH, words);
}

/* Rank 1 has loaded a state that is two steps older. */
static int other_step(struct ranks_self *self)
{
    const struct {
        const char *codec;
    } *scene = self->arg;
    static char state[4 << 20];
    trib_plan_t *plan = make(self, scene->codec, "layer", 0);
    size_t bytes;

    for (uint64_t k = 0; k < 5; k++) {
        (void)hash_of(self, plan, k);
        if (k == 2)
            ranks_ok(self, trib_plan_state_save(plan, state, sizeof(state), &bytes));
    }
    if (self->rank == 1)
        ranks_ok(self, trib_plan_state_load(plan, state, bytes));
    expect_mismatch(self, plan, WORDS("step 4", "step 6", "layer"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

/* Two plans of one description; rank 1 starts the wrong one. */
static int other_plan(struct ranks_self *self)
{
    const struct {
        const char *codec;
    } *scene = self->arg;
    trib_plan_t *plans[2] = {make(self, scene->codec, "one", 0),
                             make(self, scene->codec, "two", 0)};

    (void)hash_of(self, plans[0], 0);
    (void)hash_of(self, plans[1], 0);
    expect_mismatch(self, plans[self->rank == 1],
                    WORDS("different plan", "the plan is"));
    ranks_ok(self, trib_plan_free(plans[0]));
    ranks_ok(self, trib_plan_free(plans[1]));
    return 0;
}

static int other_seed(struct ranks_self *self)
{
    trib_plan_t *plan = make(self, "randomk:ratio=0.1", NULL, self->rank == 1 ? 8 : 9);

    expect_mismatch(self, plan, WORDS("seed"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

/* Ranks send frames only to the aggregator, which compares them. */
static int by_aggregators(struct ranks_self *self)
{
    struct aggregators *aggregators = self->arg;
    struct trib_comm *parent = self->comm;
    struct trib_comm *agg_comm = aggregators_join(self, aggregators, parent);
    static char state[4 << 20];
    size_t bytes;
    float x[COUNT];

    if (self->rank >= aggregators->ranks) {
        aggregators_serve(self, aggregators, agg_comm);
        ranks_assert(self, agg_comm->engine.failed == TRIB_ERR_MISMATCH);
        trib_agg_comm_dispose(agg_comm);
        return 0;
    }
    self->comm = agg_comm;
    trib_plan_t *plan = make(self, "qsgd:bits=4,ef=1", "layer", 0);
    for (uint64_t k = 0; k < 5; k++) {
        fill(x, self->rank, k);
        run_plan(self, plan, NULL, x);
        if (k == 2)
            ranks_ok(self, trib_plan_state_save(plan, state, sizeof(state), &bytes));
    }
    if (self->rank == 1)
        ranks_ok(self, trib_plan_state_load(plan, state, bytes));
    expect_mismatch(self, plan, WORDS("step 4", "step 6"));
    ranks_ok(self, trib_plan_free(plan));
    (void)trib_free_comm(agg_comm);
    self->comm = parent;
    return 0;
}

TEST(test_ranks_that_disagree_at_an_aggregator)
{
    struct aggregators aggregators = {.ranks = 2, .n = 1};

    aggregators_run(&aggregators, (struct ranks_job){.fn = by_aggregators,
                                                     .arg = &aggregators,
                                                     .config = "transport=shm",
                                                     .noisy = true});
}

TEST(test_ranks_that_disagree)
{
    static const char *const codecs[] = {"topk:ratio=0.1", "qsgd:bits=4", "int8",
                                         "randomk:ratio=0.1"};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        const char *scene[] = {codecs[i]};
        for (int size = 2; size <= 3; size++) {
            run(other_step, scene, size, NULL);
            run(other_plan, scene, size, "transport=tcp");
        }
    }
    run(other_seed, NULL, 2, NULL);
}

/* ---- states ---- */

static uint64_t *hashes_of(struct ranks_self *self, trib_plan_t *plan, uint64_t from,
                           uint64_t to, uint64_t *hashes)
{
    for (uint64_t k = from; k < to; k++)
        hashes[k] = hash_of(self, plan, k);
    return hashes;
}

/* The state of a plan without a name continues in another plan, which has another
 * key. */
static int goes_on(struct ranks_self *self)
{
    const char *codec = *(const char *const *)self->arg;
    static char state[4 << 20];
    uint64_t whole[8], parts[8];
    size_t bytes;

    trib_plan_t *plan = make(self, codec, NULL, 0);
    hashes_of(self, plan, 0, 4, whole);
    ranks_ok(self, trib_plan_state_save(plan, state, sizeof(state), &bytes));
    hashes_of(self, plan, 4, 8, whole);
    ranks_ok(self, trib_plan_free(plan));
    plan = make(self, codec, "new", 99);
    hashes_of(self, plan, 0, 2, parts); /* this state is discarded */
    ranks_ok(self, trib_plan_state_load(plan, state, bytes));
    hashes_of(self, plan, 4, 8, parts);
    for (int k = 4; k < 8; k++)
        if (whole[k] != parts[k])
            ranks_die(self, "%s: step %d has other bits", codec, k);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_state_brings_its_noise)
{
    static const char *const codecs[] = {
        "qsgd:bits=2",   "randomk:ratio=0.1", "int4",
        "hadamard+qsgd", "powersgd:rank=2",   "lgc:ratio=0.1,dense=2,train=3",
        "none"};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        run(goes_on, (void *)(uintptr_t)&codecs[i], 2, NULL);
}
