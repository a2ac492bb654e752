/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: rails that will not come back, because a device has failed or the peer has
 * left for good, are given up at once.
 */
#include "tests/transport/verbs/failback_rig.h"

#include <errno.h>

/* As open_devices, but each side is a host of its own. */
static void open_hosts(struct pair *pair, int devices, const char *text)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();
    struct trib_address address[2];
    struct trib_blob region[2];

    fake->inline_max = ENTRY;
    fake->hosts = 2;
    fake->devices = devices;
    fake->down_fails = true;
    memset(sides, 0, sizeof(sides));
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        fake_verbs_host(i);
        assert_ok(trib_transport_open(text, &opts, &pair->t[i]));
        pair_offer(pair, i, &address[i], &region[i]);
    }
    fake_verbs_host(0);
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair->t[i]->ops;
        assert_ok(ops->connect(pair->t[i], !i, &address[!i]));
        assert_ok(ops->import_region(pair->t[i], !i, &region[!i], &pair->remote[i]));
    }
    be_patient(pair);
    run(pair, 50);
}

/* Poll a side until it has lost the other. */
static struct trib_event await_loss(struct pair *pair, int side)
{
    struct trib_event e;

    do
        assert_int_equal(pair_await(pair, side, &e), 1);
    while (e.kind != TRIB_EVENT_PEER_LOST);
    return e;
}

static int count_queue_pairs(void)
{
    struct fake_qp row;
    int n = 0;

    while (fake_verbs_qp(n, &row))
        n++;
    return n;
}

/* A device that has failed is not tried again by either side; the other one carries
 * all, and may itself be lost for a while. */
