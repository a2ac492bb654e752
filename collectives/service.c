/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Service: ranks send their contributions to nodes that have none, and get the result
 * from there. Each element goes up once and comes down once, whatever the number of ranks:
 * S bytes a rank, where a ring moves 2 S (p - 1) / p.
 *
 *     chunk 1 of 2 shards:   0   1   2   3            0   1   2   3
 *                             \   \ /   /              \   \ /   /
 *                      up      -> p+1 <-       down   <- p+1 ->
 *
 * Between a shard's root and the ranks may be more of its nodes, a leaf for each rack, say.
 * A leaf sends the sum of its children up, and its children what comes down. Sums are in the
 * order of node numbers: ranks, then the leaves below.
 *
 *     paper      Sapio et al., "Scaling distributed machine learning with in-network
 *                aggregation", NSDI 2021 (one switch); Lao et al., "ATP", NSDI 2021 (racks)
 */
#include "collectives/builder.h"

#include <assert.h>

static int units_of(const struct trib_shape *shape)
{
    return shape->tree ? shape->tree->units : 1;
}

static uint32_t shards_of(const struct trib_shape *shape)
{
    return (uint32_t)(shape->services / units_of(shape));
}

static int leaf_of(const struct trib_shape *shape, int rank)
{
    return shape->tree ? shape->tree->leaf_of[rank] : 0;
}

static uint32_t node_of(const struct trib_shape *shape, uint32_t shard, int unit)
{
    return (uint32_t)(shape->size + unit) + shard * (uint32_t)units_of(shape);
}

/* Does every unit have something to sum, and is each behind its parent? */
static bool tree_valid(const struct trib_shape *shape)
{
    const struct trib_service_tree *tree = shape->tree;

    for (int u = 1; u < tree->units; u++)
        if (tree->parent[u] < 0 || tree->parent[u] >= u)
            return false;
    for (int r = 0; r < shape->size; r++)
        if (tree->leaf_of[r] < 0 || tree->leaf_of[r] >= tree->units)
            return false;
    for (int u = 0; u < tree->units; u++) {
        int children = 0;
        for (int v = u + 1; v < tree->units; v++)
            children += tree->parent[v] == u;
        for (int r = 0; r < shape->size; r++)
            children += tree->leaf_of[r] == u;
        if (children == 0)
            return false;
    }
    return true;
}

static bool can(const struct trib_shape *shape)
{
    struct trib_shape ranks = *shape;

    ranks.services = ranks.rank = 0;
    if (!trib_shape_valid(&ranks) || shape->services < 1 || shape->rank < 0 ||
        shape->rank >= shape->size + shape->services)
        return false;
    if (!shape->tree)
        return true;
    return shape->tree->units >= 1 && shape->services % shape->tree->units == 0 &&
           tree_valid(shape);
}

static bool gets_result(const struct trib_shape *shape, int rank)
{
    return shape->coll != TRIB_REDUCE || rank == shape->root;
}

/* A send is STABLE: the result that overwrites the chunk comes from who has read it. */
static void build_rank(const struct trib_shape *shape, struct trib_schedule *s)
{
    const int leaf = leaf_of(shape, shape->rank);

    for (uint32_t k = 0; k < s->n_chunks; k++)
        trib_build_send(s, node_of(shape, k, leaf), k, TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    for (uint32_t k = 0; gets_result(shape, shape->rank) && k < s->n_chunks; k++)
        trib_build_recv_copy(s, node_of(shape, k, leaf), k, k);
}

/* Is there a rank below u that gets the result? */
static bool wanted_below(const struct trib_shape *shape, int u)
{
    for (int r = 0; r < shape->size; r++) {
        int unit = leaf_of(shape, r);
        while (unit > u)
            unit = shape->tree->parent[unit];
        if (unit == u && gets_result(shape, r))
            return true;
    }
    return false;
}

static void send_down(const struct trib_shape *shape, struct trib_schedule *s, int u,
                      struct trib_step step)
{
    for (int r = 0; r < shape->size; r++)
        if (leaf_of(shape, r) == u && gets_result(shape, r))
            trib_build_send(s, (uint32_t)r, step.chunk, step.flags, step.dep);
    for (int v = u + 1; v < units_of(shape); v++)
        if (shape->tree->parent[v] == u && wanted_below(shape, v))
            trib_build_send(s, node_of(shape, step.chunk, v), step.chunk, step.flags,
                            step.dep);
}

static void build_node(const struct trib_shape *shape, struct trib_schedule *s)
{
    const int index = shape->rank - shape->size, units = units_of(shape);
    const uint32_t chunk = (uint32_t)(index / units);
    const int u = index % units;
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int r = 0; r < shape->size; r++)
        if (leaf_of(shape, r) == u)
            dep = trib_build_recv_reduce(s, (uint32_t)r, chunk, dep);
    for (int v = u + 1; v < units; v++)
        if (shape->tree->parent[v] == u)
            dep = trib_build_recv_reduce(s, node_of(shape, chunk, v), chunk, dep);
    struct trib_step down = {.flags = TRIB_STEP_FINAL, .chunk = chunk};
    if (u == 0) {
        down.dep = trib_build_scale(s, shape, chunk, dep);
    } else {
        const uint32_t parent = node_of(shape, chunk, shape->tree->parent[u]);
        dep = trib_build_send(s, parent, chunk, 0, dep);
        if (!wanted_below(shape, u))
            return;
        down.dep = trib_build_recv_copy(s, parent, chunk, dep);
        down.flags |= TRIB_STEP_FORWARD;
    }
    send_down(shape, s, u, down);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(can(shape));
    if (!(trib_algo_service.colls & TRIB_COLL_BIT(shape->coll)))
        return TRIB_ERR_UNSUPPORTED;
    trib_schedule_init(out, shards_of(shape));
    if (trib_shape_serves(shape))
        build_node(shape, out);
    else
        build_rank(shape, out);
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double n = (double)choice->bytes, shards = shards_of(shape);
    const double rounds = trib_choice_rounds(choice, n, shards);
    const struct trib_cost_work work = {.hops = shape->tree ? 4 : 2,
                                        .messages = 2 * shards * rounds,
                                        .up = n,
                                        .down = n,
                                        .summed = n * shape->size / shards,
                                        .mean = n * shape->size / shards};

    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_service = {
    .name = "service",
    .detail = "nodes of tribd sum, two hops; needs TRIB_SERVICE",
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) |
             TRIB_COLL_BIT(TRIB_BARRIER),
    .can = can,
    .cost = cost,
    .build = build,
};
