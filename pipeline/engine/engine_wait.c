/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/engine/engine_wait.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>

#include "base/text.h"
#include "base/time.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/short_path.h"
#include "pipeline/link/billboard.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"

enum {
    PAUSES_PER_US = 25, /* approximate number of trib_pause calls in a microsecond */
    EAGER = 64, /* polls without a pause: answers often arrive that soon */
    EAGER_NS = 8000, /* and for at most this time: a poll may be a system call */
    BUSY_PAUSES = 8, /* polls before a yield, with more ranks than cores */
    SHORT_LOOKS = 64, /* the same on the short path, while the missing peers run on
                       * other cores; takes less time than two context switches */
    LOOK_EVERY = 16, /* yields between two clock reads */
    POLL_NS = 5000000, /* between two polls of a transport that needs no polling */
    SLEEP_AFTER_NS = 3000000, /* time before a sleep, if all peers are mapped */
    SLEEP_US = 500, /* maximum sleep: the cost of a missed wake-up */
    NOTICE_NS = 100000000,
    IDLE_SLEEP_US = 50, /* the same, if the caller has an idle function */
};

static void notify_waiting(struct trib_engine *e)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING,
                                .frame = e->head->now.frame};

    for (uint32_t i = 0; i < e->head->program.n_neighbors; i++)
        (void)trib_link_notify(&e->links[e->head->program.neighbors[i].peer], &e->arena,
                               &n);
}

/* Return the peer that the first unfinished task of the active run waits for; -1 if the
 * run waits for the caller's data. what_out: "a contribution" or similar */
static int awaited_peer(const struct trib_engine *e, const char **what_out)
{
    const struct trib_program *p = &e->head->program;
    int shows;

    assert(e->head->now.state == TRIB_RUN_ACTIVE);
    *what_out = "a contribution";
    if (trib_short_awaits(e, e->head, &shows))
        return shows;
    for (uint32_t i = 0; i < p->n_neighbors; i++) {
        if (p->neighbors[i].advert_in) {
            *what_out = "its call";
            return p->neighbors[i].peer;
        }
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (trib_task_over(e->head, t))
            continue;
        if (t->kind == TRIB_TASK_COPY_IN || t->kind == TRIB_TASK_SEND) {
            struct trib_link *l = &e->links[p->neighbors[t->neighbor].peer];
            bool full = !trib_link_can_send(l, t->lane, e->arena.slot_bytes);
            bool asks = l->send[t->lane].grant == TRIB_GRANT_ASKED;
            *what_out = t->kind == TRIB_TASK_COPY_IN ? "a result"
                        : asks                       ? "a grant to send"
                                                     : "room in its slots";
            if (t->kind == TRIB_TASK_COPY_IN || full || asks)
                return l->peer;
        }
        for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_contribs; k++) {
            const struct trib_contrib *m = &p->contribs[t->contrib + k];
            int peer = p->neighbors[m->neighbor].peer;
            *what_out = "a contribution";
            if (!trib_link_peek(&e->links[peer], &e->arena, m->lane))
                return peer;
        }
    }
    for (uint32_t i = 0; i < p->n_neighbors; i++) {
        *what_out = "the completion of a write to the memory";
        if (e->links[p->neighbors[i].peer].n_zcopies)
            return p->neighbors[i].peer;
    }
    *what_out = "the rest of the input (trib_plan_ready)";
    return -1;
}

void trib_engine_awaits(const struct trib_engine *e, char *text, size_t bytes)
{
    const char *what = "";
    char who[128] = "this rank";

    assert(bytes > 0);
    text[0] = '\0';
    if (!e->head || e->head->now.state != TRIB_RUN_ACTIVE)
        return;
    const int peer = awaited_peer(e, &what);
    if (peer >= 0)
        trib_engine_name_rank(e, peer, who, sizeof(who));
    snprintf(text, bytes, "%s of %s", what, who);
}

/* Append what the devices have counted, if that may be the cause. */
static void append_trouble(const struct trib_engine *e, char *text, size_t bytes)
{
    char trouble[320] = "";

    if (e->transport)
        e->transport->ops->trouble(e->transport, trouble, sizeof(trouble));
    if (trouble[0])
        trib_text_append(text, bytes, "; RDMA counters since the start: %s", trouble);
}

static void time_out_p2p(struct trib_engine *e)
{
    char what[160], text[720];

    assert(e->p2p && e->p2p->active);
    e->p2p->ops->describe(e, what, sizeof(what));
    snprintf(text, sizeof(text),
             "rank %d made no progress for %d ms: its %s has no match on the peer "
             "(raise TRIB_TIMEOUT_MS if this is expected)",
             e->rank, e->cfg->timeout_ms, what);
    append_trouble(e, text, sizeof(text));
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, text);
}

