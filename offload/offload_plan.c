/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that are served: the public calls, on a plan of the channel or of the spare.
 */
#include "offload/offload_plan.h"

#include <stdlib.h>
#include <string.h>

#include "comm/configured.h"
#include "pipeline/payload/undo_log.h"

enum {
    CHUNK_LEAST = 32 << 10, /* of dense vectors on a channel, unless somebody asks for less */
    WORD_MOST = 48 << 10,
    CHANNEL_ROUNDS_GOOD = 192,
};

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

/* Is what it loses that of buckets, which chunks do not cut? */
static bool by_buckets(const struct trib_codec_info *codec)
{
    return codec->flags & TRIB_CODEC_LINEAR && !(codec->flags & TRIB_CODEC_MODEL);
}

/*
 * The chunks of all ranks meet at a service, and a sum ends a trip after the last of them is up:
 * over networks dense vectors have chunks of 32 KiB, so that less is on the way then, or larger
 * ones where these are rounds enough and save messages; words of integers are of 48 KiB at most.
 * Within load/store reach dense chunks are as large as stays in a cache, and as many bytes of
 * integers cost as much to pass on: these are of more elements.
 * Other code words stay as they are: what is lost does not depend on the way, and sparse ones
 * cost by their number, however short.
 */
static size_t chunk_by(const struct trib_codec *codec, size_t good, size_t most, bool near)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const size_t least = most < CHUNK_LEAST ? most : CHUNK_LEAST;
    size_t chunk = most;

    if (info->flags & TRIB_CODEC_IDENTITY)
        return good >= most || near ? 0 : good < least ? least : good / 4096 * 4096;
    if (!by_buckets(info))
        return 0;
    if (near)
        return TRIB_CHANNEL_CHUNKS_OF_WORD * most;
    while (chunk > least && trib_codec_bound(codec, chunk / sizeof(float)) > WORD_MOST)
        chunk /= 2;
    return chunk;
}

/* 0: the usual one */
static size_t chunk_on(const struct trib_served *s, const struct trib_comm *channel)
{
    const size_t bytes = s->desc.count * trib_dtype_size(s->desc.dtype);
    const size_t good = bytes / ((size_t)channel->channel->services * CHANNEL_ROUNDS_GOOD);
    const char *text = trib_codec_of(channel, s->coll, &s->desc);
    struct trib_codec *codec;

    if (s->desc.chunk || s->service->home->chunk_given ||
        trib_codec_create(text, NULL, NULL, &codec) != TRIB_OK) /* as the plan will tell */
        return s->desc.chunk;
    const size_t chunk = chunk_by(codec, good, channel->cfg.chunk, channel->load_store);
    trib_codec_destroy(codec);
    return chunk;
}

static trib_status_t make_on(struct trib_served *s, struct trib_comm *comm,
                             struct trib_plan **out)
{
    trib_desc_t desc = s->desc;

    desc.algorithm = "auto";
    if (comm->channel)
        desc.chunk = chunk_on(s, comm);
    const trib_status_t st = trib_plan_make(comm, s->coll, &desc, false, out);
    if (st == TRIB_OK)
        (*out)->identity.inner = true;
    return st;
}

/* The barrier behind each start of a plan of the channel. */
static trib_status_t make_confirm(const struct trib_service *v, const struct trib_plan *plan,
                                  struct trib_plan **out)
{
    struct trib_comm *by = plan->run.desc.quorum.need ? v->confirms : plan->comm;
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.dtype = TRIB_I8;
    return trib_plan_make(by, TRIB_BARRIER, &desc, false, out);
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
    s->absent = calloc((size_t)plan->comm->engine.ranks, sizeof(*s->absent));
    s->coll = coll;
    s->desc = *desc;
    s->desc.codec = copy_text(desc->codec);
    s->desc.feedback = copy_text(desc->feedback);
    s->desc.quorum = copy_text(desc->quorum);
    s->desc.name = copy_text(desc->name);
    s->desc.algorithm = NULL;
    if ((desc->codec && !s->desc.codec) || (desc->feedback && !s->desc.feedback) ||
        (desc->quorum && !s->desc.quorum) || (desc->name && !s->desc.name) ||
        !s->absent)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    link_served(s);
    if (trib_service_lost(v))
        trib_service_recover(v);
    struct trib_comm *by = v->channel && !v->broken ? v->channel : v->spare;
    trib_status_t st = make_on(s, by, &s->now);
    if (st == TRIB_OK && by->channel)
        st = make_confirm(v, s->now, &s->confirm);
    if (st == TRIB_OK)
        st = trib_quorum_make(s);
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
    trib_quorum_free(s);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    free((char *)(uintptr_t)s->desc.codec);
    free((char *)(uintptr_t)s->desc.feedback);
    free((char *)(uintptr_t)s->desc.quorum);
    free((char *)(uintptr_t)s->desc.name);
    free(s->absent);
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
    s->pending = s->open = true;
    s->ordinal = ++v->started;
    if (v->newest)
        v->newest->newer = s;
    else
        v->oldest = s;
    v->newest = s;
}

