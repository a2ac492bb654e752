/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with flags of its own (compress/local.mk): see kernels_vec.h. */
#include "compress/kernels/vec256.h"
#include "compress/kernels/vec256_linear.h"

#include "compress/kernels/kernels_vec.h"
