/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks meet over TCP at host:port of rank 0, in any order of start.
 *
 * Every rank is a client of the server in boot/tcp/tcp_server.c, rank 0 through a pair
 * of sockets. A small thread of each client sends a TICK now and then while no exchange
 * runs: so silence means a stopped process or a lost host, and a rank that merely takes
 * its time between two exchanges is not mistaken for one.
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
#include "base/time.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"
#include "boot/tcp/tcp_server.h"
#include "boot/rank_names.h"
#include "build-config.h"

#define MS UINT64_C(1000000)
#define RETRY_FIRST_MS 20 /* between two attempts to connect; grows to: */
#define RETRY_LAST_MS 1000
#define REFUSED_MS 1000 /* rank 0 was there and now refuses: it has gone */
#define MARGIN_MS 500 /* the server knows better who is to blame: let it speak first \
                       */
#define FAREWELL_MS 1000 /* to pass on why this rank fails */

struct tcp_boot {
    struct trib_boot boot;
    struct trib_tcp_root root;
    struct trib_tcp_hello hello;
    struct trib_who server_who; /* rank 0, as far as it is known */
    struct trib_tcp_server *server; /* on rank 0, else NULL */
    int fd; /* -1: none */
    int boot_timeout_ms;
    int stop_timeout_ms;
    const struct trib_log *log;
    struct trib_error *err;
    uint32_t exchange;
    bool proved; /* the server has the secret of the job, and this rank has told that it
                  * has */
    bool welcome; /* the server has taken our hello */
    bool said_failure; /* fail() has been called */
    uint64_t heard; /* when rank 0 was last heard; since the connection */
    uint64_t deadline; /* the server decides before; this is the last resort */
    uint64_t ticked;
    uint64_t now;
    uint64_t jitter;

    uint8_t *in;
    size_t in_len;
    size_t in_cap;
    uint8_t out[3 * TRIB_TCP_SMALL_BYTES]; /* a hello, a contribution, a failure */
    size_t out_len;

    /* The ticker. `busy` says that the caller's thread has fd and out. */
    pthread_t ticker;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool busy;
    bool stop;
};

/* What an exchange is after. */
struct quest {
    const char *phase;
    size_t bytes; /* of all ranks */
    void *out;
    bool proves; /* it is after the server's proof alone */
    bool done;
};

static bool tcp_accepts(const char *root)
{
    struct trib_tcp_root parsed;

    return trib_tcp_root_parse(root, &parsed);
}

/* Output ------------------------------------------------------------------------------
 */

static uint8_t *out_end(struct tcp_boot *t, size_t need)
{
    assert(sizeof(t->out) - t->out_len >= need);
    return t->out + t->out_len;
}

static void put_tick(struct tcp_boot *t)
{
    t->out_len +=
        trib_tcp_put_head(out_end(t, TRIB_TCP_HEAD_BYTES), TRIB_TCP_TICK, 0, 0);
}

static void put_hello(struct tcp_boot *t)
{
    t->out_len +=
        trib_tcp_put_hello(out_end(t, TRIB_TCP_SMALL_BYTES), TRIB_TCP_HELLO, &t->hello);
}

