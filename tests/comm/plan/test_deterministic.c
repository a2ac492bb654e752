/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_DETERMINISTIC: results have the same bits whatever the order of arrival, the
 * chunk, the window, the threads, the leaders, the transport, and the algorithm where
 * one may be named; also through tribd, and if a run is interrupted and continues from
 * its state with other settings. Without the setting they differ. Settings that would
 * break it are refused.
 *
 *     test_deterministic                        all of it
 *     test_deterministic --transport NAME       the same bits over this one as over shm
 *     test_deterministic --every N              of either, one case in N
 */
#include <sys/mman.h>

#include <tributary/neighbors.h>
#include <tributary/sparse.h>

#include "build-config.h"
#include "tests/comm/deterministic_cases.h"
#include "tests/comm/oracle.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

enum { RANKS = 3, STATE_MOST = 4 << 20 };

/* The processes of all runs write here. */
struct board {
    uint64_t hash[CASES_MOST][RANKS][CASE_STEPS]; /* of the current run */
    uint64_t first[CASES_MOST][RANKS][CASE_STEPS]; /* of the first run */
    size_t state_bytes[CASES_MOST][RANKS];
    unsigned char state[CASES_MOST][RANKS][STATE_MOST];
};

static struct board *board;

static int every = 1;

struct run {
    const char *config;
    int number;
    bool deterministic;
    bool shuffled; /* ranks are late, another one at each start */
    size_t chunk; /* trib_desc_t.chunk */
    enum part { WHOLE, BEGINNING, REST } part;
    bool service;
};

struct scene {
    struct ranks_self *self;
    const struct run *run;
    const struct one_case *c;
    int at; /* number of the case */
    char *send, *recv;
    uint64_t *indices;
};

static bool has_result(const struct scene *s)
{
    return s->c->coll != TRIB_REDUCE || s->self->rank == 0;
}

static size_t elements(const struct scene *s)
{
    return s->c->count * (s->c->coll == TRIB_REDUCE_SCATTER ? RANKS : 1);
}

/* Faster than oracle_fill, because of the number of elements. */
static void fill_floats(struct scene *s, uint64_t seed)
{
    uint64_t x = oracle_mix(seed << 8 | (uint64_t)s->self->rank);
    float *to = (float *)(void *)s->send;

    for (size_t i = 0; i < s->c->count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        to[i] = (float)(int32_t)(x >> 32) * 0x1p-31f;
    }
}

static void fill(struct scene *s, int step)
{
    const struct oracle o = {
        .kind = !perf_number_is_integer(s->c->dtype) ? ORACLE_REALS : ORACLE_EXACT,
        .seed = (uint64_t)(100 * s->at + step),
        .dtype = s->c->dtype,
        .op = s->c->op,
        .size = s->self->size};

    if (s->c->dtype == TRIB_F32 && s->c->codec[0] != 'n')
        fill_floats(s, o.seed);
    else
        oracle_fill(&o, s->self->rank, 0, elements(s), s->send);
    if (s->run->shuffled)
        usleep((unsigned)(oracle_mix(o.seed * 16 + (uint64_t)s->self->rank) % 500));
}

static void note(const struct scene *s, int step)
{
    const size_t bytes = s->c->count * trib_dtype_size(s->c->dtype);

    board->hash[s->at][s->self->rank][step] =
        has_result(s) ? oracle_hash(s->recv, bytes) : 1;
}

static trib_plan_t *make_plan(struct scene *s, const char *name)
{
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .send = s->send, .recv = s->recv, .count = s->c->count,
              .dtype = s->c->dtype, .op = s->c->op, .codec = s->c->codec,
              .feedback = s->c->feedback, .chunk = s->run->chunk, .name = name,
              .algorithm =
                  s->run->deterministic ? algorithm_for(s->c, s->run->number) : NULL);

    if (trib_plan_create(s->self->comm, s->c->coll, &d, &plan) != TRIB_OK)
        ranks_die(s->self, "run %d, codec %s, algorithm %s: %s", s->run->number,
                  d.codec, d.algorithm, trib_last_error(s->self->comm));
    return plan;
}

static trib_plan_t *make_pairs(struct scene *s, const char *name)
{
    trib_plan_t *plan;
    trib_sparse_desc_t d = sized(
        trib_sparse_desc_t, .length = s->c->count, .dtype = s->c->dtype, .op = s->c->op,
        .most = s->at % 2 ? s->c->count / 8 : 0,
        .algorithm = s->run->deterministic ? algorithm_for(s->c, s->run->number) : NULL,
        .name = name);

    ranks_ok(s->self, trib_plan_sparse(s->self->comm, &d, &plan));
    return plan;
}

