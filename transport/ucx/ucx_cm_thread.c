/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: the manager, a thread that accepts connections and reads control messages. It
 * also progresses UCX while an endpoint is being wired up or a peer disconnects. The
 * owner may compute for seconds, or wait in another communicator, and must not delay
 * its peers.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/ucx/ucx.h"

enum {
    WIRE_MS = 10000, /* limit for progressing a wire-up */
    PROGRESS_MS = 1, /* interval of progress during wire-up */
    EVENTS_MAX = 32,
};

/* Kind of a descriptor in manager_epoll. The label also holds the peer. */
enum { AT_STOP, AT_LISTENER, AT_PENDING, AT_OUT, AT_IN };

static uint64_t label(int what, int peer)
{
    return (uint64_t)what << 32 | (uint32_t)peer;
}

static void add_to_epoll(struct ucx *u, int fd, uint64_t what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = what};

    if (epoll_ctl(u->manager_epoll, EPOLL_CTL_ADD, fd, &e) != 0 && errno == EEXIST)
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_MOD, fd, &e);
}

/* Part of a message does not wake the manager; the end of the stream does. */
void trib_ucx_watch_fd(struct ucx *u, int fd, int peer, bool out)
{
    static const int least = sizeof(struct ucx_control);

    assert(fd >= 0 && peer >= 0 && peer < u->size);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
    add_to_epoll(u, fd, label(out ? AT_OUT : AT_IN, peer));
}

