/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_comm_lost: list the lost ranks.
 */
#include <assert.h>

#include <tributary/elastic.h>

#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"

/* Return true if the rank is lost. Peers that this rank disconnected itself, to release
 * memory, are not. */
static bool is_lost(const struct trib_engine *e, int rank)
{
    const struct trib_link *l = &e->links[rank];

    assert(rank < e->ranks);
    return l->reported_lost || (l->lost && !e->parted[rank]);
}

static void notice_losses(struct trib_engine *e)
{
    (void)trib_engine_events(e);
    trib_engine_notices(e);
    (void)trib_engine_end(e);
}

trib_status_t trib_comm_lost(trib_comm_t *comm, int *ranks, int cap, int *n_out)
{
    int n = 0;

    if (!comm)
        return TRIB_ERR_INVALID;
    const trib_status_t st = trib_comm_ours(comm, "trib_comm_lost");
    if (st != TRIB_OK)
        return st;
    if (!n_out || cap < 0 || (!ranks && cap))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_comm_lost: ranks or n_out is NULL, or cap is %d",
                              cap);
    trib_comm_poll(comm);
    trib_comm_lock(comm);
    notice_losses(&comm->engine);
    for (int r = 0; r < comm->engine.ranks; r++) {
        if (!is_lost(&comm->engine, r))
            continue;
        if (n < cap)
            ranks[n] = r;
        n++;
    }
    trib_comm_unlock(comm);
    *n_out = n;
    return TRIB_OK;
}
