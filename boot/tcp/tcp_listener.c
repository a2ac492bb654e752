/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port where newcomers come to a job that runs: a thread has the sockets and the
 * clock, so that a newcomer is refused at once, and silence means that this process is
 * stopped. tcp_newcomer.c judges what each one says.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/accept.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/idle_function.h"
#include "base/log.h"
#include "base/log_pace.h"
#include "base/release.h"
#include "base/sockets.h"
#include "base/stranger.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/newcomers.h"
#include "boot/tcp/tcp_newcomer.h"
#include "boot/tcp/tcp_server.h"

enum {
    PLACES = 64, /* for newcomers and strangers; the oldest stranger makes room */
    HELLO_MS = 5000, /* time to knock after the connection */
    FAREWELL_MS = 1000, /* time to read the last frame */
    TICK_MS = TRIB_TCP_TICK_MS,
};

struct place {
    int fd; /* -1: free */
    uint8_t ip[16];
    uint64_t since; /* ns: time of the connection, or since when it is OVER */
    uint64_t heard; /* ns */
    uint64_t number; /* of its knock: who comes first is admitted first */
    bool is_counted; /* number is set */
    struct trib_newcomer n;
};

struct trib_listen {
    pthread_t thread;
    pthread_mutex_t lock; /* for all below */
    pid_t pid; /* a forked child has no thread */
    bool stop;
    int wake; /* eventfd: the thread has something to send */
    int news; /* eventfd: the round has changed */
    struct trib_newcomer_rules rules;
    struct trib_log log;
    struct trib_log_pace pace;
    struct trib_accept_pause pause;
    struct trib_strangers strangers;
    unsigned port;
    int fds[TRIB_TCP_LISTENERS_MAX], n_fds;
    int silent_ms;
    struct place places[PLACES];
    uint64_t knocks;
    uint64_t now, ticked;
    struct place *round[PLACES];
    int n_round;
};

static void ring(int fd)
{
    const uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN);
}

static void clear(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof(n)) < 0)
        assert(errno == EAGAIN || errno == EINTR);
}

/* Places -------------------------------------------------------------------------- */

static bool is_in_round(const struct trib_listen *l, const struct place *p)
{
    for (int i = 0; i < l->n_round; i++)
        if (l->round[i] == p)
            return true;
    return false;
}

/* Its place stays taken while the round may name it. */
static void hang_up(struct trib_listen *l, struct place *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    if (is_in_round(l, p))
        return;
    trib_newcomer_free(&p->n);
}

/* Whoever has not proved to be of the job is a stranger. */
static void tell_of(struct trib_listen *l, struct place *p)
{
    const bool known = trib_net_is_set(p->ip);

    if (p->n.why[0])
        trib_stranger_warn(&l->strangers, &l->log, "boot", known ? p->ip : NULL,
                           l->port, p->n.why);
}

/* After anything that may have changed it. */
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
        ring(l->news);
}

static void end(struct trib_listen *l, struct place *p, const char *why)
{
    const enum trib_newcomer_state before = p->n.state;

    trib_newcomer_end(&p->n, why);
    look_at(l, p, before);
}

static void read_place(struct trib_listen *l, struct place *p)
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
        end(l, p, "has left");
        hang_up(l, p);
        return;
    }
    p->heard = l->now;
    n->in_len += (size_t)got;
    if (before == TRIB_NEWCOMER_OVER)
        return;
    trib_newcomer_take(n, &l->rules);
    look_at(l, p, before);
}

static void write_place(struct trib_listen *l, struct place *p)
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
            end(l, p, "has left");
            hang_up(l, p);
            return;
        }
        n->out_len -= (size_t)sent;
        memmove(n->out, n->out + sent, n->out_len);
    }
}

/* Others wait: a stranger loses its place before a newcomer does. */
static struct place *find_place(struct trib_listen *l)
{
    struct place *oldest = NULL;

    for (int i = 0; i < PLACES; i++) {
        struct place *p = &l->places[i];
        if (p->fd < 0 && !is_in_round(l, p))
            return p;
        if (p->fd >= 0 && p->n.state < TRIB_NEWCOMER_WAITS &&
            (!oldest || p->since < oldest->since))
            oldest = p;
    }
    if (oldest) {
        end(l, oldest, "said nothing while many others came");
        hang_up(l, oldest);
    }
    return oldest;
}

