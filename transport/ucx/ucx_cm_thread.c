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
    HELLO_MS = 5000, /* for connections that send no hello */
    REFUSED_MS = 1000, /* for a refused peer to read the reason before the connection
                        * ends */
    WIRE_MS = 10000, /* limit for progressing a wire-up */
    HELP_MS = 1, /* interval of progress during wire-up */
    LOOK_MS = 50, /* interval between checks for overdue pending connections */
    AT_ONCE = 32,
};

/* Kind of a descriptor in manager_epoll. The label also holds the peer. */
enum { AT_STOP, AT_LISTENER, AT_GUEST, AT_OUT, AT_IN };

static uint64_t label(int what, int peer)
{
    return (uint64_t)what << 32 | (uint32_t)peer;
}

static void let_in(struct ucx *u, int fd, uint64_t what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = what};

    if (epoll_ctl(u->manager_epoll, EPOLL_CTL_ADD, fd, &e) != 0 && errno == EEXIST)
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_MOD, fd, &e);
}

void trib_ucx_look_at(struct ucx *u, int fd, int peer, bool out)
{
    let_in(u, fd, label(out ? AT_OUT : AT_IN, peer));
}

void trib_ucx_hang_up(struct ucx *u, int *fd)
{
    if (*fd < 0)
        return;
    (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

static void tell_owner(struct ucx *u)
{
    atomic_store_explicit(&u->async_events, true, memory_order_release);
    trib_ucx_ring(u);
}

/* A new socket has room for a message. If the buffer is full, its contents already wake
 * the reader. */
static void say(int fd, enum ucx_word_kind kind, uint64_t value)
{
    struct ucx_word word = {.magic = UCX_MAGIC, .kind = kind, .value = value};

    (void)send(fd, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send on both sockets, so that the peer cannot see either end before reading the
 * message. A wake needs only one socket. */
void trib_ucx_say(struct ucx *u, int peer, enum ucx_word_kind kind, uint64_t value)
{
    struct ucx_peer *p = &u->peers[peer];

    pthread_mutex_lock(&u->links);
    if (p->out >= 0)
        say(p->out, kind, value);
    if (p->in >= 0 && (kind != UCX_WAKE || p->out < 0))
        say(p->in, kind, value);
    pthread_mutex_unlock(&u->links);
}

/* Call with `links` held. */
static void hear(struct ucx_peer *p, const struct ucx_word *word)
{
    switch ((enum ucx_word_kind)word->kind) {
    case UCX_BYE:
        p->said_bye = true;
        p->sent = word->value;
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
static void listen_to(struct ucx *u, int peer, bool out)
{
    struct ucx_peer *p = &u->peers[peer];
    struct ucx_word word;

    pthread_mutex_lock(&u->links);
    int fd = out ? p->out : p->in;
    while (fd >= 0) {
        ssize_t n = recv(fd, &word, sizeof(word), MSG_DONTWAIT | MSG_PEEK);
        if ((n < 0 && (errno == EAGAIN || errno == EINTR)) ||
            (n > 0 && n < (ssize_t)sizeof(word)))
            break; /* an incomplete message */
        if (n > 0)
            n = recv(fd, &word, sizeof(word), MSG_DONTWAIT);
        if (n == (ssize_t)sizeof(word) && word.magic == UCX_MAGIC) {
            hear(p, &word);
            continue;
        }
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, fd, NULL);
        p->gone = true;
        break;
    }
    pthread_mutex_unlock(&u->links);
    tell_owner(u);
}

static uint64_t refusal(enum ucx_refusal why, uint32_t has)
{
    return (uint64_t)has << 32 | (uint32_t)why;
}

/* Check the fields of a hello; the worker address that follows is not needed. */
static uint64_t judge(const struct ucx *u, const struct ucx_hello *h)
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

static void warn(struct ucx *u, const struct ucx_pending_conn *g, const char *what)
{
    trib_stranger_warn(&u->strangers, u->log, "ucx", g->ip, u->listener.port, what);
}

static void refuse(struct ucx *u, struct ucx_pending_conn *g, uint64_t why)
{
    static const char *const reasons[] = {
        [UCX_OTHER_VERSION] = "uses another version of the ucx protocol",
        [UCX_OTHER_JOB] = "is a rank of another job",
        [UCX_OTHER_RANK] = "is a rank of a job of another size",
        [UCX_OTHER_SETTINGS] = "is a rank with different settings",
        [UCX_OTHER_RELEASE] = "uses another version of UCX",
        [UCX_TWICE] = "claims to be a rank that is connected already",
        [UCX_NO_ENDPOINT] = "is a rank for which UCX cannot create an endpoint",
        [UCX_OTHER_FLAGS] =
            "has no secret, but this rank has one (TRIB_KEY), or vice versa",
        [UCX_NOT_PROVED] = "did not prove that it has the secret of this job",
    };
    uint32_t reason = (uint32_t)why;

    if (reason != UCX_HAS_LEFT)
        warn(u, g, reasons[reason]);
    say(g->fd, UCX_REFUSE, why);
    (void)shutdown(g->fd, SHUT_WR);
    g->refused = true;
    g->until = trib_deadline_ms(REFUSED_MS);
}

/* Take `lock` from the manager. The owner busy-polls and would starve this thread; it
 * yields while `knocking` is non-zero. */
static void knock(struct ucx *u)
{
    atomic_fetch_add(&u->knocking, 1);
    pthread_mutex_lock(&u->lock);
    atomic_fetch_sub(&u->knocking, 1);
}

/* Create the peer's endpoint, with its error handler, before welcoming the peer.
 * Otherwise UCX would create one on its own that has no handler. */
static uint64_t expect(struct ucx *u, const struct ucx_pending_conn *g)
{
    struct ucx_peer *p = &u->peers[g->hello.rank];

    pthread_mutex_lock(&u->links);
    enum ucx_refusal why = p->closed    ? UCX_HAS_LEFT
                           : p->in >= 0 ? UCX_TWICE
                                        : UCX_WELCOME_HERE;
    pthread_mutex_unlock(&u->links);
    if (why != UCX_WELCOME_HERE)
        return refusal(why, 0);
    knock(u);
    ucs_status_t status = trib_ucx_endpoint(u, g->hello.rank, g->name);
    p->expected = status == UCS_OK;
    p->in_key = trib_ucx_pending_key(u, g);
    pthread_mutex_unlock(&u->lock);
    return status == UCS_OK ? UCX_WELCOME_HERE : refusal(UCX_NO_ENDPOINT, 0);
}

/* Answer a complete handshake. Return true if it became a peer. */
static bool answer(struct ucx *u, struct ucx_pending_conn *g)
{
    struct ucx_peer *p = &u->peers[g->hello.rank];
    uint64_t why = expect(u, g);

    pthread_mutex_lock(&u->links);
    if (why == UCX_WELCOME_HERE && p->closed) /* closed since expect() */
        why = UCX_HAS_LEFT;
    if (why == UCX_WELCOME_HERE) {
        say(g->fd, UCX_WELCOME, u->name_len);
        if (send(g->fd, u->name, u->name_len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
            (ssize_t)u->name_len)
            (void)shutdown(g->fd, SHUT_RDWR);
        p->in = g->fd;
        p->wire_until = trib_deadline_ms(WIRE_MS);
        trib_ucx_look_at(u, g->fd, g->hello.rank, false);
    }
    pthread_mutex_unlock(&u->links);
    if (why == UCX_WELCOME_HERE)
        return true;
    refuse(u, g, why);
    return false;
}

/* Check for end of stream: the other side has read the refusal and closed. */
static bool has_gone(int fd)
{
    char rest[4096];
    ssize_t n;

    do {
        n = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
    } while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* Return where the next byte after the hello goes: first the worker address, then the
 * proof. *left_out receives the bytes missing there. */
static uint8_t *place_of(struct ucx_pending_conn *g, uint32_t *left_out)
{
    uint32_t at = g->have - (uint32_t)sizeof(g->hello), name = g->hello.name_len;

    *left_out = at < name ? name - at : name + (uint32_t)sizeof(g->proof) - at;
    return at < name ? g->name + at : g->proof + (at - name);
}

/* Read the next bytes of hello, address and proof. Return a negative value if none will
 * come, 0 if none are available now. */
static ssize_t take_bytes(struct ucx_pending_conn *g)
{
    const uint32_t whole = sizeof(g->hello);
    bool head = g->have < whole;
    uint32_t left = whole - g->have;
    uint8_t *to = head ? (uint8_t *)&g->hello + g->have : place_of(g, &left);
    ssize_t n = recv(g->fd, to, left, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    g->have += n > 0 ? (uint32_t)n : 0;
    return n > 0 ? n : -1;
}

static bool turn_away(struct ucx *u, struct ucx_pending_conn *g)
{
    /* Otherwise it may be a rank that has died or disconnected since. */
    if (!g->refused && !g->proves)
        warn(u, g, "did not send a valid hello");
    trib_ucx_hang_up(u, &g->fd);
    return true;
}

/* Continue after the hello. Return true if the connection became a peer or was
 * closed. */
static bool welcome(struct ucx *u, struct ucx_pending_conn *g)
{
    uint32_t named = (uint32_t)sizeof(g->hello) + g->hello.name_len;

    if (g->have == named && !ucx_has_secret(u))
        return answer(u, g);
    if (g->have == named)
        return !trib_ucx_challenge(u, g) && turn_away(u, g);
    if (g->have < named + sizeof(g->proof))
        return false;
    if (trib_ucx_pending_proved(u, g))
        return answer(u, g);
    refuse(u, g, refusal(UCX_NOT_PROVED, 0));
    return false;
}

/* Read from a pending connection. Return true if it became a peer or was closed. */
static bool attend(struct ucx *u, struct ucx_pending_conn *g)
{
    ssize_t n = 1;

    while (!g->refused && (n = take_bytes(g)) > 0) {
        if (g->have >= sizeof(g->hello.magic) && g->hello.magic != UCX_MAGIC)
            return turn_away(u, g);
        if (g->have == sizeof(g->hello)) {
            uint64_t why = judge(u, &g->hello);
            g->name =
                why == UCX_WELCOME_HERE ? trib_ucx_name_room(g->hello.name_len) : NULL;
            if (!g->name)
                refuse(u, g, why ? why : refusal(UCX_NO_ENDPOINT, 0));
        } else if (g->have > sizeof(g->hello) && welcome(u, g)) {
            return true;
        }
    }
    if (g->refused && (has_gone(g->fd) || trib_deadline_passed(g->until))) {
        trib_ucx_hang_up(u, &g->fd);
        return true;
    }
    bool over = n < 0 || trib_deadline_passed(g->until);
    return !g->refused && over ? turn_away(u, g) : false;
}

static void attend_all(struct ucx *u)
{
    for (int i = 0; i < u->n_pending; i++) {
        if (!attend(u, &u->pending_conns[i]))
            continue;
        free(u->pending_conns[i].name);
        u->pending_conns[i--] = u->pending_conns[--u->n_pending];
    }
}

/* Evict the pending connection with the earliest deadline if there is no free slot. */
static void make_room(struct ucx *u)
{
    int first = 0;

    if (u->n_pending < u->max_pending)
        return;
    for (int i = 1; i < u->n_pending; i++) {
        if (u->pending_conns[i].until < u->pending_conns[first].until)
            first = i;
    }
    (void)turn_away(u, &u->pending_conns[first]);
    free(u->pending_conns[first].name);
    u->pending_conns[first] = u->pending_conns[--u->n_pending];
}

/* Stop watching the listener for a while after a failed accept. It stays readable and
 * would end each sleep. */
static void rest(struct ucx *u, int error)
{
    if (trib_accept_failed(&u->pause, error)) {
        errno = error;
        trib_log(u->log, TRIB_LOG_WARN, "ucx",
                 "rank %d cannot accept connections from peers: %m (%s)", u->self,
                 trib_accept_cure(error));
    }
    u->resting = trib_accept_paused(&u->pause);
    if (u->resting)
        (void)epoll_ctl(u->manager_epoll, EPOLL_CTL_DEL, u->listener.fd, NULL);
}

static void look_at_listener_again(struct ucx *u)
{
    if (!u->resting || trib_accept_paused(&u->pause))
        return;
    u->resting = false;
    let_in(u, u->listener.fd, label(AT_LISTENER, 0));
}

/* Accept at most max_pending connections per call, so that none is evicted before its
 * hello was checked. */
static void accept_some(struct ucx *u)
{
    uint8_t ip[16];

    for (int i = 0; i < u->max_pending; i++) {
        int fd = trib_net_accept(&u->listener, ip);
        if (fd < 0) {
            rest(u, errno);
            return;
        }
        make_room(u);
        assert(u->n_pending < u->max_pending);
        u->pending_conns[u->n_pending++] =
            (struct ucx_pending_conn){.fd = fd, .until = trib_deadline_ms(HELLO_MS)};
        memcpy(u->pending_conns[u->n_pending - 1].ip, ip, sizeof(ip));
        let_in(u, fd, label(AT_GUEST, 0));
    }
}

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
static void help(struct ucx *u)
{
    if (pthread_mutex_trylock(&u->lock) != 0)
        return;
    unsigned n = trib_ucx_progress(u);
    pthread_mutex_unlock(&u->lock);
    if (n)
        trib_ucx_ring(u);
}

/* Return how many messages of a peer have arrived, reported or not. */
static uint64_t arrived(struct ucx *u, const struct ucx_peer *p)
{
    knock(u);
    const uint64_t n = p->next + p->ready;
    pthread_mutex_unlock(&u->lock);
    return n;
}

/* Answer the goodbye of each peer whose messages have all arrived. Return true if more
 * are to come. */
static bool answer_farewells(struct ucx *u)
{
    bool more = false;

    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        pthread_mutex_lock(&u->links);
        const bool waits = p->said_bye && !p->answered && !p->gone && !p->closed;
        const uint64_t sent = p->sent;
        pthread_mutex_unlock(&u->links);
        if (!waits)
            continue;
        if (arrived(u, p) < sent) {
            more = true;
            continue;
        }
        pthread_mutex_lock(&u->links);
        p->answered = true;
        pthread_mutex_unlock(&u->links);
        trib_ucx_say(u, i, UCX_GOT_ALL, 0);
    }
    return more;
}

static void *manage(void *arg)
{
    struct ucx *u = arg;
    struct epoll_event events[AT_ONCE];
    bool on = true;

    while (on) {
        bool wiring = is_wiring(u) | answer_farewells(u);
        look_at_listener_again(u);
        int n = epoll_wait(u->manager_epoll, events, AT_ONCE,
                           wiring         ? HELP_MS
                           : u->resting   ? TRIB_ACCEPT_PAUSE_MS
                           : u->n_pending ? LOOK_MS
                                          : -1);
        for (int i = 0; i < n; i++) {
            int what = (int)(events[i].data.u64 >> 32);
            if (what == AT_OUT || what == AT_IN)
                listen_to(u, (int)(uint32_t)events[i].data.u64, what == AT_OUT);
            else if (what == AT_LISTENER)
                accept_some(u);
            on = on && what != AT_STOP;
        }
        attend_all(u);
        if (wiring)
            help(u);
    }
    return NULL;
}

trib_status_t trib_ucx_listen(struct ucx *u, int first_port, int ports)
{
    trib_status_t status =
        trib_net_bind("ucx", SOCK_STREAM, first_port, ports, &u->listener, u->err);

    if (status != TRIB_OK)
        return status;
    trib_net_fence(&u->local.ways.choice, "ucx", u->log, &u->listener);
    let_in(u, u->listener.fd, label(AT_LISTENER, 0));
    let_in(u, u->stop, label(AT_STOP, 0));
    return TRIB_OK;
}

trib_status_t trib_ucx_manager_start(struct ucx *u)
{
    int error = trib_thread_start(&u->manager, manage, u);

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
    for (int i = 0; i < u->n_pending; i++) {
        close(u->pending_conns[i].fd);
        free(u->pending_conns[i].name);
    }
    u->n_pending = 0;
}
