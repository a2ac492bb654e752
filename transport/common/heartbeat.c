/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heartbeats (beat.h) from one rank to another carry increasing numbers and count only
 * in that order, so replays are ignored. HEARTBEAT_CONTINUES counts at any time.
 *
 * A peer is judged only after a heartbeat came from it, or from another peer at its
 * address. If a firewall drops UDP, the job runs without heartbeats and logs a warning.
 * When a process ends, its kernel closes the port and answers later heartbeats (ICMP:
 * port unreachable). That answer quotes the heartbeat with its seal, so it cannot be
 * forged.
 */
#include "transport/common/heartbeat.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/common/absence.h"
#include "transport/common/beat.h"
#include "transport/common/net_addr.h"
#include "transport/open.h"

enum {
    BEATS = 20, /* per stop_timeout_ms: several may be lost in the network */
    STEP_MIN_MS = 5,
    STEP_MAX_MS = 250,
    CLIP_STEPS = 4, /* a step that took longer counts as this many */
    TAKE_AT_ONCE = 256,
    COPIES = 3, /* of HEARTBEAT_CONTINUES, which is not acknowledged */
    /* in a row mean that the process ended; a single one may come from a firewall whose
     * rules change */
    REFUSALS = 2,
};

struct watched {
    bool on;
    bool heard; /* at least once */
    bool warned;
    _Atomic bool lost;
    _Atomic bool closed; /* its port is closed: the process ended */
    _Atomic bool continues; /* it reported to continue without this rank; never reset */
    struct trib_heartbeat_peer who;
    uint64_t silent_ns; /* counts only time in which this process ran */
    uint64_t asked, answered, refused; /* question numbers */
    /* highest number of its own questions; kept while unwatched, too */
    uint64_t heard_ask;
    int refusals; /* since its last heartbeat */
    time_t last; /* time of its last heartbeat, wall clock */
};

struct trib_heartbeat {
    int self;
    int size;
    pid_t pid;
    const struct trib_log *log;
    const struct trib_secret *secret; /* NULL or not set: the job has no secret */
    struct trib_net_port port;
    int bell; /* eventfd: wakes the thread */
    _Atomic bool soon; /* the helper is scheduled regardless of its descriptor */
    uint64_t key;
    uint64_t timeout_ns, step_ns;
    struct trib_absence absence; /* of this process; the thread ticks */
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    bool stop;
    int helps_at; /* the helper's descriptor; -1: none */
    bool (*help)(void *arg); /* NULL: no helper */
    void *help_arg;
    int n_watched;
    struct watched *peers;
};

static void send_heartbeat(struct trib_heartbeat *p, struct beat *b, uint64_t key,
                           const struct sockaddr_storage *to, socklen_t len)
{
    b->magic = HEARTBEAT_MAGIC;
    b->from = p->self;
    trib_beat_seal(b, key, p->secret, b->seal);
    /* Ignore failures, such as a link that is down or a full queue: the silence shows.
     * The first attempt may only return the error of an earlier heartbeat. */
    for (int i = 0; i < 2; i++) {
        if (sendto(p->port.fd, b, sizeof(*b), MSG_DONTWAIT | MSG_NOSIGNAL,
                   (const struct sockaddr *)to, len) >= 0 ||
            errno == EAGAIN)
            return;
    }
}

/* Derive numbers from the clock, because several heartbeats of this process may ask the
 * same heartbeat of the peer. */
static uint64_t next_number(const struct watched *w)
{
    uint64_t now = trib_now_ns();

    return now > w->asked ? now : w->asked + 1;
}

static void send_to(struct trib_heartbeat *p, int peer, enum heartbeat_kind kind)
{
    struct watched *w = &p->peers[peer];
    struct beat b = {.kind = kind, .to = peer, .number = w->asked = next_number(w)};
    struct sockaddr_storage to;

    assert(peer >= 0 && peer < p->size);
    if (p->port.family == AF_INET && !trib_net_is_v4(w->who.ip))
        return; /* this kernel has no IPv6 */
    socklen_t len = trib_net_sockaddr(w->who.ip, w->who.port, p->port.family, &to);
    send_heartbeat(p, &b, w->who.key, &to, len);
}

