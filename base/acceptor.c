/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/acceptor.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/time.h"

enum {
    REFUSED_MS = 1000, /* for a refused peer to read the refusal before the close */
    SOURCES = 1024, /* counters of connections; two sources may share one */
    DRAIN_READS = 16, /* most reads of 4 KiB that are discarded at a time */
};

bool trib_acceptor_open(struct trib_acceptor *a)
{
    assert(!a->pending && a->max > 0 && a->batch > 0 && a->hello_ms > 0);
    if (getrandom(&a->seed, sizeof(a->seed), GRND_NONBLOCK) != (ssize_t)sizeof(a->seed))
        a->seed = trib_now_ns();
    a->pending = calloc((size_t)a->max, sizeof(*a->pending));
    return a->pending;
}

void trib_acceptor_close(struct trib_acceptor *a)
{
    while (a->n) {
        struct trib_pending *p = a->pending[a->n - 1];
        trib_acceptor_remove(a, p);
        close(p->fd);
        if (a->ops->free)
            a->ops->free(p);
    }
    free(a->pending);
    a->pending = NULL;
}

void trib_acceptor_warn(struct trib_acceptor *a, const struct trib_pending *p,
                        const char *what)
{
    trib_unauthenticated_warn(&a->unauthenticated, a->log, a->component,
                              trib_net_is_set(p->ip) ? p->ip : NULL, a->port, what);
}

/* The table ------------------------------------------------------------------------ */

static void put(struct trib_acceptor *a, struct trib_pending *p)
{
    assert(a->n < a->max && !p->slot);
    a->pending[a->n++] = p;
    p->slot = a->n;
}

void trib_acceptor_remove(struct trib_acceptor *a, struct trib_pending *p)
{
    if (!p->slot)
        return;
    assert(p->slot <= a->n && a->pending[p->slot - 1] == p);
    struct trib_pending *last = a->pending[--a->n];
    a->pending[p->slot - 1] = last;
    last->slot = p->slot;
    p->slot = 0;
}

