/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: a rail is lost, the peer is not.
 *
 * Whoever learns it first gives the rail up: it stops its own writes and sends, over
 * each rail that remains, a mark: the set of rails that it has given up. The mark is
 * the last on that rail until it goes on. The other end gives up the same rails and
 * sends marks as well. From here on both directions do the same, each by itself:
 *
 *   - Once marks with our own set have come over all remaining rails, everything that
 * the peer had under way on them is here, and what it takes for arrived over the rails
 * that are given up can be taken. Then these are left: from then on nothing of them can
 * arrive here, also no late bytes. We count the events that have come without a gap,
 * forget what came beyond, set the order anew, and answer with the count.
 *     The rail is not left before: it may be broken in the other direction alone, and
 * bring until then what its sender is told to be here, and does not keep.
 *   - Once the answer to our own set is here, the event after that count and everything
 *     posted since is posted again, in the new order; then new writes go on.
 *
 * A rail that is lost meanwhile makes the set larger: new marks, new answers; words
 * about a smaller set are stale and ignored. A word can only get lost with its rail. So
 * nothing is lost, and nothing delivered twice. Bytes may be written twice, but never
 * late: those on the dead rail ended with it, those on the others came before the
 * marks.
 *
 * A peer that leaves does so on all rails. A rail that was left waits for the others,
 * and only counts as lost if they stay.
 *
 * Who does not answer is not hurried: it may compute for minutes. Its death ends all
 * rails, and the operation has its own time-out.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/snapshot.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"

enum {
    LEAVE_MS = 2000, /* for the other rails to be left, too */
    DEATH_MS = 500, /* for the other rails to bring what a dead peer sent */
};

/* A rank that gives a peer up says BYE on the remaining rails, as a rank does that
 * leaves. A mark with all rails, sent before, tells the two cases apart. */
void trib_multirail_drop_peer(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    for (int k = 0; k < p->n; k++) {
        unsigned bit = 1u << k;
        if (!((p->ended | p->parted | p->left) & bit) && p->rails[k].board)
            (void)trib_multirail_send_msg(
                r, peer, k,
                (struct multirail_msg){.off = offsetof(struct multirail_board, spare),
                                       .len = multirail_all(p)});
    }
}

void trib_multirail_leave_rails(struct multirail *r, int peer,
                                enum trib_peer_state state)
{
    struct multirail_peer *p = &r->peers[peer];

    p->state = state;
    p->trouble = false;
    p->head = p->tail; /* no WRITE_DONE follows */
    atomic_store_explicit(&p->waker, -1, memory_order_release);
    for (int i = 0; i < r->n; i++)
        r->inner[i]->ops->disconnect(r->inner[i], peer);
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

static void give_up(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    p->dead |= p->failing;
    p->epoch++;
    if (p->state != TRIB_PEER_CONNECTED)
        return;
    p->flow = MULTIRAIL_ASKING;
    for (int k = 0; k < p->n; k++)
        p->rails[k].last = 0;
    choose_waker(p);
}

/* A message that cannot be sent now is sent at the next poll. */
static bool say_marks(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    bool all = true;

    for (int k = 0; k < p->n; k++) {
        struct multirail_rail *rail = &p->rails[k];
        if ((p->dead >> k & 1) || rail->marked == p->dead)
            continue;
        if (trib_multirail_send_msg(
                r, peer, k,
                (struct multirail_msg){.off = offsetof(struct multirail_board, spare),
                                       .len = p->dead}) == TRIB_OK)
            rail->marked = p->dead;
        else
            all = false;
    }
    return all;
}

/* Has everything come that the peer sent before its marks? */
static bool all_marked(const struct multirail_peer *p)
{
    for (int k = 0; k < p->n; k++) {
        if (!(p->dead >> k & 1) && p->rails[k].mark != p->dead)
            return false;
    }
    return true;
}

/* Before rails are left, what they have brought is taken. */
static void leave_rails(struct multirail *r, int peer)
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

    leave_rails(r, peer);
    trib_multirail_reorder(p);
    for (int k = 0; k < p->n; k++)
        p->rails[k].early.head = p->rails[k].early.tail;
    trib_multirail_set_order(&p->in, p, p->got);
    p->in_dead = p->dead;
    p->answer_owed = true;
}

static void answer(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    int n = trib_multirail_count(p->in_dead);
    struct multirail_cell *cell = &r->boards[r->size + peer].answer[n - 1];

    *cell = (struct multirail_cell){
        .magic = MULTIRAIL_MAGIC, .dead = p->in_dead, .got = p->got};
    for (int k = 0; k < p->n && p->answer_owed; k++) {
        size_t off = offsetof(struct multirail_board, answer) +
                     (size_t)(n - 1) * sizeof(struct multirail_cell);
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
            *p->why ? p->why : "the peer says so", p->n - trib_multirail_count(p->dead),
            p->n);
    }
}

static bool waited(const struct multirail_peer *p, int ms)
{
    return p->trouble_at && trib_now_ns() - p->trouble_at > (uint64_t)ms * 1000000u;
}

/* No rail remains, or none can be spared. */
static bool is_over(const struct multirail *r, const struct multirail_peer *p)
{
    unsigned gone = p->dead | p->failing | p->left;

    if ((gone & multirail_all(p)) == multirail_all(p))
        return true;
    return !r->confirms &&
           (gone & ~(unsigned)p->left ? waited(p, DEATH_MS) : waited(p, LEAVE_MS));
}

static void finish(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    trib_multirail_drain(r);
    trib_multirail_reorder(p);
    if (p->state == TRIB_PEER_CONNECTED)
        p->state = TRIB_PEER_GOING;
    else /* never connected: nobody is told */
        p->trouble = false;
}

/* The two directions, each as far as it gets now; true: all is well again. */
static bool go_on(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    bool said = say_marks(r, peer);

    if (p->in_dead != p->dead && all_marked(p))
        close_direction(r, peer);
    if (p->answer_owed)
        answer(r, peer);
    if (p->flow == MULTIRAIL_REPEATING && trib_multirail_repost(r, peer)) {
        p->flow = MULTIRAIL_FLOWING;
        warn(r, peer);
    }
    return said && p->flow == MULTIRAIL_FLOWING && p->in_dead == p->dead &&
           !p->answer_owed;
}

void trib_multirail_recover(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    if (!p->trouble_at)
        p->trouble_at = trib_now_ns();
    if (p->state == TRIB_PEER_GOING)
        return;
    if (!is_over(r, p) && r->confirms) {
        if ((p->left & ~(unsigned)p->dead) && waited(p, LEAVE_MS))
            p->failing |= p->left;
        if (p->failing & ~(unsigned)p->dead)
            give_up(r, peer);
    }
    if (is_over(r, p)) {
        finish(r, peer);
        return;
    }
    if (!r->confirms || p->state != TRIB_PEER_CONNECTED)
        return;
    bool well = go_on(r, peer);
    if (!well || ((p->left | p->failing) & ~(unsigned)p->dead))
        return;
    p->trouble = false;
    p->trouble_at = 0;
}
