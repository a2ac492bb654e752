/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks come to services while they sum by themselves.
 *
 * Starts have the same numbers on all ranks. Before start number ask_at each of them
 * says to the control_comm what it knows, and goes on; the answer is due before the
 * first later start of a plan which has been started since then. That such a plan is
 * done means that all ranks have come past ask_at, so nobody has to wait for one that
 * is behind; and it is the same start on all ranks. When rank 0 has found services, the
 * ranks end what is under way before that start and open the channel.
 */
#include <inttypes.h>

#include "base/time.h"
#include "offload/agg_tree.h"
#include "offload/offload_plan.h"

enum {
    STARTS_MOST = 2048, /* from one question to the next: starts may become slow
                         * meanwhile */
    ANSWER_MOST = 64,  /* starts until the answer is due, where no plan is started
                        * again */
    ASK_NS = 1000000000,
};

/* About a question each second, as fast as starts were since the last. */
static int64_t starts_to_next(struct trib_offload *v)
{
    const uint64_t now = trib_now_ns(), took = now - v->asked_ns;
    uint64_t n = took < ASK_NS ? 2 * v->stride : v->stride * ASK_NS / took;

    v->asked_ns = now;
    n = n > STARTS_MOST ? STARTS_MOST : n;
    v->stride = n ? n : 1;
    return (int64_t)v->stride;
}

static trib_status_t ask(struct trib_offload *v)
{
    int64_t say[TRIB_AGREE_WORDS] = {0};

    if (v->home->engine.rank == 0) {
        say[TRIB_AGREE_REJOIN] = v->way.found && v->way.found(v->way.arg);
        say[TRIB_AGREE_NEXT] = starts_to_next(v);
    }
    v->asking = true;
    return trib_agreement_start(v, say);
}

/* Does a start wait for its user, on any rank? Then this is not the moment. */
static trib_status_t is_anyone_busy(struct trib_offload *v, bool *out)
{
    int64_t say[TRIB_AGREE_WORDS] = {0};

    for (const struct trib_offload_plan *s = v->oldest; s; s = s->newer)
        say[TRIB_AGREE_BUSY] |= trib_offload_plan_needs_input(s);
    const trib_status_t st = trib_agreement_run(v, say);
    *out = v->said[TRIB_AGREE_BUSY];
    return st;
}

static void open_channel(struct trib_offload *v)
{
    struct trib_comm *channel;
    char text[400] = "";

    const trib_status_t st = v->way.open(v->way.arg, &channel, text, sizeof(text));
    if (st == TRIB_OK) {
        v->channel = channel;
        v->ask_at = 0;
        trib_offload_register_all(v);
    }
    if (v->home->engine.rank != 0)
        return;
    if (st == TRIB_OK)
        trib_log(&v->home->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                 "%s from operation %" PRIu64 " on", text, v->started + 1);
    else
        trib_log(&v->home->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                 "%s; the ranks go on without a service", text);
}

static trib_status_t go(struct trib_offload *v)
{
    bool busy;

    const trib_status_t st = is_anyone_busy(v, &busy);
    if (st != TRIB_OK)
        return st;
    if (busy) {
        v->ask_at = v->started + 2; /* after this start */
        return TRIB_OK;
    }
    trib_offload_finish(v);
    if (!v->broken && !v->confirms) {
        const trib_status_t made =
            trib_comm_dup(v->control_comm, &v->control_comm->cfg, &v->confirms);
        if (made != TRIB_OK)
            return made;
    }
    if (!v->broken)
        open_channel(v);
    return v->control_comm->engine.failed;
}

/* Is the answer due, which the ranks have by now? */
static bool is_due(const struct trib_offload *v, const struct trib_offload_plan *s,
                   uint64_t start)
{
    return s->ordinal >= v->ask_at || start >= v->ask_at + ANSWER_MOST;
}

void trib_offload_rejoin(struct trib_offload *v, const struct trib_offload_plan *s)
{
    const uint64_t start = v->started + 1;
    trib_status_t st = TRIB_OK;

    if (v->asking && is_due(v, s, start)) {
        v->asking = false;
        st = trib_agreement_wait(v);
        v->ask_at = start + (uint64_t)v->said[TRIB_AGREE_NEXT];
        if (st == TRIB_OK && v->said[TRIB_AGREE_REJOIN])
            st = go(v);
    } else if (!v->asking && start >= v->ask_at) {
        v->ask_at = start;
        st = ask(v);
    }
    if (st != TRIB_OK)
        trib_offload_give_up(v, v->control_comm, st);
}
