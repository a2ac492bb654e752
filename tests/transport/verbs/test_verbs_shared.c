/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transports of a process share the context of a device, and its protection domain
 * if they trust the same peers. Each learns about the events that concern it, and none
 * is affected when another one closes.
 */
#include "tests/transport/verbs/verbs_pair.h"

#include "base/time.h"
#include "transport/common/guard.h"
#include "transport/verbs/verbs.h"

enum { MANY = 8 };

struct many {
    struct pair pair; /* settings and log */
    struct trib_transport *t[MANY];
};

static void open_many(struct many *m, const char *text)
{
    memset(m, 0, sizeof(*m));
    for (int i = 0; i < MANY; i++) {
        struct trib_transport_opts opts = pair_opts(&m->pair, 0);
        assert_ok(trib_transport_open(text, &opts, &m->t[i]));
    }
}

static void close_many(struct many *m)
{
    for (int i = 0; i < MANY; i++)
        m->t[i]->ops->close(m->t[i]);
}

static void works(struct pair *pair)
{
    assert_ok(pair_write(pair, 8, 7));
    expect_arrival(pair, 1, 7, 8);
    struct trib_event e;
    assert_int_equal(pair_await(pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
}

/* Many communicators, rails and paths share one context and one domain per device. */
TEST(test_one_per_device, clean, nothing_left)
{
    static const struct {
        const char *text;
        int devices, ports;
    } cases[] = {
        {"verbs", 1, 1},
        {"verbs", 2, 1},
        {"verbs", 2, 2},
        {"verbs:connect=gid", 2, 1},
        {"verbs:device=fake0:1,fake0:2", 1, 2},
        {"verbs:qps=4", 1, 1},
        {"verbs:qps=2", 2, 1},
    };
    static struct many m;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        fake->devices = cases[i].devices;
        fake->ports = cases[i].ports;
        open_many(&m, cases[i].text);
        assert_int_equal(fake_verbs_contexts(), cases[i].devices);
        assert_int_equal(fake_verbs_domains(), cases[i].devices);
        close_many(&m);
        assert_int_equal(fake_verbs_contexts() + fake_verbs_domains(), 0);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* A device that allows one context per process serves all communicators. */
TEST(test_limit_of_contexts, clean, nothing_left)
{
    static struct many m;

    fake_verbs_reset()->max_contexts = 1;
    open_many(&m, "verbs");
    close_many(&m);
}

TEST(test_close_one, clean, nothing_left)
{
    struct pair first, second;

    for (int i = 0; i < 2; i++) {
        (void)fake_verbs_reset();
        open_pair(&first);
        open_pair(&second);
        struct pair *stays = i ? &first : &second;
        pair_close(i ? &second : &first);
        works(stays);
        assert_int_equal(fake_verbs_contexts(), 1);
        fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
        expect_loss(stays, 0, "this host's RDMA device fake0 has failed");
        expect_loss(stays, 1, "this host's RDMA device fake0 has failed");
        pair_close(stays);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* An event of a port or of the device is for all. */
TEST(test_events_for_all, clean, nothing_left)
{
    enum { PAIRS = 3 };
    static struct pair pairs[PAIRS];
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    for (int i = 0; i < PAIRS; i++)
        open_pair(&pairs[i]);
    assert_int_equal(fake_verbs_contexts(), 1);
    fake_verbs_port(0, 1, false);
    for (int i = 0; i < PAIRS; i++)
        while (!pair_has_logged(&pairs[i], "port 1 of fake0 is down") &&
               !trib_deadline_passed(until))
            usleep(1000);
    for (int i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++)
            assert_false(trib_verbs_port_is_active(verbs_of(pairs[i].t[side])));
    fake_verbs_port(0, 1, true);
    for (int i = 0; i < PAIRS; i++)
        works(&pairs[i]);
    fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
    for (int i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++)
            expect_loss(&pairs[i], side, "this host's RDMA device fake0 has failed");
    for (int i = 0; i < PAIRS; i++) {
        pair_close(&pairs[i]); /* waits for the logging thread */
        assert_int_equal(pairs[i].lines, 4); /* of both sides: down, active */
    }
}

/* An event of a queue is for the transport that has the queue. */
TEST(test_events_of_queues, clean, nothing_left)
{
    static const enum ibv_event_type types[] = {
        IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
        IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR};
    struct pair first, second;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct pair *hit = i % 2 ? &second : &first, *other = i % 2 ? &first : &second;
        (void)fake_verbs_reset();
        open_pair(&first);
        open_pair(&second);
        assert_int_equal(fake_verbs_contexts(), 1);
        fake_verbs_async_of(verbs_of(hit->t[1])->cq, types[i]);
        expect_loss(hit, 1, "");
        works(other);
        works(other);
        pair_close(&first);
        pair_close(&second);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Transports do not wait for each other -------------------------------------------- */

static bool await(_Atomic bool *flag)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!*flag && !trib_deadline_passed(until))
        usleep(500);
    return *flag;
}

struct closing {
    struct pair *pair;
    pthread_t thread;
    _Atomic bool closed;
};

static void *close_main(void *arg)
{
    struct closing *c = arg;

    pair_close(c->pair);
    c->closed = true;
    return NULL;
}

static void begin_close(struct closing *c, struct pair *pair)
{
    *c = (struct closing){.pair = pair};
    assert_int_equal(pthread_create(&c->thread, NULL, close_main, c), 0);
}

struct gate {
    _Atomic bool entered, opens;
};

/* A log function that blocks. */
static void wait_at_gate(void *arg, trib_log_level_t level, const char *line)
{
    struct gate *gate = arg;

    (void)level;
    (void)line;
    gate->entered = true;
    while (!gate->opens)
        usleep(500);
}

/* The log function of one communicator blocks on an event of the port. Others are
 * opened and closed meanwhile. */
TEST(test_blocked_log, clean, nothing_left)
{
    for (int i = 0; i < 2; i++) {
        struct pair first, second, third;
        struct pair *blocked = i ? &second : &first, *other = i ? &first : &second;
        struct closing closing[2];
        struct gate gate = {.entered = false};
        (void)fake_verbs_reset();
        open_pair(&first);
        open_pair(&second);
        blocked->log.fn = wait_at_gate;
        blocked->log.arg = &gate;
        fake_verbs_port(0, 1, false);
        fake_verbs_port(0, 1, true);
        assert_true(await(&gate.entered));
        works(other);
        works(blocked);
        open_pair(&third);
        works(&third);
        begin_close(&closing[0], other);
        begin_close(&closing[1], &third);
        const bool closed = await(&closing[0].closed) && await(&closing[1].closed);
        gate.opens = true;
        for (int k = 0; k < 2; k++)
            pthread_join(closing[k].thread, NULL);
        assert_true(closed);
        works(blocked);
        pair_close(blocked);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* A thread of one transport holds its lock, as while the user's log function blocks.
 * The queues of another one fail and are destroyed meanwhile. */
TEST(test_busy_transport, clean, nothing_left)
{
    for (int i = 0; i < 4; i++) {
        struct pair first, second;
        struct pair *busy = i % 2 ? &second : &first, *hit = i % 2 ? &first : &second;
        struct closing closing;
        struct trib_event e;
        (void)fake_verbs_reset();
        open_pair(&first);
        open_pair(&second);
        for (int side = 0; side < 2; side++)
            pthread_mutex_lock(&verbs_of(busy->t[side])->links);
        fake_verbs_async_of(verbs_of(hit->t[1])->cq,
                            i / 2 ? IBV_EVENT_CQ_ERR : IBV_EVENT_QP_FATAL);
        const bool lost = pair_await(hit, 1, &e) == 1;
        begin_close(&closing, hit);
        const bool closed = await(&closing.closed);
        for (int side = 0; side < 2; side++)
            pthread_mutex_unlock(&verbs_of(busy->t[side])->links);
        pthread_join(closing.thread, NULL);
        assert_true(lost && closed);
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        works(busy);
        pair_close(busy);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* The device reports events of all its ports. Connections by GIDs use only one. */
TEST(test_unused_port, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:connect=gid,reconnect=0",
                                        "verbs:device=fake0:1,reconnect=0"};
    struct pair pair;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        fake_verbs_reset()->ports = 2;
        fake_verbs_port(0, 2, false);
        pair_open(&pair, texts[i], texts[i]);
        const int lines = pair.lines;
        fake_verbs_port(0, 2, true);
        fake_verbs_port(0, 2, false);
        fake_verbs_port(0, 1, false);
        fake_verbs_port(0, 1, true);
        works(&pair);
        while (fake_verbs_async_waits(0))
            usleep(1000);
        pair_close(&pair); /* waits for the logging thread */
        contains(pair.logged, "port 1 of fake0 is active");
        assert_int_equal(pair.lines, lines + 4); /* of both sides: down, active */
    }
}

/* Failed devices ------------------------------------------------------------------ */

/* A device that has failed is opened again for a new transport. */
TEST(test_failed_device, clean, nothing_left)
{
    struct pair before, after;

    open_pair(&before);
    fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
    expect_loss(&before, 0, "this host's RDMA device fake0 has failed");
    open_pair(&after);
    assert_int_equal(fake_verbs_contexts(), 2);
    works(&after);
    pair_close(&before);
    assert_int_equal(fake_verbs_contexts(), 1);
    works(&after);
    pair_close(&after);
}

/* Jobs with different secrets, and communicators with a guard, have domains of their
 * own on the one context. */
TEST(test_trust, clean, nothing_left)
{
    static const struct {
        uint8_t secret[2]; /* 0: none */
        bool guarded[2];
        int domains;
    } cases[] = {
        {{0, 0}, {false, false}, 1}, {{1, 1}, {false, false}, 1},
        {{1, 2}, {false, false}, 2}, {{0, 1}, {false, false}, 2},
        {{0, 0}, {false, true}, 2},  {{0, 0}, {true, true}, 2},
        {{1, 1}, {true, false}, 2},
    };
    struct trib_guard guards[2] = {{.ranks = 2}, {.ranks = 2}};
    struct pair pair;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&pair, 0, sizeof(pair));
        for (int side = 0; side < 2; side++) {
            if (cases[i].secret[side])
                pair_secret(&pair, side, cases[i].secret[side]);
            struct trib_transport_opts opts = pair_opts(&pair, side);
            opts.guard = cases[i].guarded[side] ? &guards[side] : NULL;
            assert_ok(trib_transport_open("verbs", &opts, &pair.t[side]));
        }
        assert_int_equal(fake_verbs_contexts(), 1);
        assert_int_equal(fake_verbs_domains(), cases[i].domains);
        pair_close(&pair);
    }
}

/* A child opens the device again, and does nothing to the context of its parent. */
static int share_in_child(int rank, int size, void *arg)
{
    struct pair *parents = arg, own;
    struct trib_event e;

    (void)rank;
    (void)size;
    const int live = fake_verbs_live();
    open_pair(&own);
    if (fake_verbs_contexts() != 2 || pair_write(&own, 8, 1) != TRIB_OK ||
        pair_await(&own, 1, &e) != 1)
        return 1;
    for (int side = 0; side < 2; side++) {
        parents->t[side]->ops->close(parents->t[side]);
        own.t[side]->ops->close(own.t[side]);
    }
    return fake_verbs_contexts() != 1 || fake_verbs_live() != live ? 2 : 0;
}

TEST(test_fork, clean, nothing_left)
{
    struct pair pair;

#ifdef __SANITIZE_THREAD__
    tribtest_skip("the thread sanitizer allows no threads in a forked child");
#endif
    open_pair(&pair);
    assert_int_equal(tribtest_forks(1, 60, share_in_child, &pair), 0);
    works(&pair);
    assert_int_equal(fake_verbs_contexts(), 1);
    pair_close(&pair);
}

/* Threads that open and close ------------------------------------------------------ */

enum { THREADS = 4, TIMES = 12 };

struct race {
    _Atomic int running;
    bool keeps; /* another pair keeps the context open, and events happen */
};

static int open_and_close(struct race *race)
{
    int failed = 0;

    for (int i = 0; i < TIMES; i++) {
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, i % 2);
        struct trib_transport *t;
        const char *text = i % 3 ? "verbs" : "verbs:qps=2";
        if (trib_transport_open(text, &opts, &t) == TRIB_OK)
            t->ops->close(t);
        else
            failed++;
    }
    race->running--;
    return failed;
}

static int run_race(int rank, int size, void *arg)
{
    struct race *race = arg;

    if (rank < size - 1)
        return open_and_close(race);
    for (int i = 0; race->running; i++) {
        if (race->keeps && !fake_verbs_async_waits(0))
            fake_verbs_async(0, i % 2 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_GID_CHANGE);
        usleep(200);
    }
    return 0;
}

TEST(test_threads, clean, nothing_left)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        struct race race = {.running = THREADS, .keeps = keeps};
        struct pair pair;
        (void)fake_verbs_reset();
        if (keeps)
            open_pair(&pair);
        assert_int_equal(tribtest_threads(THREADS + 1, run_race, &race), 0);
        if (keeps)
            works(&pair);
        if (keeps)
            pair_close(&pair);
        assert_int_equal(fake_verbs_contexts() + fake_verbs_domains(), 0);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}
