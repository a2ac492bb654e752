/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairwise exchange: an all-to-all whose step i sends to the rank i places ahead and
 * receives from the rank i places behind, one step after the other. Each rank thus has
 * one sender at a time, unlike "direct", where all send at once.
 *
 * Chunk i of a rank is its block for the rank i places ahead; its result is the block
 * of the rank i places behind.
 *
 * R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
 * operations in MPICH", Int. J. High Performance Computing Applications 19, 2005.
 */
#include "collectives/builder.h"

#include <assert.h>

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    assert(trib_shape_valid(shape));
    if (shape->coll != TRIB_ALLTOALL)
        return TRIB_ERR_UNSUPPORTED;
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out, (uint32_t)shape->size);
    trib_build_copy(out, shape, 0);
    for (int i = 1; i < shape->size; i++) {
        dep = trib_build_send(out, trib_shape_peer(shape, i), (uint32_t)i,
                              TRIB_STEP_FINAL, dep);
        dep = trib_build_recv_copy(out, trib_shape_peer(shape, -i), (uint32_t)i, dep);
    }
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double p = shape->size, n = (double)choice->bytes * p;
    const double rounds = trib_choice_rounds(choice, n, p);
    const struct trib_cost_work work = {
        .hops = p - 1, .messages = (p - 1) * rounds, .down = n * (p - 1) / p};

    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_pairwise = {
    .name = "pairwise",
    .detail = "all-to-all with one peer at a time; long blocks over slow links",
    .colls = TRIB_COLL_BIT(TRIB_ALLTOALL),
    .can = trib_shape_counted,
    .cost = cost,
    .build = build,
};
