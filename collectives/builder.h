/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the builders: steps with the right lane, the shapes that need no algorithm,
 * and estimates.
 *
 * Results travel on lane DOWN with FINAL, all else on lane UP. A send is STABLE where
 * no later step of its rank writes the chunk before the receiver has read it. Results
 * of an all-reduce or reduce are not marked: all ranks have contributed, so the
 * finisher may store into their buffers at once and has nobody to wait for.
 */
#ifndef COLLECTIVES_BUILDER_H
#define COLLECTIVES_BUILDER_H

#include "collectives/collectives.h"
#include "topo/cost.h"

#define TRIB_COLL_BIT(coll) (UINT32_C(1) << (coll))

/** trib_shape_valid - ranks, root and enums in range, no aggregators: what every
 * builder of the ranks' own can build. */
bool trib_shape_valid(const struct trib_shape *shape);

/** trib_shape_counted - as trib_shape_valid, for builders whose ranks pass on the
 * blocks of others, or order blocks of several ranks. */
bool trib_shape_counted(const struct trib_shape *shape);

/** trib_shape_peer - the rank `distance` places on, around the end; negative: back. */
uint32_t trib_shape_peer(const struct trib_shape *shape, int distance);

/** trib_build_send - append a SEND; flags with FINAL put it on lane DOWN. */
uint32_t trib_build_send(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                         uint8_t flags, uint32_t dep);

/** trib_build_recv_reduce - append a RECV_REDUCE from lane UP. */
uint32_t trib_build_recv_reduce(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                                uint32_t dep);

/** trib_build_recv_copy - append a RECV_COPY of a finished value from lane DOWN. */
uint32_t trib_build_recv_copy(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                              uint32_t dep);

/** trib_build_scale - for a mean append SCALE, for other ops nothing; the new dep. */
uint32_t trib_build_scale(struct trib_schedule *s, const struct trib_shape *shape,
                          uint32_t chunk, uint32_t dep);

/** trib_build_copy - append COPY: the own contribution is the result. */
void trib_build_copy(struct trib_schedule *s, const struct trib_shape *shape,
                     uint32_t chunk);

/** trib_build_finish - reduce `chunk` from all other ranks, then scale; the new dep. */
uint32_t trib_build_finish(struct trib_schedule *s, const struct trib_shape *shape,
                           uint32_t chunk, uint32_t dep);

/** trib_build_alone - the whole schedule of a single rank. */
trib_status_t trib_build_alone(const struct trib_shape *shape,
                               struct trib_schedule *out);

/** trib_build_end - TRIB_OK, or *out is freed and out of memory reported. */
trib_status_t trib_build_end(struct trib_schedule *out);

/**
 * trib_choice_uneven - how much longer the bytes of an all-reduce take where a rank
 * exchanges with so many partners, at once or by turns, and so leaves links idle; 1
 * with a single one.
 *
 * More than 1 only between hosts whose links are the limit and not their processors: a
 * network that was calibrated and is slow.
 */
double trib_choice_uneven(const struct trib_choice *choice, double partners);

/** trib_choice_rounds - how often a schedule of n_chunks repeats for `bytes` in all. */
double trib_choice_rounds(const struct trib_choice *choice, double bytes,
                          double n_chunks);

/**
 * trib_choice_cost - the estimate of some work in microseconds.
 *
 * depth    merges on the way of a contribution to the finisher, at least 1. A sparse
 *          message grows with each, a lossy one gains noise that only more bits
 *          would take away: both count as that many times the bytes.
 */
double trib_choice_cost(const struct trib_choice *choice,
                        const struct trib_cost_work *work, int depth);

#endif
