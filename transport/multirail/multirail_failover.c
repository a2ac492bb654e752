/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: recovery from the loss of a rail while the peer lives.
 *
 * The end that notices the loss first abandons the rail. It stops its own writes and
 * sends a mark over each remaining rail. A mark is the set of rails that its sender has
 * abandoned. It is the last message on that rail until the sender resumes. The other
 * end abandons the same rails and sends marks as well. From then on each direction
 * recovers independently:
 *
 *   - Receiving: wait until marks equal to the local set have arrived over all
 *     remaining rails. Then everything that the peer had in flight on these rails has
 *     arrived. Process the events that the abandoned rails have delivered, then
 *     disconnect those rails: nothing more can arrive on them, not even late bytes.
 *     Count the events received without a gap, forget later ones, set the new order,
 *     and answer with the count.
 *     The rail must not be disconnected earlier. It may be broken only in the other
 *     direction. Until then it may deliver writes that count as complete at their
 *     sender, which no longer keeps them.
 *   - Sending: wait for the answer to the local set. Then post again, in the new
 *     order, the event after that count and everything posted since. Then resume.
 *
 * If another rail is lost during recovery, the set grows; new marks and answers follow.
 * Messages about a smaller set are stale and ignored. A message can only be lost
 * together with its rail. So nothing is lost, and nothing is delivered twice. Bytes may
 * be written twice, but never late: those on the dead rail ended with it, and those on
 * the others arrived before the marks.
 *
 * A peer that disconnects does so on all rails. When it has disconnected from one rail,
 * that rail waits for the others and counts as lost only if they stay.
 *
 * If no rail is left though the peer may live, see multirail_failback.c.
 *
 * A silent peer is not timed out here: it may compute for minutes. Its death ends all
 * rails, and each operation has its own timeout.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/snapshot.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"

enum {
    LEAVE_MS = 2000, /* for the peer to disconnect from the other rails, too */
    WARN_MS = 1000, /* without any rail, before the warning */
    DEATH_MS = 500, /* for the other rails to deliver the last data of a dead peer */
};

static struct multirail_msg mark_of(const struct multirail_peer *p, unsigned dead)
{
    return (struct multirail_msg){
        .spare = true, .len = MULTIRAIL_MARK + multirail_state(p->generation, dead)};
}

/* Send a mark with all rails. An abort and a normal disconnect both end with DISCONNECT
 * on the remaining rails; the mark distinguishes them. */
void trib_multirail_drop_peer(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    for (int k = 0; k < p->n; k++) {
        unsigned bit = 1u << k;
        if (!((p->ended | p->parted | p->left) & bit) && p->rails[k].board)
            (void)trib_multirail_send_msg(r, peer, k, mark_of(p, multirail_all(p)));
    }
}

void trib_multirail_leave_rails(struct multirail *r, int peer,
                                enum trib_peer_state state)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(state == TRIB_PEER_LOST || state == TRIB_PEER_LEFT);
    p->state = state;
    p->trouble = false;
    p->head = p->tail; /* no WRITE_DONE follows */
    atomic_store_explicit(&p->waker, -1, memory_order_release);
    for (int i = 0; i < r->n; i++) {
        if (r->bar)
            r->bar(r->inner[i], peer);
        r->inner[i]->ops->disconnect(r->inner[i], peer);
    }
    trib_multirail_free_fifos(p);
}

static void choose_waker(struct multirail_peer *p)
{
    for (int k = 0; k < p->n; k++) {
        if ((p->dead >> k & 1) || p->rails[k].inner < 0)
            continue;
        atomic_store_explicit(&p->waker, p->rails[k].inner, memory_order_release);
        return;
    }
}

static void abandon_rails(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    assert((p->failing & ~(unsigned)p->dead) != 0);
    p->dead |= p->failing;
    p->said_up = p->peer_up = 0;
    p->epoch++;
    if (p->state != TRIB_PEER_CONNECTED)
        return;
    p->flow = MULTIRAIL_ASKING;
    for (int k = 0; k < p->n; k++)
        p->rails[k].last = 0;
    choose_waker(p);
}

