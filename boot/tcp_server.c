/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp_server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"

#define STRANGERS_MAX 64 /* connections that have not said hello; the oldest goes first */
#define HELLO_MS 5000    /* for a hello after the connection */
#define FAREWELL_MS 1000 /* for ranks that come only to hear of an error */
#define MS UINT64_C(1000000)

/*
 * What is to be told to a rank, in this order. Bits instead of a queue: each is told at
 * most once at a time, so nothing grows with a rank that does not read.
 */
enum { TELL_WELCOME = 1, TELL_RESULT = 2, TELL_FAIL = 4, TELL_TICK = 8 };

struct conn {
    int fd; /* -1: this place is free */
    bool own;
    bool hello; /* who is known; who.rank may be out of range after a failure */
    struct trib_who who;
    uint64_t heard;    /* when something came last; of a stranger, when it connected */
    uint32_t exchange; /* the last one that it has contributed to */
    unsigned tell;
    const uint8_t *out; /* being written: into small, or the shared result */
    size_t out_len;
    size_t in_len;
    uint8_t in[TRIB_TCP_SMALL_BYTES];
    uint8_t small[TRIB_TCP_SMALL_BYTES];
};

struct trib_tcp_server {
    struct trib_tcp_server_opts opts;
    pthread_t thread;
    int size;
    int joined;
    struct conn *conns; /* size + STRANGERS_MAX */
    struct conn **ranks; /* by rank; NULL: has not joined */
    bool *gone;          /* by rank: its connection has closed */
    bool *told;          /* by rank: has been told of the failure */
    bool *missing;       /* by rank, for sentences */
    struct pollfd *polls;

    uint32_t exchange; /* the present one */
    int contributed;   /* ranks that have, to the present one */
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    /*
     * Results as frames, in turn: a slow rank may still be sent result n while n+1 is
     * collected, but n+2 begins only when all have read n.
     */
    uint8_t *results[2];
    size_t result_len;

    bool failed;
    struct trib_tcp_failure failure;
    bool leaving; /* rank 0 has closed its end */
    uint64_t farewell;
    uint64_t deadline; /* of the present exchange */
    uint64_t now;
    uint64_t ticked;
};

static int n_conns(const struct trib_tcp_server *s)
{
    return s->size + STRANGERS_MAX;
}

static void fail_all(struct trib_tcp_server *s, trib_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* End the start for all ranks; the first reason stands. */
static void fail_all(struct trib_tcp_server *s, trib_status_t status, const char *fmt, ...)
{
    va_list args;

    if (s->failed)
        return;
    s->failed = true;
    s->failure.status = status;
    va_start(args, fmt);
    vsnprintf(s->failure.text, sizeof(s->failure.text), fmt, args);
    va_end(args);
    for (int i = 0; i < n_conns(s); i++)
        if (s->conns[i].fd >= 0 && s->conns[i].hello)
            s->conns[i].tell |= TELL_FAIL;
}

static void close_listeners(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->opts.n_listeners; i++)
        close(s->opts.listeners[i]);
    s->opts.n_listeners = 0;
}

static void drop(struct conn *c)
{
    close(c->fd);
    c->fd = -1;
    c->hello = false;
}

/* Exchanges --------------------------------------------------------------------------- */

static void blame_gone(struct trib_tcp_server *s, int rank, const struct trib_who *who)
{
    char text[TRIB_WHO_BYTES];

    s->gone[rank] = true;
    fail_all(s, TRIB_ERR_PEER_LOST,
             "%s is gone: its connection closed, phase %s of the start",
             trib_who_format(who, text), s->phase);
}

/* Is somebody needed who has gone? True before all have joined and inside an exchange. */
static bool busy(const struct trib_tcp_server *s)
{
    return s->joined < s->size || s->contributed > 0;
}

static bool is_member(const struct trib_tcp_server *s, const struct conn *c)
{
    return c->hello && c->who.rank < s->size && s->ranks[c->who.rank] == c;
}

static void lose(struct trib_tcp_server *s, struct conn *c)
{
    if (is_member(s, c)) {
        s->gone[c->who.rank] = true;
        if (busy(s))
            blame_gone(s, c->who.rank, &c->who);
    }
    if (c->own) {
        int ms = s->failed ? FAREWELL_MS : s->opts.stop_timeout_ms;
        s->leaving = true;
        s->farewell = s->now + (uint64_t)ms * MS;
    }
    drop(c);
}

