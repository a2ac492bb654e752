/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heartbeats: a rank that answers lives, a silent one is lost, and unauthenticated
 * datagrams are dropped.
 */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/time.h"
#include "transport/common/net_addr.h"
#include "transport/common/heartbeat.h"
#include "transport/open.h"

#define TIMEOUT_MS 600 /* of silence; much more than a busy machine delays an answer \
                        */
#define PATIENCE_MS 15000

static const uint8_t loopback6[16] = {[15] = 1};

struct heart {
    struct trib_secret secret;
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err;
    struct trib_heartbeat *heartbeat;
    _Atomic int warnings;
    char warning[600];
};

static void note(void *arg, trib_log_level_t level, const char *line)
{
    struct heart *h = arg;

    (void)level;
    snprintf(h->warning, sizeof(h->warning), "%s", line);
    h->warnings++;
}

static trib_status_t open_with(struct heart *h, int self, int timeout_ms, int port,
                               int ports)
{
    const struct trib_secret secret = h->secret;
    memset(h, 0, sizeof(*h));
    h->secret = secret;
    h->cfg.stop_timeout_ms = timeout_ms;
    trib_log_init(&h->log, TRIB_LOG_WARN, note, h);
    struct trib_transport_opts opts = {.self = self,
                                       .size = 2,
                                       .params = "",
                                       .cfg = &h->cfg,
                                       .log = &h->log,
                                       .err = &h->err,
                                       .secret = &h->secret};
    return trib_heartbeat_open(&opts, "test", port, ports, &h->heartbeat);
}

static trib_status_t try_open(struct heart *h, int self, int port, int ports)
{
    return open_with(h, self, TIMEOUT_MS, port, ports);
}

static void heart_open(struct heart *h, int self)
{
    h->secret.is_set = false;
    assert_status(try_open(h, self, 0, 1), TRIB_OK);
}

static void watch_at(struct heart *h, int peer, const uint8_t ip[16], uint16_t port,
                     uint64_t key)
{
    struct trib_heartbeat_peer who = {.port = port, .key = key, .pid = 4711};

    memcpy(who.ip, ip, sizeof(who.ip));
    trib_heartbeat_watch(h->heartbeat, peer, &who);
}

static void watch(struct heart *h, int peer, const struct heart *other)
{
    watch_at(h, peer, trib_net_loopback, trib_heartbeat_port(other->heartbeat),
             trib_heartbeat_key(other->heartbeat));
}

static bool lost_within(struct heart *h, int peer, int ms, char *why)
{
    uint64_t until = trib_deadline_ms(ms);

    while (!trib_deadline_passed(until)) {
        if (trib_heartbeat_lost(h->heartbeat, peer, why, TRIB_WHY_MAX))
            return true;
        usleep(2000);
    }
    return false;
}

TEST(test_who_answers_lives)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];

    heart_open(&a, 0);
    heart_open(&b, 1);
    watch(&a, 1, &b); /* b does not watch: it only answers */
    assert_false(lost_within(&a, 1, 3 * TIMEOUT_MS, why));
    trib_heartbeat_close(b.heartbeat);
    uint64_t start = trib_now_ns();
    assert_true(lost_within(&a, 1, PATIENCE_MS, why));
    assert_true(trib_now_ns() - start > TIMEOUT_MS / 2 * UINT64_C(1000000));
    assert_non_null(strstr(why, "no heartbeat from process 4711 at 127.0.0.1 for "));
    assert_non_null(strstr(why, "since "));
    trib_heartbeat_close(a.heartbeat);
    assert_int_equal(a.warnings, 0);
}

TEST(test_forgotten)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];

    heart_open(&a, 0);
    heart_open(&b, 1);
    watch(&a, 1, &b);
    assert_false(lost_within(&a, 1, TIMEOUT_MS / 2, why));
    trib_heartbeat_close(b.heartbeat);
    trib_heartbeat_forget(a.heartbeat, 1);
    trib_heartbeat_forget(a.heartbeat, 1);
    assert_false(lost_within(&a, 1, 2 * TIMEOUT_MS, why));
    trib_heartbeat_close(a.heartbeat);
}

