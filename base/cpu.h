/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instruction sets of this CPU, and which of them may be used.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#define TRIB_CACHE_LINE 64

/* Those of this architecture, rising: each level contains those before it. Names: "c",
 * "avx2", "avx512", "neon". */
enum trib_cpu_level {
    TRIB_CPU_C,
#if defined(__aarch64__)
    TRIB_CPU_NEON,
#else
    TRIB_CPU_AVX2,   /* includes FMA, F16C, BMI1, BMI2, POPCNT */
    TRIB_CPU_AVX512, /* includes F, BW, VL, DQ, CD */
#endif
    TRIB_CPU_LEVELS,
};

/** trib_cpu_best - the highest level that this CPU and its operating system offer. */
enum trib_cpu_level trib_cpu_best(void);

/**
 * trib_cpu_level_parse - a level from its name; NULL and "auto" are trib_cpu_best.
 *
 * returns  false if the name is unknown or this CPU lacks the level
 */
bool trib_cpu_level_parse(const char *name, enum trib_cpu_level *level_out);

/** trib_cpu_features - the vector features found, such as "avx2 fma f16c" or "neon",
 * for trib-info. */
size_t trib_cpu_features(char *text, size_t bytes);

#endif
