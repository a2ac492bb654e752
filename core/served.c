/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that are served: the public calls, on a plan of the channel or of the spare.
 */
#include "core/served.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/keep.h"

bool trib_service_takes(const struct trib_comm *comm, trib_coll_t coll,
                        const trib_desc_t *desc, bool leaving)
{
    const char *algorithm = desc->algorithm ? desc->algorithm : comm->cfg.algorithm;

    return comm->service && coll == TRIB_ALLREDUCE && !leaving &&
           (strcmp(algorithm, "auto") == 0 || strcmp(algorithm, "service") == 0);
}

/* Making ---------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

static trib_status_t refused(struct trib_served *s, const struct trib_comm *by,
                             trib_status_t st)
{
    return trib_comm_fail(s->service->home, st, "%s", trib_last_error(by));
}

/*
 * Of a vector's rounds one goes up while another comes down: there should be some. The chunks
 * of a channel are those of networks; smaller ones, where they make too few rounds.
 */
static size_t chunk_on(const struct trib_served *s, const struct trib_comm *channel)
{
    const size_t least = s->service->home->chunk_asked, most = channel->cfg.chunk;
    const size_t bytes = s->desc.count * trib_dtype_size(s->desc.dtype);
    const size_t good = bytes / ((size_t)channel->channel->services * TRIB_ROUNDS_GOOD);

    if (s->desc.chunk || least >= most || good >= most)
        return s->desc.chunk;
    return good < least ? least : good / 4096 * 4096;
}

static trib_status_t make_on(struct trib_served *s, struct trib_comm *comm,
                             struct trib_plan **out)
{
    trib_desc_t desc = s->desc;

    desc.algorithm = "auto";
    if (comm->channel)
        desc.chunk = chunk_on(s, comm);
    return trib_plan_make(comm, s->coll, &desc, false, out);
}

static trib_status_t make_confirm(struct trib_comm *channel, struct trib_plan **out)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.dtype = TRIB_I8;
    return trib_plan_make(channel, TRIB_BARRIER, &desc, false, out);
}

static void link_served(struct trib_served *s)
{
    struct trib_served **end = &s->service->first;

    while (*end)
        end = &(*end)->next;
    *end = s;
}

static void unlink_served(struct trib_served *s)
{
    struct trib_served **at = &s->service->first;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
}

trib_status_t trib_served_make(struct trib_plan *plan, trib_coll_t coll,
                               const trib_desc_t *desc)
{
    struct trib_service *v = plan->comm->service;
    struct trib_served *s = calloc(1, sizeof(*s));

    if (!s)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    plan->served = s;
    s->service = v;
    s->coll = coll;
    s->desc = *desc;
    s->desc.codec = copy_text(desc->codec);
    s->desc.feedback = copy_text(desc->feedback);
    s->desc.algorithm = NULL;
    if ((desc->codec && !s->desc.codec) || (desc->feedback && !s->desc.feedback))
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    link_served(s);
    if (trib_service_lost(v))
        trib_service_recover(v);
    struct trib_comm *by = v->channel ? v->channel : v->spare;
    trib_status_t st = make_on(s, by, &s->now);
    if (st == TRIB_OK && v->channel)
        st = make_confirm(by, &s->confirm);
    if (st != TRIB_OK && trib_service_lost(v)) {
        trib_service_recover(v); /* makes what there is no plan for, too */
        st = v->broken;
    } else if (st != TRIB_OK) {
        return refused(s, by, st);
    }
    return st;
}

void trib_served_destroy(struct trib_served *s)
{
    if (!s)
        return;
    unlink_served(s);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    free((char *)(uintptr_t)s->desc.codec);
    free((char *)(uintptr_t)s->desc.feedback);
    free(s->fed);
    free(s);
}

struct trib_plan *trib_served_plan(struct trib_served *s)
{
    return s->now;
}

/* Starts under way ------------------------------------------------------------------------ */

static void push(struct trib_served *s)
{
    struct trib_service *v = s->service;

    s->newer = NULL;
    s->pending = true;
    s->ordinal = ++v->started;
    if (v->newest)
        v->newest->newer = s;
    else
        v->oldest = s;
    v->newest = s;
}

