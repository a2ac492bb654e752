/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring: each rank exchanges data only with its two neighbours, and sends the fewest
 * bytes.
 *
 *     chunk c, up:     c+1 -> c+2 -> … -> c-1 -> c     partial sums
 *     chunk c, down:   c -> c+1 -> … -> c-1            the result, relayed
 *
 * Reduce-scatter is the first half, all-gather the second. For 4 ranks, chunk 0 goes 1,
 * 2, 3, 0 as a growing partial sum; rank 0 finishes it and sends the result to 1, which
 * relays it to 2, which relays it to 3. Reduce and broadcast are a chain that ends or
 * begins at the root, with one chunk; the rounds fill the pipeline.
 *
 * P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", J. Parallel and Distributed Computing 69, 2009.
 */
#include "collectives/builder.h"

#include <assert.h>

/*
 * In step i this rank sends chunk rank-1-i and receives chunk rank-2-i, its own chunk
 * last. Sends are STABLE: a sent chunk is overwritten only by a result that includes
 * it.
 */
static uint32_t reduce_scatter(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t next = trib_shape_peer(shape, 1);
    uint32_t previous = trib_shape_peer(shape, -1);
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int i = 0; i < shape->size - 1; i++) {
        trib_build_send(s, next, trib_shape_peer(shape, -1 - i), TRIB_STEP_STABLE, dep);
        dep = trib_build_recv_reduce(s, previous, trib_shape_peer(shape, -2 - i),
                                     TRIB_STEP_NO_DEP);
    }
    return trib_build_scale(s, shape, (uint32_t)shape->rank, dep);
}

/* Send this rank's chunk after dep, and relay every chunk except the next rank's
 * own. */
static void allgather(const struct trib_shape *shape, struct trib_schedule *s,
                      uint32_t dep, uint8_t flags)
{
    uint32_t next = trib_shape_peer(shape, 1);
    uint32_t previous = trib_shape_peer(shape, -1);

    trib_build_send(s, next, (uint32_t)shape->rank, flags, dep);
    for (int i = 1; i < shape->size; i++) {
        uint32_t chunk = trib_shape_peer(shape, -i);
        uint32_t got = trib_build_recv_copy(s, previous, chunk, TRIB_STEP_NO_DEP);

        if (chunk != next)
            trib_build_send(s, next, chunk, flags | TRIB_STEP_FORWARD, got);
    }
}

static void build_reduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    bool first = trib_shape_peer(shape, -1) == (uint32_t)shape->root;
    uint32_t dep = TRIB_STEP_NO_DEP;

    if (!first)
        dep = trib_build_recv_reduce(s, trib_shape_peer(shape, -1), 0, dep);
    if (shape->rank == shape->root)
        trib_build_scale(s, shape, 0, dep);
    else
        trib_build_send(s, trib_shape_peer(shape, 1), 0, TRIB_STEP_STABLE, dep);
}

static void build_broadcast(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t next = trib_shape_peer(shape, 1);
    uint8_t flags = TRIB_STEP_FINAL | TRIB_STEP_STABLE;
    uint32_t got;

    if (shape->rank == shape->root) {
        trib_build_send(s, next, 0, flags, TRIB_STEP_NO_DEP);
        trib_build_copy(s, shape, 0);
        return;
    }
    got = trib_build_recv_copy(s, trib_shape_peer(shape, -1), 0, TRIB_STEP_NO_DEP);
    if (next != (uint32_t)shape->root)
        trib_build_send(s, next, 0, flags | TRIB_STEP_FORWARD, got);
}

/* A chain from rank 0 to the last rank; the sum that a rank forwards is its result. */
static void build_scan(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    if (shape->rank == 0)
        trib_build_copy(s, shape, 0);
    else
        dep = trib_build_recv_reduce(s, trib_shape_peer(shape, -1), 0, dep);
    if (shape->rank < shape->size - 1)
        trib_build_send(s, trib_shape_peer(shape, 1), 0, TRIB_STEP_STABLE, dep);
}

/* A scan after each rank has passed its contribution to the next rank. */
static void build_exscan(const struct trib_shape *shape, struct trib_schedule *s)
{
    const bool last = shape->rank == shape->size - 1;
    uint32_t dep = TRIB_STEP_NO_DEP;

    if (!last)
        dep = trib_build_send(s, trib_shape_peer(shape, 1), 0, TRIB_STEP_FINAL, dep);
    if (shape->rank > 0)
        dep = trib_build_recv_copy(s, trib_shape_peer(shape, -1), 0, dep);
    if (shape->rank > 1)
        dep = trib_build_recv_reduce(s, trib_shape_peer(shape, -1), 0, dep);
    if (shape->rank > 0 && !last)
        trib_build_send(s, trib_shape_peer(shape, 1), 0, TRIB_STEP_STABLE, dep);
}

