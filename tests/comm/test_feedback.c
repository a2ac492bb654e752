/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EF14 with momentum correction, masking, clipping and warm-up, with whole plans:
 * nothing is lost, with any algorithm; the guarantees of DGC (algorithm of
 * compress/feedback_rule.h).
 */
#include <math.h>

#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/fed.h"

#define COUNT 2500 /* three chunks of 1024 */
#define STEPS 12

static void run(ranks_fn fn, const struct fed_scene *s, int size)
{
    ranks_pass(.size = size, .fn = fn, .arg = (void *)s, .config = "transport=shm");
}

/* ---- results plus residuals equal the sum of the velocities ---------------------- */

struct momentum {
    double m;
    bool nesterov;
};

/* Apply the momentum of one element to g. */
static double corrected(const struct momentum *m, double *u, double g)
{
    if (m->nesterov) {
        *u = m->m * (*u + g);
        return *u + g;
    }
    *u = m->m * *u + g;
    return *u;
}

static int conserves(struct ranks_self *self)
{
    static double came[COUNT], u[RANKS_MAX][COUNT], kept[COUNT], sent[COUNT],
        most[COUNT];
    const struct fed_scene *s = self->arg;
    const struct momentum m = {.m = strstr(s->feedback, "momentum") ? 0.9 : 0,
                               .nesterov = strstr(s->feedback, "nesterov=1")};
    const double narrow = s->dtype == TRIB_F32 ? 0 : perf_number_epsilon(s->dtype);
    const int times = s->op == TRIB_MEAN ? self->size : 1;
    struct fed f;

    fed_open(&f, self, s, COUNT);
    for (uint64_t step = 1; step <= STEPS; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        for (size_t i = 0; i < COUNT; i++) {
            for (int r = 0; r < self->size; r++)
                came[i] += corrected(&m, &u[r][i], fed_input(&f, r, i));
            sent[i] += fed_result(&f, i) * times;
            most[i] += fabs(fed_result(&f, i)) * times + 10;
        }
        fed_same_bits(&f);
    }
    fed_summed(&f, trib_feedback_of(&f.plan->run)->residual, kept);
    for (size_t i = 0; i < COUNT; i++) {
        /* partial sums are rounded to the dtype by each rank, results once */
        double tolerance = most[i] * (1e-5 + narrow * self->size);
        if (!(fabs(sent[i] + kept[i] - came[i]) <= tolerance))
            ranks_die(self, "%s, %s, %s: of %.6f at %zu %.6f was sent and %.6f kept",
                      s->codec, s->feedback, s->algorithm, came[i], i, sent[i],
                      kept[i]);
    }
    fed_close(&f);
    return 0;
}

TEST(test_conserves)
{
    static const char *const codecs[] = {"topk:ratio=0.1", "topk:ratio=0.05+natural",
                                         "qsgd:bits=6", "efsign"};
    static const char *const feedbacks[] = {"ef14", "ef14:momentum=0.9,masking=0",
                                            "ef14:momentum=0.9,nesterov=1,masking=0"};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_F64, TRIB_BF16};

    for (int size = 1; size <= 4; size++)
        for (size_t a = 0; a < algorithms_count(false); a++)
            for (size_t k = 0; k < 3; k++)
                run(conserves,
                    &(struct fed_scene){codecs[(a + k + (size_t)size) % 4],
                                        feedbacks[k], algorithm_at(a),
                                        dtypes[(a + k) % 4], TRIB_SUM},
                    size);
}

/* Linear encoded chunks contain the measured values, once. */
TEST(test_conserves_sums_of_words)
{
    static const char *const codecs[] = {"int8", "uniform-thc:bucket=64",
                                         "int4:bucket=16", "qsgd:shared=1,bits=6"};
    static const char *const feedbacks[] = {"ef14", "ef14:momentum=0.9,masking=0"};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_F64, TRIB_BF16};

    for (size_t a = 0; a < algorithms_count(false); a++)
        for (size_t k = 0; k < 2; k++)
            run(conserves,
                &(struct fed_scene){codecs[(a + k) % 4], feedbacks[k], algorithm_at(a),
                                    dtypes[(a + 2 * k) % 4], TRIB_SUM},
                1 + (int)(a + k) % 4);
}

