/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the simulator: chunks of a vector, contributions, sums.
 */
#ifndef HARNESS_SIMVALUES_H
#define HARNESS_SIMVALUES_H

#include "tests/harness/simschedule.h"

#define SIM_ODD UINT64_C(0x9e3779b97f4a7c15) /* an odd, so invertible, factor */

/** trib_sim_mix - return pseudo-random bits for a number. */
uint64_t trib_sim_mix(uint64_t x);

/** trib_sim_by_rank - return whether chunk k of a round is part of rank k's block. */
bool trib_sim_by_rank(const struct trib_sim *sim);

/** trib_sim_by_receiver - return whether each rank gets a different result. */
bool trib_sim_by_receiver(const struct trib_sim *sim);

/** trib_sim_total - return the elements of the whole vector. */
size_t trib_sim_total(const struct trib_sim *sim);

/** trib_sim_block_of - return the block of an element, for collectives by rank. */
uint32_t trib_sim_block_of(const struct trib_sim *sim, size_t e);

/** trib_sim_chunk_first, trib_sim_chunk_end - return the range of a round's chunk c. */
size_t trib_sim_chunk_first(const struct trib_sim *sim, uint32_t n_chunks,
                            uint32_t round, uint32_t c);
size_t trib_sim_chunk_end(const struct trib_sim *sim, uint32_t n_chunks, uint32_t round,
                          uint32_t c);

/** trib_sim_real - return the double with these bits. */
double trib_sim_real(uint64_t bits);

/** trib_sim_contribution - return element e of a rank's contribution. */
uint64_t trib_sim_contribution(const struct trib_sim *sim, uint32_t rank, size_t e);

/** trib_sim_combine - return a op b. */
uint64_t trib_sim_combine(const struct trib_sim *sim, uint64_t a, uint64_t b);

/** trib_sim_scaled - return a sum after SCALE. */
uint64_t trib_sim_scaled(const struct trib_sim *sim, uint64_t a);

/** trib_sim_expect - return element e of a rank's result, computed in rank order. */
uint64_t trib_sim_expect(const struct trib_sim *sim, uint32_t rank, size_t e);

#endif
