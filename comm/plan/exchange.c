/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of control data between the ranks of a communicator.
 */
#include "comm/plan/exchange.h"

#include <assert.h>

#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

static trib_status_t run_once(struct trib_comm *comm, trib_coll_t coll, int root,
                              const void *in, size_t bytes, void *out)
{
    struct trib_plan *plan;
    trib_desc_t desc = TRIB_DESC_INIT;

    assert(coll == TRIB_ALLGATHER || coll == TRIB_BROADCAST);
    desc.root = root;
    desc.count = bytes;
    desc.dtype = TRIB_I8;
    desc.codec = "none";
    desc.algorithm = TRIB_AUTO; /* TRIB_ALGORITHM may not support all-gather */
    trib_status_t st = trib_plan_make(comm, coll, &desc, false, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_run(plan, in, out);
    trib_plan_destroy(plan);
    return st;
}

trib_status_t trib_comm_exchange(struct trib_comm *comm, trib_coll_t coll,
                                 const void *in, size_t bytes, void *out)
{
    return run_once(comm, coll, 0, in, bytes, out);
}

trib_status_t trib_comm_broadcast(struct trib_comm *comm, int root, size_t bytes,
                                  void *data)
{
    assert(root >= 0 && root < comm->engine.ranks);
    return run_once(comm, TRIB_BROADCAST, root, NULL, bytes, data);
}
