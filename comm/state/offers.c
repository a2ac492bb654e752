/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/state/offers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "comm/plan/exchange.h"

/* All ranks reach the same decision from the same offers. */
static trib_status_t check(struct trib_offers *o, trib_status_t mine)
{
    struct trib_comm *comm = o->comm;
    struct trib_offer offer;

    if (mine != TRIB_OK)
        return mine; /* with its own message */
    for (int r = comm->engine.size - 1; r >= 0; r--) {
        memcpy(&offer, (const char *)o->all + (size_t)r * o->bytes, sizeof(offer));
        if (offer.status != TRIB_OK)
            return trib_comm_fail(comm, trib_status_of_peer(offer.status),
                                  "%s: rank %d failed; its own error message gives the "
                                  "reason",
                                  o->call, r);
        o->first = offer.gives ? r : o->first;
    }
    return o->first < 0 ? trib_comm_fail(comm, TRIB_ERR_INVALID,
                                         "%s: no rank has passed %s", o->call, o->what)
                        : TRIB_OK;
}

trib_status_t trib_offers_exchange(struct trib_offers *o, const void *mine)
{
    struct trib_comm *comm = o->comm;
    struct trib_offer offer;

    assert(o->bytes >= sizeof(offer));
    memcpy(&offer, mine, sizeof(offer));
    o->first = -1;
    o->all = calloc((size_t)comm->engine.size, o->bytes);
    if (!o->all) { /* the other ranks must still be notified */
        trib_comm_fail_all(comm, TRIB_ERR_NO_MEMORY, "no memory for the ranks' offers");
        return TRIB_ERR_NO_MEMORY;
    }
    const trib_status_t st =
        trib_comm_exchange(comm, TRIB_ALLGATHER, mine, o->bytes, o->all);
    return st == TRIB_OK ? check(o, (trib_status_t)offer.status) : st;
}
