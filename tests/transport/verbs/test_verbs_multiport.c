/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs over several devices and ports: which ones, and one that fails.
 */
#include "tests/transport/pair.h"

#include "tests/harness/fake_verbs.h"
#include "transport/backends.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs.h"

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

TEST(test_all_devices, setup, teardown)
{
    static const struct {
        int devices, ports;
        const char *text, *why; /* why NULL: no rails */
    } cases[] = {
        {2, 1, "verbs", "2 rails: fake0 fake1"},
        {4, 1, "verbs", "4 rails: fake0 fake1 fake2 fake3"},
        {8, 1, "verbs", "4 rails: fake0 fake1 fake2 fake3"},
        {8, 1, "verbs:rails=8",
         "8 rails: fake0 fake1 fake2 fake3 fake4 fake5 fake6 fake7"},
        {8, 1, "verbs:device=fake*,rails=6",
         "6 rails: fake0 fake1 fake2 fake3 fake4 fake5"},
        {8, 1, "verbs:device=fake5,fake4,fake3,fake2,fake1,rails=8",
         "5 rails: fake5 fake4 fake3 fake2 fake1"},
        {4, 2, "verbs:rails=8",
         "8 rails: fake0:1 fake1:1 fake2:1 fake3:1 fake0:2 fake1:2 fake2:2 fake3:2"},
        {4, 1, "verbs:rails=3", "3 rails: fake0 fake1 fake2"},
        {4, 1, "verbs:device=fake3,fake1,depth=32", "2 rails: fake3 fake1"},
        {4, 1, "verbs:device=fake2,fake3,fake1,rails=2", "2 rails: fake2 fake3"},
        {4, 1, "verbs:device=fake2", NULL},
        {2, 1, "verbs:rails=1", NULL},
        {1, 1, "verbs", NULL},
        {1, 2, "verbs", "2 rails: fake0:1 fake0:2"},
        {1, 2, "verbs:connect=gid", "2 rails: fake0:1 fake0:2"},
        {1, 2, "verbs:device=fake0:2,fake0:1,depth=32", "2 rails: fake0:2 fake0:1"},
        {1, 2, "verbs:device=fake0:2,fake0:1,connect=gid", "2 rails: fake0:2 fake0:1"},
        {2, 2, "verbs:device=fake1:2,fake0", "2 rails: fake1:2 fake0"},
        {3, 2, "verbs", "4 rails: fake0:1 fake1:1 fake2:1 fake0:2"},
        {1, 2, "verbs:device=fake0", NULL},
        {1, 2, "verbs:device=fake0:2", NULL},
        {1, 2, "verbs:rails=1", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        struct pair pair;
        fake->devices = cases[i].devices;
        fake->ports = cases[i].ports;
        pair_open(&pair, cases[i].text, cases[i].text);
        for (int side = 0; side < 2 && cases[i].why; side++)
            assert_route(&pair, side, cases[i].why);
        exchange(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_live(), 0);
    }
}

/* One device here, several there: the first of them. */
TEST(test_fewer, setup, teardown)
{
    for (int several = 0; several < 2; several++) {
        struct pair pair;
        pair_open(&pair, several ? "verbs" : "verbs:rails=1",
                  several ? "verbs:rails=1" : "verbs");
        assert_route(&pair, !several, "1 rail: fake0");
        exchange(&pair);
        pair_close(&pair);
    }
}

/* The rank with fewer rails decides how many there are, whichever way they connect. */
TEST(test_numbers_that_differ, setup, teardown)
{
    static const int numbers[] = {1, 3, 8};

    for (int i = 0; i < 18; i++) {
        const int n[2] = {numbers[i / 2 % 3], numbers[i / 6]};
        char text[2][64];
        struct pair pair;
        fake_verbs_reset()->devices = 8;
        for (int side = 0; side < 2; side++)
            snprintf(text[side], sizeof(text[side]), "verbs:rails=%d%s", n[side],
                     i % 2 ? ",connect=gid" : "");
        pair_open(&pair, text[0], text[1]);
        for (int side = 0; side < 2 && n[0] > 1 && n[1] > 1; side++)
            assert_route(
                &pair, side,
                n[0] == 8 && n[1] == 8
                    ? "8 rails: fake0 fake1 fake2 fake3 fake4 fake5 fake6 fake7"
                    : "3 rails: fake0 fake1 fake2");
        exchange(&pair);
        pair_close(&pair);
        assert_int_equal(fake_verbs_live(), 0);
    }
}

/* As many addresses are given away as there is room for, and the first of each rail. */
TEST(test_long_addresses, setup, teardown)
{
    struct trib_address whole, cut;
    struct pair pair;

    fake_verbs_reset()->devices = 8;
    pair_open(&pair, "verbs:rails=8", "verbs:rails=8");
    struct multirail *r = (struct multirail *)pair.t[0];
    assert_ok(pair.t[0]->ops->address(pair.t[0], &whole));
    assert_true(whole.len <= MULTIRAIL_ADDRESS_MAX);
    for (int k = 0; k < r->n; k++) { /* as different as can be */
        struct verbs *v = (struct verbs *)r->inner[k];
        v->n_ips = VERBS_ADDRESSES - 2;
        v->more_ips = 2;
        for (int i = 1; i < VERBS_ADDRESSES; i++)
            memset(&v->ip[i], 0x20 + k * VERBS_ADDRESSES + i, sizeof(v->ip[i]));
    }
    assert_ok(pair.t[0]->ops->address(pair.t[0], &cut));
    assert_true(cut.len <= MULTIRAIL_ADDRESS_MAX);
    for (int k = 0; k < r->n; k++) {
        struct verbs_address a;
        assert_int_equal(
            trib_multirail_nth((struct multirail_bytes){cut.bytes, cut.len},
                               sizeof(struct multirail_address), k, (uint8_t *)&a,
                               sizeof(a)),
            sizeof(a));
        assert_in_range(a.n + a.more, 3, VERBS_ADDRESSES - 1);
        assert_memory_equal(a.ip, ((struct verbs *)r->inner[k])->ip,
                            (size_t)(a.n + a.more) * sizeof(a.ip[0]));
    }
    exchange(&pair);
    pair_close(&pair);
}

/* One device here, several there, the first of which does not lead here: the connection
 * manager reports it. */
TEST(test_another, setup, teardown)
{
    static const char one[] = "verbs:device=fake1,connect=rdmacm";
    static const char all[] = "verbs:device=fake0,fake2,fake1,connect=rdmacm";

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

TEST(test_wrong_lists, setup, teardown)
{
    pair_refuses("verbs:device=fake0,fake0", TRIB_ERR_CONFIG, "lists fake0 twice");
    pair_refuses("verbs:device=fake0,fake7", TRIB_ERR_CONFIG,
                 "there is no RDMA device \"fake7\"");
    pair_refuses("verbs:device=a,b,c,d,e", TRIB_ERR_CONFIG,
                 "no RDMA device \"a\"; this host has fake0, fake1");
    pair_refuses("verbs:device=fake0:2,fake0:2", TRIB_ERR_CONFIG,
                 "lists fake0:2 twice");
    pair_refuses(
        "verbs:device=fake0:2,fake0", TRIB_ERR_CONFIG,
        "lists fake0:2 and fake0, which may be one port: name the ports, as in "
        "fake0:1,fake0:2");
    pair_refuses("verbs:device=fake0:2", TRIB_ERR_CONFIG,
                 "device=fake0:2: fake0 has 1 port");
    pair_refuses("verbs:device=fake0:1,fake1:255", TRIB_ERR_CONFIG,
                 "device=fake1:255: fake1 has 1 port");
    pair_refuses("verbs:device=fake0:0", TRIB_ERR_CONFIG,
                 "device=fake0:0 is neither a device nor a port");
    pair_refuses("verbs:device=fake0:256", TRIB_ERR_CONFIG, "fake0:256 is neither");
    pair_refuses("verbs:device=fake0:99999999999", TRIB_ERR_CONFIG,
                 "fake0:99999999999 is neither");
    pair_refuses("verbs:device=fake0:,fake1", TRIB_ERR_CONFIG,
                 "device=fake0: is neither");
    pair_refuses("verbs:device=fake0:1x", TRIB_ERR_CONFIG, "fake0:1x is neither");
    pair_refuses("verbs:device=:1", TRIB_ERR_CONFIG, "device=:1 is neither");
    pair_refuses("verbs:rails=0", TRIB_ERR_CONFIG, "not a whole number from 1 to 8");
    pair_refuses("verbs:depth=64,fake0", TRIB_ERR_CONFIG, "no parameter \"fake0\"");
}

/* Each port of a device carries half. A write of the caller's is one request. */
static void assert_spread(int before[2])
{
    for (int port = 1; port <= 2; port++) {
        int carried = fake_verbs_carried(0, port) - before[port - 1];
        assert_in_range(carried, MESSAGES / 2, MESSAGES / 2 + 40);
    }
}

TEST(test_ports, setup, teardown)
{
    static const char *const texts[] = {"verbs", "verbs:device=fake0:1,fake0:2",
                                        "verbs:connect=gid", "verbs:connect=rdmacm"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        struct pair pair;
        fake->ports = 2;
        pair_open(&pair, texts[i], texts[i]);
        int before[2] = {fake_verbs_carried(0, 1), fake_verbs_carried(0, 2)};
        exchange(&pair);
        assert_spread(before);
        if (i != 2) /* a caller by GIDs returns the reason */
            assert_int_equal(pair.lines, 0);
        pair_close(&pair);
    }
}

/* One port here, both there: the peer's writes come by whichever leads here. */
TEST(test_fewer_ports, setup, teardown)
{
    static const char *const one[] = {"verbs:device=fake0:2", "verbs:rails=1",
                                      "verbs:device=fake0:2,connect=rdmacm"};

    for (int i = 0; i < 6; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        bool several = i % 2;
        struct pair pair;
        fake->ports = 2;
        pair_open(&pair, several ? "verbs" : one[i / 2],
                  several ? one[i / 2] : "verbs");
        exchange(&pair);
        pair_close(&pair);
    }
}

/* A port that is down from the start: without a name it is left out, with one it is an
 * error. So is one that peers are not reached over. */
TEST(test_idle_port, setup, teardown)
{
    struct pair pair;

    for (int i = 0; i < 2; i++) {
        const char *all = i ? "verbs:connect=gid" : "verbs";
        struct fake_verbs_opts *fake = fake_verbs_reset();
        fake->devices = fake->ports = 2;
        fake_verbs_port(0, 1, false);
        fake_verbs_port(1, 2, false);
        pair_open(&pair, all, all);
        assert_route(&pair, 0, "2 rails: fake0 fake1");
        exchange(&pair);
        assert_int_equal(fake_verbs_carried(0, 1), 0);
        pair_close(&pair);
        for (int named = 0; named < 2; named++) {
            struct trib_transport_opts opts = pair_opts(&pair, 0);
            struct trib_transport *t = NULL;
            trib_error_clear(&pair.err);
            assert_status(trib_transport_open(named ? "verbs:device=fake0:1,connect=gid"
                                                    : "verbs:device=fake0:2,fake0:1",
                                              &opts, &t),
                          TRIB_ERR_UNSUPPORTED);
            assert_non_null(strstr(pair.err.text, "port 1 of fake0 is not active"));
        }
    }
}

/* The network leads to a peer's port 1 over port 2: this rank uses that one or not, and
 * the peer refuses it. Calls by GIDs keep to the port. */
TEST(test_other_port, setup, teardown)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"verbs:device=fake0:1,connect=rdmacm",
         "the route uses fake0:2, but this rank uses fake0:1"},
        {"verbs:rails=1,connect=rdmacm",
         "the route uses fake0:2, but this rank uses fake0:1"},
        {"verbs:device=fake0:1", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        struct trib_address address;
        struct pair pair = {0};
        fake->ports = 2;
        fake->other_port = true;
        for (int side = 0; side < 2; side++) {
            struct trib_transport_opts opts = pair_opts(&pair, side);
            const char *text = side ? "verbs:device=fake0:1" : cases[i].text;
            assert_status(trib_transport_open(text, &opts, &pair.t[side]), TRIB_OK);
        }
        assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
        assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address),
                      cases[i].why ? TRIB_ERR_PEER_LOST : TRIB_OK);
        if (cases[i].why && !strstr(pair.err.text, cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", pair.err.text, cases[i].why);
        assert_int_equal(fake_verbs_carried(0, 2), 0);
        pair_close(&pair);
    }
}

