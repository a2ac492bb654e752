/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A smooth field, as in simulations: three waves and a little noise.
 */
#ifndef PERF_COMMON_SMOOTH_H
#define PERF_COMMON_SMOOTH_H

#include <stdint.h>

/**
 * perf_smooth - return element i of a rank's field.
 *
 * sin(2π i/997 + r) + 0.7 sin(2π i/5003 + r) + 0.5 sin(2π i/40009 + r) + 0.001 noise,
 * with r = 0.2 times the rank.
 * noise  a roughly normal number
 */
double perf_smooth(int rank, uint64_t i, double noise);

#endif
