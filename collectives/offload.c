/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithm "service": ranks send their contributions to aggregators, which contribute
 * nothing, and receive the result from them. Each element travels up once and down
 * once, whatever the number of ranks: S bytes per rank, where a ring moves 2 S (p - 1)
 * / p.
 *
 *     chunk 1 of 2 shards:   0   1   2   3            0   1   2   3
 *                             \   \ /   /              \   \ /   /
 *                      up      -> p+1 <-       down   <- p+1 ->
 *
 * There may be more groups of aggregators between the root and the ranks, such as one
 * per rack. A group sends its sum up and forwards the result down. Sums are in rank
 * order, followed by the groups below. The ranks of a host may sum first (struct
 * trib_shape_hosts): then a host moves S bytes, whatever the number of its ranks.
 *
 *     paper      Sapio et al., "Scaling distributed machine learning with in-network
 *                aggregation", NSDI 2021 (one switch); Lao et al., "ATP", NSDI 2021
 *                (racks)
 */
#include "collectives/builder.h"

#include <assert.h>

/* Supported collectives. */
#define COLLS \
    (TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) | \
     TRIB_COLL_BIT(TRIB_BARRIER))

enum { CHUNKS_MOST = 64 }; /* in a round */

static int groups_of(const struct trib_shape *shape)
{
    return shape->tree ? shape->tree->groups : 1;
}

static int leaf_of(const struct trib_shape *shape, int rank)
{
    return shape->tree ? shape->tree->leaf_of[rank] : 0;
}

static int aggregators_of(const struct trib_shape *shape, int group)
{
    const struct trib_agg_tree *tree = shape->tree;

    return tree ? tree->first[group + 1] - tree->first[group] : shape->aggregators;
}

/* Return the aggregator of a group that sums a chunk. */
static uint32_t aggregator_of(const struct trib_shape *shape, uint32_t chunk, int group)
{
    const int i = (int)(chunk % (uint32_t)aggregators_of(shape, group));

    return (uint32_t)(shape->size +
                      (shape->tree
                           ? shape->tree->aggregators[shape->tree->first[group] + i]
                           : i));
}

/* Return true if the rank exchanges this chunk with the aggregator itself. */
static bool leads(const struct trib_shape *shape, uint32_t chunk, int rank)
{
    const struct trib_shape_hosts *h = shape->hosts;

    return !h || chunk % (uint32_t)h->leaders[rank] == (uint32_t)h->place[rank] ||
           h->of[rank] == h->of[aggregator_of(shape, chunk, leaf_of(shape, rank))];
}

/* Return true if `rank` leaves this chunk to another rank of this rank's host. */
static bool follows(const struct trib_shape *shape, uint32_t chunk, int rank)
{
    return shape->hosts && shape->hosts->of[rank] == shape->hosts->of[shape->rank] &&
           !leads(shape, chunk, rank);
}

/* Return the rank or aggregator that sums this rank's chunk. */
static uint32_t summer_of(const struct trib_shape *shape, uint32_t chunk)
{
    const struct trib_shape_hosts *h = shape->hosts;
    int r = shape->rank;

    if (leads(shape, chunk, r))
        return aggregator_of(shape, chunk, leaf_of(shape, r));
    for (r = h->of[r]; h->of[r] != h->of[shape->rank] || !leads(shape, chunk, r); r++)
        assert(r < shape->size);
    return (uint32_t)r;
}

/* The number of chunks after which all groups repeat. */
struct repeats {
    uint32_t largest, common;
};

static void add_repeat(struct repeats *all, uint32_t n)
{
    const uint32_t step = all->common;

    all->largest = n > all->largest ? n : all->largest;
    while (all->common <= CHUNKS_MOST && all->common % n != 0)
        all->common += step;
}

/* Return the number of chunks after which aggregators and leaders of all groups repeat;
 * or, if that is too large, the size of the largest group. */
static uint32_t chunks_of(const struct trib_shape *shape)
{
    struct repeats all = {1, 1};

    for (int u = 0; u < groups_of(shape); u++)
        add_repeat(&all, (uint32_t)aggregators_of(shape, u));
    for (int r = 0; shape->hosts && r < shape->size; r++)
        add_repeat(&all, (uint32_t)shape->hosts->leaders[r]);
    return all.common <= CHUNKS_MOST ? all.common : all.largest;
}