void trib_served_pop(struct trib_service *v, trib_status_t status)
{
    struct trib_served *s = v->oldest;

    v->oldest = s->newer;
    if (!v->oldest)
        v->newest = NULL;
    s->pending = false;
    s->status = status;
    v->served += status == TRIB_OK && s->confirm;
    s->n_fed = 0;
}

static bool done_well(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.state, memory_order_acquire) == TRIB_RUN_DONE &&
           plan->run.status == TRIB_OK;
}

bool trib_served_confirmed(const struct trib_served *s)
{
    return s->confirm && s->confirm->run.step == s->now->run.step - s->now->loaded &&
           done_well(s->confirm);
}

/* The buffers of a start are its own, not those of the description: trib_plan_run. */
static trib_status_t start_plan(struct trib_plan *plan, const void *send, void *recv)
{
    plan->send = send;
    plan->recv = recv;
    return trib_plan_start(plan);
}

static trib_status_t start_both(struct trib_served *s)
{
    trib_status_t st = start_plan(s->now, s->send, s->recv);

    if (st == TRIB_OK && s->confirm)
        st = trib_plan_start(s->confirm);
    return st;
}

/*
 * On a channel a plan counts its starts from 0, as its barrier does. Back on the spare `loaded`
 * is what it was: it must be that of ranks whose plan has not come to the channel.
 */
static void adopt(struct trib_served *s, struct trib_plan *plan)
{
    trib_run_adopt(&plan->run, &s->now->run);
    if (plan->comm->channel) {
        s->elsewhere = s->now->loaded - s->now->run.step;
        plan->loaded = plan->run.step;
    } else {
        plan->loaded = s->now->loaded + s->elsewhere;
        s->elsewhere = 0;
    }
    plan->run.desc.digest = plan->run.frame.digest = trib_plan_digest(plan);
}

trib_status_t trib_served_move(struct trib_served *s, struct trib_comm *to)
{
    struct trib_plan *plan, *confirm = NULL;

    trib_status_t st = make_on(s, to, &plan);
    if (st == TRIB_OK && to->channel)
        st = make_confirm(to, &confirm);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    if (s->now)
        adopt(s, plan);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    s->confirm = confirm;
    s->now = plan;
    return TRIB_OK;
}

trib_status_t trib_served_again(struct trib_served *s)
{
    trib_status_t st = start_both(s);

    for (size_t i = 0; st == TRIB_OK && i < s->n_fed; i++)
        st = trib_plan_ready(s->now, s->fed[i].first, s->fed[i].count);
    return st;
}

bool trib_served_waits(const struct trib_served *s)
{
    size_t named = 0;

    for (size_t i = 0; i < s->n_fed; i++)
        named += s->fed[i].count;
    return s->desc.feed != TRIB_FEED_WHOLE && named < s->desc.count;
}

/* Which channel there is, and with it the plan, before a start: the same on all ranks. */
static void find_way(struct trib_served *s)
{
    struct trib_service *v = s->service;

    for (;;) {
        if (v->channel && v->way.look)
            v->way.look(v->way.arg);
        if (v->channel && v->way.found && v->way.found(v->way.arg))
            trib_service_leave(v);
        if (trib_service_lost(v))
            trib_service_recover(v);
        if (!v->channel && v->ask_at && !v->broken)
            trib_service_turn(v, s);
        if (v->broken || !v->channel || s->now->comm == v->channel)
            return;
        const trib_status_t st = trib_served_move(s, v->channel);
        if (st == TRIB_OK)
            return;
        trib_comm_lock(v->channel);
        trib_engine_fail(&v->channel->engine, st, trib_last_error(v->channel));
        trib_comm_unlock(v->channel);
    }
}

/* The public calls ------------------------------------------------------------------------ */

trib_status_t trib_served_start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_served *s = plan->served;
    struct trib_service *v = s->service;

    if (s->pending)
        return trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                              "the plan was started before and is not done: wait first");
    find_way(s);
    if (v->broken)
        return v->broken;
    s->send = send;
    s->recv = recv;
    s->n_fed = 0;
    s->step_before = s->now->run.step;
    trib_status_t st = start_both(s);
    if (st != TRIB_OK && !trib_service_lost(v))
        return refused(s, s->now->comm, st);
    push(s);
    if (st == TRIB_OK)
        return TRIB_OK;
    trib_service_recover(v);
    return v->broken;
}

