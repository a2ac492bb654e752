/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of the TCP start and messages to it over real connections: valid messages
 * of the ranks, in any order, with a few fields edited. In each case it answers with
 * valid frames, and ends.
 *
 * A message has 3 bytes and then edits (edits.h):
 *
 *     | connection 1 | kind 1 | edits 1, at most 3 |
 */
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"
#include "boot/tcp/tcp_server.h"
#include "tests/fuzz/edits.h"

unsigned fuzz_reached; /* results that rank 0 has received */

enum { RANKS = 3, CONNECTIONS = 6, MESSAGES_MOST = 24, BLOB = 100, HEARD = 1 << 16 };
enum { READ_MS = 50 }; /* a busy server reads late */
enum message { HELLO, GATHER, TICK, FAIL, WELCOME, HANG_UP, MESSAGES };

struct start {
    struct trib_tcp_server *server;
    struct sockaddr_un at;
    socklen_t at_len;
    int fd[CONNECTIONS]; /* [0]: of rank 0; -1: none */
    uint32_t exchange[CONNECTIONS];
    size_t heard[CONNECTIONS];
    uint8_t bytes[CONNECTIONS][HEARD];
};

static struct trib_tcp_hello hello_of(int rank)
{
    struct trib_tcp_hello h = {.size = RANKS, .who = {.rank = rank, .pid = 4711}};

    snprintf(h.who.host, sizeof(h.who.host), "here");
    snprintf(h.library, sizeof(h.library), "0.1.0");
    return h;
}

static void open_start(struct start *s)
{
    struct trib_tcp_server_opts opts = {.self = hello_of(0),
                                        .n_listeners = 1,
                                        .boot_timeout_ms = 5000,
                                        .stop_timeout_ms = 1};
    struct trib_error err = {0};
    int pair[2];

    memset(s, 0, offsetof(struct start, bytes));
    for (int i = 0; i < CONNECTIONS; i++)
        s->fd[i] = -1;
    s->at.sun_family = AF_UNIX;
    s->at_len = sizeof(s->at);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    need(listener >= 0 &&
         bind(listener, (struct sockaddr *)&s->at, sizeof(sa_family_t)) == 0 &&
         listen(listener, 16) == 0 &&
         getsockname(listener, (struct sockaddr *)&s->at, &s->at_len) == 0);
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    opts.listeners[0] = listener;
    opts.own = pair[1];
    s->fd[0] = pair[0];
    need(trib_tcp_server_start(&opts, &err, &s->server) == TRIB_OK);
}

/* Read the answers of the server for end `c`. Return false if the server has closed the
 * connection. */
static bool hear(struct start *s, int c)
{
    ssize_t n = 1;

    while (n > 0 && s->heard[c] < HEARD) {
        n = recv(s->fd[c], s->bytes[c] + s->heard[c], HEARD - s->heard[c],
                 MSG_DONTWAIT);
        s->heard[c] += n > 0 ? (size_t)n : 0;
    }
    return n != 0;
}

static void hang_up(struct start *s, int c)
{
    if (s->fd[c] >= 0)
        close(s->fd[c]);
    s->fd[c] = -1;
}

/* Send bytes and wait until the server has read them, or has closed the connection. */
static void say(struct start *s, int c, const uint8_t *bytes, size_t n)
{
    if (send(s->fd[c], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
        (void)hear(s, c);
        hang_up(s, c);
        return;
    }
    const uint64_t until = trib_deadline_ms(READ_MS);

    while (hear(s, c) && !trib_sockets_sent(s->fd[c]) && !trib_deadline_passed(until))
        sched_yield();
}

static bool come(struct start *s, int c)
{
    if (s->fd[c] >= 0 || c == 0)
        return s->fd[c] >= 0;
    s->heard[c] = 0;
    s->fd[c] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd[c] >= 0 && connect(s->fd[c], (struct sockaddr *)&s->at, s->at_len) != 0)
        hang_up(s, c);
    return s->fd[c] >= 0;
}