static void start_pairs(struct scene *s, trib_plan_t *plan)
{
    const size_t n = s->c->count / 8;

    for (size_t i = 0; i < n; i++)
        s->indices[i] = 8 * i + oracle_mix(i ^ (uint64_t)s->self->rank << 40) % 3;
    ranks_ok(s->self, trib_plan_start_sparse(plan, s->indices, s->send, n));
}

static void load(struct scene *s, trib_plan_t *plan)
{
    if (s->run->part == REST)
        ranks_ok(s->self,
                 trib_plan_state_load(plan, board->state[s->at][s->self->rank],
                                      board->state_bytes[s->at][s->self->rank]));
}

static void save(struct scene *s, trib_plan_t *plan)
{
    size_t *bytes = &board->state_bytes[s->at][s->self->rank];

    if (s->run->part == BEGINNING)
        ranks_ok(s->self, trib_plan_state_save(plan, board->state[s->at][s->self->rank],
                                               STATE_MOST, bytes));
}

static void sum_one(struct scene *s)
{
    char name[32];

    snprintf(name, sizeof(name), "case%d", s->at);
    trib_plan_t *plan = s->c->pairs ? make_pairs(s, name) : make_plan(s, name);
    if (!s->c->pairs)
        load(s, plan);
    const int from = s->run->part == REST ? s->c->steps / 2 : 0;
    const int to = s->run->part == BEGINNING ? s->c->steps / 2 : s->c->steps;
    for (int step = from; step < to; step++) {
        memset(s->recv, 0, elements(s) * 8);
        fill(s, step);
        if (s->c->pairs)
            start_pairs(s, plan);
        else
            ranks_ok(s->self, trib_plan_start(plan));
        ranks_ok(s->self, trib_plan_wait(plan));
        if (s->c->pairs)
            ranks_ok(s->self, trib_plan_sparse_dense(plan, s->recv));
        note(s, step);
    }
    if (!s->c->pairs)
        save(s, plan);
    ranks_ok(s->self, trib_plan_free(plan));
}

static int sum_all(struct ranks_self *self)
{
    struct scene s = {.self = self, .run = self->arg};
    const size_t room = 8 * (CODED > 3 * DENSE ? CODED : 3 * DENSE);

    s.send = malloc(room);
    s.recv = malloc(room);
    s.indices = malloc(DENSE * sizeof(*s.indices));
    ranks_assert(self, s.send && s.recv && s.indices);
    for (s.at = 0; s.at < n_cases; s.at += every) {
        s.c = &cases[s.at];
        sum_one(&s);
    }
    if (s.run->service) {
        trib_stats_t stats = {.size = sizeof(stats)};
        ranks_ok(self, trib_stats(self->comm, &stats));
        ranks_assert(self, stats.served > 0);
    }
    free(s.send), free(s.recv), free(s.indices);
    return 0;
}

/* Return the number of cases whose bits differ from the first run, and print them. */
static int differ(const struct run *r, bool tell)
{
    int n = 0;

    for (int c = 0; c < n_cases; c++) {
        bool same = true;
        for (int rank = 0; rank < RANKS; rank++)
            for (int step = 0; step < CASE_STEPS; step++)
                same &= board->hash[c][rank][step] == board->first[c][rank][step];
        n += !same;
        if (!same && tell)
            printf("# run %d (%s): %s of %s by %s, op %d, has other bits\n", r->number,
                   r->config, trib_coll_name(cases[c].coll),
                   trib_dtype_name(cases[c].dtype),
                   cases[c].pairs ? "pairs" : cases[c].codec, (int)cases[c].op);
    }
    return n;
}

static void run_steps(struct run r, const char *service)
{
    char config[240];

    snprintf(config, sizeof(config), "%s;deterministic=%d%s", r.config, r.deterministic,
             service);
    ranks_pass(.size = RANKS, .fn = sum_all, .arg = &r, .config = config,
               .threads = strstr(r.config, "loop") != NULL);
}

static void run_whole(struct run r, const char *service)
{
    memset(board->hash, 0, sizeof(board->hash));
    r.part = WHOLE;
    r.service = *service;
    run_steps(r, service);
}

static const struct run first_run = {"transport=shm", 0, true, false, 0, WHOLE, false};

