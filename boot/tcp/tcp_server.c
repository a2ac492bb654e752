/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp/tcp_server.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/tcp/tcp_job.h"

enum {
    HELLO_MS = 5000, /* timeout for the HELLO after the connection */
    UNPROVEN_MS = 500, /* many times the duration of a proof */
    ACCEPTS_AT_ONCE = 64, /* maximum accepted from a listener per pass */
};

/* Sockets -------------------------------------------------------------------------- */

static void parse_all(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    struct trib_tcp_frame frame;
    size_t used = 0;
    size_t done = 0;

    while (c->fd >= 0) {
        trib_status_t status =
            trib_tcp_parse(c->in + done, c->in_len - done, 0, &frame, &used);
        if (status == TRIB_INPROGRESS)
            break;
        if (status != TRIB_OK) {
            trib_tcp_not_a_frame(s, c, status);
            return;
        }
        trib_tcp_take_frame(s, c, &frame);
        done += used;
    }
    memmove(c->in, c->in + done, c->in_len - done);
    c->in_len -= done;
}

static void read_conn(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    assert(c->in_len <
           sizeof(c->in)); /* a whole frame fits and would have been handled */
    ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        trib_tcp_lose(s, c);
        return;
    }
    if (c->hello)
        c->heard = s->now;
    c->in_len += (size_t)n;
    parse_all(s, c);
}

/* Select the next message; return false if none is pending. */
static bool next_out(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    c->out = c->small;
    if (c->pending & TRIB_SEND_CHALLENGE) {
        c->pending &= ~(unsigned)TRIB_SEND_CHALLENGE;
        c->out_len = trib_tcp_put_challenge(c->small, &c->challenge);
    } else if (c->pending & TRIB_SEND_WELCOME) {
        c->pending &= ~(unsigned)TRIB_SEND_WELCOME;
        c->out_len = trib_tcp_put_hello(c->small, TRIB_TCP_WELCOME, &s->opts.self);
    } else if (c->pending & TRIB_SEND_RESULT) {
        c->pending &= ~(unsigned)TRIB_SEND_RESULT;
        c->out = s->results[c->exchange & 1];
        c->out_len = s->result_len[c->exchange & 1];
    } else if (c->pending & TRIB_SEND_FAIL) {
        c->pending &= ~(unsigned)TRIB_SEND_FAIL;
        if (c->who.rank < s->size)
            s->notified[c->who.rank] = true;
        c->out_len = trib_tcp_put_fail(c->small, &s->failure);
    } else if (c->pending & TRIB_SEND_TICK) {
        c->pending &= ~(unsigned)TRIB_SEND_TICK;
        c->out_len = trib_tcp_put_head(c->small, TRIB_TCP_TICK, 0, 0);
    }
    return c->out_len > 0;
}

static void write_conn(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    while (c->fd >= 0 && (c->out_len || next_out(s, c))) {
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            trib_tcp_lose(s, c);
            return;
        }
        c->out += n;
        c->out_len -= (size_t)n;
    }
}

/* Return true if a is to be evicted before b: one that has sent no HELLO, else the
 * older one. A rank that is evicted after its HELLO does not try again. */
static bool leaves_before(const struct trib_tcp_conn *a, const struct trib_tcp_conn *b)
{
    const bool silent_a = a->proof.step == TRIB_PROOF_NEW;
    const bool silent_b = b->proof.step == TRIB_PROOF_NEW;

    return silent_a != silent_b ? silent_a : a->heard < b->heard;
}

/* Return the unauthenticated peer to evict; NULL: none. */
static struct trib_tcp_conn *first_unauthenticated(struct trib_tcp_server *s)
{
    struct trib_tcp_conn *first = NULL;

    for (int i = 0; i < trib_tcp_conns(s); i++) {
        struct trib_tcp_conn *c = &s->conns[i];
        if (c->fd >= 0 && !c->hello && !c->own && (!first || leaves_before(c, first)))
            first = c;
    }
    return first;
}

