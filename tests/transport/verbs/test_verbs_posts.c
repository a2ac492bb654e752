/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the transport "verbs" posts: requests, doorbells and signalled requests of a
 * frame, completions that cover several requests, and lists that a device refuses.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/harness/tribtest.h"
#include "tests/transport/verbs/verbs_pair.h"

enum { ENTRY = 64, SHORT = 88, LONG = 1 << 16, HUGE_LEN = 1 << 24 };

/* Two sides and large memory of side 0, which side 1 offers as well. */
struct large {
    struct pair pair;
    struct trib_region *from;
    struct trib_remote *to;
    uint8_t *source, *target;
};

static void open_large(struct large *l, const char *text, size_t bytes)
{
    struct trib_region *region[2];
    struct trib_blob blob;
    void *mem[2];

    pair_open(&l->pair, text, text);
    for (int i = 0; i < 2; i++)
        assert_ok(l->pair.t[i]->ops->alloc(l->pair.t[i], bytes, &mem[i], &region[i]));
    assert_ok(l->pair.t[1]->ops->export_region(l->pair.t[1], region[1], &blob));
    assert_ok(l->pair.t[0]->ops->import_region(l->pair.t[0], 1, &blob, &l->to));
    l->from = region[0];
    l->source = mem[0];
    l->target = mem[1];
}

static trib_status_t write_payload(struct large *l, size_t len, uint64_t token)
{
    const struct trib_write w = {.local = l->from,
                                 .remote = l->to,
                                 .len = len,
                                 .quiet = true,
                                 .signal = true,
                                 .token = token};

    return l->pair.t[0]->ops->write(l->pair.t[0], 1, &w);
}

static trib_status_t write_entry(struct large *l, size_t len, uint32_t imm)
{
    const struct trib_write w = {.local = l->pair.region[0],
                                 .remote = l->pair.remote[0],
                                 .len = len,
                                 .imm = imm};

    return l->pair.t[0]->ops->write(l->pair.t[0], 1, &w);
}

