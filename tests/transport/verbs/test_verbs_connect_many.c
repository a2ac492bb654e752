/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: one rank connects to many at once, over a device in memory. Whatever one of
 * them does, the others are connected.
 */
#include "tests/transport/verbs/verbs_pair.h"

#include <arpa/inet.h>
#include <malloc.h>

#include "transport/auto/auto.h"
#include "transport/backends.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs.h"

enum { PEERS = 24, SIZE = PEERS + 1, TOGETHER = 8 };

/* Rank 0 connects to all others. */
static struct star {
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err[SIZE];
    struct trib_transport *t[SIZE];
    struct trib_address address[SIZE];
    struct trib_target dials[PEERS];
} star;

static void drop_line(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static void star_open_with(const char *text, const char *others, struct trib_idle *idle)
{
    memset(&star, 0, sizeof(star));
    star.cfg.stop_timeout_ms = 60000;
    trib_log_init(&star.log, TRIB_LOG_ERROR, drop_line, NULL);
    for (int i = 0; i < SIZE; i++) {
        const struct trib_transport_opts opts = {.self = i,
                                                 .size = SIZE,
                                                 .params = "",
                                                 .cfg = &star.cfg,
                                                 .log = &star.log,
                                                 .idle = i ? NULL : idle,
                                                 .err = &star.err[i]};
        assert_ok(trib_transport_open(i ? others : text, &opts, &star.t[i]));
        assert_ok(star.t[i]->ops->address(star.t[i], &star.address[i]));
        if (i)
            star.dials[i - 1] = (struct trib_target){i, &star.address[i], false, 0};
    }
}

static void star_open(const char *text, struct trib_idle *idle)
{
    star_open_with(text, text, idle);
}

static void star_close(void)
{
    for (int i = SIZE - 1; i >= 0; i--) /* rank 0 acknowledges the notices of all */
        star.t[i]->ops->close(star.t[i]);
}

static void connect_many(void)
{
    star.t[0]->ops->connect_many(star.t[0], star.dials, PEERS);
}

static trib_status_t connect_one(int peer)
{
    trib_error_clear(&star.err[0]);
    return star.t[0]->ops->connect(star.t[0], peer, &star.address[peer]);
}

/* An empty write gets to each peer but one. */
static void assert_works(int without)
{
    for (int peer = 1; peer < SIZE; peer++) {
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        const struct trib_write w = {.imm = (uint32_t)peer};
        struct trib_event e = {0};
        if (peer == without)
            continue;
        assert_ok(star.t[0]->ops->write(star.t[0], peer, &w));
        while (!star.t[peer]->ops->poll(star.t[peer], &e, 1) &&
               !trib_deadline_passed(until))
            (void)star.t[0]->ops->poll(star.t[0], &(struct trib_event){0}, 0);
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.imm, peer);
        assert_int_equal(e.peer, 0);
    }
}

/* Steps of connections that rank 0 makes. They wait until some are made at once. */
static struct {
    _Atomic int now, most, all;
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
} slow;

static int slow_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (attr->qp_state == IBV_QPS_RTR) {
        const int now = atomic_fetch_add(&slow.now, 1) + 1;
        int most = atomic_load(&slow.most);
        while (now > most && !atomic_compare_exchange_weak(&slow.most, &most, now))
            continue;
        atomic_fetch_add(&slow.all, 1);
        const uint64_t until = trib_deadline_ms(5000 * tribtest_slowness());
        while (atomic_load(&slow.most) < TOGETHER && !trib_deadline_passed(until))
            usleep(200);
        atomic_fetch_sub(&slow.now, 1);
    }
    return slow.modify_qp(qp, attr, mask);
}

/* The verbs below rank 0, over its first device. */
static struct verbs *first_inner(void)
{
    struct trib_transport *t = star.t[0];

