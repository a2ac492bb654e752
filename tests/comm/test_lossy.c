/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with codecs, many steps of one plan: error feedback sends errors later,
 * unbiased codecs average out, all ranks get the same bits; and NaN and infinities
 * arrive if a codec carries them.
 */
#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define COUNT 3000

struct scene {
    const char *codec;
    const char *algorithm;
    trib_coll_t coll;
    trib_op_t op;
};

static trib_plan_t *make_plan(struct ranks_self *self, const struct scene *s, float *x,
                              size_t count)
{
    return ranks_plan(self, s->coll, .send = x, .recv = x + count, .count = count,
                      .op = s->op, .codec = s->codec, .algorithm = s->algorithm,
                      .chunk = 4096);
}

static void same_bits(struct ranks_self *self, const float *x, size_t n)
{
    uint64_t mine = oracle_hash(x, n * sizeof(*x)), all[RANKS_MAX];

    ranks_ok(self, trib_allgather(self->comm, &mine, all, sizeof(mine), TRIB_I8));
    for (int r = 0; r < self->size; r++)
        if (all[r] != mine)
            ranks_die(self, "rank %d has other bits", r);
}

static double relative_error(const double *sum, const double *expected, double steps)
{
    double error = 0, signal = 0;

    for (size_t i = 0; i < COUNT; i++) {
        double d = sum[i] / steps - expected[i];
        error += d * d;
        signal += expected[i] * expected[i];
    }
    return sqrt(error / signal);
}

/* Compute the relative errors of the mean of the first 4 and of all 128 steps with the
 * same input. */
static void run_steps(struct ranks_self *self, const struct scene *s, double errors[2])
{
    struct oracle o = {
        .kind = ORACLE_REALS, .seed = 11, .op = s->op, .size = self->size};
    float *x = calloc(2 * COUNT, sizeof(*x));
    double *sum = calloc(COUNT, sizeof(*sum)), *expected = calloc(COUNT, sizeof(*sum));
    trib_plan_t *plan = make_plan(self, s, x, COUNT);

    ranks_assert(self, x && sum && expected);
    oracle_fill(&o, self->rank, 0, COUNT, x);
    for (size_t i = 0; i < COUNT; i++)
        expected[i] = oracle_reduced(&o, i).value.f;
    for (int k = 1; k <= 128; k++) {
        ranks_step(self, plan);
        for (size_t i = 0; i < COUNT; i++)
            sum[i] += (double)x[COUNT + i];
        if (k % 32 == 0)
            same_bits(self, x + COUNT, COUNT);
        if (k == 4 || k == 128)
            errors[k > 4] = relative_error(sum, expected, k);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    free(sum);
    free(expected);
}

/* With error feedback nothing is lost: the mean error falls like 1 / steps. */
static int feedback(struct ranks_self *self)
{
    double e[2];

    run_steps(self, self->arg, e);
    const struct scene *s = self->arg;
    ranks_say(self, "%s %s: %.4f after 4 steps, %.4f after 128", s->codec, s->algorithm,
              e[0], e[1]);
    if (e[1] > e[0] / 8 || e[1] > 0.1)
        ranks_die(self, "%s %s: mean error %.4f after 4 steps, %.4f after 128",
                  s->codec, s->algorithm, e[0], e[1]);
    return 0;
}

/* An unbiased error falls like 1 / sqrt(steps): 5.7 times less; some slack. */
static int unbiased(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    double e[2];

    run_steps(self, s, e);
    if (e[1] > e[0] / 3.5 || e[1] == 0)
        ranks_die(self, "%s %s: mean error %.4f after 4 steps, %.4f after 128",
                  s->codec, s->algorithm, e[0], e[1]);
    return 0;
}

static void run(ranks_fn fn, const struct scene *s, int size, const char *config)
{
    ranks_pass(.size = size, .fn = fn, .arg = (void *)s, .config = config,
               .threads = strcmp(config, "transport=loop") == 0);
}

TEST(test_feedback_conserves)
{
    static const char *const codecs[] = {
        "topk:ratio=0.1",    "topk:ratio=0.1+natural",  "topk:ratio=0.05+bf16",
        "threshold:at=1",    "dgc:ratio=0.1",           "adacomp",
        "randomk:ratio=0.2", "blocks:block=8,ratio=0.2"};

    for (size_t a = 0; a < algorithms_count(false); a++) {
        for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++) {
            struct scene s = {codecs[c], algorithm_at(a), TRIB_ALLREDUCE,
                              c ? TRIB_MEAN : TRIB_SUM};
            run(feedback, &s, 2 + (int)((a + c) % 3), "transport=shm");
        }
        struct scene s = {codecs[0], algorithm_at(a), TRIB_ALLREDUCE, TRIB_SUM};
        run(feedback, &s, 3, "transport=loop");
    }
}

