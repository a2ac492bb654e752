/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot over TCP at host:port of rank 0, in any order of start.
 *
 * Every rank is a client of the server in boot/tcp/tcp_server.c; rank 0 uses a socket
 * pair. A small thread of each client sends a periodic TICK between exchanges. So
 * silence means a stopped process or a lost host, and a rank that takes long between
 * two exchanges is not mistaken for one.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/release.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/newcomers.h"
#include "base/sockets.h"
#include "boot/tcp/tcp_client.h"
#include "boot/rank_names.h"

#define MS UINT64_C(1000000)
/* Extra time for the server, which knows better which rank failed, to report first. */
#define MARGIN_MS 500
#define LINGER_MS 1000 /* time to report why this rank fails */

static bool tcp_accepts(const char *root)
{
    struct trib_tcp_root parsed;

    return trib_tcp_root_parse(root, &parsed);
}

/* The ticker ----------------------------------------------------------------------- */

static void *tick(void *arg)
{
    struct trib_tcp_client *t = arg;

    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        (void)trib_cond_wait(&t->wake, &t->lock, trib_deadline_ms(TRIB_TCP_TICK_MS));
        if (t->busy || t->stop || t->fd < 0)
            continue;
        if (t->out_len == 0)
            trib_tcp_client_put_tick(t);
        trib_tcp_client_flush(t); /* the next exchange reports a lost connection */
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int start_ticker(struct trib_tcp_client *t)
{
    pthread_mutex_init(&t->lock, NULL);
    trib_cond_init(&t->wake);
    return trib_thread_start(&t->ticker, tick, t);
}

static void stop_ticker(struct trib_tcp_client *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->ticker, NULL);
}

static void set_busy(struct trib_tcp_client *t, bool busy)
{
    pthread_mutex_lock(&t->lock);
    t->busy = busy;
    pthread_mutex_unlock(&t->lock);
}

/* An exchange ---------------------------------------------------------------------- */

/*
 * A proxy or forwarded port without a listener closes connections at once, and so does
 * an exiting server. Until rank 0 has answered, connecting again is allowed.
 */
static trib_status_t closed(struct trib_tcp_client *t,
                            const struct trib_tcp_gather *mine,
                            const struct trib_tcp_exchange *q)
{
    if (t->welcome || t->server || t->proof.step == TRIB_PROOF_DONE)
        return trib_tcp_client_lost(t, q);
    close(t->fd);
    t->fd = -1;
    trib_log(t->log, TRIB_LOG_DEBUG, "boot",
             "%s port %s closed the connection before it "
             "answered; trying again",
             t->root.host, t->root.port);
    t->retry.ms = TRIB_TCP_RETRY_MS * 4;
    trib_dial_pause(&t->retry, t->deadline, t->idle);
    if (trib_idle_answer(t->idle))
        return trib_tcp_client_gives_up(t, q->phase);
    if (trib_deadline_passed(t->deadline))
        return trib_tcp_client_no_answer(t, "it accepts connections and closes them");
    trib_status_t status = trib_tcp_client_connect(t, true);
    if (status == TRIB_OK && mine)
        trib_tcp_client_put_gather(t, mine);
    return status;
}

static trib_status_t read_root(struct trib_tcp_client *t,
                               const struct trib_tcp_gather *mine,
                               struct trib_tcp_exchange *q)
{
    ssize_t n = recv(t->fd, t->in + t->in_len, t->in_cap - t->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TRIB_OK;
    if (n <= 0)
        return closed(t, mine, q);
    t->heard = t->now;
    t->in_len += (size_t)n;
    return trib_tcp_client_parse(t, q);
}

/* Extend the deadlines after this process was stopped: rank 0 may have been stopped as
 * well. */
static void forgive_gap(struct trib_tcp_client *t)
{
    uint64_t gap = trib_gap_ns(&t->now, TRIB_TCP_GAP_MS);

    t->heard += gap;
    t->deadline = trib_deadline_later(t->deadline, gap);
}

static trib_status_t check_times(struct trib_tcp_client *t,
                                 const struct trib_tcp_exchange *q)
{
    char name[TRIB_RANK_NAME_BYTES];
    int limit = t->stop_timeout_ms;

    if (limit < TRIB_TCP_SILENT_MS)
        limit = TRIB_TCP_SILENT_MS;
    if (t->stop_timeout_ms && !t->server && t->now > t->heard &&
        t->now - t->heard >= (uint64_t)(limit + MARGIN_MS) * MS)
        return trib_fail(t->err, TRIB_ERR_PEER_LOST,
                         "%s at %s port %s has been silent for %d ms, phase %s of the "
                         "start: it is stopped, its host cannot be reached, or another "
                         "program listens there",
                         trib_rank_name_format(&t->server_name, name), t->root.host,
                         t->root.port, limit + MARGIN_MS, q->phase);
    if (t->now >= t->deadline)
        return trib_tcp_client_no_answer(t, "it did not complete the exchange");
    if (t->now - t->ticked >= TRIB_TCP_TICK_MS * MS && t->out_len == 0) {
        t->ticked = t->now;
        trib_tcp_client_put_tick(t);
    }
    return TRIB_OK;
}

static trib_status_t exchange(struct trib_tcp_client *t,
                              const struct trib_tcp_gather *mine,
                              struct trib_tcp_exchange *q)
{
    trib_status_t status = trib_tcp_client_parse(t, q); /* parse frames that arrived
                                                         * with the last result */

