/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: connections to a peer, one per rail.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "base/wait.h"
#include "transport/multirail/multirail.h"

enum { JOIN_NS = 100000 };

/* A connection of one rail, made by its own thread: an unresponsive rail takes its full
 * time limit. */
struct rail_attempt {
    struct trib_transport *inner;
    int peer;
    const struct trib_address *address;
    trib_status_t status;
    pthread_t thread;
    bool threaded;
};

static void *connect_rail(void *arg)
{
    struct rail_attempt *d = arg;

    d->status = d->inner->ops->connect(d->inner, d->peer, d->address);
    return NULL;
}

void trib_multirail_join(struct multirail *r, pthread_t thread)
{
    if (!trib_idle_is_set(r->idle)) {
        (void)pthread_join(thread, NULL);
        return;
    }
    while (pthread_tryjoin_np(thread, NULL) == EBUSY)
        if (!trib_idle_sleep(r->idle, JOIN_NS))
            sched_yield(); /* the thread ends soon */
}

static void connect_in_parallel(struct multirail *r, int peer,
                                const struct multirail_parsed_address *whole,
                                struct rail_attempt d[MULTIRAIL_MAX])
{
    const struct multirail_peer *p = &r->peers[peer];
    int last = -1;

    for (int k = 0; k < p->n; k++) {
        if (p->dead >> k & 1)
            continue;
        d[k] = (struct rail_attempt){.inner = r->inner[p->rails[k].inner],
                                     .peer = peer,
                                     .address = &whole->inner[p->rails[k].other]};
        last = k;
    }
    for (int k = 0; k < last; k++) /* this thread connects the last one */
        d[k].threaded = d[k].inner && !(p->ahead >> k & 1) &&
                        trib_thread_start(&d[k].thread, connect_rail, &d[k]) == 0;
    for (int k = 0; k <= last; k++) {
        if (d[k].inner && !d[k].threaded)
            (void)connect_rail(&d[k]);
    }
    for (int k = 0; k < last; k++) {
        if (d[k].threaded)
            trib_multirail_join(r, d[k].thread);
    }
}

/* Return the bytes of a peer's boards that this rank addresses; its own board is the
 * last one. */
static size_t boards_addressed(const struct multirail *r)
{
    return MULTIRAIL_BOARDS_AT + ((size_t)r->self + 1) * sizeof(struct multirail_board);
}

/* Return true if this rank has one device and the peer several: which of them it has
 * connected to, only its inner transport knows. */
static bool is_unknown(const struct multirail *r,
                       const struct multirail_parsed_address *whole)
{
    return r->n == 1 && whole->n > 1;
}

/* Get the peer's board for a rail. If the device is unknown, get the boards of all
 * devices as one blob, as of any other region. */
static bool board_of(const struct multirail *r,
                     const struct multirail_parsed_address *whole, int other,
                     struct trib_blob *out)
{
    const uint32_t magic = MULTIRAIL_MAGIC;
    struct multirail_bytes before = {NULL, 0};
    size_t at = sizeof(magic);

    *out = whole->board[other];
    if (!is_unknown(r, whole))
        return true;
    memset(out, 0, sizeof(*out));
    memcpy(out->bytes, &magic, sizeof(magic));
    for (int j = 0; j < whole->n; j++) {
        const struct multirail_bytes one = {whole->board[j].bytes, whole->board[j].len};
        if (!trib_multirail_put(out->bytes, sizeof(out->bytes), &at, one, before))
            return false;
        before = one;
    }
    out->len = (uint16_t)at;
    return true;
}

