/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of codec auto: sums within their error budget and with the same bits on all
 * ranks, whichever codec runs, for each way to start; and the calls that such a plan
 * refuses.
 */
#include <math.h>

#include "base/digest.h"
#include "comm/auto/plan_auto.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { COUNT = 70001, STEPS = 60 };

enum way { STARTED, BLOCKING, FED, IN_PLACE, WAYS };

struct scene {
    struct ranks_self *self;
    trib_dtype_t dtype;
    size_t count;
    float *x;
    double *sum;
    void *send, *recv;
};

static float element(int step, size_t i, int rank)
{
    const uint64_t r = oracle_mix(i * 31 + (uint64_t)rank * 1000003 + (uint64_t)step);

    return (float)((double)(r >> 11) * 0x1p-52 - 1);
}

static void store(const struct scene *s, void *at, size_t i, float value)
{
    perf_number_store(s->dtype, at, i, (union perf_number){.f = (double)value});
}

static double load(const struct scene *s, const void *at, size_t i)
{
    return perf_number_load(s->dtype, at, i).f;
}

static void fill(const struct scene *s, int step, void *to)
{
    for (size_t i = 0; i < s->count; i++) {
        store(s, to, i, element(step, i, s->self->rank));
        s->sum[i] = 0;
    }
    for (int r = 0; r < s->self->size; r++)
        for (size_t i = 0; i < s->count; i++)
            s->sum[i] += (double)element(step, i, r);
}

/* Check that the result is near the sum and the same on all ranks. */
static void check(const struct scene *s, int step, double most, const char *what)
{
    uint64_t mine, all[16];
    double error = 0, square = 0;

    for (size_t i = 0; i < s->count; i++) {
        const double d = load(s, s->recv, i) - s->sum[i];
        error += d * d;
        square += s->sum[i] * s->sum[i];
    }
    if (!(error <= most * square))
        ranks_die(s->self, "%s, step %d: NMSE is %g, more than %g", what, step,
                  error / square, most);
    mine = trib_digest(s->recv, s->count * trib_dtype_size(s->dtype));
    ranks_assert(s->self, s->self->size <= 16);
    ranks_ok(s->self, trib_allgather(s->self->comm, &mine, all, 1, TRIB_U64));
    for (int r = 0; r < s->self->size; r++)
        if (all[r] != mine)
            ranks_die(s->self, "%s, step %d: rank %d has other bits", what, step, r);
}

static void open_scene(struct scene *s, struct ranks_self *self, trib_dtype_t dtype,
                       size_t count)
{
    *s = (struct scene){.self = self, .dtype = dtype, .count = count};
    s->sum = malloc(count * sizeof(*s->sum));
    s->send = malloc(count * trib_dtype_size(dtype));
    s->recv = malloc(count * trib_dtype_size(dtype));
    ranks_assert(self, s->sum && s->send && s->recv);
}

static void close_scene(struct scene *s)
{
    free(s->sum);
    free(s->send);
    free(s->recv);
}

static trib_plan_t *plan_of(const struct scene *s, const char *codec, enum way way)
{
    return ranks_plan(s->self, TRIB_ALLREDUCE,
                      .send = way == IN_PLACE ? s->recv : s->send, .recv = s->recv,
                      .count = s->count, .dtype = s->dtype, .codec = codec,
                      .feed = way == FED ? TRIB_FEED_BACKWARD : TRIB_FEED_WHOLE,
                      .name = way == STARTED ? "gradient" : NULL);
}

static void sum_once(const struct scene *s, trib_plan_t *plan, enum way way)
{
    const size_t half = s->count / 2;

    ranks_ok(s->self, trib_plan_start(plan));
    if (way == FED) {
        ranks_ok(s->self, trib_plan_ready(plan, half, s->count - half));
        ranks_ok(s->self, trib_plan_ready(plan, 0, half));
    }
    if (way == STARTED)
        while (trib_plan_test(plan) == TRIB_INPROGRESS)
            continue;
    ranks_ok(s->self, trib_plan_wait(plan));
}

/* Start one plan several times. Return true if some starts sent fewer bytes than dense
 * ones. */
static bool sum_many(const struct scene *s, const char *codec, double most,
                     enum way way)
{
    trib_stats_t a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    trib_plan_t *plan = plan_of(s, codec, way);

