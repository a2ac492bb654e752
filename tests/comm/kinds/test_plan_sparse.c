/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse all-reduces compared with a plain sum: every type, odd lengths, every density,
 * on every transport and at a tribd, with other counts in each start; refused calls;
 * ranks and tribds that die.
 */
#include <math.h>

#include "build-config.h"
#include "tests/comm/sparse_scene.h"
#include "tests/harness/daemon.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { LOSS_SECONDS = 2 };

TEST_ON(test_sums, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    static const size_t lengths[] = {1, 63, 1000, 4097, 20011, 70001};
    static const trib_dtype_t dtypes[14] = {
        TRIB_F32, TRIB_F64, TRIB_F16, TRIB_BF16, TRIB_I8,  TRIB_I32,     TRIB_I64,
        TRIB_U8,  TRIB_I16, TRIB_U16, TRIB_U32,  TRIB_U64, TRIB_F8_E4M3, TRIB_F8_E5M2};
    static const uint32_t one_in[] = {1, 2, 7, 40, 997, 50000};
    static const char *const algorithms[] = {NULL, "direct", "flat"};

    for (int k = 0; k < 42; k += strcmp(*state, "transport=shm") ? 2 : 1) {
        const struct scene s = {.length = lengths[(k + k / 7) % 6],
                                .dtype = dtypes[k % 14],
                                .op = k / 7 % 2 ? TRIB_MEAN : TRIB_SUM,
                                .one_in = one_in[k / 7 % 6],
                                .most = k % 4 == 1,
                                .algorithm = algorithms[k % 3]};
        ranks_pass(.size = 1 + (k + 1) % 5, .fn = sums, .arg = (void *)(uintptr_t)&s,
                   .config = *state);
    }
}

/* Vectors that no rank could store: few pairs need few messages. */
RANKS_TEST_ON(test_long_vector, ("shm", "tcp"), .size = 3)
{
    uint64_t indices[3] = {0, 0, (uint64_t)1 << 36}, got[20];
    const double values[3] = {1, 2, 3};
    double sums_of[20];
    trib_plan_t *plan;
    size_t n;
    trib_sparse_desc_t d = sized(trib_sparse_desc_t, .length = ((size_t)1 << 36) + 1,
                                 .dtype = TRIB_F64, .most = 3);

    indices[1] = 1000 + (uint64_t)self->rank;
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_start_sparse(plan, indices, values, 3));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_sparse_count(plan, &n));
    ranks_assert(self, n == 2 + (size_t)self->size);
    ranks_ok(self, trib_plan_sparse_pairs(plan, got, sums_of, 20));
    ranks_assert(self, got[n - 1] == indices[2] && sums_of[n - 1] == 3 * self->size);
    ranks_assert(self, got[1] == 1000 && sums_of[1] == 2);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static void refused_plans(struct ranks_self *self)
{
    trib_plan_t *plan;
    trib_sparse_desc_t d = sized(trib_sparse_desc_t, .length = 10);

    ranks_refused(self, trib_plan_sparse(self->comm, NULL, &plan), TRIB_ERR_INVALID,
                  WORDS("desc is NULL"));
    d.op = TRIB_MAX;
    ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan), TRIB_ERR_UNSUPPORTED,
                  WORDS("op max", "sum or mean"));
    d.op = TRIB_SUM;
    d.most = 11;
    ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("11", "10"));
    d.most = 0;
    d.algorithm = "ring";
    if (self->size > 1)
        ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan),
                      TRIB_ERR_UNSUPPORTED, WORDS("ring", "direct, flat"));
    d.algorithm = NULL;
    d.dtype = TRIB_DTYPE_COUNT;
    ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("dtype"));
    d.dtype = TRIB_BOOL;
    ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan), TRIB_ERR_UNSUPPORTED,
                  WORDS("bool", "u8"));
    d.dtype = TRIB_F32;
    d.size = 3;
    ranks_refused(self, trib_plan_sparse(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("TRIB_SPARSE_DESC_INIT"));
    ranks_assert(self, trib_plan_sparse(NULL, &d, &plan) == TRIB_ERR_INVALID);
}