/* Send what the socket takes; 0 or the errno of a lost connection. */
static int flush_out(struct tcp_boot *t)
{
    while (t->out_len) {
        ssize_t n = send(t->fd, t->out, t->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : errno;
        t->out_len -= (size_t)n;
        memmove(t->out, t->out + n, t->out_len);
    }
    return 0;
}

/* The ticker --------------------------------------------------------------------------
 */

static void *tick(void *arg)
{
    struct tcp_boot *t = arg;

    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        (void)trib_cond_wait(&t->wake, &t->lock, trib_deadline_ms(TRIB_TCP_TICK_MS));
        if (t->busy || t->stop || t->fd < 0)
            continue;
        if (t->out_len == 0)
            put_tick(t);
        flush_out(t); /* a lost connection is for the next exchange to report */
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int start_ticker(struct tcp_boot *t)
{
    pthread_mutex_init(&t->lock, NULL);
    trib_cond_init(&t->wake);
    return trib_thread_start(&t->ticker, tick, t);
}

static void stop_ticker(struct tcp_boot *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->ticker, NULL);
}

static void set_busy(struct tcp_boot *t, bool busy)
{
    pthread_mutex_lock(&t->lock);
    t->busy = busy;
    pthread_mutex_unlock(&t->lock);
}

/* Connecting --------------------------------------------------------------------------
 */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Wait before the next attempt, 50 % more or less, so that many ranks do not come as
 * one. */
static void back_off(struct tcp_boot *t, int *wait_ms)
{
    int ms = *wait_ms / 2 + (int)(next_random(&t->jitter) % (uint64_t)*wait_ms);
    int left = trib_deadline_left_ms(t->deadline);

    if (ms > left)
        ms = left;
    nanosleep(&(struct timespec){ms / 1000, (ms % 1000) * 1000000L}, NULL);
    *wait_ms = *wait_ms * 3 / 2 < RETRY_LAST_MS ? *wait_ms * 3 / 2 : RETRY_LAST_MS;
}

static trib_status_t no_answer(struct tcp_boot *t, const char *why)
{
    char from[64];

    return trib_fail(
        t->err, TRIB_ERR_BOOT,
        "rank %d found no rank 0 at %s port %s within %d ms (%s): start rank 0 "
        "on that host, check that address (%s), or raise TRIB_BOOT_TIMEOUT_MS",
        t->hello.who.rank, t->root.host, t->root.port, t->boot_timeout_ms, why,
        trib_tcp_root_from(&t->root, from));
}

/*
 * Connect and say hello. `again`: there was a connection before, so a server that now
 * refuses has ended, where before one had only to wait for it.
 */
static trib_status_t connect_root(struct tcp_boot *t, bool again)
{
    char why[128] = "", from[64];
    char last[sizeof(why)] = "";
    char who[TRIB_WHO_BYTES];
    int wait_ms = RETRY_FIRST_MS;
    uint64_t refused = trib_deadline_ms(REFUSED_MS);
    bool warned = again;

    while ((t->fd = trib_tcp_connect(&t->root, t->deadline, last, sizeof(last))) < 0) {
        int error = errno;
        bool over = trib_deadline_passed(t->deadline);
        if (!over || !why[0]) /* an attempt cut short does not show the cause */
            memcpy(why, last, sizeof(why));
        if (again && error == ECONNREFUSED && trib_deadline_passed(refused))
            return trib_fail(
                t->err, TRIB_ERR_PEER_LOST,
                "%s at %s port %s is gone: it closed the connection before "
                "it answered, phase join of the start",
                trib_who_format(&t->server_who, who), t->root.host, t->root.port);
        if (over)
            return no_answer(t, why);
        if (!warned && error == 0)
            trib_log(t->log, TRIB_LOG_WARN, "boot", "%s (%s): %s; trying again",
                     t->root.host, trib_tcp_root_from(&t->root, from), why);
        warned = true;
        back_off(t, &wait_ms);
    }
    trib_net_met_by(t->fd, &t->boot.met);
    t->heard = trib_now_ns();
    t->in_len = 0;
    t->out_len = 0;
    t->proved = false;
    if (t->hello.has_secret && !trib_nonce_make(t->hello.nonce))
        return trib_fail(t->err, TRIB_ERR_SYSTEM,
                         "rank %d has no random bytes: getrandom: %m",
                         t->hello.who.rank);
    put_hello(t);
    flush_out(t);
    return TRIB_OK;
}

/* An exchange -------------------------------------------------------------------------
 */

static trib_status_t lost_root(struct tcp_boot *t, const struct quest *q)
{
    char who[TRIB_WHO_BYTES];

    return trib_fail(t->err, TRIB_ERR_PEER_LOST,
                     "%s is gone: its connection closed, phase %s of the start",
                     trib_who_format(&t->server_who, who), q->phase);
}

static trib_status_t not_ours(struct tcp_boot *t, trib_status_t status)
{
    char from[64];

    if (status == TRIB_ERR_UNSUPPORTED)
        return trib_fail(
            t->err, TRIB_ERR_MISMATCH,
            "rank 0 at %s port %s speaks version %d of the start's protocol, "
            "rank %d version %d: install the same version of Tributary",
            t->root.host, t->root.port, t->in[4], t->hello.who.rank, TRIB_TCP_VERSION);
    return trib_fail(
        t->err, TRIB_ERR_BOOT,
        "what answers at %s port %s (%s) is not rank 0 of Tributary: "
        "choose another port%s",
        t->root.host, t->root.port, trib_tcp_root_from(&t->root, from),
        t->root.launcher ? " by TRIB_ROOT=host:port, the same for all ranks" : "");
}

/* The server proves that it has the secret, and so does this rank. */
static trib_status_t take_challenge(struct tcp_boot *t,
                                    const struct trib_tcp_frame *frame, struct quest *q)
{
    struct trib_tcp_challenge challenge;
    struct trib_proof claim;
    uint8_t proof[TRIB_PROOF_BYTES];

    if (!t->hello.has_secret || t->proved ||
        trib_tcp_parse_challenge(frame, &challenge) != TRIB_OK)
        return not_ours(t, TRIB_ERR_PROTOCOL);
    trib_tcp_claim(&t->hello, challenge.nonce, &claim);
    if (!trib_proof_holds(&t->boot.secret, &claim, TRIB_PROOF_LISTENER, challenge.proof,
                          sizeof(challenge.proof)))
        return trib_fail(
            t->err, TRIB_ERR_MISMATCH,
            "what answers at %s port %s has another secret than rank %d, or none: "
            "give all ranks of the job the same TRIB_KEY",
            t->root.host, t->root.port, t->hello.who.rank);
    trib_proof_make(&t->boot.secret, &claim, TRIB_PROOF_CALLER, proof);
    t->out_len += trib_tcp_put_proof(out_end(t, TRIB_TCP_SMALL_BYTES), proof);
    t->proved = true;
    q->done |= q->proves;
    flush_out(t);
    return TRIB_OK;
}

/* Until rank 0 has proved who it is, it may only do that, refuse, or say that it is
 * there. */
static bool too_early(const struct tcp_boot *t, enum trib_tcp_kind kind)
{
    return t->hello.has_secret && !t->proved && kind != TRIB_TCP_CHALLENGE &&
           kind != TRIB_TCP_FAIL && kind != TRIB_TCP_TICK;
}

static trib_status_t take_frame(struct tcp_boot *t, const struct trib_tcp_frame *frame,
                                struct quest *q)
{
    struct trib_tcp_hello hello;
    struct trib_tcp_failure failure;

    if (too_early(t, frame->kind))
        return not_ours(t, TRIB_ERR_PROTOCOL);
    switch (frame->kind) {
    case TRIB_TCP_CHALLENGE:
        return take_challenge(t, frame, q);
    case TRIB_TCP_WELCOME:
        if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK || hello.who.rank != 0)
            return not_ours(t, TRIB_ERR_PROTOCOL);
        t->server_who = hello.who;
        t->welcome = true;
        t->deadline = trib_deadline_ms(t->boot_timeout_ms + t->stop_timeout_ms);
        return TRIB_OK;
    case TRIB_TCP_RESULT:
        if (!t->welcome || q->done || frame->exchange != t->exchange ||
            frame->length != q->bytes)
            return not_ours(t, TRIB_ERR_PROTOCOL);
        if (q->bytes)
            memcpy(q->out, frame->payload, q->bytes);
        q->done = true;
        return TRIB_OK;
    case TRIB_TCP_FAIL:
        trib_tcp_parse_fail(frame, &failure);
        return trib_fail(t->err, failure.status, "%s", failure.text);
    case TRIB_TCP_TICK:
        return TRIB_OK;
    default:
        return not_ours(t, TRIB_ERR_PROTOCOL);
    }
}

