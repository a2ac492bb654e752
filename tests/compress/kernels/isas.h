/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of a kernel in each instruction set of this CPU against the C reference:
 * memory that ends at a page without access, and floats of all kinds.
 */
#ifndef TESTS_COMPRESS_KERNELS_ISAS_H
#define TESTS_COMPRESS_KERNELS_ISAS_H

#include "tests/harness/tribtest.h"

#include <math.h>
#include <sys/mman.h>

#include "compress/kernels/kernels.h"
#include "tests/harness/rng_draw.h"

/* The tables of this CPU, the reference first; returns how many. */
static inline int isas_of_cpu(const struct trib_kernels *isas_out[4])
{
    static const char *const names[] = {"c", "avx2", "avx512", "neon"};
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (trib_kernels_get(names[i]))
            isas_out[n++] = trib_kernels_get(names[i]);
    return n;
}

/* n bytes that end at an inaccessible page */
struct guarded {
    void *p;
    void *pages;
    size_t bytes;
};

static inline struct guarded guarded_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + page - 1) / page * page;
    struct guarded g = {.bytes = whole + page};
    g.pages =
        mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.pages != MAP_FAILED);
    assert_int_equal(mprotect((char *)g.pages + whole, page, PROT_NONE), 0);
    g.p = (char *)g.pages + whole - bytes;
    return g;
}

static inline void guarded_free(struct guarded *g)
{
    munmap(g->pages, g->bytes);
}

/* Mostly in [-1, 1), some of any size, zeros, denormals; special: NaN and Inf, too. */
static inline float odd_float(uint64_t seed, uint64_t i, bool special)
{
    static const float odd[] = {0.0f, -0.0f,    0x1p-149f, -0x1p-130f,      1.0f,
                                NAN,  INFINITY, -INFINITY, 0x1.fffffep127f};
    const struct trib_rng rng = {.seed = seed, .stream = 11};
    const uint32_t u = draw_u32(rng, 2 * i), kind = draw_u32(rng, 2 * i + 1);
    if (kind % 16 == 0)
        return odd[u % (special ? 9 : 5)];
    const float v = (float)(int32_t)u * 0x1p-31f;
    return kind % 16 == 1 ? ldexpf(v, (int)(kind >> 8) % 60 - 40) : v;
}

/* Return the index of the first float whose bits differ, or n if none does. All NaNs
 * are equal. */
static inline size_t first_difference(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return i;
    return n;
}

#endif