static bool begin_exchange(struct trib_tcp_server *s, const struct trib_tcp_gather *gather)
{
    size_t len = TRIB_TCP_HEAD_BYTES + (size_t)s->size * gather->bytes;
    uint8_t *result = realloc(s->results[s->exchange & 1], len);

    if (!result) {
        fail_all(s, TRIB_ERR_NO_MEMORY, "rank 0 is out of memory in boot");
        return false;
    }
    s->results[s->exchange & 1] = result;
    s->result_len = len;
    s->bytes = gather->bytes;
    memcpy(s->phase, gather->phase, sizeof(s->phase));
    trib_tcp_put_head(result, TRIB_TCP_RESULT, s->exchange, len - TRIB_TCP_HEAD_BYTES);
    if (s->exchange > 1)
        s->deadline = s->now + (uint64_t)s->opts.boot_timeout_ms * MS;
    for (int i = 0; i < s->size; i++)
        if (s->gone[i] && s->ranks[i])
            blame_gone(s, i, &s->ranks[i]->who);
    return !s->failed;
}

static void end_exchange(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->size; i++)
        s->ranks[i]->tell |= TELL_RESULT;
    s->contributed = 0;
    s->exchange++;
}

static void take_gather(struct trib_tcp_server *s, struct conn *c,
                        const struct trib_tcp_frame *frame)
{
    struct trib_tcp_gather gather;
    char who[TRIB_WHO_BYTES];

    trib_tcp_parse_gather(frame, &gather);
    if (frame->exchange != s->exchange || c->exchange >= s->exchange) {
        fail_all(s, TRIB_ERR_PROTOCOL, "%s is in exchange %u of the start, the others in %u",
                 trib_who_format(&c->who, who), frame->exchange, s->exchange);
        return;
    }
    if (s->contributed == 0 && !begin_exchange(s, &gather))
        return;
    if (gather.bytes != s->bytes || strcmp(gather.phase, s->phase)) {
        fail_all(s, TRIB_ERR_MISMATCH,
                 "%s is in phase %s of the start with %u bytes, others in phase %s with "
                 "%u: do all run the same version?",
                 trib_who_format(&c->who, who), gather.phase, gather.bytes, s->phase,
                 s->bytes);
        return;
    }
    c->exchange = s->exchange;
    memcpy(s->results[s->exchange & 1] + TRIB_TCP_HEAD_BYTES +
               (size_t)c->who.rank * s->bytes,
           gather.blob, gather.bytes);
    if (++s->contributed == s->size)
        end_exchange(s);
}

/* Joining ----------------------------------------------------------------------------- */

/* Is this hello of our job? If not, everyone is told. */
static bool check_hello(struct trib_tcp_server *s, const struct trib_tcp_hello *hello)
{
    char who[TRIB_WHO_BYTES];
    char other[TRIB_WHO_BYTES];

    trib_who_format(&hello->who, who);
    if (hello->size != s->size) {
        fail_all(s, TRIB_ERR_MISMATCH,
                 "%s was told of %d ranks, %s of %d: give all the same TRIB_SIZE", who,
                 hello->size, trib_who_format(&s->opts.self.who, other), s->size);
    } else if (hello->who.rank >= s->size) {
        fail_all(s, TRIB_ERR_MISMATCH,
                 "%s is out of range: with TRIB_SIZE=%d, TRIB_RANK goes from 0 to %d", who,
                 s->size, s->size - 1);
    } else if (strcmp(hello->library, s->opts.self.library)) {
        fail_all(s, TRIB_ERR_MISMATCH,
                 "%s runs Tributary %s, %s runs %s: install the same version", who,
                 hello->library, trib_who_format(&s->opts.self.who, other),
                 s->opts.self.library);
    } else if (s->ranks[hello->who.rank]) {
        trib_who_format(&s->ranks[hello->who.rank]->who, other);
        fail_all(s, TRIB_ERR_MISMATCH,
                 "%s has joined already as process %d on %s: give each process a "
                 "TRIB_RANK of its own, and each job a port of its own",
                 other, hello->who.pid, hello->who.host);
    } else {
        return !s->failed;
    }
    return false;
}

