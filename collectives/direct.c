/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct: a star for each chunk. Rank c finishes chunk c, so all ranks share the sum
 * evenly, and every contribution is sent and encoded once.
 *
 *     chunk 1:   0   1   2   3        0   1   2   3
 *                 \  |  /   /          \  |  /   /
 *          up      ->1<-<--      down   <-1->-->
 */
#include "collectives/builder.h"

#include <assert.h>

/* Factor for incast: if blocks of an all-to-all take several messages, all ranks send
 * to one rank at a time and queue at its port. Assumed to cost a tenth. */
#define INCAST 1.1

/*
 * Sends are STABLE: a chunk is overwritten only by the owner's result, and the owner
 * has read the contribution before it has a result.
 */
static void scatter(const struct trib_shape *shape, struct trib_schedule *s)
{
    for (int i = 1; i < shape->size; i++) {
        uint32_t owner = trib_shape_peer(shape, i);

        trib_build_send(s, owner, owner, TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    }
}

/* Rank r - 1 sends here first. */
static void collect(const struct trib_shape *shape, struct trib_schedule *s)
{
    for (int i = 1; i < shape->size; i++) {
        uint32_t owner = trib_shape_peer(shape, -i);

        trib_build_recv_copy(s, owner, owner, TRIB_STEP_NO_DEP);
    }
}

static void build_allreduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t own = (uint32_t)shape->rank;
    uint32_t done;

    scatter(shape, s);
    done = trib_build_finish(s, shape, own, TRIB_STEP_NO_DEP);
    for (int i = 1; i < shape->size; i++)
        trib_build_send(s, trib_shape_peer(shape, i), own, TRIB_STEP_FINAL, done);
    collect(shape, s);
}

static void build_reduce_scatter(const struct trib_shape *shape,
                                 struct trib_schedule *s)
{
    scatter(shape, s);
    trib_build_finish(s, shape, (uint32_t)shape->rank, TRIB_STEP_NO_DEP);
}

static void build_reduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t own = (uint32_t)shape->rank;
    uint32_t done;

    scatter(shape, s);
    done = trib_build_finish(s, shape, own, TRIB_STEP_NO_DEP);
    if (shape->rank == shape->root)
        collect(shape, s);
    else
        trib_build_send(s, (uint32_t)shape->root, own, TRIB_STEP_FINAL, done);
}

/*
 * Chunk i of a rank is its block for the rank i places ahead; its result is the block
 * of the rank i places behind.
 */
static void build_alltoall(const struct trib_shape *shape, struct trib_schedule *s)
{
    const uint32_t first = s->n_steps;

    for (int i = 1; i < shape->size; i++)
        trib_build_send(s, trib_shape_peer(shape, i), (uint32_t)i, TRIB_STEP_FINAL,
                        TRIB_STEP_NO_DEP);
    trib_build_copy(s, shape, 0);
    for (int i = 1; i < shape->size; i++)
        trib_build_recv_copy(s, trib_shape_peer(shape, -i), (uint32_t)i,
                             first + (uint32_t)i - 1);
}