static trib_status_t parse_all(struct tcp_boot *t, struct quest *q)
{
    struct trib_tcp_frame frame;
    size_t done = 0;
    size_t used = 0;
    trib_status_t status = TRIB_OK;

    /* What follows the result is for the next exchange. */
    while (status == TRIB_OK && !q->done) {
        status =
            trib_tcp_parse(t->in + done, t->in_len - done, q->bytes, &frame, &used);
        if (status == TRIB_INPROGRESS)
            break;
        if (status != TRIB_OK)
            return not_ours(t, status);
        status = take_frame(t, &frame, q);
        done += used;
    }
    memmove(t->in, t->in + done, t->in_len - done);
    t->in_len -= done;
    return status == TRIB_INPROGRESS ? TRIB_OK : status;
}

static void put_gather(struct tcp_boot *t, const struct trib_tcp_gather *mine)
{
    t->out_len +=
        trib_tcp_put_gather(out_end(t, TRIB_TCP_SMALL_BYTES), t->exchange, mine);
}

/*
 * A proxy or a forwarded port closes at once while nobody listens behind it, and so
 * does a server that ends. As long as rank 0 has not answered, one may begin anew.
 */
static trib_status_t closed(struct tcp_boot *t, const struct trib_tcp_gather *mine,
                            const struct quest *q)
{
    if (t->welcome || t->server || t->proved)
        return lost_root(t, q);
    close(t->fd);
    t->fd = -1;
    trib_log(t->log, TRIB_LOG_DEBUG, "boot",
             "%s port %s closed the connection before it "
             "answered; trying again",
             t->root.host, t->root.port);
    int wait_ms = RETRY_FIRST_MS * 4;
    back_off(t, &wait_ms);
    if (trib_deadline_passed(t->deadline))
        return no_answer(t, "it accepts connections and closes them");
    trib_status_t status = connect_root(t, true);
    if (status == TRIB_OK && mine)
        put_gather(t, mine);
    return status;
}

