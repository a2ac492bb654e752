/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long message between ranks without load/store reach that its sender writes into the
 * receiver's memory, without slots and copies.
 *
 * The receiver names its memory in GRANT. An entry without payload follows each part.
 * It takes the memory back only when the last
 * entry has arrived, or after a failure, when its peer has failed, too, or was cut off.
 * If either memory is not registered and cannot be borrowed (trib_memory_borrow), the
 * elements go through slots.
 */
#ifndef PIPELINE_P2P_DIRECT_WRITE_H
#define PIPELINE_P2P_DIRECT_WRITE_H

#include "pipeline/p2p/p2p_state.h"

/** trib_direct_offer - prepare a receive's memory, and make its location; return false
 * if the elements must come through slots. */
bool trib_direct_offer(struct trib_engine *e, const struct trib_p2p_pair *p,
                       struct trib_p2p_request *r, struct trib_ref *out);

/** trib_direct_begin - prepare the memory of a send to r->place, or drop the place if
 * its elements must go through slots. */
void trib_direct_begin(struct trib_engine *e, struct trib_p2p_request *r);

/**
 * trib_direct_write - write the next part of a send to r->place; its entry must follow.
 *
 * n_out    bytes of the part
 * returns  TRIB_ERR_UNSUPPORTED: the rest must go through slots; another error: try
 *          again, or the engine is marked
 */
trib_status_t trib_direct_write(struct trib_engine *e, struct trib_p2p_pair *p,
                                struct trib_p2p_request *r, size_t *n_out);

/** trib_direct_written - handle the completion of a write; false: not one of these. */
bool trib_direct_written(struct trib_p2p_pair *p, uint64_t token);

/** trib_direct_end - end the use of a request's memory; broken: the peer may still
 * write to it. */
void trib_direct_end(struct trib_engine *e, struct trib_p2p_request *r, bool broken);

#endif
