/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the simulator: chunks of a vector, contributions, sums.
 */
#ifndef HARNESS_SIMVALUES_H
#define HARNESS_SIMVALUES_H

#include "tests/harness/simschedule.h"

#define SIM_ODD UINT64_C(0x9e3779b97f4a7c15) /* a factor that loses no information */

/** trib_sim_mix - bits that look random, from any number. */
uint64_t trib_sim_mix(uint64_t x);

/** trib_sim_by_rank - is chunk k of a round a piece of the block of rank k? */
bool trib_sim_by_rank(const struct trib_sim *sim);

/** trib_sim_by_receiver - does each rank get another result? */
bool trib_sim_by_receiver(const struct trib_sim *sim);

/** trib_sim_total - elements of the whole vector. */
size_t trib_sim_total(const struct trib_sim *sim);

/** trib_sim_block_of - the block of an element, of collectives by rank. */
uint32_t trib_sim_block_of(const struct trib_sim *sim, size_t e);

/** trib_sim_chunk_first, trib_sim_chunk_end - the elements of chunk c of a round. */
size_t trib_sim_chunk_first(const struct trib_sim *sim, uint32_t n_chunks,
                            uint32_t round, uint32_t c);
size_t trib_sim_chunk_end(const struct trib_sim *sim, uint32_t n_chunks, uint32_t round,
                          uint32_t c);

/** trib_sim_real - the double that has these bits. */
double trib_sim_real(uint64_t bits);

/** trib_sim_contribution - element e of what a rank brings. */
uint64_t trib_sim_contribution(const struct trib_sim *sim, uint32_t rank, size_t e);

/** trib_sim_combine - a op b. */
uint64_t trib_sim_combine(const struct trib_sim *sim, uint64_t a, uint64_t b);

/** trib_sim_scaled - what SCALE makes of a sum. */
uint64_t trib_sim_scaled(const struct trib_sim *sim, uint64_t a);

/** trib_sim_expect - element e of a rank's result, computed in the order of ranks. */
uint64_t trib_sim_expect(const struct trib_sim *sim, uint32_t rank, size_t e);

#endif