static void evict(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    trib_tcp_reject(s, c, false, "sent nothing while many others connected");
}

/* Return a free slot for a new connection, if needed after evicting an unauthenticated
 * peer. */
static struct trib_tcp_conn *find_place(struct trib_tcp_server *s)
{
    for (int i = 0; i < trib_tcp_conns(s); i++)
        if (s->conns[i].fd < 0)
            return &s->conns[i];
    struct trib_tcp_conn *c = first_unauthenticated(s);
    if (c)
        evict(s, c);
    return c;
}

/*
 * Notify also the ranks still waiting to join: notified ranks disconnect, which frees
 * descriptors for the next ones.
 */
static void fail_full(struct trib_tcp_server *s, int error)
{
    char who[TRIB_RANK_NAME_BYTES];
    struct rlimit limit = {0};

    trib_rank_name_format(&s->opts.self.who, who);
    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        trib_tcp_fail_all(
            s, TRIB_ERR_SYSTEM,
            "%s may open %llu files, which is too few for the %d ranks that connect "
            "to it: raise its limit (ulimit -n, or LimitNOFILE= of a "
            "service) above the number of ranks",
            who, (unsigned long long)limit.rlim_cur, s->size);
        return;
    }
    errno = error;
    trib_tcp_fail_all(s, TRIB_ERR_SYSTEM,
                      "%s cannot take the connections of other ranks: %m%s%s", who,
                      trib_accept_cure(error)[0] ? ": " : "", trib_accept_cure(error));
}

/* No descriptor is left: evict an unauthenticated peer that had time for its next
 * message; if there are only ranks, fail. Return true to accept again at once. */
static bool free_descriptor(struct trib_tcp_server *s, int error)
{
    struct trib_tcp_conn *c = first_unauthenticated(s);

    if (!c) {
        fail_full(s, error);
        return false;
    }
    const uint64_t ms = c->proof.step == TRIB_PROOF_NEW ? 0 : UNPROVEN_MS;
    if (s->now <= c->heard || s->now - c->heard < ms * TRIB_TCP_MS)
        return false;
    evict(s, c);
    s->pause.until = 0;
    return true;
}

/* Accept one connection; return false if there is none. */
static bool accept_one(struct trib_tcp_server *s, int listener)
{
    uint8_t ip[16];
    const int fd = trib_accept_next(listener, ip);

    if (fd < 0 && errno == EAGAIN)
        return false;
    if (fd < 0) {
        const int error = errno;
        (void)trib_accept_failed(&s->pause, error); /* reported to all ranks */
        return !trib_accept_paused(&s->pause) || free_descriptor(s, error);
    }
    struct trib_tcp_conn *c = find_place(s);
    if (!c) {
        close(fd);
        return true;
    }
    *c = (struct trib_tcp_conn){.fd = fd, .heard = s->now, .who = {.rank = -1}};
    memcpy(c->ip, ip, sizeof(c->ip));
    return true;
}

/* Accept a bounded number, so that a flood delays no rank that has connected. */
static void accept_some(struct trib_tcp_server *s, int listener)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE && accept_one(s, listener); i++)
        continue;
}

/* Time ----------------------------------------------------------------------------- */

static void check_deadline(struct trib_tcp_server *s)
{
    char ranks[TRIB_TCP_TEXT_BYTES / 2];

    if (s->now < s->deadline || !trib_tcp_busy(s))
        return;
    bool joining = s->joined < s->size;
    for (int i = 0; i < s->size; i++)
        s->missing[i] = joining ? !s->ranks[i] : s->ranks[i]->exchange < s->exchange;
    trib_ranks_format(s->missing, s->size, ranks, sizeof(ranks));
    trib_tcp_fail_all(
        s, TRIB_ERR_BOOT,
        "%s of %d did not come to phase %s of the start within %d ms: start as many "
        "ranks as TRIB_SIZE says, or raise TRIB_BOOT_TIMEOUT_MS%s",
        ranks, s->size, s->phase, s->opts.boot_timeout_ms, s->note);
}