void trib_served_drop(struct trib_served *s)
{
    struct trib_service *v = s->service;
    struct trib_served *before = NULL;

    if (!s->pending)
        return;
    for (struct trib_served *t = v->oldest; t != s; t = t->newer)
        before = t;
    if (before)
        before->newer = s->newer;
    else
        v->oldest = s->newer;
    if (v->newest == s)
        v->newest = before;
    s->pending = false;
}

void trib_served_close(struct trib_served *s, trib_status_t status)
{
    if (!s->open)
        return;
    s->open = false;
    s->status = status;
    s->n_fed = 0;
}

void trib_served_pop(struct trib_service *v, trib_status_t status)
{
    struct trib_served *s = v->oldest;

    trib_served_drop(s);
    if (!s->open)
        return;
    v->served += status == TRIB_OK && s->confirm;
    trib_served_close(s, status);
}

bool trib_served_done_well(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.state, memory_order_acquire) == TRIB_RUN_DONE &&
           plan->run.status == TRIB_OK;
}

static void pop_to(struct trib_service *v, uint64_t ordinal)
{
    trib_quorum_end_all(v); /* so that each rank begins each barrier */
    if (ordinal > v->confirmed)
        v->confirmed = ordinal;
    while (v->oldest && v->oldest->ordinal <= ordinal)
        trib_served_pop(v, TRIB_OK);
    trib_quorum_forget(v, false);
}

void trib_served_count(struct trib_service *v)
{
    for (struct trib_served *s = v->first; s; s = s->next)
        if (s->confirm && s->covers > v->confirmed && trib_served_done_well(s->confirm))
            pop_to(v, s->covers);
    pop_to(v, v->confirmed);
}

static void number(struct trib_served *s)
{
    s->now->identity.of_calls = s->of_calls;
    trib_plan_number(s->now, s->service->home, s->number);
}

/* ordinal: of this start */
static trib_status_t start_both(struct trib_served *s, uint64_t ordinal)
{
    number(s);
    trib_status_t st = trib_plan_start_with(s->now, s->send, s->recv);

    if (st != TRIB_OK || !s->confirm || trib_served_has_quorum(s))
        return st;
    st = trib_plan_start(s->confirm);
    if (st == TRIB_OK)
        s->covers = ordinal;
    return st;
}

static void adopt(struct trib_served *s, struct trib_plan *plan)
{
    trib_identity_take(plan, s->now);
    trib_run_adopt(&plan->run, &s->now->run);
}

trib_status_t trib_served_move(struct trib_served *s, struct trib_comm *to)
{
    struct trib_plan *plan, *confirm = NULL;

    trib_status_t st = make_on(s, to, &plan);
    if (st == TRIB_OK && to->channel)
        st = make_confirm(s->service, plan, &confirm);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    if (s->now)
        adopt(s, plan);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    s->confirm = confirm;
    s->covers = 0;
    s->now = plan;
    return trib_quorum_make(s);
}

