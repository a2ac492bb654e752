/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory and statistics of the offload's communicators. */
#include <assert.h>
#include <stdlib.h>

#include "agg/client/offload_gate.h"
#include "agg/client/offload_plan.h"
#include "comm/core/comm_lock.h"

static void register_in(struct trib_comm *comm, void *ptr, size_t bytes)
{
    if (!comm)
        return;
    trib_comm_lock(comm);
    if (!comm->engine.failed)
        (void)trib_memory_register(&comm->engine.memories, ptr, bytes);
    trib_error_clear(&comm->cause);
    trib_comm_unlock(comm);
}

void trib_offload_register(struct trib_comm *comm, void *ptr, size_t bytes)
{
    struct trib_offload *o = comm->offload;

    trib_offload_gate_enter(o);
    register_in(o->agg_comm, ptr, bytes);
    register_in(o->fallback_comm, ptr, bytes);
    trib_offload_gate_leave(o);
}

void trib_offload_register_all(struct trib_offload *o)
{
    const struct trib_memories *m = &o->parent->engine.memories;

    assert(o->agg_comm);
    trib_comm_lock(o->parent);
    for (size_t i = 0; i < m->n; i++)
        register_in(o->agg_comm, m->list[i].ptr, m->list[i].bytes);
    trib_comm_unlock(o->parent);
}

static void deregister_in(struct trib_comm *comm, void *ptr)
{
    if (!comm)
        return;
    trib_comm_lock(comm);
    if (comm->engine.failed)
        trib_engine_part(&comm->engine);
    (void)trib_memory_remove(&comm->engine.memories, ptr, false,
                             comm->engine.failed != TRIB_OK);
    trib_comm_unlock(comm);
}

trib_status_t trib_offload_deregister(struct trib_comm *comm, void *ptr)
{
    struct trib_offload *o = comm->offload;
    bool busy = false;

    assert(o && o->parent == comm);
    trib_offload_gate_enter(o);
    for (const struct trib_offload_plan *s = o->plans; s; s = s->next)
        busy |= s->open;
    if (!busy) {
        deregister_in(o->agg_comm, ptr);
        deregister_in(o->fallback_comm, ptr);
    }
    trib_offload_gate_leave(o);
    return busy ? TRIB_ERR_BUSY : TRIB_OK;
}

static void add_stats(struct trib_comm *comm, trib_stats_t *stats)
{
    if (!comm)
        return;
    trib_comm_lock(comm);
    const struct trib_engine *e = &comm->engine;
    const size_t slots = trib_arena_bytes(&e->arena);
    stats->operations += e->stats.operations;
    stats->wire_bytes += e->stats.wire_bytes;
    stats->payload_bytes += e->stats.payload_bytes;
    stats->dense_bytes += e->stats.dense_bytes;
    stats->copied_bytes += e->stats.copied_bytes;
    stats->messages += e->stats.messages;
    stats->shared_bytes += slots;
    stats->slot_bytes += slots;
    stats->encode_ns += e->stats.encode_ns;
    stats->input_bytes += e->stats.input_bytes;
    stats->input_dense_bytes += e->stats.input_dense_bytes;
    trib_comm_unlock(comm);
}

static void mark_connected(struct trib_comm *comm, int ranks, bool *connected)
{
    if (!comm)
        return;
    assert(comm->engine.ranks == ranks);
    trib_comm_lock(comm);
    for (int r = 0; r < ranks; r++)
        connected[r] |= comm->engine.links[r].connected;
    trib_comm_unlock(comm);
}

/* Count each connected rank once, on whichever communicator. */
static void count_peers(const struct trib_offload *o, trib_stats_t *stats)
{
    const int ranks = o->parent->engine.ranks;
    bool *connected = calloc((size_t)ranks, sizeof(*connected));

    if (!connected)
        return;
    mark_connected(o->parent, ranks, connected);
    mark_connected(o->agg_comm, ranks, connected);
    mark_connected(o->fallback_comm, ranks, connected);
    stats->peers = 0;
    for (int r = 0; r < ranks; r++)
        stats->peers += connected[r];
    free(connected);
}

void trib_offload_stats(const struct trib_comm *comm, trib_stats_t *stats)
{
    struct trib_offload *o = comm->offload;

    trib_offload_gate_enter(o);
    count_peers(o, stats);
    add_stats(o->agg_comm, stats);
    add_stats(o->fallback_comm, stats);
    stats->served = o->offloaded;
    trib_offload_gate_leave(o);
}
