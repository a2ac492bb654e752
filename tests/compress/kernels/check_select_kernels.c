/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the vector kernels of selections with the C reference, as check_kernels.c
 * does for the others: lengths 0-299, any alignment, NaN, Inf, denormals and all
 * densities. An inaccessible page follows every input. Only the payload of a NaN may
 * differ.
 */
#include "tests/harness/tribtest.h"

#include <math.h>
#include <sys/mman.h>

#include "compress/kernels/kernels.h"
#include "compress/sparsify/stratified.h"
#include "tests/harness/rng_draw.h"

enum { N_MAX = 300, ROOM = N_MAX + 64, AREA = 8192 };

static const struct trib_rng rng = {.seed = 41};
static uint64_t drawn;

static uint32_t below(uint32_t n)
{
    return draw_u32(rng, drawn++) % n;
}

/* AREA bytes whose last is followed by a page without access. */
static char *guarded_new(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (AREA + page - 1) / page * page;
    char *p = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + whole, page, PROT_NONE), 0);
    return p + whole;
}

/* n floats that end `before` floats in front of the guard page. */
static float *place(char *end, size_t n, size_t before)
{
    return (float *)(void *)end - n - before;
}

static float any_float(void)
{
    static const float special[] = {0.0f, -0.0f,     INFINITY,  -INFINITY,
                                    NAN,  0x1p-149f, -0x1p-130f, 0x1.fffffep127f};
    return below(6) ? (float)(int32_t)draw_u32(rng, drawn++) * 0x1p-31f
                    : special[below(8)];
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = any_float();
}

static bool same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static char *areas[4];

static void check_zeros(const float *x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        assert_true(x[i] == 0.0f && !signbit(x[i]));
}

/* x itself is cleared after it was read. */
static void check_in_place(const struct trib_kernels *isa, const float *before,
                           const float *x, size_t n, uint32_t threshold)
{
    float a[N_MAX], b[N_MAX], copy[N_MAX];
    uint32_t p[ROOM], q[ROOM];

    memcpy(a, before, n * sizeof *a), memcpy(b, before, n * sizeof *b);
    memcpy(copy, x, n * sizeof *x);
    const size_t m = isa->add_select(a, x, NULL, n, threshold, p);
    assert_int_equal(isa->add_select(b, copy, copy, n, threshold, q), m);
    assert_memory_equal(p, q, m * sizeof *p);
    assert_true(same(a, b, n));
    check_zeros(copy, n);
}

static void check_at_least(const struct trib_kernels *c, const struct trib_kernels *isa)
{
    static const uint32_t thresholds[] = {0,          1,          0x3f000000,
                                          0x3f7f0000, 0x7f800000, 0x7f800001};
    uint32_t p[ROOM], q[ROOM];
    for (size_t n = 0; n < N_MAX; n++) {
        for (int t = 0; t < 6; t++) {
            float *x = place(areas[0], n, below(9));
            float *a = place(areas[1], n, 0), *b = place(areas[2], n, below(9));
            fill(x, n), fill(a, n);
            memcpy(b, a, n * sizeof *a);
            float *zeros = below(2) ? place(areas[3], n, below(9)) : NULL;
            if (zeros)
                fill(zeros, n);
            const size_t m = c->add_select(a, x, NULL, n, thresholds[t], p);
            assert_int_equal(isa->add_select(b, x, zeros, n, thresholds[t], q), m);
            assert_memory_equal(p, q, m * sizeof *p);
            assert_true(same(a, b, n));
            check_zeros(zeros, n);
            check_in_place(isa, b, x, n, thresholds[t]);
            /* and it is what select_at_least finds */
            assert_int_equal(c->select_at_least(a, n, thresholds[t], q), m);
            assert_memory_equal(p, q, m * sizeof *p);
        }
    }
}

