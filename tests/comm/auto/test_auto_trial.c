/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sample of codec auto: the figures that a rank writes, and the figures read from
 * the sum of all ranks.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "base/error.h"
#include "comm/auto/auto_trial.h"
#include "compress/kernels/kernels.h"

enum { RANKS = 3, COUNT = 100000 };

struct rig {
    struct trib_auto_choice choice;
    struct trib_auto_trial *trial;
    float *x, *figures, *sum;
};

static void open_rig(struct rig *r, const char *text, size_t count)
{
    struct trib_error err = {0};

    memset(r, 0, sizeof(*r));
    assert_int_equal(trib_auto_parse(text, &err, &r->choice), TRIB_OK);
    r->choice.ranks = RANKS;
    r->choice.count = (double)count;
    r->choice.element = 4;
    assert_int_equal(trib_auto_trial_create(&r->choice, count, TRIB_F32,
                                            trib_kernels_get(NULL), &r->trial),
                     TRIB_OK);
    r->x = calloc(count, sizeof(float));
    r->figures = calloc(trib_auto_trial_floats(r->trial), sizeof(float));
    r->sum = calloc(trib_auto_trial_floats(r->trial), sizeof(float));
    assert_true(r->x && r->figures && r->sum);
}

static void close_rig(struct rig *r)
{
    trib_auto_trial_destroy(r->trial);
    free(r->x);
    free(r->figures);
    free(r->sum);
}

static void fill(struct rig *r, size_t count, int rank, float special)
{
    for (size_t i = 0; i < count; i++)
        r->x[i] = sinf((float)(i * 7 + (size_t)rank * 1013)) + (i % 3 ? 0 : special);
}

/* All ranks write their figures, which are summed and read. */
static void agree(struct rig *r, size_t count, float special)
{
    const size_t n = trib_auto_trial_floats(r->trial);

    memset(r->sum, 0, n * sizeof(float));
    for (int rank = 0; rank < RANKS; rank++) {
        fill(r, count, rank, special);
        trib_auto_trial_forget(r->trial);
        assert_false(trib_auto_trial_full(r->trial));
        trib_auto_trial_take(r->trial, r->x, 0, count);
        assert_true(trib_auto_trial_full(r->trial));
        trib_auto_trial_write(r->trial, 100 + rank, 3 * rank, r->figures);
        for (size_t i = 0; i < n; i++)
            r->sum[i] += r->figures[i];
    }
    trib_auto_trial_read(r->trial, r->sum, &r->choice);
}

TEST(test_figures)
{
    static const char text[] = "auto:of=bf16|int8:bucket=128|topk:ratio=0.1,ef=0|blocks"
                               "|int8:bucket=128,result=requantised|qsgd:bits=8";
    struct rig r;

    open_rig(&r, text, COUNT);
    r.choice.of[6].merges = 2;
    agree(&r, COUNT, 0);
    const struct trib_auto_candidate *of = r.choice.of;
    assert_true(of[0].took_us > 100.9 && of[0].took_us < 101.1); /* the mean */
    assert_true(of[0].noise_us > 2.9 && of[0].noise_us < 3.1);
    /* bf16 has an error of about 2^-18/3 of each of six squares, int8 more, top 10 %
     * most. */
    assert_true(of[1].nmse > 1e-7 && of[1].nmse < 3e-5);
    assert_true(of[2].nmse > of[1].nmse && of[2].nmse < 1e-3);
    assert_true(of[3].nmse > 0.1);
    assert_true(of[4].nmse >= 0 && of[4].nmse <= 0);
    assert_true(of[1].bytes > 1.99 && of[1].bytes < 2.1);
    /* One byte up, two for the sum of three ranks. */
    assert_true(of[2].bytes > 1.4 && of[2].bytes < 1.7);
    assert_true(of[3].bytes > 0.4 && of[3].bytes < 1.6);
    /* Encoding the sum again adds an error, once or at each merge. */
    assert_true(of[5].nmse > 1.2 * of[2].nmse && of[5].nmse < 1e-3);
    const double twice = of[6].nmse;
    r.choice.of[6].merges = 1;
    agree(&r, COUNT, 0);
    assert_true(of[6].nmse > 0 && of[6].nmse < 0.9 * twice);
    for (int i = 1; i < r.choice.n; i++)
        assert_true(of[i].work_ns > 0);
    close_rig(&r);
}