    if (t->ops == &trib_auto_ops) {
        const struct auto_inner *inner = auto_of(t)->inners;
        while (inner->row->ops != &trib_verbs_ops)
            inner++;
        t = inner->t;
    }
    return t->ops == &trib_verbs_ops ? verbs_of(t)
                                     : verbs_of(multirail_of(t)->inner[0]);
}

static void make_slow(void)
{
    struct verbs *v = first_inner();

    memset(&slow, 0, sizeof(slow));
    slow.modify_qp = v->api.ibv_modify_qp;
    v->api.ibv_modify_qp = slow_modify;
}

/* Several at a time, a bounded number, each once; connect has nothing left to do. */
TEST(test_at_once, clean, nothing_left)
{
    static const char *const texts[] = {ALONE ",connect=rdmacm", ALONE ",connect=gid",
                                        "verbs:connect=rdmacm", "verbs:connect=gid",
                                        "auto:ranks_per_host=1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)fake_verbs_reset();
        star_open(texts[i], NULL);
        if (i < 4)
            make_slow();
        connect_many();
        if (i < 4) {
            assert_int_equal(slow.all, PEERS);
            assert_in_range(slow.most, TOGETHER, 16);
        }
        for (int peer = 1; peer < SIZE; peer++)
            assert_ok(connect_one(peer));
        if (i < 4)
            assert_int_equal(slow.all, PEERS);
        connect_many(); /* does nothing */
        assert_works(0);
        star_close();
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Several devices: each rail connects to all. */
TEST(test_rails_at_once, clean, nothing_left)
{
    struct trib_route route;

    fake_verbs_reset()->devices = 3;
    star_open("verbs:rails=3", NULL);
    make_slow();
    connect_many();
    assert_int_equal(slow.all, PEERS);
    for (int peer = 1; peer < SIZE; peer++) {
        assert_ok(connect_one(peer));
        star.t[0]->ops->route(star.t[0], peer, &route);
        assert_string_equal(route.why, "3 rails: fake0 fake1 fake2");
    }
    assert_int_equal(slow.all, PEERS);
    assert_works(0);
    star_close();
}

/* Change the address of a peer: its key, so that it refuses; or, if silent, its port,
 * to one that never answers. */
static int spoil(int peer, bool silent)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = INADDR_ANY};
    socklen_t len = sizeof(any);
    struct verbs_address a;
    int fd = -1;

    memcpy(&a, star.address[peer].bytes, sizeof(a));
    if (silent) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&any, len), 0);
        assert_int_equal(listen(fd, 8), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
        a.oob_port = ntohs(any.sin_port);
    } else {
        a.key++;
    }
    memcpy(star.address[peer].bytes, &a, sizeof(a));
    return fd;
}

/* If connect_many could not reach a peer, the next connect returns its error. The one
 * after that makes a new attempt. */
