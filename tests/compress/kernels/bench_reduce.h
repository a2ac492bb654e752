/* SPDX-License-Identifier: BSD-3-Clause */
/* What reductions cost on each instruction set: check_kernels --bench. */
#ifndef TESTS_COMPRESS_KERNELS_BENCH_REDUCE_H
#define TESTS_COMPRESS_KERNELS_BENCH_REDUCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "compress/kernels/kernels.h"

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench_case {
    const char *name;
    trib_dtype_t dtype;
    int n_src, n_dst;
    bool stream;
};

static const struct bench_case bench_cases[] = {
    {"sum f32 2 -> 1", TRIB_F32, 2, 1, false},
    {"sum f32 2 -> 1 stream", TRIB_F32, 2, 1, true},
    {"sum f32 2 -> 2", TRIB_F32, 2, 2, false},
    {"sum f32 2 -> 2 stream", TRIB_F32, 2, 2, true},
    {"sum f32 4 -> 4", TRIB_F32, 4, 4, false},
    {"sum f32 4 -> 4 stream", TRIB_F32, 4, 4, true},
    {"sum f32 8 -> 1", TRIB_F32, 8, 1, false},
    {"sum f64 2 -> 1", TRIB_F64, 2, 1, false},
    {"sum f16 2 -> 1", TRIB_F16, 2, 1, false},
    {"sum bf16 2 -> 1", TRIB_BF16, 2, 1, false},
    {"sum i8 2 -> 1", TRIB_I8, 2, 1, false},
};

static inline char *bench_memory(size_t bytes)
{
    char *p = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) >> 21 << 21);
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

/* best of several times of about a millisecond each: GB/s of all bytes moved */
static inline double bench_reduce(trib_reduce_fn fn, const struct bench_case *b,
                                  size_t bytes, char *memory)
{
    const size_t n = bytes / trib_dtype_size(b->dtype);
    struct trib_reduce_args r = {
        .n_src = b->n_src, .n_dst = b->n_dst, .n = n, .stream = b->stream};
    for (int k = 0; k < b->n_src; k++)
        r.src[k] = memory + (size_t)k * (bytes + 4096);
    for (int j = 0; j < b->n_dst; j++)
        r.dst[j] = memory + (size_t)(b->n_src + j) * (bytes + 4096);
    const double moved = (double)bytes * (b->n_src + b->n_dst);
    const int calls = (int)(2e7 / moved) + 1;
    double best = 1e9;
    for (int trial = 0; trial < 9; trial++) {
        const double start = now_s();
        for (int i = 0; i < calls; i++)
            fn(&r);
        const double t = (now_s() - start) / calls;
        best = t < best ? t : best;
    }
    return bytes <= 4096 ? best * 1e9 : moved / best * 1e-9;
}

static inline void bench(void)
{
    static const size_t sizes[] = {8, 64, 256, 4096, 65536, 4 << 20, 32 << 20};
    static const char *const isas[] = {"c", "avx2", "avx512", "neon"};
    char *memory = bench_memory(((size_t)32 << 20) * 10 + (1 << 20));
    printf("ns up to 4 KiB, then GB/s read and written\n%-24s %-7s", "kernel", "isa");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        printf(" %8zu", sizes[s]);
    printf("\n");
    for (size_t i = 0; i < sizeof bench_cases / sizeof *bench_cases; i++) {
        for (int a = 0; a < 4; a++) {
            const struct trib_kernels *k = trib_kernels_get(isas[a]);
            if (!k)
                continue;
            printf("%-24s %-7s", bench_cases[i].name, isas[a]);
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                printf(" %8.1f", bench_reduce(k->reduce[bench_cases[i].dtype][TRIB_SUM],
                                              &bench_cases[i], sizes[s], memory));
            printf("\n");
        }
    }
    free(memory);
}

#endif
