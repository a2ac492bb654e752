/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting over verbs by the connection manager, over a device in memory: refusals,
 * silence, and requests that come to nothing.
 */
#include "tests/transport/verbs/verbs_pair.h"

#include <errno.h>

#include "transport/verbs/verbs.h"

/* Connecting -------------------------------------------------------------------- */

TEST(test_refusals, clean, nothing_left)
{
    struct trib_address address, other;
    struct verbs_address a;
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    memcpy(&a, address.bytes, sizeof(a));
    other = address;
    a.key++;
    memcpy(other.bytes, &a, sizeof(a));
    connect_fails(&pair, &other, TRIB_ERR_PEER_LOST, "it belongs to another job");
    ((struct verbs *)pair.t[0])->settings++;
    connect_fails(&pair, &address, TRIB_ERR_MISMATCH, "it has different settings");
    ((struct verbs *)pair.t[0])->settings--;
    a.key--;
    a.port++;
    memcpy(other.bytes, &a, sizeof(a));
    connect_fails(&pair, &other, TRIB_ERR_PEER_LOST, "no process listens there");
    other.len--;
    connect_fails(&pair, &other, TRIB_ERR_INVALID, "not an address of verbs");
    /* After all that it still works. */
    trib_error_clear(&pair.err);
    assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address));
    pair_close(&pair);
}

TEST(test_reject, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    opts->reject = 24;
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "reason 24");
    opts->reject = 0;
    opts->address_errors = true;
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                  "no RDMA device of this host reaches it: No such device");
    opts->address_errors = false;
    opts->qp_errno = ENOMEM;
    connect_fails(&pair, &address, TRIB_ERR_NO_RESOURCE, "ulimit -l unlimited");
    pair_close(&pair);
}

TEST(test_other_device, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    opts->devices = 2;
    opts->other_device = true;
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                  "the route uses fake1, but this rank uses fake0");
    pair_close(&pair);
}

TEST(test_silent_peer, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    opts->deaf = true;
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "no answer for 8.0 s");
    opts->deaf = false;
    assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address));
    pair_close(&pair);
}

/* A disconnected peer is notified, also when it connects later. */
TEST(test_left, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    pair.t[1]->ops->disconnect(pair.t[1], 0);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "it has disconnected");
    pair_close(&pair);
}

/* Only one side connects: its own connection reports the end of the other. */
TEST(test_one_way, clean, nothing_left)
{
    struct trib_address address;
    struct trib_write w = {.imm = 6};
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address));
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    expect_arrival(&pair, 1, 6, 0);
    assert_status(pair.t[1]->ops->write(pair.t[1], 0, &w), TRIB_ERR_INVALID);
    pair.t[1]->ops->disconnect(pair.t[1], 0);
    expect_loss(&pair, 0, "has left");
    pair_close(&pair);
}

/* Side `wide` has a port of 4096 bytes and the other one of 1024: the path has what
 * both take, whoever asked for the connection. The sides are hosts. */
static void exchange_over_mtus(int wide, const char *text)
{
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair = {0};

    fake_verbs_reset()->hosts = 2;
    for (int i = 0; i < 2; i++) {
        fake_verbs_port_opts(i, 0, 1)->mtu = i == wide ? IBV_MTU_4096 : IBV_MTU_1024;
        fake_verbs_host(i);
        struct trib_transport_opts side = pair_opts(&pair, i);
        assert_ok(trib_transport_open(text, &side, &pair.t[i]));
        pair_offer(&pair, i, &address[i], &region[i]);
    }
    for (int i = 0; i < 2; i++) {
        fake_verbs_host(i);
        assert_ok(pair.t[i]->ops->connect(pair.t[i], !i, &address[!i]));
        assert_ok(
            pair.t[i]->ops->import_region(pair.t[i], !i, &region[!i], &pair.remote[i]));
    }
    for (int i = 0; i < 2; i++) {
        for (size_t len = 8; len <= PAIR_LEN; len *= 8) {
            const struct trib_write w = {.local = pair.region[i],
                                         .remote = pair.remote[i],
                                         .len = len,
                                         .imm = (uint32_t)len};
            assert_ok(pair.t[i]->ops->write(pair.t[i], !i, &w));
            expect_arrival(&pair, !i, (uint32_t)len, len);
        }
    }
    pair_close(&pair);
}

TEST(test_mtu, clean, nothing_left)
{
    static const char *const texts[] = {"verbs:connect=rdmacm", "verbs:connect=gid",
                                        "verbs"};

    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < 3; i++)
            exchange_over_mtus(wide, texts[i]);
}

/* A device that lacks a feature is refused when it is opened, by an error with its name
 * and the feature; no resource is left. */
