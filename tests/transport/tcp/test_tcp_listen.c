/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word with which tcp takes a connection, or says why not.
 */
#include "tests/transport/tcp/tcp_by_hand.h"

#include <sys/resource.h>

TEST(test_refusals)
{
    struct pair pair;

    pair_open(&pair, "tcp", "tcp");
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    const struct tcp_hello good = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    struct {
        struct tcp_hello hello;
        enum tcp_refusal reason;
    } cases[] = {{good, TCP_OTHER_VERSION},
                 {good, TCP_OTHER_JOB},
                 {good, TCP_OTHER_RANK},
                 {good, TCP_OTHER_RANK},
                 {good, TCP_TWICE}};
    cases[0].hello.version = TCP_VERSION + 1;
    cases[1].hello.key++;
    cases[2].hello.rank = 1;
    cases[3].hello.size = 3;
    struct trib_event e;
    (void)pair_poll(&pair, 1, 50, &e); /* the connection of rank 0 itself is taken */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tcp_head head;
        int fd = dial(a.port);
        ssize_t n = answer(&pair, fd, &cases[i].hello, sizeof(cases[i].hello), &head);
        assert_int_equal(n, sizeof(head));
        assert_int_equal(head.magic, TCP_MAGIC);
        assert_int_equal(head.kind, TCP_REFUSE);
        assert_int_equal(head.imm, cases[i].reason);
        assert_int_equal(head.off, TCP_VERSION);
        close(fd);
    }
    /* None of it was of any harm. */
    assert_status(pair_write(&pair, 8, 3), TRIB_OK);
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    assert_int_equal(e.imm, 3);
    pair_close(&pair);
}

TEST(test_unauthenticated)
{
    struct pair pair;
    struct tcp_head head;

    pair_open(&pair, "tcp", "tcp");
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    int fd = dial(a.port);
    assert_int_equal(answer(&pair, fd, "GET / HTTP/1.1\r\n\r\n", 18, &head), 0);
    assert_non_null(strstr(pair.logged, "rejected an unauthenticated peer"));
    close(fd);
    pair_close(&pair);
}

/* Silent connections fill the table and stay: a rank is accepted all the same. */
TEST(test_silent_unauthenticated)
{
    enum { CROWD = 2 + TRIB_NET_UNAUTHENTICATED };
    struct trib_address address;
    struct pair pair = {0};
    struct trib_event e;
    int fd[CROWD];
    char byte;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_status(trib_transport_open("tcp", &opts, &pair.t[i]), TRIB_OK);
    }
    struct tcp *tcp = tcp_of(pair.t[1]);
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    for (int i = 0; i < CROWD; i++)
        fd[i] = dial(pair_ip_address(&pair, 1).port);
    for (int i = 0; i < 4000 && tcp->acceptor.n < CROWD; i++)
        assert_int_equal(pair_poll(&pair, 1, 5, &e), 0);
    assert_int_equal(tcp->acceptor.n, CROWD);
    for (int i = 0; i < CROWD; i++) /* they have all the time, the last but one least */
        tcp->acceptor.pending[i]->until =
            trib_deadline_ms(3600000 + 1000 * (i != CROWD - 2));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_OK);
    struct trib_write w = {.imm = 5};
    assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_OK);
    assert_int_equal(pair_poll(&pair, 1, (int)(20000 * tribtest_slowness()), &e), 1);
    assert_int_equal(e.imm, 5);
    assert_int_equal(tcp->acceptor.n, CROWD - 1);
    for (int i = 0; i < CROWD; i++) {
        if (i == CROWD - 2)
            assert_int_equal(recv(fd[i], &byte, 1, 0), 0);
        else
            assert_int_equal(recv(fd[i], &byte, 1, MSG_DONTWAIT), -1);
        close(fd[i]);
    }
    assert_int_equal(pair.lines, 1);
    assert_non_null(strstr(pair.logged, "rejected an unauthenticated peer"));
    pair_close(&pair);
}

/* Side 0 reports why side 1 refused its connection. */
static void is_lost(void (*change)(struct trib_ip_address *), int size,
                    const char *sentence)
{
    struct pair pair = {0};
    struct trib_address address;
    struct trib_ip_address a;
    struct trib_event e = {0}, none;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        opts.size = i ? size : 2;
        assert_status(trib_transport_open("tcp", &opts, &pair.t[i]), TRIB_OK);
    }
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    memcpy(&a, address.bytes, sizeof(a));
    if (change)
        change(&a);
    memcpy(address.bytes, &a, sizeof(a));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_OK);
    for (int i = 0; i < 5000 && !pair_poll(&pair, 0, 0, &e); i++) {
        (void)pair.t[1]->ops->poll(pair.t[1], &none, 1);
        usleep(500);
    }
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    if (!strstr(e.why, sentence))
        fail_msg("the loss is \"%s\", not \"%s\"", e.why, sentence);
    pair_close(&pair);
}