/* The next WRITE_DONE at side 0. */
static void expect_done(struct large *l, uint64_t token)
{
    struct trib_event e;

    assert_int_equal(pair_await(&l->pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
    assert_int_equal(e.token, token);
}

/* Frames of zero-copy payload: after the first two, one frame of eight is signalled.
 * The device executes nothing until the last one is posted. */
static void count_frames(const char *text, size_t payload, int frames,
                         struct fake_verbs_counts expected)
{
    struct large l;

    (void)fake_verbs_reset();
    open_large(&l, text, HUGE_LEN);
    const struct fake_verbs_counts before = fake_verbs_posted();
    fake_verbs_hold(true);
    for (int i = 0; i < frames; i++) {
        if (payload)
            assert_ok(write_payload(&l, payload, (uint64_t)i));
        assert_ok(write_entry(&l, payload ? ENTRY : SHORT, (uint32_t)i));
    }
    const struct fake_verbs_counts after = fake_verbs_posted();
    assert_int_equal(after.sends - before.sends, expected.sends);
    assert_int_equal(after.doorbells - before.doorbells, expected.doorbells);
    assert_int_equal(after.inlined - before.inlined, expected.inlined);
    assert_int_equal(after.signalled - before.signalled, expected.signalled);
    fake_verbs_hold(false);
    for (int i = 0; i < frames; i++) {
        expect_arrival(&l.pair, 1, (uint32_t)i, payload ? ENTRY : SHORT);
        if (payload)
            expect_done(&l, (uint64_t)i);
    }
    pair_close(&l.pair);
    assert_int_equal(fake_verbs_mistakes(), 0);
}

TEST(test_counts_of_frames, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:depth=256", ALONE ",depth=256"};

    for (int i = 0; i < 2; i++) {
        const char *text = texts[i];
        count_frames(text, 0, 64, (struct fake_verbs_counts){64, 64, 2, 64});
        count_frames(text, LONG, 65, (struct fake_verbs_counts){130, 65, 9, 65});
        count_frames(text, HUGE_LEN, 1, (struct fake_verbs_counts){2, 1, 1, 1});
        count_frames(text, HUGE_LEN, 9, (struct fake_verbs_counts){18, 9, 2, 9});
    }
}

/* No WRITE_DONE before the write is done, and each one in order: also of the requests
 * after the last signalled one, though nothing more is posted. */
TEST(test_completions_in_order, clean, nothing_left)
{
    struct large l;
    struct trib_event e;

    open_large(&l, ALONE, LONG);
    for (int n = 1; n <= 20; n++) {
        fake_verbs_hold(true);
        for (int i = 0; i < n; i++) {
            assert_ok(write_payload(&l, LONG, (uint64_t)i));
            assert_ok(write_entry(&l, ENTRY, 1));
        }
        assert_int_equal(pair_poll(&l.pair, 0, 1, &e), 0);
        fake_verbs_hold(false);
        for (int i = 0; i < n; i++)
            expect_done(&l, (uint64_t)i);
        assert_int_equal(pair_poll(&l.pair, 0, 1, &e), 0);
        for (int i = 0; i < n; i++)
            expect_arrival(&l.pair, 1, 1, ENTRY);
    }
    pair_close(&l.pair);
}

/* A rank that sleeps after its last write is woken by the completion. */
TEST(test_sleep_after_a_burst, clean, nothing_left)
{
    struct large l;
    struct trib_event e[8];
    int done = 0;

    open_large(&l, ALONE, LONG);
    const struct trib_transport_ops *ops = l.pair.t[0]->ops;
    fake_verbs_hold(true);
    for (int i = 0; i < 3; i++) {
        assert_ok(write_payload(&l, LONG, (uint64_t)i));
        assert_ok(write_entry(&l, ENTRY, 1));
    }
    ops->arm(l.pair.t[0]);
    assert_int_equal(ops->poll(l.pair.t[0], e, 8), 0);
    fake_verbs_hold(false);
    const uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
    while (done < 3 && !trib_deadline_passed(deadline)) {
        done += ops->poll(l.pair.t[0], e, 8);
        ops->arm(l.pair.t[0]);
        ops->wait(l.pair.t[0], 1000);
    }
    assert_int_equal(done, 3);
    for (int i = 0; i < 3; i++)
        expect_arrival(&l.pair, 1, 1, ENTRY);
    pair_close(&l.pair);
}

/* The shortest send queue never overflows, whatever is signalled; the fake counts an
 * overflow as a mistake. */
TEST(test_short_queue, clean, nothing_left)
{
    struct large l;
    struct trib_event e;
    uint64_t posted = 0, done = 0;
    uint32_t frames = 0, arrived = 0;
    bool payload_posted = false;

    open_large(&l, ALONE ",depth=16", LONG);
    for (int i = 0; i < 1000; i++) {
        fake_verbs_hold(i % 100 < 50);
        if (!payload_posted && write_payload(&l, LONG, posted) == TRIB_OK) {
            payload_posted = true;
            posted++;
        }
        if (payload_posted && write_entry(&l, ENTRY, frames) == TRIB_OK) {
            payload_posted = false;
            frames++;
        }
        if (i % 3 == 0 && l.pair.t[0]->ops->poll(l.pair.t[0], &e, 1))
            assert_int_equal(e.token, done++);
        while (l.pair.t[1]->ops->poll(l.pair.t[1], &e, 1))
            assert_int_equal(e.imm, arrived++);
    }
    fake_verbs_hold(false);
    assert_true(frames > 100);
    for (; done < posted; done++)
        expect_done(&l, done);
    for (; arrived < frames; arrived++)
        expect_arrival(&l.pair, 1, arrived, ENTRY);
    pair_close(&l.pair);
}

/* All requests are reported, though polls take one event at a time and new requests
 * are posted before. */
TEST(test_slow_reader, clean, nothing_left)
{
    struct large l;
    struct trib_event e;
    uint64_t posted = 0, done = 0;

    open_large(&l, ALONE ",depth=16", LONG);
    for (int i = 0; i < 200; i++) {
        fake_verbs_hold(true);
        while (pair_write(&l.pair, SHORT, (uint32_t)posted) == TRIB_OK)
            posted++;
        fake_verbs_hold(false);
        if (l.pair.t[0]->ops->poll(l.pair.t[0], &e, 1))
            assert_int_equal(e.token, done++);
        while (l.pair.t[1]->ops->poll(l.pair.t[1], &e, 1))
            continue;
    }
    for (; done < posted; done++)
        expect_done(&l, done);
    pair_close(&l.pair);
}

/* A quiet write goes with the next poll, before its memory is freed, and before the
 * notice of a disconnect. */
TEST(test_quiet_write_alone, clean, nothing_left)
{
    for (int way = 0; way < 3; way++) {
        struct large l;
        struct trib_event e;
        (void)fake_verbs_reset();
        open_large(&l, ALONE, LONG);
        memset(l.source, 7, LONG);
        assert_ok(write_payload(&l, LONG, 1));
        assert_int_equal(l.target[LONG - 1], 0);
        if (way == 0)
            (void)l.pair.t[0]->ops->poll(l.pair.t[0], &e, 1);
        if (way == 1)
            l.pair.t[0]->ops->dereg(l.pair.t[0], l.from);
        if (way == 2)
            l.pair.t[0]->ops->disconnect(l.pair.t[0], 1);
        assert_int_equal(l.target[LONG - 1], 7);
        pair_close(&l.pair);
        assert_int_equal(fake_verbs_mistakes(), 0);
    }
}

/* The device refuses a list from its first or second request on. The requests before it
 * arrive and are reported, then the loss of the peer, once. */
TEST(test_refused_lists, clean, nothing_left)
{
    for (int taken = 0; taken < 2; taken++) {
        struct large l;
        (void)fake_verbs_reset();
        open_large(&l, ALONE, LONG);
        memset(l.source, 7, LONG);
        assert_ok(write_payload(&l, LONG, 1));
        fake_verbs_refuse(taken);
        assert_status(write_entry(&l, ENTRY, 1), TRIB_ERR_PEER_LOST);
        assert_int_equal(l.target[LONG - 1], 7 * taken);
        if (taken)
            expect_done(&l, 1);
        expect_loss(&l.pair, 0, "cannot be posted: Cannot allocate memory");
        pair_close(&l.pair);
        assert_int_equal(fake_verbs_mistakes(), 0);
    }
}

/* The same in a poll, which posts the list. */
TEST(test_refused_in_poll, clean, nothing_left)
{
    struct large l;

    open_large(&l, ALONE, LONG);
    assert_ok(write_payload(&l, LONG, 1));
    fake_verbs_refuse(0);
    expect_loss(&l.pair, 0, "cannot be posted: Cannot allocate memory");
    pair_close(&l.pair);
}

static void *wake_often(void *arg)
{
    struct large *l = arg;

    for (int i = 0; i < 5000; i++)
        l->pair.t[0]->ops->wake(l->pair.t[0], 1);
    return NULL;
}

/* Another thread wakes the peer all the time: the queue does not overflow, and frames
 * stay in order. */
TEST(test_wakes_between, clean, nothing_left)
{
    struct large l;
    struct trib_event e;
    pthread_t thread;
    uint64_t done = 0;
    uint32_t frames = 0, arrived = 0;

    open_large(&l, ALONE ",depth=16", LONG);
    assert_int_equal(pthread_create(&thread, NULL, wake_often, &l), 0);
    while (frames < 500) {
        if (write_payload(&l, LONG, frames) == TRIB_OK) {
            while (write_entry(&l, ENTRY, frames) == TRIB_ERR_NO_RESOURCE)
                if (l.pair.t[0]->ops->poll(l.pair.t[0], &e, 1))
                    assert_int_equal(e.token, done++);
            frames++;
        }
        while (l.pair.t[0]->ops->poll(l.pair.t[0], &e, 1))
            assert_int_equal(e.token, done++);
        while (l.pair.t[1]->ops->poll(l.pair.t[1], &e, 1))
            assert_int_equal(e.imm, arrived++);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (; done < frames; done++)
        expect_done(&l, done);
    for (; arrived < frames; arrived++)
        expect_arrival(&l.pair, 1, arrived, ENTRY);
    pair_close(&l.pair);
}

/* Three sides: side 0 writes to both others. */
struct trio {
    struct pair common; /* what all three share */
    struct trib_transport *t[3];
    struct trib_region *from;
    struct trib_remote *to[3];
};

static void open_trio(struct trio *x)
{
    struct trib_address address[3];
    struct trib_region *region;
    struct trib_blob blob;
    void *mem;

    memset(x, 0, sizeof(*x));
    for (int i = 0; i < 3; i++) {
        struct trib_transport_opts opts = pair_opts(&x->common, i);
        opts.size = 3;
        assert_ok(trib_transport_open(ALONE, &opts, &x->t[i]));
        assert_ok(x->t[i]->ops->address(x->t[i], &address[i]));
    }
    assert_ok(x->t[0]->ops->alloc(x->t[0], LONG, &mem, &x->from));
    for (int i = 1; i < 3; i++) {
        const struct trib_transport_ops *ops = x->t[i]->ops;
        assert_ok(x->t[0]->ops->connect(x->t[0], i, &address[i]));
        assert_ok(ops->alloc(x->t[i], LONG, &mem, &region));
        assert_ok(ops->export_region(x->t[i], region, &blob));
        assert_ok(x->t[0]->ops->import_region(x->t[0], i, &blob, &x->to[i]));
    }
}

static trib_status_t write_of_trio(struct trio *x, int to, bool signal, uint64_t token)
{
    const struct trib_write w = {.local = x->from,
                                 .remote = x->to[to],
                                 .len = ENTRY,
                                 .signal = signal,
                                 .token = token};

    return x->t[0]->ops->write(x->t[0], to, &w);
}

static int poll_trio(struct trio *x, struct trib_event *event)
{
    struct trib_event other[16];

    for (int i = 1; i < 3; i++)
        while (x->t[i]->ops->poll(x->t[i], other, 16))
            continue;
    return x->t[0]->ops->poll(x->t[0], event, 1);
}

/* Writes to one peer are reported though this rank posts to another one before each
 * poll. */
TEST(test_posts_to_another_peer, clean, nothing_left)
{
    struct trib_event e;
    struct trio x;
    uint64_t done = 0;

    open_trio(&x);
    fake_verbs_hold(true);
    for (uint64_t i = 0; i < 6; i++)
        assert_ok(write_of_trio(&x, 1, true, i));
    fake_verbs_hold(false);
    for (int i = 0; i < 200 && done < 6; i++) {
        assert_ok(write_of_trio(&x, 2, false, 0));
        if (poll_trio(&x, &e)) {
            assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
            assert_int_equal(e.token, done++);
        }
    }
    assert_int_equal(done, 6);
    for (int i = 0; i < 3; i++)
        x.t[i]->ops->close(x.t[i]);
}

/* A sleep that ends by its timeout leaves no mark: frames of the busy phase that
 * follows cost no empty writes. */
TEST(test_counts_after_a_sleep, clean, nothing_left)
{
    struct large l;
    struct trib_event e[16];

    open_large(&l, ALONE, LONG);
    const struct trib_transport_ops *ops = l.pair.t[0]->ops;
    ops->arm(l.pair.t[0]);
    assert_int_equal(ops->poll(l.pair.t[0], e, 16), 0);
    ops->wait(l.pair.t[0], 100);
    const struct fake_verbs_counts before = fake_verbs_posted();
    fake_verbs_hold(true);
    for (int i = 0; i < 16; i++) {
        assert_ok(write_payload(&l, LONG, (uint64_t)i));
        assert_ok(write_entry(&l, ENTRY, 1));
        assert_int_equal(ops->poll(l.pair.t[0], e, 16), 0);
    }
    assert_int_equal(fake_verbs_posted().doorbells - before.doorbells, 16);
    fake_verbs_hold(false);
    for (int i = 0; i < 16; i++) {
        expect_arrival(&l.pair, 1, 1, ENTRY);
        expect_done(&l, (uint64_t)i);
    }
    pair_close(&l.pair);
}

/* A write that the peer has received is reported, though the peer has left before this
 * rank polls. */
TEST(test_peer_leaves_after_all, clean, nothing_left)
{
    struct large l;

    open_large(&l, ALONE, LONG);
    fake_verbs_hold(true);
    for (int i = 0; i < 6; i++) {
        assert_ok(write_payload(&l, LONG, (uint64_t)i));
        assert_ok(write_entry(&l, ENTRY, 1));
    }
    fake_verbs_hold(false);
    for (int i = 0; i < 6; i++)
        expect_arrival(&l.pair, 1, 1, ENTRY);
    l.pair.t[1]->ops->disconnect(l.pair.t[1], 0);
    for (int i = 0; i < 6; i++)
        expect_done(&l, (uint64_t)i);
    expect_loss(&l.pair, 0, "has left");
    pair_close(&l.pair);
}

/* The same if the connection fails at a later write: what precedes it is reported. */
TEST(test_fails_after_some, clean, nothing_left)
{
    for (int good = 0; good < 12; good++) {
        struct large l;
        (void)fake_verbs_reset();
        open_large(&l, ALONE, LONG);
        for (int i = 0; i < good; i++) {
            assert_ok(write_payload(&l, LONG, (uint64_t)i));
            assert_ok(write_entry(&l, ENTRY, 1));
        }
        fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
        for (int i = 0; i < 3; i++) {
            assert_ok(write_payload(&l, LONG, 100));
            assert_ok(write_entry(&l, ENTRY, 1));
        }
        for (int i = 0; i < good; i++)
            expect_done(&l, (uint64_t)i);
        expect_loss(&l.pair, 0, "");
        pair_close(&l.pair);
        assert_int_equal(fake_verbs_mistakes(), 0);
    }
}

/* The device refuses a request of a write in pieces: what precedes the write is
 * reported, and the peer is lost, once. */
TEST(test_refused_pieces, clean, nothing_left)
{
    for (int taken = 0; taken < 12; taken++) {
        struct large l;
        fake_verbs_reset()->message_max = 4096;
        open_large(&l, ALONE, LONG);
        assert_ok(write_payload(&l, 4096, 1));
        fake_verbs_refuse(1 + taken);
        const struct trib_write w = {
            .local = l.from, .remote = l.to, .len = 40000, .signal = true, .token = 2};
        const trib_status_t status = l.pair.t[0]->ops->write(l.pair.t[0], 1, &w);
        assert_status(status, taken < 11 ? TRIB_ERR_PEER_LOST : TRIB_OK);
        expect_done(&l, 1);
        if (taken < 11)
            expect_loss(&l.pair, 0, "cannot be posted: Cannot allocate memory");
        else
            expect_done(&l, 2);
        pair_close(&l.pair);
        assert_int_equal(fake_verbs_mistakes(), 0);
    }
}
