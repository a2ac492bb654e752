/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cache_counts.h"

struct trib_cache_counts trib_cache_counts;