/* If no UDP gets through, the job continues, and logs once that heartbeats are missing.
 */
TEST(test_never_heard)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];
    uint64_t until = trib_deadline_ms(PATIENCE_MS);

    heart_open(&a, 0);
    heart_open(&b, 1);
    watch_at(&a, 1, trib_net_loopback, trib_heartbeat_port(b.heartbeat),
             trib_heartbeat_key(b.heartbeat) + 1); /* b does not answer to a wrong
                                                    * key */
    while (a.warnings == 0 && !trib_deadline_passed(until))
        usleep(2000);
    assert_false(lost_within(&a, 1, 2 * TIMEOUT_MS, why));
    trib_heartbeat_close(a.heartbeat);
    trib_heartbeat_close(b.heartbeat);
    assert_int_equal(a.warnings, 1);
    assert_non_null(strstr(a.warning, "no heartbeat from rank 1"));
    assert_non_null(strstr(a.warning, "allow UDP"));
}

/* Whatever comes to the port: no answer, no life for the silent. */
TEST(test_unauthenticated)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];
    uint8_t bytes[64];
    struct sockaddr_storage to;

    heart_open(&a, 0);
    heart_open(&b, 1);
    watch(&a, 1, &b);
    assert_false(lost_within(&a, 1, TIMEOUT_MS / 2, why));
    trib_heartbeat_close(b.heartbeat);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t len = trib_net_sockaddr(trib_net_loopback,
                                      trib_heartbeat_port(a.heartbeat), AF_INET, &to);
    uint64_t until = trib_deadline_ms(PATIENCE_MS);
    bool lost = false;
    for (uint32_t i = 0; !lost && !trib_deadline_passed(until); i++) {
        /* Nonsense of all lengths, and beats that are right but for the seal. */
        int32_t beat[10] = {0x51627254, 1 + (int32_t)(i / 3 % 3), 1,    0, (int32_t)i,
                            0,          (int32_t)i * 77,      12345};
        memset(bytes, (int)i, sizeof(bytes));
        memcpy(bytes, beat, i % 3 ? sizeof(beat) : 8);
        size_t n = i % 3 == 1 ? sizeof(beat) : i % (sizeof(bytes) + 1);
        (void)sendto(fd, bytes, n, 0, (struct sockaddr *)&to, len);
        lost = trib_heartbeat_lost(a.heartbeat, 1, why, sizeof(why));
        usleep(500);
    }
    assert_true(lost);
    assert_false(trib_heartbeat_continues(a.heartbeat, 1));
    assert_true(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0);
    close(fd);
    trib_heartbeat_close(a.heartbeat);
}

/* One whose beats have a MAC; number 0: no secret. */
static void sealed_open(struct heart *h, int self, uint8_t number)
{
    char why[160];

    memset(h, 0, sizeof(*h));
    h->secret = (struct trib_secret){.is_set = number != 0, .bytes = {number}};
    if (number && !trib_secret_arm(&h->secret, why, sizeof(why)))
        tribtest_skip(why);
    assert_status(try_open(h, self, 0, 1), TRIB_OK);
}

/* The same secret: all is as without. Another one, or none: nothing is heard. */
TEST(test_secrets)
{
    static const uint8_t numbers[][2] = {{1, 1}, {1, 2}, {0, 1}, {1, 0}};
    char why[TRIB_WHY_MAX];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
        sealed_open(&a, 0, numbers[i][0]);
        sealed_open(&b, 1, numbers[i][1]);
        watch(&a, 1, &b);
        assert_false(lost_within(&a, 1, 2 * TIMEOUT_MS, why));
        assert_int_equal(trib_heartbeat_heard(a.heartbeat, 1), i == 0);
        trib_heartbeat_close(a.heartbeat);
        trib_heartbeat_close(b.heartbeat);
    }
}

