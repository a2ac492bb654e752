/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dissemination barrier. In round k each rank notifies the rank 2^k ahead that it and
 * all ranks it has heard from have arrived. After ceil(log2(ranks)) rounds this covers
 * all ranks.
 *
 * D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", Int.
 * J. Parallel Programming 17, 1988.
 */
#include "collectives/builder.h"

#include <assert.h>

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    assert(trib_shape_valid(shape));
    if (shape->coll != TRIB_BARRIER)
        return TRIB_ERR_UNSUPPORTED;
    trib_schedule_init(out, 1);
    for (int d = 1; d < shape->size; d *= 2) {
        dep = trib_build_send(out, trib_shape_peer(shape, d), 0, TRIB_STEP_FINAL, dep);
        dep = trib_build_recv_copy(out, trib_shape_peer(shape, -d), 0, dep);
    }
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    struct trib_cost_work work = {0};

    for (int d = 1; d < shape->size; d *= 2)
        work.hops++;
    work.messages = work.hops;
    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_dissemination = {
    .name = "dissemination",
    .detail = "barrier in log2(ranks) rounds of empty messages",
    .colls = TRIB_COLL_BIT(TRIB_BARRIER),
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
