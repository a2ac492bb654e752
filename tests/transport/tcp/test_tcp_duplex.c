/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection for both directions of a pair, whoever connects first, or both at
 * once. */
#include "tests/transport/pair.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>

#include "transport/tcp/tcp.h"

#define LEN ((size_t)65536)
#define WRITES 200 /* more than a socket buffers while its peer does not read */

static bool deaf; /* accept4 returns no connection */
static bool rude; /* each accepted connection is closed */

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
    int pending = deaf ? -1 : (int)syscall(SYS_accept4, fd, from, len, flags);

    if (pending < 0 || !rude) {
        errno = deaf ? EAGAIN : errno;
        return pending;
    }
    close(pending);
    errno = EAGAIN;
    return -1;
}

struct stream {
    struct trib_write write;
    uint8_t *from, *to;
    int posted, done, arrived;
    bool lost, left;
};

/* sides[i] is what i writes to the other. */
struct bed {
    struct pair pair;
    struct stream sides[2];
};

static void connect_side(struct bed *b, int i)
{
    struct trib_address address;

    assert_status(b->pair.t[!i]->ops->address(b->pair.t[!i], &address), TRIB_OK);
    assert_status(b->pair.t[i]->ops->connect(b->pair.t[i], !i, &address), TRIB_OK);
}

static void offer_memory(struct bed *b)
{
    struct trib_region *from, *to;
    struct trib_remote *remote;
    struct trib_blob blob;
    void *mem[2];

    for (int i = 0; i < 2; i++) {
        struct trib_transport *t = b->pair.t[i], *other = b->pair.t[!i];
        assert_status(t->ops->alloc(t, LEN, &mem[0], &from), TRIB_OK);
        assert_status(other->ops->alloc(other, LEN, &mem[1], &to), TRIB_OK);
        assert_status(other->ops->export_region(other, to, &blob), TRIB_OK);
        assert_status(t->ops->import_region(t, !i, &blob, &remote), TRIB_OK);
        b->sides[i] = (struct stream){.write = {.local = from,
                                                .remote = remote,
                                                .len = LEN,
                                                .signal = true},
                                      .from = mem[0],
                                      .to = mem[1]};
    }
}

/* `first` connects; then the other one, which has seen that or not. */
static void bed_open(struct bed *b, int first, bool at_once)
{
    memset(b, 0, sizeof(*b));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&b->pair, i);
        assert_status(trib_transport_open("tcp", &opts, &b->pair.t[i]), TRIB_OK);
    }
    deaf = at_once;
    connect_side(b, first);
    connect_side(b, !first);
    offer_memory(b);
}

/* The source must lie still till the write is done, so all carry the same bytes; the
 * order is seen by imm. */
static void post(struct bed *b, int i)
{
    struct stream *s = &b->sides[i];

    s->write.imm = (uint32_t)s->posted;
    s->write.token = (uint64_t)s->posted;
    if (s->posted < WRITES &&
        b->pair.t[i]->ops->write(b->pair.t[i], !i, &s->write) == TRIB_OK)
        s->posted++;
}

static void poll_side(struct bed *b, int i)
{
    struct trib_event e;

    if (!b->pair.t[i]->ops->poll(b->pair.t[i], &e, 1))
        return;
    if (e.kind == TRIB_EVENT_WRITE_DONE)
        assert_int_equal(e.token, b->sides[i].done++);
    if (e.kind == TRIB_EVENT_ARRIVED)
        assert_int_equal(e.imm, b->sides[!i].arrived++);
    if (e.kind == TRIB_EVENT_PEER_LOST) {
        b->sides[i].lost = true;
        b->sides[i].left = e.left;
    }
}

static bool through(const struct stream *s)
{
    return s->done == WRITES && s->arrived == WRITES;
}

/* All writes of both sides, in order, each once. */
static void exchange(struct bed *b)
{
    uint64_t deadline = trib_deadline_ms(20000 * tribtest_slowness());

    for (int i = 0; i < 2; i++)
        memset(b->sides[i].from, 0x21 + i, LEN);
    while (!(through(&b->sides[0]) && through(&b->sides[1])) &&
           !trib_deadline_passed(deadline)) {
        for (int i = 0; i < 2; i++) {
            post(b, i);
            poll_side(b, i);
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(b->sides[i].arrived, WRITES);
        assert_int_equal(b->sides[i].done, WRITES);
        assert_memory_equal(b->sides[i].to, b->sides[i].from, LEN);
    }
}

/* Do both sides read where they write, and is nothing else open between them? */
static bool one_connection(struct bed *b)
{
    const struct tcp_peer *lower = &tcp_of(b->pair.t[0])->peers[1];
    const struct tcp_peer *higher = &tcp_of(b->pair.t[1])->peers[0];

    return lower->own >= 0 && lower->in.fd == lower->own && lower->fd == lower->own &&
           higher->own < 0 && higher->in.fd >= 0 && higher->fd == higher->in.fd;
}

static void poll_until_moved(struct bed *b)
{
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());

    while (!one_connection(b) && !trib_deadline_passed(deadline)) {
        poll_side(b, 0);
        poll_side(b, 1);
    }
    assert_true(one_connection(b));
}