/* A port goes down while writes are pending: they move to the other port, and each side
 * logs its own port. */
TEST(test_lost_port, setup, teardown)
{
    for (int i = 0; i < 4; i++) {
        const char *text = i / 2 ? "verbs:connect=gid" : "verbs:device=fake0:1,fake0:2";
        struct fake_verbs_opts *fake = fake_verbs_reset();
        int port = 1 + i % 2;
        struct pair pair;
        fake->ports = 2;
        pair_open(&pair, text, text);
        exchange(&pair);
        fake_verbs_port(0, port, false);
        int before = fake_verbs_carried(0, port);
        exchange(&pair);
        assert_int_equal(fake_verbs_carried(0, port), before);
        assert_route(&pair, 0,
                     port == 1 ? "2 rails: fake0:1 (lost) fake0:2"
                               : "2 rails: fake0:1 fake0:2 (lost)");
        fake_verbs_port(0, port, true);
        exchange(&pair);
        pair_close(&pair);
    }
}

/* Events of a device's other port are not for this one. */
TEST(test_port_events, setup, teardown)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 2; i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        struct pair pair;
        fake->ports = 2;
        pair_open(&pair, "verbs:device=fake0:1", "verbs:device=fake0:1");
        fake_verbs_port(0, 2 - i, false);
        while (fake_verbs_async_waits(0))
            nanosleep(&pause, NULL);
        pair_close(&pair); /* ends the threads that log */
        assert_int_equal(pair.lines, i ? 2 : 0);
        if (i)
            assert_non_null(strstr(pair.logged, "port 1 of fake0 is down"));
    }
}

