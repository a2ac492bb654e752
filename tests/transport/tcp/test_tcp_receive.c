/* SPDX-License-Identifier: BSD-3-Clause */
/* How many system calls a write takes: libc's functions are replaced by some that
 * count. */
#include "tests/transport/pair.h"

#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BIG ((size_t)65536)
#define BIG_WRITES 32
#define DATA 1024 /* bytes; a smaller read is one of the handshake */

#define FDS 1024

#define CROWD 5 /* more peers than are read without asking which has something */

static struct {
    int receives[FDS]; /* of data, also in vain, of each socket */
    int lists; /* writes of several pieces */
    int fewer_acks;
    size_t buffered; /* bytes that were not received into their place */
} seen;

static ssize_t receive_list(int fd, struct msghdr *m, int flags)
{
    return syscall(SYS_recvmsg, fd, m, flags);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    struct iovec iov = {buf, len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t got = receive_list(fd, &m, flags);

    if (len >= DATA && fd < FDS) {
        seen.receives[fd]++;
        seen.buffered += got > 0 ? (size_t)got : 0;
    }
    return got;
}

/* The first piece is the place of a payload. Errors are heartbeats', not data's. */
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    size_t placed = m->msg_iov[0].iov_len;
    ssize_t got = receive_list(fd, m, flags);

    if (flags & MSG_ERRQUEUE || fd >= FDS)
        return got;
    seen.receives[fd]++;
    seen.buffered += got > 0 && (size_t)got > placed ? (size_t)got - placed : 0;
    return got;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    seen.lists++;
    return syscall(SYS_sendmsg, fd, m, flags);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (level == IPPROTO_TCP && name == TCP_QUICKACK)
        seen.fewer_acks++;
    return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

static void forget_receives(void)
{
    memset(seen.receives, 0, sizeof(seen.receives));
}

/* The most of one socket: the same poll may empty another one and close it. */
static int receives(void)
{
    int most = 0;

    for (int fd = 0; fd < FDS; fd++)
        most = seen.receives[fd] > most ? seen.receives[fd] : most;
    return most;
}

/* The receives of the poll of side 1 that has an event, and room for more. */
static int receives_of_arrival(struct pair *pair, struct trib_event *event)
{
    struct trib_event events[4];
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());

    while (!trib_deadline_passed(deadline)) {
        forget_receives();
        int n = pair->t[1]->ops->poll(pair->t[1], events, 4);
        *event = events[0];
        if (n)
            return receives();
    }
    fail_msg("nothing has arrived");
    return 0;
}

TEST(test_small_write_is_one_call_each)
{
    struct pair pair;
    struct trib_event event;

    pair_open(&pair, "tcp", "tcp");
    for (uint32_t i = 0; i < 20; i++) {
        seen.lists = 0;
        memset(pair.mem[0], (int)i + 1, 64);
        assert_ok(pair_write(&pair, 64, i));
        assert_int_equal(seen.lists, 0);
        assert_int_equal(receives_of_arrival(&pair, &event), 1);
        assert_int_equal(event.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(event.imm, i);
        assert_int_equal(pair.mem[1][63], i + 1);
    }
    pair_close(&pair);
}

/* Regions larger than those of the pair: side 0 writes from [0] to [1]. */
static struct trib_write big_write(struct pair *pair, void *mem[2])
{
    struct trib_write w = {.len = BIG};
    struct trib_region *region[2];
    struct trib_remote *remote;
    struct trib_blob blob;

    for (int i = 0; i < 2; i++)
        assert_ok(pair->t[i]->ops->alloc(pair->t[i], BIG, &mem[i], &region[i]));
    assert_ok(pair->t[1]->ops->export_region(pair->t[1], region[1], &blob));
    assert_ok(pair->t[0]->ops->import_region(pair->t[0], 1, &blob, &remote));
    w.local = region[0];
    w.remote = remote;
    return w;
}

/* Between two large payloads in a row only heads go through the buffer. */
TEST(test_large_payloads_go_to_their_place)
{
    struct pair pair;
    struct trib_event event;
    void *mem[2];

    pair_open(&pair, "tcp", "tcp");
    struct trib_write w = big_write(&pair, mem);
    uint64_t deadline = trib_deadline_ms(20000 * tribtest_slowness());
    int posted = 0, arrived = 0;
    memset(mem[0], 0x5a, BIG);
    seen.buffered = 0;
    while (arrived < BIG_WRITES && !trib_deadline_passed(deadline)) {
        if (posted < BIG_WRITES &&
            pair.t[0]->ops->write(pair.t[0], 1, &w) == TRIB_OK)
            posted++;
        (void)pair.t[0]->ops->poll(pair.t[0], &event, 1);
        arrived += pair.t[1]->ops->poll(pair.t[1], &event, 1);
    }
    assert_int_equal(arrived, BIG_WRITES);
    assert_memory_equal(mem[0], mem[1], BIG);
    /* The first one may come through the buffer whole. */
    assert_true(seen.buffered <= BIG + BIG_WRITES * (size_t)8192);
    pair_close(&pair);
}

/* A write without an event goes with one that has an event, or with the next poll. */
TEST(test_quiet_writes_wait_for_company)
{
    struct pair pair;
    struct trib_event event;

    pair_open(&pair, "tcp", "tcp");
    struct trib_write w = {.local = pair.region[0],
                           .remote = pair.remote[0],
                           .len = PAIR_LEN,
                           .quiet = true};
    for (uint32_t i = 0; i < 20; i++) {
        seen.lists = 0;
        memset(pair.mem[0], (int)i + 1, PAIR_LEN);
        assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
        assert_int_equal(seen.lists, 0);
        assert_ok(pair_write(&pair, 8, i));
        assert_int_equal(seen.lists, 1);
        assert_int_equal(pair_poll(&pair, 1, 10000 * tribtest_slowness(), &event), 1);
        assert_int_equal(event.imm, i);
        assert_int_equal(pair.mem[1][PAIR_LEN - 1], i + 1);
    }
    memset(pair.mem[0], 0xee, PAIR_LEN);
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    while (pair.t[0]->ops->poll(pair.t[0], &event, 1))
        continue;
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
    while (pair.mem[1][PAIR_LEN - 1] != 0xee && !trib_deadline_passed(deadline))
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &event, 1), 0);
    assert_int_equal(pair.mem[1][PAIR_LEN - 1], 0xee);
    pair_close(&pair);
}

