/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EF21 with whole plans: the common vector is the mean of the vectors of all ranks; at
 * a fixed gradient both converge to it geometrically; if all elements are sent, it is
 * gradient descent. Also the example of Beznosikov et al. (arXiv 2002.12410) on which
 * plain top-1 diverges.
 */
#include <math.h>

#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/fed.h"

#define COUNT 2500

static void run(ranks_fn fn, const struct fed_scene *s, int size)
{
    ranks_pass(.size = size, .fn = fn, .arg = (void *)s, .config = "transport=shm");
}

/* The sum of the own vectors of all ranks equals the common sum, which is the
 * result. */
static void check_sum(struct fed *f)
{
    static double own[COUNT];
    const struct fed_scene *s = f->scene;
    const double narrow = s->dtype == TRIB_F32 ? 0 : perf_number_epsilon(s->dtype);
    const float *sum = fed_kept(&f->plan->run, "sum");

    fed_summed(f, fed_kept(&f->plan->run, "own"), own);
    for (size_t i = 0; i < COUNT; i++) {
        double want = s->op == TRIB_MEAN ? own[i] / f->self->size : own[i];
        double got = fed_result(f, i);
        if (!(fabs((double)sum[i] - want) <= 2e-5) ||
            !(fabs(got - (double)sum[i]) <= 1e-6 + narrow * fabs(want)))
            ranks_die(f->self,
                      "%s %s: element %zu: ranks hold %.7f, sum %.7f, result %.7f",
                      s->codec, s->algorithm, i, want, (double)sum[i], got);
    }
    fed_same_bits(f);
}

static int holds(struct ranks_self *self)
{
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    for (uint64_t step = 1; step <= 40; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        if (step % 10 == 0)
            check_sum(&f);
    }
    fed_close(&f);
    return 0;
}

TEST(test_sum_of_own)
{
    static const char *const codecs[] = {"topk:ratio=0.1", "topk:ratio=0.02+natural",
                                         "topk:ratio=0.1+dither", "topk:ratio=0.9"};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_BF16, TRIB_F64};

    for (int size = 1; size <= 4; size++)
        for (size_t a = 0; a < algorithms_count(false); a++)
            run(holds,
                &(struct fed_scene){codecs[(a + (size_t)size) % 4],
                                    a % 2 ? "ef21" : "ef21:momentum=0.1",
                                    algorithm_at(a), dtypes[(a + 2 * (size_t)size) % 4],
                                    size % 2 ? TRIB_SUM : TRIB_MEAN},
                size);
    for (size_t a = 0; a < algorithms_count(false); a++) /* linear codecs lose nothing
                                                          * on the way */
        run(holds,
            &(struct fed_scene){a % 2 ? "int4:bucket=8"
                                      : "qsgd:shared=1,bits=5,bucket=64",
                                a % 2 ? "ef21" : "ef21:momentum=0.2", algorithm_at(a),
                                dtypes[a % 4], a % 3 ? TRIB_SUM : TRIB_MEAN},
            1 + (int)a % 4);
    static const char *const selections[] = {"dgc:ratio=0.1", "randomk:ratio=0.1",
                                             "blocks:ratio=0.1,block=16"};
    for (size_t c = 0; c < 3; c++)
        for (size_t a = 0; a < 2; a++)
            run(holds,
                &(struct fed_scene){selections[c], a ? "ef21" : "ef21:momentum=0.2",
                                    algorithm_at(c + a), dtypes[c], TRIB_MEAN},
                2 + (int)a);
    run(holds, &(struct fed_scene){"efsign", "ef21", "flat", TRIB_F32, TRIB_MEAN}, 3);
    run(holds, &(struct fed_scene){"natural", "ef21", "flat", TRIB_F16, TRIB_MEAN}, 2);
}

/* Compute |h - g|^2 of this rank, and of the result compared with the mean gradient. */
static void distances(struct fed *f, double out[2])
{
    const float *own = fed_kept(&f->plan->run, "own");

    out[0] = out[1] = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double mean = 0, d = (double)own[i] - fed_input(f, f->self->rank, i);
        for (int r = 0; r < f->self->size; r++)
            mean += fed_input(f, r, i) / f->self->size;
        out[0] += d * d;
        out[1] += (fed_result(f, i) - mean) * (fed_result(f, i) - mean);
    }
}

static int contracts(struct ranks_self *self)
{
    double before, d[2];
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    fed_fill(&f, 1);
    fed_run(&f);
    distances(&f, d);
    for (int step = 2; step <= 60; step++) {
        before = d[0];
        fed_run(&f);
        distances(&f, d);
        /* alpha = k/n; the rounding error of float32 is negligible */
        if (d[0] > (1 - 0.1) * before + 1e-9)
            ranks_die(self, "step %d: %g of %g left", step, d[0], before);
    }
    ranks_assert(self, d[0] < 1e-6 && d[1] < 1e-6);
    fed_close(&f);
    return 0;
}

TEST(test_fixed_gradient)
{
    for (int size = 1; size <= 4; size++)
        run(contracts,
            &(struct fed_scene){"topk:ratio=0.1", "ef21", algorithm_at(size), TRIB_F32,
                                TRIB_MEAN},
            size);
}

/* All elements are sent: the result is the mean gradient of each step, or its moving
 * average. */