/* With any codec that supports error feedback. */
TEST(test_conserves_by_every_codec)
{
    static const char *const codecs[] = {
        "dgc:ratio=0.1",
        "threshold:at=0.8",
        "randomk:ratio=0.1",
        "blocks:ratio=0.1,block=16",
        "adacomp",
        "f8",
        "natural",
        "dither:bits=5",
        "onebit",
        "int8",
        "int16",
        "uniform-thc:bits=6",
        "qsgd:bits=8,shared=1",
    };

    for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++)
        for (size_t k = 0; k < 2; k++)
            run(conserves,
                &(struct fed_scene){codecs[c],
                                    k ? "ef14:momentum=0.9,nesterov=1,masking=0"
                                      : "ef14:momentum=0.9,masking=0",
                                    algorithm_at(c + k), TRIB_F32, TRIB_SUM},
                1 + (int)(c + 2 * k) % 4);
}

/* Results that are rounded or selected again: a residual keeps their error, too. */
TEST(test_conserves_by_results)
{
    static const char *const codecs[] = {
        "topk:ratio=0.1,result=selected",
        "topk:k=300,result=selected+natural",
        "topk:ratio=0.05,result=requantised+qsgd:bits=2,bucket=8",
        "topk:ratio=0.05,result=requantised+bf16",
        "topk:ratio=0.3,result=requantised+int8",
        "dgc:ratio=0.1,result=selected+f16",
        "dgc:ratio=0.1,result=requantised+f8",
        "threshold:at=0.8,result=selected+dither",
        "threshold:at=0.8,result=requantised+qsgd:bucket=16",
        "randomk:ratio=0.1,result=requantised+natural",
        "blocks:ratio=0.1,block=16,result=selected+onebit:bucket=8",
        "blocks:ratio=0.1,block=16,result=requantised+efsign:bucket=16",
        "adacomp:result=requantised",
        "adacomp:bin=500,result=selected",
    };
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F32, TRIB_F16, TRIB_F64};

    for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++)
        for (size_t k = 0; k < 2; k++)
            run(conserves,
                &(struct fed_scene){codecs[c],
                                    k ? "ef14:momentum=0.9,masking=0" : "ef14",
                                    algorithm_at(c + 3 * k), dtypes[(c + k) % 4],
                                    k ? TRIB_SUM : TRIB_MEAN},
                2 + (int)(c + 2 * k) % 3);
}

/* ---- masking --------------------------------------------------------------------- */

static int masks(struct ranks_self *self)
{
    const struct fed_scene *s = self->arg;
    const unsigned char *mask;
    struct fed f;
    size_t sent;

    fed_open(&f, self, s, COUNT);
    for (uint64_t step = 1; step <= 5; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        ranks_ok(self, trib_plan_sent(f.plan, &mask, &sent));
        ranks_assert(self, sent >= COUNT / 10 && sent <= COUNT / 10 + 3);
        const float *u = fed_kept(&f.plan->run, "momentum"),
                    *v = trib_feedback_of(&f.plan->run)->residual;
        for (size_t i = 0; i < COUNT; i++) {
            bool was = fed_was_sent(&f, i);
            if (was != (u[i] == 0) || was != (v[i] == 0))
                ranks_die(self, "%s: element %zu was %ssent, u is %g, v %g",
                          s->algorithm, i, was ? "" : "not ", (double)u[i],
                          (double)v[i]);
        }
    }
    fed_close(&f);
    return 0;
}

TEST(test_masking)
{
    for (size_t a = 0; a < algorithms_count(false); a++)
        run(masks,
            &(struct fed_scene){"topk:ratio=0.1", "ef14:momentum=0.9", algorithm_at(a),
                                TRIB_F32, TRIB_MEAN},
            1 + (int)a % 4);
}

/* ---- all elements sent: SGD with momentum ---------------------------------------- */

static int dense_momentum(struct ranks_self *self)
{
    static float u[RANKS_MAX][COUNT];
    const struct fed_scene *s = self->arg;
    const bool nesterov = strstr(s->feedback, "nesterov=1");
    struct fed f;

    fed_open(&f, self, s, COUNT);
    for (uint64_t step = 1; step <= 8; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        for (size_t i = 0; i < COUNT; i++) {
            volatile float sum = 0, a, b; /* each rounded to float32 */
            for (int r = 0; r < self->size; r++) {
                float g = (float)fed_input(&f, r, i);
                a = 0.9f * u[r][i];
                b = nesterov ? 0.9f * g : g;
                u[r][i] = a + b;
                a = nesterov ? u[r][i] + g : u[r][i];
                sum = r ? sum + a : a;
            }
            if (((float *)(void *)f.recv)[i] != sum)
                ranks_die(self, "%s: step %d, element %zu is %.9g, it should be %.9g",
                          s->feedback, (int)step, i, fed_result(&f, i), (double)sum);
        }
    }
    fed_close(&f);
    return 0;
}

