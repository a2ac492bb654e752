/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle judges the library, so it is tested with results made here by other means:
 * right ones must pass, and each kind of damage must be seen.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "perf/coll/perf_oracle.h"

#define COUNT 2500 /* two blocks of the oracle and a part of a third */
#define RANKS 3

static struct perf_oracle oracle(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op)
{
    return (struct perf_oracle){
        .coll = coll,
        .dtype = dtype,
        .op = op,
        .count = COUNT,
        .rank = 1,
        .ranks = RANKS,
        .root = 1,
        .seed = 5,
    };
}

static void sum_f32(const struct perf_oracle *o, float *out)
{
    static float in[COUNT * RANKS];

    memset(out, 0, COUNT * sizeof(*out));
    for (int rank = 0; rank < RANKS; rank++) {
        perf_oracle_fill(o, rank, 0, COUNT, in);
        for (int i = 0; i < COUNT; i++)
            out[i] += in[i];
    }
}

TEST(test_right_sum)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_F32, TRIB_SUM);
    struct perf_verdict verdict;
    static float result[COUNT];

    sum_f32(&o, result);
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 0);
    assert_true(verdict.reference2 > COUNT); /* variance 3 an element */
    assert_true(verdict.error2 < 1e-12 * verdict.reference2);
}

TEST(test_damage_is_seen)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_F32, TRIB_SUM);
    struct perf_verdict whole, damaged;
    static float result[COUNT];

    sum_f32(&o, result);
    perf_oracle_compare(&o, result, &whole);
    result[0] += 0.001f;
    result[1024] = 0;
    result[COUNT - 1] = NAN;
    perf_oracle_compare(&o, result, &damaged);
    assert_int_equal(damaged.wrong, 3);
    assert_int_equal(damaged.wrong_elements, 3);
    assert_int_equal(damaged.first, 0); /* the error message describes this element */
    assert_true(damaged.got == (double)result[0]);
    assert_true(fabs(damaged.want + 0.001 - damaged.got) < 1e-5 &&
                damaged.tolerance < 1e-4);
    assert_true(damaged.hash != whole.hash);
    /* The error of an unknown codec may have any finite size. */
    o.loss.kind = PERF_LOSS_UNKNOWN;
    perf_oracle_compare(&o, result, &damaged);
    assert_int_equal(damaged.wrong, 1);
}

/* A block that one rank did not add is an error in every element. */
TEST(test_missing_rank_is_seen)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_I32, TRIB_SUM);
    struct perf_verdict verdict;
    static int32_t result[COUNT];

    perf_oracle_fill(&o, 0, 0, COUNT, result);
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, COUNT);
}

/* The pair of the least value, and of these the one of the least index. */
TEST(test_located)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_I32, TRIB_MINLOC);
    struct perf_verdict verdict;
    static int32_t in[COUNT], result[COUNT];

    for (int rank = 0; rank < RANKS; rank++) {
        perf_oracle_fill(&o, rank, 0, COUNT, in);
        for (int i = 0; i < COUNT; i += 2)
            if (rank == 0 || in[i] < result[i] ||
                (in[i] == result[i] && in[i + 1] < result[i + 1]))
                memcpy(result + i, in + i, 2 * sizeof(*in));
    }
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 0);
    result[COUNT - 1] ^= 1 << 20; /* the index of another rank */
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 1);
    o.op = TRIB_MAXLOC;
    perf_oracle_compare(&o, result, &verdict);
    assert_true(verdict.wrong > COUNT / 2);
}

/* Elements are the same however they are asked for; ranks and elements differ. */
TEST(test_inputs)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_F64, TRIB_SUM);
    double all[100], part[10], other[100];
    double sum = 0, sum2 = 0;

    perf_oracle_fill(&o, 2, 0, 100, all);
    perf_oracle_fill(&o, 2, 50, 10, part);
    perf_oracle_fill(&o, 0, 0, 100, other);
    assert_memory_equal(all + 50, part, sizeof(part));
    assert_memory_not_equal(all, other, sizeof(other));
    for (int i = 0; i < 100; i++) {
        sum += all[i];
        sum2 += all[i] * all[i];
    }
    assert_true(fabs(sum) < 50); /* mean 0, variance 1 */
    assert_true(sum2 > 50 && sum2 < 200);
}

/* Blocks that a sparse input has, of `blocks`; each is zeros, or as the dense one has
 * it. */
static int blocks_left(const struct perf_oracle *o, int rank, int blocks, bool *left)
{
    static double in[400 * PERF_ORACLE_BLOCK], dense_in[400 * PERF_ORACLE_BLOCK];
    static const double zeros[PERF_ORACLE_BLOCK];
    struct perf_oracle dense = *o;
    size_t n = (size_t)blocks * PERF_ORACLE_BLOCK, got = 0, step = 1000;
    int count = 0;

    dense.empty = 0;
    perf_oracle_fill(&dense, rank, 0, n, dense_in);
    for (; got < n; got += step)
        perf_oracle_fill(o, rank, got, n - got < step ? n - got : step, in + got);
    for (int b = 0; b < blocks; b++) {
        const double *at = in + b * PERF_ORACLE_BLOCK;

        left[b] = memcmp(at, zeros, sizeof(zeros)) != 0;
        count += left[b];
        if (left[b])
            assert_memory_equal(at, dense_in + b * PERF_ORACLE_BLOCK, sizeof(zeros));
    }
    return count;
}