/* Pieces in any order have the same sample as the whole vector. */
static void pieces(size_t count)
{
    struct rig r, whole;

    open_rig(&r, "auto:of=bf16", count);
    open_rig(&whole, "auto:of=bf16", count);
    const size_t n = trib_auto_trial_floats(r.trial);
    fill(&whole, count, 1, 0);
    trib_auto_trial_take(whole.trial, whole.x, 0, count);
    trib_auto_trial_write(whole.trial, 0, 0, whole.figures);
    fill(&r, count, 1, 0);
    for (size_t end = count; end > 0;) {
        const size_t piece = end < 777 ? end : 777;
        assert_false(trib_auto_trial_full(r.trial));
        trib_auto_trial_take(r.trial, r.x, end - piece, piece);
        end -= piece;
    }
    assert_true(trib_auto_trial_full(r.trial));
    trib_auto_trial_write(r.trial, 0, 0, r.figures);
    const size_t head = n - (count < 16384 ? count : 16384);
    assert_memory_equal(whole.figures + head, r.figures + head,
                        (n - head) * sizeof(float));
    close_rig(&whole);
    close_rig(&r);
}

TEST(test_pieces)
{
    static const size_t counts[] = {1,     255,   257,   5000, 16383,
                                    16384, 16385, 20001, COUNT};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        pieces(counts[i]);
}

/* Take another sample of elements whose value is their index, mark these as seen, and
 * check that no stretch of two parts of the vector was skipped. */
static void look(struct rig *r, size_t count, bool *seen)
{
    enum { PARTS = 64, SAMPLE = 16384 };
    const size_t n = count < SAMPLE ? count : SAMPLE;
    const float *sample = r->figures + trib_auto_trial_floats(r->trial) - n;
    size_t next = 0;

    trib_auto_trial_forget(r->trial);
    trib_auto_trial_take(r->trial, r->x, 0, count);
    trib_auto_trial_write(r->trial, 0, 0, r->figures);
    for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t)sample[i];
        assert_true(at >= next && at - next < 2 * count / PARTS + 512);
        seen[at] = true;
        next = at + 1;
    }
    assert_true(count - next < 2 * count / PARTS + 512);
}

/* Each sample is spread over the whole vector, and together the samples cover it. */
TEST(test_whole_vector)
{
    static const size_t counts[] = {100,   16384, 16385, 16640, 16641, 20001,
                                    30000, 32767, 32768, 49151, COUNT, 535818};

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        const size_t count = counts[c], looks = 2 * (count / 16384 + 2);
        bool *seen = calloc(count, sizeof(*seen));
        struct rig r;

        open_rig(&r, "auto:of=bf16", count);
        assert_non_null(seen);
        for (size_t i = 0; i < count; i++)
            r.x[i] = (float)i;
        for (size_t i = 0; i < looks; i++)
            look(&r, count, seen);
        for (size_t i = 0; i < count; i++)
            if (!seen[i])
                fail_msg("%zu elements: number %zu is in none of %zu samples", count, i,
                         looks);
        free(seen);
        close_rig(&r);
    }
}

/* An error in a stretch that some samples miss is remembered by the next ones. */
TEST(test_short_stretch)
{
    enum { COUNT_LONG = 400000, STRETCH = 3000, FIRST = 390000, LOOKS = 24 };
    struct rig r;
    int missed = 0, known = 0;

    open_rig(&r, "auto:of=int8:bucket=128", COUNT_LONG);
    const struct trib_auto_candidate *int8 = &r.choice.of[1];
    for (size_t i = 0; i < COUNT_LONG; i++)
        r.x[i] = i < FIRST || i >= FIRST + STRETCH ? 1e-6f : i % 64 ? 1.0f / 254 : 1;
    for (int i = 0; i < LOOKS; i++) {
        const double before = int8->nmse;
        trib_auto_trial_forget(r.trial);
        trib_auto_trial_take(r.trial, r.x, 0, COUNT_LONG);
        trib_auto_trial_write(r.trial, 0, 0, r.figures);
        trib_auto_trial_read(r.trial, r.figures, &r.choice);
        missed += known && int8->nmse < before;
        known += int8->nmse > 1e-4;
        assert_true(!known || int8->nmse > 1e-4);
    }
    assert_true(known > LOOKS / 2 && missed > 0);
    close_rig(&r);
}

/* The error of a NaN is unknown; zeros have no error. */
TEST(test_odd_numbers)
{
    struct rig r;

    open_rig(&r, "auto:max_nmse=1e-3", COUNT);
    agree(&r, COUNT, NAN);
    for (int i = 1; i < r.choice.n; i++)
        assert_false(trib_auto_allowed(&r.choice, i));
    agree(&r, COUNT, INFINITY);
    for (int i = 1; i < r.choice.n; i++)
        assert_false(trib_auto_allowed(&r.choice, i));
    agree(&r, COUNT, 0);
    assert_true(trib_auto_allowed(&r.choice, 1));
    close_rig(&r);
    open_rig(&r, "auto:max_nmse=1e-3", COUNT);
    trib_auto_trial_take(r.trial, r.x, 0, COUNT);
    trib_auto_trial_write(r.trial, 0, 0, r.figures);
    trib_auto_trial_read(r.trial, r.figures, &r.choice);
    for (int i = 1; i < r.choice.n; i++)
        assert_true(trib_auto_allowed(&r.choice, i));
    close_rig(&r);
}
