/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of error-bounded codecs: part of check_kernels.c. */
#ifndef TESTS_COMPRESS_KERNELS_CHECK_BOUNDED_H
#define TESTS_COMPRESS_KERNELS_CHECK_BOUNDED_H

#include "compress/quantise/bounded.h"
#include "tests/compress/guarded.h"

/* Differences of each width, and integers of whole and broken lengths. */
static void check_bounded_pack(const struct trib_kernels *isa)
{
    enum { BLOCKS = 5, N = BLOCKS * TRIB_BOUNDED_BLOCK };
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (uint32_t round = 0; round < 33 * 33; round++) {
        int32_t *d = (int32_t *)place(0, 4 * N, 4 * random_below(9));
        int32_t *a = (int32_t *)place(1, 4 * N, 0), *b = (int32_t *)place(2, 4 * N, 0);
        unsigned char *heads = place(3, BLOCKS, 0), *again = place(4, BLOCKS, 0);
        unsigned char *p = place(5, 4 * N, 0), *q = place(6, 4 * N, 0);
        const uint32_t base = random_u32() >> (round % 33 < 32 ? round % 33 : 31);
        uint32_t before = random_u32();
        for (size_t i = 0; i < N; i++)
            d[i] = (int32_t)(base + (round / 33 ? random_u32() >> (32 - round / 33)
                                                : 0));
        const size_t len = ref->bounded_pack(p, heads, d, BLOCKS);
        assert_int_equal(isa->bounded_pack(q, again, d, BLOCKS), len);
        assert_memory_equal(p, q, len);
        assert_memory_equal(heads, again, BLOCKS);
        p = place(7, len, random_below(9));
        memcpy(p, q, len);
        ref->bounded_unpack(a, heads, p, BLOCKS, before);
        isa->bounded_unpack(b, heads, p, BLOCKS, before);
        assert_memory_equal(a, b, 4 * N);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(a[i], (int32_t)(before += (uint32_t)d[i]));
    }
}

CHECK(bounded)
{
    const struct trib_kernels *ref = trib_kernels_get("c");
    for (size_t n = 1; n < 300; n++) {
        const double step = 0.3 / (double)n;
        const struct trib_bounded_grid g = {step, 1 / step, n % 2 ? 3e8f : 1e-3f};
        float *x = (float *)place(0, 4 * n, 4 * random_below(9));
        int32_t *a = (int32_t *)place(1, 4 * n, 0), *b = (int32_t *)place(2, 4 * n, 0);
        int32_t *d = (int32_t *)place(3, 4 * n, 0), *e = (int32_t *)place(4, 4 * n, 0);
        float *y = (float *)place(5, 4 * n, 0), *z = (float *)place(6, 4 * n, 0);
        fill(TRIB_F32, (unsigned char *)x, n);
        assert_int_equal(ref->bounded_quantise(a, x, n, &g),
                         isa->bounded_quantise(b, x, n, &g));
        for (size_t i = 0; i < n; i++)
            x[i] = isfinite(x[i]) ? fmodf(x[i], n % 2 ? 1e8f : 1e-3f) : 0;
        assert_true(ref->bounded_quantise(a, x, n, &g));
        assert_true(isa->bounded_quantise(b, x, n, &g));
        assert_memory_equal(a, b, 4 * n);
        assert_int_equal(ref->bounded_differences(d, a, n),
                         isa->bounded_differences(e, a, n));
        assert_memory_equal(d, e, 4 * n);
        ref->bounded_values(y, a, n, step), isa->bounded_values(z, a, n, step);
        assert_same_floats(y, z, n);
        ref->bounded_values_add(y, a, n, step, 0.7f);
        isa->bounded_values_add(z, a, n, step, 0.7f);
        assert_same_floats(y, z, n);
        d[n / 2] = (int32_t)random_u32();
        assert_int_equal(ref->bounded_sum(a, d, n), isa->bounded_sum(b, d, n));
        assert_memory_equal(a, b, 4 * n);
    }
    check_bounded_pack(isa);
}

#endif
