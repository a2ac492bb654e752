/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of all ranks, run in one process.
 *
 * trib_sim_prove looks at the order that deps, lanes and messages impose, without a
 * run: it holds for every interleaving and every number of slots.
 *   - all steps have one order (no dead-lock with enough slots)
 *   - every send is received, by the right kind of step, for the same chunk
 *   - of two steps of a rank on one chunk, one of which writes, the first in the list
 *     always comes first
 *   - a STABLE send is read before any later write of its chunk
 *   - barrier: every rank's first step comes before every rank's last
 *
 * trib_sim_run runs several rounds with a few slots a lane, in a random order of steps:
 * no dead-lock, exact results, results sent as FINAL are finished, STABLE chunks have
 * not changed when read. Steps never disable one another, so that a run that ends
 * with some number of slots shows that all orders end.
 *
 * Values are 64-bit integers that wrap; SCALE multiplies by an odd constant in place of
 * the division. With `real` they are doubles, whose sum depends on its order.
 */
#ifndef HARNESS_SIMSCHEDULE_H
#define HARNESS_SIMSCHEDULE_H

#include "collectives/collectives.h"

struct trib_sim {
    struct trib_shape shape; /* of rank 0 */
    struct trib_schedule *lists; /* one a rank */
    /* How to run. */
    size_t count; /* elements; of one block where blocks are of ranks */
    bool uneven; /* each block has another number of elements, at most count */
    uint32_t rounds; /* >= 1 */
    uint32_t slots; /* of a lane, >= 1 */
    uint32_t window; /* rounds that a rank has under way, >= 1 */
    bool whole_runs; /* a run of RECV_REDUCE waits until all its messages are here */
    bool in_place;
    bool real;
    bool rank_order; /* real: the result has the bits of a sum in the order of ranks */
    uint64_t seed;
    /* Results. */
    uint64_t *sent_up; /* elements a rank */
    uint64_t *sent_down;
    char why[240]; /* why the last call failed */
};

/** trib_sim_size - ranks, and aggregators behind them. */
int trib_sim_size(const struct trib_sim *sim);

/** trib_sim_build - make the lists of all ranks and check each. */
bool trib_sim_build(struct trib_sim *sim, const struct trib_algo *algo,
                    const struct trib_shape *shape);
void trib_sim_free(struct trib_sim *sim);

/** trib_sim_prove - is the order of steps right, whatever the interleaving? */
bool trib_sim_prove(struct trib_sim *sim);

/** trib_sim_run - do the lists give the right result, in the order that seed draws? */
bool trib_sim_run(struct trib_sim *sim);

/** trib_sim_chunk - elements of chunk c in all rounds. */
uint64_t trib_sim_chunk(const struct trib_sim *sim, uint32_t c);

#endif
