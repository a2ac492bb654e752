/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/peer_liveness.h"

#include <assert.h>
#include <stdio.h>

#include "base/time.h"

enum {
    CHECK_MS = 25, /* between two checks of /proc */
    CLIP_CHECKS = 4,
    /* of the time-out: one check counts for at most half of it, however late it
     * comes */
    CLIP_PART = 2,
};

static void begin_to_ask(struct trib_peer_liveness *w)
{
    assert(w->heartbeat);
    w->asks = true;
    trib_heartbeat_watch(w->heartbeat, w->peer, &w->heart);
}

void trib_peer_liveness_begin(struct trib_peer_liveness *w,
                              const struct trib_peer_liveness_opts *opts)
{
    const struct trib_process *me = opts->me, *who = opts->who;

    assert(opts->peer >= 0);
    *w = (struct trib_peer_liveness){
        .heartbeat = opts->heartbeat, .peer = opts->peer, .heart = opts->heart};
    if (trib_process_same(who, me))
        return;
    if (opts->proc && who->boot && who->boot == me->boot && who->space == me->space &&
        trib_process_watch_open(&w->process, who, NULL) == TRIB_OK) {
        w->by = TRIB_LIVENESS_BY_KERNEL;
        return;
    }
    if (!opts->heartbeat)
        return;
    w->by = TRIB_LIVENESS_BY_HEARTBEAT;
    begin_to_ask(w);
}

void trib_peer_liveness_free(struct trib_peer_liveness *w)
{
    if (w->by == TRIB_LIVENESS_BY_KERNEL)
        trib_process_watch_close(&w->process);
    w->by = TRIB_LIVENESS_BY_NOBODY;
}

void trib_peer_liveness_end(struct trib_peer_liveness *w)
{
    if (w->asks)
        trib_heartbeat_forget(w->heartbeat, w->peer);
    w->asks = false;
    trib_peer_liveness_free(w);
}

uint64_t trib_peer_liveness_due(uint64_t *last)
{
    const uint64_t step = CHECK_MS * UINT64_C(1000000);
    uint64_t now = trib_now_ns(), elapsed = now - *last;

    if (elapsed < step)
        return 0;
    *last = now;
    return elapsed;
}

/* On a busy machine this process checks only now and then. Such checks count, but a
 * single check does not cover the whole gap before it: this process may have been
 * stopped itself. */
static uint64_t clip(uint64_t elapsed, uint64_t stop_timeout_ns)
{
    const uint64_t least = CLIP_CHECKS * CHECK_MS * UINT64_C(1000000);
    const uint64_t part = stop_timeout_ns / CLIP_PART;
    const uint64_t most = part > least ? part : least;

    return elapsed < most ? elapsed : most;
}

static bool check_process(struct trib_peer_liveness *w, uint64_t due,
                          int stop_timeout_ms, char *why, size_t bytes)
{
    const uint64_t stop_timeout_ns = trib_limit_ns(stop_timeout_ms);
    enum trib_process_state state = trib_process_watch_query(&w->process);

    assert(w->by == TRIB_LIVENESS_BY_KERNEL);
    if (state == TRIB_PROCESS_DEAD) {
        snprintf(why, bytes, "process %d has died", w->process.who.pid);
        return true;
    }
    if (state == TRIB_PROCESS_STOPPED)
        w->stopped_ns += w->stopped_ns ? clip(due, stop_timeout_ns) : 1;
    else
        w->stopped_ns = 0;
    if (w->stopped_ns < stop_timeout_ns)
        return false;
    snprintf(why, bytes, "process %d has been stopped for %.1f s", w->process.who.pid,
             (double)w->stopped_ns / 1e9);
    return true;
}

bool trib_peer_liveness_lost(struct trib_peer_liveness *w, uint64_t due,
                             int stop_timeout_ms, char *why, size_t bytes)
{
    switch (w->by) {
    case TRIB_LIVENESS_BY_KERNEL:
        return due && check_process(w, due, stop_timeout_ms, why, bytes);
    case TRIB_LIVENESS_BY_HEARTBEAT:
        return trib_heartbeat_lost(w->heartbeat, w->peer, why, bytes);
    default:
        return false;
    }
}

bool trib_peer_liveness_dead(const struct trib_peer_liveness *w)
{
    switch (w->by) {
    case TRIB_LIVENESS_BY_KERNEL:
        return trib_process_watch_dead(&w->process);
    case TRIB_LIVENESS_BY_HEARTBEAT:
        return trib_heartbeat_closed(w->heartbeat, w->peer);
    default:
        return false;
    }
}

uint64_t trib_peer_liveness_ask(struct trib_peer_liveness *w)
{
    if (!w->heartbeat)
        return 0;
    if (!w->asks)
        begin_to_ask(w);
    return trib_heartbeat_ask(w->heartbeat, w->peer);
}

bool trib_peer_liveness_answered(const struct trib_peer_liveness *w, uint64_t question)
{
    return w->asks && trib_heartbeat_answered(w->heartbeat, w->peer, question);
}

void trib_peer_liveness_send_continues(const struct trib_peer_liveness *w)
{
    if (w->heartbeat)
        trib_heartbeat_send_continues(w->heartbeat, w->peer, &w->heart);
}

bool trib_peer_liveness_continues(const struct trib_peer_liveness *w)
{
    return w->heartbeat && trib_heartbeat_continues(w->heartbeat, w->peer);
}