static void other_key(struct trib_ip_address *a)
{
    a->key++;
}

TEST(test_refusal_reason)
{
    is_lost(other_key, 2, "refused rank 0: this rank's key belongs to another job");
    is_lost(NULL, 3, "refused rank 0: it knows no such rank");
}

/* A connection to side 1, made by hand, over which rank 0 has begun to write. */
static int begin_write(struct pair *pair, const struct tcp_head *head,
                       const void *bytes, size_t len)
{
    struct trib_ip_address a = pair_ip_address(pair, 1);
    const struct tcp_hello hello = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    struct tcp_head word;
    int fd = dial(a.port);

    assert_int_equal(answer(pair, fd, &hello, sizeof(hello), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    assert_int_equal(send(fd, head, sizeof(*head), MSG_NOSIGNAL), sizeof(*head));
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
    return fd;
}

static void poll_side_1(struct pair *pair, const uint8_t *until)
{
    struct trib_event e;

    for (int i = 0; i < 20000 && !*until; i++) {
        assert_int_equal(pair->t[1]->ops->poll(pair->t[1], &e, 1), 0);
        usleep(500);
    }
    assert_true(*until);
}

/* A listener without a free descriptor logs this once, and accepts the pending
 * connections when it has one. */
TEST(test_no_descriptor)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 1);
    struct rlimit all, none;
    struct trib_event e;
    struct tcp_head word;

    assert_status(trib_transport_open("tcp", &opts, &pair.t[1]), TRIB_OK);
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    const struct tcp_hello hello = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    int fd = dial(a.port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    pair.lines = 0;
    for (int i = 0; i < 200; i++)
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &e, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_int_equal(pair.lines, 1);
    if (!strstr(pair.logged, "raise ulimit -n"))
        fail_msg("\"%s\" has no cure", pair.logged);
    /* The connection stays in the queue, but does not end a sleep: the thread does not
     * spin. */
    struct pollfd sleep = {.fd = pair.t[1]->ops->event_fd(pair.t[1]),
                           .events = POLLIN};
    assert_int_equal(poll(&sleep, 1, 0), 0);
    assert_int_equal(answer(&pair, fd, &hello, sizeof(hello), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Half of a payload is here when its target is taken away: the rest goes nowhere. */
TEST(test_memory_taken_back)
{
    struct pair pair = {0};
    uint8_t mem[512] = {0}, half[256];
    struct trib_event e;

    struct tcp_head head = open_target(&pair, mem, sizeof(mem));
    memset(half, 7, sizeof(half));
    int fd = begin_write(&pair, &head, half, sizeof(half));
    poll_side_1(&pair, &mem[255]);
    pair.t[1]->ops->dereg(pair.t[1], pair.region[1]);
    memset(mem, 0, sizeof(mem));
    (void)send(fd, half, sizeof(half), MSG_NOSIGNAL);
    assert_int_equal(pair_poll(&pair, 1, 100, &e), 0);
    for (size_t i = 0; i < sizeof(mem); i++)
        assert_int_equal(mem[i], 0);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Two writes, byte by byte: each has arrived when its last byte has, and not before. */
TEST(test_split_at_every_byte)
{
    struct pair pair = {0};
    uint8_t mem[40] = {0}, stream[2 * (sizeof(struct tcp_head) + sizeof(mem))];
    const size_t frame = sizeof(stream) / 2;
    struct trib_event e;

    struct tcp_head head = open_target(&pair, mem, sizeof(mem));
    for (int i = 0; i < 2; i++) {
        head.imm = 5 + (uint32_t)i;
        memcpy(stream + (size_t)i * frame, &head, sizeof(head));
        memset(stream + (size_t)i * frame + sizeof(head), 7 + i, sizeof(mem));
    }
    int fd = begin_write(&pair, (struct tcp_head *)stream, "", 0);
    for (size_t at = sizeof(head); at < sizeof(stream); at++) {
        bool last = (at + 1) % frame == 0;
        assert_int_equal(send(fd, stream + at, 1, MSG_NOSIGNAL), 1);
        int n = pair_poll(&pair, 1, last ? 10000 : 0, &e);
        assert_int_equal(n, last);
        if (!last)
            continue;
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.imm, 5 + at / frame);
        assert_int_equal(e.len, sizeof(mem));
        for (size_t i = 0; i < sizeof(mem); i++)
            assert_int_equal(mem[i], 7 + at / frame);
    }
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* The range of a frame must lie in its region, whatever its numbers add up to. */
TEST(test_frames_outside)
{
    static const struct {
        uint64_t off, len;
    } claims[] = {{0, 65}, {64, 1}, {1, 64}, {UINT64_MAX, 2}, {8, UINT64_MAX - 4}};
    uint8_t mem[80], bytes[80];

    memset(bytes, 1, sizeof(bytes));
    for (size_t c = 0; c < sizeof(claims) / sizeof(claims[0]); c++) {
        struct pair pair = {0};
        struct tcp_head word;
        memset(mem, 9, sizeof(mem));
        struct tcp_head head = open_target(&pair, mem, 64);
        head.off = claims[c].off;
        head.len = claims[c].len;
        int fd = begin_write(&pair, &head, bytes, sizeof(bytes));
        assert_true(answer(&pair, fd, "", 0, &word) <= 0);
        for (size_t i = 0; i < sizeof(mem); i++)
            assert_int_equal(mem[i], 9);
        close(fd);
        pair.t[1]->ops->close(pair.t[1]);
    }
}

/*
 * Does side 0 sleep once it has left its peer, though a forked child, as a loader of
 * data is, still holds its sockets?
 */
TEST(test_child_holds_sockets)
{
    struct pair pair;
    struct trib_event e;
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
    int quiet = 0;

    pair_open(&pair, "tcp", "tcp");
    const struct trib_transport_ops *ops = pair.t[0]->ops;
    assert_status(pair_write(&pair, 8, 1), TRIB_OK);
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    pid_t child = fork();
    while (child == 0)
        pause();
    ops->disconnect(pair.t[0], 1);
    pair.t[1]->ops->close(pair.t[1]);
    struct pollfd sleep = {.fd = ops->event_fd(pair.t[0]), .events = POLLIN};
    while (quiet < 5 && !trib_deadline_passed(deadline)) {
        ops->arm(pair.t[0]);
        (void)ops->poll(pair.t[0], &e, 1);
        quiet = poll(&sleep, 1, 20) == 0 ? quiet + 1 : 0;
        ops->wait(pair.t[0], 0);
    }
    ops->close(pair.t[0]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(quiet, 5);
}

/* Ports of jobs that have just ended are free at once: a range of ten lasts for a
 * hundred. */
TEST(test_ports_again)
{
    char text[64];
    uint16_t first = 0;

    for (int job = 0; job < 100; job++) {
        struct pair pair;
        struct trib_event e;
        if (job == 0) {
            struct trib_net_port at;
            assert_status(trib_net_bind("test", SOCK_STREAM, 0, 1, &at, NULL), TRIB_OK);
            first = at.port > 60000 ? at.port - 100 : at.port;
            close(at.fd);
        }
        snprintf(text, sizeof(text), "tcp:port=%u,ports=10", first);
        pair_open(&pair, text, text);
        assert_status(pair_write(&pair, 8, 3), TRIB_OK);
        assert_int_equal(pair_await(&pair, 1, &e), 1);
        pair_close(&pair);
    }
}

/* true: a connection to an address of this host comes about within half a second. */
static bool comes_in(const uint8_t ip[16], uint16_t port)
{
    int fd = connect_to(ip, port, trib_deadline_ms(500));

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* A network that net= does not name does not reach the port; loopback does. */
TEST(test_other_networks)
{
    static const char *const texts[] = {"tcp", "tcp:net=127.0.0.0/8"};
    uint8_t ip[1][16];

    if (trib_net_own(ip, 1) == 0)
        tribtest_skip("this host has no address but loopback");
    for (int fenced = 0; fenced < 2; fenced++) {
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, 1);
        assert_status(trib_transport_open(texts[fenced], &opts, &pair.t[1]), TRIB_OK);
        uint16_t port = pair_ip_address(&pair, 1).port;
        assert_true(comes_in(trib_net_loopback, port));
        assert_int_equal(comes_in(ip[0], port), !fenced);
        pair.t[1]->ops->close(pair.t[1]);
    }
}
