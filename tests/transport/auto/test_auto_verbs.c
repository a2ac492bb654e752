/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs among the choices of "auto", over a device in memory: it is taken where it
 * connects, and whatever is in its way is a reason to go by tcp and no error.
 */
#include "tests/transport/auto/auto_verbs_rig.h"

#include <errno.h>

#include "transport/tcp/tcp.h"

TEST(test_chosen, clean, nothing_left)
{
    static const struct {
        const char *text, *name, *why;
    } cases[] = {
        {FAR, "verbs", "another host"},
        {"auto", "shm", "same host"},
        {"auto:near=verbs", "verbs", "shm: not selected"},
        {"auto:far=verbs,ranks_per_host=1", "verbs", "another host"},
        {"auto:far=tcp,ranks_per_host=1", "tcp", "verbs: not selected"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair;
        pair_open(&pair, cases[i].text, cases[i].text);
        assert_route(&pair, 0, cases[i].name, cases[i].why);
        assert_route(&pair, 1, cases[i].name, cases[i].why);
        assert_works(&pair);
        assert_ends_well(&pair);
        assert_int_equal(pair.lines, 0);
    }
}

/* A host without a device, or without the libraries, is no news. */
TEST(test_no_device, clean, nothing_left)
{
    struct pair pair;

    fake_verbs_reset()->devices = 0;
    pair_open(&pair, FAR, FAR);
    assert_route(&pair, 0, "tcp", "another host; verbs: this host has no RDMA device");
    assert_works(&pair);
    pair_close(&pair);
    fake_verbs_reset()->no_library = true;
    pair_open(&pair, FAR, FAR);
    assert_route(&pair, 1, "tcp", "verbs: libibverbs.so.1: cannot open shared object");
    pair_close(&pair);
    assert_int_equal(pair.lines, 0);
}

static void exchange_caps(struct pair *pair, const struct trib_address address[2])
{
    uint32_t caps[2];

    for (int side = 1; side >= 0; side--)
        assert_ok(pair->t[side]->ops->caps(pair->t[side], address, &caps[side]));
    for (int side = 0; side < 2; side++)
        pair->t[side]->ops->agree(pair->t[side], caps);
}

/* A host without any device, where the user has named some: its adapter may have
 * failed. */
TEST(test_named_device_is_gone, clean, nothing_left)
{
    static const struct {
        const char *text;
        int lines;
    } cases[] = {
        {FAR ",device=mlx5_0", 1},
        {FAR ",device=mlx5_*", 1},
        {FAR ",device=^mlx5_0", 0},
        {FAR ",rails=1", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_address address[2];
        struct trib_blob region[2];
        struct pair pair;
        fake_verbs_reset()->devices = 0;
        open_apart(&pair, cases[i].text, address, region);
        pair.lines = 0;
        exchange_caps(&pair, address);
        assert_int_equal(pair.lines, cases[i].lines);
        if (cases[i].lines)
            contains(pair.logged, "tcp is used for ranks of other hosts instead of "
                                  "verbs: this host has no RDMA device");
        pair_close(&pair);
    }
}

/* A device that cannot be used: the job goes by tcp, and the first rank of the host
 * warns, by cause and cure, if ranks of other hosts are reached. */
TEST(test_unfit, clean, nothing_left)
{
    static const char *const texts[] = {FAR, "auto", "auto:far=tcp,ranks_per_host=1"};
    static const char *const whys[] = {
        "fake0 is an iWARP device",
        "libibverbs.so.1: cannot open shared object file; install rdma-core",
        "port 1 of fake0 is not active: check its cable",
        "fake0 cannot be opened: Resource temporarily unavailable; the RDMA limit of "
        "this process's cgroup is reached: raise hca_handle",
        "no RDMA port of this host can be used: fake0 (no address selected by gid=",
    };

    for (int lack = 0; lack < 5; lack++) {
        for (int i = 0; i < 3; i++) {
            struct fake_verbs_opts *opts = fake_verbs_reset();
            struct trib_address address[2];
            struct trib_blob region[2];
            struct pair pair;
            char text[64];
            opts->iwarp = lack == 0;
            opts->no_library = lack == 1;
            opts->port_down = lack == 2;
            opts->open_errno = lack == 3 ? EAGAIN : 0;
            snprintf(text, sizeof(text), "%s%s", texts[i],
                     lack < 4 ? ""
                     : i == 1 ? ":gid=99"
                              : ",gid=99");
            open_apart(&pair, text, address, region);
            pair.lines = 0;
            exchange_caps(&pair, address);
            assert_int_equal(pair.lines, i == 0); /* rank 0's */
            if (i == 0) {
                contains(pair.logged,
                         "tcp is used for ranks of other hosts instead of verbs: ");
                contains(pair.logged, whys[lack]);
            }
            join(&pair, 0, address, region);
            join(&pair, 1, address, region);
            assert_works(&pair);
            pair_close(&pair);
        }
    }
}

/* A device that opens, but all connections fail: the first rank of the host warns. */
TEST(test_falls_back, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair;

    opts->no_gid_query = true;
    open_apart(&pair, FAR, address, region);
    pair.log.level = TRIB_LOG_WARN;
    exchange_caps(&pair, address);
    opts->reject = 24;
    join(&pair, 0, address, region);
    join(&pair, 1, address, region);
    assert_int_equal(pair.lines, 1); /* rank 0's */
    contains(pair.logged, "peer 1 is not reached by verbs");
    assert_works(&pair);
    pair_close(&pair);
}

static void set_trouble(struct fake_verbs_opts *opts, int which)
{
    opts->devices = which == 4 ? 2 : 1;
    opts->reject = which == 1 ? 24 : 0;
    opts->address_errors = which == 2;
    opts->qp_errno = which == 3 ? ENOMEM : 0;
    opts->other_device = which == 4;
    opts->half_way = which == 5;
    opts->deaf = which == 6;
}

/* Whatever ends the handshake, the pair goes by tcp, and the reason is kept. */
TEST(test_handshake_fails, clean, nothing_left)
{
    static const char *const reasons[] = {
        NULL,
        "librdmacm reason 24",
        "no RDMA device of this host reaches it",
        "cannot create a queue pair of 128 requests",
        "the route uses fake1, but this rank uses fake0",
        "rdma_establish: Invalid argument",
        " s; with RoCE, UDP port 4791 must be",
    };

    for (int which = 1; which <= 6; which++) {
        struct fake_verbs_opts *opts = fake_verbs_reset();
        struct trib_address address[2];
        struct trib_blob region[2];
        struct pair pair;
        opts->no_gid_query = true;
        open_apart(&pair, FAR, address, region);
        set_trouble(opts, which);
        join(&pair, 0, address, region);
        join(&pair, 1, address, region);
        for (int side = 0; side < 2; side++) {
            assert_route(&pair, side, "tcp", "verbs: at 127.9.");
            struct trib_route r;
            pair.t[side]->ops->route(pair.t[side], !side, &r);
            contains(r.why, reasons[which]);
        }
        assert_int_equal(pair.lines, 2); /* of each side one */
        contains(pair.logged, "is not reached by verbs, falling back to the next");
        assert_works(&pair);
        assert_ends_well(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* One end goes by tcp, the other by verbs: all arrives, and before the loss. */
TEST(test_ways_that_differ, clean, nothing_left)
{
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair;

    for (int by_tcp = 0; by_tcp < 2; by_tcp++) {
        struct fake_verbs_opts *opts = fake_verbs_reset();
        opts->no_gid_query = true;
        open_apart(&pair, FAR, address, region);
        join(&pair, !by_tcp, address, region);
        opts->reject = 24;
        join(&pair, by_tcp, address, region);
        assert_route(&pair, by_tcp, "tcp", "reason 24");
        assert_route(&pair, !by_tcp, "verbs", "another host");
        for (int i = 0; i < 3; i++)
            assert_works(&pair);
        assert_ends_well(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Transports that a test can delay, and that record the order in which they end. */
static struct {
    const struct trib_transport *held; /* its poll finds nothing */
    char order[8];
    struct trib_transport_ops verbs, tcp;
} noted;

static void note(char what)
{
    size_t n = strlen(noted.order);

    if (n + 1 < sizeof(noted.order))
        noted.order[n] = what;
}

static trib_status_t noted_open(const struct trib_transport_opts *opts,
                                struct trib_transport **out)
{
    trib_status_t status = trib_tcp_ops.open(opts, out);

    if (status == TRIB_OK)
        (*out)->ops = &noted.tcp;
    return status;
}

static int noted_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    return t == noted.held ? 0 : trib_tcp_ops.poll(t, events, max);
}

static void noted_disconnect(struct trib_transport *t, int peer)
{
    note('t');
    trib_tcp_ops.disconnect(t, peer);
}

static trib_status_t noted_verbs_open(const struct trib_transport_opts *opts,
                                      struct trib_transport **out)
{
    struct trib_transport_opts alone = *opts;

    alone.params = "reconnect=0"; /* else the ops are those of rails */
    trib_status_t status = trib_verbs_ops.open(&alone, out);
    if (status == TRIB_OK)
        (*out)->ops = &noted.verbs;
    return status;
}

static void noted_verbs_close(struct trib_transport *t)
{
    note('v');
    trib_verbs_ops.close(t);
}

static void open_noted(struct pair *pair, struct trib_address address[2],
                       struct trib_blob region[2])
{
    static const struct trib_candidate rows[] = {
        {.ops = &noted.verbs, .id = 2, .ports = true},
        {.ops = &noted.tcp, .id = 3, .ports = true, .cheap = true},
        {.ops = NULL},
    };

    memset(&noted, 0, sizeof(noted));
    noted.tcp = trib_tcp_ops;
    noted.tcp.open = noted_open;
    noted.tcp.poll = noted_poll;
    noted.tcp.disconnect = noted_disconnect;
    noted.verbs = trib_verbs_ops;
    noted.verbs.open = noted_verbs_open;
    noted.verbs.close = noted_verbs_close;
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_ok(trib_auto_make(rows, &opts, &pair->t[i]));
        pair_offer(pair, i, &address[i], &region[i]);
    }
}

/* Side 0 writes by tcp and is heard of by verbs: what tcp has under way comes before
 * the end that verbs tells, and side 0 ends tcp first. */
TEST(test_end_by_another_way, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address[2];
    struct trib_blob region[2];
    struct trib_event e, several[8];
    struct pair pair;

    opts->no_gid_query = true;
    open_noted(&pair, address, region);
    join(&pair, 1, address, region);
    opts->reject = 24;
    join(&pair, 0, address, region);
    assert_works(&pair);
    struct auto_transport *c = auto_of(pair.t[1]);
    noted.held = c->inners[1].t;
    for (uint32_t i = 0; i < 4; i++)
        assert_ok(write_from(&pair, 0, 64, 100 + i));
    pair.t[0]->ops->close(pair.t[0]);
    assert_int_equal(noted.order[0], 't');
    assert_non_null(strchr(noted.order, 'v'));
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    while (c->peers[0].state != AUTO_PEER_DRAINING && !trib_deadline_passed(until))
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], several, 8), 0);
    assert_int_equal(c->peers[0].state, AUTO_PEER_DRAINING);
    noted.held = NULL;
    for (uint32_t i = 0; i < 4; i++) {
        expect(&pair, 1, TRIB_EVENT_ARRIVED, &e);
        assert_int_equal(e.imm, 100 + i);
    }
    expect(&pair, 1, TRIB_EVENT_PEER_LOST, &e);
    assert_true(e.left);
    pair.t[1]->ops->close(pair.t[1]);
}

/* The death of a peer is reported once, by the inner of this side's writes. */
TEST(test_cut, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    pair_open(&pair, FAR ",reconnect=0", FAR ",reconnect=0");
    assert_works(&pair);
    assert_ok(write_from(&pair, 0, 64, 9));
    fake_verbs_cut();
    expect(&pair, 1, TRIB_EVENT_ARRIVED, &e);
    expect(&pair, 1, TRIB_EVENT_PEER_LOST, &e);
    contains(e.why, "closed its connection");
    assert_false(e.left);
    assert_int_equal(pair_poll(&pair, 1, 150, &e), 0);
    pair_close(&pair);
}

/* One sleep for all transports: an event of verbs ends it. */
TEST(test_sleep, clean, nothing_left)
{
    struct trib_event e;
    struct pair pair;

    pair_open(&pair, FAR, FAR);
    assert_works(&pair);
    pair.t[1]->ops->arm(pair.t[1]);
    assert_int_equal(pair_poll(&pair, 1, 0, &e), 0);
    assert_true(auto_of(pair.t[1])->n_sleep > 1);
    assert_ok(write_from(&pair, 0, 64, 3));
    uint64_t start = trib_now_ns();
    pair.t[1]->ops->wait(pair.t[1], 30000000);
    assert_true(trib_now_ns() - start < UINT64_C(15000000000));
    expect(&pair, 1, TRIB_EVENT_ARRIVED, &e);
    pair_close(&pair);
}

/* Silence -------------------------------------------------------------------------- */

/* An address of side 1 as if its host had another boot id. */
static struct trib_address of_host(const struct trib_address *address, uint64_t host)
{
    struct trib_address a = *address;
    struct auto_address head;

    memcpy(&head, a.bytes, sizeof(head));
    head.boot = host;
    memcpy(a.bytes, &head, sizeof(head));
    return a;
}

/* Peers that do not answer cost a bounded time, however many there are. */
TEST(test_many_silent_peers, clean, nothing_left)
{
    enum { PEERS = 12 };
    static const char *const whys[] = {"no answer for ",
                                       "another rank of its host did not answer there",
                                       "answer", "too many peers did not answer"};
    static const struct trib_candidate rows[] = {
        {.ops = &trib_verbs_ops, .id = 2, .ports = true, .more = ",reach_ms=2600"},
        {.ops = &trib_tcp_ops, .id = 3, .ports = true, .cheap = true},
        {.ops = NULL},
    };
    struct fake_verbs_opts *fake = fake_verbs_reset();
    struct pair pair = {0};
    struct trib_address address;

    fake->deaf = true;
    fake->no_gid_query = true;
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        opts.size = PEERS;
        assert_ok(trib_auto_make(rows, &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    uint64_t begin = trib_now_ns();
    for (int peer = 1; peer < PEERS; peer++) {
        struct trib_address a = of_host(&address, peer <= 2 ? 7 : (uint64_t)peer * 100);
        struct trib_route r;
        assert_ok(pair.t[0]->ops->connect(pair.t[0], peer, &a));
        pair.t[0]->ops->route(pair.t[0], peer, &r);
        assert_string_equal(r.name, "tcp");
        contains(r.why, whys[peer <= 3 ? peer - 1 : 3]);
    }
    assert_true(trib_now_ns() - begin < UINT64_C(25000000000));
    assert_int_equal(pair.lines, 1);
    pair_close(&pair);
}

/* The heartbeat thread also runs the helper of tcp, which must be removed first. */
static void end_heartbeats(struct auto_transport *c)
{
    for (int i = 0; i < c->n_inners; i++) {
        struct trib_transport *inner = c->inners[i].t;
        if (inner && inner->ops == &trib_tcp_ops)
            trib_tcp_helper_close((struct tcp *)inner);
    }
    trib_heartbeat_close(c->heartbeat);
    c->heartbeat = NULL;
}

/* The other host's process is stopped: the one heartbeat of all inners tells. */
TEST(test_silence, clean, nothing_left)
{
    struct trib_address address, far;
    struct verbs_address a;
    struct trib_event e;
    struct pair pair = {0};
    size_t len;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        pair.cfg.stop_timeout_ms = 2000;
        assert_ok(trib_transport_open("auto:reconnect=0", &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    far = of_host(&address, 7);
    const uint8_t *part =
        trib_auto_get(far.bytes, far.len, sizeof(struct auto_address), 2, &len);
    assert_int_equal(len, sizeof(a));
    memcpy(&a, part, sizeof(a));
    a.boot = 7;
    a.ip[0].bytes[15]++; /* else it would lead back here */
    memcpy(far.bytes + (part - far.bytes), &a, sizeof(a));
    assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &far));
    assert_route(&pair, 0, "verbs", "another host");
    assert_int_equal(pair_poll(&pair, 0, 1000, &e), 0);
    struct auto_transport *stopped = auto_of(pair.t[1]);
    int port = pair_keep_port(trib_heartbeat_port(stopped->heartbeat));
    end_heartbeats(stopped);
    assert_int_equal(pair_await(&pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    contains(e.why, "no heartbeat from process");
    assert_int_equal(pair_poll(&pair, 0, 100, &e), 0);
    close(port);
    pair_close(&pair);
}