TEST(test_devices_text, setup, teardown)
{
    static const struct {
        int devices, ports;
        const char *text;
    } cases[] = {
        {1, 1, "fake0 100 Gbit/s (by librdmacm)"},
        {2, 1, "fake0 100 Gbit/s, fake1 100 Gbit/s (by librdmacm)"},
        {2, 2,
         "fake0:1 100 Gbit/s, fake1:1 100 Gbit/s, fake0:2 100 Gbit/s, fake1:2 100 "
         "Gbit/s (by librdmacm)"},
    };
    char text[200];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        fake->devices = cases[i].devices;
        fake->ports = cases[i].ports;
        trib_verbs_ops.devices("", text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
    fake_verbs_reset();
    trib_verbs_ops.devices("cache=64", text, sizeof(text));
    assert_string_equal(
        text, "fake0 100 Gbit/s (by librdmacm), registration cache of 64 MiB");
}

/* The writes 0 … n - 1 of side 0 arrive in their order; nothing else happens to it. */
static void assert_arrive(struct pair *pair, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct trib_event e = {0};
        uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        while (!pair->t[1]->ops->poll(pair->t[1], &e, 1) &&
               !trib_deadline_passed(until))
            assert_int_equal(pair->t[0]->ops->poll(pair->t[0], &e, 1), 0);
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.imm, i);
    }
}