/* An attacker records every datagram of b and repeats it when b is silent: b is lost
 * all the same. */
TEST(test_recorded)
{
    enum { MOST = 512, BYTES = 40 };
    static uint8_t recorded[MOST][BYTES];
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    struct sockaddr_storage to_a, between;
    socklen_t len, between_len = sizeof(between);
    char why[TRIB_WHY_MAX];
    int n = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    sealed_open(&a, 0, 5);
    sealed_open(&b, 1, 5);
    len = trib_net_sockaddr(trib_net_loopback, 0, AF_INET, &between);
    assert_int_equal(bind(fd, (struct sockaddr *)&between, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&between, &between_len), 0);
    len = trib_net_sockaddr(trib_net_loopback, trib_heartbeat_port(a.heartbeat),
                            AF_INET, &to_a);
    watch(&a, 1, &b);
    watch_at(&b, 0, trib_net_loopback, trib_net_port((struct sockaddr *)&between),
             trib_heartbeat_key(a.heartbeat));
    uint64_t until = trib_deadline_ms(TIMEOUT_MS);
    while (!trib_deadline_passed(until) && n < MOST) {
        if (recv(fd, recorded[n], BYTES, 0) != BYTES) {
            usleep(1000);
            continue;
        }
        (void)sendto(fd, recorded[n++], BYTES, 0, (struct sockaddr *)&to_a, len);
    }
    assert_true(n > 2);
    trib_heartbeat_close(b.heartbeat);
    uint64_t end = trib_deadline_ms(PATIENCE_MS);
    bool lost = false;
    for (int i = 0; !lost && !trib_deadline_passed(end); i++) {
        (void)sendto(fd, recorded[i % n], BYTES, 0, (struct sockaddr *)&to_a, len);
        usleep(2000);
        lost = trib_heartbeat_lost(a.heartbeat, 1, why, sizeof(why));
    }
    assert_true(lost);
    close(fd);
    trib_heartbeat_close(a.heartbeat);
}

/* A child that beats and computes; its port and key come through the pipe. */
static pid_t start_child(struct trib_heartbeat_peer *who)
{
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct heart h = {.heartbeat = NULL};
        if (try_open(&h, 1, 0, 1) != TRIB_OK)
            _exit(1);
        who->port = trib_heartbeat_port(h.heartbeat);
        who->key = trib_heartbeat_key(h.heartbeat);
        if (write(pipes[1], who, sizeof(*who)) != sizeof(*who))
            _exit(1);
        alarm(60);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], who, sizeof(*who)), sizeof(*who));
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

TEST(test_stopped_process)
{
    struct heart a;
    struct trib_heartbeat_peer who = {0};
    char why[TRIB_WHY_MAX];
    pid_t pid = start_child(&who);

    heart_open(&a, 0);
    watch_at(&a, 1, trib_net_loopback, who.port, who.key);
    assert_false(lost_within(&a, 1, TIMEOUT_MS / 2, why));
    for (int i = 0; i < 2; i++) { /* a short stop is none */
        kill(pid, SIGSTOP);
        assert_false(lost_within(&a, 1, TIMEOUT_MS / 2, why));
        kill(pid, SIGCONT);
        assert_false(lost_within(&a, 1, TIMEOUT_MS / 2, why));
    }
    kill(pid, SIGSTOP);
    assert_true(lost_within(&a, 1, PATIENCE_MS, why));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    trib_heartbeat_close(a.heartbeat);
    assert_int_equal(a.warnings, 0);
}

/* A forked child that closes its copy does not stop its parent's. */
TEST(test_fork)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];
    int status = -1;

    heart_open(&a, 0);
    heart_open(&b, 1);
    watch(&a, 1, &b);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        trib_heartbeat_close(a.heartbeat);
        trib_heartbeat_close(b.heartbeat);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(lost_within(&a, 1, 2 * TIMEOUT_MS, why));
    trib_heartbeat_close(a.heartbeat);
    trib_heartbeat_close(b.heartbeat);
}