TEST(test_ratio_1_is_momentum_sgd)
{
    for (int size = 1; size <= 4; size++) {
        run(dense_momentum,
            &(struct fed_scene){"topk:ratio=1", "ef14:momentum=0.9,masking=0",
                                size % 2 ? "direct" : "flat", TRIB_F32, TRIB_SUM},
            size);
        run(dense_momentum,
            &(struct fed_scene){"topk:ratio=1",
                                "ef14:momentum=0.9,nesterov=1,masking=0",
                                size % 2 ? "flat" : "direct", TRIB_F32, TRIB_SUM},
            size);
    }
}

/* ---- clipping -------------------------------------------------------------------- */

/* Return |x|^2 of the momentum after one step, which is the clipped gradient, over all
 * ranks. */
static double squares_of_step(struct fed *f)
{
    static double all[COUNT];
    float *u = fed_kept(&f->plan->run, "momentum");
    double sum = 0;

    memset(u, 0, COUNT * sizeof(*u));
    fed_run(f);
    for (size_t i = 0; i < COUNT; i++)
        sum += (double)u[i] * (double)u[i];
    memset(all, 0, sizeof(all));
    float mine[COUNT] = {(float)sum};
    fed_summed(f, mine, all);
    return all[0];
}

static void scale_input(struct fed *f, double by)
{
    for (size_t i = 0; i < COUNT; i++)
        perf_number_store(
            f->scene->dtype, f->send, i,
            (union perf_number){.f = by * fed_input(f, f->self->rank, i)});
}

static int clips(struct ranks_self *self)
{
    const struct fed_scene *s = self->arg;
    struct fed f;

    fed_open(&f, self, s, COUNT);
    fed_fill(&f, 3);
    double squares = squares_of_step(&f); /* each |g| is about 28 */
    if (!(fabs(squares / (0.5 * 0.5) - 1) < 1e-5))
        ranks_die(self, "clipped to a squared norm of %.7f, not %.7f", squares, 0.25);
    scale_input(&f, 1e-4);
    double small = squares_of_step(&f);
    ranks_assert(self, small < 0.25 && small > 1e-8 * COUNT * self->size / 6);
    for (size_t i = 0; i < COUNT; i++) /* unclipped */
        ranks_assert(self, fed_kept(&f.plan->run, "momentum")[i] ==
                               (float)perf_number_load(s->dtype, f.send, i).f);
    if (s->dtype != TRIB_F16) { /* its squares exceed float32 */
        scale_input(&f, 1e30);
        squares = squares_of_step(&f);
        ranks_assert(self, fabs(squares / 0.25 - 1) < 1e-5);
        scale_input(&f, 1e-30);
        ranks_assert(self, squares_of_step(&f) < 1e-50);
    }
    fed_close(&f);
    return 0;
}

/* A NaN is sent, and the rest of its vector unclipped. */
static int clips_nan(struct ranks_self *self)
{
    struct fed f;
    float *x;

    fed_open(&f, self, self->arg, COUNT);
    fed_fill(&f, 3);
    x = (float *)(void *)f.send;
    x[7] = self->rank ? x[7] : NAN;
    fed_run(&f);
    ranks_assert(self, isnan(fed_result(&f, 7)));
    if (self->rank == 0)
        ranks_assert(self, fed_kept(&f.plan->run, "momentum")[8] == x[8]);
    for (uint64_t step = 4; step <= 6; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        ranks_assert(self, isfinite(fed_result(&f, 7)));
    }
    ranks_assert(self, isfinite(trib_feedback_of(&f.plan->run)->residual[7]));
    ranks_assert(self, isfinite(fed_kept(&f.plan->run, "momentum")[7]));
    fed_close(&f);
    return 0;
}

TEST(test_clipping)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F64, TRIB_F16, TRIB_F32};

    for (int size = 1; size <= 4; size++)
        run(clips,
            &(struct fed_scene){"topk:ratio=0.1",
                                "ef14:momentum=0.5,masking=0,clip=0.5",
                                algorithm_at(size), dtypes[size - 1], TRIB_SUM},
            size);
    run(clips_nan,
        &(struct fed_scene){"topk:ratio=0.1", "ef14:momentum=0.9,masking=0,clip=0.5",
                            "ring", TRIB_F32, TRIB_SUM},
        3);
    run(clips_nan,
        &(struct fed_scene){"qsgd:bits=8", "ef14:momentum=0.9,clip=0.5", "direct",
                            TRIB_F32, TRIB_SUM},
        2);
}