TEST(test_lacks, clean, nothing_left)
{
    static const char *const texts[] = {"verbs", "verbs:device=fake0",
                                        "verbs:connect=gid", "verbs:connect=rdmacm"};

    for (int lack = 0; lack < 3; lack++) {
        static const char *const words[] = {
            "fake0 is an iWARP device, which cannot write with an immediate",
            "fake0 supports 8 requests per connection, but 16 are needed",
            "fake0 does not support reliable connections (RC) with remote writes",
        };
        struct fake_verbs_opts *opts = fake_verbs_reset();
        opts->iwarp = lack == 0;
        opts->max_qp_wr = lack == 1 ? 8 : opts->max_qp_wr;
        opts->no_remote_write = lack == 2;
        for (int i = 0; i < 4; i++)
            pair_refuses(texts[i], TRIB_ERR_UNSUPPORTED, words[lack]);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* Without shared receive queues each inlet has its share of the receives, within the
 * limits of the device. */
TEST(test_receives_without_srq, clean, nothing_left)
{
    static const struct {
        int size, max_qp_wr, max_cqe;
        uint32_t receives, depth;
    } cases[] = {
        {2, 4096, 1 << 20, 1024, 128}, {17, 4096, 1 << 20, 256, 128},
        {2, 100, 1 << 20, 100, 64},    {1025, 4096, 1 << 20, 16, 32},
        {1025, 4096, 50000, 16, 16},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *opts = fake_verbs_reset();
        struct pair pair = {0};
        struct trib_transport_opts many = pair_opts(&pair, 0);
        struct trib_transport *t = NULL;
        opts->max_srq_wr = i % 2 ? 0 : opts->max_srq_wr;
        opts->srq_errno = i % 2 ? 0 : EOPNOTSUPP;
        opts->max_qp_wr = cases[i].max_qp_wr;
        opts->max_cqe = cases[i].max_cqe;
        many.size = cases[i].size;
        assert_ok(trib_transport_open(ALONE, &many, &t));
        const struct verbs *v = (const struct verbs *)t;
        assert_int_equal(v->link_receives, cases[i].receives);
        assert_int_equal(v->depth, cases[i].depth);
        assert_true(pair_has_logged(&pair, "fake0 has no shared receive queues"));
        t->ops->close(t);
    }
}

/* A peer that does not poll takes as many writes as it has receives; all arrive, in
 * order, and the receives are used again and again. */
TEST(test_few_receives, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_event e;
    struct pair pair;

    opts->srq_errno = EOPNOTSUPP;
    opts->max_qp_wr = 16;
    open_pair(&pair);
    for (uint32_t sent = 0, got = 0; got < 500;) {
        while (pair_write(&pair, 8, sent) == TRIB_OK)
            sent++;
        assert_true(sent <= got + 32);
        if (pair_poll(&pair, 0, 0, &e))
            assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
        for (int i = 0; i < 5 && got < sent; i++)
            expect_arrival(&pair, 1, got++, 8);
    }
    pair_close(&pair);
}

/* The receives of a queue pair that fails are flushed with its requests, in any order:
 * the error tells the cause. */
TEST(test_flushed_receives, clean, nothing_left)
{
    struct pair pair;

    fake_verbs_reset()->srq_errno = EOPNOTSUPP;
    open_pair(&pair);
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    assert_ok(pair_write(&pair, 8, 1));
    expect_loss(&pair, 0, "its host no longer answers");
    expect_loss(&pair, 1, "process");
    pair_close(&pair);
}

/* A request that the asking side has given up is no loss; it may ask again. */
TEST(test_ask_again, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct trib_write w = {.imm = 8};
    struct pair pair;

    open_apart(&pair, ALONE ",connect=rdmacm", &address);
    opts->half_way = true;
    connect_fails(&pair, &address, TRIB_ERR_SYSTEM, "rdma_establish");
    opts->half_way = false;
    trib_error_clear(&pair.err);
    assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address));
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    expect_arrival(&pair, 1, 8, 0);
    pair_close(&pair);
}

/* The table of routes, which another thread changes. */
static struct verbs *changed;
static _Atomic bool changing;
enum { COMES_AND_GOES = 77, CHANGES = 3000000 };

static void *change_routes(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&changed->links);
    for (int i = 0; i < CHANGES; i++) {
        trib_verbs_route_put(changed, COMES_AND_GOES, (struct verbs_route){.peer = 1});
        trib_verbs_route_remove(changed, COMES_AND_GOES);
    }
    pthread_mutex_unlock(&changed->links);
    changing = false;
    return NULL;
}

/* Another thread may remove a route while the owner reads it: the result is its peer or
 * none. */
TEST(test_route_that_is_removed, clean, nothing_left)
{
    struct trib_address address;
    pthread_t thread;
    struct pair pair;

    open_apart(&pair, ALONE, &address);
    changed = verbs_of(pair.t[0]);
    changing = true;
    assert_int_equal(pthread_create(&thread, NULL, change_routes, NULL), 0);
    while (changing) {
        const struct verbs_route route = trib_verbs_route_find(changed, COMES_AND_GOES);
        if (route.peer != -1 && route.peer != 1)
            fail_msg("a queue pair of peer %d", route.peer);
    }
    pthread_join(thread, NULL);
    pair_close(&pair);
}
