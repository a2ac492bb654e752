/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths from this rank to the others.
 */
#include <stdio.h>

#include "base/sized.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"

/* A failed connection is part of the result and does not fail the communicator. */
static void probe(struct trib_comm *comm, int rank, trib_reach_t *reach)
{
    struct trib_engine *e = &comm->engine;
    struct trib_route route = {.name = "none"};

    trib_error_clear(&comm->cause);
    trib_status_t st = trib_engine_link(e, rank);
    if (st == TRIB_OK)
        e->transport->ops->route(e->transport, rank, &route);
    snprintf(reach->transport, sizeof(reach->transport), "%s", route.name);
    snprintf(reach->why, sizeof(reach->why), "%s",
             st == TRIB_OK ? route.why : trib_comm_cause(comm, st));
    trib_error_clear(&comm->cause);
}

static trib_status_t find(struct trib_comm *comm, int rank, trib_reach_t *reach)
{
    struct trib_engine *e = &comm->engine;
    if (rank < 0 || rank >= e->size)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_reach: rank %d of %d", rank,
                              e->size);
    if (e->failed)
        return (trib_status_t)e->failed;
    if (rank == e->rank) {
        snprintf(reach->transport, sizeof(reach->transport), "self");
        reach->why[0] = '\0';
        return TRIB_OK;
    }
    trib_status_t st = trib_comm_ours(comm, "trib_reach");
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    probe(comm, rank, reach);
    trib_comm_unlock(comm);
    return TRIB_OK;
}

trib_status_t trib_reach(trib_comm_t *comm, int rank, trib_reach_t *reach)
{
    static const struct trib_sized kind = {"trib_reach_t", "sizeof(trib_reach_t)",
                                           sizeof(*reach),
                                           TRIB_SIZED_UP_TO(trib_reach_t, why)};
    struct trib_error err = {0};
    trib_reach_t found = {.size = sizeof(found)};

    if (!comm)
        return TRIB_ERR_INVALID;
    if (!reach)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_reach: reach is NULL");
    if (trib_sized_fits(&kind, reach, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    const trib_status_t st = find(comm, rank, &found);
    if (st == TRIB_OK)
        trib_sized_give(&kind, &found, reach);
    return st;
}
