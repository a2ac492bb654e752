/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: restoring the order of arrivals.
 *
 * The inner transports are not polled while events are ready for the caller, so little
 * is held here. Early arrivals are taken in; otherwise they might block the rail with
 * the missing event. Only MULTIRAIL_LOG writes of an honest sender can be in flight
 * after a missing one, if WRITE_DONE implies arrival (`confirms`). Otherwise the
 * windows of its engine are the limit. A peer that exceeds this by far is lost.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/snapshot.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"

enum {
    BATCH = 32,
    FIFO_MIN = 16,
    EARLY_MAX = 16384, /* per rail; honest peers have some hundred, see above */
    DRAIN_ROUNDS = 4096, /* other peers may send without end */
};

static bool push(struct multirail_fifo *f, struct multirail_arrival a)
{
    if (f->tail - f->head == f->room) {
        uint32_t room = f->room ? 2 * f->room : FIFO_MIN;
        struct multirail_arrival *ring = malloc(room * sizeof(*ring));
        if (!ring)
            return false;
        uint32_t n = 0;
        for (; f->head != f->tail; f->head++)
            ring[n++] = f->ring[f->head & (f->room - 1)];
        free(f->ring);
        *f = (struct multirail_fifo){.ring = ring, .tail = n, .room = room};
    }
    assert(f->tail - f->head < f->room && !(f->room & (f->room - 1)));
    f->ring[f->tail++ & (f->room - 1)] = a;
    return true;
}

static bool is_empty(const struct multirail_fifo *f)
{
    return f->head == f->tail;
}

static struct multirail_arrival pop(struct multirail_fifo *f)
{
    assert(!is_empty(f));
    return f->ring[f->head++ & (f->room - 1)];
}

void trib_multirail_free_fifos(struct multirail_peer *p)
{
    for (int k = 0; k < MULTIRAIL_MAX; k++) {
        free(p->rails[k].early.ring);
        p->rails[k].early = (struct multirail_fifo){0};
    }
    free(p->ready.ring);
    p->ready = (struct multirail_fifo){0};
}

void trib_multirail_reorder(struct multirail_peer *p)
{
    while (p->in.n) {
        struct multirail_fifo *f = &p->rails[multirail_next(&p->in)].early;
        if (is_empty(f) || !push(&p->ready, f->ring[f->head & (f->room - 1)]))
            return;
        trib_multirail_advance(&p->in, pop(f).len);
        p->got++;
    }
}

/* Set the number of rails and their shares from a hello; false: it is malformed. */
static bool set_rails(struct multirail_peer *p, const struct multirail_hello *hello,
                      uint32_t n)
{
    for (uint32_t k = 0; k < n && hello; k++) {
        if (hello->share[k] < 1 || hello->share[k] > MULTIRAIL_SHARE)
            return false;
    }
    for (uint32_t k = 0; k < n; k++)
        p->rails[k].share = hello ? hello->share[k] : MULTIRAIL_SHARE;
    p->n = (int)n;
    p->plain = !hello;
    trib_multirail_set_order(&p->in, p);
    return true;
}

/* Identify the rail of the first message over an inner from a peer that this rank has
 * not connected to. */
static bool identify_rail(struct multirail *r, int peer, int inner)
{
    struct multirail_peer *p = &r->peers[peer];
    struct multirail_hello hello; /* the peer may write to its board at any time */

    assert(peer >= 0 && peer < r->size && inner >= 0 && inner < r->n);
    trib_snapshot(&hello, &r->boards[peer].hello[inner], sizeof(hello));
    bool plain = hello.magic == 0; /* it has one device and writes to no board */
    uint32_t n = plain ? 1 : hello.n, k = plain ? 0 : hello.rail;

    if ((!plain && hello.magic != MULTIRAIL_MAGIC) || n < 1 || n > (uint32_t)r->n ||
        k >= n || (p->n && (p->n != (int)n || p->rails[k].inner >= 0)))
        return false;
    if (!p->n && !set_rails(p, plain ? NULL : &hello, n))
        return false;
    p->rails[k].inner = inner;
    return true;
}