static trib_status_t read_root(struct tcp_boot *t, const struct trib_tcp_gather *mine,
                               struct quest *q)
{
    ssize_t n = recv(t->fd, t->in + t->in_len, t->in_cap - t->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TRIB_OK;
    if (n <= 0)
        return closed(t, mine, q);
    t->heard = t->now;
    t->in_len += (size_t)n;
    return parse_all(t, q);
}

/* While this process was stopped, so was perhaps rank 0: give it the time back. */
static void forgive_gap(struct tcp_boot *t)
{
    uint64_t gap = trib_gap_ns(&t->now, TRIB_TCP_GAP_MS);

    t->heard += gap;
    t->deadline += gap;
}

static trib_status_t check_times(struct tcp_boot *t, const struct quest *q)
{
    char who[TRIB_WHO_BYTES];
    int limit = t->stop_timeout_ms;

    if (limit < TRIB_TCP_SILENT_MS)
        limit = TRIB_TCP_SILENT_MS;
    if (!t->server && t->now > t->heard &&
        t->now - t->heard >= (uint64_t)(limit + MARGIN_MS) * MS)
        return trib_fail(t->err, TRIB_ERR_PEER_LOST,
                         "%s at %s port %s has been silent for %d ms, phase %s of the "
                         "start: it is stopped, its host cannot be reached, or another "
                         "program listens there",
                         trib_who_format(&t->server_who, who), t->root.host,
                         t->root.port, limit + MARGIN_MS, q->phase);
    if (t->now >= t->deadline)
        return no_answer(t, "it did not complete the exchange");
    if (t->now - t->ticked >= TRIB_TCP_TICK_MS * MS && t->out_len == 0) {
        t->ticked = t->now;
        put_tick(t);
    }
    return TRIB_OK;
}

static trib_status_t exchange(struct tcp_boot *t, const struct trib_tcp_gather *mine,
                              struct quest *q)
{
    trib_status_t status = parse_all(t, q); /* what came with the last result */

