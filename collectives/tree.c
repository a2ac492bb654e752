/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binomial tree: few messages, each with the whole vector. Place v of a rank is its
 * distance from the root; its parent is v without its lowest set bit.
 *
 *     up:    1 -> 0   3 -> 2   5 -> 4   7 -> 6
 *            2 -> 0   6 -> 4   4 -> 0             down: the same edges, backwards
 *
 * R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
 * operations in MPICH", Int. J. High Performance Computing Applications 19, 2005.
 */
#include "collectives/builder.h"

#include <assert.h>

struct place {
    int v; /* distance from the root */
    int below; /* existing children: v + 1, v + 2, v + 4 … v + below/2 */
    int root;
    int size;
};

static struct place place_of(const struct trib_shape *shape)
{
    struct place at = {.size = shape->size, .below = 1};

    at.root = shape->coll == TRIB_ALLREDUCE ? 0 : shape->root;
    at.v = (shape->rank - at.root + at.size) % at.size;
    while (at.below < at.size && !(at.v & at.below))
        at.below *= 2;
    return at;
}

static uint32_t rank_at(const struct place *at, int v)
{
    return (uint32_t)((v + at->root) % at->size);
}

static uint32_t parent_of(const struct place *at)
{
    return rank_at(at, at->v - at->below);
}

/* Sum the children in rank order, then forward or finish; return the last dep. */
static uint32_t go_up(const struct trib_shape *shape, const struct place *at,
                      struct trib_schedule *s)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    /* Places that wrap around come first: they are ranks from 0 on. */
    for (int wrapped = 1; wrapped >= 0; wrapped--) {
        for (int d = 1; d < at->below && at->v + d < at->size; d *= 2) {
            if ((at->v + d + at->root >= at->size) == wrapped)
                dep = trib_build_recv_reduce(s, rank_at(at, at->v + d), 0, dep);
        }
    }
    if (at->v == 0)
        return trib_build_scale(s, shape, 0, dep);
    trib_build_send(s, parent_of(at), 0, TRIB_STEP_STABLE, dep);
    return TRIB_STEP_NO_DEP;
}

/* Send first to the child with the most descendants. */
static void go_down(const struct place *at, struct trib_schedule *s, uint32_t dep,
                    uint8_t flags)
{
    if (at->v != 0) {
        dep = trib_build_recv_copy(s, parent_of(at), 0, TRIB_STEP_NO_DEP);
        flags |= TRIB_STEP_FORWARD;
    }
    for (int d = at->below / 2; d >= 1; d /= 2)
        if (at->v + d < at->size)
            trib_build_send(s, rank_at(at, at->v + d), 0, flags, dep);
}

/* Return the end of the places below child d, which are v + d to v + 2 d - 1. Their
 * blocks cross each link in this order, a parent's block before its children's. */
static int below_end(const struct place *at, int d)
{
    return at->v + 2 * d < at->size ? at->v + 2 * d : at->size;
}

static void build_gather(const struct trib_shape *shape, const struct place *at,
                         struct trib_schedule *s)
{
    const uint8_t flags = TRIB_STEP_FINAL | TRIB_STEP_STABLE;
    const uint32_t own = (uint32_t)shape->rank;

    if (at->v == 0)
        trib_build_copy(s, shape, own);
    else
        trib_build_send(s, parent_of(at), own, flags, TRIB_STEP_NO_DEP);
    for (int d = 1; d < at->below && at->v + d < at->size; d *= 2) {
        const uint32_t child = rank_at(at, at->v + d);
        for (int v = at->v + d; v < below_end(at, d); v++) {
            const uint32_t got =
                trib_build_recv_copy(s, child, rank_at(at, v), TRIB_STEP_NO_DEP);
            if (at->v != 0)
                trib_build_send(s, parent_of(at), rank_at(at, v),
                                flags | TRIB_STEP_FORWARD, got);
        }
    }
}