static bool closed_within(struct heart *h, int peer, int ms)
{
    uint64_t until = trib_deadline_ms(ms);

    while (!trib_heartbeat_closed(h->heartbeat, peer) && !trib_deadline_passed(until))
        usleep(2000);
    return trib_heartbeat_closed(h->heartbeat, peer);
}

static void heard_within(struct heart *h, int peer, int ms)
{
    uint64_t until = trib_deadline_ms(ms);

    while (!trib_heartbeat_heard(h->heartbeat, peer) && !trib_deadline_passed(until))
        usleep(2000);
    assert_true(trib_heartbeat_heard(h->heartbeat, peer));
}

static bool has_ipv6(void)
{
    struct sockaddr_storage six;
    socklen_t len = trib_net_sockaddr(loopback6, 0, AF_INET6, &six);
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    bool there = fd >= 0 && bind(fd, (struct sockaddr *)&six, len) == 0;

    if (fd >= 0)
        close(fd);
    return there;
}

/* The kernel reports the closed port of a killed process long before its silence
 * counts. A silent peer is not closed, nor one that was never heard. */
static void closes(const uint8_t ip[16])
{
    struct heart a = {.heartbeat = NULL};
    struct trib_heartbeat_peer who = {0};
    char why[TRIB_WHY_MAX];
    pid_t pid = start_child(&who);

    assert_status(open_with(&a, 0, 10 * PATIENCE_MS, 0, 1), TRIB_OK);
    watch_at(&a, 1, ip, who.port, who.key);
    heard_within(&a, 1, PATIENCE_MS);
    kill(pid, SIGSTOP);
    assert_false(closed_within(&a, 1, TIMEOUT_MS));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(closed_within(&a, 1, PATIENCE_MS));
    assert_false(trib_heartbeat_lost(a.heartbeat, 1, why, sizeof(why)));
    trib_heartbeat_forget(a.heartbeat, 1);
    assert_false(trib_heartbeat_closed(a.heartbeat, 1));
    watch_at(&a, 1, ip, who.port, who.key); /* no process was ever at this port */
    assert_false(closed_within(&a, 1, TIMEOUT_MS));
    trib_heartbeat_close(a.heartbeat);
}

TEST(test_closed)
{
    closes(trib_net_loopback);
    if (has_ipv6())
        closes(loopback6);
}

/* A peer that answers a question lived at the moment of that question. */
TEST(test_ask)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    uint64_t until = trib_deadline_ms(PATIENCE_MS), number;

    heart_open(&a, 0);
    heart_open(&b, 1);
    assert_int_equal(trib_heartbeat_ask(a.heartbeat, 1), 0);
    assert_false(trib_heartbeat_answered(a.heartbeat, 1, 0));
    watch(&a, 1, &b);
    number = trib_heartbeat_ask(a.heartbeat, 1);
    assert_true(number > 0);
    while (!trib_heartbeat_answered(a.heartbeat, 1, number) &&
           !trib_deadline_passed(until))
        usleep(2000);
    assert_true(trib_heartbeat_answered(a.heartbeat, 1, number));
    trib_heartbeat_close(b.heartbeat);
    number = trib_heartbeat_ask(a.heartbeat, 1);
    usleep(50000);
    assert_false(trib_heartbeat_answered(a.heartbeat, 1, number));
    trib_heartbeat_close(a.heartbeat);
}

