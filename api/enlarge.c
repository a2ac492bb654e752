/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_comm_grow: create a communicator of the old ranks and newcomers, and register it
 * with the service as a new job.
 */
#include <stdio.h>

#include "api/api.h"
#include "base/fpenv.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/members/grow.h"
#include "comm/members/survive.h"
#include "comm/members/survivors.h"

static trib_status_t check(struct trib_comm *comm, int most, struct trib_error *err)
{
    const struct trib_engine *e = &comm->engine;

    if (trib_comm_in_child(comm))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_grow: process %d is a forked child, and the "
                         "communicator belongs to process %d",
                         (int)getpid(), (int)comm->pid);
    if (comm->is_shrunk)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_grow: the communicator was replaced by a new one: "
                         "grow the new one and free this one");
    if (most < 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_comm_grow: most is %d: it must be 0 or more", most);
    if (e->size > TRIB_SURVIVOR_RANKS_MAX)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "trib_comm_grow: the communicator has %d ranks, and the limit "
                         "is %d: free it and call trib_init again",
                         e->size, TRIB_SURVIVOR_RANKS_MAX);
    return TRIB_OK;
}

static trib_status_t grow(struct trib_comm *comm, struct trib_listener *listener,
                          int most, struct trib_error *err, struct trib_comm **out)
{
    struct trib_grow g = {.comm = comm};

    trib_gate_enter(comm);
    trib_status_t st = trib_comm_wire_bigger(&g, listener, most, err);
    trib_gate_leave(comm);
    if (st != TRIB_OK || !g.bigger)
        return st;
    trib_comm_end_all(comm, "trib_comm_grow");
    st = trib_comm_commit(comm, g.bigger, err);
    trib_grow_end(&g, st, "the job lost a rank while it grew: join again");
    if (st != TRIB_OK)
        return st;
    *out = g.bigger;
    trib_api_join_service(g.bigger);
    return TRIB_OK;
}

trib_status_t trib_comm_grow(trib_comm_t *comm, trib_listener_t *listener, int most,
                             trib_comm_t **bigger_out)
{
    struct trib_error err = {0};
    fenv_t own;

    if (!comm || !bigger_out) {
        trib_say_error("trib_comm_grow: comm or bigger_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *bigger_out = NULL;
    trib_status_t st = check(comm, most, &err);
    if (st == TRIB_OK) {
        trib_fpenv_enter_all(&own);
        st = grow(comm, listener, most, &err, bigger_out);
        trib_fpenv_leave_all(&own);
    }
    if (st != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    return st;
}
