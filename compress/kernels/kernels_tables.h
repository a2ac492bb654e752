/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of kernels, one per file; kernels.c chooses among them.
 */
#ifndef COMPRESS_KERNELS_KERNELS_TABLES_H
#define COMPRESS_KERNELS_KERNELS_TABLES_H

#include "compress/kernels/kernels.h"

extern const struct trib_kernels trib_kernels_c;
extern const struct trib_kernels trib_kernels_avx2;
extern const struct trib_kernels trib_kernels_avx512;
extern const struct trib_kernels trib_kernels_neon;

#endif