    ranks_ok(s->self, trib_stats(s->self->comm, &a));
    for (int step = 0; step < STEPS; step++) {
        fill(s, step, way == IN_PLACE ? s->recv : s->send);
        sum_once(s, plan, way);
        check(s, step, most, codec);
    }
    ranks_ok(s->self, trib_stats(s->self->comm, &b));
    ranks_ok(s->self, trib_plan_free(plan));
    return (double)(b.payload_bytes - a.payload_bytes) <
           0.98 * (double)(b.dense_bytes - a.dense_bytes);
}

/* Over a delayed network, a codec is always tried: fewer bytes promise more. */
RANKS_TEST(test_every_way, .size = 3, .config = "transport=tcp+delay:us=2000")
{
    bool coded = false;
    struct scene s;

    open_scene(&s, self, TRIB_F32, COUNT);
    for (int way = 0; way < WAYS; way++) {
        if (way == BLOCKING)
            continue;
        coded |= sum_many(&s, "auto:max_nmse=1e-3", 1e-3, (enum way)way);
    }
    ranks_assert(self, coded);
    ranks_assert(self, sum_many(&s, "auto:of=int4", 0.2, STARTED));
    close_scene(&s);
    return 0;
}

/* A vector of two layers: the numbers of one, a fifth of it, have large rounding
 * errors. */
static float layered(size_t i, size_t count, int layer)
{
    const float sign = oracle_mix(i) % 2 ? 1.0f : -1.0f;

    if ((int)(i * 5 / count) != layer)
        return 1e-3f * element(0, i, 0);
    return i % 500 ? sign / 254 : sign;
}

/* The sample of the choice contains part of that layer, wherever it is. */
static int layers(struct ranks_self *self)
{
    struct scene s;

    open_scene(&s, self, TRIB_F32, 32000);
    for (int layer = 0; layer < 5; layer++) {
        trib_plan_t *plan = plan_of(&s, "auto:max_nmse=1e-3", STARTED);
        for (int step = 0; step < 40; step++) {
            for (size_t i = 0; i < s.count; i++) {
                store(&s, s.send, i, layered(i, s.count, layer));
                s.sum[i] = self->size * (double)layered(i, s.count, layer);
            }
            sum_once(&s, plan, STARTED);
            check(&s, step, 1e-3, "layers");
        }
        ranks_ok(self, trib_plan_free(plan));
    }
    close_scene(&s);
    return 0;
}

TEST(test_layers)
{
    ranks_pass(.size = 2, .fn = layers, .config = "transport=tcp+delay:us=2000");
}

/* Ranks that share memory, and 16-bit floats: the sum is within its budget. */
static int near(struct ranks_self *self)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_BF16, TRIB_F16};
    static const double rounding[] = {1e-3, 1e-3 + 4e-5, 1e-3 + 1e-6};
    struct scene s;

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        open_scene(&s, self, dtypes[i], 5003);
        (void)sum_many(&s, "auto:max_nmse=1e-3", rounding[i], STARTED);
        close_scene(&s);
    }
    return 0;
}

TEST(test_near)
{
    ranks_pass(.size = 2, .fn = near);
    ranks_pass(.size = 1, .fn = near);
}

/* Blocking calls under TRIB_CODEC, and calls that ignore the setting. */
static int by_calls(struct ranks_self *self)
{
    struct scene s;
    double exact = self->rank + 1;

    open_scene(&s, self, TRIB_F32, 20000);
    for (int step = 0; step < STEPS; step++) {
        fill(&s, step, s.send);
        if (step % 2)
            ranks_ok(self, trib_allreduce_named(self->comm, "named", s.send, s.recv,
                                                s.count, TRIB_F32, TRIB_SUM));
        else
            ranks_ok(self, trib_allreduce(self->comm, s.send, s.recv, s.count, TRIB_F32,
                                          TRIB_SUM));
        check(&s, step, 1e-3, "blocking");
    }
    ranks_ok(self, trib_allreduce(self->comm, NULL, &exact, 1, TRIB_F64, TRIB_SUM));
    ranks_assert(self, exact == self->size * (self->size + 1) / 2.0);
    close_scene(&s);
    return 0;
}