static int descends(struct ranks_self *self)
{
    static double v[COUNT];
    const struct fed_scene *s = self->arg;
    struct fed f;

    fed_open(&f, self, s, COUNT);
    for (uint64_t step = 1; step <= 10; step++) {
        const double eta = step > 1 && strstr(s->feedback, "momentum") ? 0.25 : 1;
        fed_fill(&f, step);
        fed_run(&f);
        for (size_t i = 0; i < COUNT; i++) {
            double mean = 0;
            for (int r = 0; r < self->size; r++)
                mean += fed_input(&f, r, i) / self->size;
            v[i] = (1 - eta) * v[i] + eta * mean;
            if (!(fabs(fed_result(&f, i) - v[i]) < 2e-6))
                ranks_die(self, "step %d, element %zu: %.8f, not %.8f", (int)step, i,
                          fed_result(&f, i), v[i]);
        }
    }
    fed_close(&f);
    return 0;
}

TEST(test_ratio_1_is_gradient_descent)
{
    for (int size = 1; size <= 4; size++) {
        run(descends,
            &(struct fed_scene){"topk:ratio=1", "ef21", algorithm_at(size), TRIB_F32,
                                TRIB_MEAN},
            size);
        run(descends,
            &(struct fed_scene){"topk:ratio=1", "ef21:momentum=0.25",
                                algorithm_at(size - 1), TRIB_F32, TRIB_MEAN},
            size);
    }
}

/* A gradient that is not finite reaches all ranks, once, and has no later effect. */
static int forgets(struct ranks_self *self)
{
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    for (uint64_t step = 1; step <= 30; step++) {
        fed_fill(&f, step);
        if (step == 5 && self->rank == self->size - 1) {
            float bad[] = {NAN, INFINITY, -INFINITY};
            memcpy(f.send + 100 * f.element, bad, sizeof(bad));
        }
        fed_run(&f);
        for (size_t i = 0; i < COUNT; i++) {
            bool bad = step == 5 && i >= 100 && i < 103;
            if (isfinite(fed_result(&f, i)) == bad)
                ranks_die(self, "step %d, element %zu is %g", (int)step, i,
                          fed_result(&f, i));
        }
        if (step != 5)
            check_sum(&f);
    }
    fed_close(&f);
    return 0;
}

TEST(test_not_finite)
{
    for (int size = 1; size <= 4; size++)
        run(forgets,
            &(struct fed_scene){"topk:ratio=0.05",
                                size % 2 ? "ef21" : "ef21:momentum=0.5",
                                algorithm_at(size), TRIB_F32, TRIB_MEAN},
            size);
}

/* ---- three ranks with three directions ------------------------------------------- */

struct descent {
    float g[3], mean[3];
    double x[3];
    trib_plan_t *plan;
};

/* The gradient of f(x) = <a,x>^2 + |x|^2 / 4, a = (-3, 2, 2) and its rotations. */
static void step_down(struct ranks_self *self, struct descent *d, double step)
{
    double along = 0;

    for (int i = 0; i < 3; i++)
        along += (i == self->rank ? -3 : 2) * d->x[i];
    for (int i = 0; i < 3; i++)
        d->g[i] = (float)(2 * along * (i == self->rank ? -3 : 2) + d->x[i] / 2);
    ranks_step(self, d->plan);
    for (int i = 0; i < 3; i++)
        d->x[i] -= step * (double)d->mean[i];
}

static void begin_descent(struct ranks_self *self, struct descent *d,
                          const struct fed_scene *s)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    *d = (struct descent){.x = {1, 1, 1}};
    desc.send = d->g;
    desc.recv = d->mean;
    desc.count = 3;
    desc.op = TRIB_MEAN;
    desc.codec = s->codec;
    desc.feedback = s->feedback;
    desc.algorithm = s->algorithm;
    ranks_ok(self, trib_plan_allreduce(self->comm, &desc, &d->plan));
    ranks_assert(self, d->plan->run.program.n_chunks == 1); /* one of three elements */
}

static int diverges(struct ranks_self *self)
{
    const double step = 0.05, factor = 1 + 11 * step / 6;
    double want = 1;
    struct descent d;

    begin_descent(self, &d, self->arg);
    for (int k = 0; k < 60; k++) {
        step_down(self, &d, step);
        want *= factor;
        for (int i = 0; i < 3; i++)
            ranks_assert(self, fabs(d.x[i] / want - 1) < 1e-5);
    }
    ranks_ok(self, trib_plan_free(d.plan));
    return 0;
}

static int converges(struct ranks_self *self)
{
    struct descent d;

    begin_descent(self, &d, self->arg);
    for (int k = 0; k < 4000; k++)
        step_down(self, &d, 0.01);
    const double norm = fabs(d.x[0]) + fabs(d.x[1]) + fabs(d.x[2]);
    /* ef21 accumulates values that were rounded while they were large */
    const bool adds =
        strcmp(((const struct fed_scene *)self->arg)->feedback, "ef21") == 0;
    ranks_say(self, "|x| is %g", norm);
    if (!(norm < (adds ? 1e-5 : 1e-15)))
        ranks_die(self, "|x| is %g", norm);
    ranks_ok(self, trib_plan_free(d.plan));
    return 0;
}

TEST(test_top_1_alone_diverges)
{
    run(diverges, &(struct fed_scene){"topk:k=1", "none", "flat", TRIB_F32, TRIB_MEAN},
        3);
    run(diverges,
        &(struct fed_scene){"topk:k=1,ef=0", NULL, "tree", TRIB_F32, TRIB_MEAN}, 3);
}

TEST(test_top_1_with_feedback_converges)
{
    run(converges, &(struct fed_scene){"topk:k=1", "ef14", "flat", TRIB_F32, TRIB_MEAN},
        3);
    run(converges,
        &(struct fed_scene){"topk:ratio=0.33", "ef21", "tree", TRIB_F32, TRIB_MEAN}, 3);
}
