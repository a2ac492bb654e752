/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive halving and doubling: the bytes of a ring in log2(ranks) hops.
 *
 * The largest power of two of ranks is the core. Halving: with the partner at distance
 * core/2, core/4, … 1, each rank sends the half of its chunks on the partner's side and
 * sums the other half. Core rank v then has the finished chunks c with c mod core == v.
 * Doubling visits the distances in reverse order and distributes the results.
 *
 *     rank 0 of 4 has chunks   0-3  -(2)->  0-1  -(1)->  0  -(1)->  0-1  -(2)->  0-3
 *
 * A rank beyond the core first sends its vector to rank - core, and finally receives
 * its result from it.
 *
 * R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; R.
 * Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
 * operations in MPICH", Int. J. High Performance Computing Applications 19, 2005.
 */
#include "collectives/builder.h"

#include <assert.h>
#include <stdlib.h>

struct halving {
    const struct trib_shape *shape;
    struct trib_schedule *s;
    uint32_t core; /* largest power of two <= size */
    uint32_t rank;
    /* Per chunk: the last step that wrote it, or TRIB_STEP_NO_DEP. */
    uint32_t *last;
};

static uint32_t core_of(int size)
{
    uint32_t core = 1;

    while (core * 2 <= (uint32_t)size)
        core *= 2;
    return core;
}

/* Return true if chunk c is finished by a core rank in the aligned block of `width`
 * ranks that contains `rank`. */
static bool in_block(const struct halving *h, uint32_t c, uint32_t rank, uint32_t width)
{
    return (c & (h->core - 1) & ~(width - 1)) == (rank & ~(width - 1));
}

/* Return the rank beyond the core that this core rank represents; false if none. */
static bool has_extra(const struct halving *h, uint32_t *extra_out)
{
    *extra_out = h->rank + h->core;
    return *extra_out < (uint32_t)h->shape->size;
}

static void recv_reduce(struct halving *h, uint32_t peer, uint32_t c)
{
    h->last[c] = trib_build_recv_reduce(h->s, peer, c, h->last[c]);
}

static void recv_copy(struct halving *h, uint32_t peer, uint32_t c)
{
    h->last[c] = trib_build_recv_copy(h->s, peer, c, TRIB_STEP_NO_DEP);
}

/* Send a finished chunk; relay it if another rank finished it. */
static void hand_out(struct halving *h, uint32_t peer, uint32_t c)
{
    bool gather = h->shape->coll == TRIB_ALLGATHER;
    bool own = gather ? c == h->rank : in_block(h, c, h->rank, 1);
    uint8_t flags = TRIB_STEP_FINAL;

    if (!own)
        flags |= TRIB_STEP_FORWARD;
    if (gather)
        flags |= TRIB_STEP_STABLE;
    trib_build_send(h->s, peer, c, flags, h->last[c]);
}

static void build_extra(struct halving *h)
{
    uint32_t peer = h->rank - h->core;
    uint32_t n = h->s->n_chunks;

    if (h->shape->coll == TRIB_ALLGATHER) {
        hand_out(h, peer, h->rank);
        trib_build_copy(h->s, h->shape, h->rank);
    } else {
        for (uint32_t c = 0; c < n; c++)
            trib_build_send(h->s, peer, c, TRIB_STEP_STABLE, TRIB_STEP_NO_DEP);
    }
    if (h->shape->coll == TRIB_REDUCE_SCATTER) {
        recv_copy(h, peer, h->rank);
        return;
    }
    for (uint32_t c = 0; c < n; c++)
        if (h->shape->coll == TRIB_ALLREDUCE || c != h->rank)
            recv_copy(h, peer, c);
}

static void fold_in(struct halving *h)
{
    uint32_t extra;

    if (!has_extra(h, &extra))
        return;
    if (h->shape->coll == TRIB_ALLGATHER) {
        recv_copy(h, extra, extra);
        return;
    }
    for (uint32_t c = 0; c < h->s->n_chunks; c++)
        recv_reduce(h, extra, c);
}

/* Sends are STABLE: a sent chunk is overwritten only by a result that includes it. */
static void halve(struct halving *h)
{
    uint32_t n = h->s->n_chunks;

    for (uint32_t d = h->core / 2; d >= 1; d /= 2) {
        uint32_t partner = h->rank ^ d;

        for (uint32_t c = 0; c < n; c++)
            if (in_block(h, c, partner, d))
                trib_build_send(h->s, partner, c, TRIB_STEP_STABLE, h->last[c]);
        for (uint32_t c = 0; c < n; c++)
            if (in_block(h, c, h->rank, d))
                recv_reduce(h, partner, c);
    }
    for (uint32_t c = h->rank; c < n; c += h->core)
        h->last[c] = trib_build_scale(h->s, h->shape, c, h->last[c]);
}

