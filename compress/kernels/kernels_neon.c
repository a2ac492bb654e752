/* SPDX-License-Identifier: BSD-3-Clause */
/* AArch64 always has NEON, so no special flags: see kernels_vec.h. */
#include "compress/kernels/vec128.h"
#include "compress/kernels/vec128_linear.h"

#include "compress/kernels/kernels_vec.h"
