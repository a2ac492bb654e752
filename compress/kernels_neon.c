/* SPDX-License-Identifier: BSD-3-Clause */
/* AArch64 has NEON always, so no flags of its own: see kernels_vec.h. */
#include "compress/vec128.h"
#include "compress/vec128_linear.h"

#include "compress/kernels_vec.h"
