/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive doubling of prefix sums: in step k each rank sends the sum that it has, of
 * up to 2^k ranks, to the rank 2^k places on. After ceil(log2(ranks)) steps each has
 * the sum of all ranks up to it.
 *
 * An exclusive scan is the same of contributions that have first moved on by one rank.
 *
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM 29,
 * 1986.
 */
#include "collectives/builder.h"

#include <assert.h>

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    const int first = shape->coll == TRIB_EXSCAN, rank = shape->rank;
    uint32_t dep = TRIB_STEP_NO_DEP;

    assert(trib_shape_valid(shape));
    if (!trib_coll_is_prefix(shape->coll))
        return TRIB_ERR_UNSUPPORTED;
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out, 1);
    if (!first && rank == 0)
        trib_build_copy(out, shape, 0);
    if (first && rank + 1 < shape->size)
        dep = trib_build_send(out, (uint32_t)rank + 1, 0, TRIB_STEP_FINAL, dep);
    if (first && rank > 0)
        dep = trib_build_recv_copy(out, (uint32_t)rank - 1, 0, dep);
    for (int d = 1; d < shape->size && rank >= first; d *= 2) {
        if (rank + d < shape->size)
            dep = trib_build_send(out, (uint32_t)(rank + d), 0, 0, dep);
        if (rank - d >= first)
            dep = trib_build_recv_reduce(out, (uint32_t)(rank - d), 0, dep);
    }
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double n = (double)choice->bytes;
    struct trib_cost_work work = {.hops = shape->coll == TRIB_EXSCAN};

    for (int d = 1; d < shape->size; d *= 2)
        work.hops++;
    work.messages = work.hops * trib_choice_rounds(choice, n, 1);
    work.up = work.hops * n;
    work.summed = 2 * work.up;
    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_doubling = {
    .name = "doubling",
    .detail = "scans in log2(ranks) steps; short vectors, many ranks",
    .colls = TRIB_COLL_BIT(TRIB_SCAN) | TRIB_COLL_BIT(TRIB_EXSCAN),
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