void trib_ucx_close_fd(struct ucx *u, int *fd)
{
    if (*fd < 0)
        return;
    (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

static void notify_owner(struct ucx *u)
{
    atomic_store_explicit(&u->async_events, true, memory_order_release);
    trib_ucx_signal_owner(u);
}

/* A new socket has room for a message. If the buffer is full, its contents already wake
 * the reader. */
static void send_control(int fd, enum ucx_control_kind kind, uint64_t value)
{
    struct ucx_control control = {.magic = UCX_MAGIC, .kind = kind, .value = value};

    (void)send(fd, &control, sizeof(control), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send on both sockets, so that the peer cannot see either end before reading the
 * message. A wake needs only one socket. */
void trib_ucx_send_control(struct ucx *u, int peer, enum ucx_control_kind kind,
                           uint64_t value)
{
    struct ucx_peer *p = &u->peers[peer];

    pthread_mutex_lock(&u->links);
    if (p->out >= 0)
        send_control(p->out, kind, value);
    if (p->in >= 0 && (kind != UCX_WAKE || p->out < 0))
        send_control(p->in, kind, value);
    pthread_mutex_unlock(&u->links);
}

/* Call with `links` held. */
static void handle_control(struct ucx_peer *p, const struct ucx_control *control)
{
    switch ((enum ucx_control_kind)control->kind) {
    case UCX_DISCONNECT:
        p->got_disconnect = true;
        p->sent = control->value;
        return;
    case UCX_GOT_ALL:
        p->got_all = true;
        return;
    case UCX_DROP:
        p->dropped = true;
        return;
    case UCX_UP:
        p->wire_until = 0;
        return;
    case UCX_WAKE:
    case UCX_WELCOME:
    case UCX_REFUSE:
    case UCX_CHALLENGE:
        return; /* a wake has nothing to record; the others are invalid here */
    }
}

/* Read all available control messages. Stop watching a socket once it has ended. */
static void read_control(struct ucx *u, int peer, bool out)
{
    struct ucx_peer *p = &u->peers[peer];
    struct ucx_control control;

    assert(peer >= 0 && peer < u->size);
    pthread_mutex_lock(&u->links);
    int fd = out ? p->out : p->in;
    while (fd >= 0) {
        ssize_t n = recv(fd, &control, sizeof(control), MSG_DONTWAIT | MSG_PEEK);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        const bool whole = n == (ssize_t)sizeof(control);
        if (n > 0 && !whole && !trib_net_is_truncated(fd, sizeof(control)))
            break; /* the rest is still on its way */
        if (whole)
            n = recv(fd, &control, sizeof(control), MSG_DONTWAIT);
        if (whole && n == (ssize_t)sizeof(control) && control.magic == UCX_MAGIC) {
            handle_control(p, &control);
            continue;
        }
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, fd, NULL);
        p->gone = true;
        break;
    }
    pthread_mutex_unlock(&u->links);
    notify_owner(u);
}

static uint64_t refusal(enum ucx_refusal why, uint32_t has)
{
    return (uint64_t)has << 32 | (uint32_t)why;
}

/* Check the fields of a hello; the worker address that follows is not needed. */
static uint64_t check_hello(const struct ucx *u, const struct ucx_hello *h)
{
    if (h->version != UCX_VERSION)
        return refusal(UCX_OTHER_VERSION, UCX_VERSION);
    if (h->key != u->local.key)
        return refusal(UCX_OTHER_JOB, 0);
    if (h->size != u->size || h->rank < 0 || h->rank >= u->size || h->rank == u->self)
        return refusal(UCX_OTHER_RANK, 0);
    if (h->flags != ucx_flags(u))
        return refusal(UCX_OTHER_FLAGS, 0);
    if (h->settings != u->settings)
        return refusal(UCX_OTHER_SETTINGS, 0);
    if (h->release != u->release || h->name_len == 0 || h->name_len > UCX_NAME_MAX)
        return refusal(UCX_OTHER_RELEASE, u->release);
    return UCX_WELCOME_HERE;
}

static void refuse(struct ucx *u, struct ucx_pending_conn *c)
{
    static const char *const reasons[] = {
        [UCX_OTHER_VERSION] = "uses another version of the ucx protocol",
        [UCX_OTHER_JOB] = "is a rank of another job",
        [UCX_OTHER_RANK] = "is a rank of a job of another size",
        [UCX_OTHER_SETTINGS] = "is a rank with different settings",
        [UCX_OTHER_RELEASE] = "uses another version of UCX",
        [UCX_TWICE] = "claims to be a rank that is connected already",
        [UCX_NO_ENDPOINT] = "is a rank for which UCX cannot create an endpoint",
        [UCX_OTHER_FLAGS] = TRIB_PROOF_ONE_SIDED,
        [UCX_NOT_PROVED] = TRIB_PROOF_UNPROVED,
    };
    uint32_t reason = (uint32_t)c->refusal;

    assert(c->refusal != UCX_WELCOME_HERE);
    if (reason != UCX_HAS_LEFT)
        trib_acceptor_warn(&u->acceptor, &c->base, reasons[reason]);
    send_control(c->base.fd, UCX_REFUSE, c->refusal);
}

/* Take `lock` from the manager. The owner busy-polls and would starve this thread; it
 * yields while `lock_waiters` is non-zero. */
static void lock_as_manager(struct ucx *u)
{
    atomic_fetch_add(&u->lock_waiters, 1);
    pthread_mutex_lock(&u->lock);
    atomic_fetch_sub(&u->lock_waiters, 1);
}

/* Create the peer's endpoint, with its error handler, before welcoming the peer.
 * Otherwise UCX would create one on its own that has no handler. */
static uint64_t prepare_endpoint(struct ucx *u, const struct ucx_pending_conn *c)
{
    struct ucx_peer *p = &u->peers[c->hello.rank];

    assert(c->name);
    pthread_mutex_lock(&u->links);
    enum ucx_refusal why = p->closed    ? UCX_HAS_LEFT
                           : p->in >= 0 ? UCX_TWICE
                                        : UCX_WELCOME_HERE;
    pthread_mutex_unlock(&u->links);
    if (why != UCX_WELCOME_HERE)
        return refusal(why, 0);
    lock_as_manager(u);
    ucs_status_t status = trib_ucx_endpoint(u, c->hello.rank, c->name);
    p->expected = status == UCS_OK;
    p->in_key = ucx_has_secret(u) ? trib_ucx_message_key(u, &c->proof) : u->local.key;
    pthread_mutex_unlock(&u->lock);
    return status == UCS_OK ? UCX_WELCOME_HERE : refusal(UCX_NO_ENDPOINT, 0);
}

/* Welcome the peer of a complete handshake, or return the refusal. */
static uint64_t welcome(struct ucx *u, const struct ucx_pending_conn *c)
{
    struct ucx_peer *p = &u->peers[c->hello.rank];
    uint64_t why = prepare_endpoint(u, c);
    const int fd = c->base.fd;

    pthread_mutex_lock(&u->links);
    if (why == UCX_WELCOME_HERE && p->closed) /* closed since prepare_endpoint() */
        why = UCX_HAS_LEFT;
    if (why == UCX_WELCOME_HERE) {
        send_control(fd, UCX_WELCOME, u->name_len);
        if (send(fd, u->name, u->name_len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
            (ssize_t)u->name_len)
            (void)shutdown(fd, SHUT_RDWR);
        p->in = fd;
        p->wire_until = trib_deadline_ms(WIRE_MS);
        trib_ucx_watch_fd(u, fd, c->hello.rank, false);
    }
    pthread_mutex_unlock(&u->links);
    return why;
}

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    struct ucx_pending_conn *c = calloc(1, sizeof(*c));
    struct ucx *u = owner;

    if (!c) {
        close(fd);
        return NULL;
    }
    trib_net_accepted(&u->listener, fd, ip);
    trib_pending_expect(&c->base, &c->hello, sizeof(c->hello));
    return &c->base;
}

/* Check the hello, then receive the worker address, then the proof. */
static bool judge(void *owner, struct trib_pending *p)
{
    struct ucx_pending_conn *c = (struct ucx_pending_conn *)p;
    struct ucx *u = owner;

    assert(!c->refusal && (!c->proof.step || p->to == c->answer));
    if (p->to == (uint8_t *)&c->hello && p->have >= sizeof(c->hello.magic) &&
        c->hello.magic != UCX_MAGIC)
        return true;
    if (p->have < p->want)
        return false;
    if (p->to == c->answer)
        return true;
    if (p->to == c->name) {
        p->ended = ucx_has_secret(u) && !trib_ucx_challenge(u, c);
        p->spoke = true;
        trib_pending_expect(p, c->answer, sizeof(c->answer));
        return !ucx_has_secret(u) || p->ended;
    }
    c->refusal = check_hello(u, &c->hello);
    if (c->refusal != UCX_WELCOME_HERE)
        return true;
    c->name = trib_ucx_name_room(c->hello.name_len);
    if (!c->name)
        c->refusal = refusal(UCX_NO_ENDPOINT, 0);
    trib_pending_expect(p, c->name, c->hello.name_len);
    return !c->name;
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    struct ucx_pending_conn *c = (struct ucx_pending_conn *)p;
    struct ucx *u = owner;

    if (why != TRIB_PENDING_JUDGED || c->hello.magic != UCX_MAGIC) {
        /* Otherwise it may be a rank that has died or disconnected since. */
        if (c->proof.step == TRIB_PROOF_NEW)
            trib_acceptor_warn(&u->acceptor, p, "did not send a valid hello");
        return TRIB_PENDING_CLOSE;
    }
    assert(p->judged && (c->refusal || c->name));
    if (c->refusal == UCX_WELCOME_HERE && ucx_has_secret(u) &&
        !trib_proof_check(u->secret, &c->proof, c->answer, sizeof(c->answer)))
        c->refusal = refusal(UCX_NOT_PROVED, 0);
    if (c->refusal == UCX_WELCOME_HERE)
        c->refusal = welcome(u, c);
    if (c->refusal == UCX_WELCOME_HERE)
        return TRIB_PENDING_TAKEN;
    refuse(u, c);
    return TRIB_PENDING_REFUSED;
}

static void watch(void *owner, int fd, bool on)
{
    struct ucx *u = owner;

    if (on)
        add_to_epoll(u, fd, label(fd == u->listener.fd ? AT_LISTENER : AT_PENDING, 0));
    else
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void free_pending(void *record)
{
    free(((struct ucx_pending_conn *)record)->name);
    free(record);
}

static const struct trib_acceptor_ops acceptor_ops = {.admit = admit,
                                                      .judge = judge,
                                                      .finish = finish,
                                                      .watch = watch,
                                                      .free = free_pending};

/* Return true while the endpoint of any accepted peer is being wired up. */
static bool is_wiring(struct ucx *u)
{
    bool wiring = false;

    pthread_mutex_lock(&u->links);
    for (int i = 0; i < u->size; i++) {
        uint64_t until = u->peers[i].wire_until;
        if (until && (u->peers[i].gone || trib_deadline_passed(until)))
            u->peers[i].wire_until = until = 0;
        wiring |= until != 0;
    }
    pthread_mutex_unlock(&u->links);
    return wiring;
}

/* Skip if `lock` is taken: its holder makes the same progress. */
static void progress_ucx(struct ucx *u)
{
    if (pthread_mutex_trylock(&u->lock) != 0)
        return;
    unsigned n = trib_ucx_progress(u);
    pthread_mutex_unlock(&u->lock);
    if (n)
        trib_ucx_signal_owner(u);
}

/* Return how many messages of a peer have arrived, reported or not. */
static uint64_t count_arrived(struct ucx *u, const struct ucx_peer *p)
{
    lock_as_manager(u);
    const uint64_t n = p->next + p->ready;
    pthread_mutex_unlock(&u->lock);
    return n;
}

/* Answer the DISCONNECT of each peer whose messages have all arrived. Return true if
 * more are to come. */
static bool answer_disconnects(struct ucx *u)
{
    bool more = false;

    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        pthread_mutex_lock(&u->links);
        const bool waits = p->got_disconnect && !p->answered && !p->gone && !p->closed;
        const uint64_t sent = p->sent;
        pthread_mutex_unlock(&u->links);
        if (!waits)
            continue;
        if (count_arrived(u, p) < sent) {
            more = true;
            continue;
        }
        pthread_mutex_lock(&u->links);
        p->answered = true;
        pthread_mutex_unlock(&u->links);
        trib_ucx_send_control(u, i, UCX_GOT_ALL, 0);
    }
    return more;
}

static void *manager_main(void *arg)
{
    struct ucx *u = arg;
    struct epoll_event events[EVENTS_MAX];
    bool on = true;

    while (on) {
        bool wiring = is_wiring(u) | answer_disconnects(u);
        bool accepts = u->acceptor.unwatched;
        int n = epoll_wait(u->manager_epoll, events, EVENTS_MAX,
                           wiring ? PROGRESS_MS : trib_acceptor_wait_ms(&u->acceptor));
        for (int i = 0; i < n; i++) {
            int what = (int)(events[i].data.u64 >> 32);
            if (what == AT_OUT || what == AT_IN)
                read_control(u, (int)(uint32_t)events[i].data.u64, what == AT_OUT);
            accepts |= what == AT_LISTENER;
            on = on && what != AT_STOP;
        }
        if (accepts)
            trib_acceptor_accept(&u->acceptor, u->listener.fd);
        trib_acceptor_progress(&u->acceptor);
        if (wiring)
            progress_ucx(u);
    }
    return NULL;
}

trib_status_t trib_ucx_listen(struct ucx *u, int first_port, int ports)
{
    const struct trib_net_rank rank = {"ucx", u->self, u->size};
    trib_status_t status =
        trib_net_bind("ucx", SOCK_STREAM, first_port, ports, &u->listener, u->err);

    if (status != TRIB_OK)
        return status;
    trib_net_fence(&u->local.ways.choice, "ucx", u->log, &u->listener);
    u->acceptor.ops = &acceptor_ops;
    u->acceptor.owner = u;
    u->acceptor.log = u->log;
    watch(u, u->listener.fd, true);
    add_to_epoll(u, u->stop, label(AT_STOP, 0));
    return trib_net_acceptor_open(&u->acceptor, &rank, &u->listener, u->err);
}

trib_status_t trib_ucx_manager_start(struct ucx *u)
{
    int error = trib_thread_start(&u->manager, manager_main, u);

    assert(!u->managed);
    u->managed = error == 0;
    errno = error;
    return error ? trib_fail(u->err, TRIB_ERR_SYSTEM, "ucx: cannot start a thread: %m")
                 : TRIB_OK;
}

void trib_ucx_manager_stop(struct ucx *u)
{
    uint64_t one = 1;

    if (!u->managed)
        return;
    if (write(u->stop, &one, sizeof(one)) == sizeof(one))
        pthread_join(u->manager, NULL);
    u->managed = false;
}