trib_status_t trib_served_again(struct trib_served *s)
{
    trib_status_t st = start_both(s, s->ordinal);

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

    while (!v->broken) {
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

    if (s->open)
        return trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                              "the plan was started before and is not done: wait first");
    find_way(s);
    while (!v->broken && trib_quorum_unconfirmed(s)) {
        trib_quorum_fence(s);
        find_way(s);
    }
    if (v->broken)
        return v->broken;
    s->send = send;
    s->recv = recv;
    s->number = ++v->home->starts;
    s->of_calls = plan->identity.of_calls;
    s->n_fed = 0;
    memset(s->absent, 0, (size_t)v->home->engine.ranks * sizeof(*s->absent));
    number(s); /* also of a first start that the others have ended: its number is in the key */
    if (trib_quorum_start_known(s))
        return TRIB_OK;
    s->step_before = s->now->run.step;
    trib_status_t st = start_both(s, v->started + 1);
    if (st != TRIB_OK && !trib_service_lost(v)) {
        v->home->starts--; /* nothing was started */
        return refused(s, s->now->comm, st);
    }
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
    if (s->due)
        return note_fed(s, first, count);
    trib_status_t st = trib_plan_ready(s->now, first, count);
    if (st == TRIB_OK)
        return note_fed(s, first, count);
    if (!trib_service_lost(v))
        return refused(s, s->now->comm, st);
    st = note_fed(s, first, count);
    trib_service_recover(v);
    return st == TRIB_OK ? v->broken : st;
}

/* What ends a start for its user: the barrier, with a quorum its own operation. */
static struct trib_plan *last_of(const struct trib_served *s)
{
    return s->confirm && !trib_served_has_quorum(s) ? s->confirm : s->now;
}

/*
 * While ranks wait at the channel, with its lock: the services tell that a rank is lost, but for
 * how long it was stopped before counts for those who then agree without it, too.
 */
static void look_at_ranks(void *arg)
{
    struct trib_service *v = arg;
    struct trib_engine *e = &v->council->engine;

    if (!e->failed && trib_comm_try_lock(v->council)) {
        (void)trib_engine_look(e);
        trib_comm_unlock(v->council);
    }
    if (e->failed)
        trib_engine_fail(&v->channel->engine, e->failed, trib_error_text(&e->failure));
}

/* As that, of a user who does not wait, but asks. */
static void look_meanwhile(struct trib_service *v)
{
    if (!v->channel || !trib_comm_try_lock(v->channel))
        return;
    look_at_ranks(v);
    trib_comm_unlock(v->channel);
}

/* One look at an open start: is it done, and was it lost? */
static void advance(struct trib_served *s)
{
    struct trib_service *v = s->service;

    if (trib_service_lost(v)) {
        trib_service_recover(v);
        return;
    }
    if (s->due) {
        if (!trib_served_waits(s))
            trib_quorum_deliver_due(s);
        return;
    }
    struct trib_plan *last = last_of(s);
    trib_status_t st = trib_plan_test(last);
    if (st == TRIB_INPROGRESS)
        look_meanwhile(v);
    if (st == TRIB_INPROGRESS || trib_service_lost(v))
        return;
    if (st == TRIB_OK && trib_served_has_quorum(s)) {
        trib_quorum_end_all(v);
    } else if (st == TRIB_OK) {
        pop_to(v, s->ordinal);
    } else { /* Of the spare: as any communicator's. */
        (void)refused(s, last->comm, st);
        trib_service_give_up(v, v->spare, st);
    }
}

/* Drives until an open start is done, or lost. */
static void wait_for(struct trib_served *s)
{
    struct trib_service *v = s->service;

    if (v->channel && !v->channel->engine.aside) {
        v->channel->engine.aside_arg = v;
        v->channel->engine.aside = look_at_ranks;
    }
    if (!s->due && !trib_service_lost(v))
        (void)trib_plan_wait(last_of(s));
    advance(s);
}

void trib_served_finish(struct trib_service *v)
{
    while (v->oldest)
        wait_for(v->oldest);
}

trib_status_t trib_served_test(struct trib_plan *plan)
{
    struct trib_served *s = plan->served;

    if (s->open)
        advance(s);
    return s->open ? TRIB_INPROGRESS : s->status;
}

trib_status_t trib_served_wait(struct trib_plan *plan)
{
    struct trib_served *s = plan->served;

    while (s->open) {
        if (s->due && trib_served_waits(s))
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "the plan waits for elements that trib_plan_ready has not "
                                  "named");
        wait_for(s);
    }
    return s->status;
}

bool trib_served_busy(const struct trib_plan *plan)
{
    return plan->served->open;
}

void trib_served_absent(const struct trib_plan *plan, size_t *elements_out)
{
    const size_t ranks = (size_t)plan->comm->engine.ranks;

    memcpy(elements_out, plan->served->absent, ranks * sizeof(*elements_out));
}

static trib_status_t idle(struct trib_plan *plan, const char *call)
{
    return plan->served->open
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