static void time_out(struct trib_engine *e)
{
    char where[160], text[820], awaited[200];

    if (!e->head) {
        time_out_p2p(e);
        return;
    }
    const uint32_t limit = e->head->desc.limit_ms;
    trib_engine_awaits(e, awaited, sizeof(awaited));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text),
             "rank %d %s %d ms in %s: it waits for %s (raise %s if this is expected)",
             e->rank, limit ? "did not finish within" : "made no progress for",
             limit ? (int)limit : e->cfg->timeout_ms, where, awaited,
             limit ? "trib_desc_t.timeout_ms or trib_group_opts_t.timeout_ms"
                   : "TRIB_TIMEOUT_MS");
    append_trouble(e, text, sizeof(text));
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, text);
}

/* Return true if the active operation has exceeded its time limit. */
static bool is_over_limit(struct trib_engine *e, uint64_t now)
{
    const struct trib_run *run = e->head;

    assert(run->desc.limit_ms);
    if (e->limit_seq != run->now.frame.seq) {
        e->limit_seq = run->now.frame.seq;
        e->limit_since = now;
    }
    return now - e->limit_since > (uint64_t)run->desc.limit_ms * 1000000u;
}

static bool is_over_time(const struct trib_engine *e, uint64_t now)
{
    return !(e->head && e->head->desc.limit_ms) &&
           now - e->last_progress > trib_limit_ns(e->cfg->timeout_ms);
}

void trib_engine_call_abort(struct trib_engine *e, const char *why)
{
    int none = TRIB_ABORT_NONE;

    if (!atomic_compare_exchange_strong(&e->abort_call, &none, TRIB_ABORT_WRITES))
        return;
    snprintf(e->abort_why, sizeof(e->abort_why), "%s", why);
    atomic_store(&e->abort_call, TRIB_ABORT_MADE);
}

static void take_abort(struct trib_engine *e)
{
    char who[128], where[160], text[480];

    trib_engine_name_rank(e, e->rank, who, sizeof(who));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s has called trib_comm_abort%s%s; in %s", who,
             e->abort_why[0] ? ": " : "", e->abort_why, where);
    trib_engine_fail(e, TRIB_ERR_ABORTED, text);
}

/* Update the page with the awaited event and peer. */
static void show_wait(struct trib_engine *e, uint64_t now)
{
    char message[160] = "";
    const char *what = message;
    int peer = -1;

    if (!e->page.page || e->failed || !trib_engine_is_busy(e))
        return;
    if (!e->head)
        e->p2p->ops->describe(e, message, sizeof(message));
    else if (e->head->now.state == TRIB_RUN_ACTIVE)
        peer = awaited_peer(e, &what);
    trib_engine_page_wait(e, now, peer, what);
}

/* Mark the engine if the next frame of a lane belongs to a different call that the peer
 * made in place of this one. The run itself may never read that frame, because it waits
 * for something else of the peer, such as a buffer address. */
static void check_lanes(struct trib_engine *e)
{
    const struct trib_run *run = e->head;

    if (run->now.state != TRIB_RUN_ACTIVE || run->desc.blocks || run->desc.may_undo)
        return;
    for (int i = 0; i < e->size * TRIB_LANES && !e->failed; i++) {
        struct trib_link *l = &e->links[i / TRIB_LANES];
        const struct trib_entry *entry =
            l->opened && !l->lost ? trib_link_peek(l, &e->arena, i % TRIB_LANES) : NULL;
        if (entry && entry->frame.seq == run->now.frame.seq &&
            !trib_frame_same(&run->now.frame, &entry->frame))
            trib_engine_misfit(e, &entry->frame, l->peer);
    }
}

/* End the final barrier if this rank waits for a peer that has left: that one has heard
 * of all ranks, so all are in the barrier. Its message was lost with its connection, as
 * a network that loses packets may do. */
static void leave_after(struct trib_engine *e)
{
    const char *what;

    if (e->failed || !e->head || !e->head->desc.op.leaving ||
        e->head->now.state != TRIB_RUN_ACTIVE)
        return;
    const int peer = awaited_peer(e, &what);
    if (peer >= 0 && e->links[peer].left)
        trib_engine_end_leaving(e);
}

bool trib_engine_check(struct trib_engine *e)
{
    uint64_t now = trib_now_ns();

    if (atomic_load_explicit(&e->abort_call, memory_order_acquire) == TRIB_ABORT_MADE &&
        !e->failed)
        take_abort(e);
    if (e->head && e->head->desc.limit_ms && is_over_limit(e, now))
        time_out(e);
    if (!e->last_progress) {
        e->last_progress = e->last_notice = now;
        return false;
    }
    if (now - e->last_poll > POLL_NS) {
        e->last_poll = now;
        (void)trib_engine_events(e);
        trib_engine_notices(e);
        trib_short_check(e);
        leave_after(e);
        show_wait(e, now);
    }
    if (e->failed)
        (void)trib_engine_end(e);
    if (!trib_engine_is_busy(e))
        return false;
    assert(!e->failed);
    if (e->head && now - e->last_notice > NOTICE_NS) {
        e->last_notice = now;
        notify_waiting(e);
        check_lanes(e);
    }
    if (!e->failed && is_over_time(e, now))
        time_out(e);
    /* Each poll of a network costs a system call, or bus traffic that delays others. */
    return now - e->last_progress >
           (e->all_mapped ? SLEEP_AFTER_NS : (uint64_t)e->cfg->spin_us * 1000);
}