    t->now = trib_now_ns();
    t->heard = t->now; /* not read since the last exchange */
    while (status == TRIB_OK && !q->done) {
        struct pollfd ready = {.fd = t->fd,
                               .events = (short)(POLLIN | (t->out_len ? POLLOUT : 0))};
        if (trib_idle_poll(t->idle, &ready, 1, TRIB_TCP_TICK_MS / 2) < 0 &&
            errno != EINTR && errno != ECANCELED)
            return trib_fail(t->err, TRIB_ERR_SYSTEM, "poll failed in boot: %m");
        if (trib_idle_answer(t->idle))
            return trib_tcp_client_gives_up(t, q->phase);
        forgive_gap(t);
        /* Read first: a peer that has closed may have sent the reason. */
        if (ready.revents & (POLLIN | POLLHUP | POLLERR))
            status = read_root(t, mine, q);
        if (status == TRIB_OK && !q->done)
            status = check_times(t, q);
        if (status == TRIB_OK && !q->done)
            trib_tcp_client_flush(t); /* the next read reports a lost connection */
    }
    return status;
}

static trib_status_t reserve_in(struct trib_tcp_client *t, size_t result)
{
    size_t need = TRIB_TCP_HEAD_BYTES + result;

    if (need < TRIB_TCP_SMALL_BYTES)
        need = TRIB_TCP_SMALL_BYTES;
    if (need <= t->in_cap)
        return TRIB_OK;
    uint8_t *in = realloc(t->in, need);
    if (!in)
        return trib_fail(t->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    t->in = in;
    t->in_cap = need;
    return TRIB_OK;
}

/* Wait for the server's proof before sending anything useful to an impostor. A running
 * rank 0 answers at once. */
static trib_status_t prove(struct trib_tcp_client *t)
{
    struct trib_tcp_exchange q = {.phase = "join", .proves = true};
    trib_status_t status = reserve_in(t, 0);

    return status == TRIB_OK ? exchange(t, NULL, &q) : status;
}

trib_status_t trib_boot_request(struct trib_boot *b, const char *phase, const void *in,
                                size_t bytes, void *out, size_t out_bytes)
{
    struct trib_tcp_client *t = (struct trib_tcp_client *)b;
    struct trib_tcp_gather mine = {.bytes = (uint32_t)bytes, .blob = in};
    struct trib_tcp_exchange q = {.bytes = out_bytes, .out = out};

    assert(bytes <= TRIB_BOOT_BLOB_MAX);
    snprintf(mine.phase, sizeof(mine.phase), "%s", phase);
    q.phase = mine.phase;
    trib_status_t status = reserve_in(t, q.bytes);
    if (status != TRIB_OK)
        return status;
    set_busy(t, true);
    t->exchange++;
    if (t->welcome)
        t->deadline =
            trib_limit_deadline(trib_limit_sum(t->boot_timeout_ms, t->stop_timeout_ms));
    trib_tcp_client_put_gather(t, &mine);
    trib_tcp_client_flush(t);
    status = exchange(t, &mine, &q);
    set_busy(t, false);
    return status;
}

static trib_status_t tcp_allgather(struct trib_boot *b, const char *phase,
                                   const void *in, size_t bytes, void *out)
{
    struct trib_tcp_client *t = (struct trib_tcp_client *)b;

    assert(!t->is_newcomer);
    return trib_boot_request(b, phase, in, bytes, out, (size_t)t->hello.size * bytes);
}

/* Begin and end -------------------------------------------------------------------- */

static void tcp_fail(struct trib_boot *b, const char *why)
{
    struct trib_tcp_client *t = (struct trib_tcp_client *)b;
    struct trib_tcp_failure failure = {
        .status = trib_idle_answer(t->idle) ? TRIB_ERR_ABORTED : TRIB_ERR_PEER_LOST};

    if (t->fd < 0 || t->sent_failure)
        return;
    t->sent_failure = true;
    set_busy(t, true);
    if (sizeof(t->out) - t->out_len >= TRIB_TCP_SMALL_BYTES) {
        snprintf(failure.text, sizeof(failure.text), "%s", why);
        t->out_len += trib_tcp_put_fail(t->out + t->out_len, &failure);
    }
    trib_tcp_client_flush(t);
    set_busy(t, false);
}

/* Deliver the last frame: close() with unread input would discard it. */
static void linger(struct trib_tcp_client *t)
{
    uint64_t deadline =
        trib_deadline_ms(trib_idle_answer(t->idle) ? TRIB_TCP_ABORT_MS : LINGER_MS);

    while (!trib_deadline_passed(deadline)) {
        if (trib_tcp_client_flush(t) || (t->out_len == 0 && trib_sockets_sent(t->fd)))
            return;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

static void tcp_free(struct trib_tcp_client *t)
{
    if (t->fd >= 0)
        close(t->fd);
    trib_tcp_server_stop(t->server);
    free(t->in);
    free(t);
}

static void tcp_close(struct trib_boot *b)
{
    struct trib_tcp_client *t = (struct trib_tcp_client *)b;

    stop_ticker(t);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    if (t->sent_failure)
        linger(t);
    tcp_free(t);
}

/* Warn once per job that any host on its network is trusted. */
static void warn_unproved(const struct trib_tcp_client *t, const char *root)
{
    if (!t->boot.secret.is_set && t->hello.size > 1 && !trib_boot_is_here(root))
        trib_log(
            t->log, TRIB_LOG_WARN, "boot",
            "this job has no secret, so that whoever reaches port %s may take the "
            "place of a rank: set TRIB_KEY to the same 64 hexadecimal digits for all "
            "ranks (openssl rand -hex 32)",
            t->root.port);
}

static trib_status_t open_server(struct trib_tcp_client *t, const char *root)
{
    struct trib_tcp_server_opts opts = {.self = t->hello,
                                        .boot_timeout_ms = t->boot_timeout_ms,
                                        .stop_timeout_ms = t->stop_timeout_ms,
                                        .log = t->log};
    int pair[2];
    trib_status_t status = trib_sockets_listen(&t->root, t->idle, t->err,
                                               opts.listeners, &opts.n_listeners);

    if (status != TRIB_OK)
        return status;
    if (trib_fd_pair(pair, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK) != 0) {
        for (int i = 0; i < opts.n_listeners; i++)
            close(opts.listeners[i]);
        return trib_fail(t->err, TRIB_ERR_SYSTEM, "cannot make sockets for boot: %m");
    }
    opts.port = (unsigned)atoi(t->root.port);
    opts.secret = t->boot.secret;
    opts.own = pair[1];
    t->fd = pair[0];
    warn_unproved(t, root);
    status = trib_tcp_server_start(&opts, t->err, &t->server);
    if (status != TRIB_OK)
        return status;
    trib_tcp_client_put_hello(t);
    trib_tcp_client_flush(t);
    return TRIB_OK;
}

static trib_status_t tcp_open(const struct trib_boot_opts *opts, struct trib_boot **out)
{
    struct trib_tcp_client *t = calloc(1, sizeof(*t));
    if (!t)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");

    t->boot.ops = &trib_boot_tcp;
    trib_tcp_root_parse(opts->root, &t->root);
    t->root.launcher = opts->launcher;
    if (opts->secret)
        t->boot.secret = *opts->secret;
    t->hello.has_secret = t->boot.secret.is_set;
    t->is_newcomer = opts->is_newcomer;
    t->hello.size = opts->is_newcomer ? 0 : opts->size;
    trib_rank_name_self(opts->is_newcomer ? 0 : opts->rank, &t->hello.who);
    snprintf(t->hello.library, sizeof(t->hello.library), "%s", trib_release);
    t->fd = -1;
    t->boot_timeout_ms = opts->cfg->boot_timeout_ms;
    t->stop_timeout_ms = opts->cfg->stop_timeout_ms;
    t->log = opts->log;
    t->err = opts->err;
    t->idle = opts->idle;
    t->now = trib_now_ns();
    t->deadline = trib_limit_deadline(t->boot_timeout_ms);
    t->retry = (struct trib_dial_retry){
        .most_ms = TRIB_TCP_RETRY_MOST_MS,
        .random = (t->now ^ (uint64_t)t->hello.who.pid << 32) | 1};
    trib_status_t status = opts->rank == 0 && !opts->is_newcomer
                               ? open_server(t, opts->root)
                               : trib_tcp_client_connect(t, false);
    if (status == TRIB_OK && t->hello.has_secret && !t->server)
        status = prove(t);
    if (status != TRIB_OK)
        goto err_free;
    int error = start_ticker(t);
    if (error) {
        errno = error;
        status =
            trib_fail(t->err, TRIB_ERR_SYSTEM, "cannot start a thread of boot: %m");
        goto err_free;
    }
    *out = &t->boot;
    return TRIB_OK;

err_free:
    tcp_free(t);
    return status;
}

const struct trib_boot_ops trib_boot_tcp = {
    .name = "tcp",
    .detail = "rendezvous over TCP at TRIB_ROOT=host:port, where rank 0 listens",
    .accepts = tcp_accepts,
    .open = tcp_open,
    .allgather = tcp_allgather,
    .fail = tcp_fail,
    .close = tcp_close,
};