static bool is_chain(const struct trib_shape *shape)
{
    return shape->coll == TRIB_REDUCE || shape->coll == TRIB_BROADCAST ||
           trib_coll_is_prefix(shape->coll);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(trib_shape_valid(shape));
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out, is_chain(shape) ? 1 : (uint32_t)shape->size);
    switch (shape->coll) {
    case TRIB_ALLREDUCE:
        allgather(shape, out, reduce_scatter(shape, out), TRIB_STEP_FINAL);
        break;
    case TRIB_REDUCE_SCATTER:
        reduce_scatter(shape, out);
        break;
    case TRIB_ALLGATHER:
        trib_build_copy(out, shape, (uint32_t)shape->rank);
        allgather(shape, out, TRIB_STEP_NO_DEP, TRIB_STEP_FINAL | TRIB_STEP_STABLE);
        break;
    case TRIB_REDUCE:
        build_reduce(shape, out);
        break;
    case TRIB_BROADCAST:
        build_broadcast(shape, out);
        break;
    case TRIB_SCAN:
        build_scan(shape, out);
        break;
    case TRIB_EXSCAN:
        build_exscan(shape, out);
        break;
    default:
        return TRIB_ERR_UNSUPPORTED;
    }
    return trib_build_end(out);
}

/* The last rank of a chain waits until the pipeline is filled: one slot per hop. */
static double chain_cost(const struct trib_shape *shape,
                         const struct trib_choice *choice)
{
    double n = (double)choice->bytes;
    double rounds = trib_choice_rounds(choice, n, 1);
    double bytes = n + (shape->size - 2) * n / rounds;
    struct trib_cost_work work = {
        .hops = shape->size - 2 + rounds,
        .messages = rounds,
    };

    if (shape->coll == TRIB_BROADCAST) {
        work.down = bytes;
    } else {
        work.up = shape->coll == TRIB_EXSCAN ? bytes + n : bytes;
        work.summed = 2 * n;
    }
    return trib_choice_cost(choice, &work, shape->size - 1);
}

/* Return the maximum number of ring edges that leave a host: 1 if the ranks of each
 * host are consecutive. */
static double leaving(const struct trib_shape *shape)
{
    const int *host =
        shape->groups->host ? shape->groups->host : shape->groups->of_rank;
    int most = 1;

    for (int g = 0; g < shape->groups->n; g++) {
        int n = 0;
        for (int r = 0; r < shape->size; r++)
            n += host[r] == g && host[(r + 1) % shape->size] != g;
        most = n > most ? n : most;
    }
    return most;
}

static double cost(const struct trib_shape *shape, const struct trib_choice *given)
{
    struct trib_choice mine = *given;
    const struct trib_choice *choice = &mine;
    double p = shape->size;
    double n = (double)given->bytes;
    struct trib_cost_work work = {.hops = p - 1};

    if (shape->size == 1)
        return 0.0;
    if (given->sharing > 0 && shape->groups)
        mine.sharing = leaving(shape);
    if (is_chain(shape))
        return chain_cost(shape, choice);
    if (shape->coll != TRIB_ALLREDUCE)
        n *= p;
    work.messages = (p - 1) * trib_choice_rounds(choice, n, p);
    if (shape->coll != TRIB_ALLGATHER) {
        work.up = n * (p - 1) / p;
        work.summed = 2 * work.up;
    }
    if (shape->coll != TRIB_REDUCE_SCATTER)
        work.down = n * (p - 1) / p;
    if (shape->coll == TRIB_ALLREDUCE) {
        work.hops *= 2;
        work.messages *= 2;
        work.peers = p > 2 ? 2 : 1;
    }
    return trib_choice_cost(choice, &work, shape->size - 1);
}

const struct trib_algo trib_algo_ring = {
    .name = "ring",
    .detail = "neighbours only, fewest bytes, most hops; long vectors over slow links",
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) |
             TRIB_COLL_BIT(TRIB_BROADCAST) | TRIB_COLL_BIT(TRIB_ALLGATHER) |
             TRIB_COLL_BIT(TRIB_REDUCE_SCATTER) | TRIB_COLL_BIT(TRIB_SCAN) |
             TRIB_COLL_BIT(TRIB_EXSCAN),
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