uint64_t trib_engine_awaited_ns(const struct trib_engine *e)
{
    if ((int32_t)(e->awaited - e->seq) <= 0)
        return 0;
    return trib_now_ns() - e->awaited_since;
}

/* Return true if an answer may be so near that this thread keeps the core. */
static bool is_eager(struct trib_engine *e)
{
    if (e->oversubscribed && e->head && e->head->short_path)
        return e->idle % SHORT_LOOKS && !trib_short_awaits_core(e, e->head);
    if (e->yields)
        return false;
    if (e->oversubscribed)
        return e->idle < BUSY_PAUSES;
    if (e->all_mapped)
        return e->idle < (uint32_t)e->cfg->spin_us * PAUSES_PER_US;
    if (e->idle == 1)
        e->idle_since = trib_now_ns();
    return e->idle < EAGER && trib_now_ns() - e->idle_since < EAGER_NS;
}

/*
 * Spin while an answer may be near; then yield the core, sooner with more ranks than
 * cores. Return true when it is time to sleep.
 */
static bool idle(struct trib_engine *e)
{
    e->idle++;
    if (is_eager(e)) {
        if (e->idle > EAGER && !e->oversubscribed)
            trib_pause();
        return false;
    }
    if (atomic_load_explicit(&e->wanted, memory_order_relaxed) && e->let_in) {
        e->let_in(e->give_way_arg);
        return false;
    }
    if (++e->yields % LOOK_EVERY == 0) {
        if (e->idle_hook)
            e->idle_hook(e->idle_hook_arg);
        if (trib_engine_check(e))
            return true;
    }
    sched_yield();
    return false;
}

void trib_engine_arm(struct trib_engine *e)
{
    if (e->arena.billboard)
        trib_billboard_set_asleep(&e->arena, true);
    e->says_asleep = e->arena.billboard;
    e->transport->ops->arm(e->transport);
}

static void sleep_until_write(struct trib_engine *e, int most_us)
{
    trib_engine_arm(e);
    if (!trib_engine_progress(e))
        e->transport->ops->wait(e->transport, most_us);
    else
        trib_engine_awake(e);
}

void trib_engine_drive(struct trib_engine *e)
{
    if (trib_engine_progress(e))
        trib_engine_awake(e);
    else
        (void)trib_engine_check(e);
}

void trib_engine_awake(struct trib_engine *e)
{
    e->idle = e->yields = 0;
    e->last_progress = 0;
    if (e->says_asleep)
        trib_billboard_set_asleep(&e->arena, false);
    e->says_asleep = false;
}

trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run)
{
    trib_engine_awake(e);
    while (atomic_load_explicit(&run->now.state, memory_order_acquire) !=
           TRIB_RUN_DONE) {
        if (trib_engine_progress(e))
            trib_engine_awake(e);
        else if (idle(e))
            sleep_until_write(e, SLEEP_US);
    }
    return run->now.status;
}

trib_status_t trib_engine_give_up(struct trib_engine *e, const char *operation)
{
    struct trib_error why = {0};
    char who[128], where[160];

    trib_engine_name_rank(e, e->rank, who, sizeof(who));
    if (operation)
        snprintf(where, sizeof(where), "operation %s, phase connect", operation);
    else
        trib_engine_describe(e, where, sizeof(where));
    (void)trib_idle_fail(e->idle_fn, &why, "%s has given up in %s", who, where);
    trib_engine_fail(e, TRIB_ERR_ABORTED, trib_error_text(&why));
    return e->failed;
}

/* Between any two polls other threads may get the lock, and the caller's function may
 * run. Polls of short runs are so short that the clock reads for this would dominate,
 * so only one poll in GIVE_WAY_EVERY gives way. With more ranks than cores, where a
 * wait lasts a few context switches, one yield in GIVE_WAY_EVERY does. */
static bool gives_way(struct trib_engine *e, const struct trib_run *run)
{
    enum { GIVE_WAY_EVERY = 16 };

    return !run->short_path || (e->yields && !e->oversubscribed) ||
           ++e->short_looks % GIVE_WAY_EVERY == 0;
}

trib_status_t trib_engine_wait_idle(struct trib_engine *e, struct trib_run *run)
{
    trib_engine_awake(e);
    while (atomic_load_explicit(&run->now.state, memory_order_acquire) !=
           TRIB_RUN_DONE) {
        bool sleeps = false;
        if (trib_engine_progress(e))
            trib_engine_awake(e);
        else
            sleeps = idle(e);
        if (gives_way(e, run) && e->give_way(e->give_way_arg))
            trib_engine_give_up(e, NULL);
        else if (sleeps)
            sleep_until_write(e,
                              trib_idle_is_set(e->idle_fn) ? IDLE_SLEEP_US : SLEEP_US);
    }
    return run->now.status;
}
