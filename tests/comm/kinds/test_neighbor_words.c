/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded parts for neighbours: the sums of vectors and weights are preserved, and x /
 * weight converges to the mean within the rounding of the codec. Codecs that differ
 * from the peer's, or that would lose weight, are refused.
 */
#include <math.h>

#include "tests/comm/neighbor_graphs.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct row {
    const char *codec;
    size_t count;
    int late;
    double near; /* distance of x / weight from the mean after many steps */
};

static trib_plan_t *make(struct ranks_self *self, const struct row *row)
{
    trib_plan_t *plan;
    trib_neighbors_desc_t d = sized(trib_neighbors_desc_t, .count = row->count,
                                    .late = row->late, .codec = row->codec);

    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    return plan;
}

/* Check the sums over all ranks, and the maximum distance of x / weight from the
 * mean. */
static void check(struct ranks_self *self, const struct scene *s, const float *x,
                  double weight, double near)
{
    double *all = calloc(s->count + 1, sizeof(*all)), apart = 0;

    for (size_t i = 0; i < s->count; i++)
        all[i] = (double)x[i];
    all[s->count] = weight;
    ranks_ok(self,
             trib_allreduce(self->comm, NULL, all, s->count + 1, TRIB_F64, TRIB_SUM));
    ranks_assert(self, fabs(all[s->count] - self->size) < 1e-12);
    for (size_t i = 0; i < s->count; i++) {
        double sum = 0;
        for (int r = 0; r < self->size; r++)
            sum += scene_input(s, r, i);
        if (!(fabs(all[i] - sum) <= 1e-4))
            ranks_die(self, "element %zu: %.9g in all, not %.9g", i, all[i], sum);
        apart = fmax(apart, fabs((double)x[i] / weight - sum / self->size));
    }
    if (!(apart <= near))
        ranks_die(self, "%g from the mean, more than %g", apart, near);
    free(all);
}

static int exchanges(struct ranks_self *self)
{
    const struct row *row = self->arg;
    const struct scene s = {.count = row->count, .dtype = TRIB_F32, .seed = 91};
    trib_plan_t *plan = make(self, row);
    float *x = calloc(s.count + 1, sizeof(*x));
    struct graph graph;
    double weight = 1;

    for (size_t i = 0; i < s.count; i++)
        x[i] = (float)scene_input(&s, self->rank, i);
    for (int step = 0; step < 60; step++) {
        scene_graph(&s, self->size, self->rank, step, &graph);
        ranks_ok(self, trib_plan_start_neighbors(plan, &graph.g, x, &weight));
        ranks_ok(self, trib_plan_wait(plan));
    }
    ranks_ok(self, trib_plan_start_drain(plan, x, &weight));
    ranks_ok(self, trib_plan_wait(plan));
    check(self, &s, x, weight, row->near);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST_ON(test_keeps_sums, "shm", "tcp")
{
    static const struct row rows[] = {
        {"int8", 20003, 0, 0.05},        {"f16", 1021, 2, 2e-3},
        {"bf16", 20003, 0, 0.02},        {"natural", 1024, 1, 1},
        {"qsgd:bits=8", 70001, 2, 0.05}, {"int8", 0, 0, 0},
        {"none", 1021, 0, 1e-5},
    };

    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++)
        ranks_pass(.size = 2 + (int)k % 3, .fn = exchanges,
                   .arg = (void *)(uintptr_t)&rows[k], .config = *state);
}

/* The last rank has another codec, or none. */
RANKS_TEST_ON(test_disagrees, ("tcp"), .size = 2,
              .arg = (void *)(uintptr_t) "qsgd:bits=8")
{
    const bool last = self->rank == self->size - 1;
    const struct row row = {last ? self->arg : (void *)(uintptr_t) "int8", 64, 0, 0};
    trib_plan_t *plan = make(self, &row);
    const struct scene s = {.count = 64, .dtype = TRIB_F32, .seed = 91};
    double weight = 1;
    float x[64] = {0};
    struct graph graph;
    trib_status_t st = TRIB_OK;

    for (int step = 0; step < 20 && st == TRIB_OK; step++) {
        scene_graph(&s, self->size, self->rank, step, &graph);
        st = trib_plan_start_neighbors(plan, &graph.g, x, &weight);
        st = st == TRIB_OK ? trib_plan_wait(plan) : st;
    }
    ranks_refused(self, st, TRIB_ERR_MISMATCH, WORDS("ranks disagree"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

RANKS_TEST_ON(test_refuses, ("shm"), .size = 1)
{
    static const char *const codecs[] = {"topk:ratio=0.1", "randomk", "onebit",
                                         "powersgd", "int8x"};
    trib_plan_t *plan;
    trib_neighbors_desc_t d = sized(trib_neighbors_desc_t, .count = 100);

    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
        d.codec = codecs[i];
        ranks_assert(self, trib_plan_neighbors(self->comm, &d, &plan) != TRIB_OK);
        ranks_assert(self, strstr(trib_last_error(self->comm), "codec") && !plan);
    }
    d.codec = "int8";
    d.dtype = TRIB_F64;
    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan),
                  TRIB_ERR_UNSUPPORTED, WORDS("int8", "f32"));
    return 0;
}
