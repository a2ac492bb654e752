/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: the limit of bytes in flight to one rank from all its peers together.
 *
 * Slots limit what one peer may have in flight, so without a further limit n peers may
 * have n windows in flight to one port, more than the buffers of a switch hold. Before
 * a sender posts a long frame to a receiver with many senders, it therefore asks: a
 * write without data whose immediate has the size of the frame. The receiver grants
 * frames in the order of the requests while the granted frames that have not arrived
 * take at most its budget.
 *
 *     sender                      receiver
 *       | frame filled, asks         |  queue: … this lane
 *       |--------------------------->|
 *       |                            |  earlier frames arrive
 *       |<---------------------------|  grant
 *       |===========================>|  the frame arrives; the next one is granted
 *
 * A lane has at most one request, so peers are served in turn. Only a complete frame
 * asks, for a slot that is free, so a granted frame is posted at once and its share
 * returns whatever other ranks do. A frame larger than the budget is granted when no
 * other one is in flight. The share of a lost peer returns with the event of the loss.
 *
 * Only the sender decides which frames ask: no frame, if the receiver has one sender;
 * else those that are too long for a window of all senders to fit in TRIB_GRANTS_FREE
 * budgets. Few senders and short frames thus never wait. Links with load/store reach
 * use no network and no grants.
 */
#ifndef PIPELINE_LINK_GRANTS_H
#define PIPELINE_LINK_GRANTS_H

#include "pipeline/link/link.h"

#define TRIB_GRANTS_FREE 4

/** trib_grants_create - allocate the queue of requests of `size` ranks; false: no
 * memory. */
bool trib_grants_create(struct trib_grants *g, int size);
void trib_grants_destroy(struct trib_grants *g);

/**
 * trib_grants_set - set which frames ask from now on.
 *
 * senders  number of ranks that send to one rank on each lane, at most; [TRIB_LANES]
 */
void trib_grants_set(struct trib_arena *a, const uint32_t *senders);

/**
 * trib_grants_take - handle the part of an ARRIVED event of this link that concerns
 * grants; other events are ignored.
 *
 * returns  false: the peer violates the protocol
 */
bool trib_grants_take(struct trib_arena *a, struct trib_link *links,
                      const struct trib_event *event);

/** trib_grants_pass - grant waiting requests as far as the budget allows. Requests that
 * a full transport could not answer stay in the queue: call it again later. */
void trib_grants_pass(struct trib_arena *a, struct trib_link *links);

/** trib_grants_drop - return the share of a lost or closed link and drop its requests;
 * the link may never have been connected. */
void trib_grants_drop(struct trib_arena *a, struct trib_link *l, int peer);

#endif
