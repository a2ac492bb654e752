/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice by pair: what both ends have, in order of cost, and the same at both ends.
 */
#include "tests/transport/pair.h"

#include <dirent.h>

#include "transport/auto/auto.h"
#include "transport/common/guard.h"
#include "transport/tcp/tcp.h"

static struct trib_route route(struct pair *pair, int side)
{
    struct trib_route r = {0};

    pair->t[side]->ops->route(pair->t[side], !side, &r);
    return r;
}

static void assert_route(struct pair *pair, const char *name, const char *why)
{
    for (int side = 0; side < 2; side++) {
        struct trib_route r = route(pair, side);
        assert_string_equal(r.name, name);
        if (!strstr(r.why, why))
            fail_msg("the route says \"%s\", not \"%s\"", r.why, why);
    }
}

static void assert_works(struct pair *pair)
{
    struct trib_event e;

    pair->mem[0][7] = 42;
    assert_ok(pair_write(pair, 64, 5));
    assert_int_equal(pair_await(pair, 1, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
    assert_int_equal(e.imm, 5);
    assert_int_equal(pair->mem[1][7], 42);
}

TEST(test_near_and_far)
{
    static const struct {
        const char *text, *name, *why;
    } cases[] = {
        {"auto", "shm", "same host"},
        {"auto:ranks_per_host=1", "tcp", "another host"},
        {"auto:ranks_per_host=2", "shm", "same host"},
        {"auto:near=tcp", "tcp", "shm: not selected"},
        {"auto:near=shm,far=tcp,ranks_per_host=1", "tcp", "another host"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair;
        pair_open(&pair, cases[i].text, cases[i].text);
        assert_route(&pair, cases[i].name, cases[i].why);
        assert_works(&pair);
        pair_close(&pair);
    }
}

TEST(test_wrong_names)
{
    pair_refuses("auto:far=shm", TRIB_ERR_CONFIG, "reaches ranks of one host only");
    pair_refuses("auto:near=loop", TRIB_ERR_CONFIG,
                 "auto cannot choose this transport");
    pair_refuses("auto:near=", TRIB_ERR_CONFIG, "near= is not a name");
    pair_refuses("auto:near", TRIB_ERR_CONFIG, "needs a name, as in near=shm");
    pair_refuses("auto:near=much-too-long-for-a-name", TRIB_ERR_CONFIG,
                 "is not a name");
    pair_refuses("auto:fur=tcp", TRIB_ERR_CONFIG, "did you mean \"far\"?");
    pair_refuses("auto:ranks_per_host=0", TRIB_ERR_CONFIG, "from 1 to 65536");
}

/* Side 0's connect to an address of side 1's, opened with another text. */
static void refuses_to_connect(const char *text0, const char *text1,
                               const char *sentence)
{
    struct pair pair = {0};
    struct trib_address address;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open(i ? text1 : text0, &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    assert_true(pair.t[0]->ops->connect(pair.t[0], 1, &address) < 0);
    if (!strstr(pair.err.text, sentence))
        fail_msg("the error is \"%s\", not \"%s\"", pair.err.text, sentence);
    pair_close(&pair);
}

TEST(test_sides_that_differ)
{
    refuses_to_connect("auto", "tcp", "set the same TRIB_TRANSPORT on all ranks");
    refuses_to_connect("auto", "shm", "set the same TRIB_TRANSPORT on all ranks");
    refuses_to_connect("auto:ranks_per_host=1", "auto:ranks_per_host=2",
                       "has auto:ranks_per_host=2, this rank 1");
    refuses_to_connect("auto:near=shm", "auto:near=tcp", "no transport reaches it");
}

/* An aggregator reaches a peer that says that it is this very process as if it
 * were of another host: by numbers of its table. */
TEST(test_guard)
{
    struct pair pair = {0};
    struct trib_address address[2];
    struct trib_blob region[2];
    struct trib_guard guard = {.serves = true, .ranks = 2, .user = TRIB_GUARD_ANYBODY};
    uint32_t caps;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        opts.guard = &guard;
        assert_ok(trib_transport_open("auto", &opts, &pair.t[i]));
        pair_offer(&pair, i, &address[i], &region[i]);
    }
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair.t[i]->ops;
        assert_ok(ops->caps(pair.t[i], address, &caps));
        assert_true(caps & TRIB_CAP_MAPS); /* that peer does not count */
        assert_ok(ops->connect(pair.t[i], !i, &address[!i]));
        assert_ok(trib_transport_import(pair.t[i], !i, &region[!i], PAIR_LEN,
                                        &pair.remote[i]));
        assert_null(ops->map(pair.t[i], pair.remote[i], NULL));
    }
    assert_route(&pair, "tcp", "it claims to be this process");
    assert_works(&pair);
    pair_close(&pair);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Both sides compute caps; then they agree on caps without `without`. */
static void open_agreed(struct pair *pair, const char *text, uint32_t without)
{
    struct trib_address address[2];
    struct trib_blob region[2];
    uint32_t caps[2];
    void *mem;

    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_ok(trib_transport_open(text, &opts, &pair->t[i]));
        assert_ok(pair->t[i]->ops->address(pair->t[i], &address[i]));
    }
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair->t[i]->ops;
        assert_ok(ops->caps(pair->t[i], address, &caps[i]));
        assert_ok(ops->alloc(pair->t[i], PAIR_LEN, &mem, &pair->region[i]));
        pair->mem[i] = mem;
        assert_ok(ops->export_region(pair->t[i], pair->region[i], &region[i]));
    }
    caps[1] &= ~without;
    for (int i = 0; i < 2; i++)
        pair->t[i]->ops->agree(pair->t[i], caps);
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair->t[i]->ops;
        assert_ok(ops->connect(pair->t[i], !i, &address[!i]));
        assert_ok(ops->import_region(pair->t[i], !i, &region[!i], &pair->remote[i]));
    }
}

