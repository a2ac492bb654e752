/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan may load the state of a plan with another algorithm, chunk size or number of
 * leaders: the inputs before and after equal the results plus the residuals, for every
 * codec with feedback and both forms of feedback.
 */
#include <math.h>

#include "comm/core/plan_struct.h"
#include "tests/comm/fed.h"

enum { COUNT = 2500, STEPS = 6 };

struct way {
    const char *algorithm;
    size_t chunk;
};

static const struct way ways[] = {
    {"direct", 4096}, {"tree", 4096},   {"flat", 1024},         {"ring", 512},
    {"hierarchical", 2048}, {"direct", 256}, {"halving-doubling", 4096},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

struct scene {
    const char *codec;
    const char *feedback;
    trib_op_t op;
    trib_coll_t coll;
};

struct vector {
    struct ranks_self *self;
    const struct scene *scene;
    size_t total; /* of each contribution */
    float *send, *recv;
    double *came, *went;
    trib_plan_t *plan;
};

static double input(uint64_t step, int rank, size_t i)
{
    const uint64_t bits = oracle_mix(step * 0x10001 + (uint64_t)rank * 0x1001001 + i);

    return (double)(float)((double)(int64_t)bits * 0x1p-63 + (i % 3 ? 0 : 0.5));
}

/* Return false if that way is not supported. */
static bool make_plan(struct vector *v, const struct way *w)
{
    trib_desc_t d = sized(trib_desc_t, .send = v->send, .recv = v->recv, .count = COUNT,
                          .op = v->scene->op, .codec = v->scene->codec,
                          .feedback = v->scene->feedback, .algorithm = w->algorithm,
                          .chunk = w->chunk);

    const trib_status_t st =
        trib_plan_create(v->self->comm, v->scene->coll, &d, &v->plan);
    if (st != TRIB_OK && st != TRIB_ERR_UNSUPPORTED)
        ranks_die(v->self, "%s", trib_last_error(v->self->comm));
    return st == TRIB_OK;
}

/* Compute the range of elements whose result this rank has. */
static void results(const struct vector *v, size_t *first, size_t *n)
{
    *first = v->scene->coll == TRIB_REDUCE_SCATTER ? (size_t)v->self->rank * COUNT : 0;
    *n = v->scene->coll == TRIB_REDUCE && v->self->rank != 0 ? 0 : COUNT;
    if (v->scene->coll == TRIB_ALLREDUCE && v->self->rank != 0)
        *n = 0; /* all ranks have the same: it counts once */
}

static void steps(struct vector *v, uint64_t from, uint64_t to)
{
    const double times = v->scene->op == TRIB_MEAN ? v->self->size : 1;
    size_t first, n;

    results(v, &first, &n);
    for (uint64_t step = from; step < to; step++) {
        for (size_t i = 0; i < v->total; i++) {
            v->send[i] = (float)input(step, v->self->rank, i);
            v->came[i] += (double)v->send[i];
        }
        ranks_step(v->self, v->plan);
        for (size_t i = 0; i < n; i++)
            v->went[first + i] += times * (double)v->recv[i];
    }
}

static void sum_up(struct vector *v, double *x)
{
    trib_plan_t *plan = ranks_plan(v->self, TRIB_ALLREDUCE, .recv = x,
                                   .count = v->total, .dtype = TRIB_F64,
                                   .codec = "none");
    ranks_step(v->self, plan);
    ranks_ok(v->self, trib_plan_free(plan));
}

/* EF14: inputs equal results plus residuals. EF21: the latest result is the sum of all
 * h. */
static void check(struct vector *v, const struct way *from, const struct way *to)
{
    const struct trib_run *run = &v->plan->run;
    const float *own = fed_kept(run, "own"); /* of EF21 */
    const double times = v->scene->op == TRIB_MEAN ? v->self->size : 1;

    for (size_t i = 0; i < v->total; i++) {
        if (own)
            v->came[i] = (double)own[i];
        else if (trib_feedback_of(run)->residual)
            v->went[i] += (double)trib_feedback_of(run)->residual[i];
    }
    for (size_t i = 0; own && i < v->total; i++)
        v->went[i] = v->self->rank ? 0 : times * (double)v->recv[i];
    sum_up(v, v->came);
    sum_up(v, v->went);
    for (size_t i = 0; i < v->total; i++)
        if (!(fabs(v->came[i] - v->went[i]) <=
              4e-5 * (1 + fabs(v->came[i])) * v->self->size))
            ranks_die(
                v->self,
                "%s %s of %s, %s, saved by %s (chunk %zu), loaded by %s (%zu): of "
                "%.6f at %zu there is %.6f",
                trib_coll_name(v->scene->coll), trib_op_name(v->scene->op),
                v->scene->codec, v->scene->feedback ? v->scene->feedback : "codec",
                from->algorithm, from->chunk, to->algorithm, to->chunk, v->came[i], i,
                v->went[i]);
}

static void move(struct vector *v, const struct way *from, const struct way *to)
{
    size_t bytes, again;

    memset(v->came, 0, v->total * sizeof(*v->came));
    memset(v->went, 0, v->total * sizeof(*v->went));
    if (!make_plan(v, from))
        return;
    steps(v, 0, STEPS);
    ranks_ok(v->self, trib_plan_state_save(v->plan, NULL, 0, &bytes));
    uint8_t *state = malloc(bytes);
    ranks_assert(v->self, state);
    ranks_ok(v->self, trib_plan_state_save(v->plan, state, bytes, &again));
    ranks_ok(v->self, trib_plan_free(v->plan));
    if (make_plan(v, to)) {
        if (trib_plan_state_load(v->plan, state, bytes) != TRIB_OK)
            ranks_die(v->self, "%s", trib_last_error(v->self->comm));
        steps(v, STEPS, 2 * STEPS);
        check(v, from, to);
        ranks_ok(v->self, trib_plan_free(v->plan));
    }
    free(state);
}

static int moves(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    struct vector v = {.self = self, .scene = s, .total = COUNT};

    if (s->coll == TRIB_REDUCE_SCATTER)
        v.total *= (size_t)self->size;
    v.send = calloc(v.total, sizeof(*v.send));
    v.recv = calloc(COUNT, sizeof(*v.recv));
    v.came = calloc(v.total, sizeof(*v.came));
    v.went = calloc(v.total, sizeof(*v.went));
    ranks_assert(self, v.send && v.recv && v.came && v.went);
    for (size_t from = 0; from < WAYS; from++)
        for (size_t to = 0; to < WAYS; to++)
            if (from == 0 || to == 0 || (from + to) % 3 == 0)
                move(&v, &ways[from], &ways[to]);
    free(v.send);
    free(v.recv);
    free(v.came);
    free(v.went);
    return 0;
}

static void run(const struct scene *s, int size)
{
    ranks_pass(.size = size, .fn = moves, .arg = (void *)(uintptr_t)s,
               .config = "transport=shm", .seconds = 100);
}

/* All codecs for means that are encoded again on the way, and some of the others. */
static const char *const codecs[] = {
    "efsign",
    "onebit",
    "qsgd:bits=4,ef=1",
    "f8:ef=1",
    "natural:ef=1",
    "hadamard+efsign",
    "dither:bits=5,ef=1",
    "int8:ef=1",
    "topk:ratio=0.1",
    "randomk:ratio=0.2",
    "adacomp",
    "topk:ratio=0.1+natural",
};

TEST(test_residuals)
{
    for (size_t k = 0; k < sizeof(codecs) / sizeof(codecs[0]); k++)
        for (int op = TRIB_SUM; op <= TRIB_MEAN; op++)
            run(&(struct scene){codecs[k], NULL, (trib_op_t)op, TRIB_ALLREDUCE}, 3);
    run(&(struct scene){"efsign", "ef14", TRIB_MEAN, TRIB_ALLREDUCE}, 1);
    run(&(struct scene){"f16", "ef14", TRIB_MEAN, TRIB_ALLREDUCE}, 3);
    run(&(struct scene){"bf16", "ef14", TRIB_MEAN, TRIB_ALLREDUCE}, 4);
    run(&(struct scene){"natural", "ef14", TRIB_MEAN, TRIB_ALLREDUCE}, 4);
}

TEST(test_ef21)
{
    run(&(struct scene){"topk:ratio=0.1", "ef21", TRIB_MEAN, TRIB_ALLREDUCE}, 3);
    run(&(struct scene){"topk:ratio=0.1", "ef21:momentum=0.5", TRIB_SUM,
                        TRIB_ALLREDUCE},
        3);
    run(&(struct scene){"efsign", "ef21", TRIB_MEAN, TRIB_ALLREDUCE}, 3);
    run(&(struct scene){"int8", "ef21", TRIB_MEAN, TRIB_ALLREDUCE}, 3);
}

TEST(test_other_sums)
{
    for (size_t k = 0; k < 4; k++) {
        run(&(struct scene){codecs[k], NULL, TRIB_MEAN, TRIB_REDUCE}, 3);
        run(&(struct scene){codecs[k], NULL, TRIB_SUM, TRIB_REDUCE}, 4);
        run(&(struct scene){codecs[k], NULL, TRIB_MEAN, TRIB_REDUCE_SCATTER}, 3);
    }
}
