/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/failure.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "pipeline/link/grants.h"
#include "pipeline/run/engine_page.h"

void trib_engine_name_rank(const struct trib_engine *e, int rank, char *text,
                           size_t bytes)
{
    const struct trib_peer *p = &e->peers[rank];

    assert(rank >= 0 && rank < e->size);
    snprintf(text, bytes, "rank %d (host %s, process %d)", rank, p->host, p->pid);
}

void trib_engine_describe(const struct trib_engine *e, char *text, size_t bytes)
{
    const struct trib_run *run = e->head;

    if (!run && e->p2p && e->p2p->active) {
        e->p2p->ops->describe(e, text, bytes);
        return;
    }
    if (!run) {
        snprintf(text, bytes, "after operation %u, phase idle", e->seq);
        return;
    }
    if (run->desc.op.leaving) {
        snprintf(text, bytes, "trib_free_comm, operation %u, phase free",
                 run->now.frame.seq);
        return;
    }
    snprintf(text, bytes, "%s%s%s%s (%s), operation %u, phase %s",
             trib_coll_name(run->desc.op.coll), run->desc.label ? " \"" : "",
             run->desc.label ? run->desc.label : "", run->desc.label ? "\"" : "",
             run->desc.name ? run->desc.name : "?", run->now.frame.seq,
             run->now.moved ? "transfer" : "start");
}

void trib_engine_notify(struct trib_engine *e, int peer,
                        const struct trib_oob_notice *n)
{
    struct trib_link *l = &e->links[peer];

    l->unnotified = trib_link_notify(l, &e->arena, n) == TRIB_ERR_NO_RESOURCE;
}

static uint64_t away(const struct trib_engine *e, bool maybe)
{
    return e->transport ? e->transport->ops->away(e->transport, maybe) : 0;
}

uint64_t trib_engine_away(const struct trib_engine *e)
{
    return away(e, false);
}

bool trib_engine_maybe_away(const struct trib_engine *e)
{
    return e->maybe_away || away(e, true);
}

void trib_engine_mark(struct trib_engine *e, trib_status_t status, const char *text)
{
    struct trib_oob_notice n = {
        .kind = TRIB_OOB_NOTICE_FAILED, .status = status, .lost = e->cause_lost};

    assert(status < TRIB_OK);
    if (e->failed)
        return;
    (void)trib_fail(&e->failure, status, "%s", text);
    e->away_ns = trib_engine_away(e);
    e->maybe_away = trib_engine_maybe_away(e);
    atomic_store_explicit(&e->failed, status, memory_order_release);
    trib_engine_page_failed(e);
    snprintf(n.text, sizeof(n.text), "%.199s", text);
    for (int p = 0; p < e->size; p++)
        trib_engine_notify(e, p, &n);
    e->rest_unnotified = !e->notifies_later;
}

bool trib_engine_withdraw(struct trib_engine *e)
{
    const bool any = e->failed && trib_engine_is_busy(e);

    for (int peer = 0; any && peer < e->size; peer++)
        trib_link_withdraw(&e->links[peer]);
    return any;
}

void trib_engine_note_lost(struct trib_engine *e, uint32_t lost)
{
    if (!lost || lost > (uint32_t)e->size)
        return;
    e->links[lost - 1].reported_lost = true;
    if (!e->failed)
        e->cause_lost = lost;
}

void trib_engine_mark_like(struct trib_engine *e, const struct trib_engine *other)
{
    assert(other->failed && other->ranks <= e->size);
    for (int p = 0; p < other->ranks; p++)
        e->links[p].lost |= other->links[p].lost && !other->parted[p];
    trib_engine_note_lost(e, other->cause_lost);
    trib_engine_mark(e, (trib_status_t)other->failed, trib_error_text(&other->failure));
}