static int find_rail(const struct multirail_peer *p, int inner)
{
    if (p->plain)
        return 0;
    for (int k = 0; k < p->n; k++) {
        if (p->rails[k].inner == inner)
            return k;
    }
    return -1;
}

/* Return how many generations the peer is ahead, modulo 4. */
static unsigned ahead_of(const struct multirail_peer *p, unsigned state)
{
    return ((state >> MULTIRAIL_MAX) - p->generation) % 4;
}

/* If all rails were lost, the mark that began a generation may have been lost, too. */
static void handle_ready(struct multirail *r, int peer, unsigned state)
{
    struct multirail_peer *p = &r->peers[peer];

    if (ahead_of(p, state) == 1 && peer < r->self && p->stranded_at &&
        p->dead == multirail_all(p)) {
        p->generation++;
        p->said_up = 0;
    }
    if (ahead_of(p, state) == 0)
        p->peer_up = (uint8_t)(state & multirail_all(p));
}

static void handle_mark(struct multirail *r, int peer, int k, unsigned state)
{
    struct multirail_peer *p = &r->peers[peer];
    const unsigned dead = state & multirail_all(p);

    if ((dead & (1u << k)) && dead != multirail_all(p))
        return; /* invalid: a rail does not report its own loss */
    if (dead == multirail_all(p)) {
        p->given_up = (uint8_t)dead;
        snprintf(p->why, sizeof(p->why), "it has declared this rank lost");
    } else if (ahead_of(p, state) == 1 && peer < r->self &&
               p->state == TRIB_PEER_CONNECTED) {
        trib_multirail_return(r, peer, dead);
    } else if (ahead_of(p, state) != 0) {
        return; /* sent before rails returned */
    }
    p->rails[k].mark = (uint16_t)state;
    if (dead & ~(unsigned)(p->dead | p->failing)) /* otherwise known, or a probe */
        trib_multirail_fail_rails(r, peer, dead, NULL);
}

static void handle_control(struct multirail *r, int peer, int k, uint64_t len)
{
    if (len >= MULTIRAIL_READY + MULTIRAIL_STATES)
        return;
    if (len >= MULTIRAIL_READY)
        handle_ready(r, peer, (unsigned)len - MULTIRAIL_READY);
    else if (len >= MULTIRAIL_MARK)
        handle_mark(r, peer, k, (unsigned)len - MULTIRAIL_MARK);
    else if (len >= MULTIRAIL_ANSWER)
        trib_multirail_take_answer(r, peer, (int)(len - MULTIRAIL_ANSWER));
}

static void handle_arrived(struct multirail *r, int inner, const struct trib_event *e)
{
    struct multirail_peer *p = &r->peers[e->peer];
    int k = find_rail(p, inner);

    if (k < 0) {
        if (!identify_rail(r, e->peer, inner)) {
            trib_multirail_fail_peer(r, e->peer,
                                     "it violates the order of writes over rails");
            return;
        }
        k = find_rail(p, inner);
    }
    if (p->rails[k].inner < 0)
        p->rails[k].inner = inner; /* answer a plain peer over the inner that it uses */
    p->crossed |= p->rails[k].inner != inner;
    if (e->imm == TRIB_IMM_OWN &&
        (!((p->parted & ~p->up) >> k & 1) || e->len >= MULTIRAIL_READY))
        handle_control(r, e->peer, k, e->len);
    if (e->imm == TRIB_IMM_OWN || (p->parted >> k & 1))
        return;
    struct multirail_fifo *early = &p->rails[k].early;
    if (early->tail - early->head >= EARLY_MAX) {
        trib_multirail_fail_peer(
            r, e->peer,
            "it keeps writing over one rail and skips another whose turn it is");
        return;
    }
    if (!push(early, (struct multirail_arrival){.len = e->len, .imm = e->imm})) {
        trib_multirail_fail_peer(r, e->peer, "out of memory for its messages");
        return;
    }
    trib_multirail_reorder(p);
    if (!is_empty(&p->ready))
        trib_multirail_enlist(r, e->peer);
}

