/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of lossy results with simple stand-ins for codecs: valid results must pass,
 * and a missing rank must be detected.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "perf/coll/perf_oracle.h"

#define COUNT 12000
#define RANKS_MOST 8

static uint64_t random_state;

/* Uniform in [0, 1). */
static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

static float to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void code_bf16(float *x)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = to_bf16(x[i]);
}

/* Buckets of 500, largest magnitude, `levels` levels. */
static void code_levels(float *x, int levels)
{
    for (int first = 0; first < COUNT; first += 500) {
        float most = 0;
        for (int i = first; i < first + 500; i++)
            most = fmaxf(most, fabsf(x[i]));
        for (int i = first; i < first + 500; i++) {
            double y = fabs((double)x[i]) / (double)most * levels;
            double level = floor(y + uniform());
            x[i] = copysignf((float)(level * (double)most / levels), x[i]);
        }
    }
}

/* To a power of two below or above, so that the mean is right. */
static void code_natural(float *x)
{
    for (int i = 0; i < COUNT; i++) {
        if (x[i] == 0)
            continue;
        double low = ldexp(1, ilogb((double)x[i]));
        double up = uniform() < fabs((double)x[i]) / low - 1 ? 2 : 1;
        x[i] = copysignf((float)(low * up), x[i]);
    }
}

static void code_2_bits(float *x)
{
    code_levels(x, 1);
}

static void code_8_bits(float *x)
{
    code_levels(x, 127);
}

/* The largest of each 50. */
static void code_selected(float *x)
{
    for (int first = 0; first < COUNT; first += 50) {
        int most = first;
        for (int i = first; i < first + 50; i++)
            most = fabsf(x[i]) > fabsf(x[most]) ? i : most;
        for (int i = first; i < first + 50; i++)
            x[i] = i == most ? x[i] : 0;
    }
}

struct scene {
    const char *codec;
    void (*code)(float *x);
    bool again; /* partial sums are encoded too, as in a ring */
};

static const struct scene scenes[] = {
    {"bf16", code_bf16, true},
    {"qsgd:bits=2", code_2_bits, true},
    {"qsgd:bits=8", code_8_bits, true},
    {"topk:ratio=0.02", code_selected, false},
    {"natural", code_natural, true},
};

/* Sum the contributions of the ranks; from element `from` on, rank 1 counts `times`
 * times. */
static void sum(const struct perf_oracle *o, const struct scene *s, int times, int from,
                float *out)
{
    static float in[COUNT];

    random_state = 7;
    memset(out, 0, COUNT * sizeof(*out));
    for (int rank = 0; rank < o->ranks; rank++) {
        perf_oracle_fill(o, rank, 0, COUNT, in);
        if (!s->again)
            s->code(in);
        for (int i = 0; i < COUNT; i++)
            out[i] += in[i] * (float)(rank == 1 && i >= from ? times : 1);
        if (s->again)
            s->code(out);
    }
}

static struct perf_oracle oracle(const struct scene *s, int ranks)
{
    return (struct perf_oracle){
        .coll = TRIB_ALLREDUCE,
        .dtype = TRIB_F32,
        .op = TRIB_SUM,
        .count = COUNT,
        .ranks = ranks,
        .loss = perf_loss_of(s->codec),
        .seed = 5,
    };
}

static void judge(const struct scene *s, int ranks, int times, int from,
                  struct perf_verdict *verdict)
{
    static float result[COUNT];
    struct perf_oracle o = oracle(s, ranks);

    sum(&o, s, times, from, result);
    perf_oracle_compare(&o, result, verdict);
}

TEST(test_right)
{
    struct perf_verdict verdict;

    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        for (int ranks = 2; ranks <= RANKS_MOST; ranks++) {
            judge(&scenes[i], ranks, 1, 0, &verdict);
            if (verdict.wrong != 0)
                fail_msg("%s, %d ranks: %llu wrong, %llu lost", scenes[i].codec, ranks,
                         (unsigned long long)verdict.wrong,
                         (unsigned long long)verdict.lost);
        }
}

/* One rank is missing, wholly or (except for topk) in the last third, or counts
 * twice. */
TEST(test_lost)
{
    struct perf_verdict verdict;

    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        const struct scene *s = &scenes[i];
        /* Two bits, encoded eight times, add noise a hundred times the sum. */
        int most = strcmp(s->codec, "qsgd:bits=2") == 0 ? 3 : RANKS_MOST;
        for (int ranks = 2; ranks <= most; ranks++) {
            judge(s, ranks, 0, 0, &verdict);
            if (verdict.wrong == 0)
                fail_msg("%s, %d ranks: nobody misses rank 1", s->codec, ranks);
            judge(s, ranks, 2, 0, &verdict);
            if (verdict.wrong == 0)
                fail_msg("%s, %d ranks: rank 1 counts twice", s->codec, ranks);
            judge(s, ranks, 0, COUNT / 3 * 2, &verdict);
            if (verdict.wrong == 0 && s->again && most > 3)
                fail_msg("%s, %d ranks: nobody misses a third", s->codec, ranks);
        }
    }
}

/* The error does not tell that top-k lost a rank: nearly all of a top-k result is
 * error. */
TEST(test_lost_is_told)
{
    struct perf_verdict verdict;

    judge(&scenes[3], 3, 0, 0, &verdict);
    assert_int_equal(verdict.lost, 1);
    assert_true(verdict.error2 < verdict.error2_limit);
    judge(&scenes[1], 2, 0, 0, &verdict);
    assert_int_equal(verdict.lost, 1);
}

