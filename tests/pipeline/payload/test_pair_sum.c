/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of pairs of each type against a plain sum.
 */
#include "tests/harness/tribtest.h"

#include "compress/kernels/kernels.h"
#include "pipeline/payload/pair_sum.h"
#include "tests/comm/oracle.h"

enum { MOST = 1000, RANKS = 5 };

/* True if a rank has a value at this position. */
static bool gives(uint64_t seed, int rank, size_t i)
{
    return oracle_mix(seed + (uint64_t)rank * MOST + i) % 4 < (seed % 2 ? 1 : 3);
}

static struct trib_pairs pairs_of(const struct oracle *o, int rank, size_t n,
                                  uint32_t *at, uint8_t *values)
{
    struct trib_pairs p = {0, at, values};

    for (size_t i = 0; i < n; i++)
        if (gives(o->seed, rank, i)) {
            at[p.n] = (uint32_t)i;
            perf_number_store(o->dtype, values, p.n++, oracle_input(o, rank, i));
        }
    return p;
}

static void check(const struct oracle *o, size_t n, const struct trib_pairs *p)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        struct oracle_answer want = {.tolerance = 0};
        bool there = false;
        for (int r = 0; r < o->size; r++)
            if (gives(o->seed, r, i)) {
                const union perf_number v = oracle_input(o, r, i);
                there = true;
                want.value = oracle_sum(o->dtype, want.value, v);
            }
        if (!there)
            continue;
        assert_int_equal(p->at[found], i);
        want.value = oracle_rounded(o->dtype, want.value);
        assert_true(oracle_equal(o->dtype, &want,
                                 perf_number_load(o->dtype, p->values, found)));
        found++;
    }
    assert_int_equal(p->n, found);
}

static void sum_of(const struct oracle *o, size_t n)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    struct trib_pair_sum s;
    uint32_t at[MOST];
    uint8_t values[MOST * 8];

    assert_status(trib_pair_sum_open(&s, k, o->dtype, n), TRIB_OK);
    for (int round = 0; round < 2; round++) { /* nothing is left of the first */
        for (int r = 0; r < o->size; r++) {
            const struct trib_pairs p = pairs_of(o, r, n, at, values);
            trib_pair_sum_add(&s, &p);
        }
        const struct trib_pairs sum = trib_pair_sum_take(&s, n, 0);
        check(o, n, &sum);
    }
    trib_pair_sum_close(&s);
}

TEST(test_types)
{
    static const size_t sizes[] = {1, 63, 64, 65, 129, MOST};

    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++)
        for (uint64_t k = 0; k < 6; k++) {
            const struct oracle o = {.kind = ORACLE_EXACT,
                                     .seed = k + 1,
                                     .dtype = (trib_dtype_t)dtype,
                                     .size = RANKS};
            if (dtype != TRIB_BOOL)
                sum_of(&o, sizes[k]);
        }
}

TEST(test_mean)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const int32_t integers[] = {-7, 9};
    const float floats[] = {3, 0.5f};
    const uint32_t at[] = {0, 5};
    struct trib_pair_sum s;

    assert_status(trib_pair_sum_open(&s, k, TRIB_I32, 6), TRIB_OK);
    trib_pair_sum_add(&s, &(struct trib_pairs){2, at, (const uint8_t *)integers});
    struct trib_pairs p = trib_pair_sum_take(&s, 6, 4);
    assert_int_equal(p.n, 2);
    assert_int_equal(((const int32_t *)(const void *)p.values)[0], -1);
    assert_int_equal(((const int32_t *)(const void *)p.values)[1], 2);
    trib_pair_sum_close(&s);
    assert_status(trib_pair_sum_open(&s, k, TRIB_F32, 6), TRIB_OK);
    trib_pair_sum_add(&s, &(struct trib_pairs){2, at, (const uint8_t *)floats});
    p = trib_pair_sum_take(&s, 6, 4);
    assert_true(((const float *)(const void *)p.values)[0] == 0.75f);
    assert_int_equal(trib_pair_sum_take(&s, 6, 4).n, 0);
    trib_pair_sum_close(&s);
}

/* f16 and bf16 are added in float32 and rounded once. */
TEST(test_halves_round_once)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const float parts[] = {256, 0.5f, 0.5f, 1};
    const uint32_t at = 0;
    struct trib_pair_sum s;
    uint8_t half[2];
    float sum;

    assert_status(trib_pair_sum_open(&s, k, TRIB_BF16, 1), TRIB_OK);
    for (int i = 0; i < 4; i++) {
        k->from_f32[TRIB_BF16](half, &parts[i], 1);
        trib_pair_sum_add(&s, &(struct trib_pairs){1, &at, half});
    }
    const struct trib_pairs p = trib_pair_sum_take(&s, 1, 0);
    k->to_f32[TRIB_BF16](&sum, p.values, 1);
    assert_true(sum == 258); /* one by one, each of the others would be lost */
    trib_pair_sum_close(&s);
}
