/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages that are read out of their sender's memory: in pieces, before and after
 * the receive, never after the sender has given up, and from nowhere but that memory.
 */
#include "tests/pipeline/p2p/talk.h"

#include "pipeline/p2p/pull.h"
#include "pipeline/run/failure.h"

enum { PIECES = 3 << 20, FLOATS = PIECES / 4 + 10 };

static uint8_t *x_of(struct talk *k, int side)
{
    return (uint8_t *)k->t->side[side].x;
}

static uint8_t *y_of(struct talk *k, int side)
{
    return (uint8_t *)k->t->side[side].y;
}

static void fill(uint8_t *x, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        x[i] = (uint8_t)(i * 31 + i / 4096 + seed);
}

/* One copy, and two entries: what both ends count shows that. */
TEST(test_lengths)
{
    static const size_t bytes[] = {4097, 65536, 1 << 20, (1 << 20) + 1, PIECES + 3};

    for (int i = 0; i < 10; i++) {
        const size_t n = bytes[i / 2];
        struct talk *k = open_talk_of(FLOATS, "shm", NULL);
        struct trib_engine_stats *stats = &k->t->side[1].engine.stats;
        fill(x_of(k, 0), n, (unsigned)i);
        begin(k, i % 2, i % 2, i % 2 == 0, 1 - i % 2, 3, x_of(k, i % 2), n);
        drive(k, 5);
        begin(k, 1 - i % 2, 1 - i % 2, i % 2, i % 2, 3, x_of(k, 1 - i % 2), n);
        drive(k, 20);
        assert_true(is_done(k, 0) && is_done(k, 1));
        assert_status(k->runs[i % 2].now.status, TRIB_OK);
        assert_memory_equal(x_of(k, 0), x_of(k, 1), n);
        assert_int_equal(stats->copied_bytes, n);
        assert_int_equal(stats->received_dense_bytes, n);
        assert_int_equal(stats->messages, 1);
        assert_true(k->t->side[0].engine.stats.messages == 1 &&
                    k->t->side[0].engine.stats.dense_bytes == n);
        close_talk(k);
    }
}

/* With checksums, and out of memory that is not within reach, as between the threads of
 * a process, messages go through slots; without load/store reach they are written. */
TEST(test_slots)
{
    static uint8_t other[200000];

    for (int i = 0; i < 3; i++) {
        struct talk *k =
            open_talk_of(FLOATS, i == 1 ? "shm+nomap" : "shm", i ? NULL : "check=sum");
        uint8_t *x = i == 2 ? other : x_of(k, 0);
        fill(x, 200000, 1);
        begin(k, 0, 0, true, 1, 3, x, 200000);
        begin(k, 1, 1, false, 0, 3, y_of(k, 1), 200000);
        drive(k, 200);
        assert_true(is_done(k, 0) && is_done(k, 1));
        assert_memory_equal(x, y_of(k, 1), 200000);
        assert_int_equal(k->t->side[0].engine.stats.copied_bytes == 0, i == 1);
        close_talk(k);
    }
}

/* The sender fails while the receiver reads, and changes its buffer at once. The
 * receive fails too, even where the sender considered the receiver lost and could not
 * report it. */
TEST(test_sender_gives_up)
{
    for (int lost = 0; lost < 2; lost++) {
        struct talk *k = open_talk_of(FLOATS, "shm", NULL);
        struct trib_engine *e = &k->t->side[0].engine;
        fill(x_of(k, 0), PIECES, 5);
        begin(k, 0, 0, true, 1, 3, x_of(k, 0), PIECES);
        begin(k, 1, 1, false, 0, 3, y_of(k, 1), PIECES);
        while (k->requests[1].moved == 0)
            drive(k, 1);
        assert_true(k->requests[1].moved < PIECES);
        e->links[1].lost = lost;
        trib_engine_fail(e, TRIB_ERR_TIMEOUT, "the sender gives up");
        assert_true(is_done(k, 0));
        memset(x_of(k, 0), 0, PIECES);
        for (int i = 0; i < 10; i++)
            (void)trib_engine_progress(&k->t->side[1].engine);
        assert_true(is_done(k, 1));
        assert_status(k->runs[1].now.status,
                      lost ? TRIB_ERR_PEER_LOST : TRIB_ERR_TIMEOUT);
        assert_non_null(strstr(trib_error_text(&k->t->side[1].engine.failure),
                               lost ? "has abandoned" : "the sender gives up"));
        close_talk(k);
    }
}

