/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instruction sets of this CPU, and which of them may be used.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#define TRIB_CACHE_LINE 64

/* Levels of this architecture, ascending: each includes the previous ones. Names: "c",
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

/** trib_cpu_best - return the highest level that the CPU and the operating system
 * support. */
enum trib_cpu_level trib_cpu_best(void);

/**
 * trib_cpu_level_parse - parse the name of a level; NULL and "auto" mean trib_cpu_best.
 *
 * returns  false if the name is unknown or the CPU lacks the level
 */
bool trib_cpu_level_parse(const char *name, enum trib_cpu_level *level_out);

/** trib_cpu_features - format the detected vector features, such as "avx2 fma f16c" or
 * "neon", for trib-info. */
size_t trib_cpu_features(char *text, size_t bytes);

#endif