/* Noise without any rank's part is above the limit of a codec that has one. */
TEST(test_limit)
{
    static float result[COUNT];
    struct perf_oracle o = oracle(&scenes[2], 3);
    struct perf_verdict verdict;

    sum(&o, &scenes[2], 1, 0, result);
    for (int i = 0; i < COUNT; i++)
        result[i] += (float)(8 * uniform() - 4);
    perf_oracle_compare(&o, result, &verdict);
    assert_true(verdict.error2 > verdict.error2_limit);
    assert_true(verdict.wrong > 0);
}

static void check_known(void *arg, const trib_item_t *item)
{
    bool known = perf_loss_of(item->name).kind != PERF_LOSS_UNKNOWN;
    *(int *)arg += known;
    if (!known)
        fail_msg("nothing tells what %s may lose", item->name);
}

TEST(test_every_codec)
{
    int known = 0;

    assert_status(trib_list_each(TRIB_LIST_CODECS, check_known, &known), TRIB_OK);
    assert_true(known >= 7);
}

/* The squared error of the worst bucket on a grid of these levels, over its square. */
static double variance_of_grid(double bucket, double levels)
{
    return (sqrt(1 + (bucket - 1) / levels / levels) - 1) / 2;
}

TEST(test_texts)
{
    struct perf_loss loss = perf_loss_of("qsgd:bits=2,bucket=64,norm=l2,ef=0");

    assert_float_equal(loss.variance, 8, 1e-9);
    assert_false(loss.feedback);
    loss = perf_loss_of("qsgd");
    assert_float_equal(loss.variance, variance_of_grid(512, 7), 1e-9);
    loss = perf_loss_of("topk:k=7+bf16");
    assert_float_equal(loss.k, 7, 0);
    assert_float_equal(loss.rounding, 1.0 / 256, 0);
    assert_true(loss.feedback);
    perf_loss_feed(&loss, "codec");
    assert_true(loss.feedback && loss.kind == PERF_LOSS_SELECTED);
    perf_loss_feed(&loss, "none");
    assert_true(!loss.feedback && loss.kind == PERF_LOSS_SELECTED);
    perf_loss_feed(&loss, "ef14:momentum=0.9,nesterov=0,warmup=3");
    assert_true(loss.feedback && loss.kind == PERF_LOSS_SELECTED);
    perf_loss_feed(&loss, "ef21:clip=1");
    assert_int_equal(loss.kind, PERF_LOSS_UNKNOWN);
    loss = perf_loss_of("none");
    perf_loss_feed(&loss, "ef14");
    assert_true(!loss.feedback && loss.kind == PERF_LOSS_NONE);
    loss = perf_loss_of("topk:ratio=0.5,ef=0");
    assert_float_equal(loss.ratio, 0.5, 0);
    assert_false(loss.feedback);
    loss = perf_loss_of("topk:ratio=0.5,result=selected,ef=0+qsgd");
    assert_true(loss.kind == PERF_LOSS_SELECTED && loss.ratio <= 0 && loss.k <= 0);
    assert_float_equal(loss.variance, (2 * variance_of_grid(512, 7)), 1e-9);
    loss = perf_loss_of("hadamard:ef=1+bf16");
    assert_true(loss.feedback && loss.kind == PERF_LOSS_BIASED);
    assert_float_equal(loss.variance, 0x1p-16, 1e-12);
    loss = perf_loss_of("hadamard:block=64+int4:bucket=64");
    assert_true(!loss.feedback && loss.kind == PERF_LOSS_RANDOM);
    assert_float_equal(loss.variance, variance_of_grid(64, 7), 1e-9);
    loss = perf_loss_of("randomk:unbiased=1,ratio=0.3");
    assert_int_equal(loss.kind, PERF_LOSS_RANDOM);
    assert_float_equal(loss.variance, 3, 1e-9);
    assert_int_equal(perf_loss_of("randomk:unbiased=1,k=3").kind, PERF_LOSS_UNKNOWN);
    assert_int_equal(perf_loss_of("blocks").kind, PERF_LOSS_ROUNDED);
    assert_int_equal(perf_loss_of("blocks+natural").kind, PERF_LOSS_UNKNOWN);
    assert_float_equal(perf_loss_of("dgc:ratio=0.1").ratio, 0.08, 1e-9);
    assert_int_equal(perf_loss_of("f8").kind, PERF_LOSS_BIASED);
    assert_int_equal(perf_loss_of("f8:round=random").kind, PERF_LOSS_RANDOM);
    loss = perf_loss_of("natural:round=nearest");
    assert_int_equal(loss.kind, PERF_LOSS_ROUNDED);
    assert_float_equal(loss.rounding, 1.0 / 3, 1e-9);
    assert_int_equal(perf_loss_of("exact").kind, PERF_LOSS_NONE);
    loss = perf_loss_of("bound:abs=0.01");
    assert_int_equal(loss.kind, PERF_LOSS_BOUNDED);
    assert_float_equal(loss.absolute, 0.01, 1e-12);
    assert_float_equal(perf_loss_of("bound:rel=0.01").absolute, 0.04, 1e-12);
    assert_int_equal(perf_loss_of("lgc:ef=0").kind, PERF_LOSS_UNKNOWN);
    loss = perf_loss_of("gradiveq+int8:bucket=64");
    assert_int_equal(loss.kind, PERF_LOSS_PROJECTED);
    assert_float_equal(loss.variance, variance_of_grid(64, 127), 1e-9);
    assert_int_equal(perf_loss_of("topkapi").kind, PERF_LOSS_UNKNOWN);
}