static void refused_starts(struct ranks_self *self, trib_plan_t *plan)
{
    const uint64_t indices[4] = {1, 2, 3, 10};
    const float values[4] = {1, 2, 3, 4};
    float vector[10];
    size_t n;

    ranks_refused(self, trib_plan_sparse_count(plan, &n), TRIB_ERR_INVALID,
                  WORDS("no result"));
    ranks_refused(self, trib_plan_start(plan), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start_sparse"));
    ranks_refused(self, trib_plan_start_with(plan, NULL, vector), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start_sparse"));
    ranks_refused(self, trib_plan_start_sparse(plan, indices, values, 4),
                  TRIB_ERR_INVALID, WORDS("pair 3", "index 10", "10 elements"));
    ranks_refused(self, trib_plan_start_sparse(plan, indices, values, 3),
                  TRIB_ERR_INVALID, WORDS("3 indices", "for 2"));
    ranks_refused(self, trib_plan_start_sparse(plan, NULL, values, 1), TRIB_ERR_INVALID,
                  WORDS("indices is NULL"));
    ranks_refused(self, trib_plan_start_sparse(plan, indices, NULL, 1),
                  TRIB_ERR_INVALID, WORDS("values is NULL"));
    ranks_ok(self, trib_plan_start_sparse(plan, indices, values, 2));
    ranks_ok(self, trib_plan_wait(plan));
    uint64_t got[2];
    ranks_refused(self, trib_plan_sparse_pairs(plan, got, vector, 1), TRIB_ERR_OVERFLOW,
                  WORDS("2 pairs", "room for 1"));
    ranks_refused(self, trib_plan_sparse_pairs(plan, NULL, vector, 2), TRIB_ERR_INVALID,
                  WORDS("NULL"));
    ranks_refused(self, trib_plan_sparse_count(plan, NULL), TRIB_ERR_INVALID,
                  WORDS("NULL"));
    ranks_refused(self, trib_plan_sparse_dense(plan, NULL), TRIB_ERR_INVALID,
                  WORDS("NULL"));
    ranks_ok(self, trib_plan_sparse_pairs(plan, got, vector, 2));
    ranks_assert(self, vector[1] == 2 * (float)self->size);
}

static int refusals(struct ranks_self *self)
{
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    trib_plan_t *plan;
    float x[4] = {0};

    refused_plans(self);
    d.length = 10;
    d.most = 2;
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    refused_starts(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 4);
    ranks_refused(self, trib_plan_start_sparse(plan, NULL, NULL, 0), TRIB_ERR_INVALID,
                  WORDS("trib_plan_sparse"));
    ranks_ok(self, trib_plan_free(plan));
    ranks_assert(self, trib_plan_start_sparse(NULL, NULL, NULL, 0) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_sparse_count(NULL, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_sparse_pairs(NULL, NULL, NULL, 0) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_sparse_dense(NULL, NULL) == TRIB_ERR_INVALID);
    return 0;
}

TEST(test_refusals)
{
    ranks_pass(.size = 1, .fn = refusals);
    ranks_pass(.size = 2, .fn = refusals);
}

/* The settings of dense vectors, and other fields of a plan. */
static int beside_settings(struct ranks_self *self)
{
    const uint64_t index = 1500;
    const float value = 1;
    trib_plan_t *plan;
    char text[1000], state[2000];
    size_t n;
    trib_sparse_desc_t d =
        sized(trib_sparse_desc_t, .length = 5000, .name = "embedding");

    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    for (int step = 0; step < 3; step++) {
        ranks_ok(self, trib_plan_start_sparse(plan, &index, &value, 1));
        ranks_ok(self, trib_plan_wait(plan));
    }
    ranks_ok(self, trib_plan_sparse_count(plan, &n));
    ranks_assert(self, n == 1);
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, strstr(text, "embedding") && strstr(text, "pairs"));
    ranks_ok(self, trib_plan_state_save(plan, state, sizeof(state), &n));
    ranks_ok(self, trib_plan_state_load(plan, state, n));
    ranks_assert(self, trib_plan_sent(plan, NULL, NULL) != TRIB_OK);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_beside_settings)
{
    ranks_pass(.size = 3, .fn = beside_settings,
               .config = "codec=topk:ratio=0.01;stats=1;check=finite,sum");
    ranks_pass(.size = 3, .fn = beside_settings,
               .config = "transport=tcp;codec=int8;quorum=0.5,deadline=20ms");
}

/* One rank sums a dense vector while the others sum a sparse one, or expects more
 * pairs. */
static int mismatch(struct ranks_self *self)
{
    const uint64_t index = 7;
    const float value = 1;
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    float x[1000] = {0};
    trib_plan_t *plan;
    trib_status_t st;

    if (self->rank == 1 && !self->arg) {
        st = trib_allreduce(self->comm, NULL, x, 1000, TRIB_F32, TRIB_SUM);
    } else {
        d.length = 1000;
        d.most = self->rank == 1 ? 5 : 3;
        ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
        st = trib_plan_start_sparse(plan, &index, &value, 1);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_expect(self, st, TRIB_ERR_MISMATCH, "dense and sparse");
    return 0;
}

TEST_ON(test_mismatch, "shm", "tcp")
{
    ranks_pass(.size = 3, .fn = mismatch, .config = *state, .noisy = true);
    ranks_pass(.size = 3, .fn = mismatch, .arg = "", .config = *state, .noisy = true);
}

/* TRIB_CHECK=finite names the rank and the element. */
RANKS_TEST(test_poison, .size = 3, .config = "check=finite", .noisy = true)
{
    const uint64_t indices[2] = {70, 20};
    const float values[2] = {self->rank == 1 ? (float)NAN : 1, 1};
    trib_plan_t *plan = NULL;
    trib_sparse_desc_t d = sized(trib_sparse_desc_t, .length = 1000);

    /* Rank 1 may be done before another rank has left the barrier. */
    trib_status_t st = trib_barrier(self->comm);
    if (st == TRIB_OK)
        st = trib_plan_sparse(self->comm, &d, &plan);
    if (st == TRIB_OK)
        st = trib_plan_start_sparse(plan, indices, values, 2);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    ranks_expect(self, st, TRIB_ERR_INVALID, "NaN");
    if (!ranks_has(trib_last_error(self->comm), WORDS("rank 1", "element 70")))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

/* Rank 1 dies during many starts; the others name it, in time. */
static int dies(struct ranks_self *self)
{
    const struct scene s = {.length = 100003,
                            .dtype = TRIB_F32,
                            .one_in = 9,
                            .algorithm = self->size == 5 ? "doubling" : NULL};
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    trib_status_t st = TRIB_OK;
    trib_plan_t *plan;
    struct memory m;

    open_memory(self, &m, s.length);
    d.length = s.length;
    d.algorithm = s.algorithm;
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    const size_t n = fill(self, &s, &m, 0);
    const double begin = ranks_seconds();
    for (int k = 0; st == TRIB_OK; k++) {
        st = trib_plan_start_sparse(plan, m.indices, m.values, n);
        if (k == 20 && self->rank == 1)
            raise(SIGKILL);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    ranks_expect(self, st, TRIB_ERR_PEER_LOST, "a start with a dead rank");
    ranks_assert(self, ranks_has(trib_last_error(self->comm), WORDS("rank 1")));
    ranks_assert(self,
                 ranks_seconds() - begin < (LOSS_SECONDS + 3) * tribtest_slowness());
    ranks_assert(self, trib_plan_sparse_dense(plan, m.dense) != TRIB_OK);
    ranks_ok(self, trib_plan_free(plan));
    close_memory(&m);
    return 0;
}

static void see_death(const char *config, int size)
{
    const struct ranks_job job = {
        .size = size, .fn = dies, .config = config, .noisy = true};
    struct ranks r;

    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    ranks_survived(&r, 1u << 1, "%s", config);
}

TEST_ON(test_death, "shm", "tcp", IF_UCX("ucx"))
{
    char config[80];

    see_death(*state, 4);
    see_death(*state, 5); /* doubling */
    snprintf(config, sizeof(config), "%s;chunk=4096", (const char *)*state);
    see_death(config, 4); /* regions */
}

/* ---- at a tribd ------------------------------------------------------------------ */

/* Check that tribd sums the plan, and that the plan reports it. */
static void check_served(struct ranks_self *self)
{
    const uint64_t index = 7;
    const float value = 1;
    trib_plan_t *plan;
    char text[1000];
    trib_sparse_desc_t d = sized(trib_sparse_desc_t, .length = 10);

    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_start_sparse(plan, &index, &value, 1));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, ranks_has(text, WORDS("service", "pairs")));
    ranks_ok(self, trib_plan_free(plan));
}

/* Compare with ranks alone, bit for bit: one tribd adds in rank order as well. */
static void compare_alone(struct ranks_self *self, const struct scene *s)
{
    const size_t bytes = s->length * trib_dtype_size(s->dtype);
    struct memory m[2];
    trib_plan_t *plan;
    trib_sparse_desc_t d =
        sized(trib_sparse_desc_t, .length = s->length, .dtype = s->dtype, .op = s->op);

    for (int alone = 0; alone < 2; alone++) {
        d.algorithm = alone ? "direct" : NULL;
        open_memory(self, &m[alone], s->length);
        const size_t n = fill(self, s, &m[alone], 1);
        for (size_t i = 0; i < n && s->dtype == TRIB_F32; i++) /* rounds */
            ((float *)(void *)m[alone].values)[i] /= (float)(3 + self->rank);
        ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
        ranks_ok(self,
                 trib_plan_start_sparse(plan, m[alone].indices, m[alone].values, n));
        ranks_ok(self, trib_plan_wait(plan));
        ranks_ok(self, trib_plan_sparse_dense(plan, m[alone].dense));
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_assert(self, memcmp(m[0].dense, m[1].dense, bytes) == 0);
    close_memory(&m[0]);
    close_memory(&m[1]);
}

static int at_tribd(struct ranks_self *self)
{
    float x[3000];

    for (int i = 0; i < 3000; i++)
        x[i] = 1;
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, 3000, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x[2999] == (float)self->size);
    check_served(self);
    compare_alone(self, self->arg);
    return sums(self);
}

static void start_daemon(struct daemon_process *d, char *config, size_t bytes)
{
    daemon_need(d);
    snprintf(config, bytes, "service=127.0.0.1:%d", d->port);
}

/* Trees of aggregators: tests/agg/client/test_offload_plan.c. */
TEST(test_at_tribd)
{
    static const trib_dtype_t dtypes[] = {
        TRIB_F32, TRIB_BF16,    TRIB_F64, TRIB_F16,     TRIB_I8, TRIB_I32,
        TRIB_U64, TRIB_F8_E4M3, TRIB_U16, TRIB_F8_E5M2, TRIB_F32};
    static const uint32_t one_in[] = {1, 3, 50, 50000};
    struct daemon_process d = {.pid = 0};
    char config[100];

    start_daemon(&d, config, sizeof(config));
    for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++) {
        const struct scene s = {.length = k % 3 ? 5003 : 70001,
                                .dtype = dtypes[k],
                                .op = k % 2 ? TRIB_MEAN : TRIB_SUM,
                                .one_in = one_in[k % 4],
                                .most = k % 4 == 2};
        ranks_pass(.size = 2 + (int)k % 3, .fn = at_tribd, .arg = (void *)(uintptr_t)&s,
                   .config = config);
    }
    daemon_end(&d);
}

/* tribd is killed during starts: they are repeated, and counted once. */
static int go_on(struct ranks_self *self)
{
    enum { TIMES = 12 };

    for (int k = 0; k < TIMES; k++) {
        sums(self);
        self->slot->count++;
    }
    return 0;
}

TEST(test_tribd_is_killed)
{
    static const struct scene s = {.length = 70001, .dtype = TRIB_F32, .one_in = 5};
    struct daemon_process d = {.pid = 0};
    char config[100];
    struct ranks_job job = {.size = 3,
                            .fn = go_on,
                            .arg = (void *)(uintptr_t)&s,
                            .config = config,
                            .noisy = true};
    struct ranks r;

    start_daemon(&d, config, sizeof(config));
    strcat(config, ";chunk=4096"); /* the ranks then use regions */
    assert_true(ranks_start(&r, &job));
    while (r.slots[1].count < 3 && !ranks_poll(&r))
        usleep(100);
    daemon_signal(&d, SIGKILL);
    ranks_wait(&r);
    assert_int_equal(ranks_failed(&r), 0);
    assert_true(r.slots[1].warnings > 0); /* a warning says that tribd is lost */
    ranks_close(&r);
    daemon_end(&d);
}