/* Write the hello of a rail. If the device is unknown, write the hellos of all. */
static trib_status_t say_hello(struct multirail *r, int peer, int k,
                               const struct multirail_parsed_address *whole)
{
    struct multirail_peer *p = &r->peers[peer];
    const int first = p->rails[k].other, n = is_unknown(r, whole) ? whole->n : 1;
    struct multirail_hello *hello = r->boards[r->size + peer].hello;

    assert(first >= 0 && first + n <= MULTIRAIL_MAX);
    for (int j = first; j < first + n; j++) {
        hello[j] = (struct multirail_hello){
            .magic = MULTIRAIL_MAGIC, .n = (uint16_t)p->n, .rail = (uint16_t)k};
        for (int i = 0; i < p->n; i++)
            hello[j].share[i] = p->rails[i].share;
    }
    return trib_multirail_send_msg(
        r, peer, k,
        (struct multirail_msg){.off = (size_t)first * sizeof(*hello),
                               .len = (size_t)n * sizeof(*hello),
                               .quiet = true});
}

/* Set up one rail: import the peer's board and send the rail's number. */
static trib_status_t set_up_rail(struct multirail *r, int peer, int k,
                                 const struct multirail_parsed_address *whole)
{
    struct multirail_peer *p = &r->peers[peer];
    struct multirail_rail *rail = &p->rails[k];
    struct trib_transport *inner = r->inner[rail->inner];
    struct trib_blob board;

    assert(rail->inner >= 0 && rail->inner < r->n);
    if (!whole->board[rail->other].len)
        return TRIB_OK;
    if (!board_of(r, whole, rail->other, &board))
        return trib_fail(&r->inner_err[rail->inner], TRIB_ERR_INVALID,
                         "peer %d: not an address of rails", peer);
    const trib_status_t status =
        trib_transport_import(inner, peer, &board, boards_addressed(r), &rail->board);
    return status == TRIB_OK ? say_hello(r, peer, k, whole) : status;
}

enum { WRITES_OVER_IT, SAME_NETWORK, ANY, ORDERS };

static int order_of(const struct multirail *r, int peer, int inner,
                    const struct trib_address *address)
{
    if (r->peers[peer].rails[0].inner == inner)
        return WRITES_OVER_IT;
    return r->same_net && r->same_net(r->inner[inner], address) ? SAME_NETWORK : ANY;
}

/* Connect through the first inner that reaches the peer, where one of the two has one
 * device. Likely inners are tried first. The peer may write over another inner. */
static trib_status_t connect_plain(struct multirail *r, int peer,
                                   const struct multirail_parsed_address *whole)
{
    const struct trib_address *address = &whole->inner[0];
    uint64_t until = trib_deadline_ms(r->reach_ms);
    int order[MULTIRAIL_MAX];
    bool first = true;

    assert(whole->plain && r->peers[peer].n == 1);
    for (int i = 0; i < r->n; i++)
        order[i] = order_of(r, peer, i, address);
    for (int at = 0; at < ORDERS; at++) {
        for (int i = 0; i < r->n; i++) {
            if (order[i] != at || (!first && trib_deadline_passed(until)))
                continue;
            trib_status_t status =
                r->inner[i]->ops->connect(r->inner[i], peer, address);
            if (status == TRIB_OK) {
                if (!first)
                    trib_error_clear(r->err);
                r->peers[peer].rails[0].inner = i;
                r->peers[peer].rails[0].other = 0;
                status = set_up_rail(r, peer, 0, whole);
                return trib_multirail_take_error(r, i, status);
            }
            (void)trib_multirail_take_error(r, i, status);
            first = false;
        }
    }
    return r->err ? r->err->status : TRIB_ERR_PEER_LOST;
}

