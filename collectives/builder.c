/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/builder.h"

#include <assert.h>
#include <math.h>

bool trib_shape_valid(const struct trib_shape *shape)
{
    return (unsigned)shape->coll < TRIB_COLL_COUNT &&
           (unsigned)shape->op < TRIB_OP_COUNT && shape->size >= 1 &&
           shape->rank >= 0 && shape->rank < shape->size && shape->root >= 0 &&
           shape->root < shape->size && shape->aggregators == 0;
}

bool trib_shape_counted(const struct trib_shape *shape)
{
    return trib_shape_valid(shape) && !shape->local_counts;
}

uint32_t trib_shape_peer(const struct trib_shape *shape, int distance)
{
    int peer = (shape->rank + distance) % shape->size;

    return (uint32_t)(peer < 0 ? peer + shape->size : peer);
}

static uint16_t lane_of(unsigned flags)
{
    return flags & TRIB_STEP_FINAL ? TRIB_LANE_DOWN : TRIB_LANE_UP;
}

uint32_t trib_build_send(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                         uint8_t flags, uint32_t dep)
{
    struct trib_step step = {
        TRIB_STEP_SEND, flags, lane_of(flags), peer, chunk, dep,
    };

    return trib_schedule_add(s, step);
}

uint32_t trib_build_recv_reduce(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                                uint32_t dep)
{
    struct trib_step step = {
        TRIB_STEP_RECV_REDUCE, 0, TRIB_LANE_UP, peer, chunk, dep,
    };

    return trib_schedule_add(s, step);
}

uint32_t trib_build_recv_copy(struct trib_schedule *s, uint32_t peer, uint32_t chunk,
                              uint32_t dep)
{
    struct trib_step step = {
        TRIB_STEP_RECV_COPY, TRIB_STEP_FINAL, TRIB_LANE_DOWN, peer, chunk, dep,
    };

    return trib_schedule_add(s, step);
}

uint32_t trib_build_scale(struct trib_schedule *s, const struct trib_shape *shape,
                          uint32_t chunk, uint32_t dep)
{
    struct trib_step step = {
        TRIB_STEP_SCALE, 0, 0, (uint32_t)shape->rank, chunk, dep,
    };

    return shape->op == TRIB_MEAN ? trib_schedule_add(s, step) : dep;
}

void trib_build_copy(struct trib_schedule *s, const struct trib_shape *shape,
                     uint32_t chunk)
{
    struct trib_step step = {
        TRIB_STEP_COPY, 0, 0, (uint32_t)shape->rank, chunk, TRIB_STEP_NO_DEP,
    };

    trib_schedule_add(s, step);
}

uint32_t trib_build_finish(struct trib_schedule *s, const struct trib_shape *shape,
                           uint32_t chunk, uint32_t dep)
{
    for (int q = 0; q < shape->size; q++)
        if (q != shape->rank)
            dep = trib_build_recv_reduce(s, (uint32_t)q, chunk, dep);
    return trib_build_scale(s, shape, chunk, dep);
}

trib_status_t trib_build_alone(const struct trib_shape *shape,
                               struct trib_schedule *out)
{
    assert(shape->size == 1);
    trib_schedule_init(out, 1);
    /* The mean of one contribution is itself. */
    if (shape->coll != TRIB_BARRIER && shape->coll != TRIB_EXSCAN)
        trib_build_copy(out, shape, 0);
    return trib_build_end(out);
}

trib_status_t trib_build_end(struct trib_schedule *out)
{
    if (!out->failed)
        return TRIB_OK;
    trib_schedule_free(out);
    return TRIB_ERR_NO_MEMORY;
}

double trib_choice_uneven(const struct trib_choice *choice, double partners)
{
    /* Measured over 0.1 to 1 Gbit/s with 4 and 8 hosts: `direct` took 4 to 17 % longer
     * than a ring, `halving-doubling` 6 to 16 %. Over 10 Gbit/s, where processors are
     * the limit, the ring was slowest. */
    const double slow_Bps = 2.5e8, longer = 1.1;
    const bool links = !choice->load_store && !choice->near && !choice->one_host &&
                       !(choice->contribution > 0) && choice->network &&
                       choice->network->wire_Bps < slow_Bps;

    return links && partners > 1 ? longer : 1;
}

double trib_choice_rounds(const struct trib_choice *choice, double bytes,
                          double n_chunks)
{
    double slots = choice->slot_bytes == 0
                       ? 1.0
                       : ceil(bytes / ((double)choice->slot_bytes * n_chunks));

    return slots < 1.0 ? 1.0 : slots;
}

enum {
    HEADERS = 40, /* bytes of a frame's header and an encoded chunk's */
    PAIR_WORK =
        8, /* pairs are processed singly: time relative to dense bytes */
};

static enum trib_cost_kind kind_of(const struct trib_choice *choice)
{
    /* Codecs that select are for slow networks; pairs may be used anywhere. */
    if (choice->contribution > 0 && !choice->near &&
        !(choice->pairs && (choice->load_store || choice->one_host)))
        return TRIB_COST_SLOW_NETWORK;
    if (choice->load_store)
        return TRIB_COST_LOAD_STORE;
    return choice->one_host && choice->oversubscribed && !choice->sparse &&
                   !choice->lossy
               ? TRIB_COST_SHARED_CORES
               : TRIB_COST_NETWORK;
}

double trib_choice_cost(const struct trib_choice *choice,
                        const struct trib_cost_work *work, int depth)
{
    struct trib_cost_work grown = *work;
    const enum trib_cost_kind kind = kind_of(choice);

    if (choice->contribution > 0) { /* a sum is never larger than its elements */
        grown.up *= fmin(depth * choice->contribution, 1);
        grown.up += work->messages * HEADERS;
        grown.down *= choice->result;
        grown.summed *= choice->contribution;
        if (choice->pairs)
            grown.summed = PAIR_WORK * (grown.summed + grown.down);
    } else if (choice->sparse || choice->lossy) {
        grown.up *= depth;
    }
    if (kind != TRIB_COST_LOAD_STORE && kind != TRIB_COST_SHARED_CORES &&
        choice->sharing > 1) {
        grown.up *= choice->sharing;
        grown.down *= choice->sharing;
    }
    const bool network = kind == TRIB_COST_NETWORK || kind == TRIB_COST_SLOW_NETWORK;
    return trib_cost_us(network && choice->network ? choice->network
                                                   : trib_cost_default(kind),
                        &grown, choice->oversubscribed) +
           (choice->near ? 0 : work->hops * choice->delay_us);
}