/* Clipping needs no feedback, and no selecting codec. */
static int clips_alone(struct ranks_self *self)
{
    double squares = 0;
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    fed_fill(&f, 5);
    fed_run(&f);
    for (size_t i = 0; i < COUNT; i++)
        squares += fed_result(&f, i) * fed_result(&f, i);
    /* of `size` vectors of norm 3 / sqrt(size), nearly orthogonal */
    if (!(fabs(sqrt(squares) - 3) < 0.3))
        ranks_die(self, "the sum has norm %.3f", sqrt(squares));
    fed_close(&f);
    return 0;
}

TEST(test_clipping_alone)
{
    for (int size = 1; size <= 3; size++)
        run(clips_alone,
            &(struct fed_scene){"bf16", "none:clip=3", algorithm_at(size), TRIB_F32,
                                TRIB_SUM},
            size);
}

/* ---- warm-up --------------------------------------------------------------------- */

static int warms_up(struct ranks_self *self)
{
    size_t sent, before = COUNT + 1;
    const unsigned char *mask;
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    /* each rounds up */
    const double chunks = f.plan->run.desc.rounds * f.plan->run.program.n_chunks;
    for (uint64_t step = 0; step < 14; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        ranks_ok(self, trib_plan_sent(f.plan, &mask, &sent));
        double ratio = step < 12 ? pow(0.001, (double)(step / 3 + 1) / 5) : 0.001;
        if ((double)sent < COUNT * ratio - 1e-6 ||
            (double)sent > COUNT * ratio + chunks || sent > before)
            ranks_die(self, "step %d sent %zu, before it %zu", (int)step, sent, before);
        before = sent;
    }
    fed_close(&f);
    return 0;
}

TEST(test_warm_up)
{
    for (int size = 1; size <= 4; size++)
        run(warms_up,
            &(struct fed_scene){size % 2 ? "topk:ratio=0.001" : "randomk:ratio=0.001",
                                "ef14:momentum=0.9,warmup=12,stages=4",
                                algorithm_at(size), TRIB_F32, TRIB_MEAN},
            size);
}

/* ---- other collectives, buffers and feeds ---------------------------------------- */

/* One of several equivalent ways. */
struct way {
    trib_coll_t coll;
    trib_feed_t feed;
    bool in_place;
};

static trib_plan_t *plan_of(struct ranks_self *self, const struct fed_scene *s,
                            const struct way *w, float *send, float *recv)
{
    return ranks_plan(self, w->coll, .send = w->in_place ? NULL : send,
                      .recv = w->in_place ? send : recv, .count = COUNT,
                      .root = self->size - 1, .codec = s->codec,
                      .feedback = s->feedback, .algorithm = s->algorithm,
                      .feed = w->feed, .chunk = 4096, .name = "any way");
}

static void run_fed(struct ranks_self *self, trib_plan_t *plan, trib_feed_t feed)
{
    ranks_ok(self, trib_plan_start(plan));
    for (size_t i = 5; i > 0 && feed; i--)
        ranks_ok(self, trib_plan_ready(plan, (i - 1) * (COUNT / 5), COUNT / 5));
    ranks_ok(self, trib_plan_wait(plan));
}

/* In place and piecewise have the same result as whole vectors out of place. */
static int same_ways(struct ranks_self *self)
{
    static const struct way ways[] = {{TRIB_ALLREDUCE, TRIB_FEED_WHOLE, false},
                                      {TRIB_ALLREDUCE, TRIB_FEED_WHOLE, true},
                                      {TRIB_ALLREDUCE, TRIB_FEED_BACKWARD, false},
                                      {TRIB_ALLREDUCE, TRIB_FEED_FORWARD, true}};
    static float send[4][COUNT], recv[4][COUNT];
    struct oracle o = {.kind = ORACLE_REALS, .size = self->size};
    const struct fed_scene *s = self->arg;
    trib_plan_t *plans[4];

    for (int w = 0; w < 4; w++)
        plans[w] = plan_of(self, s, &ways[w], send[w], recv[w]);
    for (o.seed = 1; o.seed <= 5; o.seed++) {
        for (int w = 0; w < 4; w++) {
            float *result = ways[w].in_place ? send[w] : recv[w];
            oracle_fill(&o, self->rank, 0, COUNT, send[w]);
            run_fed(self, plans[w], ways[w].feed);
            if (memcmp(result, recv[0], sizeof(recv[0])) != 0)
                ranks_die(self, "%s, %s: way %d, step %d has other bits", s->feedback,
                          s->algorithm, w, (int)o.seed);
        }
    }
    for (int w = 0; w < 4; w++)
        ranks_ok(self, trib_plan_free(plans[w]));
    return 0;
}