/* Return true if the group has something to sum and follows its parent. */
static bool group_valid(const struct trib_shape *shape, int u)
{
    const struct trib_agg_tree *tree = shape->tree;
    bool children = false;

    if (tree->first[u + 1] <= tree->first[u] ||
        (u > 0 && (tree->parent[u] < 0 || tree->parent[u] >= u)))
        return false;
    for (int i = tree->first[u]; i < tree->first[u + 1]; i++)
        if (tree->aggregators[i] < 0 || tree->aggregators[i] >= shape->aggregators)
            return false;
    for (int v = u + 1; v < tree->groups && !children; v++)
        children = tree->parent[v] == u;
    for (int r = 0; r < shape->size && !children; r++)
        children = tree->leaf_of[r] == u;
    return children;
}

/* Return true if the aggregator is in one group, or in the root and one directly below
 * it. */
static bool aggregator_valid(const struct trib_agg_tree *tree, int aggregator)
{
    int in_root = 0, below = 0, group = 0;

    for (int u = 0; u < tree->groups; u++) {
        for (int i = tree->first[u]; i < tree->first[u + 1]; i++) {
            if (tree->aggregators[i] != aggregator)
                continue;
            in_root += u == 0;
            below += u > 0;
            group = u;
        }
    }
    return in_root <= 1 && below <= 1 && in_root + below >= 1 &&
           (in_root + below == 1 || tree->parent[group] == 0);
}

static bool tree_valid(const struct trib_shape *shape)
{
    const struct trib_agg_tree *tree = shape->tree;

    if (tree->groups < 1 || tree->first[0] != 0)
        return false;
    for (int r = 0; r < shape->size; r++)
        if (tree->leaf_of[r] < 0 || tree->leaf_of[r] >= tree->groups)
            return false;
    for (int u = 0; u < tree->groups; u++)
        if (!group_valid(shape, u))
            return false;
    for (int i = 0; i < shape->aggregators; i++)
        if (!aggregator_valid(tree, i))
            return false;
    return true;
}

static bool can(const struct trib_shape *shape)
{
    struct trib_shape ranks = *shape;

    ranks.aggregators = ranks.rank = 0;
    if (!trib_shape_valid(&ranks) || shape->aggregators < 1 || shape->rank < 0 ||
        shape->rank >= shape->size + shape->aggregators)
        return false;
    return !shape->tree || tree_valid(shape);
}

static bool gets_result(const struct trib_shape *shape, int rank)
{
    return shape->coll != TRIB_REDUCE || rank == shape->root;
}

/* Sum the host's contributions to a chunk, and send the sum or the own contribution.
 * Sends are STABLE: the result that overwrites a chunk comes from the one that has read
 * it. */
static void contribute(const struct trib_shape *shape, struct trib_schedule *s,
                       uint32_t chunk)
{
    const int ranks = leads(shape, chunk, shape->rank) ? shape->size : 0;
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int r = 0; r < ranks; r++)
        if (follows(shape, chunk, r))
            dep = trib_build_recv_reduce(s, (uint32_t)r, chunk, dep);
    trib_build_send(s, summer_of(shape, chunk), chunk, TRIB_STEP_STABLE, dep);
}

/* Return the step that sent a chunk up; 0 after a failure. */
static uint32_t sent_by(const struct trib_schedule *s, uint32_t chunk)
{
    uint32_t i = 0;

    while (i < s->n_steps &&
           (s->steps[i].op != TRIB_STEP_SEND || s->steps[i].chunk != chunk))
        i++;
    return i < s->n_steps ? i : 0;
}

/* Receive the result of a chunk, and forward it on this host. The root of a reduce gets
 * it from the aggregator. */
static void take_result(const struct trib_shape *shape, struct trib_schedule *s,
                        uint32_t chunk)
{
    const bool one = shape->coll == TRIB_REDUCE;
    const uint32_t from = one ? aggregator_of(shape, chunk, leaf_of(shape, shape->rank))
                              : summer_of(shape, chunk);

    if (!gets_result(shape, shape->rank))
        return;
    const uint32_t dep = trib_build_recv_copy(s, from, chunk, sent_by(s, chunk));
    for (int r = 0; !one && leads(shape, chunk, shape->rank) && r < shape->size; r++)
        if (follows(shape, chunk, r))
            trib_build_send(s, (uint32_t)r, chunk, TRIB_STEP_FINAL | TRIB_STEP_FORWARD,
                            dep);
}

static void build_rank(const struct trib_shape *shape, struct trib_schedule *s)
{
    for (uint32_t k = 0; k < s->n_chunks; k++)
        contribute(shape, s, k);
    for (uint32_t k = 0; k < s->n_chunks; k++)
        take_result(shape, s, k);
}

