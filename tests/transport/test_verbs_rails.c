/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs over several devices: which ones, and one that fails.
 */
#include "tests/transport/pair.h"

#include "tests/harness/fake_verbs.h"
#include "transport/backends.h"
#include "transport/rails.h"

#define MESSAGES 300u

static int teardown(void **state)
{
    (void)state;
    int wrong = fake_verbs_mistakes() + fake_verbs_live();
    fake_verbs_reset();
    return wrong ? -1 : 0;
}

static int setup(void **state)
{
    (void)state;
    fake_verbs_reset()->devices = 2;
    return 0;
}

static void assert_route(struct pair *pair, int side, const char *why)
{
    struct trib_route route;

    pair->t[side]->ops->route(pair->t[side], !side, &route);
    assert_string_equal(route.name, "verbs");
    assert_string_equal(route.why, why);
}

/* Side 0 writes, side 1 reads; each message has its bytes, in order, once. */
static void exchange(struct pair *pair)
{
    struct trib_write w = {
        .local = pair->region[0], .remote = pair->remote[0], .len = 16, .signal = true};
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    uint32_t sent = 0, done = 0, got = 0;
    struct trib_event e;

    while (got < MESSAGES || done < MESSAGES) {
        if (trib_deadline_passed(until))
            fail_msg("stuck: sent %u, done %u, got %u", sent, done, got);
        w.local_off = w.remote_off = sent % 64 * 16;
        w.imm = sent;
        w.token = sent;
        memset(pair->mem[0] + w.local_off, (int)(1 + sent % 200), 16);
        if (sent < MESSAGES && sent - got < 60 && sent - done < 60 &&
            pair->t[0]->ops->write(pair->t[0], 1, &w) == TRIB_OK)
            sent++;
        if (pair->t[0]->ops->poll(pair->t[0], &e, 1)) {
            assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
            assert_int_equal(e.token, done++);
        }
        if (!pair->t[1]->ops->poll(pair->t[1], &e, 1))
            continue;
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.imm, got);
        for (uint32_t i = 0; i < 16; i++)
            assert_int_equal(pair->mem[1][got % 64 * 16 + i], 1 + got % 200);
        got++;
    }
}

static void test_all_devices(void **state)
{
    static const struct {
        int devices;
        const char *text, *why; /* why NULL: no rails */
    } cases[] = {
        {2, "verbs", "2 rails: fake0 fake1"},
        {4, "verbs", "4 rails: fake0 fake1 fake2 fake3"},
        {4, "verbs:rails=3", "3 rails: fake0 fake1 fake2"},
        {4, "verbs:device=fake3,fake1,depth=32", "2 rails: fake3 fake1"},
        {4, "verbs:device=fake2,fake3,fake1,rails=2", "2 rails: fake2 fake3"},
        {4, "verbs:device=fake2", NULL},
        {2, "verbs:rails=1", NULL},
        {1, "verbs", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair;
        fake_verbs_reset()->devices = cases[i].devices;
        pair_open(&pair, cases[i].text, cases[i].text);
        for (int side = 0; side < 2 && cases[i].why; side++)
            assert_route(&pair, side, cases[i].why);
        exchange(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_live(), 0);
    }
}

/* One device here, several there: the first of them. */
static void test_fewer(void **state)
{
    (void)state;
    for (int several = 0; several < 2; several++) {
        struct pair pair;
        pair_open(&pair, several ? "verbs" : "verbs:rails=1",
                  several ? "verbs:rails=1" : "verbs");
        assert_route(&pair, !several, "1 rail: fake0");
        exchange(&pair);
        pair_close(&pair);
    }
}

/* One device here, several there, not the first of which leads here: the connection
 * manager says so. */
static void test_another(void **state)
{
    static const char one[] = "verbs:device=fake1,connect=rdmacm";
    static const char all[] = "verbs:device=fake0,fake2,fake1,connect=rdmacm";

    (void)state;
    for (int several = 0; several < 2; several++) {
        struct pair pair;
        fake_verbs_reset()->devices = 3;
        pair_open(&pair, several ? all : one, several ? one : all);
        assert_route(&pair, !several, "1 rail: fake1");
        exchange(&pair);
        assert_int_equal(pair.lines, 0);
        pair_close(&pair);
    }
}

static void refuses(const char *text, const char *sentence)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    struct trib_transport *t = NULL;

    assert_status(trib_transport_open(text, &opts, &t), TRIB_ERR_CONFIG);
    if (!strstr(pair.err.text, sentence))
        fail_msg("\"%s\" gives \"%s\", not \"%s\"", text, pair.err.text, sentence);
}

