/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/served.h"
#include "pipeline/keep.h"

/* While the home's engine waits, with its lock. */
static void look_from_home(void *arg)
{
    struct trib_service *v = arg;

    v->in_home = true;
    trib_service_look(v->home);
    v->in_home = false;
}

trib_status_t trib_service_attach(struct trib_comm *comm, struct trib_comm *channel,
                                  struct trib_comm *spare)
{
    struct trib_service *v = calloc(1, sizeof(*v));

    if (!v)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a service");
    v->home = comm;
    v->channel = channel;
    v->spare = spare;
    comm->service = v;
    comm->engine.aside = look_from_home;
    comm->engine.aside_arg = v;
    return TRIB_OK;
}

static void lose_channel(struct trib_service *v)
{
    struct trib_comm *channel = v->channel;

    v->channel = NULL;
    if (channel)
        trib_channel_dispose(channel);
    if (v->gone)
        v->gone(v->arg);
    v->gone = NULL;
}

void trib_service_drop(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;

    if (!v)
        return;
    lose_channel(v);
    trib_comm_dispose(v->spare);
    free(v);
    comm->service = NULL;
    comm->engine.aside = NULL;
}

/* Recovery -------------------------------------------------------------------------------- */

/* Starts whose barrier this rank has left; the rest stays in the list. */
static void count_confirmed(struct trib_service *v)
{
    while (v->oldest && trib_served_confirmed(v->oldest)) {
        v->confirmed = v->oldest->ordinal;
        trib_served_pop(v, TRIB_OK);
    }
}

/* The largest number of confirmed starts of all ranks. */
static trib_status_t agree(struct trib_service *v, uint64_t *out)
{
    int64_t mine = (int64_t)v->confirmed;
    struct trib_plan *plan;
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.count = 1;
    desc.dtype = TRIB_I64;
    desc.op = TRIB_MAX;
    desc.codec = "none";
    desc.algorithm = "auto";
    trib_status_t st = trib_plan_make(v->spare, TRIB_ALLREDUCE, &desc, false, &plan);
    if (st == TRIB_OK)
        st = trib_plan_run(plan, NULL, &mine);
    trib_plan_destroy(plan);
    *out = (uint64_t)mine;
    return st;
}

/* The spare failed as well: a rank is lost, and the communicator with it. */
void trib_service_give_up(struct trib_service *v, trib_status_t st)
{
    char text[sizeof(v->home->err.text)];

    snprintf(text, sizeof(text), "%s", trib_last_error(v->spare));
    v->broken = st;
    if (!v->in_home)
        trib_comm_lock(v->home);
    trib_engine_fail(&v->home->engine, st, text);
    if (!v->in_home)
        trib_comm_unlock(v->home);
    while (v->oldest)
        trib_served_pop(v, st);
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
    for (struct trib_served *s = v->first; s && st == TRIB_OK; s = s->next)
        st = trib_served_move(s, v->spare);
    for (struct trib_served *s = v->oldest; s && st == TRIB_OK; s = s->newer)
        st = trib_served_again(s);
    return st;
}

void trib_service_recover(struct trib_service *v)
{
    uint64_t done, pending = 0;

    if (!v->channel || v->recovering)
        return;
    v->recovering = true;
    trib_driver_stop(v->channel);
    count_confirmed(v);
    trib_status_t st = agree(v, &done);
    for (struct trib_served *s = v->oldest; s; s = s->newer)
        pending += s->ordinal > done;
    trib_log(&v->home->log, TRIB_LOG_WARN, "service",
             "%s; the ranks go on without the service, %" PRIu64 " operations of this one are "
             "done again",
             trib_last_error(v->channel), pending);
    if (st == TRIB_OK)
        st = move_to_spare(v, done);
    if (st != TRIB_OK)
        trib_service_give_up(v, st);
    lose_channel(v);
    v->recovering = false;
}

/*
 * One agreement, whether the channel failed or not: a rank that is here may be awaited by
 * ranks for whom it failed, and what all ranks do over the spare must be the same.
 */
trib_status_t trib_service_detach(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;
    trib_status_t st = TRIB_OK;
    uint64_t done;

    if (!v)
        return TRIB_OK;
    if (v->channel && !v->broken) {
        trib_driver_stop(v->channel);
        st = agree(v, &done);
        if (st != TRIB_OK)
            trib_service_give_up(v, st);
    }
    lose_channel(v);
    if (comm->engine.failed)
        trib_comm_dispose(v->spare);
    else
        st = trib_free_comm(v->spare);
    free(v);
    comm->service = NULL;
    comm->engine.aside = NULL;
    return st;
}

bool trib_service_lost(const struct trib_service *v)
{
    return v->channel && v->channel->engine.failed;
}

void trib_service_look(struct trib_comm *comm)
{
    struct trib_service *v = comm->service;

    if (!v || !v->channel || v->recovering)
        return;
    if (v->look)
        v->look(v->arg);
    if (!v->channel->engine.failed && trib_comm_try_lock(v->channel)) {
        if (trib_engine_progress(&v->channel->engine))
            trib_engine_awake(&v->channel->engine);
        else
            (void)trib_engine_look(&v->channel->engine);
        trib_comm_unlock(v->channel);
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
    if (v->oldest)
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
    for (int r = 0; r < e->size; r++)
        stats->peers += e->links[r].connected;
    trib_comm_unlock(comm);
}

void trib_service_stats(const struct trib_comm *comm, trib_stats_t *stats)
{
    if (!comm->service)
        return;
    add_stats(comm->service->channel, stats);
    add_stats(comm->service->spare, stats);
    stats->served = comm->service->served;
}