static void ask(struct trib_heartbeat *p, int peer)
{
    send_to(p, peer, HEARTBEAT_ASK);
}

static void hear(struct watched *w)
{
    assert(w->on);
    w->heard = true;
    w->silent_ns = 0;
    w->refusals = 0;
    w->last = time(NULL);
}

static void take(struct trib_heartbeat *p, const struct beat *b,
                 const struct sockaddr_storage *from, socklen_t len)
{
    if (b->magic != HEARTBEAT_MAGIC || b->to != p->self || b->from < 0 ||
        b->from >= p->size || b->from == p->self)
        return;
    struct watched *w = &p->peers[b->from];
    if (b->kind == HEARTBEAT_ASK && b->number > w->heard_ask &&
        trib_beat_is_sealed(b, p->key, p->secret)) {
        w->heard_ask = b->number;
        struct beat answer = {
            .kind = HEARTBEAT_ANSWER, .to = b->from, .number = b->number};
        send_heartbeat(p, &answer, p->key, from, len);
        if (w->on && !atomic_load_explicit(&w->lost, memory_order_relaxed))
            hear(w);
    } else if (b->kind == HEARTBEAT_ANSWER && w->on &&
               !atomic_load_explicit(&w->lost, memory_order_relaxed) &&
               b->number > w->answered && b->number <= w->asked &&
               trib_beat_is_sealed(b, w->who.key, p->secret)) {
        w->answered = b->number;
        hear(w);
        if (b->number > w->refused) /* the refusals came from elsewhere */
            atomic_store_explicit(&w->closed, false, memory_order_release);
    } else if (b->kind == HEARTBEAT_CONTINUES &&
               trib_beat_is_sealed(b, p->key, p->secret)) {
        atomic_store_explicit(&w->continues, true, memory_order_release);
    }
}

/* Handle a heartbeat of ours that found its port closed. */
static void take_refusal(struct trib_heartbeat *p, const struct beat *b,
                         const struct sockaddr *to)
{
    uint8_t ip[16];

    if (b->magic != HEARTBEAT_MAGIC || b->kind != HEARTBEAT_ASK || b->from != p->self ||
        b->to < 0 || b->to >= p->size)
        return;
    struct watched *w = &p->peers[b->to];
    trib_net_ip(to, ip);
    if (!w->on || !w->heard || !trib_beat_is_sealed(b, w->who.key, p->secret) ||
        b->number <= w->answered || b->number <= w->refused || b->number > w->asked ||
        memcmp(ip, w->who.ip, sizeof(ip)) != 0)
        return;
    w->refused = b->number;
    if (++w->refusals >= REFUSALS)
        atomic_store_explicit(&w->closed, true, memory_order_release);
    else
        ask(p, b->to);
}

/* Read all errors that the network returned; unread errors would keep the socket
 * readable. */
static void take_returned(struct trib_heartbeat *p)
{
    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        _Alignas(struct cmsghdr) uint8_t control[256];
        struct sockaddr_storage to = {0};
        struct beat b;
        struct iovec part = {&b, sizeof(b)};
        struct msghdr m = {.msg_name = &to,
                           .msg_namelen = sizeof(to),
                           .msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(p->port.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (n == (ssize_t)sizeof(b) && m.msg_namelen && trib_net_is_port_closed(&m))
            take_refusal(p, &b, (const struct sockaddr *)&to);
    }
}

static void take_all(struct trib_heartbeat *p)
{
    take_returned(p);
    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        struct beat b;
        ssize_t n = recvfrom(p->port.fd, &b, sizeof(b), MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&from, &len);
        if (n < 0 && (errno == EINTR || errno == ECONNREFUSED))
            continue;
        if (n < 0)
            return;
        if (n == (ssize_t)sizeof(b))
            take(p, &b, &from, len);
    }
}

/* Return true if a heartbeat came from any peer at this address: then UDP gets
 * through. */
