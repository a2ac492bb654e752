/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listener for newcomers of a running job. A thread owns the sockets and timers, so
 * newcomers are refused at once, and silence means that this process is stopped.
 *
 * listener_slots.c handles the connections, tcp_newcomer.c the bytes of each.
 */
#include "boot/tcp/listener_parts.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/idle_function.h"
#include "base/release.h"
#include "base/sockets.h"
#include "base/time.h"
#include "base/wait.h"

static void clear(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof(n)) < 0)
        assert(errno == EAGAIN || errno == EINTR);
}

/* Time ----------------------------------------------------------------------------- */

static void check_times(struct trib_listen *l)
{
    const bool tick = trib_listen_elapsed(l, l->ticked, TICK_MS);

    if (tick)
        l->ticked = l->now;
    trib_acceptor_expire(&l->acceptor);
    for (int i = 0; i < SLOTS; i++) {
        struct newcomer_slot *p = &l->slots[i];
        if (p->base.fd < 0)
            continue;
        if (p->n.state == TRIB_NEWCOMER_OVER) {
            if (trib_listen_elapsed(l, p->over, LINGER_MS))
                trib_listen_hang_up(l, p);
        } else if (trib_listen_elapsed(l, p->heard, l->silent_ms)) {
            trib_listen_end(l, p,
                            "is silent: it is stopped, or its host cannot be reached");
            trib_listen_hang_up(l, p);
        } else if (tick && p->n.state >= TRIB_NEWCOMER_WELCOME) {
            trib_newcomer_tick(&p->n);
        }
    }
}

/* Extend the deadlines after this process was stopped: peers may have been stopped as
 * well. */
static void forgive_gap(struct trib_listen *l)
{
    const uint64_t gap = trib_gap_ns(&l->now, TRIB_TCP_GAP_MS);

    trib_acceptor_forgive(&l->acceptor, gap);
    for (int i = 0; gap && i < SLOTS; i++) {
        l->slots[i].heard += gap;
        l->slots[i].over += gap;
    }
}

/* The thread ----------------------------------------------------------------------- */

static int fill_polls(struct trib_listen *l, struct pollfd *polls,
                      struct newcomer_slot **which)
{
    int n = 0;

    polls[n++] = (struct pollfd){l->wake, POLLIN, 0};
    for (int i = 0; i < l->n_fds && !trib_accept_paused(&l->acceptor.pause); i++) {
        which[n] = NULL;
        polls[n++] = (struct pollfd){l->fds[i], POLLIN, 0};
    }
    for (int i = 0; i < SLOTS; i++) {
        struct newcomer_slot *p = &l->slots[i];
        if (p->base.fd < 0)
            continue;
        which[n] = p;
        polls[n++] = (struct pollfd){p->base.fd,
                                     (short)(POLLIN | (p->n.out_len ? POLLOUT : 0)), 0};
    }
    return n;
}

static void read_slots(struct trib_listen *l, const struct pollfd *polls,
                       struct newcomer_slot *const *which, int n)
{
    for (int i = 1; i < n; i++)
        if (polls[i].revents && which[i] && which[i]->base.fd == polls[i].fd)
            trib_listen_read(l, which[i]);
}

/* Caller holds the lock. Handle the events and timers of one pass. */
static void take_pass(struct trib_listen *l, const struct pollfd *polls,
                      struct newcomer_slot *const *which, int n)
{
    read_slots(l, polls, which, n);
    for (int i = 1; i < n; i++)
        if (polls[i].revents && !which[i])
            trib_acceptor_accept(&l->acceptor, polls[i].fd);
    check_times(l);
    for (int i = 0; i < SLOTS; i++)
        trib_listen_write(l, &l->slots[i]);
    trib_listen_count_waiting(l);
}

/* Yield to waiting calls: the thread could otherwise retake the mutex first. */
static void yield_to_calls(struct trib_listen *l)
{
    while (atomic_load(&l->asking))
        sched_yield();
}

