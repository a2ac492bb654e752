/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/smooth.h"

#include <math.h>

static double wave(uint64_t i, uint64_t period, double phase)
{
    const double turn = (double)(i % period) / (double)period;
    return sin(6.283185307179586 * turn + phase);
}

double perf_smooth(int rank, uint64_t i, double noise)
{
    const double phase = 0.2 * rank;
    return wave(i, 997, phase) + 0.7 * wave(i, 5003, phase) +
           0.5 * wave(i, 40009, phase) + 0.001 * noise;
}
