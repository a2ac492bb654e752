/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with its own flags (compress/kernels/local.mk): see kernels_vec.h. */
#include "compress/kernels/vec512.h"
#include "compress/kernels/vec512_linear.h"

#include "compress/kernels/kernels_vec.h"