static void accept_all(struct trib_listen *l, int listener)
{
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        const int fd = trib_fd_keep(accept4(listener, (struct sockaddr *)&from, &bytes,
                                            SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (trib_accept_failed(&l->pause, errno))
                trib_log(&l->log, TRIB_LOG_WARN, "boot",
                         "newcomers cannot be let in at port %u: %m; %s", l->port,
                         trib_accept_cure(errno));
            return;
        }
        struct place *p = find_place(l);
        if (!p) {
            close(fd);
            return;
        }
        memset(p, 0, sizeof(*p));
        p->fd = fd;
        p->since = p->heard = l->now;
        trib_net_ip((struct sockaddr *)&from, p->ip);
    }
}

/* Time ----------------------------------------------------------------------------- */

static bool older(const struct trib_listen *l, uint64_t since, int ms)
{
    return l->now > since && l->now - since >= (uint64_t)ms * 1000000u;
}

static void check_times(struct trib_listen *l)
{
    const bool tick = older(l, l->ticked, TICK_MS);

    if (tick)
        l->ticked = l->now;
    for (int i = 0; i < PLACES; i++) {
        struct place *p = &l->places[i];
        if (p->fd < 0)
            continue;
        if (p->n.state < TRIB_NEWCOMER_WAITS && older(l, p->since, HELLO_MS)) {
            end(l, p, "did not knock within 5 s");
            hang_up(l, p);
        } else if (p->n.state == TRIB_NEWCOMER_OVER) {
            if (older(l, p->since, FAREWELL_MS))
                hang_up(l, p);
        } else if (older(l, p->heard, l->silent_ms)) {
            end(l, p, "is silent: it is stopped, or its host cannot be reached");
            hang_up(l, p);
        } else if (tick && p->n.state >= TRIB_NEWCOMER_WELCOME) {
            trib_newcomer_tick(&p->n);
        }
    }
}

/* While this process was stopped, so were perhaps the others: they get the time
 * back. */
static void forgive_gap(struct trib_listen *l)
{
    const uint64_t gap = trib_gap_ns(&l->now, TRIB_TCP_GAP_MS);

    for (int i = 0; gap && i < PLACES; i++) {
        l->places[i].heard += gap;
        l->places[i].since += gap;
    }
}

/* The thread ----------------------------------------------------------------------- */

static int fill_polls(struct trib_listen *l, struct pollfd *polls, struct place **which)
{
    int n = 0;

    polls[n++] = (struct pollfd){l->wake, POLLIN, 0};
    for (int i = 0; i < l->n_fds && !trib_accept_paused(&l->pause); i++) {
        which[n] = NULL;
        polls[n++] = (struct pollfd){l->fds[i], POLLIN, 0};
    }
    for (int i = 0; i < PLACES; i++) {
        struct place *p = &l->places[i];
        if (p->fd < 0)
            continue;
        which[n] = p;
        polls[n++] =
            (struct pollfd){p->fd, (short)(POLLIN | (p->n.out_len ? POLLOUT : 0)), 0};
    }
    return n;
}

static void *serve(void *arg)
{
    struct trib_listen *l = arg;
    struct pollfd polls[1 + TRIB_TCP_LISTENERS_MAX + PLACES];
    struct place *which[1 + TRIB_TCP_LISTENERS_MAX + PLACES];

    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        const int n = fill_polls(l, polls, which);
        const int ms = l->pause.until ? TRIB_ACCEPT_PAUSE_MS : TICK_MS / 2;
        pthread_mutex_unlock(&l->lock);
        (void)trib_poll(polls, (nfds_t)n, ms);
        pthread_mutex_lock(&l->lock);
        clear(l->wake);
        forgive_gap(l);
        for (int i = 1; i < n; i++)
            if (polls[i].revents && which[i] && which[i]->fd == polls[i].fd)
                read_place(l, which[i]);
        for (int i = 1; i < n; i++)
            if (polls[i].revents && !which[i])
                accept_all(l, polls[i].fd);
        check_times(l);
        for (int i = 0; i < PLACES; i++)
            write_place(l, &l->places[i]);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Rounds --------------------------------------------------------------------------- */

int trib_listen_waiting(struct trib_listen *l)
{
    int n = 0;

    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < PLACES; i++)
        n += l->places[i].fd >= 0 && l->places[i].n.state == TRIB_NEWCOMER_WAITS;
    pthread_mutex_unlock(&l->lock);
    return n;
}