/* Return true if a rank below u receives the result. */
static bool wanted_below(const struct trib_shape *shape, int u)
{
    if (shape->coll != TRIB_REDUCE)
        return true;
    int group = leaf_of(shape, shape->root);
    while (group > u)
        group = shape->tree->parent[group];
    return group == u;
}

/* Return true if this aggregator sums the chunk in that group. */
static bool here(const struct trib_shape *shape, uint32_t chunk, int group)
{
    return aggregator_of(shape, chunk, group) == (uint32_t)shape->rank;
}

/* Return true if this aggregator sums the chunk for the parent of group u, but another
 * one sums it for u. */
static bool sends_here(const struct trib_shape *shape, uint32_t chunk, int u)
{
    return here(shape, chunk, shape->tree->parent[u]) && !here(shape, chunk, u);
}

static void send_down(const struct trib_shape *shape, struct trib_schedule *s,
                      struct trib_step step)
{
    for (int r = 0; r < shape->size; r++)
        if (here(shape, step.chunk, leaf_of(shape, r)) && gets_result(shape, r) &&
            (shape->coll == TRIB_REDUCE || leads(shape, step.chunk, r)))
            trib_build_send(s, (uint32_t)r, step.chunk, step.flags, step.dep);
    for (int u = 1; u < groups_of(shape); u++)
        if (sends_here(shape, step.chunk, u) && wanted_below(shape, u))
            trib_build_send(s, aggregator_of(shape, step.chunk, u), step.chunk,
                            step.flags, step.dep);
}

/* Return the group for which this aggregator sums the chunk, preferably the root, or
 * -1. */
static int group_here(const struct trib_shape *shape, uint32_t chunk)
{
    for (int u = 0; u < groups_of(shape); u++)
        if (here(shape, chunk, u))
            return u;
    return -1;
}

static void build_chunk(const struct trib_shape *shape, struct trib_schedule *s,
                        uint32_t chunk)
{
    const int group = group_here(shape, chunk);
    struct trib_step down = {.flags = TRIB_STEP_FINAL, .chunk = chunk};
    uint32_t dep = TRIB_STEP_NO_DEP;

    if (group < 0)
        return;
    for (int r = 0; r < shape->size; r++)
        if (here(shape, chunk, leaf_of(shape, r)) && leads(shape, chunk, r))
            dep = trib_build_recv_reduce(s, (uint32_t)r, chunk, dep);
    for (int u = 1; u < groups_of(shape); u++)
        if (sends_here(shape, chunk, u))
            dep = trib_build_recv_reduce(s, aggregator_of(shape, chunk, u), chunk, dep);
    if (group == 0) {
        down.dep = trib_build_scale(s, shape, chunk, dep);
    } else {
        const uint32_t parent = aggregator_of(shape, chunk, shape->tree->parent[group]);
        dep = trib_build_send(s, parent, chunk, 0, dep);
        if (!wanted_below(shape, group))
            return;
        down.dep = trib_build_recv_copy(s, parent, chunk, dep);
        down.flags |= TRIB_STEP_FORWARD;
    }
    send_down(shape, s, down);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(can(shape));
    if (!(COLLS & TRIB_COLL_BIT(shape->coll)))
        return TRIB_ERR_UNSUPPORTED;
    trib_schedule_init(out, chunks_of(shape));
    for (uint32_t k = 0; trib_shape_is_aggregator(shape) && k < out->n_chunks; k++)
        build_chunk(shape, out, k);
    if (!trib_shape_is_aggregator(shape))
        build_rank(shape, out);
    return trib_build_end(out);
}

/* Return the number of ranks of group u, and of aggregators in the groups below it. */
static int below(const struct trib_shape *shape, int u)
{
    int n = 0;

    for (int r = 0; r < shape->size; r++)
        n += leaf_of(shape, r) == u;
    for (int v = 1; v < groups_of(shape); v++)
        n += shape->tree->parent[v] == u ? aggregators_of(shape, v) : 0;
    return n;
}

static uint32_t senders(const struct trib_shape *shape, int lane)
{
    int most = 1;

    for (int u = 0; u < groups_of(shape); u++) {
        const int n = lane == TRIB_LANE_UP ? below(shape, u) : aggregators_of(shape, u);
        most = n > most ? n : most;
    }
    return (uint32_t)most;
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double n = (double)choice->bytes, shards = chunks_of(shape);
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
    .detail = "aggregators of tribd sum, two hops; needs TRIB_SERVICE",
    .gathers = true,
    .aggregators = true,
    .colls = COLLS,
    .senders = senders,
    .can = can,
    .cost = cost,
    .build = build,
};
