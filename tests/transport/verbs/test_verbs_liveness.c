/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: how the end of a peer of another host is found out, and what is said of it.
 * The device is one in memory, heartbeats are real.
 */
#include "tests/transport/verbs/verbs_pair.h"

#include "transport/verbs/verbs.h"

/* Side 0 takes side 1 for one of another host. */
static void open_far(struct pair *pair, int stop_timeout_ms)
{
    struct trib_address address;
    struct verbs_address a;
    struct verbs *v;

    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        pair->cfg.stop_timeout_ms = stop_timeout_ms;
        assert_ok(trib_transport_open(ALONE, &opts, &pair->t[i]));
    }
    assert_ok(pair->t[1]->ops->address(pair->t[1], &address));
    memcpy(&a, address.bytes, sizeof(a));
    a.boot++;
    a.ip[0].bytes[15]++; /* else it would lead back here */
    memcpy(address.bytes, &a, sizeof(a));
    assert_ok(pair->t[0]->ops->connect(pair->t[0], 1, &address));
    v = (struct verbs *)pair->t[0];
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    while (!trib_heartbeat_heard(v->local.heartbeat, 1) && !trib_deadline_passed(until))
        usleep(1000);
    assert_true(trib_heartbeat_heard(v->local.heartbeat, 1));
}

/* Makes a side look like a stopped process until that descriptor is closed; then like a
 * dead one. */
static int silence(struct pair *pair, int side)
{
    struct verbs *v = (struct verbs *)pair->t[side];
    int port = pair_keep_port(trib_heartbeat_port(v->local.heartbeat));

    trib_heartbeat_close(v->local.heartbeat);
    v->local.own_heartbeat = false;
    return port;
}

/* The adapter of a stopped process still works; its heartbeat thread does not. */
TEST(test_silence, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    open_far(&pair, 2000);
    assert_int_equal(pair_poll(&pair, 0, 1000, &e), 0);
    int port = silence(&pair, 1);
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_false(e.left);
    contains(e.why, "no heartbeat from process");
    contains(e.why, "at 127.9.0.2 for");
    assert_int_equal(pair_poll(&pair, 0, 20, &e), 0);
    close(port);
    pair_close(&pair);
}

/* Only its host reports that its process is gone. */
TEST(test_closed_port, clean, nothing_left)
{
    struct pair pair;

    open_far(&pair, 60000);
    close(silence(&pair, 1));
    expect_loss(&pair, 0, "closed its connection");
    assert_int_equal(pair.lines, 0);
    pair_close(&pair);
}

static int destroyed;
static int (*destroy)(struct ibv_qp *qp);

static int counting_destroy(struct ibv_qp *qp)
{
    destroyed++;
    return destroy(qp);
}

/* On a dead port that takes seconds, so the loss is reported first. */
TEST(test_told_before_destroyed, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    open_far(&pair, 60000);
    struct verbs *v = (struct verbs *)pair.t[0];
    destroy = v->api.ibv_destroy_qp;
    v->api.ibv_destroy_qp = counting_destroy;
    destroyed = 0;
    close(silence(&pair, 1));
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_int_equal(destroyed, 0);
    pair.t[0]->ops->disconnect(pair.t[0], 1);
    assert_true(destroyed > 0);
    pair_close(&pair);
}

/* A peer that disconnects closes its port, too, but sends an abort notice first. */
TEST(test_left_port, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    open_far(&pair, 60000);
    struct verbs *v = (struct verbs *)pair.t[0];
    trib_verbs_send_last((struct verbs *)pair.t[1], 0, VERBS_DISCONNECT);
    close(silence(&pair, 1));
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    while (!trib_heartbeat_closed(v->local.heartbeat, 1) &&
           !trib_deadline_passed(until))
        usleep(1000);
    assert_true(trib_heartbeat_closed(v->local.heartbeat, 1));
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    contains(e.why, "has left");
    assert_true(e.left);
    pair_close(&pair);
}

/* The device of a peer of another host refuses a write. */
static void refuse_far(struct pair *pair, enum ibv_wc_status status)
{
    fake_verbs_fail(status);
    assert_ok(
        pair->t[0]->ops->write(pair->t[0], 1, &(struct trib_write){.signal = true}));
}

/* The memory of a process that dies goes before its connection does. */
TEST(test_refused_by_dying, clean, nothing_left)
{
    static const enum ibv_wc_status statuses[] = {
        IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR};
    struct trib_event e;
    struct pair pair;

    for (size_t i = 0; i < 2 * sizeof(statuses) / sizeof(statuses[0]); i++) {
        bool says_closed = i % 2;
        (void)fake_verbs_reset();
        open_far(&pair, 60000);
        int port = silence(&pair, 1);
        refuse_far(&pair, statuses[i / 2]);
        assert_int_equal(pair_poll(&pair, 0, 200, &e), 0);
        if (says_closed)
            close(port);
        else
            fake_verbs_cut();
        expect_loss(&pair, 0, "closed its connection");
        assert_int_equal(pair.lines, 0);
        if (!says_closed)
            close(port);
        pair_close(&pair);
    }
}

/* A peer that answers is at fault; in the end so is one that stays silent. */
TEST(test_refused_by_living, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    for (int mute = 0; mute < 2; mute++) {
        (void)fake_verbs_reset();
        open_far(&pair, 60000);
        int port = mute ? silence(&pair, 1) : -1;
        refuse_far(&pair, IBV_WC_REM_ACCESS_ERR);
        (void)pair_poll(&pair, 0, 0, &e); /* only the refusal */
        if (!mute) /* it has given this rank up */
            fake_verbs_cut();
        expect_loss(&pair, 0, "it refused a write: outside its registered memory");
        assert_int_equal(pair.lines, 1);
        contains(pair.logged, "freed or unmapped");
        if (mute)
            close(port);
        pair_close(&pair);
    }
}

/* The side that closes last does not wait for the other, which no longer answers. */
TEST(test_closes_last, clean, nothing_left)
{
    enum { LEAVES_MS = 200 }; /* less than any limit for a peer without an answer */
    static const char *const texts[] = {ALONE, "verbs"};

    for (int i = 0; i < 2; i++) {
        uint64_t least = TRIB_NEVER;
        for (int turn = 0; turn < 5; turn++) {
            struct pair pair;
            pair_open(&pair, texts[i], texts[i]);
            pair.t[0]->ops->close(pair.t[0]);
            const uint64_t began = trib_now_ns();
            pair.t[1]->ops->close(pair.t[1]);
            const uint64_t took = trib_now_ns() - began;
            least = took < least ? took : least;
        }
        assert_in_range(least / 1000000, 0, LEAVES_MS / 2);
    }
}
