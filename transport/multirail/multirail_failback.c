/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: the return of rails that were abandoned.
 *
 * Each end tries to connect an abandoned rail again, from the end of the recovery on,
 * and tells the other end when it has. The lower rank then starts a new generation: as
 * after a loss, both ends stop their writes, send marks over all rails of the new set,
 * wait for the other's, answer with the count of events received, and resume over the
 * new set (multirail_failover.c). The marks follow all writes on the rails that never
 * were lost, and the connection of a rail that returns is new, so the argument there
 * holds: nothing is lost, nothing comes twice, and no byte comes late.
 *
 * Marks and answers name their generation, and older ones are ignored. Only the lower
 * rank starts a generation, after both ends have completed the last recovery (the
 * higher rank sends its notice only then). So at most two generations are in use at
 * once, and a mark distinguishes four. The higher rank takes the new generation over
 * with the first mark. If it has lost a returning rail again, its own marks say so.
 *
 * If the last rail is lost by a failure of the network, all are disconnected, and
 * nothing is in flight. A rank waits for such a peer as long as for a silent one. If
 * the peer's process answers that its rank has not polled since, there is no limit: it
 * computes, and each operation has its own timeout. Both ends exchange notices over the
 * first rail that returns, and the generation begins there. A notice names the sender's
 * generation: if the marks of the last one were lost with all rails, the higher rank
 * takes that generation over from it.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"

/* The connection is new: nothing of the old one counts. */
static void reset_rail(struct multirail_rail *rail)
{
    rail->early.head = rail->early.tail;
    rail->mark = rail->marked = MULTIRAIL_NO_MARK;
    rail->probing = false;
    rail->since = rail->heard = 0;
    rail->why[0] = '\0';
}

void trib_multirail_return(struct multirail *r, int peer, unsigned dead)
{
    struct multirail_peer *p = &r->peers[peer];
    const unsigned back = p->dead & p->up & ~dead;
    const uint8_t keep = (uint8_t)~back;

    assert(peer >= 0 && peer < r->size && p->state == TRIB_PEER_CONNECTED);
    p->generation++;
    p->epoch++;
    p->dead &= keep;
    p->parted &= keep;
    p->failing &= keep;
    p->left &= keep;
    p->ended &= keep;
    p->given_up &= keep;
    p->broken &= keep;
    p->warned &= keep;
    p->up &= keep;
    p->said_up = p->peer_up = 0;
    p->returned |= (uint8_t)back;
    for (int k = 0; k < p->n; k++) {
        if (back >> k & 1)
            reset_rail(&p->rails[k]);
        p->rails[k].last = p->rails[k].done = 0;
    }
    p->flow = MULTIRAIL_ASKING;
    trib_multirail_trouble(r, peer);
    if (!trib_multirail_import_later(r, peer, back))
        trib_multirail_fail_rails(r, peer, back, "its memory cannot be imported again");
}

/* Tell the peer which abandoned rails are connected again at this end. */
static void say_up(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    const bool stranded = p->dead == multirail_all(p);
    const struct multirail_msg msg = {
        .spare = true, .len = MULTIRAIL_READY + multirail_state(p->generation, p->up)};

    for (int k = 0; k < p->n && p->said_up != p->up; k++) {
        if (!((stranded ? ~p->up : p->dead) >> k & 1) &&
            trib_multirail_send_msg(r, peer, k, msg) == TRIB_OK)
            p->said_up = p->up;
    }
}

/* A lost rail will not return. If none will, the peer is lost for this reason. */
static void give_up(struct multirail *r, int peer, int k, const char *why)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(p->dead >> k & 1);
    p->final |= (uint8_t)(1u << k);
    snprintf(p->rails[k].why, sizeof(p->rails[k].why), "%s", why);
    if (p->final == multirail_all(p)) {
        memcpy(p->why, p->rails[k].why, sizeof(p->why));
        trib_multirail_trouble(r, peer);
    } else {
        trib_log(r->log, TRIB_LOG_INFO, MULTIRAIL_NAME,
                 "%s %s will not reach rank %d again: %s", r->name,
                 r->label[p->rails[k].inner], peer, why);
    }
}

void trib_multirail_fail_back(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];
    char why[TRIB_WHY_MAX];

    assert(p->state == TRIB_PEER_CONNECTED);
    const bool complete = !p->trouble && p->flow == MULTIRAIL_FLOWING;
    const bool stranded = p->stranded_at && p->dead == multirail_all(p);
    if (!r->revive || !p->dead || (!complete && !stranded))
        return;
    for (int k = 0; k < p->n; k++) {
        const struct multirail_rail *rail = &p->rails[k];
        const unsigned bit = 1u << k;
        /* A rail that never was connected has no board. */
        if (!(p->dead & bit) || ((p->up | p->final) & bit) || !rail->board)
            continue;
        const enum multirail_revival step =
            r->revive(r->inner[rail->inner], peer, stranded, why);
        if (step == MULTIRAIL_NEVER)
            give_up(r, peer, k, why);
        if (step == MULTIRAIL_REVIVED)
            p->up |= (uint8_t)bit;
        p->process_ended |= step == MULTIRAIL_ENDED && stranded;
        if (step == MULTIRAIL_NOT_YET && stranded)
            p->stranded_at = p->stranded_seen = p->stranded_first = trib_now_ns();
    }
    say_up(r, peer);
    if (r->self < peer && (p->up & p->peer_up))
        trib_multirail_return(r, peer, p->dead & ~(unsigned)(p->up & p->peer_up));
}

void trib_multirail_log_return(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    for (int k = 0; k < p->n; k++) {
        char how_many[64] = "";
        if (!((p->returned & ~p->dead) >> k & 1))
            continue;
        if (p->n > 1)
            snprintf(how_many, sizeof(how_many), ": %d of %d rails carry its writes",
                     p->n - trib_multirail_count(p->dead), p->n);
        trib_log(r->log, TRIB_LOG_WARN, MULTIRAIL_NAME, "%s %s reaches rank %d again%s",
                 r->name, r->label[p->rails[k].inner], peer, how_many);
    }
    p->returned = 0;
}