TEST(test_device_fails, clean, nothing_left)
{
    static const char *const texts[] = {"verbs", "verbs:connect=gid"};
    static const enum ibv_event_type types[] = {IBV_EVENT_DEVICE_FATAL,
                                                IBV_EVENT_CQ_ERR};
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        open_hosts(&pair, 2, texts[i % 2]);
        if (i / 2)
            fake_verbs_async_of(inner_of_side(&pair, 0, 0)->cq, types[1]);
        else
            fake_verbs_async(0, types[0]);
        while (peer_of(&pair, 0)->final != 1 || peer_of(&pair, 1)->final != 1) {
            step(&pair);
            if (trib_deadline_passed(until))
                fail_msg("final: %#x %#x", peer_of(&pair, 0)->final,
                         peer_of(&pair, 1)->final);
        }
        contains(peer_of(&pair, 0)->rails[0].why, "this host's RDMA device fake0 ");
        contains(peer_of(&pair, 1)->rails[0].why, "its RDMA device has failed");
        const int made = count_queue_pairs();
        const uint64_t soon = trib_deadline_ms(300);
        while (!trib_deadline_passed(soon))
            step(&pair);
        assert_int_equal(count_queue_pairs(), made);
        fake_verbs_port(1, 1, false); /* at host 0 */
        while (!peer_of(&pair, 0)->stranded_at || !peer_of(&pair, 1)->stranded_at) {
            step(&pair);
            if (trib_deadline_passed(until))
                fail_msg("not stranded");
        }
        fake_verbs_port(1, 1, true);
        run(&pair, 100);
        assert_int_equal(peer_of(&pair, 0)->dead, 1);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* The only device fails: the peer is lost at once, with its name. */
TEST(test_only_device_fails, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        open_hosts(&pair, 1, i % 2 ? "verbs:connect=gid" : "verbs");
        if (i / 2) /* while its connection is lost */
            strand(&pair);
        fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
        struct trib_event e = await_loss(&pair, 0);
        contains(e.why, "this host's RDMA device fake0 has failed");
        fake_verbs_port(0, 1, true);
        e = await_loss(&pair, 1);
        if (i / 2)
            contains(e.why, "its RDMA device has failed");
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* A peer that has disconnected for good, though its process listens, is not waited
 * for. */
TEST(test_peer_has_left_meanwhile, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        open_hosts(&pair, 1, i % 2 ? "verbs:connect=gid" : "verbs");
        strand(&pair);
        if (i / 2)
            pair.t[1]->ops->disconnect(pair.t[1], 0);
        else
            pair.t[1]->ops->leave(pair.t[1], NULL);
        fake_verbs_port(0, 1, true);
        const uint64_t begin = trib_now_ns();
        const struct trib_event e = await_loss(&pair, 0);
        contains(e.why, "it has disconnected, or declared this rank lost");
        assert_true(trib_now_ns() - begin < UINT64_C(30000000000)); /* of 60 s */
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Closing does not wait for a peer to which no rail leads. One of several tries is not
 * late on a busy machine. */
TEST(test_close_while_stranded, clean, nothing_left)
{
    uint64_t least = UINT64_MAX;
    struct pair pair;

    for (int i = 0; i < 5 && least > 900000000; i++) {
        open_hosts(&pair, 1, "verbs");
        strand(&pair);
        const uint64_t begin = trib_now_ns();
        pair_close(&pair);
        const uint64_t took = (trib_now_ns() - begin) / 2; /* of two sides */
        least = took < least ? took : least;
    }
    assert_true(least < 900000000);
}

static struct pair between;
static _Atomic bool polls_on;

/* A side polls while the other one connects. */
static void *poll_first(void *arg)
{
    struct trib_event e;

    (void)arg;
    while (polls_on) {
        (void)between.t[0]->ops->poll(between.t[0], &e, 1);
        usleep(100);
    }
    return NULL;
}

static void reach(int side, int other, const struct trib_address *address,
                  const struct trib_blob *region)
{
    const struct trib_transport_ops *ops = between.t[side]->ops;

    if (ops->connect(between.t[side], other, address) != TRIB_OK)
        fail_msg("side %d: %s", side, between.err.text);
    assert_ok(
        ops->import_region(between.t[side], other, region, &between.remote[side]));
}

static void set_ports(int devices, bool up)
{
    for (int device = 0; device < devices; device++)
        fake_verbs_port(device, 1, up);
}

/* The network fails after one side has connected and before the other does: then both
 * reach each other, over all rails. */
TEST(test_fails_between, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:rails=1", "verbs:rails=1,connect=gid",
                                        "verbs:rails=2"};

    for (int i = 0; i < 3; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        const struct trib_write w = {.imm = 0};
        struct trib_address address[2];
        struct trib_blob region[2];
        struct trib_event e;
        pthread_t thread;

        fake->inline_max = ENTRY;
        fake->devices = 2;
        fake->down_fails = true;
        memset(sides, 0, sizeof(sides));
        memset(&between, 0, sizeof(between));
        for (int k = 0; k < 2; k++) {
            struct trib_transport_opts opts = pair_opts(&between, k);
            assert_ok(trib_transport_open(texts[i], &opts, &between.t[k]));
            pair_offer(&between, k, &address[k], &region[k]);
        }
        be_patient(&between);
        reach(0, 1, &address[1], &region[1]);
        set_ports(2, false);
        assert_ok(between.t[0]->ops->write(between.t[0], 1, &w));
        while (!peer_of(&between, 0)->stranded_at)
            assert_int_equal(between.t[0]->ops->poll(between.t[0], &e, 1), 0);
        set_ports(2, true);
        polls_on = true;
        assert_int_equal(pthread_create(&thread, NULL, poll_first, NULL), 0);
        reach(1, 0, &address[0], &region[0]);
        polls_on = false;
        pthread_join(thread, NULL);
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        while (!between.t[1]->ops->poll(between.t[1], &e, 1)) {
            assert_int_equal(between.t[0]->ops->poll(between.t[0], &e, 1), 0);
            if (trib_deadline_passed(until))
                fail_msg("%s: the write does not arrive", texts[i]);
        }
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        await_rails(&between);
        run(&between, 50);
        pair_close(&between);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

static int refuse_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    (void)id, (void)param;
    errno = EINVAL;
    return -1;
}

/* A rail that never was connected does not return either: if the device of the other
 * one fails, the peer is lost at once. */
TEST(test_only_connected_rail_fails, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair;

    fake->inline_max = ENTRY;
    fake->hosts = fake->devices = 2;
    fake->down_fails = true;
    memset(sides, 0, sizeof(sides));
    memset(&pair, 0, sizeof(pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        fake_verbs_host(i);
        assert_ok(trib_transport_open("verbs:connect=rdmacm", &opts, &pair.t[i]));
        pair_offer(&pair, i, &address[i], &region[i]);
        inner_of_side(&pair, i, 1)->api.rdma_connect = refuse_connect;
    }
    fake_verbs_host(0);
    pair_connect(&pair, address, region);
    be_patient(&pair);
    run(&pair, 50);
    fake_verbs_async(0, IBV_EVENT_DEVICE_FATAL);
    const uint64_t begin = trib_now_ns();
    struct trib_event e = await_loss(&pair, 0);
    contains(e.why, "this host's RDMA device fake0 has failed");
    (void)await_loss(&pair, 1);
    assert_true(trib_now_ns() - begin < UINT64_C(30000000000)); /* of 60 s */
    pair_close(&pair);
}
