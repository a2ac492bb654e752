/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open and close the engine and its links.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/meminfo.h"
#include "base/time.h"
#include "base/workers.h"
#include "pipeline/engine/engine.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"

enum { WORD_MS = 100 }; /* time for peers to report why a peer is unreachable */

static void free_tables(struct trib_engine *e)
{
    trib_trace_destroy(&e->trace);
    free(e->links);
    free(e->peers);
    free(e->parted);
    e->parted = NULL;
    e->links = NULL;
    e->peers = NULL;
}

trib_status_t trib_engine_open(struct trib_engine *e)
{
    assert(e->rank >= 0 && e->rank < e->size && e->ranks <= e->size);
    e->arena.transport = e->transport;
    e->arena.self = e->rank;
    e->arena.size = e->size;
    e->arena.window = (uint32_t)e->cfg->window;
    e->arena.slot_bytes = e->cfg->chunk;
    e->arena.grants.budget = e->cfg->in_flight;
    e->arena.to_aggregators = e->ranks < e->size;
    e->memories.transport = e->transport;
    e->all_mapped = true;
    trib_status_t st = trib_trace_create(&e->trace, e->cfg->trace);
    if (st != TRIB_OK)
        return trib_fail(e->err, st, "no memory for a trace of %zu events",
                         e->cfg->trace);
    e->links = calloc((size_t)e->size, sizeof(*e->links));
    e->peers = calloc((size_t)e->size, sizeof(*e->peers));
    e->parted = calloc((size_t)e->size, sizeof(*e->parted));
    st = e->links && e->peers && e->parted
             ? trib_arena_create(&e->arena)
             : trib_fail(e->err, TRIB_ERR_NO_MEMORY, "no memory for %d links", e->size);
    if (st != TRIB_OK)
        free_tables(e);
    return st;
}

void trib_engine_part(struct trib_engine *e)
{
    assert(e->failed);
    for (int p = 0; p < e->size; p++) {
        struct trib_link *l = &e->links[p];
        e->parted[p] = l->connected && !l->mapped && !l->lost;
        l->lost |= e->parted[p];
    }
    e->transport->ops->leave(e->transport, e->parted);
}

void trib_engine_close(struct trib_engine *e)
{
    assert(!e->head);
    if (!e->links)
        return;
    trib_state_file_close(&e->page);
    trib_workers_destroy(e->workers); /* before the transport, which the workers use to
                                       * wake this thread */
    e->workers = NULL;
    e->transport->ops->leave(e->transport, NULL); /* all at once: some may not answer */
    if (e->p2p)
        e->p2p->ops->close(e);
    for (int p = 0; p < e->size; p++)
        trib_link_close(&e->links[p], &e->arena);
    trib_memory_remove_all(&e->memories);
    trib_arena_destroy(&e->arena);
    free_tables(e);
}

static trib_status_t link_up(struct trib_engine *e, int peer, bool slots)
{
    struct trib_link *l = &e->links[peer];
    const struct trib_peer *p = &e->peers[peer];
    trib_status_t st = TRIB_OK;

    assert(peer != e->rank && peer >= 0 && peer < e->size);
    /* Only the blocks of connected peers take memory. */
    if (slots && !l->opened)
        st = trib_meminfo_check(
            trib_link_bytes(e->arena.window, e->arena.slot_bytes, true), e->err);
    if (st == TRIB_OK)
        st = trib_link_connect(l, &e->arena, peer, &p->address, &p->arena);
    if (st == TRIB_OK && slots)
        st = trib_link_open(l, &e->arena);
    if (st == TRIB_OK && !l->mapped)
        e->all_mapped = false;
    return st;
}

trib_status_t trib_engine_link(struct trib_engine *e, int peer)
{
    return link_up(e, peer, true);
}

void trib_engine_connect_many(struct trib_engine *e, const bool *which, int n)
{
    struct trib_target *dials = malloc((size_t)n * sizeof(*dials));
    int fresh = 0;

    assert(n > 0 && n <= e->size);
    for (int p = 0; p < n && dials; p++) {
        if (which[p] && p != e->rank && !e->links[p].connected && !e->links[p].lost)
            dials[fresh++] = (struct trib_target){p, &e->peers[p].address, false, 0};
    }
    if (fresh > 1)
        e->transport->ops->connect_many(e->transport, dials, fresh);
    free(dials);
}

static trib_status_t connect_peer(struct trib_engine *e, int peer,
                                  const char *operation, bool slots)
{
    struct trib_link *l = &e->links[peer];
    const struct trib_peer *p = &e->peers[peer];
    trib_status_t st = link_up(e, peer, slots);

    if (st == TRIB_OK)
        return TRIB_OK;
    if (trib_idle_answer(e->idle_fn)) {
        l->lost = true;
        trib_error_clear(e->err);
        return trib_engine_give_up(e, operation);
    }
    char why[300];
    snprintf(why, sizeof(why), "%s", trib_error_text(e->err));
    /* The lost peer or another one may have reported the cause. */
    l->lost = true;
    trib_error_clear(e->err);
    uint64_t until = trib_deadline_ms(WORD_MS);
    do {
        (void)trib_engine_events(e);
        trib_engine_notices(e);
        if (e->failed) {
            (void)trib_engine_end(e);
            return e->failed;
        }
        sched_yield();
    } while (!trib_deadline_passed(until));
    char text[500];
    snprintf(
        text, sizeof(text),
        "rank %d (host %s, process %d) cannot be reached from rank %d, operation %s, "
        "phase connect: %s",
        peer, p->host, p->pid, e->rank, operation, why);
    trib_engine_fail(e, st, text);
    return st;
}

trib_status_t trib_engine_connect(struct trib_engine *e, int peer,
                                  const char *operation)
{
    return connect_peer(e, peer, operation, true);
}

trib_status_t trib_engine_reach(struct trib_engine *e, int peer, const char *operation)
{
    return connect_peer(e, peer, operation, false);
}