/* Answer somebody who does not belong to us, as far as one attempt goes, and hang up. */
static void refuse(struct trib_tcp_server *s, struct conn *c,
                   const struct trib_tcp_failure *failure)
{
    size_t len = trib_tcp_put_fail(c->small, failure);

    trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "refused: %s", failure->text);
    if (send(c->fd, c->small, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "it has gone: %m");
    drop(c);
}

/* A process that says hello once all have joined disturbs nobody else. */
static void refuse_latecomer(struct trib_tcp_server *s, struct conn *c)
{
    struct trib_tcp_failure failure = {.status = TRIB_ERR_MISMATCH};
    char who[TRIB_WHO_BYTES];

    snprintf(failure.text, sizeof(failure.text),
             "%s came too late: all %d ranks of the job at this TRIB_ROOT have joined",
             trib_who_format(&c->who, who), s->size);
    refuse(s, c, &failure);
}

static void take_hello(struct trib_tcp_server *s, struct conn *c,
                       const struct trib_tcp_frame *frame)
{
    struct trib_tcp_hello hello;

    if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK) {
        drop(c);
        return;
    }
    c->who = hello.who;
    if (s->joined == s->size && !s->failed) {
        refuse_latecomer(s, c);
        return;
    }
    if (!check_hello(s, &hello)) {
        c->hello = true;
        c->tell = TELL_FAIL;
        return;
    }
    c->hello = true;
    c->tell = TELL_WELCOME;
    s->ranks[c->who.rank] = c;
    if (++s->joined == s->size)
        close_listeners(s);
}

static void take_failure(struct trib_tcp_server *s, struct conn *c,
                         const struct trib_tcp_frame *frame)
{
    struct trib_tcp_failure failure;
    char who[TRIB_WHO_BYTES];

    trib_tcp_parse_fail(frame, &failure);
    fail_all(s, failure.status, "%s failed during the start: %.300s",
             trib_who_format(&c->who, who), failure.text);
}

static void take_frame(struct trib_tcp_server *s, struct conn *c,
                       const struct trib_tcp_frame *frame)
{
    char who[TRIB_WHO_BYTES];

    if (!c->hello) {
        if (frame->kind == TRIB_TCP_HELLO)
            take_hello(s, c, frame);
        else
            drop(c);
        return;
    }
    if (s->failed)
        return;
    switch (frame->kind) {
    case TRIB_TCP_GATHER:
        take_gather(s, c, frame);
        break;
    case TRIB_TCP_FAIL:
        take_failure(s, c, frame);
        break;
    case TRIB_TCP_TICK:
        break;
    default:
        fail_all(s, TRIB_ERR_PROTOCOL, "%s sent a frame of kind %d, which is rank 0's",
                 trib_who_format(&c->who, who), (int)frame->kind);
        break;
    }
}

static void not_a_frame(struct trib_tcp_server *s, struct conn *c, trib_status_t status)
{
    char who[TRIB_WHO_BYTES];

    if (c->hello) {
        fail_all(s, TRIB_ERR_PROTOCOL, "%s sent bytes that are no frame of the start",
                 trib_who_format(&c->who, who));
    } else if (status == TRIB_ERR_UNSUPPORTED) {
        fail_all(s, TRIB_ERR_MISMATCH,
                 "a rank speaks version %d of the start's protocol, %s version %d: install "
                 "the same version of Tributary on all hosts",
                 c->in[4], trib_who_format(&s->opts.self.who, who), TRIB_TCP_VERSION);
        refuse(s, c, &s->failure);
        return;
    } else {
        trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "a stranger connected: dropped");
    }
    lose(s, c);
}

/* Sockets ----------------------------------------------------------------------------- */

static void parse_all(struct trib_tcp_server *s, struct conn *c)
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
            not_a_frame(s, c, status);
            return;
        }
        take_frame(s, c, &frame);
        done += used;
    }
    memmove(c->in, c->in + done, c->in_len - done);
    c->in_len -= done;
}

static void read_conn(struct trib_tcp_server *s, struct conn *c)
{
    assert(c->in_len < sizeof(c->in)); /* a whole frame fits, and would have been taken */
    ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lose(s, c);
        return;
    }
    if (c->hello)
        c->heard = s->now;
    c->in_len += (size_t)n;
    parse_all(s, c);
}