TEST(test_one_after_the_other)
{
    struct bed b;

    for (int first = 0; first < 2; first++) {
        bed_open(&b, first, false);
        exchange(&b);
        poll_until_moved(&b);
        pair_close(&b.pair);
    }
}

/* Neither side has seen the other's connection. Earlier writes arrive first, also if
 * more is pending than sockets buffer. */
TEST(test_both_at_once)
{
    struct bed b;

    for (int round = 0; round < 4; round++) {
        bed_open(&b, round % 2, true);
        for (int n = 0; n < (round < 2 ? 3 : WRITES); n++) {
            post(&b, 0);
            post(&b, 1);
        }
        deaf = false;
        exchange(&b);
        poll_until_moved(&b);
        pair_close(&b.pair);
    }
}

/* Both have connected at the same time, and the higher rank, which had written once,
 * has moved; the lower one has not polled. */
static void bed_open_moved(struct bed *b)
{
    const struct tcp_peer *higher;
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());

    bed_open(b, 0, true);
    higher = &tcp_of(b->pair.t[1])->peers[0];
    post(b, 1);
    deaf = false;
    while (!higher->moving && !trib_deadline_passed(deadline))
        poll_side(b, 1);
    assert_true(higher->moving);
}

/* The lower rank sees that the higher one has moved before it sees what that wrote
 * first. */
TEST(test_moved_too_early)
{
    struct bed b;

    bed_open_moved(&b);
    const struct tcp_peer *lower = &tcp_of(b.pair.t[0])->peers[1];
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
    deaf = true;
    post(&b, 1);
    while (!lower->both_ways && !trib_deadline_passed(deadline))
        poll_side(&b, 0);
    assert_true(lower->both_ways);
    for (int n = 0; n < 1000; n++)
        poll_side(&b, 0);
    assert_int_equal(b.sides[1].arrived, 0);
    deaf = false;
    exchange(&b);
    poll_until_moved(&b);
    pair_close(&b.pair);
}

/* The connection that a rank has moved away from ends before all of it was read. */
TEST(test_end_of_what_was_left)
{
    struct bed b;
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());

    bed_open_moved(&b);
    rude = true;
    while (!b.sides[1].lost && !trib_deadline_passed(deadline)) {
        poll_side(&b, 0);
        poll_side(&b, 1);
    }
    rude = false;
    assert_true(b.sides[1].lost);
    assert_int_equal(b.sides[1].arrived, 0);
    pair_close(&b.pair);
}

/* A side disconnects after both have moved to one connection: its writes arrive first,
 * and it does not count as dead. */
TEST(test_leaves)
{
    struct bed b;

    for (int round = 0; round < 6; round++) {
        int leaver = round % 2, stays = !leaver;
        uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
        bed_open(&b, 0, round < 4);
        deaf = round < 2; /* leaves before anybody has moved */
        if (!deaf)
            poll_until_moved(&b);
        b.sides[leaver].write.len = 4096; /* what sockets buffer while no peer reads */
        for (int n = 0; n < 3; n++)
            post(&b, leaver);
        deaf = false;
        b.pair.t[leaver]->ops->close(b.pair.t[leaver]);
        while (!b.sides[stays].lost && !trib_deadline_passed(deadline))
            poll_side(&b, stays);
        assert_true(b.sides[stays].lost);
        assert_true(b.sides[stays].left);
        assert_int_equal(b.sides[leaver].arrived, 3);
        b.pair.t[stays]->ops->close(b.pair.t[stays]);
    }
}

/* A rank that knows the key and sends words where they have no meaning. */
TEST(test_words_out_of_place)
{
    static const struct {
        int self;
        enum tcp_kind kind;
    } cases[] = {{1, TCP_LAST}, {0, TCP_LAST}, {1, TCP_BOTH_WAYS}, {0, TCP_ACCEPT}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, cases[c].self);
        struct trib_transport *t;
        struct trib_event e;
        assert_status(trib_transport_open("tcp", &opts, &t), TRIB_OK);
        struct {
            struct tcp_hello hello;
            struct tcp_head head;
        } words = {{.magic = TCP_MAGIC,
                    .version = TCP_VERSION,
                    .rank = !cases[c].self,
                    .size = 2,
                    .key = tcp_of(t)->local.key},
                   {.magic = TCP_MAGIC, .kind = cases[c].kind}};
        struct pollfd end = {.fd = connect_to(trib_net_loopback,
                                                 tcp_of(t)->listener.port,
                                                 trib_deadline_ms(2000)),
                             .events = POLLIN};
        assert_true(end.fd >= 0);
        assert_int_equal(send(end.fd, &words, sizeof(words), 0), sizeof(words));
        struct tcp_head word[2];
        ssize_t got = 0, n = -1;
        uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
        while (n != 0 && !trib_deadline_passed(deadline)) {
            (void)t->ops->poll(t, &e, 1);
            if (poll(&end, 1, 0) > 0 && (n = recv(end.fd, (uint8_t *)word + got,
                                                  sizeof(word) - (size_t)got, 0)) > 0)
                got += n;
        }
        assert_int_equal(n, 0); /* accepted, and closed */
        assert_int_equal(got, sizeof(word[0]));
        assert_int_equal(word[0].kind, TCP_ACCEPT);
        assert_false(tcp_of(t)->peers[!cases[c].self].last);
        close(end.fd);
        t->ops->close(t);
    }
}
