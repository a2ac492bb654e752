/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/transport/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/time.h"
#include "transport/tcp.h"

#define CALLERS 4 /* more than a backlog of 0 takes */

/* A port whose kernel answers nobody: its backlog is full. */
struct deaf {
    int listener;
    int callers[CALLERS];
    uint16_t port;
};

static void deaf_open(struct deaf *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    d->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(d->listener, 0), 0);
    assert_int_equal(getsockname(d->listener, (struct sockaddr *)&at, &len), 0);
    d->port = ntohs(at.sin_port);
    for (int i = 0; i < CALLERS; i++) {
        d->callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(d->callers[i], (struct sockaddr *)&at, sizeof(at));
    }
}

static void deaf_close(struct deaf *d)
{
    for (int i = 0; i < CALLERS; i++)
        close(d->callers[i]);
    close(d->listener);
}

static void ignore_signal(int number)
{
    (void)number;
}

struct nuisance {
    struct sigaction alarm;
    unsigned left;
};

/* A signal every 20 ms, in the place of the test's own alarm. */
static void nuisance_begin(struct nuisance *n)
{
    const struct sigaction action = {.sa_handler = ignore_signal};
    const struct itimerval every = {{0, 20000}, {0, 20000}};

    n->left = alarm(0);
    sigaction(SIGALRM, &action, &n->alarm);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void nuisance_end(const struct nuisance *n)
{
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    sigaction(SIGALRM, &n->alarm, NULL);
    alarm(n->left);
}

/* Signals neither end an attempt early nor make it last for ever. */
static void test_signals_while_connecting(void **state)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    struct nuisance nuisance;
    struct deaf deaf;
    struct trib_address address;
    struct tcp_address a;

    (void)state;
    assert_status(trib_transport_open("tcp", &opts, &pair.t[0]), TRIB_OK);
    assert_status(pair.t[0]->ops->address(pair.t[0], &address), TRIB_OK);
    deaf_open(&deaf);
    memcpy(&a, address.bytes, sizeof(a));
    a.port = deaf.port;
    a.n = 0; /* loopback alone */
    memcpy(address.bytes, &a, sizeof(a));
    nuisance_begin(&nuisance);
    uint64_t began = trib_now_ns();
    trib_status_t status = pair.t[0]->ops->connect(pair.t[0], 1, &address);
    uint64_t took = trib_now_ns() - began;
    nuisance_end(&nuisance);
    deaf_close(&deaf);
    assert_status(status, TRIB_ERR_PEER_LOST);
    if (!strstr(pair.err.text, "timed out"))
        fail_msg("\"%s\" does not say that the time was over", pair.err.text);
    assert_true(took > UINT64_C(1500000000));
    pair.t[0]->ops->close(pair.t[0]);
}

/* The first address that answers; of those that this host has, too, none. */
static void test_several_addresses(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    socklen_t len = sizeof(at);
    uint8_t ip[2][16], reached[16];
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    for (int i = 0; i < 2; i++) {
        memcpy(ip[i], trib_net_loopback, 16);
        ip[i][15] += (uint8_t)i;
    }
    struct trib_net_place place = {
        .ip = (const uint8_t(*)[16])ip, .n = 2, .port = ntohs(at.sin_port)};
    int fd = trib_net_dial_any(&place, reached);
    assert_true(fd >= 0);
    assert_memory_equal(reached, ip[1], 16);
    close(fd);
    close(listener);
    place.n = trib_net_own(ip, 1); /* 0 where there is loopback alone */
    assert_int_equal(trib_net_dial_any(&place, reached), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
}

static int refusal; /* errno of epoll_pwait2, 0: as it is */

/* In the place of libc's: an old kernel, or a container's filter. */
int epoll_pwait2(int fd, struct epoll_event *events, int max,
                 const struct timespec *timeout, const sigset_t *mask)
{
    if (!refusal)
        return (int)syscall(SYS_epoll_pwait2, fd, events, max, timeout, mask, 8);
    errno = refusal;
    return -1;
}

/* An idle rank sleeps on every kernel, and wakes by wake() rather than by the clock. */
static void test_sleeps_without_pwait2(void **state)
{
    static const int refusals[] = {0, ENOSYS, EPERM};
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);

    (void)state;
    assert_status(trib_transport_open("tcp", &opts, &pair.t[0]), TRIB_OK);
    const struct trib_transport_ops *ops = pair.t[0]->ops;
    for (int i = 0; i < 3; i++) {
        refusal = refusals[i];
        uint64_t began = trib_now_ns();
        ops->wait(pair.t[0], 20000);
        assert_true(trib_now_ns() - began >= UINT64_C(20000000) || !refusal);
        began = trib_now_ns();
        ops->wait(pair.t[0], 1500); /* rounds up */
        assert_true(trib_now_ns() - began >= UINT64_C(1500000) || !refusal);
        ops->wake(pair.t[0], 0);
        began = trib_now_ns();
        ops->wait(pair.t[0], 30000000);
        assert_true(trib_now_ns() - began < UINT64_C(29000000000));
    }
    refusal = 0;
    ops->close(pair.t[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_while_connecting),
        cmocka_unit_test(test_several_addresses),
        cmocka_unit_test(test_sleeps_without_pwait2),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