static struct place *first_waiting(struct trib_listen *l)
{
    struct place *first = NULL;

    for (int i = 0; i < PLACES; i++) {
        struct place *p = &l->places[i];
        if (p->fd >= 0 && p->n.state == TRIB_NEWCOMER_WAITS &&
            (!first || p->number < first->number))
            first = p;
    }
    return first;
}

int trib_listen_begin(struct trib_listen *l, int most)
{
    struct place *p;

    pthread_mutex_lock(&l->lock);
    assert(l->n_round == 0);
    while (l->n_round < most && (p = first_waiting(l))) {
        p->n.state = TRIB_NEWCOMER_ADMITTED;
        l->round[l->n_round++] = p;
    }
    pthread_mutex_unlock(&l->lock);
    return l->n_round;
}

void trib_listen_answer(struct trib_listen *l, int i, const void *result, size_t n)
{
    pthread_mutex_lock(&l->lock);
    assert(i < l->n_round);
    trib_newcomer_answer(&l->round[i]->n, result, n);
    write_place(l, l->round[i]);
    pthread_mutex_unlock(&l->lock);
    ring(l->wake);
}

/* TRIB_INPROGRESS: they have not all given. */
static trib_status_t look(struct trib_listen *l, size_t bytes, char *out,
                          struct trib_error *err)
{
    char who[TRIB_RANK_NAME_BYTES];

    for (int i = 0; i < l->n_round; i++) {
        const struct trib_newcomer *n = &l->round[i]->n;
        snprintf(who, sizeof(who), "(process %d on %s)", n->said.who.pid,
                 n->said.who.host);
        if (n->state == TRIB_NEWCOMER_OVER)
            return trib_fail(err, TRIB_ERR_PEER_LOST, "the newcomer %s %s", who,
                             n->why);
        if (n->given > n->answered && n->bytes != bytes)
            return trib_fail(err, TRIB_ERR_PROTOCOL,
                             "the newcomer %s gave %u bytes, and %zu were due", who,
                             n->bytes, bytes);
        if (n->given == n->answered)
            return trib_fail(err, TRIB_INPROGRESS, "the newcomer %s says nothing", who);
    }
    for (int i = 0; i < l->n_round; i++)
        memcpy(out + (size_t)i * bytes, l->round[i]->n.blob, bytes);
    return TRIB_OK;
}

trib_status_t trib_listen_collect(struct trib_listen *l, size_t bytes, void *out,
                                  int ms, struct trib_idle *idle,
                                  struct trib_error *err)
{
    const uint64_t until = trib_limit_deadline(ms);
    struct pollfd news = {.fd = l->news, .events = POLLIN};
    struct trib_error why = {0};

    for (;;) {
        clear(l->news);
        pthread_mutex_lock(&l->lock);
        const trib_status_t st = look(l, bytes, out, &why);
        pthread_mutex_unlock(&l->lock);
        if (st == TRIB_OK)
            return st;
        if (st != TRIB_INPROGRESS)
            return trib_fail(err, st, "%s", trib_error_text(&why));
        if (trib_deadline_passed(until))
            return trib_fail(err, TRIB_ERR_TIMEOUT, "%s for %d ms",
                             trib_error_text(&why), ms);
        if (trib_idle_poll(idle, &news, 1, trib_deadline_left_ms(until)) < 0 &&
            errno != EINTR && errno != ECANCELED)
            return trib_fail(err, TRIB_ERR_SYSTEM, "poll failed in boot: %m");
        if (trib_idle_answer(idle))
            return trib_fail(err, TRIB_ERR_ABORTED, "the idle function has given up");
    }
}