TEST(test_calls)
{
    ranks_pass(.size = 3, .fn = by_calls,
               .config = "codec=auto:max_nmse=1e-3;transport=tcp+delay:us=500");
}

/* Sum a vector of one kind of numbers. The error of NaN is unknown: the vector is sent
 * dense. */
static void sum_kind(struct scene *s, float special, float other)
{
    trib_plan_t *plan = plan_of(s, "auto:max_nmse=1e-3", BLOCKING);
    const float n = (float)s->self->size;
    float *x = s->send, *y = s->recv;

    for (int step = 0; step < 2 * STEPS; step++) {
        for (size_t i = 0; i < s->count; i++)
            x[i] = i % 7 ? other : special;
        sum_once(s, plan, BLOCKING);
        if (isnan(special))
            ranks_assert(s->self, isnan(y[0]) && y[1] == other * n);
        else
            ranks_assert(s->self, fabsf(y[7] - special * n) <= 0.1f * special * n &&
                                      fabsf(y[1] - other * n) <= 0.1f * special * n);
    }
    ranks_ok(s->self, trib_plan_free(plan));
}

RANKS_TEST(test_odd_inputs, .size = 2, .config = "transport=tcp+delay:us=500")
{
    struct scene s;

    open_scene(&s, self, TRIB_F32, 20000);
    sum_kind(&s, NAN, 1);
    sum_kind(&s, 0, 0);
    sum_kind(&s, 1e30f, 1);
    close_scene(&s);
    return 0;
}

/* Return the sum of the residual of this rank; 0 for dense sums. */
static double held_by(const struct scene *s, trib_plan_t *plan)
{
    float *rest = malloc(s->count * sizeof(*rest));
    double held = 0;

    ranks_assert(s->self, rest);
    if (trib_plan_residual_get(plan, 0, s->count, rest) == TRIB_OK)
        for (size_t i = 0; i < s->count; i++)
            held += (double)rest[i];
    free(rest);
    return held;
}

/* Codecs with error feedback lose nothing: each input is in a result or in a residual.
 * Inputs are integers, so that sums are exact. */
static void sum_held(const struct scene *s, const char *codec, enum way way)
{
    trib_plan_t *plan = plan_of(s, codec, way);
    float *in = way == IN_PLACE ? s->recv : s->send, *out = s->recv;
    double mine[2] = {0, 0}, got = 0;

    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < s->count; i++) {
            in[i] = (float)((i * 7 + (size_t)(step + s->self->rank)) % 9);
            mine[0] += (double)in[i];
        }
        sum_once(s, plan, way);
        for (size_t i = 0; i < s->count; i++)
            got += (double)out[i];
    }
    mine[1] = held_by(s, plan);
    ranks_ok(s->self, trib_allreduce(s->self->comm, NULL, mine, 2, TRIB_F64, TRIB_SUM));
    if (got + mine[1] < mine[0] || got + mine[1] > mine[0])
        ranks_die(s->self, "%s: of %.0f %.0f came and %.0f are held back", codec,
                  mine[0], got, mine[1]);
    ranks_ok(s->self, trib_plan_free(plan));
}

static int held_back(struct ranks_self *self)
{
    struct scene s;

    open_scene(&s, self, TRIB_F32, 20011);
    sum_held(&s, "auto:of=topk:ratio=0.05|dgc:ratio=0.01", STARTED);
    sum_held(&s, "auto:of=topk:ratio=0.2", IN_PLACE);
    sum_held(&s, "auto:of=topk:ratio=0.2|blocks", FED);
    close_scene(&s);
    return 0;
}

TEST(test_held_back)
{
    ranks_pass(.size = 2, .fn = held_back, .config = "transport=tcp+delay:us=500");
    ranks_pass(.size = 3, .fn = held_back);
}

static void refused(struct ranks_self *self, trib_coll_t coll, trib_desc_t d,
                    const char *word)
{
    const char *const words[] = {"auto", word, NULL};
    trib_plan_t *plan;

    ranks_refused(self, trib_plan_create(self->comm, coll, &d, &plan),
                  strcmp(word, "error budget") == 0 ? TRIB_ERR_CODEC
                                                    : TRIB_ERR_UNSUPPORTED,
                  words);
}