/* One side cannot open the other's memory: both go another way. */
TEST(test_both_ends_choose_alike)
{
    enum { SHM = 1u << (TRIB_CAP_BACKEND + 1) };
    struct pair pair;

    open_agreed(&pair, "auto", 0);
    assert_route(&pair, "shm", "same host");
    assert_non_null(pair.t[0]->ops->map(pair.t[0], pair.remote[0], NULL));
    pair_close(&pair);
    open_agreed(&pair, "auto", SHM);
    assert_route(&pair, "tcp", "shm: ");
    assert_null(pair.t[0]->ops->map(pair.t[0], pair.remote[0], NULL));
    assert_null(pair.t[1]->ops->map(pair.t[1], pair.remote[1], NULL));
    assert_works(&pair);
    pair_close(&pair);
}

TEST(test_facts)
{
    static const struct {
        const char *text;
        bool maps;
    } cases[] = {{"auto", true},
                 {"auto+nomap", false},
                 {"auto:ranks_per_host=1", false},
                 {"shm", true},
                 {"tcp", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair = {0};
        struct trib_address address[2];
        uint32_t caps = 0;
        for (int k = 0; k < 2; k++) {
            struct trib_transport_opts opts = pair_opts(&pair, k);
            assert_ok(trib_transport_open(cases[i].text, &opts, &pair.t[k]));
            assert_ok(pair.t[k]->ops->address(pair.t[k], &address[k]));
        }
        assert_ok(pair.t[0]->ops->caps(pair.t[0], address, &caps));
        assert_int_equal((caps & TRIB_CAP_MAPS) != 0, cases[i].maps);
        pair_close(&pair);
    }
}

/* On one host alone nothing listens and no heart beats. */
TEST(test_what_nobody_needs_is_closed)
{
    struct pair near, far;
    int before = open_files();

    open_agreed(&near, "auto", 0);
    int files_near = open_files() - before;
    pair_close(&near);
    assert_int_equal(open_files(), before);
    open_agreed(&far, "auto:ranks_per_host=1", 0);
    for (int i = 0; i < 2; i++) {
        const struct auto_transport *c = auto_of(far.t[i]);
        assert_null(c->inners[0].t);
        assert_non_null(c->heartbeat);
    }
    pair_close(&far);
    assert_int_equal(open_files(), before);
    open_agreed(&near, "shm", 0);
    assert_int_equal(files_near, open_files() - before);
    pair_close(&near);
}

/* Without a port there is no network, but one host does without. */
TEST(test_no_port)
{
    struct trib_net_port tcp, udp;
    struct pair pair = {0};
    struct trib_address address;
    char text[64];

    assert_ok(trib_net_bind("test", SOCK_STREAM, 0, 1, &tcp, NULL));
    assert_ok(trib_net_bind("test", SOCK_DGRAM, tcp.port, 1, &udp, NULL));
    snprintf(text, sizeof(text), "auto:port=%d,ports=1", tcp.port);
    pair_open(&pair, text, text);
    assert_route(&pair, "shm", "same host");
    assert_works(&pair);
    pair_close(&pair);
    snprintf(text, sizeof(text), "auto:port=%d,ports=1,ranks_per_host=1", tcp.port);
    memset(&pair, 0, sizeof(pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open(text, &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address),
                  TRIB_ERR_UNSUPPORTED);
    assert_non_null(strstr(pair.err.text, "no transport reaches it: "));
    assert_non_null(strstr(pair.err.text, "tcp: none of the TCP ports"));
    assert_non_null(strstr(pair.err.text, "can be bound"));
    pair_close(&pair);
    close(tcp.fd);
    close(udp.fd);
}

/* The first error of a failed communicator stays, whatever goes wrong later. */
TEST(test_errors_are_kept)
{
    struct pair pair;

    pair_open(&pair, "auto", "auto");
    assert_status(pair_write(&pair, PAIR_LEN + 1, 1), TRIB_ERR_RANGE);
    assert_non_null(strstr(pair.err.text, "a write of 4097 bytes"));
    trib_error_clear(&pair.err);
    trib_fail(&pair.err, TRIB_ERR_PEER_LOST, "the cause");
    assert_status(pair_write(&pair, PAIR_LEN + 1, 1), TRIB_ERR_RANGE);
    assert_string_equal(pair.err.text, "the cause");
    trib_error_clear(&pair.err);
    assert_status(pair_write(&pair, PAIR_LEN + 2, 1), TRIB_ERR_RANGE);
    assert_non_null(strstr(pair.err.text, "a write of 4098 bytes"));
    pair_close(&pair);
}

/* Addresses that others made up give a status. */
TEST(test_bad_addresses)
{
    struct pair pair = {0};
    struct trib_address good, bad;
    uint32_t random = 1;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open("auto:ranks_per_host=1", &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &good));
    for (uint16_t len = 0; len < good.len; len++) {
        bad = good;
        bad.len = len;
        trib_error_clear(&pair.err);
        trib_status_t st = pair.t[0]->ops->connect(pair.t[0], 1, &bad);
        assert_true(st < 0);
        assert_true(pair.err.text[0] != '\0');
        auto_of(pair.t[0])->peers[1].known = false;
    }
    for (int i = 0; i < 300; i++) {
        size_t len;
        bad = good;
        for (int k = 0; k <= i % 4; k++) {
            random = random * 1664525 + 1013904223;
            bad.bytes[(random >> 8) % sizeof(bad.bytes)] = (uint8_t)random;
        }
        bad.len = (uint16_t)(random >> 12) % (sizeof(bad.bytes) + 1);
        for (int id = 0; id < 16; id++)
            (void)trib_auto_get(bad.bytes, bad.len, sizeof(struct auto_address), id,
                                &len);
    }
    pair_close(&pair);
}

/* A network that opens but does not connect, in front of one that does ------------- */

static struct trib_transport_ops flaky_ops;

static trib_status_t flaky_open(const struct trib_transport_opts *opts,
                                struct trib_transport **out)
{
    trib_status_t status = trib_tcp_ops.open(opts, out);

    if (status == TRIB_OK)
        (*out)->ops = &flaky_ops;
    return status;
}

static trib_status_t flaky_connect(struct trib_transport *t, int peer,
                                   const struct trib_address *address)
{
    (void)peer;
    (void)address;
    return trib_fail(tcp_of(t)->err, TRIB_ERR_PEER_LOST, "the switch is dark");
}

static trib_status_t absent_open(const struct trib_transport_opts *opts,
                                 struct trib_transport **out)
{
    (void)out;
    return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED, "no device");
}

