/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations for which the configured codec, feedback and quorum are meant.
 *
 * Settings apply to a whole program, which besides summing gradients broadcasts weights
 * and counts, and sums a few metrics: those travel raw. A codec, feedback or quorum in
 * a description is strict. All ranks decide alike.
 */
#ifndef COMM_CONFIGURED_H
#define COMM_CONFIGURED_H

#include <stdbool.h>

#include <tributary/coll.h>

struct trib_comm;

/** trib_configured_kind - true for an all-reduce, sum or mean, of f32, f16 or bf16. */
bool trib_configured_kind(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op);

/** trib_configured_for - true for such an all-reduce with enough elements. */
bool trib_configured_for(trib_coll_t coll, const trib_desc_t *d);

/** trib_codec_of - text of the codec: the description's, else the configured one, else
 * "none". */
const char *trib_codec_of(const struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *d);

/**
 * trib_configured_call - check whether a blocking call without a name can do this.
 *
 * errors   TRIB_ERR_UNSUPPORTED and a cure, if the configured codec, feedback or quorum
 *          keeps state for each vector; the errors of a text that cannot be parsed
 */
trib_status_t trib_configured_call(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d);

/** trib_configured_auto - check whether codec auto can do this: TRIB_ERR_UNSUPPORTED
 * and a cure. */
trib_status_t trib_configured_auto(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d);

#endif
