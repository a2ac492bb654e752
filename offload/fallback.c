/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/fallback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/offload_plan.h"
#include "pipeline/payload/undo_log.h"

enum { COUNCIL_CHUNK = 4096 };

/* While the home's engine waits, with its lock. */
static void look_from_home(void *arg)
{
    struct trib_service *v = arg;

    v->in_home = true;
    trib_service_look(v->home);
    v->in_home = false;
}

/* It carries a few numbers at a time. */
static struct trib_config council_settings(const struct trib_comm *home)
{
    struct trib_config cfg = home->cfg;

    cfg.window = 1;
    cfg.chunk = COUNCIL_CHUNK;
    cfg.origin[TRIB_CONFIG_ROW_chunk] = TRIB_ORIGIN_API; /* not to be enlarged */
    cfg.encode_threads = 0;
    return cfg;
}

trib_status_t trib_service_attach(struct trib_comm *comm)
{
    const struct trib_config small = council_settings(comm);
    struct trib_service *v = calloc(1, sizeof(*v));
    struct trib_comm *spare = NULL, *council = NULL, *confirms = NULL;

    trib_status_t st = trib_split(comm, 0, 0, &spare);
    if (st == TRIB_OK)
        st = trib_comm_again(comm, &small, &council);
    if (st == TRIB_OK)
        st = trib_comm_again(comm, &small, &confirms);
    if (st == TRIB_OK && !v)
        st = trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a service");
    if (st != TRIB_OK) {
        if (spare)
            trib_comm_dispose(spare);
        if (council)
            trib_comm_dispose(council);
        if (confirms)
            trib_comm_dispose(confirms);
        free(v);
        return st;
    }
    spare->stands_in = true;
    v->home = comm;
    v->spare = spare;
    v->council = council;
    v->confirms = confirms;
    v->stride = 1;
    comm->service = v;
    comm->engine.aside = look_from_home;
    comm->engine.aside_arg = v;
    return TRIB_OK;
}

/* Barriers that are under way come to nothing; of a rank that goes on none is awaited any more. */
static void stop_confirms(struct trib_service *v)
{
    struct trib_comm *confirms = v->confirms;

    if (!confirms)
        return;
    trib_driver_stop(confirms);
    if (confirms->engine.head)
        trib_engine_fail(&confirms->engine, TRIB_ERR_ABORTED, "the service is left");
}

static void dispose_channel(struct trib_service *v)
{
    struct trib_comm *channel = v->channel, *confirms = v->confirms;

    stop_confirms(v);
    trib_quorum_drop_barriers(v);
    v->channel = v->confirms = NULL;
    if (channel)
        trib_channel_dispose(channel);
    if (confirms)
        trib_comm_dispose(confirms);
}

static void forget(struct trib_service *v)
{
    struct trib_comm *comm = v->home;

    if (v->way.free)
        v->way.free(v->way.arg);
    trib_quorum_drop(v);
    free(v);
    comm->service = NULL;
    comm->engine.aside = NULL;
}

void trib_service_drop(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;

    if (!v)
        return;
    dispose_channel(v);
    trib_council_close(v);
    trib_comm_dispose(v->council);
    trib_comm_dispose(v->spare);
    forget(v);
}

/* Recovery -------------------------------------------------------------------------------- */

/* How far all ranks are, and have all done; said has more. */
static trib_status_t agree(struct trib_service *v)
{
    const int64_t say[TRIB_SAY_WORDS] = {
        [TRIB_SAY_CONFIRMED] = (int64_t)v->confirmed,
        [TRIB_SAY_STARTED] = (int64_t)v->started,
        [TRIB_SAY_LEAVING] = v->leaving,
        [TRIB_SAY_LOST] = trib_service_lost(v),
        [TRIB_SAY_ENDED] = (int64_t)v->ended,
    };

    return trib_council_meet(v, say);
}

/* That failed as well: a rank is lost, and the communicator with it. */
void trib_service_give_up(struct trib_service *v, const struct trib_comm *by, trib_status_t st)
{
    char text[sizeof(v->home->err.text)];

    snprintf(text, sizeof(text), "%s", trib_last_error(by));
    v->broken = st;
    if (!v->in_home)
        trib_comm_lock(v->home);
    trib_engine_fail(&v->home->engine, st, text);
    if (!v->in_home)
        trib_comm_unlock(v->home);
    while (v->oldest)
        trib_served_pop(v, st);
    for (struct trib_served *s = v->first; s; s = s->next)
        trib_served_close(s, st);
    if (v->way.lost)
        v->way.lost(v->way.arg);
}