static void crowd_open(struct pair *common, struct trib_transport *t[CROWD])
{
    struct trib_address address;

    for (int i = 0; i < CROWD; i++) {
        struct trib_transport_opts opts = pair_opts(common, i);
        opts.size = CROWD;
        assert_ok(trib_transport_open("tcp", &opts, &t[i]));
    }
    assert_ok(t[0]->ops->address(t[0], &address));
    for (int i = 1; i < CROWD; i++)
        assert_ok(t[i]->ops->connect(t[i], 0, &address));
}

/* Of many peers only those with data are read; data that came with the requested event
 * is not forgotten. */
TEST(test_many_peers)
{
    const uint32_t each = 10;
    uint64_t deadline = trib_deadline_ms(20000 * tribtest_slowness());
    struct trib_transport *t[CROWD];
    struct pair common = {0};
    struct trib_event event;
    uint32_t arrived[CROWD] = {0}, n = 0;

    crowd_open(&common, t);
    for (uint32_t k = 0; k < each; k++) {
        for (int i = 1; i < CROWD; i++) {
            struct trib_write w = {.imm = k};
            assert_ok(t[i]->ops->write(t[i], 0, &w));
        }
    }
    while (n < each * (CROWD - 1) && !trib_deadline_passed(deadline)) {
        if (!t[0]->ops->poll(t[0], &event, 1))
            continue;
        assert_int_equal(event.imm, arrived[event.peer]++);
        n++;
    }
    assert_int_equal(n, each * (CROWD - 1));
    for (int i = 0; i < 64; i++) /* no data is pending: no peer is read */
        assert_int_equal(t[0]->ops->poll(t[0], &event, 1), 0);
    forget_receives();
    for (int i = 0; i < 64; i++)
        assert_int_equal(t[0]->ops->poll(t[0], &event, 1), 0);
    assert_int_equal(receives(), 0);
    for (int i = CROWD - 1; i >= 0; i--)
        t[i]->ops->close(t[i]);
}

static void poll_for_nothing(struct trib_transport *t)
{
    struct trib_event event;

    for (int i = 0; i < 40; i++)
        assert_int_equal(t->ops->poll(t, &event, 1), 0);
}

/* Some peers have moved to their other connection, which ends this stream; another peer
 * has frames in the buffer. It is not skipped, whatever its position. */
static void some_move(int busy, int second)
{
    const uint32_t all = 20 + 3 + (CROWD - 3);
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
    struct trib_transport *t[CROWD];
    struct pair common = {0};
    struct trib_address address;
    struct trib_event event;
    uint32_t arrived = 0;

    crowd_open(&common, t);
    for (int i = 1; i < CROWD; i++) {
        for (uint32_t k = 0; k < (i == busy ? 20 : i == second ? 3 : 1); k++) {
            struct trib_write w = {.imm = k};
            assert_ok(t[i]->ops->write(t[i], 0, &w));
        }
        assert_ok(t[i]->ops->address(t[i], &address));
        assert_ok(t[0]->ops->connect(t[0], i, &address));
        usleep(6000); /* a tick */
        poll_for_nothing(t[i]);
    }
    while (arrived < all && !trib_deadline_passed(deadline))
        arrived += (uint32_t)t[0]->ops->poll(t[0], &event, 1);
    assert_int_equal(arrived, all);
    for (int i = CROWD - 1; i >= 0; i--)
        t[i]->ops->close(t[i]);
}

TEST(test_some_move_while_one_is_read)
{
    for (int busy = 1; busy < CROWD; busy++)
        for (int second = 1; second < CROWD; second++)
            if (second != busy)
                some_move(busy, second);
}

static void poll_side_1(struct pair *pair)
{
    struct trib_event event;

    (void)pair->t[1]->ops->poll(pair->t[1], &event, 1);
}

/* A tick is due after 5 ms, and the clock is read every 32 polls. */
static void let_it_tick(struct pair *pair)
{
    usleep(10000);
    for (int i = 0; i < 64; i++)
        poll_side_1(pair);
}

/* Acknowledgements come where traffic begins, not for each write. */
TEST(test_fewer_acknowledgements)
{
    struct pair pair;

    pair_open(&pair, "tcp", "tcp");
    seen.fewer_acks = 0;
    for (int i = 1; i <= 3; i++) {
        uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
        assert_ok(pair_write(&pair, 64, 0));
        while (seen.fewer_acks < i && !trib_deadline_passed(deadline))
            poll_side_1(&pair);
        assert_int_equal(seen.fewer_acks, i);
        let_it_tick(&pair);
        assert_int_equal(seen.fewer_acks, i);
    }
    pair_close(&pair);
}