static unsigned connect_rails(struct multirail *r, int peer,
                              const struct multirail_parsed_address *whole,
                              trib_status_t *status_out)
{
    struct rail_attempt d[MULTIRAIL_MAX] = {0};
    struct multirail_peer *p = &r->peers[peer];
    unsigned failed = 0;

    connect_in_parallel(r, peer, whole, d);
    for (int k = 0; k < p->n; k++) {
        struct trib_error *err = &r->inner_err[p->rails[k].inner];
        if (p->dead >> k & 1)
            continue;
        trib_status_t one = d[k].status;
        if (one == TRIB_OK)
            one = set_up_rail(r, peer, k, whole);
        if (one == TRIB_OK)
            continue;
        failed |= 1u << k;
        *status_out = one;
        snprintf(p->rails[k].why, sizeof(p->rails[k].why), "%.150s",
                 trib_error_text(err));
        memcpy(p->why, p->rails[k].why, sizeof(p->why));
    }
    return failed;
}

/* Clear the errors of the rails that have not connected. If the peer cannot be used
 * without them, report the last one whole; p->why is shortened. */
static trib_status_t end_errors(struct multirail *r, const struct multirail_peer *p,
                                unsigned failed, trib_status_t status)
{
    const bool over =
        (failed | p->dead) == multirail_all(p) || (failed && !r->confirms);

    if (over && !failed)
        return trib_fail(r->err, TRIB_ERR_PEER_LOST, "%s", p->why);
    for (unsigned left = failed; left; left &= left - 1) {
        const int inner = p->rails[__builtin_ctz(left)].inner;
        if (over && !(left & (left - 1)))
            return trib_multirail_take_error(r, inner, status);
        trib_error_clear(&r->inner_err[inner]);
    }
    return TRIB_OK;
}

/* Return the rails that have never been connected. Such a rail does not return, since
 * its import is missing (multirail_failback.c). */
static unsigned without_board(const struct multirail_peer *p)
{
    unsigned rails = 0;

    for (int k = 0; k < p->n; k++)
        rails |= (unsigned)!p->rails[k].board << k;
    return rails;
}

static trib_status_t connect_all(struct multirail *r, int peer,
                                 const struct multirail_parsed_address *whole)
{
    struct multirail_peer *p = &r->peers[peer];
    trib_status_t status = TRIB_OK;
    unsigned failed = 0;

    if (whole->plain)
        status = connect_plain(r, peer, whole);
    else
        failed = connect_rails(r, peer, whole, &status);
    if (whole->plain && status != TRIB_OK)
        return status;
    status = end_errors(r, p, failed, status);
    if (status != TRIB_OK)
        return status;
    p->state = TRIB_PEER_CONNECTED;
    trib_multirail_set_order(&p->out, p);
    if (failed)
        trib_multirail_fail_rails(r, peer, failed, NULL);
    p->final |= (uint8_t)((failed | p->dead | p->plain) & without_board(p));
    for (int k = p->n - 1; k >= 0; k--) {
        if (!(failed >> k & 1) && !(p->dead >> k & 1))
            atomic_store_explicit(&p->waker, p->rails[k].inner, memory_order_release);
    }
    if (p->dead) {
        p->flow = MULTIRAIL_ASKING;
        p->trouble = true;
        trib_multirail_enlist(r, peer);
    }
    return TRIB_OK;
}

trib_status_t trib_multirail_connect(struct trib_transport *t, int peer,
                                     const struct trib_address *address)
{
    struct multirail *r = multirail_of(t);

    const struct trib_peers peers = multirail_peers(r);
    trib_status_t status = trib_peer_check_connect(&peers, peer);

    if (status != TRIB_OK || r->peers[peer].state == TRIB_PEER_CONNECTED)
        return status;
    struct multirail_peer *p = &r->peers[peer];
    struct multirail_parsed_address *whole = malloc(sizeof(*whole));
    if (!p->log)
        p->log = calloc(MULTIRAIL_LOG, sizeof(*p->log));
    if (!whole || !p->log) {
        free(whole);
        return trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    trib_idle_gate_enter(&r->gate);
    status = trib_multirail_match(r, peer, address, whole);
    if (status == TRIB_OK)
        status = connect_all(r, peer, whole);
    trib_idle_gate_leave(&r->gate);
    p->ahead = 0;
    free(whole);
    return status;
}