TEST(test_feedback_of_quantisers)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {"qsgd:bits=4,norm=max,ef=1", algorithm_at(a), TRIB_ALLREDUCE,
                          TRIB_SUM};
        struct scene b = {"bf16:ef=1", algorithm_at(a), TRIB_ALLREDUCE, TRIB_SUM};
        struct scene o = {a % 2 ? "onebit" : "efsign", algorithm_at(a), TRIB_ALLREDUCE,
                          TRIB_MEAN};
        run(feedback, &s, 3, "transport=shm");
        run(feedback, &o, 2, "transport=shm");
        run(feedback, &b, 4, "transport=shm");
    }
}

TEST(test_unbiased)
{
    static const char *const codecs[] = {"qsgd:bits=4", "natural", "dither:bits=3"};
    const struct scene drawn = {"randomk:ratio=0.2,unbiased=1", "tree", TRIB_ALLREDUCE,
                                TRIB_SUM};

    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {codecs[a % 3], algorithm_at(a), TRIB_ALLREDUCE, TRIB_SUM};
        struct scene t = {codecs[(a + 1) % 3], algorithm_at(a), TRIB_ALLREDUCE,
                          TRIB_SUM};
        run(unbiased, &s, 2 + (int)a % 3, "transport=shm");
        run(unbiased, &t, 2 + (int)a % 3, "transport=shm");
    }
    run(unbiased, &drawn, 3, "transport=shm");
    struct scene s = {"qsgd:bits=2,bucket=64", "direct", TRIB_ALLREDUCE, TRIB_MEAN};
    run(unbiased, &s, 2, "transport=shm+nomap");
}

/* Value-wise codecs carry NaN and infinities of contributions to all ranks. */
static int specials(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    float x[2 * 64];
    trib_plan_t *plan;

    for (int i = 0; i < 64; i++)
        x[i] = 1;
    if (self->rank == self->size - 1) {
        x[3] = NAN;
        x[5] = INFINITY;
        x[7] = -INFINITY;
    }
    if (self->rank == 0)
        x[9] = INFINITY;
    plan = make_plan(self, s, x, 64);
    ranks_step(self, plan);
    const float *y = x + 64;
    ranks_assert(self, isnan(y[3]) && y[5] == INFINITY && y[7] == -INFINITY);
    ranks_assert(self, y[9] == INFINITY && y[0] == (float)self->size && y[63] == y[0]);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_specials)
{
    static const char *const codecs[] = {"none", "f16", "bf16"};

    for (size_t a = 0; a < algorithms_count(false); a++)
        for (size_t c = 0; c < 3; c++)
            run(specials,
                &(struct scene){codecs[c], algorithm_at(a), TRIB_ALLREDUCE, TRIB_SUM},
                2 + (int)(a % 3), "transport=shm");
}

