/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flat: one hop, no relays. For short vectors, where only the number of hops matters.
 *
 * All-reduce: every rank sends its contribution to all others and sums all
 * contributions in rank order. All ranks thus get the same bits without sending a
 * result.
 *
 *     0   1   2   3
 *     |\ /|\ /|\ /|      each to each
 *     0   1   2   3      each sums 0 + 1 + 2 + 3
 */
#include "collectives/builder.h"

#include <assert.h>
#include <math.h>

/*
 * No send is STABLE, and the REDUCE depends on the last send, because the sum
 * overwrites the contribution before all peers may have read it. The sends form a chain
 * because a step has only one dep.
 */
static void build_allreduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int i = 1; i < shape->size; i++)
        dep = trib_build_send(s, trib_shape_peer(shape, i), 0, 0, dep);
    trib_build_finish(s, shape, 0, dep);
}

static void build_reduce(const struct trib_shape *shape, struct trib_schedule *s)
{
    if (shape->rank == shape->root)
        trib_build_finish(s, shape, 0, TRIB_STEP_NO_DEP);
    else
        trib_build_send(s, (uint32_t)shape->root, 0, TRIB_STEP_STABLE,
                        TRIB_STEP_NO_DEP);
}

static void build_broadcast(const struct trib_shape *shape, struct trib_schedule *s)
{
    if (shape->rank != shape->root) {
        trib_build_recv_copy(s, (uint32_t)shape->root, 0, TRIB_STEP_NO_DEP);
        return;
    }
    for (int i = 1; i < shape->size; i++)
        trib_build_send(s, trib_shape_peer(shape, i), 0,
                        TRIB_STEP_FINAL | TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    trib_build_copy(s, shape, 0);
}

/* Each rank sends to all later ranks, and sums the contributions of earlier ranks. */
static void build_scan(const struct trib_shape *shape, struct trib_schedule *s)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    if (shape->rank == 0)
        trib_build_copy(s, shape, 0);
    for (int q = shape->rank + 1; q < shape->size; q++)
        dep = trib_build_send(s, (uint32_t)q, 0, 0, dep);
    for (int q = 0; q < shape->rank; q++)
        dep = trib_build_recv_reduce(s, (uint32_t)q, 0, dep);
}

/* A scan in which the contribution of rank 0 replaces the local one. */
static void build_exscan(const struct trib_shape *shape, struct trib_schedule *s)
{
    const uint8_t flags = shape->rank == 0 ? TRIB_STEP_FINAL : 0;
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int q = shape->rank + 1; q < shape->size; q++)
        dep = trib_build_send(s, (uint32_t)q, 0, flags, dep);
    if (shape->rank > 0)
        dep = trib_build_recv_copy(s, 0, 0, dep);
    for (int q = 1; q < shape->rank; q++)
        dep = trib_build_recv_reduce(s, (uint32_t)q, 0, dep);
}

/* Chunk r is the block of rank r. */
static void build_gather(const struct trib_shape *shape, struct trib_schedule *s)
{
    const uint32_t own = (uint32_t)shape->rank;

    if (shape->rank != shape->root) {
        trib_build_send(s, (uint32_t)shape->root, own,
                        TRIB_STEP_FINAL | TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
        return;
    }
    trib_build_copy(s, shape, own);
    for (int i = 1; i < shape->size; i++) {
        const uint32_t peer = trib_shape_peer(shape, i);
        trib_build_recv_copy(s, peer, peer, TRIB_STEP_NO_DEP);
    }
}

static void build_scatter(const struct trib_shape *shape, struct trib_schedule *s)
{
    const uint32_t own = (uint32_t)shape->rank;

    if (shape->rank != shape->root) {
        trib_build_recv_copy(s, (uint32_t)shape->root, own, TRIB_STEP_NO_DEP);
        return;
    }
    for (int i = 1; i < shape->size; i++) {
        const uint32_t peer = trib_shape_peer(shape, i);
        trib_build_send(s, peer, peer, TRIB_STEP_FINAL | TRIB_STEP_STABLE,
                        TRIB_STEP_NO_DEP);
    }
    trib_build_copy(s, shape, own);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(trib_shape_valid(shape));
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    trib_schedule_init(out,
                       trib_coll_is_blocked(shape->coll) ? (uint32_t)shape->size : 1);
    switch (shape->coll) {
    case TRIB_ALLREDUCE:
        build_allreduce(shape, out);
        break;
    case TRIB_REDUCE:
        build_reduce(shape, out);
        break;
    case TRIB_BROADCAST:
        build_broadcast(shape, out);
        break;
    case TRIB_GATHER:
        build_gather(shape, out);
        break;
    case TRIB_SCATTER:
        build_scatter(shape, out);
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

static uint32_t senders(const struct trib_shape *shape, int lane)
{
    const bool from_root = shape->coll == TRIB_BROADCAST || shape->coll == TRIB_SCATTER;

    (void)lane;
    return from_root ? 1 : (uint32_t)shape->size - 1;
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    double n = (double)choice->bytes;
    double peers = shape->size - 1;
    struct trib_cost_work work = {
        .hops = 1,
        .messages = peers * trib_choice_rounds(choice, n, 1),
    };

    if (trib_coll_is_blocked(shape->coll)) {
        work.down = peers * n;
        work.mean = 1.0 / shape->size;
    } else if (shape->coll == TRIB_BROADCAST) {
        /* With load/store reach the receivers read in parallel. */
        work.down = choice->load_store ? n : peers * n;
        work.mean = 1.0 / shape->size;
    } else {
        work.up = peers * n;
        work.summed = shape->size * n;
        work.peers = peers;
    }
    /* Every rank would decode every contribution, including its own as others decode
     * it. This pays off only if just contributions are sent, never a result. */
    if (shape->coll == TRIB_ALLREDUCE && (choice->sparse || choice->lossy) &&
        choice->contribution <= 0)
        return HUGE_VAL;
    /* A rank keeps its contribution to a chunk until those of the others arrive. Over a
     * long link, each round of an all-reduce thus waits for the previous one. */
    const double waits = shape->coll == TRIB_ALLREDUCE && choice->delay_us > 0
                             ? (work.messages / fmax(peers, 1) - 1) * choice->delay_us
                             : 0;
    return trib_choice_cost(choice, &work, 1) + waits;
}

const struct trib_algo trib_algo_flat = {
    .name = "flat",
    .detail = "one hop, every rank sums all contributions; short vectors, few ranks",
    .gathers = true,
    .encodes_once = true,
    .colls = TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE) |
             TRIB_COLL_BIT(TRIB_BROADCAST) | TRIB_COLL_BIT(TRIB_GATHER) |
             TRIB_COLL_BIT(TRIB_SCATTER) | TRIB_COLL_BIT(TRIB_SCAN) |
             TRIB_COLL_BIT(TRIB_EXSCAN),
    .senders = senders,
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
