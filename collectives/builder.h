/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the builders: steps with the right lane, trivial shapes, and estimates.
 *
 * Results use lane DOWN with FINAL, everything else lane UP. A send is STABLE if no
 * later step of its rank writes the chunk before the receiver has read it. Results of
 * an all-reduce or reduce are not STABLE: all ranks have already contributed, so the
 * finisher may store into their buffers at once.
 */
#ifndef COLLECTIVES_BUILDER_H
#define COLLECTIVES_BUILDER_H

#include "collectives/collectives.h"
#include "topo/cost.h"

#define TRIB_COLL_BIT(coll) (UINT32_C(1) << (coll))

/** trib_shape_valid - return true if ranks, root and enums are in range and there are
 * no aggregators: the minimum for every builder without aggregators. */
bool trib_shape_valid(const struct trib_shape *shape);

/** trib_shape_counted - as trib_shape_valid, for builders whose ranks relay blocks of
 * others, or chain blocks of several ranks by deps. */
bool trib_shape_counted(const struct trib_shape *shape);

/** trib_shape_peer - return the rank `distance` places ahead, cyclically; negative:
 * behind. */
uint32_t trib_shape_peer(const struct trib_shape *shape, int distance);

/** trib_build_send - append a SEND; flags with FINAL put it on lane DOWN. */
uint32_t trib_build_send(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                         uint8_t flags, uint32_t dep);

/** trib_build_recv_reduce - append a RECV_REDUCE on lane UP. */
uint32_t trib_build_recv_reduce(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                                uint32_t dep);

/** trib_build_recv_copy - append a RECV_COPY of a finished value on lane DOWN. */
uint32_t trib_build_recv_copy(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                              uint32_t dep);

/** trib_build_scale - append a SCALE for a mean, nothing for other ops; return the new
 * dep. */
uint32_t trib_build_scale(struct trib_schedule *s, const struct trib_shape *shape,
                          uint32_t chunk, uint32_t dep);

/** trib_build_copy - append a COPY: the local contribution is the result. */
void trib_build_copy(struct trib_schedule *s, const struct trib_shape *shape,
                     uint32_t chunk);

/** trib_build_finish - reduce `chunk` from all other ranks, then scale; return the new
 * dep. */
uint32_t trib_build_finish(struct trib_schedule *s, const struct trib_shape *shape,
                           uint32_t chunk, uint32_t dep);

/** trib_build_alone - build the whole schedule of a single rank. */
trib_status_t trib_build_alone(const struct trib_shape *shape,
                               struct trib_schedule *out);

/** trib_build_end - return TRIB_OK, or free *out and return TRIB_ERR_NO_MEMORY. */
trib_status_t trib_build_end(struct trib_schedule *out);

/**
 * trib_choice_uneven - return how much longer an all-reduce takes if each rank
 * exchanges with `partners` ranks, at once or in turn, and so leaves links idle; 1 for
 * one partner.
 *
 * Greater than 1 only between hosts limited by their links, not their processors: for a
 * slow network that was calibrated.
 */
double trib_choice_uneven(const struct trib_choice *choice, double partners);

/** trib_choice_rounds - return the number of rounds of a schedule of n_chunks for
 * `bytes` in total. */
double trib_choice_rounds(const struct trib_choice *choice, double bytes,
                          double n_chunks);

/**
 * trib_choice_cost - return the estimated time of some work in microseconds.
 *
 * depth    merges between a contribution and its finisher, at least 1. A sparse message
 *          grows with each merge; a lossy one gains noise that only more bits would
 *          remove. Both count as that many times the bytes.
 */
double trib_choice_cost(const struct trib_choice *choice,
                        const struct trib_cost_work *work, int depth);

#endif
