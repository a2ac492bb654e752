/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offers: before state moves, each rank tells all others whether it can move, and what
 * it has. All ranks see the same offers, so all of them move or none does.
 */
#ifndef COMM_STATE_OFFERS_H
#define COMM_STATE_OFFERS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;

/* An offer begins with this. */
struct trib_offer {
    int32_t status; /* trib_status_t of the rank's local checks */
    uint32_t gives; /* 0: the rank has no state to move; it is new */
};

struct trib_offers {
    struct trib_comm *comm;
    const char *call; /* for error messages */
    const char *what; /* that no rank has passed: "an old plan" */
    size_t bytes; /* of an offer, equal on all ranks */
    void *all; /* [ranks] set by trib_offers_exchange; the caller frees it */
    int first; /* the lowest rank that gives */
};

/**
 * trib_offers_exchange - all-gather the offers and check whether all ranks can go on.
 *
 * mine     [o->bytes] this rank's offer
 * errors   of any rank's status, with a message that names the rank; TRIB_ERR_INVALID:
 *          no rank gives
 */
trib_status_t trib_offers_exchange(struct trib_offers *o, const void *mine);

#endif