static trib_status_t note_fed(struct trib_served *s, size_t first, size_t count)
{
    if (s->n_fed == s->room_fed) {
        const size_t room = s->room_fed ? 2 * s->room_fed : 16;
        struct trib_fed *fed = realloc(s->fed, room * sizeof(*fed));
        if (!fed)
            return trib_comm_fail(s->service->home, TRIB_ERR_NO_MEMORY,
                                  "no memory to note what was named by trib_plan_ready");
        s->fed = fed;
        s->room_fed = room;
    }
    s->fed[s->n_fed++] = (struct trib_fed){first, count};
    return TRIB_OK;
}

trib_status_t trib_served_ready(struct trib_plan *plan, size_t first, size_t count)
{
    struct trib_served *s = plan->served;
    struct trib_service *v = s->service;

    if (trib_service_lost(v))
        trib_service_recover(v);
    if (v->broken)
        return v->broken;
    trib_status_t st = trib_plan_ready(s->now, first, count);
    if (st == TRIB_OK)
        return note_fed(s, first, count);
    if (!trib_service_lost(v))
        return refused(s, s->now->comm, st);
    st = note_fed(s, first, count);
    trib_service_recover(v);
    return st == TRIB_OK ? v->broken : st;
}

/* One look at the oldest start: is it done, and was it lost? */
static void advance(struct trib_service *v)
{
    struct trib_served *s = v->oldest;

    if (trib_service_lost(v)) {
        trib_service_recover(v);
        return;
    }
    struct trib_plan *last = s->confirm ? s->confirm : s->now;
    trib_status_t st = trib_plan_test(last);
    if (st == TRIB_INPROGRESS || trib_service_lost(v))
        return;
    if (st == TRIB_OK) {
        v->confirmed = s->ordinal;
        trib_served_pop(v, TRIB_OK);
        return;
    }
    /* Of the spare: as any communicator's. */
    (void)refused(s, last->comm, st);
    trib_service_give_up(v, v->spare, st);
}

/* Drives until the oldest start is done, or lost. */
static void wait_oldest(struct trib_service *v)
{
    struct trib_served *oldest = v->oldest;

    if (!trib_service_lost(v))
        (void)trib_plan_wait(oldest->confirm ? oldest->confirm : oldest->now);
    advance(v);
}

void trib_served_finish(struct trib_service *v)
{
    while (v->oldest)
        wait_oldest(v);
}

trib_status_t trib_served_test(struct trib_plan *plan)
{
    struct trib_served *s = plan->served;

    if (s->pending)
        advance(s->service);
    return s->pending ? TRIB_INPROGRESS : s->status;
}

trib_status_t trib_served_wait(struct trib_plan *plan)
{
    struct trib_served *s = plan->served;

    while (s->pending)
        wait_oldest(s->service);
    return s->status;
}

bool trib_served_busy(const struct trib_plan *plan)
{
    return plan->served->pending;
}

static trib_status_t idle(struct trib_plan *plan, const char *call)
{
    return plan->served->pending
               ? trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                                "the plan still runs: wait for it before %s", call)
               : trib_comm_ours(plan->comm, call);
}

static trib_status_t answer(struct trib_plan *plan, trib_status_t st)
{
    return st == TRIB_OK ? st : refused(plan->served, plan->served->now->comm, st);
}

trib_status_t trib_served_state_save(struct trib_plan *plan, void *state, size_t bytes,
                                     size_t *bytes_out)
{
    trib_status_t st = idle(plan, "trib_plan_state_save");

    return st != TRIB_OK ? st
                         : answer(plan, trib_plan_state_save(plan->served->now, state, bytes,
                                                             bytes_out));
}

trib_status_t trib_served_state_load(struct trib_plan *plan, const void *state, size_t bytes)
{
    trib_status_t st = idle(plan, "trib_plan_state_load");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_state_load(plan->served->now, state, bytes));
}

trib_status_t trib_served_sent(struct trib_plan *plan, const unsigned char **mask_out,
                               size_t *sent_out)
{
    trib_status_t st = idle(plan, "trib_plan_sent");

    return st != TRIB_OK
               ? st
               : answer(plan, trib_plan_sent(plan->served->now, mask_out, sent_out));
}