/* The receiver fails: no peer writes into its buffer afterwards. */
TEST(test_receiver_gives_up)
{
    struct talk *k = open_talk_of(FLOATS, "shm", NULL);

    fill(x_of(k, 0), PIECES, 5);
    begin(k, 0, 0, true, 1, 3, x_of(k, 0), PIECES);
    begin(k, 1, 1, false, 0, 3, y_of(k, 1), PIECES);
    while (k->requests[1].moved == 0)
        drive(k, 1);
    trib_engine_fail(&k->t->side[1].engine, TRIB_ERR_TIMEOUT, "the receiver gives up");
    assert_true(is_done(k, 1));
    memset(y_of(k, 1), 9, PIECES);
    trib_engine_notices(&k->t->side[0].engine);
    drive(k, 10);
    assert_true(is_done(k, 0));
    assert_status(k->runs[0].now.status, TRIB_ERR_TIMEOUT);
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(y_of(k, 1)[i], 9);
    close_talk(k);
}

/* False locations that a peer may send for a message of 9000 bytes. */
struct lie {
    const char *word; /* of the sentence */
    int64_t origin;
    uint64_t lo, hi;
    int cut; /* bytes that the payload is longer */
    uint8_t change; /* of a byte of the blob */
};

static void expect_refused(const struct lie *lie)
{
    struct talk *k = open_talk_of(FLOATS, "shm", NULL);
    struct trib_engine *e = &k->t->side[0].engine, *o = &k->t->side[1].engine;
    struct trib_message m = {.magic = TRIB_MESSAGE_MAGIC,
                             .kind = TRIB_MESSAGE_ANNOUNCE,
                             .dtype = TRIB_U8,
                             .tag = 1,
                             .count = 9000};
    uint8_t payload[sizeof(struct trib_ref) + 64] = {0};
    struct trib_mailbox box;
    struct trib_ref ref;

    begin(k, 0, 0, false, 1, 1, y_of(k, 0), 9000);
    drive(k, 10);
    trib_memory_ref(&o->memories, x_of(k, 1), 0, 9000, true, &ref);
    assert_true(ref.blob.len > 8);
    ref.origin += lie->origin;
    ref.lo = lie->lo;
    ref.hi = lie->hi;
    ref.blob.bytes[0] ^= lie->change;
    m.bytes = (uint32_t)((int)trib_ref_write(&ref, payload) + lie->cut);
    open_box(k, &box);
    write_entry(&box, &m, payload);
    drive(k, 5);
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    if (!strstr(trib_error_text(&e->failure), lie->word))
        fail_msg("\"%s\" does not have \"%s\"", trib_error_text(&e->failure),
                 lie->word);
    assert_true(is_done(k, 0));
    trib_mailbox_close(&box);
    close_talk(k);
}

TEST(test_lies)
{
    static const struct lie lies[] = {
        {.hi = 9001, .word = "invalid location"},
        {.lo = 1, .hi = 9000, .word = "invalid location"},
        {.hi = 9000, .cut = 8, .word = "invalid location"},
        {.hi = 9000, .cut = -8, .word = "invalid location"},
        {.hi = 9000, .origin = -1, .word = "outside its buffer"},
        {.hi = 9000, .origin = 4 * FLOATS, .word = "outside its buffer"},
        {.hi = 9000, .origin = INT64_MAX, .word = "outside its buffer"},
        {.hi = 9000, .change = 1, .word = "nonexistent buffer"},
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
        expect_refused(&lies[i]);
}

/* A peer sends TAKEN for a message without a location, or for no message at all. */
TEST(test_untold)
{
    static uint8_t other[9000];

    for (uint32_t id = 1; id <= 2; id++) {
        struct talk *k = open_talk_of(FLOATS, "shm", NULL);
        struct trib_engine *e = &k->t->side[0].engine;
        const struct trib_message m = {.magic = TRIB_MESSAGE_MAGIC,
                                       .kind = TRIB_MESSAGE_TAKEN,
                                       .dtype = TRIB_U8,
                                       .send_id = id};
        struct trib_mailbox box;
        begin(k, 0, 0, true, 1, 1, other, 9000);
        drive(k, 10);
        open_box(k, &box);
        write_entry(&box, &m, NULL);
        drive(k, 5);
        assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
        assert_non_null(strstr(trib_error_text(&e->failure), "TAKEN for a message"));
        trib_mailbox_close(&box);
        close_talk(k);
    }
}
