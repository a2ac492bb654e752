/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rejoins aggregators while the ranks sum by themselves.
 *
 * All ranks number starts alike. Before start next_poll_seq each rank starts an
 * agreement on control_comm and continues. The result is awaited at the next restart of
 * a plan that was started since then, which is the same start on all ranks. That plan's
 * earlier start is done, so all ranks have passed next_poll_seq and have contributed.
 * If rank 0 has found aggregators, the ranks finish all starts in flight before this
 * start, and open agg_comm.
 */
#include <assert.h>
#include <inttypes.h>

#include "agg/client/agg_tree.h"
#include "agg/client/offload_plan.h"
#include "base/time.h"
#include "comm/members/split.h"

enum {
    STARTS_MOST = 2048, /* between two polls; starts may become slower */
    ANSWER_MOST = 64, /* until the result is due if no plan is restarted */
    POLL_NS = 1000000000,
};

/* Return the number of starts until the next poll: about a second at the rate since the
 * last poll. */
static int64_t starts_to_next(struct trib_offload *o)
{
    const uint64_t now = trib_now_ns(), took = now - o->polled_ns;
    uint64_t n = took < POLL_NS ? 2 * o->poll_every : o->poll_every * POLL_NS / took;

    o->polled_ns = now;
    n = n > STARTS_MOST ? STARTS_MOST : n;
    o->poll_every = n ? n : 1;
    return (int64_t)o->poll_every;
}

static trib_status_t poll(struct trib_offload *o)
{
    int64_t say[TRIB_AGREE_WORDS] = {0};

    if (o->parent->engine.rank == 0) {
        say[TRIB_AGREE_REJOIN] =
            o->provider.found && o->provider.found(o->provider.arg);
        say[TRIB_AGREE_NEXT] = starts_to_next(o);
    }
    assert(!o->polling);
    o->polling = true;
    return trib_agreement_start(o, say);
}

/* Agree whether a start on any rank waits for input from its user. If so, agg_comm
 * cannot be opened yet. */
static trib_status_t is_anyone_busy(struct trib_offload *o, bool *out)
{
    int64_t say[TRIB_AGREE_WORDS] = {0};

    for (const struct trib_offload_plan *p = o->oldest; p; p = p->newer)
        say[TRIB_AGREE_BUSY] |= trib_offload_plan_needs_input(p);
    const trib_status_t st = trib_agreement_run(o, say);
    *out = o->agreed[TRIB_AGREE_BUSY];
    return st;
}

static void open_agg_comm(struct trib_offload *o)
{
    struct trib_comm *agg_comm;
    char text[400] = "";

    assert(!o->agg_comm && !o->oldest && o->provider.open);
    const trib_status_t st =
        o->provider.open(o->provider.arg, &agg_comm, text, sizeof(text));
    if (st == TRIB_OK) {
        o->agg_comm = agg_comm;
        o->next_poll_seq = 0;
        trib_offload_register_all(o);
    }
    if (o->parent->engine.rank != 0)
        return;
    if (st == TRIB_OK)
        trib_log(&o->parent->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                 "%s from operation %" PRIu64 " on", text, o->started + 1);
    else
        trib_log(&o->parent->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                 "%s; the ranks continue without aggregators", text);
}

static trib_status_t rejoin(struct trib_offload *o)
{
    bool busy;

    const trib_status_t st = is_anyone_busy(o, &busy);
    if (st != TRIB_OK)
        return st;
    if (busy) {
        o->next_poll_seq = o->started + 2; /* after this start */
        return TRIB_OK;
    }
    trib_offload_finish(o);
    if (!o->broken && !o->commit_comm) {
        const trib_status_t made =
            trib_comm_dup(o->control_comm, &o->control_comm->cfg, &o->commit_comm);
        if (made != TRIB_OK)
            return made;
    }
    if (!o->broken)
        open_agg_comm(o);
    return o->control_comm->engine.failed;
}

/* Return true if the result is due: by now all ranks have contributed. */
static bool poll_is_due(const struct trib_offload *o, const struct trib_offload_plan *p,
                        uint64_t start)
{
    return p->seq >= o->next_poll_seq || start >= o->next_poll_seq + ANSWER_MOST;
}

void trib_offload_rejoin(struct trib_offload *o, const struct trib_offload_plan *p)
{
    const uint64_t start = o->started + 1;
    trib_status_t st = TRIB_OK;

    assert(!o->agg_comm && o->next_poll_seq > 0);
    if (o->polling && poll_is_due(o, p, start)) {
        o->polling = false;
        st = trib_agreement_wait(o);
        o->next_poll_seq = start + (uint64_t)o->agreed[TRIB_AGREE_NEXT];
        if (st == TRIB_OK && o->agreed[TRIB_AGREE_REJOIN])
            st = rejoin(o);
    } else if (!o->polling && start >= o->next_poll_seq) {
        o->next_poll_seq = start;
        st = poll(o);
    }
    if (st != TRIB_OK)
        trib_offload_fail(o, o->control_comm, st);
}