/* What the channel has not done, the spare does. */
static trib_status_t move_to_spare(struct trib_service *v, uint64_t done)
{
    trib_status_t st = TRIB_OK;

    while (v->oldest && v->oldest->ordinal <= done)
        trib_served_pop(v, TRIB_OK);
    for (struct trib_served *s = v->oldest; s; s = s->newer)
        if (s->now->run.step != s->step_before)
            trib_keep_restore(&s->now->run);
    v->confirmed = done;
    trib_quorum_forget(v, true);
    for (struct trib_served *s = v->first; s && st == TRIB_OK; s = s->next)
        if (!s->now || s->now->comm != v->spare) /* it may not have come to the channel */
            st = trib_served_move(s, v->spare);
    for (struct trib_served *s = v->oldest; s && st == TRIB_OK; s = s->newer)
        st = trib_served_again(s);
    return st;
}

static void say_what_happened(const struct trib_service *v, uint64_t done)
{
    uint64_t pending = 0;

    for (struct trib_served *s = v->oldest; s; s = s->newer)
        pending += s->ordinal > done;
    if (v->said[TRIB_SAY_LEAVING])
        trib_log(&v->home->log, TRIB_LOG_INFO, "service",
                 "more services can be had: the ranks leave these after operation %" PRIu64
                 ", %" PRIu64 " operation%s of this one %s done again",
                 done, pending, pending == 1 ? "" : "s", pending == 1 ? "is" : "are");
    else
        trib_log(&v->home->log, TRIB_LOG_WARN, "service",
                 "%s; the ranks go on without the service, %" PRIu64
                 " operations of this one are done again",
                 trib_last_error(v->channel), pending);
}

/* What ranks have said of the channel that some, or all, have lost. */
static trib_status_t settle(struct trib_service *v, uint64_t *done_out, struct trib_comm **by_out)
{
    const uint64_t done = (uint64_t)v->said[TRIB_SAY_CONFIRMED];
    const uint64_t ended = (uint64_t)v->said[TRIB_SAY_ENDED];

    *done_out = ended > done ? ended : done;
    return ended > done ? trib_quorum_settle(v, done, ended, by_out) : TRIB_OK;
}

void trib_service_recover(struct trib_service *v)
{
    struct trib_comm *by = v->council;
    uint64_t done;

    if (!v->channel || v->recovering)
        return;
    v->recovering = true;
    trib_driver_stop(v->channel);
    trib_served_count(v);
    trib_quorum_end_all(v);
    trib_status_t st = agree(v);
    if (st == TRIB_OK) {
        v->ask_at = v->way.open ? (uint64_t)v->said[TRIB_SAY_STARTED] + 1 : 0;
        say_what_happened(v, (uint64_t)v->said[TRIB_SAY_CONFIRMED]);
        st = settle(v, &done, &by);
    }
    stop_confirms(v);
    if (st == TRIB_OK) {
        by = v->spare;
        st = move_to_spare(v, done);
    }
    v->leaving = false;
    v->recovering = false;
    if (st != TRIB_OK) { /* plans that have not left the channel are there until they are freed */
        trib_service_give_up(v, by, st);
        return;
    }
    dispose_channel(v);
    if (v->way.lost)
        v->way.lost(v->way.arg);
}

void trib_service_leave(struct trib_service *v)
{
    v->leaving = true;
    trib_comm_lock(v->channel);
    trib_engine_fail(&v->channel->engine, TRIB_ERR_ABORTED, "more services can be had");
    trib_comm_unlock(v->channel);
}

/*
 * One agreement, whether the channel failed or not: a rank that is here may be awaited by
 * ranks for whom it failed, and what all ranks say to the council must be the same. It may have
 * results that they have not.
 */