static size_t make(struct start *s, int c, enum message kind, uint8_t *out)
{
    static const uint8_t blob[BLOB] = {1, 2, 3};
    const struct trib_tcp_hello hello = hello_of(c % RANKS);
    struct trib_tcp_gather gather = {.phase = "connect", .bytes = BLOB, .blob = blob};
    struct trib_tcp_failure failure = {.status = TRIB_ERR_PEER_LOST, .text = "why not"};

    switch (kind) {
    case HELLO:
    case WELCOME:
        return trib_tcp_put_hello(
            out, kind == HELLO ? TRIB_TCP_HELLO : TRIB_TCP_WELCOME, &hello);
    case GATHER:
        return trib_tcp_put_gather(out, ++s->exchange[c], &gather);
    case FAIL:
        return trib_tcp_put_fail(out, &failure);
    default:
        return trib_tcp_put_head(out, TRIB_TCP_TICK, 0, 0);
    }
}

/* The hello of rank 0 comes from its own process: no peer can change it. */
static void play(struct start *s, struct edits *all)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    struct edit e;

    say(s, 0, bytes, make(s, 0, HELLO, bytes));
    for (int i = 0; i < MESSAGES_MOST && all->left >= 3; i++) {
        const int c = (int)(edits_number(all, 1) % CONNECTIONS);
        const enum message kind = (enum message)(edits_number(all, 1) % MESSAGES);
        const int edits = (int)(edits_number(all, 1) % 4);
        if (kind == HANG_UP && c > 0) {
            hang_up(s, c);
            continue;
        }
        if (kind == HANG_UP || !come(s, c))
            continue;
        size_t n = make(s, c, kind, bytes);
        for (int k = 0; k < edits && edits_next(all, &e); k++) {
            if (e.place % 8 == 7) /* it is truncated */
                n = e.offset % (n + 1);
            else
                (void)edit_apply(all, &e, bytes, n);
        }
        say(s, c, bytes, n);
    }
}

/* Check that all data received on one connection is frames. */
static void check(const struct start *s, int c)
{
    struct trib_tcp_frame frame;
    struct trib_tcp_failure failure;
    size_t used;

    for (size_t at = 0; at < s->heard[c]; at += used) {
        const trib_status_t st =
            trib_tcp_parse(s->bytes[c] + at, s->heard[c] - at, HEARD, &frame, &used);
        need(st == TRIB_OK || st == TRIB_INPROGRESS);
        if (st != TRIB_OK)
            return;
        fuzz_reached += c == 0 && frame.kind == TRIB_TCP_RESULT;
        if (frame.kind == TRIB_TCP_FAIL)
            need(trib_tcp_parse_fail(&frame, &failure) == TRIB_OK &&
                 failure.status < 0 && failure.text[0]);
    }
}

/* Let ranks receive the failure of the start. Otherwise the server would wait for them,
 * or for its second of grace, which would dominate the run time. */
static void be_told(struct start *s)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];

    for (int c = 1; c < CONNECTIONS; c++)
        hang_up(s, c);
    for (int rank = 1; rank < RANKS; rank++) {
        if (!come(s, rank))
            continue;
        say(s, rank, bytes, make(s, rank, HELLO, bytes));
        for (int i = 0; i < 20 && s->fd[rank] >= 0 && !s->heard[rank] && hear(s, rank);
             i++)
            (void)poll(&(struct pollfd){s->fd[rank], POLLIN, 0}, 1, 10);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct start s;
    struct edits all = {.at = data, .left = size};
    static const uint64_t special[] = {0, 1, RANKS, RANKS - 1, INT32_MAX, UINT32_MAX,
                                       TRIB_BOOT_BLOB_MAX, UINT64_MAX};

    all.special = special;
    all.n_special = sizeof(special) / sizeof(*special);
    open_start(&s);
    play(&s, &all);
    for (int c = 1; c < CONNECTIONS; c++) {
        if (s.fd[c] >= 0)
            (void)hear(&s, c);
        check(&s, c);
    }
    be_told(&s);
    if (s.fd[0] >= 0) /* a busy server may have sent the last result only now */
        (void)hear(&s, 0);
    check(&s, 0);
    for (int c = 0; c < CONNECTIONS; c++)
        hang_up(&s, c);
    trib_tcp_server_stop(s.server);
    return 0;
}
