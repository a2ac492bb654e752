/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long message that the receiver reads from its sender's memory: one copy instead of
 * two through slots.
 *
 * Only the receiver moves data, into its own buffer, and only while its receive is
 * active: nobody writes to a receiver that has failed. A failing sender may change its
 * buffer at once. It withdraws the location first (trib_link_withdraw), and the
 * receiver discards data that it read after that.
 */
#ifndef PIPELINE_P2P_PULL_H
#define PIPELINE_P2P_PULL_H

#include "pipeline/p2p/p2p_state.h"

/** trib_pull_expose - make the reference to a send's elements; return false if they
 * must go through slots. */
bool trib_pull_expose(const struct trib_engine *e, const struct trib_p2p_pair *p,
                      const struct trib_p2p_request *r, struct trib_ref *out);

/**
 * trib_pull_place - return a copy of the location in an ANNOUNCE; the caller frees it.
 *
 * returns  TRIB_ERR_PROTOCOL: not a valid location; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_pull_place(const struct trib_message *m, const uint8_t *payload,
                              struct trib_ref **out);

/**
 * trib_pull - read a piece of the message at r->place.
 *
 * returns  TRIB_OK: complete; TRIB_INPROGRESS: more to read; TRIB_ERR_UNSUPPORTED: it
 *          must come through slots, r is unchanged; another error: the engine is marked
 */
trib_status_t trib_pull(struct trib_engine *e, struct trib_p2p_pair *p,
                        struct trib_p2p_request *r);

#endif
