/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans: several in flight, fed piecewise in any order, tested or waited for, with a
 * progress thread or driven by the caller; the cache of the blocking calls.
 */
#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define COUNT 40000
#define PLANS 6
#define PIECE 777

static trib_plan_t *allreduce_plan(struct ranks_self *self, float *x, size_t count,
                                   trib_feed_t feed)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = count, .feed = feed);
}

static struct oracle oracle_of(const struct ranks_self *self, uint64_t seed)
{
    return (struct oracle){.kind = ORACLE_EXACT, .seed = seed, .size = self->size};
}

static void fill(struct ranks_self *self, uint64_t seed, float *x, size_t n)
{
    struct oracle o = oracle_of(self, seed);

    oracle_fill(&o, self->rank, 0, n, x);
}

static void check(struct ranks_self *self, uint64_t seed, const float *x, size_t n,
                  const char *what)
{
    struct oracle o = oracle_of(self, seed);

    for (size_t i = 0; i < n; i++) {
        double expected = oracle_reduced(&o, i).value.f;
        if ((double)x[i] != expected)
            ranks_die(self, "%s: element %zu is %g, not %g", what, i, (double)x[i],
                      expected);
    }
}

static float *vector(struct ranks_self *self, size_t n, bool shared)
{
    void *x = NULL;

    if (shared)
        ranks_ok(self, trib_alloc(self->comm, n * sizeof(float), &x));
    else
        x = calloc(n, sizeof(float));
    ranks_assert(self, x);
    return x;
}

static void drop(struct ranks_self *self, float *x, bool shared)
{
    if (shared)
        ranks_ok(self, trib_free(self->comm, x));
    else
        free(x);
}

/* Several plans in flight, waited for in another order than started ---------------- */

static int several(struct ranks_self *self)
{
    trib_plan_t *plans[PLANS];
    float *x[PLANS];
    size_t n[PLANS];

    for (int i = 0; i < PLANS; i++) {
        n[i] = (size_t[]){1, COUNT, 17, 3 * COUNT, 0, 5000}[i];
        x[i] = vector(self, n[i] + 1, i % 2);
        plans[i] = allreduce_plan(self, x[i], n[i], TRIB_FEED_WHOLE);
    }
    for (uint64_t round = 0; round < 20; round++) {
        for (int i = 0; i < PLANS; i++) {
            fill(self, round * 10 + (uint64_t)i, x[i], n[i]);
            ranks_ok(self, trib_plan_start(plans[i]));
        }
        for (int k = PLANS; k-- > 0;) {
            int i = (k + (int)round) % PLANS;
            ranks_ok(self, trib_plan_wait(plans[i]));
            ranks_assert(self, trib_plan_test(plans[i]) == TRIB_OK);
            ranks_assert(self, trib_plan_wait(plans[i]) == TRIB_OK);
            check(self, round * 10 + (uint64_t)i, x[i], n[i], "several");
        }
    }
    for (int i = 0; i < PLANS; i++) {
        ranks_ok(self, trib_plan_free(plans[i]));
        drop(self, x[i], i % 2);
    }
    return 0;
}

/* A blocking call runs after the plans in flight ----------------------------------- */

static int blocking_between(struct ranks_self *self)
{
    float *x = vector(self, COUNT, true), y[10];
    trib_plan_t *plan = allreduce_plan(self, x, COUNT, TRIB_FEED_WHOLE);

    for (uint64_t round = 0; round < 20; round++) {
        fill(self, round, x, COUNT);
        fill(self, round + 1000, y, 10);
        ranks_ok(self, trib_plan_start(plan));
        ranks_ok(self, trib_allreduce(self->comm, NULL, y, 10, TRIB_F32, TRIB_SUM));
        ranks_assert(self, trib_plan_test(plan) == TRIB_OK);
        check(self, round, x, COUNT, "plan");
        check(self, round + 1000, y, 10, "blocking call");
    }
    ranks_ok(self, trib_plan_free(plan));
    drop(self, x, true);
    return 0;
}

/* Without wait: the progress thread, or trib_progress, completes them -------------- */

