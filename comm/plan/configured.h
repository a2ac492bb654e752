/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which operations use the configured codec, feedback and quorum.
 *
 * Settings apply to a whole program. Besides summing gradients it broadcasts weights
 * and counts, and sums a few metrics: those are sent raw. A codec, feedback or quorum
 * in a description is strict. All ranks make the same decision.
 */
#ifndef COMM_PLAN_CONFIGURED_H
#define COMM_PLAN_CONFIGURED_H

#include <stdbool.h>

#include <tributary/coll.h>

struct trib_comm;

/** trib_configured_kind - return true for all-reduces, sum or mean, of f32, f16,
 * bf16. */
bool trib_configured_kind(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op);

/** trib_configured_for - return true for such an all-reduce with enough elements. */
bool trib_configured_for(trib_coll_t coll, const trib_desc_t *d);

/** trib_codec_of - return the codec text: of the description, else the configured one,
 * else "none". */
const char *trib_codec_of(const struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *d);

/**
 * trib_configured_call - check whether the settings work for an unnamed blocking call.
 *
 * errors   TRIB_ERR_UNSUPPORTED with a cure if the configured codec, feedback or quorum
 *          keeps per-vector state; parse errors of these texts
 */
trib_status_t trib_configured_call(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d);

/** trib_configured_auto - check whether codec auto supports this operation:
 * TRIB_ERR_UNSUPPORTED with a cure. */
trib_status_t trib_configured_auto(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d);

#endif