static const struct run runs[] = {
    {"transport=shm;chunk=4K;progress=caller", 1, true, true, 0, WHOLE, false},
    {"transport=tcp;chunk=1M;window=3", 2, true, false, 0, WHOLE, false},
    {"transport=tcp+delay:us=50;encode_threads=2", 3, true, true, 64, WHOLE, false},
    {"transport=auto:near=shm,far=tcp,ranks_per_host=2;leaders=1;chunk=192K", 4, true,
     false, 4096, WHOLE, false},
    {"transport=loop;cpu=c;zero_copy=0", 5, true, false, 0, WHOLE, false},
#if HAVE_UCX
    {"transport=ucx;chunk=96K", 6, true, false, 0, WHOLE, false},
#endif
};

static void test_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        run_whole(runs[i], "");
        assert_int_equal(differ(&runs[i], true), 0);
    }
}

static void test_goes_on(void **state)
{
    struct run begin = runs[1], end = runs[3];

    (void)state;
    memset(board->hash, 0, sizeof(board->hash));
    begin.part = BEGINNING;
    end.part = REST;
    run_steps(begin, "");
    run_steps(end, "");
    assert_int_equal(differ(&end, true), 0);
}

static void test_through_tribd(void **state)
{
    struct daemon_process d = {.threads = 1};
    const struct run r = {"transport=auto;chunk=128K", 8, true, true, 0, WHOLE, false};
    char service[80];

    (void)state;
    daemon_need(&d);
    snprintf(service, sizeof(service), ";service=127.0.0.1:%d", d.port);
    run_whole(r, service);
    assert_int_equal(differ(&r, true), 0);
    daemon_end(&d);
}

/* The effect of the setting: without it the settings of the runs change the results. */
static void test_without(void **state)
{
    struct run r = runs[3];

    (void)state;
    r.deterministic = false;
    r.chunk = 0;
    run_whole(r, "");
    const int n = differ(&r, false);
    printf("# without the setting %d of %d have other bits\n", n, n_cases);
    assert_true(n > n_cases / 8);
}

static void refused(struct ranks_self *self, const trib_desc_t *d, const char *word)
{
    const char *const words[] = {word, "TRIB_DETERMINISTIC", NULL};
    trib_plan_t *plan;

    ranks_refused(self, trib_plan_allreduce(self->comm, d, &plan), TRIB_ERR_UNSUPPORTED,
                  words);
}

static int refusals(struct ranks_self *self)
{
    static const char *const late[] = {"late", "TRIB_DETERMINISTIC", NULL};
    trib_neighbors_desc_t n = TRIB_NEIGHBORS_DESC_INIT;
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .count = 5000, .algorithm = "ring");

    refused(self, &d, "ring");
    d.codec = "qsgd";
    refused(self, &d, "ring");
    d.algorithm = "service";
    refused(self, &d, "service");
    d.codec = "int8";
    d.algorithm = "ring";
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_free(plan));
    d.algorithm = NULL;
    d.codec = "auto:max_nmse=1e-3";
    refused(self, &d, "auto");
    d.codec = "qsgd:ef=1";
    d.quorum = "0.5,deadline=20ms";
    refused(self, &d, "quorum");
    n.count = 10;
    n.late = 1;
    ranks_refused(self, trib_plan_neighbors(self->comm, &n, &plan),
                  TRIB_ERR_UNSUPPORTED, late);
    return 0;
}

static void test_refusals(void **state)
{
    (void)state;
    ranks_pass(.size = RANKS, .fn = refusals, .config = "deterministic=1");
}

static struct run other_run = {NULL, 7, true, true, 0, WHOLE, false};

static void test_other_transport(void **state)
{
    (void)state;
    run_whole(other_run, "");
    assert_int_equal(differ(&other_run, true), 0);
}

/* Return the transport, NULL if none is named; exit on wrong arguments. */
static const char *parse(int argc, char **argv)
{
    const char *transport = NULL;
    int i = 1;

    for (; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--transport"))
            transport = argv[i + 1];
        else if (!strcmp(argv[i], "--every"))
            every = atoi(argv[i + 1]);
        else
            break;
    if (i < argc || every < 1) {
        fprintf(stderr, "usage: %s [--transport NAME] [--every N]\n", argv[0]);
        exit(2);
    }
    return transport;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_through_tribd), cmocka_unit_test(test_without),
        cmocka_unit_test(test_refusals),
    };
    const struct CMUnitTest other[] = {cmocka_unit_test(test_other_transport)};
    const char *transport = parse(argc, argv);
    char config[80];

    tribtest_deadline(300);
    add_all_cases();
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(board != MAP_FAILED);
    run_whole(first_run, "");
    memcpy(board->first, board->hash, sizeof(board->first));
    if (!transport)
        return cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(config, sizeof(config), "transport=%s", transport);
    other_run.config = config;
    return cmocka_run_group_tests(other, NULL, NULL);
}