static void check_silence(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    char who[TRIB_RANK_NAME_BYTES];
    int limit = s->opts.stop_timeout_ms;

    if (limit && limit < TRIB_TCP_SILENT_MS)
        limit = TRIB_TCP_SILENT_MS;
    if (c->own || s->now - c->heard < trib_limit_ns(limit))
        return;
    trib_tcp_fail_all(
        s, TRIB_ERR_PEER_LOST,
        "%s has been silent for %d ms, phase %s of the start: it is stopped, or its "
        "host cannot be reached",
        trib_rank_name_format(&c->who, who), limit, s->phase);
}

static void check_times(struct trib_tcp_server *s)
{
    check_deadline(s);
    bool tick = s->now - s->ticked >= TRIB_TCP_TICK_MS * TRIB_TCP_MS;
    if (tick)
        s->ticked = s->now;
    for (int i = 0; i < trib_tcp_conns(s); i++) {
        struct trib_tcp_conn *c = &s->conns[i];
        if (c->fd < 0)
            continue;
        if (!c->hello) {
            if (!c->own && s->now - c->heard >= HELLO_MS * TRIB_TCP_MS)
                trib_tcp_reject(s, c, c->proof.step != TRIB_PROOF_NEW,
                                "said nothing for 5 s");
            continue;
        }
        if (!s->failed)
            check_silence(s, c);
        if (tick && !c->out_len && !c->pending)
            c->pending = TRIB_SEND_TICK;
    }
}

/* Extend the deadlines after this process was stopped: peers may have been stopped as
 * well. */
static void forgive_gap(struct trib_tcp_server *s)
{
    uint64_t gap = trib_gap_ns(&s->now, TRIB_TCP_GAP_MS);

    s->deadline = trib_deadline_later(s->deadline, gap);
    for (int i = 0; gap && i < trib_tcp_conns(s); i++)
        s->conns[i].heard += gap;
}

/* Rank 0 disconnects: return true if the others have received everything, or it is too
 * late. */
static bool may_leave(const struct trib_tcp_server *s)
{
    if (!s->leaving)
        return false;
    if (s->now >= s->linger_until)
        return true;
    for (int i = 0; s->failed && i < s->size; i++)
        if (!s->notified[i] && !s->gone[i])
            return false;
    for (int i = 0; i < trib_tcp_conns(s); i++) {
        const struct trib_tcp_conn *c = &s->conns[i];
        if (c->fd >= 0 && c->hello &&
            (c->out_len || c->pending & ~(unsigned)TRIB_SEND_TICK ||
             !trib_sockets_sent(c->fd)))
            return false;
    }
    return true;
}

static int fill_polls(struct trib_tcp_server *s)
{
    int n = 0;

    for (int i = 0; i < s->opts.n_listeners && !trib_accept_paused(&s->pause); i++)
        s->polls[n++] = (struct pollfd){s->opts.listeners[i], POLLIN, 0};
    s->n_polled_listeners = n;
    for (int i = 0; i < trib_tcp_conns(s); i++) {
        const struct trib_tcp_conn *c = &s->conns[i];
        short events = (short)(POLLIN | (c->out_len || c->pending ? POLLOUT : 0));
        if (c->fd < 0)
            continue;
        s->polled[n] = i;
        s->polls[n++] = (struct pollfd){c->fd, events, 0};
    }
    return n;
}

/* Service the connections anyway if poll() fails, so that all ranks are notified. */
static void wait_for_ranks(struct trib_tcp_server *s, int n)
{
    const int ms = s->leaving                      ? 5
                   : trib_accept_paused(&s->pause) ? TRIB_ACCEPT_PAUSE_MS
                                                   : TRIB_TCP_TICK_MS / 2;

    if (trib_poll(s->polls, (nfds_t)n, ms) >= 0)
        return;
    trib_tcp_fail_all(
        s, TRIB_ERR_SYSTEM,
        "rank 0 cannot wait for the connections of the others: poll of %d: %m", n);
    for (int i = 0; i < n; i++)
        s->polls[i].revents = s->polls[i].events;
}