TEST(test_density)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_F64, TRIB_SUM);
    bool left[2][400];
    int shared = 0;

    o.empty = 0.75;
    for (int rank = 0; rank < 2; rank++) {
        int count = blocks_left(&o, rank, 400, left[rank]);
        assert_in_range(count, 60, 140); /* 100, ± 4.6 standard deviations */
    }
    for (int b = 0; b < 400; b++)
        shared += left[0][b] && left[1][b];
    assert_in_range(shared, 5, 50); /* 25 by chance */
    o.same_blocks = true;
    blocks_left(&o, 0, 400, left[0]);
    blocks_left(&o, 1, 400, left[1]);
    assert_memory_equal(left[0], left[1], sizeof(left[0]));
}

/* 16-bit floats, by the values that the standard gives their bits. */
TEST(test_half_formats)
{
    struct perf_oracle o = oracle(TRIB_BROADCAST, TRIB_F16, TRIB_SUM);
    struct perf_oracle wide = o;
    uint16_t half[COUNT];
    double value[COUNT];

    wide.dtype = TRIB_F64;
    perf_oracle_fill(&o, 1, 0, COUNT, half);
    perf_oracle_fill(&wide, 1, 0, COUNT, value);
    for (int i = 0; i < COUNT; i++) {
        int exponent = (half[i] >> 10) & 31;
        double fraction = (half[i] & 1023) / 1024.0;
        double back =
            exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15);
        if (half[i] & 0x8000)
            back = -back;
        double spacing = ldexp(1, (exponent == 0 ? 1 : exponent) - 15 - 10);
        assert_true(fabs(back - value[i]) <= spacing / 2);
    }
    o.dtype = TRIB_BF16;
    perf_oracle_fill(&o, 1, 0, COUNT, half);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)half[i] << 16;
        float back;
        memcpy(&back, &bits, sizeof(back));
        assert_true(fabs((double)back - value[i]) <= fabs(value[i]) / 256 + 1e-30);
    }
}

TEST(test_wrapping_mean)
{
    struct perf_oracle o = oracle(TRIB_ALLREDUCE, TRIB_I8, TRIB_MEAN);
    struct perf_verdict verdict;
    static int8_t in[COUNT], result[COUNT];
    static unsigned sum[COUNT];

    for (int rank = 0; rank < RANKS; rank++) {
        perf_oracle_fill(&o, rank, 0, COUNT, in);
        for (int i = 0; i < COUNT; i++)
            sum[i] = (rank == 0 ? 0 : sum[i]) + (uint8_t)in[i];
    }
    for (int i = 0; i < COUNT; i++)
        result[i] = (int8_t)((int8_t)(uint8_t)sum[i] / RANKS);
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 0);
}

TEST(test_min_and_max)
{
    struct perf_oracle o = oracle(TRIB_REDUCE, TRIB_F32, TRIB_MIN);
    struct perf_verdict verdict;
    static float in[COUNT], low[COUNT];

    perf_oracle_fill(&o, 0, 0, COUNT, low);
    for (int rank = 1; rank < RANKS; rank++) {
        perf_oracle_fill(&o, rank, 0, COUNT, in);
        for (int i = 0; i < COUNT; i++)
            low[i] = fminf(low[i], in[i]);
    }
    perf_oracle_compare(&o, low, &verdict);
    assert_int_equal(verdict.wrong, 0);
    o.op = TRIB_MAX;
    perf_oracle_compare(&o, low, &verdict);
    assert_true(verdict.wrong > COUNT / 2);
}

/* Blocks by rank: swapping two of them is seen. */
TEST(test_allgather_order)
{
    struct perf_oracle o = oracle(TRIB_ALLGATHER, TRIB_F32, TRIB_SUM);
    struct perf_verdict verdict;
    static float result[COUNT * RANKS];

    assert_int_equal(perf_oracle_outputs(&o), COUNT * RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        perf_oracle_fill(&o, rank, 0, COUNT, result + rank * COUNT);
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 0);
    perf_oracle_fill(&o, 2, 0, COUNT, result);
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, COUNT);
}

TEST(test_reduce_scatter_block)
{
    struct perf_oracle o = oracle(TRIB_REDUCE_SCATTER, TRIB_F32, TRIB_SUM);
    struct perf_verdict verdict;
    static float in[COUNT * RANKS], result[COUNT];

    assert_int_equal(perf_oracle_inputs(&o), COUNT * RANKS);
    memset(result, 0, sizeof(result));
    for (int rank = 0; rank < RANKS; rank++) {
        perf_oracle_fill(&o, rank, 0, COUNT * RANKS, in);
        for (int i = 0; i < COUNT; i++)
            result[i] += in[COUNT + i]; /* block of rank 1 */
    }
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, 0);
    o.rank = 0;
    perf_oracle_compare(&o, result, &verdict);
    assert_int_equal(verdict.wrong, COUNT);
}

TEST(test_nothing)
{
    struct perf_oracle o = oracle(TRIB_REDUCE, TRIB_F32, TRIB_SUM);
    struct perf_verdict verdict;

    o.root = 0;
    assert_int_equal(perf_oracle_outputs(&o), 0); /* rank 1 is not the root */
    o.root = 1;
    o.count = 0;
    perf_oracle_compare(&o, NULL, &verdict);
    assert_int_equal(verdict.wrong, 0);
}