static int tested_only(struct ranks_self *self)
{
    bool caller = self->opts.config && strstr(self->opts.config, "caller");
    float *x = vector(self, COUNT, false);
    trib_plan_t *plan = allreduce_plan(self, x, COUNT, TRIB_FEED_WHOLE);
    trib_status_t st;

    for (uint64_t round = 0; round < 5; round++) {
        fill(self, round, x, COUNT);
        ranks_ok(self, trib_plan_start(plan));
        while ((st = trib_plan_test(plan)) == TRIB_INPROGRESS) {
            if (caller)
                ranks_ok(self, trib_progress(self->comm));
            sched_yield();
        }
        ranks_ok(self, st);
        check(self, round, x, COUNT, "tested");
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

static void await_operations(struct ranks_self *self, uint64_t wanted)
{
    trib_stats_t s = {.size = sizeof(s)};
    double until = ranks_seconds() + 20;

    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ranks_ok(self, trib_stats(self->comm, &s));
    } while (s.operations != wanted && ranks_seconds() < until);
    ranks_assert(self, s.operations == wanted);
}

static uint64_t operations_so_far(struct ranks_self *self)
{
    trib_stats_t s = {.size = sizeof(s)};

    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_stats(self->comm, &s));
    return s.operations;
}

/* The progress thread works while the caller does something else. */
static int in_background(struct ranks_self *self)
{
    float *x = vector(self, COUNT, false);
    trib_plan_t *plan = allreduce_plan(self, x, COUNT, TRIB_FEED_WHOLE);

    fill(self, 3, x, COUNT);
    uint64_t before = operations_so_far(self);
    ranks_ok(self, trib_plan_start(plan));
    await_operations(self, before + 1);
    ranks_ok(self, trib_plan_wait(plan));
    check(self, 3, x, COUNT, "background");
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

/* Also after the caller has waited for another plan, and so driven the engine, while
 * this one was running. */
static int in_background_behind_a_wait(struct ranks_self *self)
{
    float *x = vector(self, COUNT, false), *y = vector(self, COUNT, false);
    trib_plan_t *first = allreduce_plan(self, x, COUNT, TRIB_FEED_WHOLE);
    trib_plan_t *second = allreduce_plan(self, y, COUNT, TRIB_FEED_FORWARD);

    fill(self, 4, x, COUNT);
    fill(self, 5, y, COUNT);
    uint64_t before = operations_so_far(self);
    ranks_ok(self, trib_plan_start(first));
    ranks_ok(self, trib_plan_start(second));
    ranks_ok(self, trib_plan_wait(first));
    ranks_ok(self, trib_plan_ready(second, 0, COUNT));
    await_operations(self, before + 2);
    ranks_ok(self, trib_plan_wait(second));
    check(self, 4, x, COUNT, "waited for");
    check(self, 5, y, COUNT, "behind it");
    ranks_ok(self, trib_plan_free(first));
    ranks_ok(self, trib_plan_free(second));
    free(x);
    free(y);
    return 0;
}

/* Partitioned feeding -------------------------------------------------------------- */

enum order { ORDER_FORWARD, ORDER_BACKWARD, ORDER_RANDOM, ORDER_ONE_BY_ONE, ORDERS };

/* Split [0, n) into pieces in some order; their sizes match no chunk. */
static size_t make_pieces(enum order order, uint64_t seed, size_t n, size_t firsts[])
{
    size_t step = order == ORDER_ONE_BY_ONE ? 1 : PIECE, count = (n + step - 1) / step;

    for (size_t i = 0; i < count; i++)
        firsts[i] = (order == ORDER_BACKWARD ? count - 1 - i : i) * step;
    for (size_t i = count; order >= ORDER_RANDOM && i-- > 1;) {
        size_t k = oracle_mix(seed + i) % (i + 1), first = firsts[i];
        firsts[i] = firsts[k];
        firsts[k] = first;
    }
    return count;
}

static void feed_once(struct ranks_self *self, trib_plan_t *plan, float *x, size_t n,
                      enum order order, uint64_t seed)
{
    size_t firsts[1000], step = order == ORDER_ONE_BY_ONE ? 1 : PIECE;
    float *input = vector(self, n + 1, false);

    fill(self, seed, input, n);
    for (size_t i = 0; i < n; i++)
        x[i] = -1e30f; /* data sent too early is detected */
    ranks_ok(self, trib_plan_start(plan));
    size_t count = make_pieces(order, seed + (uint64_t)self->rank, n, firsts);
    for (size_t i = 0; i < count; i++) {
        size_t first = firsts[i], m = n - first < step ? n - first : step;
        ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
        memcpy(x + first, input + first, m * sizeof(*x));
        ranks_ok(self, trib_plan_ready(plan, first, m));
        ranks_ok(self, trib_plan_ready(plan, first, 0));
    }
    ranks_ok(self, trib_plan_wait(plan));
    check(self, seed, x, n, "fed");
    free(input);
}

static int fed(struct ranks_self *self)
{
    for (size_t a = 0; a <= algorithms_count(false); a++) {
        for (int feed = TRIB_FEED_FORWARD; feed <= TRIB_FEED_BACKWARD; feed++) {
            float *x = vector(self, COUNT, feed == TRIB_FEED_FORWARD);
            trib_plan_t *plan;
            plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = COUNT,
                              .algorithm = a ? algorithm_at(a - 1) : "auto",
                              .feed = (trib_feed_t)feed, .chunk = a % 2 ? 4096 : 0);
            for (int order = 0; order < ORDER_ONE_BY_ONE; order++)
                feed_once(self, plan, x, COUNT, (enum order)order,
                          a * 100 + (uint64_t)(feed * 10 + order));
            ranks_ok(self, trib_plan_free(plan));
            drop(self, x, feed == TRIB_FEED_FORWARD);
            trib_plan_t *small = allreduce_plan(self, x = vector(self, 300, false), 300,
                                                (trib_feed_t)feed);
            feed_once(self, small, x, 300, ORDER_ONE_BY_ONE, 5);
            ranks_ok(self, trib_plan_free(small));
            free(x);
        }
    }
    return 0;
}

