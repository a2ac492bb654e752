/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_comm_abort: fail a communicator from any thread.
 */
#include <assert.h>
#include <time.h>

#include <tributary/elastic.h>

#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "pipeline/engine/engine_wait.h"

/* Wait for the abort to take effect: the lock's holder polls for it, else this
 * thread. */
static void await(struct trib_comm *comm)
{
    enum { NAP_NS = 20000 };
    struct trib_engine *e = &comm->engine;

    while (!e->failed) {
        if (trib_comm_try_lock(comm)) {
            (void)trib_engine_check(e);
            trib_comm_unlock(comm);
        } else {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
}

trib_status_t trib_comm_abort(trib_comm_t *comm, const char *why)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    const trib_status_t st = trib_comm_ours(comm, "trib_comm_abort");
    if (st != TRIB_OK)
        return st;
    trib_engine_call_abort(&comm->engine, why ? why : "");
    await(comm);
    assert(comm->engine.failed);
    if (comm->hooks)
        comm->hooks->fail(comm, (trib_status_t)comm->engine.failed,
                          trib_error_text(&comm->engine.failure));
    return TRIB_OK;
}