static void handle_done(struct multirail *r, int inner, const struct trib_event *e)
{
    struct multirail_peer *p = &r->peers[e->peer];
    int k = find_rail(p, inner);

    if (k < 0)
        return;
    uint64_t at = e->token & MULTIRAIL_PROBE;
    if (at == MULTIRAIL_PROBE) {
        p->rails[k].probing = false;
        p->rails[k].heard = trib_now_ns();
        return;
    }
    if ((uint8_t)(e->token >> MULTIRAIL_EPOCH_SHIFT) != p->epoch)
        return;
    p->rails[k].done = at + 1;
    r->done[inner]++;
    trib_multirail_enlist(r, e->peer);
}

static void handle_lost(struct multirail *r, int inner, const struct trib_event *e)
{
    struct multirail_peer *p = &r->peers[e->peer];
    int k = find_rail(p, inner);

    if (k < 0)
        return;
    p->ended |= (uint8_t)(1u << k);
    p->given_up |= (uint8_t)(e->given_up << k);
    p->broken = (uint8_t)((p->broken & ~(1u << k)) | (unsigned)e->broken << k);
    p->final |= (uint8_t)((unsigned)e->final << k);
    p->process_ended |= e->dead;
    p->process_runs = e->lives;
    p->continues |= e->continues;
    if (!*p->rails[k].why)
        memcpy(p->rails[k].why, e->why, sizeof(p->rails[k].why));
    if (p->up >> k & 1)
        p->said_up = MULTIRAIL_NOT_SAID;
    p->up &= (uint8_t) ~(1u << k);
    p->peer_up &= (uint8_t) ~(1u << k);
    if ((p->dead >> k & 1) || (e->left && (p->failing >> k & 1)))
        return;
    memcpy(p->why, e->why, sizeof(p->why));
    if (!e->left) {
        trib_multirail_fail_rails(r, e->peer, 1u << k, e->why);
        return;
    }
    if (!p->trouble)
        p->trouble_at = 0;
    p->left |= (uint8_t)(1u << k);
    p->trouble = true;
    trib_multirail_enlist(r, e->peer);
}

static void handle_event(struct multirail *r, int inner, const struct trib_event *e)
{
    const struct multirail_peer *p = &r->peers[e->peer];

    if (p->state == TRIB_PEER_LOST || p->state == TRIB_PEER_LEFT)
        return;
    if (e->kind == TRIB_EVENT_ARRIVED)
        handle_arrived(r, inner, e);
    else if (e->kind == TRIB_EVENT_WRITE_DONE)
        handle_done(r, inner, e);
    else
        handle_lost(r, inner, e);
}

bool trib_multirail_pull(struct multirail *r)
{
    struct trib_event events[BATCH];
    bool any = false;

    for (int i = 0; i < r->n; i++) {
        int inner = (r->next + i) % r->n;
        int n = r->inner[inner]->ops->poll(r->inner[inner], events, BATCH);
        for (int j = 0; j < n; j++)
            handle_event(r, inner, &events[j]);
        any |= n > 0;
    }
    r->next = (r->next + 1) % r->n;
    return any;
}

void trib_multirail_drain(struct multirail *r)
{
    for (int i = 0; i < DRAIN_ROUNDS && trib_multirail_pull(r); i++)
        continue;
}

int trib_multirail_deliver(struct multirail_peer *p, int peer,
                           struct trib_event *events, int max)
{
    int n = 0;

    for (; n < max && !is_empty(&p->ready); n++) {
        struct multirail_arrival a = pop(&p->ready);
        events[n].kind = TRIB_EVENT_ARRIVED;
        events[n].peer = peer;
        events[n].imm = a.imm;
        events[n].len = a.len;
    }
    return n;
}
