/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages that their sender writes into the receiver's memory: without copies,
 * from and to memory of any kind, not after the receiver has given up, and nowhere but
 * into that memory.
 */
#include "tests/pipeline/p2p/talk.h"

#include "pipeline/run/failure.h"

enum { LONGEST = (3 << 20) + 3, FLOATS = LONGEST / 4 + 1 };

static const char *const transports[] = {"shm+nomap", "tcp"};

static uint8_t other[2][LONGEST]; /* not registered; tcp may borrow it */

static uint8_t *x_of(struct talk *k, int side)
{
    return (uint8_t *)k->t->side[side].x;
}

static void fill(uint8_t *x, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        x[i] = (uint8_t)(i * 31 + i / 4096 + seed);
}

static void finish(struct talk *k, int n)
{
    const uint64_t until = trib_deadline_ms(20000);

    for (int i = 0; i < n; i++)
        while (!is_done(k, i) && !trib_deadline_passed(until))
            drive(k, 1);
    for (int i = 0; i < n; i++) {
        assert_true(is_done(k, i));
        assert_status(k->runs[i].now.status, TRIB_OK);
    }
}

/* Neither end copies from 128 KiB on, and each part of 64 KiB has an entry. */
TEST(test_lengths)
{
    static const size_t bytes[] = {131071, 131072, 262145, 1 << 20, LONGEST};

    for (int i = 0; i < 20; i++) {
        const size_t n = bytes[i % 5];
        struct talk *k = open_talk_of(FLOATS, transports[i / 5 % 2], NULL);
        const struct trib_engine_stats *out = &k->t->side[0].engine.stats;
        const struct trib_engine_stats *in = &k->t->side[1].engine.stats;
        const int first = i / 10; /* 0: the send begins first */
        fill(x_of(k, 0), n, (unsigned)i);
        begin(k, 0, first, first == 0, 1 - first, 3, x_of(k, first), n);
        drive(k, 5);
        begin(k, 1, 1 - first, first, first, 3, x_of(k, 1 - first), n);
        finish(k, 2);
        assert_memory_equal(x_of(k, 0), x_of(k, 1), n);
        assert_int_equal(out->dense_bytes, n);
        assert_int_equal(in->received_dense_bytes, n);
        assert_int_equal(out->copied_bytes == 0 && in->copied_bytes < 1024,
                         n >= 131072);
        if (n >= 131072) {
            assert_int_equal(out->messages, 1 + (n + 65535) / 65536);
            assert_int_equal(in->messages, 1);
            assert_in_range(out->wire_bytes, n, n + 8192);
        }
        close_talk(k);
    }
}

/* The memory of either end may be of any kind; checksums need slots. */
TEST(test_memories)
{
    for (int i = 0; i < 16; i++) {
        const bool tcp = i & 1, checks = i & 8;
        struct talk *k =
            open_talk_of(FLOATS, transports[tcp], checks ? "check=sum" : NULL);
        uint8_t *from = i & 2 ? other[0] : x_of(k, 0);
        uint8_t *to = i & 4 ? other[1] : x_of(k, 1);
        const bool direct = !checks && (tcp || (from != other[0] && to != other[1]));
        fill(from, 200000, (unsigned)i);
        begin(k, 0, 0, true, 1, 3, from, 200000);
        begin(k, 1, 1, false, 0, 3, to, 200000);
        finish(k, 2);
        assert_memory_equal(from, to, 200000);
        assert_int_equal(k->t->side[0].engine.stats.copied_bytes == 0, direct);
        close_talk(k);
    }
}

/* Elements that arrive are progress of the receiver, too: it must not time out. */
TEST(test_progress)
{
    enum { MIB = 24 };

    for (int t = 0; t < 2; t++) {
        struct talk *k = open_talk_of(MIB << 18, transports[t], NULL);
        int moved = 0;
        begin(k, 1, 1, false, 0, 3, x_of(k, 1), MIB << 20);
        begin(k, 0, 0, true, 1, 3, x_of(k, 0), MIB << 20);
        while (!is_done(k, 0) || !is_done(k, 1)) {
            (void)trib_engine_progress(&k->t->side[0].engine);
            moved += trib_engine_progress(&k->t->side[1].engine);
        }
        assert_in_range(moved, MIB, 1000); /* at most 1 MiB at a time */
        close_talk(k);
    }
}

/* Several sends read the same memory, which the first to end does not take away. */
TEST(test_one_source)
{
    for (int t = 0; t < 2; t++) {
        struct talk *k = open_talk_of(FLOATS, transports[t], NULL);
        fill(other[0], 1 << 20, 1);
        for (int i = 0; i < 3; i++) {
            begin(k, 2 * i, 0, true, 1, i, other[0] + (i == 1 ? 4 : 0),
                  i ? 1 << 19 : 1 << 17);
            begin(k, 2 * i + 1, 1, false, 0, i, other[1] + (i << 20),
                  i ? 1 << 19 : 1 << 17);
        }
        finish(k, 6);
        assert_memory_equal(other[1], other[0], 1 << 17);
        assert_memory_equal(other[1] + (1 << 20), other[0] + 4, 1 << 19);
        assert_memory_equal(other[1] + (2 << 20), other[0], 1 << 19);
        close_talk(k);
    }
}