static void check_blocks(const struct trib_kernels *c, const struct trib_kernels *isa)
{
    static const size_t sizes[] = {8, 16, 24, 64, 72, 256, 1024};
    uint32_t p[ROOM], q[ROOM];
    for (size_t n = 0; n < N_MAX; n++) {
        for (int b = 0; b < 7; b++) {
            float *x = place(areas[0], n, below(2) ? 0 : below(9));
            fill(x, n);
            for (size_t i = 0; i < n; i++) /* most blocks are zero, or nearly */
                x[i] = below(60) ? below(2) ? 0.0f : -0.0f : x[i];
            const size_t m = c->blocks_nonzero(x, n, sizes[b], p);
            assert_int_equal(isa->blocks_nonzero(x, n, sizes[b], q), m);
            assert_memory_equal(p, q, m * sizeof *p);
        }
    }
}

/* Short ones, as bins are. */
static void check_bins(const struct trib_kernels *c, const struct trib_kernels *isa)
{
    static const uint32_t thresholds[] = {1, 0x3f000000, 0x3f7f0000, 0x7f800000};
    uint32_t p[ROOM], q[ROOM];
    for (size_t n = 0; n < N_MAX; n++) {
        float *x = place(areas[0], n, below(9));
        float *a = place(areas[1], n, 0), *b = place(areas[2], n, below(9));
        fill(x, n), fill(a, n);
        memcpy(b, a, n * sizeof *a);
        const uint32_t most = c->add_max(a, x, n), other = isa->add_max(b, x, n);
        assert_true(most == other || (most > 0x7f800000 && other > 0x7f800000));
        assert_true(same(a, b, n));
        for (int t = 0; t < 4; t++) {
            const struct trib_ahead ahead = {any_float(), thresholds[t], below(1000)};
            const size_t m = c->select_ahead(a, x, n, &ahead, p);
            assert_int_equal(isa->select_ahead(a, x, n, &ahead, q), m);
            assert_memory_equal(p, q, m * sizeof *p);
        }
    }
}

/* Strata of all sizes, positions up to the last of 32 bits, from any of them on. */
static void check_stratified(const struct trib_kernels *c,
                             const struct trib_kernels *isa)
{
    static const uint32_t lengths[] = {1,         300, 65536, 1u << 30, (1u << 30) + 1,
                                       UINT32_MAX};
    static uint32_t expected[N_MAX];
    for (size_t m = 1; m < N_MAX; m++) {
        for (int l = 0; l < 6; l++) {
            const uint32_t least = (uint32_t)m < lengths[l] ? lengths[l] : (uint32_t)m;
            const uint32_t more = least - (uint32_t)m;
            const struct trib_stratified s = {
                .n = least,
                .k = m + (more < 1000 || below(3) == 0 ? more : below(1000)),
                .keys = {below(UINT32_MAX), below(UINT32_MAX)}};
            uint32_t *p = (uint32_t *)(void *)place(areas[0], m, below(9));
            const size_t first = below(2) ? 0 : s.k - m;
            c->stratified_positions(&s, first, m, expected);
            isa->stratified_positions(&s, first, m, p);
            assert_memory_equal(p, expected, m * sizeof *p);
        }
    }
}

static void test_isa(void (*check)(const struct trib_kernels *,
                                   const struct trib_kernels *))
{
    static const char *const isas[] = {"avx2", "avx512", "neon"};
    for (int i = 0; i < 3; i++)
        if (trib_kernels_get(isas[i]))
            check(trib_kernels_get("c"), trib_kernels_get(isas[i]));
}

TEST(test_at_least)
{
    test_isa(check_at_least);
}

TEST(test_bins)
{
    test_isa(check_bins);
}

TEST(test_stratified)
{
    test_isa(check_stratified);
}

TEST(test_blocks)
{
    test_isa(check_blocks);
}

static int areas_create(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        areas[i] = guarded_new();
    return 0;
}

TEST_GROUP(areas_create, NULL)

int main(void)
{
    if (!trib_kernels_get("avx2") && !trib_kernels_get("neon")) {
        printf("skipped: this CPU has no instruction set beyond the reference\n");
        return 77;
    }
    return tribtest_run();
}