/* Choose what to tell next. False: nothing. */
static bool next_out(struct trib_tcp_server *s, struct conn *c)
{
    c->out = c->small;
    if (c->tell & TELL_WELCOME) {
        c->tell &= ~(unsigned)TELL_WELCOME;
        c->out_len = trib_tcp_put_hello(c->small, TRIB_TCP_WELCOME, &s->opts.self);
    } else if (c->tell & TELL_RESULT) {
        c->tell &= ~(unsigned)TELL_RESULT;
        c->out = s->results[c->exchange & 1];
        c->out_len = s->result_len;
    } else if (c->tell & TELL_FAIL) {
        c->tell &= ~(unsigned)TELL_FAIL;
        if (c->who.rank < s->size)
            s->told[c->who.rank] = true;
        c->out_len = trib_tcp_put_fail(c->small, &s->failure);
    } else if (c->tell & TELL_TICK) {
        c->tell &= ~(unsigned)TELL_TICK;
        c->out_len = trib_tcp_put_head(c->small, TRIB_TCP_TICK, 0, 0);
    }
    return c->out_len > 0;
}

static void write_conn(struct trib_tcp_server *s, struct conn *c)
{
    while (c->fd >= 0 && (c->out_len || next_out(s, c))) {
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            lose(s, c);
            return;
        }
        c->out += n;
        c->out_len -= (size_t)n;
    }
}

/* A place for a new connection: a free one, or that of the oldest stranger. */
static struct conn *find_place(struct trib_tcp_server *s)
{
    struct conn *oldest = NULL;
    int strangers = 0;
    struct conn *place = NULL;

    for (int i = 0; i < n_conns(s); i++) {
        struct conn *c = &s->conns[i];
        if (c->fd < 0) {
            place = c;
        } else if (!c->hello && !c->own) {
            strangers++;
            if (!oldest || c->heard < oldest->heard)
                oldest = c;
        }
    }
    if (place && strangers < STRANGERS_MAX)
        return place;
    if (oldest)
        drop(oldest);
    return oldest;
}

static void accept_all(struct trib_tcp_server *s, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            fail_all(s, TRIB_ERR_SYSTEM,
                     "rank 0 has no file descriptors left for the others: raise its limit "
                     "(ulimit -n) above the number of ranks");
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return;
        if (fd < 0)
            continue;
        struct conn *c = find_place(s);
        if (!c) {
            close(fd);
            return;
        }
        *c = (struct conn){.fd = fd, .heard = s->now, .who = {.rank = -1}};
    }
}

/* Time -------------------------------------------------------------------------------- */

static void check_deadline(struct trib_tcp_server *s)
{
    char ranks[TRIB_TCP_TEXT_BYTES / 2];

    if (s->now < s->deadline || !busy(s))
        return;
    bool joining = s->joined < s->size;
    for (int i = 0; i < s->size; i++)
        s->missing[i] = joining ? !s->ranks[i] : s->ranks[i]->exchange < s->exchange;
    trib_ranks_format(s->missing, s->size, ranks, sizeof(ranks));
    fail_all(s, TRIB_ERR_BOOT,
             "%s of %d did not come to phase %s of the start within %d ms: start as many "
             "ranks as TRIB_SIZE says, or raise TRIB_BOOT_TIMEOUT_MS",
             ranks, s->size, s->phase, s->opts.boot_timeout_ms);
}

static void check_silence(struct trib_tcp_server *s, struct conn *c)
{
    char who[TRIB_WHO_BYTES];
    int limit = s->opts.stop_timeout_ms;

    if (limit < TRIB_TCP_SILENT_MS)
        limit = TRIB_TCP_SILENT_MS;
    if (c->own || s->now - c->heard < (uint64_t)limit * MS)
        return;
    fail_all(s, TRIB_ERR_PEER_LOST,
             "%s has been silent for %d ms, phase %s of the start: it is stopped, or its "
             "host cannot be reached",
             trib_who_format(&c->who, who), limit, s->phase);
}

static void check_times(struct trib_tcp_server *s)
{
    check_deadline(s);
    bool tick = s->now - s->ticked >= TRIB_TCP_TICK_MS * MS;
    if (tick)
        s->ticked = s->now;
    for (int i = 0; i < n_conns(s); i++) {
        struct conn *c = &s->conns[i];
        if (c->fd < 0)
            continue;
        if (!c->hello) {
            if (!c->own && s->now - c->heard >= HELLO_MS * MS)
                drop(c);
            continue;
        }
        if (!s->failed)
            check_silence(s, c);
        if (tick && !c->out_len && !c->tell)
            c->tell = TELL_TICK;
    }
}