/* Send the marks. A mark that cannot be sent now is sent at the next poll. */
static bool send_marks(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    const uint16_t state = multirail_state(p->generation, p->dead);
    bool all = true;

    for (int k = 0; k < p->n; k++) {
        struct multirail_rail *rail = &p->rails[k];
        if ((p->dead >> k & 1) || rail->marked == state)
            continue;
        if (trib_multirail_send_msg(r, peer, k, mark_of(p, p->dead)) == TRIB_OK)
            rail->marked = state;
        else
            all = false;
    }
    return all;
}

/* Return true if everything that the peer sent before its marks has arrived. */
static bool all_marked(const struct multirail_peer *p)
{
    const uint16_t state = multirail_state(p->generation, p->dead);

    for (int k = 0; k < p->n; k++) {
        if (!(p->dead >> k & 1) && p->rails[k].mark != state)
            return false;
    }
    return true;
}

/* Disconnect the abandoned rails after processing the events that they have
 * delivered. */
static void disconnect_rails(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    trib_multirail_drain(r);
    unsigned fresh = p->dead & ~(unsigned)p->parted;
    for (int k = 0; k < p->n; k++) {
        struct multirail_rail *rail = &p->rails[k];
        if ((fresh >> k & 1) && !(p->ended >> k & 1) && rail->inner >= 0)
            r->inner[rail->inner]->ops->disconnect(r->inner[rail->inner], peer);
    }
    p->parted = p->dead;
}

static void close_direction(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    disconnect_rails(r, peer);
    trib_multirail_reorder(p);
    for (int k = 0; k < p->n; k++)
        p->rails[k].early.head = p->rails[k].early.tail;
    trib_multirail_set_order(&p->in, p);
    p->in_dead = p->dead;
    p->in_generation = p->generation;
    p->answer_owed = true;
}

static void send_answer(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    int n = trib_multirail_count(p->in_dead);
    struct multirail_answer *cell = &r->boards[r->size + peer].answer[n];

    assert(n >= 0 && n < MULTIRAIL_MAX);
    *cell = (struct multirail_answer){.magic = MULTIRAIL_MAGIC,
                                      .dead = p->in_dead,
                                      .got = p->got,
                                      .generation = p->in_generation};
    for (int k = 0; k < p->n && p->answer_owed; k++) {
        size_t off =
            offsetof(struct multirail_board, answer) + (size_t)n * sizeof(*cell);
        if (!(p->dead >> k & 1) &&
            trib_multirail_send_msg(
                r, peer, k,
                (struct multirail_msg){.off = off,
                                       .len = MULTIRAIL_ANSWER + (size_t)n}) == TRIB_OK)
            p->answer_owed = false;
    }
}

static void warn(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    for (int k = 0; k < p->n; k++) {
        unsigned bit = 1u << k;
        if (!(p->dead & bit) || (p->warned & bit))
            continue;
        p->warned |= (uint8_t)bit;
        trib_log(
            r->log, TRIB_LOG_WARN, MULTIRAIL_NAME,
            "%s %s no longer reaches rank %d (%s): %d of %d rails carry its writes",
            r->name, p->rails[k].inner < 0 ? "" : r->label[p->rails[k].inner], peer,
            *p->rails[k].why ? p->rails[k].why : "reported by the peer",
            p->n - trib_multirail_count(p->dead), p->n);
    }
}

static bool has_waited(const struct multirail_peer *p, int ms)
{
    return p->trouble_at && trib_now_ns() - p->trouble_at > (uint64_t)ms * 1000000u;
}

/* Return true if no rail remains, or if no rail may be lost. */
static bool is_over(const struct multirail *r, const struct multirail_peer *p)
{
    unsigned gone = p->dead | p->failing | p->left;

    if ((gone & multirail_all(p)) == multirail_all(p))
        return true;
    return !r->confirms && (gone & ~(unsigned)p->left ? has_waited(p, DEATH_MS)
                                                      : has_waited(p, LEAVE_MS));
}

static void finish(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(p->state != TRIB_PEER_DRAINING);
    trib_multirail_drain(r);
    trib_multirail_reorder(p);
    if (p->state == TRIB_PEER_CONNECTED)
        p->state = TRIB_PEER_DRAINING;
    else /* never connected: do not report a loss */
        p->trouble = false;
}

static bool in_is_current(const struct multirail_peer *p)
{
    return p->in_dead == p->dead && p->in_generation == p->generation;
}

/* Advance both directions as far as possible now. Return true if recovery is
 * complete. */