void trib_engine_know_like(struct trib_engine *e, const struct trib_engine *other)
{
    assert(other->ranks <= e->size);
    for (int p = 0; p < other->ranks; p++) {
        const struct trib_link *from = &other->links[p];
        e->links[p].dead |= from->dead;
        e->links[p].lives |= from->lives;
        e->links[p].continues |= from->continues;
    }
}

/* Check that a frame belongs to the running operation, as trib_frame_check does; the
 * error message also names the plan. */
static trib_status_t compare(const struct trib_engine *e,
                             const struct trib_frame *theirs, int peer, char *text,
                             size_t bytes)
{
    const struct trib_run *run = e->head;
    const trib_status_t st =
        trib_frame_check(&run->now.frame, theirs, e->rank, peer, text, bytes);
    const size_t n = strlen(text);

    if (st == TRIB_ERR_MISMATCH && run->desc.label && n < bytes)
        snprintf(text + n, bytes - n, "; here the plan is \"%s\"", run->desc.label);
    return st;
}

void trib_engine_protocol(struct trib_engine *e, int peer, const char *what)
{
    char who[128], where[160], text[400];

    trib_engine_name_rank(e, peer, who, sizeof(who));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s sent %s to rank %d in %s", who, what, e->rank,
             where);
    trib_engine_mark(e, TRIB_ERR_PROTOCOL, text);
}

void trib_engine_misfit(struct trib_engine *e, const struct trib_frame *theirs,
                        int peer)
{
    char text[400];
    const trib_status_t st = compare(e, theirs, peer, text, sizeof(text));

    if (st == TRIB_OK)
        trib_engine_protocol(e, peer, "a chunk out of order");
    else
        trib_engine_mark(e, st, text);
}

void trib_engine_unable(struct trib_engine *e, int peer, trib_status_t status,
                        const char *why)
{
    char me[128], who[128], where[160], text[720];

    trib_engine_name_rank(e, e->rank, me, sizeof(me));
    trib_engine_name_rank(e, peer, who, sizeof(who));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text), "%s cannot reach a buffer of %s in %s: %.200s", me,
             who, where, why);
    trib_engine_mark(e, status, text);
}

/* Return true if a peer may disconnect now. In the last barrier a peer that has
 * finished may disconnect before this rank. An aggregator between two operations
 * detects missing peers at the next one. */
static bool may_leave(const struct trib_engine *e)
{
    if (trib_engine_is_aggregator(e) && !e->head)
        return true;
    return e->head && e->head->desc.op.leaving;
}

/* Notices about operations that have begun here are late and ignored. */
static void take_waiting(struct trib_engine *e, uint32_t seq)
{
    if ((int32_t)(seq - e->seq) <= 0 || seq == e->awaited)
        return;
    e->awaited = seq;
    e->awaited_since = trib_now_ns();
}

/* A peer is in trib_comm_shrink, so the communicator has failed, whichever rank is
 * lost. The report stays in the arena until this rank shrinks as well. */
static void take_report(struct trib_engine *e, int peer,
                        const struct trib_oob_notice *n)
{
    char who[128], lost[128] = "", where[160], text[560];

    if (e->survivor_said) {
        e->survivor_said(e->survivor_said_arg, peer, n);
        return;
    }
    if (e->failed)
        return;
    trib_engine_note_lost(e, n->lost);
    const size_t at = (uint8_t)n->text[TRIB_OOB_NOTICE_SENTENCE_AT];
    if (at && at < TRIB_OOB_NOTICE_SENTENCE_AT && n->text[at]) {
        snprintf(text, sizeof(text), "%.*s", (int)(TRIB_OOB_NOTICE_SENTENCE_AT - at),
                 n->text + at);
        trib_engine_mark(e, trib_status_of_peer(n->status), text);
        return;
    }
    trib_engine_name_rank(e, peer, who, sizeof(who));
    if (e->cause_lost)
        trib_engine_name_rank(e, (int)e->cause_lost - 1, lost, sizeof(lost));
    trib_engine_describe(e, where, sizeof(where));
    snprintf(text, sizeof(text),
             "%s%s%s has called trib_comm_shrink; seen by rank %d in %s", lost,
             lost[0] ? " is lost: " : "", who, e->rank, where);
    trib_engine_mark(e, trib_status_of_peer(n->status), text);
}

