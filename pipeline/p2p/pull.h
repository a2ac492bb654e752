/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long message whose elements the receiver reads out of its sender's memory: one
 * copy, in place of two through slots.
 *
 * Only the receiver moves anything, into its own buffer and while its receive is there:
 * a receiver that gives up is not written to. A sender that gives up may change its
 * buffer at once; it withdraws the place before (trib_link_withdraw), and what was read
 * counts only if it had not.
 */
#ifndef PIPELINE_P2P_PULL_H
#define PIPELINE_P2P_PULL_H

#include "pipeline/p2p/p2p_state.h"

/** trib_pull_expose - the place of a send's elements; false: they go through slots. */
bool trib_pull_expose(const struct trib_engine *e, const struct trib_p2p_pair *p,
                      const struct trib_p2p_request *r, struct trib_ref *out);

/**
 * trib_pull_place - a copy of the place that an ANNOUNCE names; the caller frees it.
 *
 * returns  TRIB_ERR_PROTOCOL: it names none; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_pull_place(const struct trib_message *m, const uint8_t *payload,
                              struct trib_ref **out);

/**
 * trib_pull - read a piece of the message of r->place.
 *
 * returns  TRIB_OK: all of it is here; TRIB_INPROGRESS: there is more;
 *          TRIB_ERR_UNSUPPORTED: it must come through slots, r is as before; another
 *          error: the engine is marked
 */
trib_status_t trib_pull(struct trib_engine *e, struct trib_p2p_pair *p,
                        struct trib_p2p_request *r);

#endif