/* Those whose connection has ended give their places back. */
static void end_round(struct trib_listen *l)
{
    const int n = l->n_round;

    l->n_round = 0;
    for (int i = 0; i < n; i++) {
        l->round[i]->since = l->now;
        write_place(l, l->round[i]);
        if (l->round[i]->fd < 0)
            trib_newcomer_free(&l->round[i]->n);
    }
    pthread_mutex_unlock(&l->lock);
    ring(l->wake);
}

void trib_listen_put_back(struct trib_listen *l)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_round; i++)
        if (l->round[i]->n.state == TRIB_NEWCOMER_ADMITTED)
            l->round[i]->n.state = TRIB_NEWCOMER_WAITS;
    end_round(l);
}

void trib_listen_dismiss(struct trib_listen *l, trib_status_t status, const char *text)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_round; i++)
        trib_newcomer_refuse(&l->round[i]->n, status, "%s", text);
    end_round(l);
}

void trib_listen_finish(struct trib_listen *l)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_round; i++)
        trib_newcomer_end(&l->round[i]->n, "");
    end_round(l);
}

/* Beginning and end ---------------------------------------------------------------- */

static void listen_free(struct trib_listen *l)
{
    for (int i = 0; i < l->n_fds; i++)
        close(l->fds[i]);
    for (int i = 0; i < PLACES; i++) {
        if (l->places[i].fd >= 0)
            close(l->places[i].fd);
        trib_newcomer_free(&l->places[i].n);
    }
    if (l->wake >= 0)
        close(l->wake);
    if (l->news >= 0)
        close(l->news);
    trib_secret_wipe(&l->rules.secret);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void fill_rules(struct trib_newcomer_rules *r,
                       const struct trib_listen_opts *opts)
{
    assert(opts->knock_bytes <= sizeof(r->knock));
    r->self.size = opts->size;
    r->self.has_secret = opts->secret->is_set;
    trib_rank_name_self(opts->rank, &r->self.who);
    snprintf(r->self.library, sizeof(r->self.library), "%s", trib_release);
    r->secret = *opts->secret;
    memcpy(r->knock, opts->knock, opts->knock_bytes);
    r->knock_bytes = (uint32_t)opts->knock_bytes;
    r->fits = opts->fits;
}

static trib_status_t begin(struct trib_listen *l, const struct trib_listen_opts *opts,
                           struct trib_error *err)
{
    struct trib_tcp_root root;

    l->wake = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    l->news = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (l->wake < 0 || l->news < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot wait for newcomers: %m");
    if (!trib_tcp_root_parse(opts->root, &root))
        return trib_fail(err, TRIB_ERR_INVALID, "\"%s\" is not host:port", opts->root);
    const trib_status_t st = trib_tcp_listen(&root, err, l->fds, &l->n_fds);
    if (st != TRIB_OK)
        return st;
    l->port = (unsigned)atoi(root.port);
    const int error = trib_thread_start(&l->thread, serve, l);
    errno = error;
    return error ? trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread of boot: %m")
                 : TRIB_OK;
}

trib_status_t trib_listen_open(const struct trib_listen_opts *opts,
                               struct trib_error *err, struct trib_listen **out)
{
    struct trib_listen *l = calloc(1, sizeof(*l));

    if (!l)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    pthread_mutex_init(&l->lock, NULL);
    l->pid = getpid();
    l->wake = l->news = -1;
    for (int i = 0; i < PLACES; i++)
        l->places[i].fd = -1;
    l->log = *opts->log;
    trib_log_pace_init(&l->pace);
    l->log.pace = &l->pace;
    l->silent_ms = opts->stop_timeout_ms < TRIB_TCP_SILENT_MS ? TRIB_TCP_SILENT_MS
                                                              : opts->stop_timeout_ms;
    fill_rules(&l->rules, opts);
    l->now = l->ticked = trib_now_ns();
    const trib_status_t st = begin(l, opts, err);
    if (st != TRIB_OK) {
        listen_free(l);
        return st;
    }
    *out = l;
    return TRIB_OK;
}

void trib_listen_close(struct trib_listen *l)
{
    if (!l)
        return;
    if (l->pid == getpid()) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_mutex_unlock(&l->lock);
        ring(l->wake);
        pthread_join(l->thread, NULL);
    }
    listen_free(l);
}