/* It reaches a rank that does not watch the sender, and the sender closes at once. */
TEST(test_continues)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    const uint64_t until = trib_deadline_ms(PATIENCE_MS);

    heart_open(&a, 0);
    heart_open(&b, 1);
    struct trib_heartbeat_peer who = {.port = trib_heartbeat_port(a.heartbeat),
                                      .key = trib_heartbeat_key(a.heartbeat)};
    memcpy(who.ip, trib_net_loopback, sizeof(who.ip));
    assert_false(trib_heartbeat_continues(a.heartbeat, 1));
    trib_heartbeat_send_continues(b.heartbeat, 0, &who);
    trib_heartbeat_close(b.heartbeat);
    while (!trib_heartbeat_continues(a.heartbeat, 1) && !trib_deadline_passed(until))
        usleep(2000);
    assert_true(trib_heartbeat_continues(a.heartbeat, 1));
    trib_heartbeat_close(a.heartbeat);
}

TEST(test_ipv6)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL};
    char why[TRIB_WHY_MAX];

    if (!has_ipv6())
        tribtest_skip("no IPv6 here");
    heart_open(&a, 0);
    heart_open(&b, 1);
    watch_at(&a, 1, loopback6, trib_heartbeat_port(b.heartbeat),
             trib_heartbeat_key(b.heartbeat));
    assert_false(lost_within(&a, 1, TIMEOUT_MS, why));
    trib_heartbeat_close(b.heartbeat);
    assert_true(lost_within(&a, 1, PATIENCE_MS, why));
    assert_non_null(strstr(why, "at ::1 for"));
    trib_heartbeat_close(a.heartbeat);
}

TEST(test_port_range)
{
    struct heart a = {.heartbeat = NULL}, b = {.heartbeat = NULL},
                 c = {.heartbeat = NULL};

    heart_open(&a, 0);
    int port = trib_heartbeat_port(a.heartbeat);
    trib_status_t st = try_open(&b, 1, port, 20);
    assert_status(st, TRIB_OK);
    assert_in_range(trib_heartbeat_port(b.heartbeat), port + 1, port + 19);
    assert_status(try_open(&c, 1, port, 1), TRIB_ERR_SYSTEM);
    assert_non_null(strstr(c.err.text, "heartbeats of test: none of the UDP ports"));
    assert_non_null(strstr(c.err.text, "with port=N,ports=N in TRIB_TRANSPORT"));
    trib_heartbeat_close(a.heartbeat);
    trib_heartbeat_close(b.heartbeat);
}

struct helped {
    _Atomic int runs;
    int again; /* runs that ask for another one */
};

static bool run_again(void *arg)
{
    struct helped *h = arg;

    return h->runs++ < h->again;
}

static bool has_run(const struct helped *h, int times)
{
    const uint64_t until = trib_deadline_ms(PATIENCE_MS);

    while (h->runs < times && !trib_deadline_passed(until))
        usleep(1000);
    usleep(10 * TRIB_HEARTBEAT_SOON_MS * 1000); /* one too many would come by then */
    return h->runs == times;
}

/* A helper runs when it is requested, while it requests itself, and when its descriptor
 * is readable; otherwise not. */
TEST(test_helper)
{
    struct heart a = {.heartbeat = NULL};
    struct helped h = {.again = 3};
    const uint64_t one = 1;
    int fd = eventfd(0, EFD_NONBLOCK);

    heart_open(&a, 0);
    trib_heartbeat_soon(a.heartbeat); /* no helper is registered */
    trib_heartbeat_help(a.heartbeat, fd, run_again, &h);
    trib_heartbeat_soon(a.heartbeat);
    trib_heartbeat_soon(a.heartbeat);
    assert_true(has_run(&h, 4));
    trib_heartbeat_soon(a.heartbeat);
    assert_true(has_run(&h, 5));
    assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
    const uint64_t until = trib_deadline_ms(PATIENCE_MS);
    while (h.runs < 6 && !trib_deadline_passed(until))
        usleep(1000);
    trib_heartbeat_help(a.heartbeat, -1, NULL, NULL);
    const int runs = h.runs;
    assert_true(runs >= 6);
    trib_heartbeat_soon(a.heartbeat);
    assert_true(has_run(&h, runs));
    trib_heartbeat_close(a.heartbeat);
    close(fd);
}
