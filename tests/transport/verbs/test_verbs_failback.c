/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: rails that were lost come back. Whatever fails in between, each message comes
 * once, in order, with its bytes.
 */
#include "tests/transport/verbs/failback_rig.h"

#include <errno.h>
#include <pthread.h>

/* A port that was down and is up again carries its share, whichever way connects. */
TEST(test_port_returns, clean, nothing_left)
{
    static const char *const texts[] = {"verbs", "verbs:connect=gid"};

    for (int i = 0; i < 4; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();

        fake->inline_max = ENTRY;
        const int device = i % 2;
        struct trib_route route;
        struct pair pair;
        fake->devices = 2;
        open_rails(&pair, texts[i / 2]);
        run(&pair, 50);
        fake_verbs_port(device, 1, false);
        run(&pair, 200);
        assert_int_equal(peer_of(&pair, 0)->dead, 1 << device);
        fake_verbs_port(device, 1, true);
        await_rails(&pair);
        const int before = fake_verbs_carried(device, 1);
        run(&pair, 100);
        assert_true(fake_verbs_carried(device, 1) - before >= 50);
        pair.t[0]->ops->route(pair.t[0], 1, &route);
        assert_string_equal(route.why, "2 rails: fake0 fake1");
        assert_true(pair_has_logged(&pair, "again: 2 of 2 rails carry its writes"));
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* A queue pair that fails is made again, as often as it fails. */
TEST(test_again_and_again, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        open_devices(&pair, 1 + i % 2, i / 2 ? "verbs:connect=gid" : "verbs");
        be_patient(&pair);
        for (int round = 0; round < 4; round++) {
            run(&pair, 20 + (uint32_t)round);
            fake_verbs_fail(round % 2 ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_RETRY_EXC_ERR);
            run(&pair, 20);
            assert_true(peer_of(&pair, 0)->dead || peer_of(&pair, 0)->generation);
            await_rails(&pair);
            assert_int_equal(peer_of(&pair, 0)->generation,
                             peer_of(&pair, 1)->generation);
        }
        run(&pair, 100);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Rails fail at any time, also while others return. */
TEST(test_any_time, clean, nothing_left)
{
    uint32_t drawn = 0;

    static const char *const texts[] = {"verbs",         "verbs:connect=gid",
                                        "verbs",         "verbs",
                                        "verbs:rails=8", "verbs:rails=8,connect=gid"};

    for (uint32_t seed = 0; seed < 6; seed++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();

        fake->inline_max = ENTRY;
        struct pair pair;
        fake->devices = seed == 3 ? 1 : seed < 3 ? 4 : 8;
        fake->srq_errno = seed == 2 ? EOPNOTSUPP : 0;
        open_rails(&pair, texts[seed]);
        be_patient(&pair);
        for (int failures = 0; failures < 8;) {
            run(&pair, 1 + draw_u32((struct trib_rng){.seed = seed}, drawn++) % 300);
            const unsigned lost = peer_of(&pair, 0)->dead | peer_of(&pair, 0)->failing |
                                  peer_of(&pair, 1)->dead | peer_of(&pair, 1)->failing;
            if (__builtin_popcount(lost) > 1)
                continue;
            fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
            failures++;
        }
        await_rails(&pair);
        run(&pair, 100);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Of eight rails, seven are lost and come back, then all. Both ends agree on each
 * set. */
TEST(test_eight_rails, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:rails=8", "verbs:rails=8,connect=gid"};
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        const int stays = i % 2 ? 7 : 0;
        open_devices(&pair, 8, texts[i / 2]);
        be_patient(&pair);
        for (int device = 0; device < 8; device++)
            if (device != stays)
                fake_verbs_port(device, 1, false);
        run(&pair, 200);
        assert_int_equal(peer_of(&pair, 0)->dead, 0xff & ~(1 << stays));
        for (int device = 0; device < 8; device++)
            fake_verbs_port(device, 1, true);
        await_rails(&pair);
        strand(&pair); /* all of them */
        for (int device = 0; device < 8; device++)
            fake_verbs_port(device, 1, true);
        run(&pair, 100);
        await_rails(&pair);
        const int before = fake_verbs_carried(7, 1);
        run(&pair, 160);
        assert_true(fake_verbs_carried(7, 1) - before >= 20);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* All ports are down for a while: the job continues over the ports that return. */
TEST(test_last_rail, clean, nothing_left)
{
    static const char *const texts[] = {"verbs", "verbs:connect=gid"};
    struct pair pair;

    for (int i = 0; i < 6; i++) {
        const int devices = 1 + (i >= 2);
        open_devices(&pair, devices, texts[i % 2]);
        be_patient(&pair);
        if (i >= 4) {
            fake_verbs_port(0, 1, false);
            run(&pair, 100);
        }
        strand(&pair);
        fake_verbs_port(devices - 1, 1, true);
        run(&pair, 100);
        fake_verbs_port(0, 1, true);
        await_rails(&pair);
        run(&pair, 100);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* One side has one port and the other several. Their only rail is connected again
 * after each failure, by either end, by librdmacm and by GIDs. */
TEST(test_one_port_and_several, clean, nothing_left)
{
    static const char *const one[] = {"verbs:device=fake1,connect=rdmacm",
                                      "verbs:device=fake1,connect=gid"};
    static const char *const all[] = {"verbs:device=fake0,fake2,fake1,connect=rdmacm",
                                      "verbs:connect=gid"};

    for (int i = 0; i < 4; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        const char *const texts[] = {one[i / 2], all[i / 2]};
        struct pair pair;

        fake->inline_max = ENTRY;
        fake->devices = 3;
        fake->down_fails = true;
        open_unlike(&pair, texts[i % 2], texts[1 - i % 2]);
        be_patient(&pair);
        run(&pair, 50);
        fake_verbs_fail(i % 2 ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_RETRY_EXC_ERR);
        run(&pair, 50);
        await_rails(&pair);
        strand(&pair);
        for (int device = 0; device < 3; device++)
            fake_verbs_port(device, 1, true);
        run(&pair, 50);
        await_rails(&pair);
        assert_int_equal(peer_of(&pair, 0)->generation, peer_of(&pair, 1)->generation);
        assert_true(pair_has_logged(&pair, "reaches rank"));
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

static bool is_fake1(struct trib_transport *inner, const struct trib_address *address)
{
    (void)address;
    return strcmp(((struct verbs *)inner)->device, "fake1") == 0;
}

static void await_loss(struct pair *pair, int side)
{
    struct trib_event e = {.kind = TRIB_EVENT_ARRIVED};

    while (e.kind != TRIB_EVENT_PEER_LOST)
        assert_int_equal(pair_await(pair, side, &e), 1);
}

/* The side with two ports writes over one, and is written to over the other: neither
 * leads both ways, so the connection does not come back, and both sides say so. */
TEST(test_crossed, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:connect=gid",
                                        "verbs:device=fake0,connect=gid"};
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair = {0};

    fake_verbs_reset()->devices = 2;
    memset(sides, 0, sizeof(sides));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open(texts[i], &opts, &pair.t[i]));
        pair_offer(&pair, i, &address[i], &region[i]);
    }
    ((struct multirail *)pair.t[0])->same_net = is_fake1;
    pair_connect(&pair, address, region);
    be_patient(&pair);
    run(&pair, 50);
    assert_true(peer_of(&pair, 0)->crossed);
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &(struct trib_write){.imm = 7}));
    await_loss(&pair, 0);
    await_loss(&pair, 1);
    pair_close(&pair);
}

/* With reconnect=0 the failure of the only connection is the loss of the peer. */
TEST(test_no_reconnect, clean, nothing_left)
{
    struct pair pair;

    (void)fake_verbs_reset();
    pair_open(&pair, "verbs:reconnect=0", "verbs:reconnect=0");
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &(struct trib_write){.imm = 7}));
    expect_loss(&pair, 0, "retries exceeded");
    assert_false(pair_has_logged(&pair, "connect again"));
    pair_close(&pair);
}

/* The only port that came back goes down again before a message was acknowledged. */
TEST(test_flaps, clean, nothing_left)
{
    struct pair pair;

    open_devices(&pair, 2, "verbs");
    be_patient(&pair);
    for (int flap = 0; flap < 2; flap++) {
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        const uint8_t generation = peer_of(&pair, 0)->generation;
        strand(&pair);
        fake_verbs_port(1, 1, true);
        while (peer_of(&pair, 0)->generation == generation &&
               !trib_deadline_passed(until)) {
            poll_one(&pair, 0);
            poll_one(&pair, 1);
        }
        assert_int_not_equal(peer_of(&pair, 0)->generation, generation);
    }
    run(&pair, 100);
    fake_verbs_port(0, 1, true);
    await_rails(&pair);
    pair_close(&pair);
}

/* Rails that have failed often wait long between attempts, but not if none is left. */
TEST(test_last_rail_failed_often, clean, nothing_left)
{
    struct pair pair;

    for (int n = 1; n <= 2; n++) {
        open_devices(&pair, n, "verbs");
        for (int side = 0; side < 2; side++) {
            ((struct multirail *)pair.t[side])->timeout_ns = UINT64_C(5000000000);
            for (int device = 0; device < n; device++)
                inner_of_side(&pair, side, device)->peers[!side].pause_ms = 30000;
        }
        strand(&pair);
        for (int device = 0; device < n; device++)
            fake_verbs_port(device, 1, true);
        run(&pair, 100);
        pair_close(&pair);
    }
}

/* The peer's connection ends while this rank connects: the rail is tried again. */
TEST(test_inlet_ends_meanwhile, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->inline_max = ENTRY;
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct verbs *v = NULL;
    struct pair pair;

    fake->devices = 2;
    open_rails(&pair, "verbs");
    run(&pair, 20);
    fake_verbs_port(1, 1, false);
    run(&pair, 200);
    assert_int_equal(peer_of(&pair, 0)->dead, 2);
    fake_verbs_port(1, 1, true);
    v = inner_of_side(&pair, 0, 1);
    const struct verbs_revival *a = &v->revivals[0];
    while (!(a->running && a->finished && a->result == VERBS_ATTEMPT_CONNECTED)) {
        if (!a->running || a->finished)
            poll_one(&pair, 0);
        poll_one(&pair, 1);
        if (trib_deadline_passed(until))
            fail_msg("no attempt connects");
    }
    pthread_mutex_lock(&v->links);
    v->peers[1].gone = true; /* as the thread of the manager does */
    trib_verbs_wake_owner(v);
    pthread_mutex_unlock(&v->links);
    await_rails(&pair);
    run(&pair, 100);
    pair_close(&pair);
}

/* Side 0 loses the only connection and reconnects, but side 1 computes and does not
 * poll. Each answer of its process restarts side 0's time limit. In half of the cases
 * side 1 does not learn that the connection has ended. */
TEST(test_peer_computes, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        open_devices(&pair, 1, i / 2 ? "verbs:connect=gid" : "verbs");
        be_patient(&pair);
        fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
        send_one(&pair, 0);
        while (!peer_of(&pair, 0)->stranded_at)
            poll_one(&pair, 0);
        struct verbs *v = inner_of_side(&pair, 1, 0);
        for (int answers = 0; answers < 3; answers++) {
            const uint64_t since = peer_of(&pair, 0)->stranded_at;
            while (peer_of(&pair, 0)->stranded_at == since)
                poll_one(&pair, 0);
            pthread_mutex_lock(&v->links);
            v->peers[0].gone &= i % 2 == 0;
            pthread_mutex_unlock(&v->links);
        }
        run(&pair, 100);
        await_rails(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* The peer keeps writing over the other direction until this rank's queue pairs are
 * stopped. What its device was told to have arrived counts as arrived. */
static struct pair *written_meanwhile;
static pthread_t owner; /* the threads of attempts stop abandoned queue pairs */
static int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static int write_and_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    const bool stops = attr->qp_state == IBV_QPS_ERR;

    for (int i = 0; stops && pthread_equal(pthread_self(), owner) && i < 4; i++)
        send_one(written_meanwhile, 1);
    return modify_qp(qp, attr, mask);
}

TEST(test_peer_writes_meanwhile, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        open_devices(&pair, 1 + i / 2, i % 2 ? "verbs:connect=gid" : "verbs");
        be_patient(&pair);
        written_meanwhile = &pair;
        owner = pthread_self();
        for (int device = 0; device <= i / 2; device++) {
            struct trib_verbs_api *api = &inner_of_side(&pair, 0, device)->api;
            modify_qp = api->ibv_modify_qp;
            api->ibv_modify_qp = write_and_modify;
        }
        fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
        send_one(&pair, 0);
        run(&pair, 100);
        await_rails(&pair);
        run(&pair, 100);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Poll one side; the first request that it posts fails. */
static void poll_and_fail(struct pair *pair, int side)
{
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    poll_one(pair, side);
    fake_verbs_fail(IBV_WC_SUCCESS);
}

/* The notice that the only rail is connected again is lost with that connection. */
TEST(test_notice_is_lost, clean, nothing_left)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        const int side = i % 2;
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        const struct multirail_peer *p;
        open_devices(&pair, 1 + i / 2, "verbs");
        be_patient(&pair);
        p = peer_of(&pair, side);
        strand(&pair);
        fake_verbs_port(0, 1, true);
        const uint8_t generation = p->generation;
        while (!p->up && p->generation == generation && !trib_deadline_passed(until)) {
            poll_one(&pair, !side);
            poll_and_fail(&pair, side);
        }
        run(&pair, 100);
        fake_verbs_port(i / 2, 1, true);
        await_rails(&pair);
        pair_close(&pair);
    }
}

/* Requests fail at any time while the last rail returns. */
TEST(test_fails_while_it_returns, clean, nothing_left)
{
    for (uint32_t seed = 0; seed < 6; seed++) {
        const struct trib_rng rng = {.seed = seed};
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        uint32_t drawn = 0;
        struct pair pair;

        open_devices(&pair, 1 + (int)seed / 2 % 2,
                     seed % 2 ? "verbs:connect=gid" : "verbs");
        be_patient(&pair);
        strand(&pair);
        fake_verbs_port(0, 1, true);
        fake_verbs_port(((struct multirail *)pair.t[0])->n - 1, 1, true);
        for (int failures = 0; failures < 4 && !trib_deadline_passed(until);) {
            const int side = (int)(draw_u32(rng, drawn++) % 2);
            const int before = fake_verbs_posted().sends;
            if (draw_u32(rng, drawn++) % 2)
                poll_one(&pair, side);
            else
                poll_and_fail(&pair, side);
            failures += fake_verbs_posted().sends != before;
        }
        run(&pair, 100);
        await_rails(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Poll until this side proves its new connection by GIDs. */
static void await_proof(struct pair *pair, int side)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!inner_of_side(pair, side, 0)->peers[!side].prove_until) {
        poll_one(pair, 0);
        poll_one(pair, 1);
        if (trib_deadline_passed(until))
            fail_msg("side %d proves no connection", side);
    }
}

/* The last rail is connected again, but no packet gets through at first: that is a
 * failure of the network as before, and the rail is tried again. */
TEST(test_proof_fails, clean, nothing_left)
{
    for (int side = 0; side < 2; side++) {
        struct pair pair;

        open_devices(&pair, 1, "verbs:connect=gid");
        be_patient(&pair);
        strand(&pair);
        fake_verbs_hold(true);
        fake_verbs_port(0, 1, true);
        await_proof(&pair, side);
        const struct trib_peer_base *p =
            &inner_of_side(&pair, side, 0)->peers[!side].base;
        while (p->state == TRIB_PEER_CONNECTED)
            poll_one(&pair, side);
        fake_verbs_hold(false);
        run(&pair, 100);
        await_rails(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* No port comes back: the peer is lost after the limit. */
TEST(test_no_rail_returns, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    for (int n = 1; n <= 2; n++) {
        open_devices(&pair, n, "verbs");
        for (int device = 0; device < n; device++)
            fake_verbs_port(device, 1, false);
        send_one(&pair, 0);
        send_one(&pair, 0);
        do
            assert_int_equal(pair_await(&pair, 0, &e), 1);
        while (e.kind != TRIB_EVENT_PEER_LOST);
        contains(e.why, "retries exceeded");
        pair_close(&pair);
    }
}

/* Memory that was imported while a rail was lost is reached over it once it is back. */
TEST(test_imported_meanwhile, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->inline_max = ENTRY;
    struct trib_blob blob;
    struct pair pair;

    fake->devices = 2;
    open_rails(&pair, "verbs");
    run(&pair, 20);
    fake_verbs_port(1, 1, false);
    run(&pair, 200);
    assert_int_equal(peer_of(&pair, 0)->dead, 2);
    for (int i = 0; i < 2; i++) {
        struct trib_transport *t = pair.t[!i];
        assert_ok(t->ops->export_region(t, pair.region[!i], &blob));
        pair.t[i]->ops->release(pair.t[i], pair.remote[i]);
        assert_ok(pair.t[i]->ops->import_region(pair.t[i], !i, &blob, &pair.remote[i]));
    }
    run(&pair, 50);
    fake_verbs_port(1, 1, true);
    await_rails(&pair);
    const int before = fake_verbs_carried(1, 1);
    run(&pair, 100);
    assert_true(fake_verbs_carried(1, 1) - before >= 50);
    pair_close(&pair);
}

/* Closing in the middle of an attempt. */
TEST(test_close_meanwhile, clean, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->inline_max = ENTRY;
    struct pair pair;

    fake->devices = 2;
    open_rails(&pair, "verbs");
    run(&pair, 20);
    fake->deaf = true;
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    const struct verbs_revival *a[2];
    for (int i = 0; i < 2; i++)
        a[i] =
            &((struct verbs *)((struct multirail *)pair.t[0])->inner[i])->revivals[0];
    while (!a[0]->running && !a[1]->running && !trib_deadline_passed(until))
        step(&pair);
    assert_true(a[0]->running || a[1]->running);
    pair_close(&pair);
}