static void test_wrong_lists(void **state)
{
    (void)state;
    refuses("verbs:device=fake0,fake0", "has fake0 twice");
    refuses("verbs:device=fake0,fake7", "no RDMA device is called \"fake7\"");
    refuses("verbs:device=a,b,c,d,e", "at most 4 names");
    refuses("verbs:rails=0", "not a whole number from 1 to 4");
    refuses("verbs:depth=64,fake0", "no parameter \"fake0\"");
}

/* A device that fails: with what is under way, and with nothing. */
static void test_lost_device(void **state)
{
    (void)state;
    /* Contexts in the order of their opening: both of side 0, both of side 1. */
    for (int context = 0; context < 4; context++) {
        struct pair pair;
        fake_verbs_reset()->devices = 2;
        pair_open(&pair, "verbs:device=fake0,fake1", "verbs:device=fake0,fake1");
        fake_verbs_hold(true);
        for (uint32_t i = 0; i < 5; i++) {
            struct trib_write w = {.imm = i};
            assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_OK);
        }
        fake_verbs_async(context, IBV_EVENT_DEVICE_FATAL);
        fake_verbs_hold(false);
        for (uint32_t i = 0; i < 5; i++) {
            struct trib_event e = {0};
            uint64_t until = trib_deadline_ms(tribtest_patience_ms());
            while (!pair.t[1]->ops->poll(pair.t[1], &e, 1) &&
                   !trib_deadline_passed(until))
                assert_int_equal(pair.t[0]->ops->poll(pair.t[0], &e, 1), 0);
            assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
            assert_int_equal(e.imm, i);
        }
        exchange(&pair);
        pair_close(&pair);
    }
}

/* A write that the device gives up, at each of the first ones. */
static void test_failed_write(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < 20; at++) {
        struct pair pair;
        fake_verbs_reset()->devices = 2;
        pair_open(&pair, "verbs", "verbs");
        for (uint32_t i = 0; i <= at; i++) {
            struct trib_write w = {.imm = i};
            if (i == at)
                fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
            assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_OK);
        }
        for (uint32_t i = 0; i <= at; i++) {
            struct trib_event e = {0};
            uint64_t until = trib_deadline_ms(tribtest_patience_ms());
            while (!pair.t[1]->ops->poll(pair.t[1], &e, 1) &&
                   !trib_deadline_passed(until))
                assert_int_equal(pair.t[0]->ops->poll(pair.t[0], &e, 1), 0);
            assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
            assert_int_equal(e.imm, i);
        }
        exchange(&pair);
        assert_route(&pair, 0,
                     at % 2 ? "2 rails: fake0 fake1 (lost)"
                            : "2 rails: fake0 (lost) fake1");
        pair_close(&pair);
    }
}

/* All connections end: that is the peer's death, told once. */
static void test_death(void **state)
{
    struct pair pair;
    struct trib_event e;

    (void)state;
    pair_open(&pair, "verbs", "verbs");
    fake_verbs_cut();
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_false(e.left);
    assert_non_null(strstr(e.why, "has died"));
    assert_int_equal(pair_poll(&pair, 0, 50, &e), 0);
    assert_int_equal(pair.lines, 0);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fewer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_write, setup, teardown),
        cmocka_unit_test_setup_teardown(test_death, setup, teardown),
    };

    tribtest_deadline(280);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
