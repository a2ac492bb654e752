/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By what this rank reaches the others.
 */
#include <stdio.h>
#include <string.h>

#include "core/comm.h"

/* A failure to connect belongs to the answer: the sentence of the communicator stays. */
static void look(struct trib_engine *e, int rank, trib_reach_t *reach)
{
    struct trib_route route = {.name = "none"};
    struct trib_error before = *e->err;

    trib_error_clear(e->err);
    trib_status_t st = trib_engine_link(e, rank);
    if (st == TRIB_OK)
        e->transport->ops->route(e->transport, rank, &route);
    snprintf(reach->transport, sizeof(reach->transport), "%s", route.name);
    snprintf(reach->why, sizeof(reach->why), "%s",
             st == TRIB_OK ? route.why : trib_error_text(e->err));
    *e->err = before;
}

trib_status_t trib_reach(trib_comm_t *comm, int rank, trib_reach_t *reach)
{
    if (!comm || !reach || reach->size != sizeof(*reach))
        return TRIB_ERR_INVALID;
    struct trib_engine *e = &comm->engine;
    if (rank < 0 || rank >= e->size)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_reach: rank %d of %d", rank,
                              e->size);
    if (e->failed)
        return e->failed;
    if (rank == e->rank) {
        snprintf(reach->transport, sizeof(reach->transport), "self");
        reach->why[0] = '\0';
        return TRIB_OK;
    }
    trib_comm_lock(comm);
    look(e, rank, reach);
    trib_comm_unlock(comm);
    return TRIB_OK;
}