static void *serve(void *arg)
{
    struct trib_listen *l = arg;
    struct pollfd polls[1 + TRIB_TCP_LISTENERS_MAX + SLOTS];
    struct newcomer_slot *which[1 + TRIB_TCP_LISTENERS_MAX + SLOTS];

    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        const int n = fill_polls(l, polls, which);
        const int ms =
            trib_accept_paused(&l->acceptor.pause) ? TRIB_ACCEPT_PAUSE_MS : TICK_MS / 2;
        pthread_mutex_unlock(&l->lock);
        (void)trib_poll(polls, (nfds_t)n, ms);
        yield_to_calls(l);
        pthread_mutex_lock(&l->lock);
        clear(l->wake);
        forgive_gap(l);
        take_pass(l, polls, which, n);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Rounds --------------------------------------------------------------------------- */

static void lock_for_call(struct trib_listen *l)
{
    atomic_fetch_add(&l->asking, 1);
    pthread_mutex_lock(&l->lock);
    atomic_fetch_sub(&l->asking, 1);
}

int trib_listen_waiting(struct trib_listen *l)
{
    return atomic_load(&l->waiting);
}

static struct newcomer_slot *first_waiting(struct trib_listen *l)
{
    struct newcomer_slot *first = NULL;

    for (int i = 0; i < SLOTS; i++) {
        struct newcomer_slot *p = &l->slots[i];
        if (p->base.fd >= 0 && p->n.state == TRIB_NEWCOMER_WAITS &&
            (!first || p->number < first->number))
            first = p;
    }
    return first;
}

int trib_listen_begin(struct trib_listen *l, int most)
{
    struct newcomer_slot *p;

    if (!trib_listen_waiting(l))
        return 0;
    lock_for_call(l);
    assert(l->n_round == 0);
    while (l->n_round < most && (p = first_waiting(l))) {
        p->n.state = TRIB_NEWCOMER_ADMITTED;
        l->round[l->n_round++] = p;
    }
    trib_listen_count_waiting(l);
    pthread_mutex_unlock(&l->lock);
    return l->n_round;
}

void trib_listen_answer(struct trib_listen *l, int i, const void *result, size_t n)
{
    lock_for_call(l);
    assert(i < l->n_round);
    trib_newcomer_answer(&l->round[i]->n, result, n);
    trib_listen_write(l, l->round[i]);
    pthread_mutex_unlock(&l->lock);
    trib_listen_wake(l->wake);
}

/* Return TRIB_INPROGRESS until all have contributed. */
static trib_status_t try_collect(struct trib_listen *l, size_t bytes, char *out,
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
                             "the newcomer %s sent %u bytes instead of %zu", who,
                             n->bytes, bytes);
        if (n->given == n->answered)
            return trib_fail(err, TRIB_INPROGRESS, "the newcomer %s has sent no data",
                             who);
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
        lock_for_call(l);
        const trib_status_t st = try_collect(l, bytes, out, &why);
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

/* Free the slots of closed connections. */
static void end_round(struct trib_listen *l)
{
    const int n = l->n_round;

    l->n_round = 0;
    for (int i = 0; i < n; i++) {
        l->round[i]->over = l->now;
        trib_listen_write(l, l->round[i]);
        if (l->round[i]->base.fd < 0)
            trib_newcomer_free(&l->round[i]->n);
    }
    trib_listen_count_waiting(l);
    pthread_mutex_unlock(&l->lock);
    trib_listen_wake(l->wake);
}

void trib_listen_put_back(struct trib_listen *l)
{
    lock_for_call(l);
    for (int i = 0; i < l->n_round; i++)
        if (l->round[i]->n.state == TRIB_NEWCOMER_ADMITTED)
            l->round[i]->n.state = TRIB_NEWCOMER_WAITS;
    end_round(l);
}

void trib_listen_dismiss(struct trib_listen *l, trib_status_t status, const char *text)
{
    lock_for_call(l);
    for (int i = 0; i < l->n_round; i++)
        trib_newcomer_refuse(&l->round[i]->n, status, "%s", text);
    end_round(l);
}

void trib_listen_finish(struct trib_listen *l)
{
    lock_for_call(l);
    for (int i = 0; i < l->n_round; i++)
        trib_newcomer_end(&l->round[i]->n, "");
    end_round(l);
}

/* Beginning and end ---------------------------------------------------------------- */

static void listen_free(struct trib_listen *l)
{
    for (int i = 0; i < l->n_fds; i++)
        close(l->fds[i]);
    for (int i = 0; i < SLOTS; i++) {
        trib_acceptor_remove(&l->acceptor, &l->slots[i].base);
        if (l->slots[i].base.fd >= 0)
            close(l->slots[i].base.fd);
        trib_newcomer_free(&l->slots[i].n);
    }
    trib_acceptor_close(&l->acceptor);
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
    assert(opts->request_bytes <= sizeof(r->request));
    r->self.size = opts->size;
    r->self.has_secret = opts->secret->is_set;
    trib_rank_name_self(opts->rank, &r->self.who);
    snprintf(r->self.library, sizeof(r->self.library), "%s", trib_release);
    r->secret = *opts->secret;
    memcpy(r->request, opts->request, opts->request_bytes);
    r->request_bytes = (uint32_t)opts->request_bytes;
    r->fits = opts->fits;
}

static bool open_acceptor(struct trib_listen *l, unsigned port)
{
    l->acceptor = (struct trib_acceptor){.ops = &trib_listen_acceptor_ops,
                                         .owner = l,
                                         .log = &l->log,
                                         .component = "boot",
                                         .port = port,
                                         .max = UNPROVEN_MAX,
                                         .batch = ACCEPTS_AT_ONCE,
                                         .hello_ms = HELLO_MS,
                                         .per_source = UNPROVEN_OF_SOURCE,
                                         .source_ms = UNPROVEN_MS};
    snprintf(l->acceptor.cannot, sizeof(l->acceptor.cannot),
             "newcomers cannot be accepted at port %u", port);
    return trib_acceptor_open(&l->acceptor);
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
    const trib_status_t st =
        trib_sockets_listen(&root, opts->idle, err, l->fds, &l->n_fds);
    if (st != TRIB_OK)
        return st;
    if (!open_acceptor(l, (unsigned)atoi(root.port)))
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    const int error = trib_thread_start(&l->thread, serve, l);
    errno = error;
    return error ? trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread of boot: %m")
                 : TRIB_OK;
}

/* Apply a separate silence limit to newcomers if ranks have none: a newcomer must not
 * block trib_comm_grow. */
static int silent_ms(int stop_timeout_ms)
{
    if (!stop_timeout_ms)
        return UNLIMITED_SILENT_MS;
    return stop_timeout_ms < TRIB_TCP_SILENT_MS ? TRIB_TCP_SILENT_MS : stop_timeout_ms;
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
    for (int i = 0; i < SLOTS; i++)
        l->slots[i].base.fd = -1;
    l->log = *opts->log;
    trib_log_pace_init(&l->pace);
    l->log.pace = &l->pace;
    l->silent_ms = silent_ms(opts->stop_timeout_ms);
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
        trib_listen_wake(l->wake);
        pthread_join(l->thread, NULL);
    }
    listen_free(l);
}
