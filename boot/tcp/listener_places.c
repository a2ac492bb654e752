/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections to a listener for newcomers: accept, read, answer, evict. */
#include "boot/tcp/listener_parts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/crowd.h"

void trib_listen_ring(int fd)
{
    const uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN);
}

bool trib_places_older(const struct trib_listen *l, uint64_t since, int ms)
{
    return l->now > since && l->now - since >= (uint64_t)ms * 1000000u;
}

static bool is_in_round(const struct trib_listen *l, const struct place *p)
{
    for (int i = 0; i < l->n_round; i++)
        if (l->round[i] == p)
            return true;
    return false;
}

void trib_place_hang_up(struct trib_listen *l, struct place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    if (is_in_round(l, p))
        return;
    trib_newcomer_free(&p->n);
}

void trib_places_count_waiting(struct trib_listen *l)
{
    int n = 0;

    for (int i = 0; i < PLACES; i++)
        n += l->places[i].fd >= 0 && l->places[i].n.state == TRIB_NEWCOMER_WAITS;
    atomic_store(&l->waiting, n);
}

/* Log the end of a connection; one that has not proved membership is an unauthenticated
 * peer. */
static void tell_of(struct trib_listen *l, struct place *p)
{
    const bool known = trib_net_is_set(p->ip);

    if (p->n.why[0])
        trib_unauthenticated_warn(&l->unauthenticated, &l->log, "boot",
                                  known ? p->ip : NULL, l->port, p->n.why);
}

/* Update a connection after any event that may have changed its state. */
static void look_at(struct trib_listen *l, struct place *p,
                    enum trib_newcomer_state before)
{
    if (p->n.state == TRIB_NEWCOMER_WAITS && !p->is_counted) {
        p->is_counted = true;
        p->number = ++l->knocks;
    }
    if (p->n.state == TRIB_NEWCOMER_OVER && before != TRIB_NEWCOMER_OVER) {
        p->since = l->now;
        if (before <= TRIB_NEWCOMER_WELCOME)
            tell_of(l, p);
    }
    if (before == TRIB_NEWCOMER_ADMITTED)
        trib_listen_ring(l->news);
}

void trib_place_end(struct trib_listen *l, struct place *p, const char *why)
{
    const enum trib_newcomer_state before = p->n.state;

    trib_newcomer_end(&p->n, why);
    look_at(l, p, before);
}

void trib_place_read(struct trib_listen *l, struct place *p)
{
    const enum trib_newcomer_state before = p->n.state;
    struct trib_newcomer *n = &p->n;

    if (before == TRIB_NEWCOMER_OVER)
        n->in_len = 0;
    assert(n->in_len < sizeof(n->in)); /* a whole frame fits */
    const ssize_t got =
        recv(p->fd, n->in + n->in_len, sizeof(n->in) - n->in_len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        trib_place_end(l, p, "has left");
        trib_place_hang_up(l, p);
        return;
    }
    p->heard = l->now;
    n->in_len += (size_t)got;
    if (before == TRIB_NEWCOMER_OVER)
        return;
    trib_newcomer_take(n, &l->rules);
    look_at(l, p, before);
}

void trib_place_write(struct trib_listen *l, struct place *p)
{
    struct trib_newcomer *n = &p->n;

    while (p->fd >= 0 && n->out_len) {
        const ssize_t sent =
            send(p->fd, n->out, n->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) {
            trib_place_end(l, p, "has left");
            trib_place_hang_up(l, p);
            return;
        }
        n->out_len -= (size_t)sent;
        memmove(n->out, n->out + sent, n->out_len);
    }
}

static bool is_unproven(const struct place *p)
{
    return p->fd >= 0 && p->n.state < TRIB_NEWCOMER_WAITS;
}

/* Return true if a is to be evicted before b, which may be NULL. */
static bool leaves_before(const struct trib_crowds *crowds, const struct place *a,
                          const struct place *b)
{
    if (!b)
        return true;
    const int n_a = trib_crowds_size(crowds, a->source);
    const int n_b = trib_crowds_size(crowds, b->source);
    const bool silent_a = a->n.state == TRIB_NEWCOMER_CAME;
    const bool silent_b = b->n.state == TRIB_NEWCOMER_CAME;

    if (n_a != n_b)
        return n_a > n_b;
    return silent_a != silent_b ? silent_a : a->since < b->since;
}

static void evict(struct trib_listen *l, struct place *p)
{
    trib_place_end(l, p, "sent nothing while many others connected");
    trib_place_hang_up(l, p);
}

void trib_places_make_room(struct trib_listen *l, uint64_t source, bool must)
{
    struct trib_crowds crowds = {0};
    struct place *first = NULL, *oldest = NULL;
    int n = 0, n_own = 0, n_used = 0;

    for (int i = 0; i < PLACES; i++)
        if (is_unproven(&l->places[i]))
            trib_crowds_add(&crowds, l->places[i].source);
    for (int i = 0; i < PLACES; i++) {
        struct place *p = &l->places[i];
        n_used += p->fd >= 0 || is_in_round(l, p);
        if (!is_unproven(p))
            continue;
        n++;
        if (leaves_before(&crowds, p, first))
            first = p;
        if (p->source != source)
            continue;
        n_own++;
        if (!oldest || p->since < oldest->since)
            oldest = p;
    }
    if (first && (must || n >= UNPROVEN_MAX || n_used == PLACES))
        evict(l, first);
    else if (n_own >= UNPROVEN_OF_SOURCE &&
             trib_places_older(l, oldest->since, UNPROVEN_MS))
        evict(l, oldest);
}

/* Return a free slot, evicting if needed; NULL: waiting newcomers hold all slots. */
static struct place *find_place(struct trib_listen *l, uint64_t source)
{
    trib_places_make_room(l, source, false);
    for (int i = 0; i < PLACES; i++)
        if (l->places[i].fd < 0 && !is_in_round(l, &l->places[i]))
            return &l->places[i];
    return NULL;
}

void trib_places_take(struct trib_listen *l, const struct arrival *a)
{
    const uint64_t source = trib_crowd_source(a->ip, l->seed);
    struct place *p = find_place(l, source);

    if (!p) {
        close(a->fd);
        return;
    }
    memset(p, 0, sizeof(*p));
    p->fd = a->fd;
    p->source = source;
    p->since = p->heard = l->now;
    memcpy(p->ip, a->ip, sizeof(p->ip));
}