    t->now = trib_now_ns();
    t->heard = t->now; /* nobody has listened since the last exchange */
    while (status == TRIB_OK && !q->done) {
        struct pollfd ready = {.fd = t->fd,
                               .events = (short)(POLLIN | (t->out_len ? POLLOUT : 0))};
        if (poll(&ready, 1, TRIB_TCP_TICK_MS / 2) < 0 && errno != EINTR)
            return trib_fail(t->err, TRIB_ERR_SYSTEM, "poll failed in boot: %m");
        forgive_gap(t);
        /* Read first: a peer that has closed may have said why. */
        if (ready.revents & (POLLIN | POLLHUP | POLLERR))
            status = read_root(t, mine, q);
        if (status == TRIB_OK && !q->done)
            status = check_times(t, q);
        if (status == TRIB_OK && !q->done)
            flush_out(t); /* that the connection is lost, the next read tells */
    }
    return status;
}

static trib_status_t reserve_in(struct tcp_boot *t, size_t result)
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

/* Before this rank says anything of use to others. A rank 0 that is there answers at
 * once. */
static trib_status_t prove(struct tcp_boot *t)
{
    struct quest q = {.phase = "join", .proves = true};
    trib_status_t status = reserve_in(t, 0);

    return status == TRIB_OK ? exchange(t, NULL, &q) : status;
}

static trib_status_t tcp_allgather(struct trib_boot *b, const char *phase,
                                   const void *in, size_t bytes, void *out)
{
    struct tcp_boot *t = (struct tcp_boot *)b;
    struct trib_tcp_gather mine = {.bytes = (uint32_t)bytes, .blob = in};
    struct quest q = {.bytes = (size_t)t->hello.size * bytes, .out = out};

    assert(bytes <= TRIB_BOOT_BLOB_MAX);
    snprintf(mine.phase, sizeof(mine.phase), "%s", phase);
    q.phase = mine.phase;
    trib_status_t status = reserve_in(t, q.bytes);
    if (status != TRIB_OK)
        return status;
    set_busy(t, true);
    t->exchange++;
    if (t->welcome)
        t->deadline = trib_deadline_ms(t->boot_timeout_ms + t->stop_timeout_ms);
    put_gather(t, &mine);
    flush_out(t);
    status = exchange(t, &mine, &q);
    set_busy(t, false);
    return status;
}

/* Begin and end -----------------------------------------------------------------------
 */

static void tcp_fail(struct trib_boot *b, const char *why)
{
    struct tcp_boot *t = (struct tcp_boot *)b;
    struct trib_tcp_failure failure = {.status = TRIB_ERR_PEER_LOST};

    if (t->fd < 0 || t->said_failure)
        return;
    t->said_failure = true;
    set_busy(t, true);
    if (sizeof(t->out) - t->out_len >= TRIB_TCP_SMALL_BYTES) {
        snprintf(failure.text, sizeof(failure.text), "%s", why);
        t->out_len += trib_tcp_put_fail(t->out + t->out_len, &failure);
    }
    flush_out(t);
    set_busy(t, false);
}

/* What was written last shall arrive, although closing drops what was not read. */
static void say_farewell(struct tcp_boot *t)
{
    uint64_t deadline = trib_deadline_ms(FAREWELL_MS);

    while (!trib_deadline_passed(deadline)) {
        if (flush_out(t) || (t->out_len == 0 && trib_tcp_sent(t->fd)))
            return;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

static void tcp_free(struct tcp_boot *t)
{
    if (t->fd >= 0)
        close(t->fd);
    trib_tcp_server_stop(t->server);
    free(t->in);
    free(t);
}

static void tcp_close(struct trib_boot *b)
{
    struct tcp_boot *t = (struct tcp_boot *)b;

    stop_ticker(t);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    if (t->said_failure)
        say_farewell(t);
    tcp_free(t);
}

/* Once for a job: whoever is on its network is believed. */
static void warn_unproved(const struct tcp_boot *t, const char *root)
{
    if (!t->boot.secret.is_set && t->hello.size > 1 && !trib_boot_is_here(root))
        trib_log(
            t->log, TRIB_LOG_WARN, "boot",
            "this job has no secret, so that whoever reaches port %s may take the "
            "place of a rank: set TRIB_KEY to the same 64 hexadecimal digits for all "
            "ranks (openssl rand -hex 32)",
            t->root.port);
}

static trib_status_t open_server(struct tcp_boot *t, const char *root)
{
    struct trib_tcp_server_opts opts = {.self = t->hello,
                                        .boot_timeout_ms = t->boot_timeout_ms,
                                        .stop_timeout_ms = t->stop_timeout_ms,
                                        .log = t->log};
    int pair[2];
    trib_status_t status =
        trib_tcp_listen(&t->root, t->err, opts.listeners, &opts.n_listeners);

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
    t->proved = true; /* to itself, over a pair of sockets */
    put_hello(t);
    flush_out(t);
    return TRIB_OK;
}

static trib_status_t tcp_open(const struct trib_boot_opts *opts, struct trib_boot **out)
{
    struct tcp_boot *t = calloc(1, sizeof(*t));
    if (!t)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");

    t->boot.ops = &trib_boot_tcp;
    trib_tcp_root_parse(opts->root, &t->root);
    t->root.launcher = opts->launcher;
    if (opts->secret)
        t->boot.secret = *opts->secret;
    t->hello.has_secret = t->boot.secret.is_set;
    t->hello.size = opts->size;
    trib_who_self(opts->rank, &t->hello.who);
    snprintf(t->hello.library, sizeof(t->hello.library), "%s", PACKAGE_VERSION);
    t->fd = -1;
    t->boot_timeout_ms = opts->cfg->boot_timeout_ms;
    t->stop_timeout_ms = opts->cfg->stop_timeout_ms;
    t->log = opts->log;
    t->err = opts->err;
    t->now = trib_now_ns();
    t->deadline = trib_deadline_ms(t->boot_timeout_ms);
    t->jitter = (t->now ^ (uint64_t)t->hello.who.pid << 32) | 1;
    trib_status_t status =
        opts->rank == 0 ? open_server(t, opts->root) : connect_root(t, false);
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
    .detail = "ranks meet over TCP at TRIB_ROOT=host:port, where rank 0 listens",
    .accepts = tcp_accepts,
    .open = tcp_open,
    .allgather = tcp_allgather,
    .fail = tcp_fail,
    .close = tcp_close,
};