static void *serve(void *arg)
{
    struct trib_tcp_server *s = arg;

    while (!may_leave(s)) {
        const int n = fill_polls(s);
        wait_for_ranks(s, n);
        forgive_gap(s);
        for (int i = s->n_polled_listeners; i < n; i++)
            if (s->polls[i].revents && s->conns[s->polled[i]].fd >= 0)
                read_conn(s, &s->conns[s->polled[i]]);
        /* The HELLO of the last rank closes the listeners. */
        for (int i = 0; i < s->n_polled_listeners && s->opts.n_listeners; i++)
            if (s->polls[i].revents)
                accept_some(s, s->polls[i].fd);
        check_times(s);
        for (int i = 0; i < trib_tcp_conns(s); i++)
            write_conn(s, &s->conns[i]);
    }
    return NULL;
}

/* Begin and end -------------------------------------------------------------------- */

static void server_free(struct trib_tcp_server *s)
{
    trib_tcp_close_listeners(s);
    for (int i = 0; s->conns && i < trib_tcp_conns(s); i++)
        if (s->conns[i].fd >= 0)
            close(s->conns[i].fd);
    free(s->results[0]);
    free(s->results[1]);
    free(s->conns);
    free(s->ranks);
    free(s->gone);
    free(s->notified);
    free(s->missing);
    free(s->polls);
    free(s->polled);
    free(s);
}

static bool server_alloc(struct trib_tcp_server *s)
{
    size_t size = (size_t)s->size;
    size_t conns = size + TRIB_TCP_UNAUTHENTICATED_MAX;

    s->conns = calloc(conns, sizeof(*s->conns));
    s->ranks = calloc(size, sizeof(struct trib_tcp_conn *));
    s->gone = calloc(size, sizeof(*s->gone));
    s->notified = calloc(size, sizeof(*s->notified));
    s->missing = calloc(size, sizeof(*s->missing));
    s->polls = calloc(conns + TRIB_TCP_LISTENERS_MAX, sizeof(*s->polls));
    s->polled = calloc(conns + TRIB_TCP_LISTENERS_MAX, sizeof(*s->polled));
    for (size_t i = 0; s->conns && i < conns; i++)
        s->conns[i].fd = -1;
    return s->conns && s->ranks && s->gone && s->notified && s->missing && s->polls &&
           s->polled;
}

trib_status_t trib_tcp_server_start(const struct trib_tcp_server_opts *opts,
                                    struct trib_error *err,
                                    struct trib_tcp_server **out)
{
    struct trib_tcp_server *s = calloc(1, sizeof(*s));

    if (!s) {
        for (int i = 0; i < opts->n_listeners; i++)
            close(opts->listeners[i]);
        close(opts->own);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    }
    s->opts = *opts;
    s->size = opts->self.size;
    s->exchange = 1;
    snprintf(s->phase, sizeof(s->phase), "join");
    s->now = trib_now_ns();
    s->ticked = s->now;
    s->deadline = trib_limit_deadline(opts->boot_timeout_ms);
    if (!server_alloc(s)) {
        close(opts->own);
        server_free(s);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    }
    s->conns[0] = (struct trib_tcp_conn){
        .fd = opts->own, .own = true, .heard = s->now, .who = {.rank = -1}};
    int error = trib_thread_start(&s->thread, serve, s);
    if (error) {
        server_free(s);
        errno = error;
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread of boot: %m");
    }
    *out = s;
    return TRIB_OK;
}

void trib_tcp_server_stop(struct trib_tcp_server *server)
{
    if (!server)
        return;
    pthread_join(server->thread, NULL);
    server_free(server);
}
