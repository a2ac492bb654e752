/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of this host is watched by the kernel: its death and its stop are noticed, and
 * only the time in which somebody watched counts for a stop.
 */
#include "tests/harness/tribtest.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/common/beat.h"
#include "transport/common/net_addr.h"
#include "transport/common/peer_liveness.h"
#include "transport/open.h"

enum { STOP_TIMEOUT_MS = 200 };

struct watched {
    pid_t pid;
    int hold; /* its end of stream ends the child */
    struct trib_process who;
    struct trib_peer_liveness liveness;
};

static void begin(struct watched *w)
{
    struct trib_process me;
    int go[2], ready[2];

    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(ready), 0);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        struct trib_process self;
        char byte;
        close(go[1]);
        trib_process_self(&self);
        (void)!write(ready[1], &self, sizeof(self));
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(go[0]);
    close(ready[1]);
    w->hold = go[1];
    assert_int_equal(read(ready[0], &w->who, sizeof(w->who)), sizeof(w->who));
    close(ready[0]);
    trib_process_self(&me);
    const struct trib_peer_liveness_opts opts = {
        .me = &me, .who = &w->who, .proc = true, .peer = 1};
    trib_peer_liveness_begin(&w->liveness, &opts);
    assert_int_equal(w->liveness.by, TRIB_LIVENESS_BY_KERNEL);
}

static void end(struct watched *w)
{
    trib_peer_liveness_end(&w->liveness);
    trib_peer_liveness_end(&w->liveness); /* harmless when done before */
    close(w->hold);
    (void)kill(w->pid, SIGKILL);
    assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
}

/* Check until the peer is lost or `ms` have passed. */
static bool lost_within(struct watched *w, int ms, char why[160])
{
    const uint64_t until = trib_deadline_ms(ms);
    uint64_t last = trib_now_ns();
    bool lost = false;

    while (!lost && !trib_deadline_passed(until)) {
        usleep(5000);
        lost = trib_peer_liveness_lost(&w->liveness, trib_peer_liveness_due(&last),
                                       STOP_TIMEOUT_MS, why, 160);
    }
    return lost;
}

TEST(test_death)
{
    char why[160] = "";
    struct watched w;

    begin(&w);
    assert_false(lost_within(&w, 100, why));
    assert_false(trib_peer_liveness_dead(&w.liveness));
    assert_int_equal(trib_peer_liveness_ask(&w.liveness), 0); /* no heartbeats */
    assert_int_equal(kill(w.pid, SIGKILL), 0);
    assert_true(lost_within(&w, tribtest_patience_ms(), why));
    assert_non_null(strstr(why, "has died"));
    assert_true(trib_peer_liveness_dead(&w.liveness));
    end(&w);
}

TEST(test_stop)
{
    char why[160] = "";
    struct watched w;

    begin(&w);
    assert_int_equal(kill(w.pid, SIGSTOP), 0);
    assert_true(lost_within(&w, tribtest_patience_ms(), why));
    assert_non_null(strstr(why, "has been stopped for"));
    assert_int_equal(kill(w.pid, SIGCONT), 0);
    end(&w);
}

/* One late check does not count for all of the time before it. */
TEST(test_late_check)
{
    char why[160] = "";
    struct watched w;

    begin(&w);
    assert_int_equal(kill(w.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(w.pid, NULL, WUNTRACED), w.pid);
    for (int i = 0; i < 2; i++)
        assert_false(trib_peer_liveness_lost(&w.liveness, UINT64_C(3600000000000),
                                             STOP_TIMEOUT_MS, why, sizeof(why)));
    assert_int_equal(kill(w.pid, SIGCONT), 0);
    end(&w);
}

TEST(test_due)
{
    uint64_t last = trib_now_ns();

    assert_int_equal(trib_peer_liveness_due(&last), 0);
    last -= UINT64_C(1000000000);
    assert_true(trib_peer_liveness_due(&last) >= UINT64_C(1000000000));
    assert_int_equal(trib_peer_liveness_due(&last), 0);
}

/* Nobody watches a rank of this process, nor one for which there is no means. */
TEST(test_nobody)
{
    struct trib_peer_liveness none;
    struct trib_process me, far;
    char why[160];

    trib_process_self(&me);
    far = me;
    far.boot++;
    const struct trib_process *who[] = {&me, &far};
    for (int i = 0; i < 2; i++) {
        const struct trib_peer_liveness_opts opts = {
            .me = &me, .who = who[i], .proc = true, .peer = 1};
        trib_peer_liveness_begin(&none, &opts);
        assert_int_equal(none.by, TRIB_LIVENESS_BY_NOBODY);
        assert_false(trib_peer_liveness_lost(&none, 1000, 1, why, sizeof(why)));
        assert_false(trib_peer_liveness_dead(&none));
        assert_false(trib_peer_liveness_answered(&none, 1));
        trib_peer_liveness_end(&none);
    }
}

enum { KEY = 77 }; /* of the peer that answers by hand */

static int peer_open(uint16_t *port)
{
    struct sockaddr_storage at;
    socklen_t len = trib_net_sockaddr(trib_net_loopback, *port, AF_INET, &at);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = trib_net_port((struct sockaddr *)&at);
    return fd;
}

static void answer(int fd)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    struct beat b;

    usleep(1000);
    if (recvfrom(fd, &b, sizeof(b), 0, (struct sockaddr *)&from, &len) != sizeof(b))
        return;
    b.kind = HEARTBEAT_ANSWER;
    b.from = 1;
    b.to = 0;
    trib_beat_seal(&b, KEY, NULL, b.seal);
    (void)sendto(fd, &b, sizeof(b), 0, (struct sockaddr *)&from, len);
}

/* A firewall may refuse beats for a while: a peer that answers later has not ended. */
TEST(test_refused_for_a_while)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct trib_config cfg = {.stop_timeout_ms = 5000};
    struct trib_log log;
    struct trib_error err = {0};
    const struct trib_transport_opts opts = {
        .size = 2, .params = "", .cfg = &cfg, .log = &log, .err = &err};
    struct trib_heartbeat_peer who = {.key = KEY};
    struct trib_heartbeat *a;
    int fd = peer_open(&who.port);

    trib_log_init(&log, TRIB_LOG_ERROR, NULL, NULL);
    assert_status(trib_heartbeat_open(&opts, "test", 0, 1, &a), TRIB_OK);
    memcpy(who.ip, trib_net_loopback, sizeof(who.ip));
    trib_heartbeat_watch(a, 1, &who);
    while (!trib_heartbeat_heard(a, 1) && !trib_deadline_passed(until))
        answer(fd);
    close(fd);
    while (!trib_heartbeat_closed(a, 1) && !trib_deadline_passed(until))
        usleep(1000);
    assert_true(trib_heartbeat_closed(a, 1));
    fd = peer_open(&who.port);
    while (trib_heartbeat_closed(a, 1) && !trib_deadline_passed(until))
        answer(fd);
    assert_false(trib_heartbeat_closed(a, 1));
    close(fd);
    trib_heartbeat_close(a);
}