/* While this process was stopped, so were perhaps the others: give them the time back. */
static void forgive_gap(struct trib_tcp_server *s)
{
    uint64_t now = trib_now_ns();
    uint64_t gap = now - s->now;

    s->now = now;
    if (gap < TRIB_TCP_GAP_MS * MS)
        return;
    s->deadline += gap;
    for (int i = 0; i < n_conns(s); i++)
        s->conns[i].heard += gap;
}

/* Rank 0 leaves: have the others what is theirs, or is it too late for that? */
static bool may_leave(const struct trib_tcp_server *s)
{
    if (!s->leaving)
        return false;
    if (s->now >= s->farewell)
        return true;
    for (int i = 0; s->failed && i < s->size; i++)
        if (!s->told[i] && !s->gone[i])
            return false;
    for (int i = 0; i < n_conns(s); i++) {
        const struct conn *c = &s->conns[i];
        if (c->fd >= 0 && c->hello && (c->out_len || c->tell & ~(unsigned)TELL_TICK ||
                                       !trib_tcp_sent(c->fd)))
            return false;
    }
    return true;
}

static int fill_polls(struct trib_tcp_server *s)
{
    int n = 0;

    for (int i = 0; i < s->opts.n_listeners; i++)
        s->polls[n++] = (struct pollfd){s->opts.listeners[i], POLLIN, 0};
    for (int i = 0; i < n_conns(s); i++) {
        const struct conn *c = &s->conns[i];
        short events = (short)(POLLIN | (c->out_len || c->tell ? POLLOUT : 0));
        s->polls[n++] = (struct pollfd){c->fd, events, 0};
    }
    return n;
}

static void *serve(void *arg)
{
    struct trib_tcp_server *s = arg;

    while (!may_leave(s)) {
        int listeners = s->opts.n_listeners; /* may be closed below */
        fill_polls(s);
        if (poll(s->polls, (nfds_t)(listeners + n_conns(s)),
                 s->leaving ? 5 : TRIB_TCP_TICK_MS / 2) < 0 &&
            errno != EINTR)
            break;
        forgive_gap(s);
        for (int i = 0; i < n_conns(s); i++)
            if (s->polls[listeners + i].revents && s->conns[i].fd >= 0)
                read_conn(s, &s->conns[i]);
        for (int i = 0; i < listeners && s->opts.n_listeners; i++)
            if (s->polls[i].revents)
                accept_all(s, s->polls[i].fd);
        check_times(s);
        for (int i = 0; i < n_conns(s); i++)
            write_conn(s, &s->conns[i]);
    }
    return NULL;
}

/* Begin and end ----------------------------------------------------------------------- */

static void server_free(struct trib_tcp_server *s)
{
    close_listeners(s);
    for (int i = 0; s->conns && i < n_conns(s); i++)
        if (s->conns[i].fd >= 0)
            close(s->conns[i].fd);
    free(s->results[0]);
    free(s->results[1]);
    free(s->conns);
    free(s->ranks);
    free(s->gone);
    free(s->told);
    free(s->missing);
    free(s->polls);
    free(s);
}

static bool server_alloc(struct trib_tcp_server *s)
{
    size_t size = (size_t)s->size;
    size_t conns = size + STRANGERS_MAX;

    s->conns = calloc(conns, sizeof(*s->conns));
    s->ranks = calloc(size, sizeof(struct conn *));
    s->gone = calloc(size, sizeof(*s->gone));
    s->told = calloc(size, sizeof(*s->told));
    s->missing = calloc(size, sizeof(*s->missing));
    s->polls = calloc(conns + TRIB_TCP_LISTENERS_MAX, sizeof(*s->polls));
    for (size_t i = 0; s->conns && i < conns; i++)
        s->conns[i].fd = -1;
    return s->conns && s->ranks && s->gone && s->told && s->missing && s->polls;
}

/* No signal of the application is delivered to the server's thread. */
static int start_thread(struct trib_tcp_server *s)
{
    sigset_t all;
    sigset_t old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
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
    s->deadline = s->now + (uint64_t)opts->boot_timeout_ms * MS;
    if (!server_alloc(s)) {
        close(opts->own);
        server_free(s);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    }
    s->conns[0] = (struct conn){.fd = opts->own, .own = true, .heard = s->now,
                                .who = {.rank = -1}};
    int error = start_thread(s);
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
