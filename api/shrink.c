/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_comm_shrink: create the survivors' communicator, and register it with the
 * service as a new job.
 */
#include <stdio.h>

#include <tributary/elastic.h>

#include "agg/client/fallback.h"
#include "api/api.h"
#include "base/fpenv.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/members/survive.h"
#include "comm/members/survivors.h"

/* True if this rank has disconnected from a peer to release memory, and can no longer
 * communicate with that peer. */
static bool has_parted(const struct trib_engine *e)
{
    for (int r = 0; r < e->size; r++)
        if (e->parted[r])
            return true;
    return false;
}

static trib_status_t check(struct trib_comm *comm, struct trib_error *err)
{
    const struct trib_engine *e = &comm->engine;

    if (trib_comm_in_child(comm))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_shrink: process %d is a forked child, and the "
                         "communicator belongs to process %d",
                         (int)getpid(), (int)comm->pid);
    if (comm->is_shrunk)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_shrink: the communicator was replaced by a new "
                         "one: shrink the new one and free this one");
    if (e->size > TRIB_SURVIVOR_RANKS_MAX)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "trib_comm_shrink: the communicator has %d ranks, and the "
                         "limit is %d: free it and call trib_init again",
                         e->size, TRIB_SURVIVOR_RANKS_MAX);
    if (has_parted(e))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_shrink: rank %d disconnected from a peer when it "
                         "called trib_free or trib_deregister after the failure: call "
                         "trib_comm_shrink first",
                         e->rank);
    return TRIB_OK;
}

/* All ranks have committed to the new communicator, so any later error is an error of
 * that communicator. */
void trib_api_join_service(struct trib_comm *comm)
{
    const trib_status_t st = trib_offload_join(comm);
    char text[400];

    if (st == TRIB_OK || comm->engine.failed)
        return;
    snprintf(text, sizeof(text), "%.399s", trib_last_error(comm));
    trib_comm_fail_all(comm, st, text);
}

trib_status_t trib_comm_shrink(trib_comm_t *comm, trib_comm_t **smaller_out)
{
    struct trib_error err = {0};
    fenv_t own;

    if (!comm || !smaller_out) {
        trib_say_error("trib_comm_shrink: comm or smaller_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *smaller_out = NULL;
    trib_status_t st = check(comm, &err);
    if (st == TRIB_OK) {
        trib_comm_end_all(comm, "trib_comm_shrink");
        trib_fpenv_enter_all(&own);
        st = trib_comm_survive(comm, &err, smaller_out);
        if (st == TRIB_OK)
            trib_api_join_service(*smaller_out);
        trib_fpenv_leave_all(&own);
    }
    if (st != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    return st;
}