static void build_allgather(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t own = (uint32_t)shape->rank;

    for (int i = 1; i < shape->size; i++)
        trib_build_send(s, trib_shape_peer(shape, i), own,
                        TRIB_STEP_FINAL | TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    trib_build_copy(s, shape, own);
    collect(shape, s);
}

/*
 * Broadcast: size - 1 chunks. The root sends chunk c to rank root + 1 + c, which relays
 * it to all except the root.
 */
static void broadcast_root(const struct trib_shape *shape, struct trib_schedule *s)
{
    for (int i = 1; i < shape->size; i++)
        trib_build_send(s, trib_shape_peer(shape, i), (uint32_t)(i - 1),
                        TRIB_STEP_FINAL | TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    for (uint32_t c = 0; c < s->n_chunks; c++)
        trib_build_copy(s, shape, c);
}

static void broadcast_relay(const struct trib_shape *shape, struct trib_schedule *s)
{
    int own = (shape->rank - shape->root + shape->size) % shape->size; /* 1 … size-1 */
    uint32_t got;

    got = trib_build_recv_copy(s, (uint32_t)shape->root, (uint32_t)(own - 1),
                               TRIB_STEP_NO_DEP);
    for (int i = 1; i < shape->size; i++) {
        uint32_t peer = trib_shape_peer(shape, i);

        if (peer != (uint32_t)shape->root)
            trib_build_send(s, peer, (uint32_t)(own - 1),
                            TRIB_STEP_FINAL | TRIB_STEP_FORWARD | TRIB_STEP_STABLE,
                            got);
    }
    for (int i = 1; i < shape->size; i++) {
        uint32_t peer = trib_shape_peer(shape, -i);
        int place = ((int)peer - shape->root + shape->size) % shape->size;

        if (place != 0)
            trib_build_recv_copy(s, peer, (uint32_t)(place - 1), TRIB_STEP_NO_DEP);
    }
}

static void build_broadcast(const struct trib_shape *shape, struct trib_schedule *s)
{
    if (shape->rank == shape->root)
        broadcast_root(shape, s);
    else
        broadcast_relay(shape, s);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    uint32_t size = (uint32_t)shape->size;

    assert(trib_shape_valid(shape));
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out, shape->coll == TRIB_BROADCAST ? size - 1 : size);
    if (shape->coll == TRIB_ALLREDUCE)
        build_allreduce(shape, out);
    else if (shape->coll == TRIB_REDUCE)
        build_reduce(shape, out);
    else if (shape->coll == TRIB_BROADCAST)
        build_broadcast(shape, out);
    else if (shape->coll == TRIB_ALLGATHER)
        build_allgather(shape, out);
    else if (shape->coll == TRIB_REDUCE_SCATTER)
        build_reduce_scatter(shape, out);
    else if (shape->coll == TRIB_ALLTOALL)
        build_alltoall(shape, out);
    else
        return TRIB_ERR_UNSUPPORTED;
    return trib_build_end(out);
}

static uint32_t senders(const struct trib_shape *shape, int lane)
{
    (void)lane;
    return (uint32_t)shape->size - 1;
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    double p = shape->size;
    double blocks = trib_coll_is_blocked(shape->coll) ? p : 1.0;
    double n = (double)choice->bytes * blocks; /* of the whole vector */
    double rounds = trib_choice_rounds(choice, n, p);
    struct trib_cost_work work = {.hops = 2, .messages = (p - 1) * rounds};

    if (shape->coll == TRIB_BROADCAST) {
        work.down = n;
    } else if (!trib_coll_sums(shape->coll)) {
        work.hops = 1;
        work.down = n * (p - 1) / p;
        if (shape->coll == TRIB_ALLTOALL && !choice->load_store && rounds > 1)
            work.down *= INCAST;
    } else {
        work.up = n * (p - 1) / p;
        work.summed = n;
        if (shape->coll == TRIB_REDUCE_SCATTER) {
            work.hops = 1;
        } else {
            work.messages *= 2;
            work.peers = p - 1;
            work.down = n * (p - 1) / p;
            work.up *= trib_choice_uneven(choice, p - 1);
            work.down *= trib_choice_uneven(choice, p - 1);
        }
    }
    return trib_choice_cost(choice, &work, 1);
}

const struct trib_algo trib_algo_direct = {
    .name = "direct",
    .detail = "rank c finishes chunk c, two hops; most vectors, and all codecs",
    .gathers = true,
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) |
             TRIB_COLL_BIT(TRIB_BROADCAST) | TRIB_COLL_BIT(TRIB_ALLGATHER) |
             TRIB_COLL_BIT(TRIB_REDUCE_SCATTER) | TRIB_COLL_BIT(TRIB_ALLTOALL),
    .senders = senders,
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
