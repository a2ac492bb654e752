/* SPDX-License-Identifier: BSD-3-Clause */
/* AArch64 has NEON always, so no flags of its own: see kernels_vec.h. */
#include "compress/kernels/vec128.h"
#include "compress/kernels/vec128_linear.h"

#include "compress/kernels/kernels_vec.h"
