/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections to a listener for newcomers: read, answer, accept, evict. */
#include "boot/tcp/listener_parts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void trib_listen_wake(int fd)
{
    const uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN);
}

bool trib_listen_elapsed(const struct trib_listen *l, uint64_t since, int ms)
{
    return l->now > since && l->now - since >= (uint64_t)ms * 1000000u;
}

static bool is_in_round(const struct trib_listen *l, const struct newcomer_slot *p)
{
    for (int i = 0; i < l->n_round; i++)
        if (l->round[i] == p)
            return true;
    return false;
}

void trib_listen_hang_up(struct trib_listen *l, struct newcomer_slot *p)
{
    trib_acceptor_remove(&l->acceptor, &p->base);
    if (p->base.fd >= 0)
        close(p->base.fd);
    p->base.fd = -1;
    if (is_in_round(l, p))
        return;
    trib_newcomer_free(&p->n);
}

void trib_listen_count_waiting(struct trib_listen *l)
{
    int n = 0;

    for (int i = 0; i < SLOTS; i++)
        n += l->slots[i].base.fd >= 0 && l->slots[i].n.state == TRIB_NEWCOMER_WAITS;
    atomic_store(&l->waiting, n);
}

/* Update a connection after any event that may have changed its state. */
static void update(struct trib_listen *l, struct newcomer_slot *p,
                   enum trib_newcomer_state before)
{
    p->base.spoke = p->n.state != TRIB_NEWCOMER_CAME;
    if (p->n.state >= TRIB_NEWCOMER_WAITS)
        trib_acceptor_remove(&l->acceptor, &p->base);
    if (p->n.state == TRIB_NEWCOMER_WAITS && !p->is_counted) {
        p->is_counted = true;
        p->number = ++l->n_requests;
    }
    if (p->n.state == TRIB_NEWCOMER_OVER && before != TRIB_NEWCOMER_OVER) {
        p->over = l->now;
        /* Report a peer that has not authenticated. */
        if (before <= TRIB_NEWCOMER_WELCOME && p->n.why[0])
            trib_acceptor_warn(&l->acceptor, &p->base, p->n.why);
    }
    if (before == TRIB_NEWCOMER_ADMITTED)
        trib_listen_wake(l->news);
}

void trib_listen_end(struct trib_listen *l, struct newcomer_slot *p, const char *why)
{
    const enum trib_newcomer_state before = p->n.state;

    trib_newcomer_end(&p->n, why);
    update(l, p, before);
}

void trib_listen_read(struct trib_listen *l, struct newcomer_slot *p)
{
    const enum trib_newcomer_state before = p->n.state;
    struct trib_newcomer *n = &p->n;

    if (before == TRIB_NEWCOMER_OVER)
        n->in_len = 0;
    assert(n->in_len < sizeof(n->in)); /* a whole frame fits */
    const ssize_t got =
        recv(p->base.fd, n->in + n->in_len, sizeof(n->in) - n->in_len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        trib_listen_end(l, p, "has left");
        trib_listen_hang_up(l, p);
        return;
    }
    p->heard = l->now;
    n->in_len += (size_t)got;
    if (before == TRIB_NEWCOMER_OVER)
        return;
    trib_newcomer_take(n, &l->rules);
    update(l, p, before);
}

void trib_listen_write(struct trib_listen *l, struct newcomer_slot *p)
{
    struct trib_newcomer *n = &p->n;

    while (p->base.fd >= 0 && n->out_len) {
        const ssize_t sent =
            send(p->base.fd, n->out, n->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) {
            trib_listen_end(l, p, "has left");
            trib_listen_hang_up(l, p);
            return;
        }
        n->out_len -= (size_t)sent;
        memmove(n->out, n->out + sent, n->out_len);
    }
}

/* Accepting ------------------------------------------------------------------------ */

static struct newcomer_slot *find_free(struct trib_listen *l)
{
    for (int i = 0; i < SLOTS; i++)
        if (l->slots[i].base.fd < 0 && !is_in_round(l, &l->slots[i]))
            return &l->slots[i];
    return NULL;
}

/* Close the connection that was refused first: it had the most time to read why. */
static bool close_refused(struct trib_listen *l)
{
    struct newcomer_slot *first = NULL;

    for (int i = 0; i < SLOTS; i++) {
        struct newcomer_slot *p = &l->slots[i];
        if (p->base.fd >= 0 && p->n.state == TRIB_NEWCOMER_OVER && !is_in_round(l, p) &&
            (!first || p->over < first->over))
            first = p;
    }
    if (first)
        trib_listen_hang_up(l, first);
    return first;
}

/* Close a refused connection, or evict one that has not authenticated. */
static bool make_room(struct trib_listen *l)
{
    return close_refused(l) || trib_acceptor_evict(&l->acceptor);
}

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    struct trib_listen *l = owner;
    struct newcomer_slot *p = find_free(l);

    (void)ip;
    if (!p && make_room(l))
        p = find_free(l);
    if (!p) { /* waiting newcomers hold all slots */
        close(fd);
        return NULL;
    }
    memset(p, 0, sizeof(*p));
    p->heard = l->now;
    return &p->base;
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *pending,
                                     enum trib_pending_end why)
{
    struct newcomer_slot *p = (struct newcomer_slot *)pending;

    trib_listen_end(owner, p,
                    why == TRIB_PENDING_LATE
                        ? "sent no join request within 5 s"
                        : "sent nothing while many others connected");
    trib_listen_hang_up(owner, p);
    return TRIB_PENDING_TAKEN;
}

static bool starved(void *owner, int listener)
{
    (void)listener;
    return make_room(owner);
}

const struct trib_acceptor_ops trib_listen_acceptor_ops = {
    .admit = admit, .finish = finish, .starved = starved};
