/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive doubling of prefix sums. In step k each rank sends its current sum, of up
 * to 2^k ranks, to the rank 2^k ahead. After ceil(log2(ranks)) steps each rank has the
 * sum of all ranks up to it.
 *
 * An exclusive scan first shifts all contributions by one rank, then does the same.
 *
 * All-reduce of pairs: the core is the largest power of two of ranks. In step k two
 * core ranks whose numbers differ in bit k exchange and merge all they have. After
 * log2(core) steps each has the total sum. A rank beyond the core first sends its pairs
 * to rank - core, and finally receives the result from it.
 *
 *     0 <-> 1   2 <-> 3      step 0
 *     0 <-> 2   1 <-> 3      step 1
 *
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", Communications of the ACM 29,
 * 1986; C. Renggli et al., "SparCML: high-performance sparse communication for machine
 * learning", SC 2019.
 */
#include "collectives/builder.h"

#include <assert.h>
#include <math.h>

static int core_of(int size)
{
    int core = 1;

    while (core * 2 <= size)
        core *= 2;
    assert(size > 0 && core <= size && 2 * core > size);
    return core;
}

/* A rank beyond the core. */
static void build_extra(uint32_t peer, struct trib_schedule *s)
{
    trib_build_send(s, peer, 0, TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    trib_build_recv_copy(s, peer, 0, TRIB_STEP_NO_DEP);
}

/* No send is STABLE: the next sum overwrites the sent data. */
static void build_allreduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    const int core = core_of(shape->size), rank = shape->rank;
    const bool folds = rank + core < shape->size;
    uint32_t dep = TRIB_STEP_NO_DEP;

    assert(shape->size > 1 && s->n_chunks == 1);
    if (rank >= core) {
        build_extra((uint32_t)(rank - core), s);
        return;
    }
    if (folds)
        dep = trib_build_recv_reduce(s, (uint32_t)(rank + core), 0, dep);
    for (int d = 1; d < core; d *= 2) {
        dep = trib_build_send(s, (uint32_t)(rank ^ d), 0, 0, dep);
        dep = trib_build_recv_reduce(s, (uint32_t)(rank ^ d), 0, dep);
    }
    dep = trib_build_scale(s, shape, 0, dep);
    if (folds)
        trib_build_send(s, (uint32_t)(rank + core), 0, TRIB_STEP_FINAL, dep);
}

static void build_prefix(const struct trib_shape *shape, struct trib_schedule *out)
{
    const int first = shape->coll == TRIB_EXSCAN, rank = shape->rank;
    uint32_t dep = TRIB_STEP_NO_DEP;

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
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(trib_shape_valid(shape));
    if (!trib_coll_is_prefix(shape->coll) && shape->coll != TRIB_ALLREDUCE)
        return TRIB_ERR_UNSUPPORTED;
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out, 1);
    if (shape->coll == TRIB_ALLREDUCE)
        build_allreduce(shape, out);
    else
        build_prefix(shape, out);
    return trib_build_end(out);
}

/* Pairs only: each hop would round a dense sum, and encode again. */
static bool can(const struct trib_shape *shape)
{
    return trib_shape_valid(shape) && (shape->coll != TRIB_ALLREDUCE || shape->pairs);
}

/* In step k a rank sends the union of 2^k contributions, assumed to be disjoint, up to
 * the size of the final union. */
static double allreduce_cost(const struct trib_shape *shape,
                             const struct trib_choice *choice)
{
    const double n = (double)choice->bytes, one = choice->contribution;
    const double most = one > 0 ? choice->result / one : 1;
    const int core = core_of(shape->size);
    struct trib_cost_work work = {.hops = 0};

    if (core < shape->size) {
        work.hops = 2;
        work.up = n;
        work.down = n;
    }
    for (int d = 1; d < core; d *= 2, work.hops++)
        work.up += n * fmin(d, most);
    work.summed = 2 * work.up;
    work.messages = work.hops * trib_choice_rounds(choice, n, 1);
    return trib_choice_cost(choice, &work, 1);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double n = (double)choice->bytes;
    struct trib_cost_work work = {.hops = shape->coll == TRIB_EXSCAN};

    if (shape->coll == TRIB_ALLREDUCE)
        return allreduce_cost(shape, choice);
    for (int d = 1; d < shape->size; d *= 2)
        work.hops++;
    work.messages = work.hops * trib_choice_rounds(choice, n, 1);
    work.up = work.hops * n;
    work.summed = 2 * work.up;
    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_doubling = {
    .name = "doubling",
    .detail = "scans, sums of sparse vectors: log2(ranks) steps; few bytes, many ranks",
    .merges = true,
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_SCAN) |
             TRIB_COLL_BIT(TRIB_EXSCAN),
    .can = can,
    .cost = cost,
    .build = build,
};