TEST(test_one_fails, clean, nothing_left)
{
    enum { BAD = 7 };

    for (int i = 0; i < 3; i++) {
        const bool silent = i == 2;
        (void)fake_verbs_reset();
        star_open(i ? ALONE ",connect=gid,reach_ms=500" : ALONE ",connect=rdmacm",
                  NULL);
        const struct trib_address good = star.address[BAD];
        const int fd = spoil(BAD, silent);
        connect_many();
        for (int peer = 1; peer < SIZE; peer++) {
            if (peer != BAD) {
                assert_ok(connect_one(peer));
                continue;
            }
            assert_status(connect_one(peer), TRIB_ERR_PEER_LOST);
            contains(star.err[0].text, "rank 0 (process");
            contains(star.err[0].text, "cannot reach rank 7 (process");
            contains(star.err[0].text,
                     silent ? "no answer for" : "it belongs to another job");
        }
        assert_works(BAD);
        star.address[BAD] = good;
        assert_ok(connect_one(BAD));
        assert_works(0);
        if (fd >= 0)
            close(fd);
        star_close();
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Packets to one peer do not get through, as the empty writes at the end show. */
TEST(test_one_unproved, clean, nothing_left)
{
    (void)fake_verbs_reset();
    star_open(ALONE ",connect=gid", NULL);
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR); /* of the first one */
    connect_many();
    int failed = 0;
    for (int peer = 1; peer < SIZE; peer++) {
        if (connect_one(peer) == TRIB_OK)
            continue;
        failed++;
        contains(star.err[0].text, "no RDMA packet gets through");
        assert_ok(connect_one(peer));
    }
    assert_int_equal(failed, 1);
    assert_works(0);
    star_close();
}

static pthread_t owner;
static _Atomic int calls, calls_of_others, answer_at;

static int count_call(void *arg)
{
    (void)arg;
    calls++;
    calls_of_others += !pthread_equal(pthread_self(), owner);
    return answer_at && calls >= answer_at;
}

/* Only the caller's thread calls the idle function, which may end all attempts. */
TEST(test_idle_function, clean, nothing_left)
{
    static const char *const texts[] = {ALONE ",connect=gid", "verbs:connect=rdmacm"};

    int all_calls = 0; /* a call may be too quick for one */

    for (int i = 0; i < 4; i++) {
        struct trib_idle idle = {.call = count_call};
        struct fake_verbs_opts *fake = fake_verbs_reset();
        owner = pthread_self();
        calls = calls_of_others = 0;
        answer_at = i / 2 ? 5 : 0;
        star_open(texts[i % 2], &idle);
        make_slow();
        fake->deaf = i == 3;
        connect_many();
        all_calls += calls;
        assert_int_equal(calls_of_others, 0);
        for (int peer = 1; peer < SIZE && !answer_at; peer++)
            assert_ok(connect_one(peer));
        if (i == 3)
            assert_status(connect_one(1), TRIB_ERR_PEER_LOST);
        star_close();
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
    assert_true(all_calls > 0);
}

/* Attempts of rank 0 that begin, and the first that fail for lack of a resource. */
static struct {
    _Atomic int begun, refusals;
    struct rdma_event_channel *(*create)(void);
} channels;

static struct rdma_event_channel *count_channel(void)
{
    atomic_fetch_add(&channels.begun, 1);
    if (atomic_fetch_sub(&channels.refusals, 1) > 0) {
        errno = EMFILE;
        return NULL;
    }
    return channels.create();
}

static void count_channels(int refusals)
{
    struct verbs *v = first_inner();

    channels.begun = 0;
    channels.refusals = refusals;
    channels.create = v->api.rdma_create_event_channel;
    v->api.rdma_create_event_channel = count_channel;
}

/* If no peer answers, connect_many takes as long as one of them: as many as there are
 * threads are tried. */
TEST(test_all_are_silent, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    star_open(ALONE ",connect=rdmacm,reach_ms=1500", NULL);
    fake->deaf = true;
    count_channels(0);
    connect_many();
    assert_in_range(channels.begun, 2, 16);
    assert_status(connect_one(1), TRIB_ERR_PEER_LOST);
    contains(star.err[0].text, "no answer");
    fake->deaf = false;
    connect_many();
    for (int peer = 1; peer < SIZE; peer++)
        assert_ok(connect_one(peer));
    assert_works(0);
    star_close();
}

/* Under auto, TCP reaches them, and the other ranks of their host are not tried over
 * verbs. */
TEST(test_all_are_silent_under_auto, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();
    struct trib_route route = {0};

    star_open("auto:ranks_per_host=1,connect=rdmacm", NULL);
    first_inner()->reach_ms = 1500;
    fake->deaf = true;
    count_channels(0);
    connect_many();
    for (int peer = 1; peer < SIZE; peer++) {
        assert_ok(connect_one(peer));
        star.t[0]->ops->route(star.t[0], peer, &route);
        assert_string_equal(route.name, "tcp");
    }
    assert_in_range(channels.begun, 2, 16);
    star_close();
}

/* A failure that connect has not reported does not count after another connect_many or
 * a longer time. */
TEST(test_old_failure, clean, nothing_left)
{
    enum { BAD = 7, REACH_MS = 300 };

    for (int i = 0; i < 2; i++) {
        (void)fake_verbs_reset();
        star_open(ALONE ",connect=rdmacm,reach_ms=300", NULL);
        const struct trib_address good = star.address[BAD];
        (void)spoil(BAD, false);
        connect_many();
        star.address[BAD] = good;
        if (i)
            usleep((REACH_MS + 50) * 1000);
        else
            connect_many();
        for (int peer = 1; peer < SIZE; peer++)
            assert_ok(connect_one(peer));
        assert_works(0);
        star_close();
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Many attempts need many descriptors. Those that get none are made again, one by
 * one. */
TEST(test_short_of_descriptors, clean, nothing_left)
{
    (void)fake_verbs_reset();
    star_open(ALONE ",connect=rdmacm", NULL);
    count_channels(5);
    connect_many();
    for (int peer = 1; peer < SIZE; peer++)
        assert_ok(connect_one(peer));
    assert_int_equal(channels.begun, PEERS + 5);
    assert_works(0);
    star_close();
}

/* All rails to a peer are connected at once, even if it is the only peer of that
 * call. */
TEST(test_rails_to_one, clean, nothing_left)
{
    enum { RAILS = 8, ONE = 5 };

    fake_verbs_reset()->devices = RAILS;
    star_open("verbs:rails=8", NULL);
    make_slow();
    for (int i = 1; i < RAILS; i++)
        verbs_of(multirail_of(star.t[0])->inner[i])->api.ibv_modify_qp = slow_modify;
    star.t[0]->ops->connect_many(star.t[0], &star.dials[ONE - 1], 1);
    assert_ok(connect_one(ONE));
    assert_int_equal(slow.most, RAILS);
    assert_int_equal(slow.all, RAILS);
    star_close();
}

/* Peers have fewer devices: no rail uses the first one of rank 0. */
TEST(test_unequal_rails, clean, nothing_left)
{
    struct trib_route route = {0};

    fake_verbs_reset()->devices = 3;
    (void)mallopt(M_PERTURB, 1); /* new memory is not zero */
    star_open_with("verbs:rails=3", "verbs:device=fake1,fake2", NULL);
    make_slow();
    for (int i = 1; i < 3; i++)
        verbs_of(multirail_of(star.t[0])->inner[i])->api.ibv_modify_qp = slow_modify;
    connect_many();
    assert_int_equal(slow.all, 2 * PEERS);
    for (int peer = 1; peer < SIZE; peer++) {
        assert_ok(connect_one(peer));
        star.t[0]->ops->route(star.t[0], peer, &route);
        assert_string_equal(route.why, "2 rails: fake1 fake2");
    }
    (void)mallopt(M_PERTURB, 0);
    assert_works(0);
    star_close();
}

/* Queue pairs whose first size for inline data is refused, once. One that got the
 * larger size is made at the same time. */
static struct {
    _Atomic int calls;
    _Atomic bool refused, lowered;
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
} squeeze;

static struct ibv_qp *squeezed_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    const uint64_t until = trib_deadline_ms(5000 * tribtest_slowness());
    const int call = atomic_fetch_add(&squeeze.calls, 1);

    if (call == 1) {
        errno = ENOMEM;
        squeeze.refused = true;
        return NULL;
    }
    while (call == 0 && !squeeze.lowered && !trib_deadline_passed(until))
        usleep(100);
    struct ibv_qp *qp = squeeze.create_qp(pd, init);
    if (call == 0)
        usleep(1000);
    else if (squeeze.refused)
        squeeze.lowered = true;
    return qp;
}

/* No write is longer inline than one of the queue pairs permits. */
TEST(test_inline_size, clean, nothing_left)
{
    (void)fake_verbs_reset();
    star_open(ALONE ",connect=rdmacm", NULL);
    struct verbs *v = first_inner();
    const uint32_t first = v->inline_bytes;

    memset(&squeeze, 0, sizeof(squeeze));
    squeeze.create_qp = v->api.ibv_create_qp;
    v->api.ibv_create_qp = squeezed_qp;
    connect_many();
    assert_true(squeeze.lowered);
    assert_int_equal(v->inline_bytes, first / 2);
    for (int peer = 1; peer < SIZE; peer++)
        assert_ok(connect_one(peer));
    star_close();
}

/* Faults during connect_many of rank 0. */
enum trouble { DEVICE_FAILS, PORT_FAILS, PEERS_DIE, CONNECTIONS_END, TROUBLES };
enum { DEAD = 8 }; /* peers 1 to DEAD */

static _Atomic bool troubled;

static void *make_trouble(void *arg)
{
    const enum trouble what = *(const enum trouble *)arg;
    const uint64_t until = trib_deadline_ms(5000 * tribtest_slowness());

    while (atomic_load(&slow.all) < 4 && !trib_deadline_passed(until))
        usleep(100);
    for (int i = 1; what == PEERS_DIE && i <= DEAD; i++) {
        star.t[i]->ops->close(star.t[i]);
        star.t[i] = NULL;
    }
    if (what == DEVICE_FAILS)
        fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
    if (what == PORT_FAILS)
        fake_verbs_port(0, 1, false);
    if (what == CONNECTIONS_END)
        fake_verbs_cut();
    troubled = true;
    return NULL;
}

/* It ends, and connect tells of each peer whether it is connected. Nothing is left. */
TEST(test_trouble_meanwhile, clean, nothing_left)
{
    static const char *const texts[] = {ALONE ",connect=rdmacm,reach_ms=500",
                                        ALONE ",connect=gid,reach_ms=500",
                                        "verbs:rails=2,reach_ms=500"};

    for (int i = 0; i < 3 * TROUBLES; i++) {
        enum trouble what = i % TROUBLES;
        pthread_t thread;
        struct fake_verbs_opts *fake = fake_verbs_reset();
        fake->devices = 2;
        fake->down_fails = true;
        star_open(texts[i / TROUBLES], NULL);
        make_slow();
        troubled = false;
        assert_int_equal(pthread_create(&thread, NULL, make_trouble, &what), 0);
        const uint64_t begin = trib_now_ns();
        connect_many();
        assert_true(trib_now_ns() - begin <
                    UINT64_C(20000000000) * tribtest_slowness());
        pthread_join(thread, NULL);
        for (int peer = 1; peer < SIZE; peer++) {
            struct trib_event e;
            (void)connect_one(peer);
            (void)star.t[0]->ops->poll(star.t[0], &e, 1);
        }
        for (int peer = SIZE - 1; peer >= 0; peer--) {
            if (star.t[peer])
                star.t[peer]->ops->close(star.t[peer]);
        }
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* The device runs out of queue pairs, or of memory for them. The others are
 * connected, and one that is tried later. */
TEST(test_out_of_queue_pairs, clean, nothing_left)
{
    static const char *const texts[] = {ALONE ",connect=rdmacm", ALONE ",connect=gid",
                                        "verbs:rails=1"};

    for (int i = 0; i < 3; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        int connected = 0, last = 0;
        star_open(texts[i], NULL);
        fake->max_qp = 20; /* two per connection in this process */
        connect_many();
        for (int peer = 1; peer < SIZE; peer++) {
            if (connect_one(peer) == TRIB_OK)
                connected++;
            else
                last = peer;
        }
        assert_in_range(connected, 1, 10);
        assert_true(last);
        fake->max_qp = 0;
        assert_ok(connect_one(last));
        star_close();
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}
