/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs in any order, with repeated indices.
 */
#include "tests/harness/tribtest.h"

#include "comm/kinds/sorted_pairs.h"
#include "compress/kernels/kernels.h"
#include "tests/comm/oracle.h"

enum { MOST = 3000 };

static struct trib_pairs_input make(struct trib_sorted_pairs *s, trib_dtype_t dtype,
                                    const uint64_t *indices, const void *values,
                                    size_t n)
{
    const struct trib_pairs_input given = {indices, values, n};
    struct trib_pairs_input out;

    assert_ok(trib_sorted_pairs_make(s, dtype, trib_kernels_get(NULL), &given, &out));
    assert_true(trib_sorted_pairs_is(out.indices, out.n));
    return out;
}

TEST(test_sorted_stay)
{
    const uint64_t indices[] = {1, 2, UINT64_C(1) << 40};
    const float values[] = {1, 2, 3};
    struct trib_sorted_pairs s = {.room = 0};
    const struct trib_pairs_input out = make(&s, TRIB_F32, indices, values, 3);

    assert_ptr_equal(out.indices, indices);
    assert_ptr_equal(out.values, values);
    assert_int_equal(out.n, 3);
    assert_int_equal(make(&s, TRIB_F32, NULL, NULL, 0).n, 0);
    assert_int_equal(s.room, 0);
}

/* Compare each type with a search through all inputs. */
static void check(const struct oracle *o, const uint64_t *indices, size_t n,
                  const struct trib_pairs_input *out)
{
    for (size_t i = 0; i < out->n; i++) {
        struct oracle_answer want = {.tolerance = 0};
        for (size_t j = 0; j < n; j++)
            if (indices[j] == out->indices[i]) {
                const union perf_number v = oracle_input(o, 0, j);
                want.value = oracle_sum(o->dtype, want.value, v);
            }
        want.value = oracle_rounded(o->dtype, want.value);
        assert_true(
            oracle_equal(o->dtype, &want, perf_number_load(o->dtype, out->values, i)));
    }
}

TEST(test_any_order)
{
    static const uint64_t lengths[] = {1, 10, 1000, 70000, UINT64_C(1) << 33};
    static uint64_t indices[MOST];
    static uint8_t values[MOST * 8];

    for (int k = 0; k < TRIB_DTYPE_COUNT * 5; k++) {
        const struct oracle o = {.kind = ORACLE_EXACT,
                                 .seed = (uint64_t)k,
                                 .dtype = (trib_dtype_t)(k / 5),
                                 .size = 1};
        const size_t n = k % 2 ? 300 : 17 + (size_t)k;
        if (o.dtype == TRIB_BOOL)
            continue;
        struct trib_sorted_pairs s = {.room = 0};
        for (size_t i = 0; i < n; i++)
            indices[i] = oracle_mix((uint64_t)k << 32 | i) % lengths[k % 5];
        oracle_fill(&o, 0, 0, n, values);
        const struct trib_pairs_input out = make(&s, o.dtype, indices, values, n);
        size_t kinds = 0;
        for (size_t i = 0; i < n; i++) {
            bool first = true;
            for (size_t j = 0; j < i; j++)
                first &= indices[j] != indices[i];
            kinds += first;
        }
        assert_int_equal(out.n, kinds);
        check(&o, indices, n, &out);
        trib_sorted_pairs_free(&s);
    }
}

/* The values of an index are added in the order of the input. */
TEST(test_order_of_sums)
{
    const uint64_t indices[] = {5, 1, 5, 1, 5};
    const float values[] = {1e20f, 2, -1e20f, 3, 1};
    const double doubles[] = {1e200, 2, -1e200, 3, 1};
    struct trib_sorted_pairs s = {.room = 0};
    struct trib_pairs_input out = make(&s, TRIB_F32, indices, values, 5);

    assert_int_equal(out.n, 2);
    assert_int_equal(out.indices[1], 5);
    assert_true(((const float *)(const void *)out.values)[0] == 5);
    assert_true(((const float *)(const void *)out.values)[1] == 1);
    trib_sorted_pairs_free(&s);
    out = make(&s, TRIB_F64, indices, doubles, 5);
    assert_true(((const double *)(const void *)out.values)[1] == 1);
    trib_sorted_pairs_free(&s);
}

/* Memory of a short start is sufficient for shorter ones, and grows for longer ones. */
TEST(test_memory_grows)
{
    static uint64_t indices[MOST];
    static int64_t values[MOST];
    struct trib_sorted_pairs s = {.room = 0};

    for (size_t n = 2; n <= MOST; n = n % 3 ? n * 2 : n + 5) {
        for (size_t i = 0; i < n; i++)
            indices[i] = n - i, values[i] = (int64_t)(n - i) * 3;
        const struct trib_pairs_input out = make(&s, TRIB_I64, indices, values, n);
        assert_int_equal(out.n, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(out.indices[i], i + 1);
            assert_int_equal(((const int64_t *)(const void *)out.values)[i],
                             3 * (i + 1));
        }
    }
    trib_sorted_pairs_free(&s);
}
