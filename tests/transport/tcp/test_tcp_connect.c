/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/transport/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "transport/tcp/tcp.h"

#define CALLERS 4 /* more than a backlog of 0 takes */

/* A port whose kernel answers no connection: its backlog is full. */
struct deaf {
    int listener;
    int callers[CALLERS];
    uint16_t port;
};

/* host: 1 for 127.0.0.1 and so on; port 0: any. */
static int listen_at(unsigned host, uint16_t port, int backlog)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host - 1)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void deaf_open(struct deaf *d, unsigned host)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);

    d->listener = listen_at(host, 0, 0);
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
TEST(test_signals_while_connecting)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    struct nuisance nuisance;
    struct deaf deaf;
    struct trib_address address;
    struct trib_ip_address a;

    assert_ok(trib_transport_open("tcp", &opts, &pair.t[0]));
    assert_ok(pair.t[0]->ops->address(pair.t[0], &address));
    deaf_open(&deaf, 1);
    memcpy(&a, address.bytes, sizeof(a));
    a.port = deaf.port;
    memset(&a.list, 0, sizeof(a.list)); /* loopback alone */
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

static struct trib_net_list offered(const unsigned *hosts, int n)
{
    struct trib_net_list list = {0};
    uint8_t ip[16];

    for (int i = 0; i < n; i++) {
        memcpy(ip, trib_net_loopback, sizeof(ip));
        ip[15] = (uint8_t)hosts[i];
        assert_true(trib_net_list_put(&list, ip));
    }
    return list;
}

/* Reached at 127.0.0.HOST, after that many ms. */
static uint64_t reach(struct trib_net_ways *ways, const struct trib_net_place *place,
                      unsigned host)
{
    struct trib_net_found found;
    uint64_t began = trib_now_ns();
    int fd = trib_net_reach(ways, place, &found);

    if (fd < 0)
        fail_msg("%s: %m", found.at);
    assert_int_equal(found.ip[15], host);
    close(fd);
    return (trib_now_ns() - began) / 1000000;
}

/* An address that never answers costs one step, once for all peers. */
TEST(test_several_addresses)
{
    const struct trib_net_list list = offered((unsigned[]){2, 3}, 2);
    struct trib_net_ways ways = {0};
    struct deaf deaf;

    deaf_open(&deaf, 2);
    int listener = listen_at(3, deaf.port, 4);
    struct trib_net_place place = {.list = &list, .port = deaf.port};
    assert_in_range(reach(&ways, &place, 3), 150, 1500);
    assert_in_range(reach(&ways, &place, 3), 0, 150);
    close(listener);
    deaf_close(&deaf);
}

/* The address of the rendezvous comes before all earlier ones of the list. */
TEST(test_the_meeting_first)
{
    const struct trib_net_list list = offered((unsigned[]){2, 3, 4}, 3);
    struct trib_net_ways ways = {0};
    struct deaf deaf;

    deaf_open(&deaf, 2);
    int three = listen_at(3, deaf.port, 4), four = listen_at(4, deaf.port, 4);
    struct trib_net_place place = {.list = &list, .port = deaf.port};
    memcpy(ways.met.root, trib_net_loopback, 16);
    ways.met.root[15] = 4;
    assert_in_range(reach(&ways, &place, 4), 0, 150);
    close(three);
    close(four);
    deaf_close(&deaf);
}