static bool is_reached(const struct trib_heartbeat *p, const uint8_t ip[16])
{
    for (int i = 0; i < p->size; i++)
        if (p->peers[i].heard && memcmp(p->peers[i].who.ip, ip, 16) == 0)
            return true;
    return false;
}

static void judge(struct trib_heartbeat *p, int peer)
{
    struct watched *w = &p->peers[peer];
    char ip[64];

    assert(w->on);
    if (w->silent_ns < p->timeout_ns)
        return;
    if (is_reached(p, w->who.ip)) {
        atomic_store(&w->lost, true);
        return;
    }
    if (w->warned)
        return;
    w->warned = true;
    trib_net_text(w->who.ip, ip, sizeof(ip));
    trib_log(
        p->log, TRIB_LOG_WARN, "heartbeat",
        "no heartbeat from rank %d, %s port %u: if it stops or its host fails, this is "
        "detected only after TRIB_TIMEOUT_MS; allow UDP between the hosts",
        peer, ip, w->who.port);
}

/* `elapsed` is clipped to time in which this process could run: when a whole job
 * resumes after suspension, its peers must not appear lost. */
static void step(struct trib_heartbeat *p, uint64_t elapsed)
{
    for (int i = 0; i < p->size; i++) {
        struct watched *w = &p->peers[i];
        if (!w->on || atomic_load_explicit(&w->lost, memory_order_relaxed))
            continue;
        w->silent_ns += elapsed;
        judge(p, i);
        ask(p, i);
    }
}

/* Call the helper if its descriptor is readable or its scheduled time *soon_at (0:
 * none) has come. */
static void help(struct trib_heartbeat *p, const struct pollfd *at, uint64_t *soon_at)
{
    const bool is_due = *soon_at && trib_deadline_passed(*soon_at);

    if (is_due) /* before the helper runs, so that a request made meanwhile counts */
        *soon_at = 0, atomic_store(&p->soon, false);
    if (p->help && (is_due || (at->revents && at->fd == p->helps_at)) &&
        p->help(p->help_arg))
        atomic_store(&p->soon, true);
}

/* Return the ms until `due` or the helper's time; -1: sleep until woken. */
static int sleep_ms(struct trib_heartbeat *p, uint64_t due, uint64_t *soon_at)
{
    if (!*soon_at && atomic_load(&p->soon))
        *soon_at = trib_deadline_ms(TRIB_HEARTBEAT_SOON_MS);
    if (*soon_at && *soon_at < due)
        due = *soon_at;
    return due == TRIB_NEVER ? -1 : trib_deadline_left_ms(due);
}

static void *beat(void *arg)
{
    struct trib_heartbeat *p = arg;
    struct pollfd fds[3] = {{.fd = p->port.fd, .events = POLLIN},
                            {.fd = p->bell, .events = POLLIN},
                            {.events = POLLIN}};
    uint64_t stepped = trib_now_ns(), soon_at = 0, rings;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        bool idle = p->n_watched == 0;
        uint64_t due = trib_deadline_later(
            stepped, idle ? trib_absence_step_ns(&p->absence) : p->step_ns);
        fds[2].fd = p->helps_at;
        pthread_mutex_unlock(&p->lock);
        (void)trib_poll(fds, 3, sleep_ms(p, due, &soon_at));
        trib_absence_tick(&p->absence);
        if (fds[1].revents && read(p->bell, &rings, sizeof(rings)) < 0)
            fds[1].revents = 0; /* one wakeup was written for two requests */
        pthread_mutex_lock(&p->lock);
        help(p, &fds[2], &soon_at);
        take_all(p);
        uint64_t now = trib_now_ns(), elapsed = now - stepped;
        if (now < due)
            continue;
        stepped = now;
        if (!idle)
            step(p,
                 elapsed < CLIP_STEPS * p->step_ns ? elapsed : CLIP_STEPS * p->step_ns);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void ring(struct trib_heartbeat *p)
{
    uint64_t one = 1;

    if (write(p->bell, &one, sizeof(one)) < 0)
        return; /* a wakeup is pending already */
}

static trib_status_t start_thread(struct trib_heartbeat *p, struct trib_error *err)
{
    errno = trib_thread_start(&p->thread, beat, p);
    if (errno)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot start the heartbeat thread: %m");
    return TRIB_OK;
}

static void release(struct trib_heartbeat *p)
{
    if (p->port.fd >= 0)
        close(p->port.fd);
    if (p->bell >= 0)
        close(p->bell);
    free(p->peers);
    free(p);
}

/* If the kernel returns no errors, the time-out detects the loss later. */
static void ask_for_refusals(const struct trib_net_port *port)
{
    int yes = 1;

    (void)setsockopt(port->fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes));
    if (port->family == AF_INET6)
        (void)setsockopt(port->fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof(yes));
}