/* Whoever fails may use its memory at once: the receiver's is not written, and what the
 * sender stores there is not received as its message. */
TEST(test_gives_up)
{
    for (int i = 0; i < 4; i++) {
        const int side = i % 2;
        struct talk *k = open_talk_of(FLOATS, transports[i / 2], NULL);
        fill(other[0], LONGEST, 5);
        begin(k, 0, 0, true, 1, 3, other[0], LONGEST);
        begin(k, 1, 1, false, 0, 3, i / 2 ? other[1] : x_of(k, 1), LONGEST);
        if (i / 2 == 0)
            k->requests[0].buffer = x_of(k, 0);
        while (!is_done(k, 0) && k->requests[0].moved == 0)
            drive(k, 1);
        trib_engine_fail(&k->t->side[side].engine, TRIB_ERR_TIMEOUT, "gives up");
        assert_true(is_done(k, side));
        memset(k->requests[side].buffer, 9, LONGEST);
        for (int j = 0; j < 2000; j++) {
            struct trib_transport *t = k->t->side[side].engine.transport;
            struct trib_event event;
            (void)t->ops->poll(t, &event, 1); /* what arrives now is discarded */
            (void)trib_engine_progress(&k->t->side[1 - side].engine);
        }
        trib_engine_notices(&k->t->side[1 - side].engine);
        (void)trib_engine_progress(&k->t->side[1 - side].engine);
        assert_true(is_done(k, 1 - side));
        assert_true(k->runs[1].now.status != TRIB_OK);
        for (size_t j = 0; side == 1 && j < LONGEST; j++)
            assert_int_equal(k->requests[1].buffer[j], 9);
        close_talk(k);
    }
}

#define HEAD .magic = TRIB_MESSAGE_MAGIC, .dtype = TRIB_U8

/* Send false entries of a peer to a rank with a send or a receive of 100 000 bytes. */
static void expect_refused(const char *transport, bool sends, struct trib_message m,
                           const struct trib_ref *ref, const char *word)
{
    uint8_t payload[sizeof(struct trib_ref) + 8] = {0};
    struct talk *k = open_talk_of(FLOATS, transport, NULL);
    struct trib_engine *e = &k->t->side[0].engine;
    struct trib_ref good, r;
    struct trib_mailbox box;

    begin(k, 0, 0, sends, 1, 1, other[0], 100000);
    drive(k, 10);
    trib_memory_ref(&k->t->side[1].engine.memories, x_of(k, 1), 0, 100000, false,
                    &good);
    r = good;
    if (ref) {
        r.origin += ref->origin;
        r.lo += ref->lo;
        r.hi += ref->hi;
        r.blob.bytes[0] ^= ref->blob.bytes[0];
        m.bytes = (uint32_t)trib_ref_write(&r, payload);
    }
    open_box(k, &box);
    write_entry(&box, &m, payload);
    drive(k, 20);
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    if (!strstr(trib_error_text(&e->failure), word))
        fail_msg("\"%s\" does not have \"%s\"", trib_error_text(&e->failure), word);
    assert_true(is_done(k, 0));
    trib_mailbox_close(&box);
    close_talk(k);
}

TEST(test_lies)
{
    const struct trib_message grant = {HEAD, .kind = TRIB_MESSAGE_GRANT, .send_id = 1,
                                       .recv_id = 1, .count = 100000};
    const struct trib_ref same = {.origin = 0}, low = {.lo = 1}, high = {.hi = 1},
                          before = {.origin = -1}, after = {.origin = 4 * FLOATS};
    struct trib_message m = grant;

    expect_refused("shm+nomap", true, grant, &low, "invalid location");
    expect_refused("shm+nomap", true, grant, &high, "invalid location");
    expect_refused("shm", true, grant, &same, "wrong location");
    m.count = 50000;
    expect_refused("shm+nomap", true, m, &(struct trib_ref){.hi = (uint64_t)-50000},
                   "wrong location");
    m = grant;
    m.send_id = 2;
    expect_refused("shm+nomap", true, m, &same, "unknown message");
    m = (struct trib_message){HEAD, .kind = TRIB_MESSAGE_DATA, .recv_id = 1,
                              .count = 100000};
    expect_refused("shm+nomap", false, m, NULL, "without a receive");
    expect_refused("tcp", true, grant, &before, "outside its buffer");
    expect_refused("tcp", true, grant, &after, "outside its buffer");
}
