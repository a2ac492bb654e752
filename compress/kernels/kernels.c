/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose the table of kernels for this CPU.
 */
#include "compress/kernels/kernels.h"

#include "base/cpu.h"
#include "compress/kernels/kernels_tables.h"

static const struct trib_kernels *const tables[TRIB_CPU_LEVELS] = {
    [TRIB_CPU_C] = &trib_kernels_c,
#if defined(__x86_64__)
    [TRIB_CPU_AVX2] = &trib_kernels_avx2,
    [TRIB_CPU_AVX512] = &trib_kernels_avx512,
#elif defined(__aarch64__)
    [TRIB_CPU_NEON] = &trib_kernels_neon,
#endif
};

const struct trib_kernels *trib_kernels_get(const char *isa)
{
    enum trib_cpu_level level;
    return trib_cpu_level_parse(isa, &level) ? tables[level] : NULL;
}