static void double_up(struct halving *h)
{
    uint32_t n = h->s->n_chunks;

    for (uint32_t d = 1; d < h->core; d *= 2) {
        uint32_t partner = h->rank ^ d;

        for (uint32_t c = 0; c < n; c++)
            if (in_block(h, c, h->rank, d))
                hand_out(h, partner, c);
        for (uint32_t c = 0; c < n; c++)
            if (in_block(h, c, partner, d))
                recv_copy(h, partner, c);
    }
}

static void fold_out(struct halving *h)
{
    uint32_t extra;

    if (!has_extra(h, &extra))
        return;
    if (h->shape->coll == TRIB_REDUCE_SCATTER) {
        hand_out(h, extra, extra);
        return;
    }
    for (uint32_t c = 0; c < h->s->n_chunks; c++)
        if (h->shape->coll == TRIB_ALLREDUCE || c != extra)
            hand_out(h, extra, c);
}

static void build_core(struct halving *h)
{
    if (h->shape->coll == TRIB_ALLGATHER)
        trib_build_copy(h->s, h->shape, h->rank);
    fold_in(h);
    if (h->shape->coll != TRIB_ALLGATHER)
        halve(h);
    if (h->shape->coll != TRIB_REDUCE_SCATTER)
        double_up(h);
    fold_out(h);
}

#define COLLS \
    (TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_ALLGATHER) | \
     TRIB_COLL_BIT(TRIB_REDUCE_SCATTER))

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    struct halving h = {
        .shape = shape,
        .s = out,
        .core = core_of(shape->size),
        .rank = (uint32_t)shape->rank,
    };
    uint32_t n;

    assert(trib_shape_valid(shape));
    if (!(COLLS & TRIB_COLL_BIT(shape->coll)))
        return TRIB_ERR_UNSUPPORTED;
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    n = shape->coll == TRIB_ALLREDUCE ? h.core : (uint32_t)shape->size;
    trib_schedule_init(out, n);
    h.last = malloc(n * sizeof(*h.last));
    if (!h.last)
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t c = 0; c < n; c++)
        h.last[c] = TRIB_STEP_NO_DEP;
    if (h.rank >= h.core)
        build_extra(&h);
    else
        build_core(&h);
    free(h.last);
    return trib_build_end(out);
}

static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    double core = core_of(shape->size);
    bool folded = (int)core_of(shape->size) != shape->size;
    bool gather = shape->coll == TRIB_ALLGATHER;
    bool scatter = shape->coll == TRIB_REDUCE_SCATTER;
    double blocks = gather || scatter ? shape->size : 1;
    double n = (double)choice->bytes * blocks; /* of the whole vector */
    double half = n * (core - 1) / core + (folded ? n : 0.0);
    struct trib_cost_work work = {0};
    int levels = folded ? 1 : 0;

    for (uint32_t d = 1; d < core_of(shape->size); d *= 2)
        levels++;
    if (!gather) {
        work.up = half;
        work.summed = 2 * half;
        work.hops += levels;
    }
    if (!scatter) {
        work.down = half;
        work.hops += levels;
    } else if (folded) {
        work.down = (double)choice->bytes;
        work.hops += 1;
    }
    if (gather && folded)
        work.hops += 1;
    if (shape->coll == TRIB_ALLREDUCE) {
        work.up *= trib_choice_uneven(choice, levels);
        work.down *= trib_choice_uneven(choice, levels);
    }
    work.messages = (core - 1 + (folded ? core : 0.0)) *
                    trib_choice_rounds(choice, n, blocks > 1 ? blocks : core);
    if (shape->coll == TRIB_ALLREDUCE) {
        work.messages *= 2;
        work.peers = levels;
    }
    return trib_choice_cost(choice, &work, levels > 1 ? levels : 1);
}

const struct trib_algo trib_algo_halving_doubling = {
    .name = "halving-doubling",
    .detail = "log2(ranks) hops with a ring's bytes; powers of two, slow links",
    .colls = COLLS,
    .can = trib_shape_valid,
    .cost = cost,
    .build = build,
};