/* Send a child its blocks of a scatter; they arrived in steps `got` and following. */
static void send_below(const struct place *at, struct trib_schedule *s, int d,
                       uint32_t got)
{
    const uint8_t flags = TRIB_STEP_FINAL | TRIB_STEP_STABLE;
    const uint32_t child = rank_at(at, at->v + d);

    for (int v = at->v + d; v < below_end(at, d); v++, got++) {
        if (at->v == 0)
            trib_build_send(s, child, rank_at(at, v), flags, TRIB_STEP_NO_DEP);
        else
            trib_build_send(s, child, rank_at(at, v), flags | TRIB_STEP_FORWARD, got);
    }
}

static void build_scatter(const struct trib_shape *shape, const struct place *at,
                          struct trib_schedule *s)
{
    for (int v = at->v; at->v != 0 && v < at->v + at->below && v < at->size; v++)
        trib_build_recv_copy(s, parent_of(at), rank_at(at, v), TRIB_STEP_NO_DEP);
    for (int d = at->below / 2; d >= 1; d /= 2)
        if (at->v + d < at->size)
            send_below(at, s, d, (uint32_t)d);
    if (at->v == 0)
        trib_build_copy(s, shape, (uint32_t)shape->rank);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    struct place at = place_of(shape);

    assert(trib_shape_valid(shape));
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out,
                       trib_coll_is_blocked(shape->coll) ? (uint32_t)shape->size : 1);
    switch (shape->coll) {
    case TRIB_ALLREDUCE:
        go_down(&at, out, go_up(shape, &at, out), TRIB_STEP_FINAL);
        break;
    case TRIB_REDUCE:
        go_up(shape, &at, out);
        break;
    case TRIB_BROADCAST:
        go_down(&at, out, TRIB_STEP_NO_DEP, TRIB_STEP_FINAL | TRIB_STEP_STABLE);
        if (at.v == 0)
            trib_build_copy(out, shape, 0);
        break;
    case TRIB_GATHER:
        build_gather(shape, &at, out);
        break;
    case TRIB_SCATTER:
        build_scatter(shape, &at, out);
        break;
    default:
        return TRIB_ERR_UNSUPPORTED;
    }
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    double n = (double)choice->bytes;
    double rounds = trib_choice_rounds(choice, n, 1);
    struct trib_cost_work work = {0};
    int levels = 0;

    while (1 << levels < shape->size)
        levels++;
    if (trib_coll_is_blocked(shape->coll)) {
        /* The root moves each block once; a block crosses half of the levels on
         * average. */
        work.hops = levels;
        work.messages = (shape->size - 1) * rounds + levels;
        work.down = (shape->size - 1) * n;
        work.mean = 1.0 / shape->size;
        return trib_choice_cost(choice, &work, 1);
    }
    if (shape->coll != TRIB_BROADCAST) {
        work.up = levels * n;
        work.summed = (levels + 1) * n;
        work.hops += levels;
    }
    if (shape->coll != TRIB_REDUCE) {
        work.down = levels * n;
        work.hops += levels;
    }
    work.messages = work.hops * rounds;
    /* Each rank except the root sends once up and receives once down. */
    if (shape->coll == TRIB_ALLREDUCE)
        work.peers = 2 * (shape->size - 1.0) / shape->size;
    work.mean = levels ? (shape->size - 1.0) / (shape->size * (double)levels) : 0;
    return trib_choice_cost(choice, &work, levels);
}

const struct trib_algo trib_algo_tree = {
    .name = "tree",
    .detail = "binomial tree, log2(ranks) hops up and down; short vectors, many ranks",
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) |
             TRIB_COLL_BIT(TRIB_BROADCAST) | TRIB_COLL_BIT(TRIB_GATHER) |
             TRIB_COLL_BIT(TRIB_SCATTER),
    .can = trib_shape_counted,
    .cost = cost,
    .build = build,
};
