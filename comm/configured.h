/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For which operations the configuration's codec, feedback and quorum are meant.
 *
 * They are set for a whole program, which broadcasts weights, counts, and sums a few
 * metrics beside its gradients: those go as they are. A codec, feedback or quorum in a
 * description is strict. All that decides is the same on all ranks.
 */
#ifndef COMM_CONFIGURED_H
#define COMM_CONFIGURED_H

#include <stdbool.h>

#include <tributary/coll.h>

struct trib_comm;

/** trib_configured_kind - is it an all-reduce, sum or mean, of f32, f16 or bf16? */
bool trib_configured_kind(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op);

/** trib_configured_for - is it one, of enough elements? */
bool trib_configured_for(trib_coll_t coll, const trib_desc_t *d);

/** trib_codec_of - the codec's text: of the description, or the configuration's, or
 * "none". */
const char *trib_codec_of(const struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *d);

/**
 * trib_configured_call - may a blocking call without a name do this?
 *
 * errors   TRIB_ERR_UNSUPPORTED, and the sentence that says what to do: codec, feedback
 *          or quorum of the configuration keep something of each vector. Those of a
 *          wrong text
 */
trib_status_t trib_configured_call(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d);

#endif
