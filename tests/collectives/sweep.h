/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One algorithm under every number of ranks, root, size and slot count that a test can
 * afford.
 */
#ifndef COLLECTIVES_SWEEP_H
#define COLLECTIVES_SWEEP_H

#include "tests/harness/simschedule.h"

/* Elements that a rank must send, according to docs/algorithms.md. */
typedef void (*sweep_formula)(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                              uint64_t *down);

struct sweep {
    const char *algo;
    trib_coll_t coll;
    bool rank_order; /* sums have the bits of a sum in the order of ranks */
    sweep_formula formula;
};

/* Add aggregators after the ranks of a shape; `variant` selects the arrangement. */
typedef void (*sweep_serve)(struct trib_shape *shape, int variant);

/**
 * sweep_main - a test program with a test for each of n sweeps, named after its
 * collective. The first wrong case fails the test with an error message.
 */
int sweep_main(const struct sweep *sweeps, size_t n);

/** sweep_offloaded - one sweep, with aggregators. */
void sweep_offloaded(const struct sweep *sweep, sweep_serve serve, int variant);

/** sweep_all - elements of all chunks. */
uint64_t sweep_all(const struct trib_sim *sim);

#endif
