/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cpu.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__aarch64__)
static const char *const level_names[] = {"c", "neon"};
#else
static const char *const level_names[] = {"c", "avx2", "avx512"};
#endif

struct feature {
    const char *name;
    bool found;
    enum trib_cpu_level level; /* level that requires the feature */
};

#if defined(__x86_64__)
/* The only feature that clang's __builtin_cpu_supports does not know. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

/* __builtin_cpu_supports also checks that the OS saves the registers. */
#define FEATURE(name, level) {name, __builtin_cpu_supports(name) != 0, level}
#define FEATURES \
    {FEATURE("avx2", TRIB_CPU_AVX2), FEATURE("fma", TRIB_CPU_AVX2), \
     {"f16c", has_f16c(), TRIB_CPU_AVX2}, FEATURE("bmi", TRIB_CPU_AVX2), \
     FEATURE("bmi2", TRIB_CPU_AVX2), FEATURE("popcnt", TRIB_CPU_AVX2), \
     FEATURE("avx512f", TRIB_CPU_AVX512), FEATURE("avx512bw", TRIB_CPU_AVX512), \
     FEATURE("avx512vl", TRIB_CPU_AVX512), FEATURE("avx512dq", TRIB_CPU_AVX512), \
     FEATURE("avx512cd", TRIB_CPU_AVX512)}
#elif defined(__aarch64__)
#define FEATURES {{"neon", true, TRIB_CPU_NEON}} /* every ARM64 CPU has NEON */
#else
#define FEATURES {{"", false, TRIB_CPU_AVX2}}
#endif

enum trib_cpu_level trib_cpu_best(void)
{
    const struct feature features[] = FEATURES;
    enum trib_cpu_level best = TRIB_CPU_LEVELS - 1;

    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        if (!features[i].found && features[i].level <= best)
            best = features[i].level - 1;
    }
    return best;
}

bool trib_cpu_level_parse(const char *name, enum trib_cpu_level *level_out)
{
    /* C needs no CPUID, which is slow in a virtual machine. */
    if (name && !strcmp(name, level_names[TRIB_CPU_C])) {
        *level_out = TRIB_CPU_C;
        return true;
    }
    enum trib_cpu_level best = trib_cpu_best();
    if (!name || trib_text_is_auto(name)) {
        *level_out = best;
        return true;
    }
    for (int level = TRIB_CPU_C + 1; level <= (int)best; level++) {
        if (!strcmp(name, level_names[level])) {
            *level_out = (enum trib_cpu_level)level;
            return true;
        }
    }
    return false;
}

size_t trib_cpu_features(char *text, size_t bytes)
{
    const struct feature features[] = FEATURES;
    size_t len = 0;

    if (bytes)
        text[0] = '\0';
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        size_t room = len < bytes ? bytes - len : 0;
        if (features[i].found)
            len += (size_t)snprintf(text + (room ? len : 0), room, "%s%s",
                                    len ? " " : "", features[i].name);
    }
    return len;
}