static void set_times(struct trib_heartbeat *p, const struct trib_config *cfg)
{
    const uint64_t least = STEP_MIN_MS * UINT64_C(1000000);
    const uint64_t most = STEP_MAX_MS * UINT64_C(1000000);

    p->timeout_ns = trib_limit_ns(cfg->stop_timeout_ms);
    p->step_ns = p->timeout_ns / BEATS;
    p->step_ns = p->step_ns < least ? least : p->step_ns;
    p->step_ns = p->step_ns > most ? most : p->step_ns;
}

trib_status_t trib_heartbeat_open(const struct trib_transport_opts *opts,
                                  const char *owner, int port, int ports,
                                  struct trib_heartbeat **out)
{
    char name[64];
    struct trib_heartbeat *p = calloc(1, sizeof(*p));

    if (!p)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    p->self = opts->self;
    p->size = opts->size;
    p->pid = getpid();
    p->log = opts->log;
    p->secret = opts->secret;
    p->port.fd = p->helps_at = -1;
    p->bell = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    p->peers = calloc((size_t)opts->size, sizeof(*p->peers));
    set_times(p, opts->cfg);
    trib_absence_begin(&p->absence, opts->cfg->stop_timeout_ms);
    snprintf(name, sizeof(name), "heartbeats of %s", owner);
    trib_status_t status = TRIB_OK;
    if (!p->peers)
        status = trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    else if (p->bell < 0 ||
             getrandom(&p->key, sizeof(p->key), 0) != (ssize_t)sizeof(p->key))
        status = trib_fail(opts->err, TRIB_ERR_SYSTEM,
                           "heartbeats of %s: eventfd or getrandom: %m", owner);
    if (status == TRIB_OK)
        status = trib_net_bind(name, SOCK_DGRAM, port, ports, &p->port, opts->err);
    pthread_mutex_init(&p->lock, NULL);
    if (status == TRIB_OK)
        ask_for_refusals(&p->port);
    if (status == TRIB_OK)
        status = start_thread(p, opts->err);
    if (status != TRIB_OK) {
        pthread_mutex_destroy(&p->lock);
        release(p);
        return status;
    }
    *out = p;
    return TRIB_OK;
}

void trib_heartbeat_soon(struct trib_heartbeat *p)
{
    if (!atomic_exchange(&p->soon, true))
        ring(p);
}

void trib_heartbeat_help(struct trib_heartbeat *p, int fd, bool (*run)(void *arg),
                         void *arg)
{
    pthread_mutex_lock(&p->lock);
    p->helps_at = fd;
    p->help = run;
    p->help_arg = arg;
    pthread_mutex_unlock(&p->lock);
    ring(p);
}

void trib_heartbeat_fence(struct trib_heartbeat *p,
                          const struct trib_net_choice *choice)
{
    trib_net_fence(choice, "heartbeat", p->log, &p->port);
}

void trib_heartbeat_close(struct trib_heartbeat *p)
{
    if (!p)
        return;
    if (getpid() == p->pid) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_mutex_unlock(&p->lock);
        ring(p);
        pthread_join(p->thread, NULL);
        pthread_mutex_destroy(&p->lock);
    }
    release(p);
}

uint16_t trib_heartbeat_port(const struct trib_heartbeat *p)
{
    return p->port.port;
}

uint64_t trib_heartbeat_key(const struct trib_heartbeat *p)
{
    return p->key;
}