static int refusals(struct ranks_self *self)
{
    trib_plan_t *plan;
    size_t bytes;
    char text[1024], state[64];
    trib_desc_t d = sized(trib_desc_t, .count = 5000, .codec = "auto");

    refused(self, TRIB_ALLREDUCE, d, "error budget");
    d.codec = "auto:max_nmse=1e-3";
    refused(self, TRIB_REDUCE, d, "reduce");
    d.feedback = "ef14";
    refused(self, TRIB_ALLREDUCE, d, "ef14");
    d.feedback = NULL;
    d.quorum = "0.5";
    refused(self, TRIB_ALLREDUCE, d, "all ranks");
    d.quorum = NULL;
    d.op = TRIB_MAX;
    refused(self, TRIB_ALLREDUCE, d, "max");
    d.op = TRIB_MEAN;
    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan));
    ranks_expect(self, trib_plan_state_save(plan, state, sizeof(state), &bytes),
                 TRIB_ERR_UNSUPPORTED, "state of auto");
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, strstr(text, "auto       none until"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_refusals)
{
    ranks_pass(.size = 2, .fn = refusals);
}

/* A vector of few elements is summed unencoded, by an ordinary plan. */
static int few_elements(struct ranks_self *self)
{
    const size_t counts[] = {1, TRIB_CODEC_ELEMENTS_MIN - 1, TRIB_CODEC_ELEMENTS_MIN};
    char text[1024], state[1024];
    struct scene s;
    size_t bytes;

    for (int i = 0; i < 3; i++) {
        const bool few = i < 2;
        open_scene(&s, self, TRIB_F32, counts[i]);
        trib_plan_t *plan = plan_of(&s, "auto:of=int8|topk", BLOCKING);
        for (int step = 0; few && step < 40; step++) {
            fill(&s, step, s.send);
            sum_once(&s, plan, BLOCKING);
            check(&s, step, 1e-14, "few elements");
        }
        ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
        ranks_assert(
            self, (strstr(text, "none: for vectors of less than 1024") != NULL) == few);
        ranks_assert(self, (strstr(text, "none until its first") == NULL) == few);
        ranks_expect(self, trib_plan_state_save(plan, state, sizeof(state), &bytes),
                     few ? TRIB_OK : TRIB_ERR_UNSUPPORTED, "the state of auto");
        ranks_ok(self, trib_plan_free(plan));
        close_scene(&s);
    }
    trib_desc_t d = sized(trib_desc_t, .count = 8);
    d.codec = "auto:of=itn8"; /* errors are detected for short vectors, too */
    trib_plan_t *plan;
    ranks_expect(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan),
                 TRIB_ERR_CODEC, "a misspelt codec");
    return 0;
}

TEST(test_few_elements)
{
    ranks_pass(.size = 2, .fn = few_elements, .config = "transport=tcp+delay:us=500");
}

/* A plan continues in a communicator of the same ranks, and measures again there. */
RANKS_TEST(test_moves, .size = 2, .config = "transport=tcp+delay:us=2000")
{
    struct scene s;
    trib_comm_t *other;
    trib_plan_t *moved;

    open_scene(&s, self, TRIB_F32, COUNT);
    trib_plan_t *plan = plan_of(&s, "auto:max_nmse=1e-3", BLOCKING);
    for (int step = 0; step < 8; step++) {
        fill(&s, step, s.send);
        sum_once(&s, plan, BLOCKING);
    }
    ranks_ok(self, trib_split(self->comm, 0, self->rank, &other));
    trib_plan_t *holds = plan_of(&s, "auto:of=topk", BLOCKING);
    ranks_expect(self, trib_plan_move(other, holds, s.send, s.recv, 0, &moved),
                 TRIB_ERR_UNSUPPORTED, "a plan that may hold something back");
    ranks_assert(self, strstr(trib_last_error(other), "keep a residual"));
    ranks_ok(self, trib_plan_free(holds));
    ranks_ok(self, trib_plan_move(other, plan, s.send, s.recv, 8, &moved));
    ranks_ok(self, trib_plan_free(plan));
    for (int step = 8; step < 16; step++) {
        fill(&s, step, s.send);
        sum_once(&s, moved, BLOCKING);
        check(&s, step, 1e-3, "moved");
    }
    ranks_ok(self, trib_plan_free(moved));
    ranks_ok(self, trib_free_comm(other));
    close_scene(&s);
    return 0;
}