/* Two processes of one host that do not know it; hosts that know that they are two. */
TEST(test_own_addresses_last)
{
    struct trib_net_list list = {0};
    struct trib_net_ways ways = {0};
    struct trib_net_found found;
    struct trib_net_port port;
    uint8_t own[1][16];

    if (trib_net_own(own, 1) == 1)
        assert_true(trib_net_list_put(&list, own[0]));
    assert_ok(trib_net_bind("test", SOCK_STREAM, 0, 1, &port, NULL));
    assert_int_equal(listen(port.fd, 4), 0);
    struct trib_net_place place = {.list = &list, .port = port.port};
    int fd = trib_net_reach(&ways, &place, &found);
    assert_true(fd >= 0);
    close(fd);
    place.apart = true;
    assert_int_equal(trib_net_reach(&ways, &place, &found), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_non_null(strstr(found.cure, "offers none"));
    close(port.fd);
}

/* Lists pass all addresses on, and what makes no sense ends them. */
TEST(test_lists)
{
    struct trib_net_list list = {0};
    uint8_t ip[TRIB_NET_OFFERED][16], six[16] = {0xfd, 0x77, [15] = 1};
    int n = 0;

    memcpy(ip[0], trib_net_loopback, 16);
    while (trib_net_list_put(&list, n == 1 ? six : ip[0]))
        n++;
    assert_int_equal(n, TRIB_NET_OFFERED);
    assert_int_equal(trib_net_list_get(&list, ip, TRIB_NET_OFFERED), n);
    assert_memory_equal(ip[1], six, 16);
    assert_memory_equal(ip[31], trib_net_loopback, 16);
    list.bytes[5] = 5;
    assert_int_equal(trib_net_list_get(&list, ip, TRIB_NET_OFFERED), 1);
    memset(&list, 16, sizeof(list));
    list.n = 255;
    assert_in_range(trib_net_list_get(&list, ip, TRIB_NET_OFFERED), 14, 15);
}

static void refused(const char *net, const char *words)
{
    struct trib_net_ways ways;
    struct trib_error err = {0};

    assert_status(trib_net_ways_init(&ways, "tcp", net, NULL, &err), TRIB_ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" says \"%s\", not \"%s\"", net, err.text, words);
}

TEST(test_choice_of_networks)
{
    struct trib_net_ways ways;
    struct trib_net_list list;
    uint8_t ip[TRIB_NET_OFFERED][16];

    refused("10.0.0.0/33", "neither a network");
    refused("10.0.0", "neither a network");
    refused("fd77::/129", "neither a network");
    refused("eth0,,lo", "neither a network");
    refused("a_name_that_is_too_long", "neither a network");
    refused("lo,lo,lo,lo,lo,lo,lo,lo,lo", "more than 8");
    refused("203.0.113.0/24,nolink7", "lo 127.0.0.1/8");
    assert_ok(trib_net_ways_init(&ways, "tcp", "203.0.113.0/24,lo", NULL, NULL));
    trib_net_offer(&ways, "tcp", NULL, &list);
    assert_true(trib_net_list_get(&list, ip, TRIB_NET_OFFERED) >= 1);
    assert_memory_equal(ip[0], trib_net_loopback, 16);
    assert_ok(trib_net_ways_init(&ways, "tcp", "127.0.0.0/8", NULL, NULL));
    trib_net_offer(&ways, "tcp", NULL, &list);
    assert_int_equal(trib_net_list_get(&list, ip, TRIB_NET_OFFERED), 1);
}

static int refusal; /* errno of epoll_pwait2; 0: unchanged */

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
TEST(test_sleeps_without_pwait2)
{
    static const int refusals[] = {0, ENOSYS, EPERM};
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);

    assert_ok(trib_transport_open("tcp", &opts, &pair.t[0]));
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

/* Hosts that took the connections and then fell silent cost one deadline together: one
 * after the other they would take 8 s. */
TEST(test_leaving_silent_peers)
{
    enum { SILENT = 80, LEAST = 100, MOST = 2000 };
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    const int listener = listen_at(1, 0, SILENT);
    struct trib_address address;
    struct trib_ip_address a;
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    bool some[1 + SILENT] = {false};

    opts.size = 1 + SILENT;
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_ok(trib_transport_open("tcp", &opts, &pair.t[0]));
    const struct trib_transport_ops *ops = pair.t[0]->ops;
    assert_ok(ops->address(pair.t[0], &address));
    memcpy(&a, address.bytes, sizeof(a));
    a.port = ntohs(at.sin_port);
    memcpy(address.bytes, &a, sizeof(a));
    for (int i = 1; i <= SILENT; i++)
        assert_ok(ops->connect(pair.t[0], i, &address));
    some[1] = some[2] = true;
    ops->leave(pair.t[0], some); /* these alone */
    for (int i = 1; i <= SILENT; i++)
        assert_status(ops->write(pair.t[0], i, &(struct trib_write){.quiet = true}),
                      some[i] ? TRIB_ERR_PEER_LOST : TRIB_OK);
    const uint64_t began = trib_now_ns();
    ops->leave(pair.t[0], NULL);
    const uint64_t ms = (trib_now_ns() - began) / 1000000;
    printf("# %d silent peers are left in %d ms\n", SILENT, (int)ms);
    assert_true(ms >= LEAST && ms < MOST);
    ops->leave(pair.t[0], NULL); /* no connection is left: at once */
    ops->close(pair.t[0]);
    assert_true((trib_now_ns() - began) / 1000000 < MOST);
    close(listener);
}

/* A peer that is given up is notified, in whatever state its connections are, and also
 * where writes wait for room. */
TEST(test_given_up)
{
    struct pair pair;
    struct trib_event e;

    for (int writes = 0; writes < 2; writes++) {
        pair_open(&pair, "tcp", "tcp");
        if (writes)
            assert_ok(pair_write(&pair, 8, 1));
        for (int i = 0; i < 2 && writes; i++)
            assert_true(pair_await(&pair, !i, &e) > 0);
        trib_tcp_mark_lost(tcp_of(pair.t[0]), 1, "process 7 is stopped");
        assert_int_equal(pair_await(&pair, 0, &e), 1);
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        assert_false(e.given_up);
        assert_int_equal(pair_await(&pair, 1, &e), 1);
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        assert_true(e.given_up);
        assert_false(e.left);
        assert_non_null(strstr(e.why, "has declared this rank lost"));
        pair_close(&pair);
    }
}

/* This process stands still for `ms`, and a child of it comes to an end. */
static void stand_still(unsigned ms)
{
    const pid_t test = getpid(), child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        kill(test, SIGSTOP);
        usleep(ms * 1000);
        kill(test, SIGCONT);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* The peer's sockets close without a word, as where a frame is half sent. What that
 * means depends on whether its process lives, and on whether this one was away. */
TEST(test_silently_given_up)
{
    enum { AWAY = 1, LIVES = 2 };
    struct pair pair;
    struct trib_event e;
    struct trib_process me, who;

    trib_process_self(&me);
    for (int what = 0; what < 4; what++) {
        pair_open(&pair, "tcp", "tcp"); /* its limit is 300 ms */
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            pause();
            _exit(0);
        }
        trib_process_find(child, &who);
        trib_peer_liveness_begin(
            &tcp_of(pair.t[1])->peers[0].base.liveness,
            &(struct trib_peer_liveness_opts){.me = &me, .who = &who, .proc = true});
        if (what & AWAY)
            stand_still(400);
        if (!(what & LIVES))
            assert_int_equal(kill(child, SIGKILL), 0);
        trib_tcp_close_peer(tcp_of(pair.t[0]), 1);
        assert_int_equal(pair_await(&pair, 1, &e), 1);
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        /* A busy machine may have kept this process away, too. */
        const bool away =
            trib_heartbeat_away(tcp_of(pair.t[1])->local.heartbeat, true) != 0;
        assert_true(away || !(what & AWAY));
        if (away == ((what & AWAY) != 0))
            assert_int_equal(e.given_up, what == (AWAY | LIVES));
        (void)kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        pair_close(&pair);
    }
}

/* A rank waits for no acknowledgement by a peer that has closed the connection. */
TEST(test_leaving_after_the_peer)
{
    struct pair pair;
    struct trib_event e;

    for (int last = 0; last < 2; last++) {
        pair_open(&pair, "tcp", "tcp");
        assert_ok(pair_write(&pair, 8, 1));
        for (int i = 0; i < 2; i++)
            assert_true(pair_await(&pair, !i, &e) > 0);
        pair.t[!last]->ops->disconnect(pair.t[!last], last);
        const uint64_t began = trib_now_ns();
        pair.t[last]->ops->disconnect(pair.t[last], !last);
        assert_in_range((trib_now_ns() - began) / 1000000, 0, 1000);
        pair_close(&pair);
    }
}