void trib_heartbeat_watch(struct trib_heartbeat *p, int peer,
                          const struct trib_heartbeat_peer *who)
{
    struct watched *w = &p->peers[peer];

    assert(peer >= 0 && peer < p->size);
    pthread_mutex_lock(&p->lock);
    p->n_watched += !w->on;
    w->on = true;
    w->heard = w->warned = false;
    atomic_store(&w->lost, false);
    atomic_store(&w->closed, false);
    w->refusals = 0;
    w->who = *who;
    w->silent_ns = 0;
    w->last = time(NULL);
    ask(p, peer);
    pthread_mutex_unlock(&p->lock);
    ring(p); /* while no peer is watched, the thread may sleep forever */
}

void trib_heartbeat_forget(struct trib_heartbeat *p, int peer)
{
    struct watched *w = &p->peers[peer];

    assert(peer >= 0 && peer < p->size);
    pthread_mutex_lock(&p->lock);
    p->n_watched -= w->on;
    w->on = false;
    atomic_store(&w->lost, false);
    atomic_store(&w->closed, false);
    pthread_mutex_unlock(&p->lock);
}

uint64_t trib_heartbeat_away(struct trib_heartbeat *p, bool maybe)
{
    return trib_absence_recent(&p->absence,
                               maybe ? TRIB_ABSENCE_DOUBTFUL : TRIB_ABSENCE_CERTAIN);
}

void trib_heartbeat_note_away(struct trib_heartbeat *p)
{
    for (int k = 0; p && k < TRIB_ABSENCE_KINDS; k++)
        (void)trib_absence_recent(&p->absence, (enum trib_absence_kind)k);
}

bool trib_heartbeat_heard(struct trib_heartbeat *p, int peer)
{
    pthread_mutex_lock(&p->lock);
    bool heard = !p->peers[peer].on || p->peers[peer].heard;
    pthread_mutex_unlock(&p->lock);
    return heard;
}

uint64_t trib_heartbeat_ask(struct trib_heartbeat *p, int peer)
{
    struct watched *w = &p->peers[peer];
    uint64_t number = 0;

    assert(peer >= 0 && peer < p->size);
    pthread_mutex_lock(&p->lock);
    if (w->on) {
        ask(p, peer);
        number = w->asked;
    }
    pthread_mutex_unlock(&p->lock);
    return number;
}

bool trib_heartbeat_answered(struct trib_heartbeat *p, int peer, uint64_t number)
{
    assert(peer >= 0 && peer < p->size);
    pthread_mutex_lock(&p->lock);
    bool answered = number && p->peers[peer].answered >= number;
    pthread_mutex_unlock(&p->lock);
    return answered;
}

void trib_heartbeat_send_continues(struct trib_heartbeat *p, int peer,
                                   const struct trib_heartbeat_peer *who)
{
    assert(peer >= 0 && peer < p->size);
    pthread_mutex_lock(&p->lock);
    p->peers[peer].who = *who;
    for (int i = 0; i < COPIES; i++)
        send_to(p, peer, HEARTBEAT_CONTINUES);
    pthread_mutex_unlock(&p->lock);
}

bool trib_heartbeat_continues(struct trib_heartbeat *p, int peer)
{
    return atomic_load_explicit(&p->peers[peer].continues, memory_order_acquire);
}

bool trib_heartbeat_closed(struct trib_heartbeat *p, int peer)
{
    return atomic_load_explicit(&p->peers[peer].closed, memory_order_acquire);
}

bool trib_heartbeat_lost(struct trib_heartbeat *p, int peer, char *why, size_t bytes)
{
    const struct watched *w = &p->peers[peer];
    char ip[64], since[32] = "";
    struct tm utc;

    if (!atomic_load_explicit(&w->lost, memory_order_acquire))
        return false;
    /* The thread does not modify a lost peer. */
    trib_net_text(w->who.ip, ip, sizeof(ip));
    if (gmtime_r(&w->last, &utc))
        strftime(since, sizeof(since), "%H:%M:%S UTC", &utc);
    snprintf(why, bytes, "no heartbeat from process %d at %s for %.1f s, since %s",
             w->who.pid, ip, (double)w->silent_ns / 1e9, since);
    return true;
}