/* Discard received data. Return true if its stream has ended. */
static bool drain(int fd)
{
    char rest[4096];
    ssize_t n = 1;

    for (int i = 0; i < DRAIN_READS && n > 0; i++)
        n = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Discard unread data first: otherwise the kernel answers the close with a reset, which
 * may overtake a refusal. */
static void close_pending(struct trib_acceptor *a, struct trib_pending *p)
{
    if (a->ops->watch)
        a->ops->watch(a->owner, p->fd, false);
    (void)shutdown(p->fd, SHUT_WR);
    (void)drain(p->fd);
    close(p->fd);
}

/* Put the connection back until its peer has read the refusal. */
static void linger(struct trib_acceptor *a, struct trib_pending *p)
{
    (void)shutdown(p->fd, SHUT_WR);
    p->refused = true;
    p->spoke = false;
    p->until = trib_deadline_ms(REFUSED_MS);
    put(a, p);
}

/* Finish a connection. One that was refused before has had its answer. */
static void finish(struct trib_acceptor *a, struct trib_pending *p,
                   enum trib_pending_end why)
{
    enum trib_pending_fate fate = TRIB_PENDING_CLOSE;

    trib_acceptor_remove(a, p);
    if (!p->refused)
        fate = a->ops->finish(a->owner, p, why);
    if (fate == TRIB_PENDING_REFUSED && why != TRIB_PENDING_EVICTED && a->n < a->max) {
        linger(a, p);
        return;
    }
    if (fate != TRIB_PENDING_TAKEN)
        close_pending(a, p);
    if (a->ops->free)
        a->ops->free(p);
}

void trib_acceptor_expire(struct trib_acceptor *a)
{
    for (int i = a->n - 1; i >= 0; i--) {
        if (i < a->n && trib_deadline_passed(a->pending[i]->until))
            finish(a, a->pending[i], TRIB_PENDING_LATE);
    }
}

void trib_acceptor_forgive(struct trib_acceptor *a, uint64_t ns)
{
    for (int i = 0; i < a->n; i++) {
        a->pending[i]->since += ns;
        a->pending[i]->until = trib_deadline_later(a->pending[i]->until, ns);
    }
}

/* Eviction ------------------------------------------------------------------------- */

/* Return the source of a connection. All addresses of an IPv6 /64 are one source, as a
 * host chooses its lower 64 bits freely. */
static uint64_t source_of(const struct trib_acceptor *a, const uint8_t ip[16])
{
    if (!a->per_source)
        return 0;
    return trib_net_is_v4(ip) ? trib_digest_seeded(ip + 12, 4, a->seed)
                              : trib_digest_seeded(ip, 8, a->seed);
}

/* Return true if p is to be evicted before q. */
static bool leaves_before(const struct trib_acceptor *a, const uint16_t crowds[SOURCES],
                          const struct trib_pending *p, const struct trib_pending *q)
{
    const int n_p = crowds[p->source % SOURCES], n_q = crowds[q->source % SOURCES];

    if (n_p != n_q) /* both are 0 if sources do not count */
        return n_p > n_q;
    if (p->spoke != q->spoke)
        return q->spoke;
    return a->per_source ? p->since < q->since : p->until < q->until;
}

bool trib_acceptor_evict(struct trib_acceptor *a)
{
    uint16_t crowds[SOURCES] = {0};
    struct trib_pending *first = a->n ? a->pending[0] : NULL;

    for (int i = 0; i < a->n && a->per_source; i++)
        crowds[a->pending[i]->source % SOURCES]++;
    for (int i = 1; i < a->n; i++) {
        if (leaves_before(a, crowds, a->pending[i], first))
            first = a->pending[i];
    }
    if (first)
        finish(a, first, TRIB_PENDING_EVICTED);
    return first;
}

/* A source with too many connections evicts its own oldest. */
static void limit_source(struct trib_acceptor *a, uint64_t source)
{
    struct trib_pending *oldest = NULL;
    int n = 0;

    for (int i = 0; i < a->n; i++) {
        struct trib_pending *p = a->pending[i];
        if (p->source != source)
            continue;
        n++;
        if (!oldest || p->since < oldest->since)
            oldest = p;
    }
    if (n >= a->per_source &&
        trib_now_ns() - oldest->since >= (uint64_t)a->source_ms * 1000000)
        finish(a, oldest, TRIB_PENDING_EVICTED);
}

/* Accepting ------------------------------------------------------------------------ */

/* Return false and errno if no connection was accepted. */
static bool accept_one(struct trib_acceptor *a, int listener)
{
    uint8_t ip[16];
    const int fd = trib_accept_next(listener, ip);

    if (fd < 0)
        return false;
    const uint64_t source = source_of(a, ip);
    if (a->per_source)
        limit_source(a, source);
    struct trib_pending *p = a->ops->admit(a->owner, fd, ip);
    if (!p)
        return true;
    p->fd = fd;
    memcpy(p->ip, ip, sizeof(p->ip));
    p->source = source;
    p->since = trib_now_ns();
    p->until = trib_deadline_ms(a->hello_ms);
    put(a, p);
    if (a->ops->watch)
        a->ops->watch(a->owner, fd, true);
    return true;
}

/* A fruitless accept() makes a socket and drops it: 10 us, against 0.3 us for
 * poll(). */
static bool is_waiting(int listener)
{
    struct pollfd ready = {.fd = listener, .events = POLLIN};

    return poll(&ready, 1, 0) != 0;
}

/* Watch the listener again after a pause. Return false during the pause. */
static bool resume(struct trib_acceptor *a, int listener)
{
    if (trib_accept_paused(&a->pause))
        return false;
    if (a->unwatched)
        a->ops->watch(a->owner, listener, true);
    a->unwatched = false;
    return true;
}

static void warn_failed(struct trib_acceptor *a, int error)
{
    const char *cure = trib_accept_cure(error);

    errno = error;
    trib_log(a->log, TRIB_LOG_WARN, a->component, "%s: %m%s%s; %sretrying every %d ms",
             a->cannot, *cure ? "; " : "", cure,
             a->ops->starved ? "closing unauthenticated connections and " : "",
             TRIB_ACCEPT_PAUSE_MS);
}

/* Handle a failure of accept(); true: accept again. A listener that stays readable is
 * not watched during a pause, as it would end every sleep. */
static bool recover(struct trib_acceptor *a, int listener, int error)
{
    if (error == EAGAIN)
        return false;
    if (trib_accept_failed(&a->pause, error) && a->cannot[0])
        warn_failed(a, error);
    if (!trib_accept_paused(&a->pause))
        return true; /* the error concerned only this connection */
    errno = error;
    if (a->ops->starved && a->ops->starved(a->owner, listener)) {
        a->pause.until = 0;
        return true;
    }
    if (a->ops->watch)
        a->ops->watch(a->owner, listener, false);
    a->unwatched = a->ops->watch;
    return false;
}

void trib_acceptor_accept(struct trib_acceptor *a, int listener)
{
    for (int i = 0; i < a->batch; i++) {
        if (!resume(a, listener) || !is_waiting(listener))
            return;
        if (a->n >= a->max)
            (void)trib_acceptor_evict(a);
        if (a->n < a->max && !accept_one(a, listener) && !recover(a, listener, errno))
            return;
    }
}

void trib_acceptor_help(struct trib_acceptor *a, int listener)
{
    while (a->n < a->max && accept_one(a, listener))
        continue;
}

/* Reading -------------------------------------------------------------------------- */

void trib_pending_expect(struct trib_pending *p, void *to, size_t bytes)
{
    p->to = to;
    p->want = bytes;
    p->have = 0;
}

static void read_one(struct trib_acceptor *a, struct trib_pending *p)
{
    while (!p->judged) {
        assert(p->have < p->want);
        ssize_t n = recv(p->fd, p->to + p->have, p->want - p->have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        p->ended = n <= 0;
        p->have += n > 0 ? (size_t)n : 0;
        p->judged = p->ended || a->ops->judge(a->owner, p);
    }
}

void trib_acceptor_read(struct trib_acceptor *a)
{
    for (int i = 0; i < a->n; i++) {
        if (!a->pending[i]->refused)
            read_one(a, a->pending[i]);
    }
}

void trib_acceptor_progress(struct trib_acceptor *a)
{
    for (int i = 0, left = a->n; left > 0 && i < a->n; left--) {
        struct trib_pending *p = a->pending[i];
        const bool over = p->refused && drain(p->fd);
        if (!p->refused)
            read_one(a, p);
        const bool judged = !p->refused && p->judged;
        if (over || judged || trib_deadline_passed(p->until))
            finish(a, p,
                   !judged    ? TRIB_PENDING_LATE
                   : p->ended ? TRIB_PENDING_ENDED
                              : TRIB_PENDING_JUDGED);
        else
            i++;
    }
}

int trib_acceptor_wait_ms(const struct trib_acceptor *a)
{
    uint64_t due = a->unwatched ? a->pause.until : TRIB_NEVER;

    for (int i = 0; i < a->n; i++) {
        if (a->pending[i]->until < due)
            due = a->pending[i]->until;
    }
    return due == TRIB_NEVER ? -1 : trib_deadline_left_ms(due);
}