/* Elements become ready in another thread, one at a time: that thread then owns the
 * communicator. */
struct feeder {
    struct ranks_self *self;
    trib_plan_t *plan;
    float *x;
    uint64_t seed;
};

static void *feed_all(void *arg)
{
    struct feeder *f = arg;

    for (size_t i = COUNT; i > 0;) {
        size_t n = i < 4096 ? i : 4096;
        i -= n;
        struct oracle o = oracle_of(f->self, f->seed);
        oracle_fill(&o, f->self->rank, i, n, f->x + i);
        ranks_ok(f->self, trib_plan_ready(f->plan, i, n));
    }
    return NULL;
}

static int fed_by_thread(struct ranks_self *self)
{
    float *x = vector(self, COUNT, true);
    struct feeder f = {self, allreduce_plan(self, x, COUNT, TRIB_FEED_BACKWARD), x, 0};

    for (f.seed = 0; f.seed < 5; f.seed++) {
        pthread_t thread;
        ranks_ok(self, trib_plan_start(f.plan));
        ranks_assert(self, pthread_create(&thread, NULL, feed_all, &f) == 0);
        pthread_join(thread, NULL);
        ranks_ok(self, trib_plan_wait(f.plan));
        check(self, f.seed, x, COUNT, "fed by a thread");
    }
    ranks_ok(self, trib_plan_free(f.plan));
    drop(self, x, true);
    return 0;
}

/* The first pieces are sent before the last is ready, as overlap requires. */
static int overlaps(struct ranks_self *self)
{
    float *x = vector(self, COUNT, false);
    trib_plan_t *plan = allreduce_plan(self, x, COUNT, TRIB_FEED_FORWARD);
    trib_stats_t s = {.size = sizeof(s)};

    fill(self, 9, x, COUNT);
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_stats(self->comm, &s));
    uint64_t before = s.wire_bytes;
    ranks_ok(self, trib_plan_start(plan));
    ranks_ok(self, trib_plan_ready(plan, 0, COUNT - 1));
    double until = ranks_seconds() + 20;
    do {
        (void)trib_progress(self->comm);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ranks_ok(self, trib_stats(self->comm, &s));
    } while (s.wire_bytes - before < COUNT && ranks_seconds() < until);
    ranks_assert(self, s.wire_bytes - before >= COUNT);
    ranks_assert(self, trib_plan_test(plan) == TRIB_INPROGRESS);
    ranks_ok(self, trib_plan_ready(plan, COUNT - 1, 1));
    ranks_ok(self, trib_plan_wait(plan));
    check(self, 9, x, COUNT, "overlap");
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

/* More keys than places in the cache of the blocking calls ------------------------- */

static int evicts(struct ranks_self *self)
{
    float x[200];

    for (uint64_t round = 0; round < 4; round++) {
        for (size_t n = 1; n <= 150; n++) {
            size_t count = round % 2 ? 151 - n : n;
            fill(self, round + count, x, count);
            ranks_ok(self,
                     trib_allreduce(self->comm, NULL, x, count, TRIB_F32, TRIB_SUM));
            check(self, round + count, x, count, "evicted");
            if (n % 40 == 0)
                ranks_ok(self, trib_barrier(self->comm));
        }
    }
    return 0;
}