/* A configured codec: each named vector has its own residual. */
static int by_configuration(struct ranks_self *self)
{
    static float x[3][COUNT];
    static double sum[3][COUNT];
    static const char *const names[3] = {"a", "b", "c"};
    struct oracle o[3];
    trib_stats_t s = {.size = sizeof(s)};

    for (uint64_t v = 0; v < 3; v++)
        o[v] = (struct oracle){.kind = ORACLE_REALS, .seed = v, .size = self->size};
    for (int k = 0; k < 64; k++) {
        for (int v = 0; v < 3; v++) {
            oracle_fill(&o[v], self->rank, 0, COUNT, x[v]);
            ranks_ok(self, trib_allreduce_named(self->comm, names[v], NULL, x[v], COUNT,
                                                TRIB_F32, TRIB_SUM));
            for (size_t i = 0; i < COUNT; i++)
                sum[v][i] += (double)x[v][i];
        }
    }
    for (int v = 0; v < 3; v++) {
        double expected[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            expected[i] = oracle_reduced(&o[v], i).value.f;
        double e = relative_error(sum[v], expected, 64);
        if (e > 0.2)
            ranks_die(self, "vector %d: mean error %.3f", v, e);
    }
    ranks_ok(self, trib_stats(self->comm, &s));
    ranks_assert(self, s.payload_bytes * 2 < s.dense_bytes && s.encode_ns > 0);
    ranks_assert(self, s.input_bytes > 0 && s.input_bytes < s.payload_bytes &&
                           s.input_bytes * 2 < s.input_dense_bytes &&
                           s.input_dense_bytes < s.dense_bytes);
    return 0;
}

TEST(test_codec_by_configuration)
{
    run(by_configuration, NULL, 2, "codec=topk:ratio=0.1;algorithm=direct");
}

/* All roots, with the vector in one piece and in many. */
static int roots(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    struct oracle o = {.kind = ORACLE_EXACT, .size = self->size};
    float x[2 * COUNT];

    for (int root = 0; root < self->size; root++) {
        for (size_t chunk = 64; chunk <= 65536; chunk *= 32) {
            trib_plan_t *plan;
            trib_desc_t d =
                sized(trib_desc_t, .send = x, .recv = x + COUNT, .count = COUNT,
                      .root = root, .algorithm = s->algorithm, .chunk = chunk);
            o.seed = (uint64_t)root * 100 + chunk;
            oracle_fill(&o, self->rank, 0, COUNT, x);
            ranks_ok(self, trib_plan_create(self->comm, s->coll, &d, &plan));
            ranks_step(self, plan);
            ranks_ok(self, trib_plan_free(plan));
            for (size_t i = 0; i < COUNT; i++) {
                double e = s->coll == TRIB_REDUCE ? oracle_reduced(&o, i).value.f
                                                  : oracle_input(&o, root, i).f;
                bool mine = s->coll == TRIB_BROADCAST || self->rank == root;
                if (mine && (double)x[COUNT + i] != e)
                    ranks_die(self, "%s, root %d, chunk %zu: element %zu", s->algorithm,
                              root, chunk, i);
            }
        }
    }
    return 0;
}

TEST(test_roots)
{
    for (size_t a = 0; a <= algorithms_count(false); a++)
        for (int size = 1; size <= 7; size += 2)
            for (int coll = TRIB_REDUCE; coll <= TRIB_BROADCAST; coll++) {
                const char *name = a ? algorithm_at(a - 1) : "auto";
                if (algorithm_does(name, (trib_coll_t)coll))
                    run(roots,
                        &(struct scene){NULL, name, (trib_coll_t)coll, TRIB_SUM}, size,
                        a % 2 ? "transport=shm" : "transport=shm+nomap");
            }
}

/* A single rank: its result is its input, or with linear codecs the decoded
 * contribution, as in docs/feedback.md. */
static int alone(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    const struct oracle o = {
        .kind = ORACLE_REALS, .dtype = TRIB_F32, .op = s->op, .size = 1, .seed = 7};
    float *x = calloc(2 * COUNT, sizeof(*x));
    bool adds = false;
    size_t same = 0;

    ranks_assert(self, x != NULL);
    oracle_fill(&o, 0, 0, COUNT, x);
    trib_plan_t *plan = make_plan(self, s, x, COUNT);
    adds = s->coll == TRIB_ALLREDUCE &&
           trib_codec_info(plan->codec)->flags & TRIB_CODEC_LINEAR;
    ranks_step(self, plan);
    for (size_t i = 0; i < COUNT; i++)
        same += x[COUNT + i] == x[i];
    if (adds ? same > COUNT / 2 : same < COUNT)
        ranks_die(self, "%s: %zu of %d elements are as they were", s->codec, same,
                  COUNT);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST(test_alone)
{
    static const char *const codecs[] = {"f16",
                                         "bf16",
                                         "f8",
                                         "topk",
                                         "randomk",
                                         "adacomp",
                                         "qsgd",
                                         "natural",
                                         "terngrad",
                                         "onebit",
                                         "efsign",
                                         "dither",
                                         "hadamard+efsign",
                                         "int4",
                                         "int8",
                                         "uniform-thc",
                                         "hadamard",
                                         "hadamard+int8",
                                         "thc",
                                         "signsgd",
                                         "qsgd:shared=1",
                                         "terngrad:shared=1",
                                         "powersgd"};

    for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++)
        run(alone, &(struct scene){codecs[c], "auto", TRIB_ALLREDUCE, TRIB_SUM}, 1,
            "transport=shm");
}