void trib_engine_notice(struct trib_engine *e, int peer)
{
    struct trib_oob_notice n;
    char text[400];

    if (!trib_link_notice(&e->links[peer], &e->arena, peer, &n))
        return;
    const trib_status_t failed = trib_status_of_peer(n.status);
    if ((n.kind != TRIB_OOB_NOTICE_FAILED && n.kind != TRIB_OOB_NOTICE_WAITING &&
         n.kind != TRIB_OOB_NOTICE_SURVIVOR) ||
        (n.kind != TRIB_OOB_NOTICE_WAITING &&
         (failed == TRIB_OK || failed != n.status))) {
        trib_engine_protocol(e, peer, "a notice of invalid kind or status");
        return;
    }
    e->links[peer].has_failed |= n.kind != TRIB_OOB_NOTICE_WAITING;
    if (n.kind == TRIB_OOB_NOTICE_SURVIVOR) {
        take_report(e, peer, &n);
        return;
    }
    if (n.kind == TRIB_OOB_NOTICE_FAILED) {
        e->links[peer].gone_out |= n.lost == (uint32_t)peer + 1;
        trib_engine_note_lost(e, n.lost);
        trib_engine_mark(
            e, failed, n.text[0] ? n.text : "a peer has failed for an unknown reason");
        return;
    }
    take_waiting(e, n.frame.seq);
    if (!e->head || n.frame.seq != e->head->now.frame.seq)
        return;
    n.frame.kind = TRIB_FRAME_DATA;
    trib_status_t st = compare(e, &n.frame, peer, text, sizeof(text));
    if (st != TRIB_OK)
        trib_engine_mark(e, st, text);
}

void trib_engine_notices(struct trib_engine *e)
{
    for (int p = 0; p < e->size && !e->failed; p++)
        if (p != e->rank)
            trib_engine_notice(e, p);
}

void trib_engine_given_up(struct trib_engine *e)
{
    e->links[e->rank].reported_lost = true;
}

/* A rank that was stopped for longer than others wait, and then finds a peer gone, must
 * not count that peer as lost: this rank itself is lost. Nor may it tell others
 * otherwise. */
static uint32_t cause_of(struct trib_engine *e, int peer, uint64_t away_ns)
{
    if (away_ns)
        trib_engine_given_up(e);
    return 1 + (uint32_t)(e->links[e->rank].reported_lost ? e->rank : peer);
}

void trib_engine_lost(struct trib_engine *e, int peer, bool left, const char *why)
{
    char who[128], where[160], text[640], self[80] = "";

    assert(peer != e->rank);
    e->links[peer].lost = true;
    trib_grants_drop(&e->arena, &e->links[peer], peer);
    /* A failing peer notifies the others before it disconnects; that notice is then the
     * cause. */
    trib_engine_notice(e, peer);
    e->links[peer].left = left;
    trib_trace_now(&e->trace, TRIB_TRACE_PEER_LOST, peer, 0, 0);
    if (e->failed || (left && may_leave(e)))
        return;
    trib_engine_name_rank(e, peer, who, sizeof(who));
    trib_engine_describe(e, where, sizeof(where));
    const uint64_t away_ns = left ? 0 : trib_engine_away(e);
    if (away_ns)
        snprintf(self, sizeof(self),
                 ", after this rank was stopped or suspended for %.1f s",
                 (double)away_ns / 1e9);
    snprintf(text, sizeof(text), "%s is lost: %.160s%s; seen by rank %d in %s", who,
             why, self, e->rank, where);
    e->cause_lost = cause_of(e, peer, away_ns);
    trib_engine_mark(e, TRIB_ERR_PEER_LOST, text);
}
