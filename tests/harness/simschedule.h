/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of all ranks, run in one process.
 *
 * trib_sim_prove checks the order imposed by deps, lanes and messages without
 * running steps, so the result holds for every interleaving and number of slots.
 *   - the steps have an order (no deadlock with enough slots)
 *   - every send is received, by the right kind of step, for the same chunk
 *   - if one of two steps of a rank on one chunk writes, the first in the list
 *     always runs first
 *   - a STABLE send is read before any later write of its chunk
 *   - barrier: every rank's first step comes before every rank's last
 *
 * trib_sim_run runs several rounds with few slots per lane, in a random order of steps:
 * no deadlock, exact results, results sent as FINAL are complete, STABLE chunks are
 * unchanged when read. Steps never disable each other, so if one run ends
 * with a number of slots, all orders end with it.
 *
 * Values are 64-bit integers that wrap; SCALE multiplies by an odd constant instead of
 * dividing. With `real` they are doubles, whose sum depends on the order.
 */
#ifndef HARNESS_SIMSCHEDULE_H
#define HARNESS_SIMSCHEDULE_H

#include "collectives/collectives.h"

struct trib_sim {
    struct trib_shape shape; /* of rank 0 */
    struct trib_schedule *lists; /* one per rank */
    /* Parameters of a run. */
    size_t count; /* elements; for collectives by rank, of one block */
    bool uneven; /* blocks have different numbers of elements, at most count */
    uint32_t rounds; /* >= 1 */
    uint32_t slots; /* per lane, >= 1 */
    uint32_t window; /* rounds in flight per rank, >= 1 */
    bool whole_runs; /* a run of RECV_REDUCE waits for all its messages */
    bool in_place;
    bool real;
    bool rank_order; /* real: the result has the bits of a sum in rank order */
    uint64_t seed;
    /* Results. */
    uint64_t *sent_up; /* elements per rank */
    uint64_t *sent_down;
    char why[240]; /* error message of the last call */
};

/** trib_sim_size - return the number of ranks and aggregators. */
int trib_sim_size(const struct trib_sim *sim);

/** trib_sim_build - build and check the lists of all ranks. */
bool trib_sim_build(struct trib_sim *sim, const struct trib_algo *algo,
                    const struct trib_shape *shape);
void trib_sim_free(struct trib_sim *sim);

/** trib_sim_prove - return whether every interleaving of steps is correct. */
bool trib_sim_prove(struct trib_sim *sim);

/** trib_sim_run - return whether a run in random order has the correct result. */
bool trib_sim_run(struct trib_sim *sim);

/** trib_sim_chunk - return the elements of chunk c in all rounds. */
uint64_t trib_sim_chunk(const struct trib_sim *sim, uint32_t c);

#endif