/* A device that fails: with pending writes, and with none. */
TEST(test_lost_device, setup, teardown)
{
    for (int context = 0; context < 10; context++) { /* of fake0, fake1, … */
        const char *text = context < 2 ? "verbs:device=fake0,fake1" : "verbs:rails=8";
        struct pair pair;
        fake_verbs_reset()->devices = context < 2 ? 2 : 8;
        pair_open(&pair, text, text);
        fake_verbs_hold(true);
        for (uint32_t i = 0; i < 5; i++) {
            struct trib_write w = {.imm = i};
            assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_OK);
        }
        fake_verbs_async(context < 2 ? context : context - 2, IBV_EVENT_DEVICE_FATAL);
        fake_verbs_hold(false);
        assert_arrive(&pair, 5);
        exchange(&pair);
        pair_close(&pair);
    }
}

/* The device fails a write, each of the first ones in turn. */
TEST(test_failed_write, setup, teardown)
{
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
        assert_arrive(&pair, at + 1);
        exchange(&pair);
        const struct multirail *r = (const struct multirail *)pair.t[0];
        assert_true(r->peers[1].dead == 1 + at % 2 || r->peers[1].generation);
        pair_close(&pair);
    }
}

/* All connections end: that is the peer's death, told once. */
TEST(test_death, setup, teardown)
{
    struct pair pair;
    struct trib_event e;

    struct fake_verbs_opts *fake = fake_verbs_reset();
    fake->devices = 2;
    pair_open(&pair, "verbs:connect=rdmacm", "verbs:connect=rdmacm");
    fake->reject = 8; /* no process listens */
    fake_verbs_cut();
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_false(e.left);
    assert_non_null(strstr(e.why, "closed its connection"));
    assert_int_equal(pair_poll(&pair, 0, 50, &e), 0);
    pair_close(&pair);
}