RANKS_TEST(test_explains, .size = 2)
{
    float *x = vector(self, COUNT, false);
    char text[600], tiny[8];

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = COUNT,
                                   .codec = "bf16", .algorithm = "ring");
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    static const char *const words[] = {
        "allreduce of 40000 f32", "ring", "bf16", "chunks", "bytes", NULL};
    if (!ranks_has(text, words))
        ranks_die(self, "not good: %s", text);
    ranks_ok(self, trib_plan_explain(plan, tiny, sizeof(tiny)));
    ranks_assert(self, strcmp(tiny, "allredu") == 0);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

static void expect_choice(struct ranks_self *self, const char *codec,
                          const char *algorithm)
{
    float *x = vector(self, 16, false);
    char text[600];
    const char *const words[] = {algorithm, NULL};

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 16,
                                   .codec = codec, .algorithm = "auto");
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    if (!ranks_has(text, words))
        ranks_die(self, "%s: not %s: %s", codec, algorithm, text);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
}

/* One hop is best for few elements, except for codecs that would encode again at every
 * merge. */
RANKS_TEST(test_chooses, .size = 2)
{
    expect_choice(self, "none", "algorithm  flat, ");
    expect_choice(self, "int8", "algorithm  flat, ");
    expect_choice(self, "signsgd", "algorithm  flat, ");
    expect_choice(self, "qsgd", "algorithm  direct, ");
    expect_choice(self, "topk", "algorithm  flat, ");
    return 0;
}

/* The same plan and buffers many times, with other values each time. */
static int reused(struct ranks_self *self)
{
    float *x = vector(self, 20000, true);
    trib_plan_t *plan = allreduce_plan(self, x, 20000, TRIB_FEED_WHOLE);

    for (uint64_t round = 0; round < 100; round++) {
        fill(self, round, x, 20000);
        ranks_step(self, plan);
        check(self, round, x, 20000, "reused");
    }
    ranks_ok(self, trib_plan_free(plan));
    drop(self, x, true);
    return 0;
}

static const char *const settings[] = {
    "transport=shm", "transport=shm+nomap,chunk=16K,window=2",
    "transport=shm,progress=caller,chunk=16K,window=1",
    "transport=loop,chunk=32K,window=3"};

static void run_everywhere(ranks_fn fn, bool needs_thread)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        struct ranks_job job = {.fn = fn, .config = settings[i]};
        if (needs_thread && strstr(settings[i], "caller"))
            continue;
        job.threads = strstr(settings[i], "loop") != NULL;
        for (job.size = 1; job.size <= 3; job.size++)
            if (job.size > 1 || i == 0)
                assert_int_equal(ranks_run(&job), 0);
    }
}

TEST(test_several_in_flight)
{
    run_everywhere(several, false);
}

TEST(test_blocking_call_between)
{
    run_everywhere(blocking_between, false);
}

TEST(test_driven_by_test)
{
    run_everywhere(tested_only, false);
}

TEST(test_runs_in_background)
{
    run_everywhere(in_background, true);
    run_everywhere(in_background_behind_a_wait, true);
}

TEST(test_fed_piecewise)
{
    run_everywhere(fed, false);
}

TEST(test_fed_by_another_thread)
{
    run_everywhere(fed_by_thread, false);
}

TEST(test_overlaps_feeding)
{
    struct ranks_job job = {.size = 2, .fn = overlaps, .config = "chunk=16K"};

    assert_int_equal(ranks_run(&job), 0);
    job.config = "chunk=16K,progress=caller";
    assert_int_equal(ranks_run(&job), 0);
    job.config = "chunk=16K,transport=shm+nomap";
    assert_int_equal(ranks_run(&job), 0);
}

TEST(test_cache_evicts)
{
    run_everywhere(evicts, false);
}

TEST(test_reused)
{
    run_everywhere(reused, false);
}

/* Signals of the application are only delivered to its own threads. */
static int undisturbed(struct ranks_self *self)
{
    const struct timespec patience = {.tv_sec = 10};
    float *x = vector(self, COUNT, false);
    trib_plan_t *plan = allreduce_plan(self, x, COUNT, TRIB_FEED_WHOLE);
    sigset_t usr1;

    fill(self, 1, x, COUNT);
    ranks_ok(self, trib_plan_start(plan));
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    /* Blocked in this thread only: another thread that accepts signals would get it,
     * and die. */
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1);
    ranks_assert(self, sigtimedwait(&usr1, NULL, &patience) == SIGUSR1);
    ranks_ok(self, trib_plan_wait(plan));
    check(self, 1, x, COUNT, "undisturbed");
    ranks_ok(self, trib_plan_free(plan));
    drop(self, x, false);
    return 0;
}

TEST(test_no_signal_for_progress_thread)
{
    ranks_pass(.size = 2, .fn = undisturbed);
}