static bool advance(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    bool sent = send_marks(r, peer);

    if (!in_is_current(p) && all_marked(p))
        close_direction(r, peer);
    if (p->answer_owed)
        send_answer(r, peer);
    if (p->flow == MULTIRAIL_REPEATING && trib_multirail_repost(r, peer)) {
        p->flow = MULTIRAIL_FLOWING;
        warn(r, peer);
        trib_multirail_log_return(r, peer);
    }
    return sent && p->flow == MULTIRAIL_FLOWING && in_is_current(p) && !p->answer_owed;
}

/* The process may live: each rail failed, one may be connected again, and nothing else
 * was said or seen. */
static bool may_return(const struct multirail *r, const struct multirail_peer *p)
{
    return r->revive && !p->crossed && p->state == TRIB_PEER_CONNECTED &&
           !(p->ended & ~(p->broken | p->final)) && p->final != multirail_all(p) &&
           !p->left && !p->given_up && !p->process_ended && !p->continues;
}

/* Return true if a peer without rails may still return. Time counts only while this
 * rank polls. */
static bool waits_on(const struct multirail *r, struct multirail_peer *p, uint64_t now)
{
    assert(p->stranded_at);
    if (now - p->stranded_seen > r->timeout_ns / 8)
        p->stranded_at += now - p->stranded_seen;
    p->stranded_seen = now;
    return now - p->stranded_at < r->timeout_ns;
}

/* Note the loss of the last rail. Writes in flight may themselves break the
 * connections: return false if they have done so for a while and none was
 * acknowledged. */
static bool note_stranded(const struct multirail *r, struct multirail_peer *p,
                          uint64_t now)
{
    const uint64_t with = p->head == p->tail ? 0 : p->released + 1;

    if (!with || with != p->stranded_with)
        p->stranded_first = now;
    else if (now - p->stranded_first >= r->timeout_ns)
        return false;
    p->stranded_with = with;
    p->stranded_at = p->stranded_seen = now;
    return true;
}

/* The end of a process also breaks its connections: do not warn of that. */
static void warn_stranded(const struct multirail *r, int peer, uint64_t now)
{
    struct multirail_peer *p = &r->peers[peer];

    if (!p->stranded_warn || now < p->stranded_warn)
        return;
    p->stranded_warn = 0;
    trib_log(r->log, TRIB_LOG_WARN, MULTIRAIL_NAME,
             "%s no longer reaches rank %d (%s): trying to connect again for %.1f s",
             r->name, peer, p->why, (double)r->timeout_ns / 1e9);
}

/* Wait as long as for a silent peer. */
static bool strand(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    const uint64_t now = trib_now_ns();

    assert(peer >= 0 && peer < r->size);
    if (!may_return(r, p))
        return false;
    if (p->stranded_at && p->dead == multirail_all(p)) {
        warn_stranded(r, peer, now);
        return waits_on(r, p, now);
    }
    if (!note_stranded(r, p, now))
        return false;
    trib_multirail_drain(r);
    for (int k = 0; k < p->n; k++) {
        if (!((p->ended | p->parted) >> k & 1) && p->rails[k].inner >= 0)
            r->sever(r->inner[p->rails[k].inner], peer);
        p->rails[k].last = 0;
    }
    if (!may_return(r, p))
        return false;
    p->dead = p->parted = (uint8_t)multirail_all(p);
    p->epoch++;
    p->said_up = MULTIRAIL_NOT_SAID;
    p->flow = MULTIRAIL_ASKING;
    p->stranded_warn = now + WARN_MS * UINT64_C(1000000);
    return true;
}

void trib_multirail_recover(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    if (!p->trouble_at)
        p->trouble_at = trib_now_ns();
    if (p->state == TRIB_PEER_DRAINING)
        return;
    if (!is_over(r, p) && r->confirms) {
        if ((p->left & ~(unsigned)p->dead) && has_waited(p, LEAVE_MS))
            p->failing |= p->left;
        if (p->failing & ~(unsigned)p->dead)
            abandon_rails(r, peer);
    }
    if (is_over(r, p)) {
        if (!strand(r, peer))
            finish(r, peer);
        return;
    }
    if (!r->confirms || p->state != TRIB_PEER_CONNECTED)
        return;
    bool well = advance(r, peer);
    if (!well || ((p->left | p->failing) & ~(unsigned)p->dead))
        return;
    p->trouble = false;
    p->trouble_at = 0;
    p->stranded_at = 0;
}