trib_status_t trib_service_detach(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;
    struct trib_comm *by = v ? v->council : NULL;
    trib_status_t st = TRIB_OK;
    uint64_t done;

    if (!v)
        return TRIB_OK;
    if (comm->engine.failed) /* nobody to agree with */
        v->broken = comm->engine.failed;
    if (!v->broken && v->channel) {
        trib_driver_stop(v->channel);
        st = agree(v);
        if (st == TRIB_OK && v->said[TRIB_SAY_LOST])
            st = settle(v, &done, &by);
    } else if (!v->broken && v->asking) {
        st = trib_council_hear(v);
    }
    if (st != TRIB_OK)
        trib_service_give_up(v, by, st);
    dispose_channel(v);
    trib_council_close(v);
    if (comm->engine.failed) {
        trib_comm_dispose(v->council);
        trib_comm_dispose(v->spare);
    } else {
        const trib_status_t left = trib_free_comm(v->council);
        st = trib_free_comm(v->spare);
        st = st == TRIB_OK ? left : st;
    }
    forget(v);
    return st;
}

bool trib_service_lost(const struct trib_service *v)
{
    return !v->broken && v->channel && v->channel->engine.failed;
}

/* With its lock. */
static void drive(struct trib_engine *e)
{
    if (trib_engine_progress(e))
        trib_engine_awake(e);
    else
        (void)trib_engine_look(e);
}

void trib_service_look(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;

    if (!v || !v->channel || v->recovering || v->broken)
        return;
    if (v->way.look)
        v->way.look(v->way.arg);
    if (!v->channel->engine.failed && trib_comm_try_lock(v->channel)) {
        drive(&v->channel->engine);
        trib_comm_unlock(v->channel);
    }
    if (v->confirms && trib_comm_try_lock(v->confirms)) {
        if (v->confirms->engine.head)
            drive(&v->confirms->engine);
        trib_comm_unlock(v->confirms);
    }
    if (trib_service_lost(v))
        trib_service_recover(v);
}

/* Memory ---------------------------------------------------------------------------------- */

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

void trib_service_register(struct trib_comm *comm, void *ptr, size_t bytes)
{
    if (!comm->service)
        return;
    register_in(comm->service->channel, ptr, bytes);
    register_in(comm->service->spare, ptr, bytes);
}

void trib_service_register_all(struct trib_service *v)
{
    const struct trib_memories *m = &v->home->engine.memories;

    for (size_t i = 0; i < m->n; i++)
        register_in(v->channel, m->list[i].ptr, m->list[i].bytes);
}

static void deregister_in(struct trib_comm *comm, void *ptr)
{
    if (!comm)
        return;
    trib_comm_lock(comm);
    if (comm->engine.failed)
        trib_engine_part(&comm->engine);
    (void)trib_memory_remove(&comm->engine.memories, ptr, false, comm->engine.failed != TRIB_OK);
    trib_comm_unlock(comm);
}

trib_status_t trib_service_deregister(struct trib_comm *comm, void *ptr)
{
    struct trib_service *v = comm->service;

    if (!v)
        return TRIB_OK;
    for (const struct trib_served *s = v->first; s; s = s->next)
        if (s->open)
            return TRIB_ERR_BUSY;
    deregister_in(v->channel, ptr);
    deregister_in(v->spare, ptr);
    return TRIB_OK;
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
    trib_comm_unlock(comm);
}

static void mark_connected(struct trib_comm *comm, int ranks, bool *connected)
{
    if (!comm)
        return;
    trib_comm_lock(comm);
    for (int r = 0; r < ranks; r++)
        connected[r] |= comm->engine.links[r].connected;
    trib_comm_unlock(comm);
}

/* Ranks, however many connections there are to each. */
static void count_peers(const struct trib_service *v, trib_stats_t *stats)
{
    const int ranks = v->home->engine.ranks;
    bool *connected = calloc((size_t)ranks, sizeof(*connected));

    if (!connected)
        return;
    mark_connected(v->home, ranks, connected);
    mark_connected(v->channel, ranks, connected);
    mark_connected(v->spare, ranks, connected);
    stats->peers = 0;
    for (int r = 0; r < ranks; r++)
        stats->peers += connected[r];
    free(connected);
}

void trib_service_stats(const struct trib_comm *comm, trib_stats_t *stats)
{
    if (!comm->service)
        return;
    count_peers(comm->service, stats);
    add_stats(comm->service->channel, stats);
    add_stats(comm->service->spare, stats);
    stats->served = comm->service->served;
}