static void open_with(struct pair *pair, const struct trib_transport_ops *first,
                      bool with_tcp)
{
    static struct trib_candidate rows[3]; /* the transports read them until close() */
    struct trib_address address[2];
    struct trib_blob region[2];

    rows[0] = (struct trib_candidate){.ops = first, .id = 2, .ports = true};
    rows[1] = (struct trib_candidate){
        .ops = with_tcp ? &trib_tcp_ops : NULL, .id = 3, .ports = true, .cheap = true};
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_ok(trib_auto_make(rows, &opts, &pair->t[i]));
        pair_offer(pair, i, &address[i], &region[i]);
    }
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair->t[i]->ops;
        trib_status_t st = ops->connect(pair->t[i], !i, &address[!i]);
        assert_status(st, with_tcp ? TRIB_OK : TRIB_ERR_PEER_LOST);
        if (st == TRIB_OK)
            assert_ok(
                ops->import_region(pair->t[i], !i, &region[!i], &pair->remote[i]));
    }
}

TEST(test_next_on_failure)
{
    struct trib_transport_ops absent = trib_tcp_ops;
    struct pair pair;

    flaky_ops = absent = trib_tcp_ops;
    flaky_ops.name = absent.name = "dark";
    flaky_ops.open = flaky_open;
    flaky_ops.connect = flaky_connect;
    absent.open = absent_open;
    open_with(&pair, &flaky_ops, true);
    assert_route(&pair, "tcp", "dark: the switch is dark");
    assert_works(&pair);
    pair_close(&pair);
    open_with(&pair, &absent, true);
    assert_route(&pair, "tcp", "dark: no device");
    assert_works(&pair);
    pair_close(&pair);
    open_with(&pair, &flaky_ops, false);
    assert_non_null(strstr(pair.err.text, "the switch is dark"));
    pair_close(&pair);
}