TEST(test_ways)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        run(same_ways,
            &(struct fed_scene){"topk:ratio=0.1", "ef14:momentum=0.9,nesterov=1",
                                algorithm_at(a), TRIB_F32, TRIB_SUM},
            1 + (int)a % 4);
        run(same_ways,
            &(struct fed_scene){"topk:ratio=0.1", "ef21:momentum=0.5", algorithm_at(a),
                                TRIB_F32, TRIB_SUM},
            1 + (int)(a + 2) % 4);
        /* in place, encoding leaves zeros, which a result of few elements shows */
        run(same_ways,
            &(struct fed_scene){"topk:ratio=0.1,result=selected", "ef14",
                                algorithm_at(a), TRIB_F32, TRIB_SUM},
            3 + (int)a % 2);
        /* the first exchange and the chunks belong to the same contribution */
        run(same_ways,
            &(struct fed_scene){a % 2 ? "int8" : "uniform-thc:bits=6,ef=0",
                                a % 2 ? "ef14:momentum=0.9" : "ef21:momentum=0.5",
                                algorithm_at(a), TRIB_F32, TRIB_SUM},
            1 + (int)(a + 1) % 4);
    }
}

/* Nothing is lost: inputs equal the result of a block or of the root, plus the
 * residuals. */
static int conserves_elsewhere(struct ranks_self *self, trib_coll_t coll)
{
    static float send[RANKS_MAX * COUNT], recv[COUNT];
    static double came[RANKS_MAX * COUNT], u[RANKS_MAX * COUNT], sums[2][COUNT];
    const size_t blocks = coll == TRIB_REDUCE_SCATTER ? (size_t)self->size : 1;
    struct oracle o = {.kind = ORACLE_REALS, .size = self->size};
    struct fed f = {.self = self, .count = COUNT};
    const struct way w = {.coll = coll};
    trib_plan_t *plan = plan_of(self, self->arg, &w, send, recv);
    static float got[COUNT], net[COUNT];

    for (o.seed = 1; o.seed <= 8; o.seed++) {
        oracle_fill(&o, self->rank, 0, blocks * COUNT, send);
        for (size_t i = 0; i < blocks * COUNT; i++) {
            u[i] = 0.5 * u[i] + (double)send[i];
            came[i] += u[i];
        }
        run_fed(self, plan, TRIB_FEED_WHOLE);
        bool mine = coll == TRIB_REDUCE_SCATTER || self->rank == self->size - 1;
        for (size_t i = 0; mine && i < COUNT; i++)
            got[i] += recv[i];
    }
    for (size_t b = 0; b < blocks; b++) {
        bool mine = coll == TRIB_REDUCE || (size_t)self->rank == b;
        for (size_t i = 0; i < COUNT; i++)
            net[i] =
                (float)(came[b * COUNT + i] -
                        (double)trib_feedback_of(&plan->run)->residual[b * COUNT + i]);
        fed_summed(&f, mine ? got : NULL, sums[0]);
        fed_summed(&f, net, sums[1]);
        for (size_t i = 0; i < COUNT; i++)
            if (!(fabs(sums[0][i] - sums[1][i]) < 1e-4))
                ranks_die(self, "%s, block %zu: element %zu: %.6f sent of %.6f",
                          trib_coll_name(coll), b, i, sums[0][i], sums[1][i]);
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static int conserves_by_reduce(struct ranks_self *self)
{
    return conserves_elsewhere(self, TRIB_REDUCE);
}

static int conserves_by_scatter(struct ranks_self *self)
{
    return conserves_elsewhere(self, TRIB_REDUCE_SCATTER);
}

TEST(test_conserves_elsewhere)
{
    for (int size = 1; size <= 4; size++) {
        struct fed_scene s = {size % 2 ? "topk:ratio=0.1" : "qsgd:bits=6",
                              "ef14:momentum=0.5,masking=0", "auto", TRIB_F32,
                              TRIB_SUM};
        run(conserves_by_reduce, &s, size);
        run(conserves_by_scatter, &s, size);
    }
}
