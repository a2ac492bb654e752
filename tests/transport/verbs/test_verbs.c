/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures of verbs, over a device in memory: each cause gives its sentence, and
 * nothing is left behind. test_verbs_conformance.c has the good cases.
 */
#include "tests/transport/verbs/verbs_pair.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>

#include "tests/harness/fake_hub.h"
#include "transport/verbs/verbs.h"

TEST(test_no_library, clean, nothing_left)
{
    fake_verbs_reset()->no_library = true;
    pair_refuses("verbs", TRIB_ERR_UNSUPPORTED,
                 "libibverbs.so.1: cannot open shared object");
    pair_refuses("verbs", TRIB_ERR_UNSUPPORTED, "Debian: libibverbs1, librdmacm1");
}

TEST(test_no_device, clean, nothing_left)
{
    fake_verbs_reset()->devices = 0;
    pair_refuses("verbs", TRIB_ERR_UNSUPPORTED, "this host has no RDMA device");
    fake_verbs_reset()->no_connection_manager = true;
    pair_refuses("verbs:connect=rdmacm", TRIB_ERR_UNSUPPORTED,
                 "load the module rdma_ucm");
    fake_verbs_reset()->address_less = true;
    pair_refuses("verbs:connect=rdmacm", TRIB_ERR_UNSUPPORTED,
                 "the RDMA device fake0 has no IP address");
    fake_verbs_reset()->port_down = true;
    pair_refuses("verbs", TRIB_ERR_UNSUPPORTED, "port 1 of fake0 is not active");
    fake_verbs_reset()->devices = 2;
    pair_refuses("verbs:device=fake7", TRIB_ERR_CONFIG,
                 "there is no RDMA device \"fake7\"; this host has fake0, fake1");
    pair_refuses("verbs:device", TRIB_ERR_CONFIG, "device needs a name");
    pair_refuses("verbs:device=", TRIB_ERR_CONFIG, "device= is not a name");
    pair_refuses("verbs:depth=8", TRIB_ERR_CONFIG,
                 "depth=8 is not a whole number from 16");
}

TEST(test_no_room, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct pair pair = {0};
    struct trib_transport_opts many = pair_opts(&pair, 0);
    struct trib_transport *t = NULL;

    opts->cq_errno = ENOMEM;
    pair_refuses("verbs", TRIB_ERR_NO_MEMORY, "cannot create a completion queue of");
    pair_refuses("verbs", TRIB_ERR_NO_MEMORY, "ulimit -l unlimited");
    opts->cq_errno = 0;
    opts->max_cqe = 6000;
    many.size = 1000;
    assert_status(trib_transport_open("verbs", &many, &t), TRIB_ERR_UNSUPPORTED);
    contains(pair.err.text, "1000 ranks need a completion queue of");
}

/* The first of two UDP ports, which no process uses, too. */
static int free_ports(void)
{
    struct trib_net_port udp[2];

    for (int first = 10000 + getpid() % 10000; first < 32000; first += 2) {
        bool a = trib_net_bind("test", SOCK_DGRAM, first, 1, &udp[0], NULL) == TRIB_OK;
        bool b =
            trib_net_bind("test", SOCK_DGRAM, first + 1, 1, &udp[1], NULL) == TRIB_OK;
        if (a)
            close(udp[0].fd);
        if (b)
            close(udp[1].fd);
        if (a && b)
            return first;
    }
    fail_msg("no two ports are free");
    return 0;
}

TEST(test_ports, clean, nothing_left)
{
    struct trib_net_port udp;
    struct pair pair;
    char text[64], words[96];
    int first = free_ports();

    snprintf(text, sizeof(text), "verbs:port=%d,ports=2,connect=rdmacm", first);
    pair_open(&pair, text, text);
    snprintf(words, sizeof(words), "none of the ports %d to %d can be bound", first,
             first + 1);
    pair_refuses(text, TRIB_ERR_SYSTEM, words);
    pair_close(&pair);
    snprintf(text, sizeof(text), "verbs:port=%d,ports=1", first);
    assert_ok(trib_net_bind("test", SOCK_DGRAM, first, 1, &udp, NULL));
    snprintf(words, sizeof(words),
             "heartbeats of verbs: none of the UDP ports %d to %d", first, first);
    pair_refuses(text, TRIB_ERR_SYSTEM, words);
    close(udp.fd);
}

/* The second device is used where it is asked for. */
TEST(test_device, clean, nothing_left)
{
    struct pair pair;

    fake_verbs_reset()->devices = 2;
    pair_open(&pair, "verbs:device=fake1", "verbs:device=fake1");
    assert_ok(pair_write(&pair, 8, 1));
    expect_arrival(&pair, 1, 1, 8);
    pair_close(&pair);
}

TEST(test_memory, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_region *region;
    struct pair pair;

    open_pair(&pair);
    opts->reg_errno = ENOMEM;
    assert_status(pair.t[0]->ops->reg(pair.t[0], pair.mem[0], 8, &region),
                  TRIB_ERR_NO_MEMORY);
    contains(pair.err.text, "LimitMEMLOCK=infinity");
    trib_error_clear(&pair.err);
    opts->reg_errno = EFAULT;
    assert_status(pair.t[0]->ops->reg(pair.t[0], pair.mem[0], 8, &region),
                  TRIB_ERR_SYSTEM);
    contains(pair.err.text, "is it mapped");
    pair_close(&pair);
}

/* In a child, which drops the right to lock without limit. */
static int register_much(int rank, int size, void *arg)
{
    const struct rlimit limit = {65536, 65536};
    struct trib_region *region;
    struct pair *pair = arg;

    (void)rank;
    (void)size;
    open_pair(pair);
    const struct trib_transport_ops *ops = pair->t[0]->ops;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (getuid() == 0 && setuid(65534) != 0))
        return 1;
    if (ops->reg(pair->t[0], pair->mem[0], 4096, &region) != TRIB_OK ||
        ops->reg(pair->t[0], pair->mem[0], 65536, &region) != TRIB_ERR_NO_MEMORY)
        return 2;
    bool told = strstr(pair->err.text,
                       "cannot register another 64K: this process has locked 12K "
                       "and may lock 64K; raise the limit");
    pair_close(pair);
    return !told;
}

TEST(test_memlock, clean, nothing_left)
{
    struct pair pair;

    fake_verbs_reset()->memlock = true;
    assert_int_equal(tribtest_forks(1, 30, register_much, &pair), 0);
}

/* If the kernel copies pinned pages at fork, the library need not mark them: that would
 * cost a system call for each region. */
TEST(test_fork_init, clean, nothing_left)
{
    static const struct {
        bool unneeded, no_query;
        int error, calls;
    } cases[] = {{.calls = 1},
                 {.unneeded = true, .calls = 0},
                 {.no_query = true, .calls = 2}, /* once for each transport */
                 {.error = EINVAL, .calls = 1}};
    struct pair pair;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *opts = fake_verbs_reset();
        opts->fork_unneeded = cases[i].unneeded;
        opts->no_fork_query = cases[i].no_query;
        opts->fork_errno = cases[i].error;
        open_pair(&pair);
        assert_int_equal(opts->fork_calls, cases[i].calls);
        if (cases[i].error)
            contains(pair.logged,
                     "ibv_fork_init was called too late: Invalid argument; "
                     "this process should not fork");
        else
            assert_int_equal(pair.lines, 0);
        pair_close(&pair);
    }
}

/* Small writes are inline, as far as the device can; few of them report. */
/* Blobs of memory hold no address, and all the same peers reach it: by requests that
 * the library copies, and by those that the device reads. */
TEST(test_no_addresses, clean, nothing_left)
{
    static const size_t off[] = {0, 1, 4000, 4096, 5000, ((size_t)2 << 20) + 12345};

    for (int old = 0; old < 2; old++) {
        fake_verbs_reset()->no_iova = old;
        struct pair pair;
        open_pair(&pair);
        uint8_t *mine = malloc((size_t)8 << 20);
        for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++) {
            for (size_t len = 3; len < (size_t)5 << 20; len *= 90) {
                struct trib_transport *o = pair.t[1];
                struct trib_region *region;
                struct trib_blob blob;
                struct verbs_export x;
                assert_ok(o->ops->reg(o, mine + off[i], len, &region));
                assert_ok(o->ops->export_region(o, region, &blob));
                memcpy(&x, blob.bytes, sizeof(x));
                assert_int_equal(x.address == (uintptr_t)(mine + off[i]), old);
                assert_true(old || x.address < (size_t)2 << 20);
                struct trib_remote *remote;
                assert_ok(pair.t[0]->ops->import_region(pair.t[0], 1, &blob, &remote));
                assert_int_equal(pair.t[0]->ops->length(pair.t[0], remote), len);
                const size_t n = len < PAIR_LEN ? len : PAIR_LEN;
                memset(pair.mem[0], (int)len, n);
                memset(mine + off[i], 0, len);
                struct trib_write w = {.local = pair.region[0],
                                       .remote = remote,
                                       .remote_off = len - n,
                                       .len = n};
                assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
                expect_arrival(&pair, 1, 0, n);
                assert_memory_equal(mine + off[i] + len - n, pair.mem[0], n);
                pair.t[0]->ops->release(pair.t[0], remote);
                o->ops->dereg(o, region);
            }
        }
        pair_close(&pair);
        free(mine);
        assert_int_equal(fake_verbs_mistakes(), 0);
        assert_int_equal(fake_verbs_live(), 0);
    }
}

TEST(test_posting, clean, nothing_left)
{
    struct pair pair;
    struct trib_event e;

    fake_verbs_reset()->inline_max = 100;
    open_pair(&pair);
    for (uint32_t i = 0; i < 64; i++) {
        struct trib_write w = {.local = pair.region[0],
                               .remote = pair.remote[0],
                               .len = i % 2 ? 64 : 65,
                               .imm = i};
        assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
        expect_arrival(&pair, 1, i, w.len);
        assert_int_equal(pair_poll(&pair, 0, 0, &e), 0);
    }
    struct fake_verbs_counts counts = fake_verbs_posted();
    assert_int_equal(counts.sends, 64);
    assert_int_equal(counts.inlined, 32);
    assert_int_equal(counts.signalled, 2);
    pair_close(&pair);
}

/* A write longer than a message of the device: pieces, and one event. */
TEST(test_pieces, clean, nothing_left)
{
    struct pair pair;
    struct trib_event e;

    fake_verbs_reset()->message_max = 1000;
    open_pair(&pair);
    memset(pair.mem[0], 7, PAIR_LEN);
    for (uint32_t len = PAIR_LEN; len >= 512; len -= 256) {
        memset(pair.mem[1], 0, PAIR_LEN);
        assert_ok(pair_write(&pair, len, len));
        expect_arrival(&pair, 1, len, len);
        assert_int_equal(pair.mem[1][0] + pair.mem[1][len - 1], 14);
        assert_int_equal(pair_await(&pair, 0, &e), 1);
        assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
        assert_int_equal(e.token, len);
    }
    pair_close(&pair);
    (void)fake_verbs_reset();
    fake_verbs_reset()->message_max = 100;
    pair_open(&pair, "verbs:depth=32", "verbs");
    assert_status(pair_write(&pair, PAIR_LEN, 1), TRIB_ERR_RANGE);
    contains(pair.err.text, "raise verbs:depth=32");
    pair_close(&pair);
}

TEST(test_full, clean, nothing_left)
{
    struct pair pair;
    uint32_t sent = 0;

    open_pair(&pair);
    fake_verbs_hold(true);
    while (pair_write(&pair, 8, sent) == TRIB_OK)
        sent++;
    assert_int_equal(sent, 127); /* one place is for the DISCONNECT */
    fake_verbs_hold(false);
    for (uint32_t i = 0; i < sent; i++)
        expect_arrival(&pair, 1, i, 8);
    pair_close(&pair);
}

/* A peer that reads nothing cannot delay a disconnect. */
TEST(test_leave_stuck, clean, nothing_left)
{
    struct pair pair;
    uint64_t start = trib_now_ns();

    open_pair(&pair);
    fake_verbs_hold(true);
    assert_ok(pair_write(&pair, 8, 1));
    pair.t[0]->ops->disconnect(pair.t[0], 1);
    assert_in_range(trib_now_ns() - start, 100000000u, 5000000000u);
    expect_loss(&pair, 1, "closed its connection");
    pair_close(&pair);
}

/* Writes of others during a farewell are not lost. */
TEST(test_deferred_cqes, clean, nothing_left)
{
    struct pair pair;

    open_pair(&pair);
    struct trib_write w = {.imm = 5};
    assert_ok(pair.t[1]->ops->write(pair.t[1], 0, &w));
    struct verbs *v = (struct verbs *)pair.t[0];
    trib_verbs_send_last(v, 1, VERBS_DISCONNECT);
    trib_verbs_drain(v, 1, trib_deadline_ms(5000));
    expect_arrival(&pair, 0, 5, 0);
    expect_loss(&pair, 1, "has left");
    pair_close(&pair);
}

/* A write that ends in this status: the loss, and one line of log. */
static void try_status(enum ibv_wc_status status, const char *why, const char *logged)
{
    struct pair pair;

    (void)fake_verbs_reset();
    open_pair(&pair);
    fake_verbs_fail(status);
    assert_ok(pair_write(&pair, 8, 1));
    (void)pair_write(&pair, 8, 2); /* is flushed */
    expect_loss(&pair, 0, why);
    assert_int_equal(pair.lines, 1);
    contains(pair.logged, "127.9.0.1 on fake0 to rank 1 (process");
    contains(pair.logged, "at 127.9.0.1: ");
    contains(pair.logged, logged);
    expect_loss(&pair, 1, "process");
    pair_close(&pair);
    assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
}

/* Each status of a completion has its words, and only the first of a connection
 * counts. */
TEST(test_statuses, clean, nothing_left)
{
    static const struct {
        enum ibv_wc_status status;
        const char *why, *logged;
    } cases[] = {
        {IBV_WC_RETRY_EXC_ERR, "its host no longer answers", "UDP port 4791"},
        {IBV_WC_RNR_RETRY_EXC_ERR, "it no longer accepts writes", "verbs:receives=N"},
        {IBV_WC_REM_ACCESS_ERR, "it refused a write", "freed or unmapped"},
        {IBV_WC_LOC_PROT_ERR, "the source of a write is not registered", "127.9.0.1"},
        {IBV_WC_FATAL_ERR, "the device of this host has failed", "dmesg"},
        {(enum ibv_wc_status)99, "an unknown error", "status 99"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        try_status(cases[i].status, cases[i].why, cases[i].logged);
    for (int s = IBV_WC_SUCCESS + 1; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
        struct verbs_status_text text = trib_verbs_status_text((enum ibv_wc_status)s);
        assert_true(strlen(text.clause) > 10 && strlen(text.advice) > 10);
        assert_null(strstr(text.clause, "an unknown error"));
        try_status((enum ibv_wc_status)s, text.clause, text.advice);
    }
}

TEST(test_async, clean, nothing_left)
{
    static const struct {
        enum ibv_event_type type;
        const char *why;
    } cases[] = {
        {IBV_EVENT_QP_FATAL, "the device reported a fatal error of its queue pair"},
        {IBV_EVENT_QP_REQ_ERR, "it sent an invalid request"},
        {IBV_EVENT_QP_ACCESS_ERR, "it wrote outside this rank's regions"},
        {IBV_EVENT_CQ_ERR, "this host's RDMA device fake0 reports a failed queue"},
        {IBV_EVENT_SRQ_ERR, "this host's RDMA device fake0 reports a failed queue"},
        {IBV_EVENT_DEVICE_FATAL, "this host's RDMA device fake0 has failed"},
    };
    struct pair pair;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)fake_verbs_reset();
        open_pair(&pair);
        if (cases[i].type == IBV_EVENT_DEVICE_FATAL)
            fake_verbs_async(0, cases[i].type);
        else
            fake_verbs_async_of(verbs_of(pair.t[0])->cq, cases[i].type);
        expect_loss(&pair, 0, cases[i].why);
        pair_close(&pair);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* The device stops a queue pair and flushes; its completions come later. */
TEST(test_flush, clean, nothing_left)
{
    struct pair pair;
    struct trib_event e;

    open_pair(&pair);
    struct verbs *v = (struct verbs *)pair.t[0];
    fake_verbs_fail(IBV_WC_WR_FLUSH_ERR);
    assert_ok(pair_write(&pair, 8, 1));
    assert_int_equal(pair.t[0]->ops->poll(pair.t[0], &e, 1), 0);
    assert_int_equal(v->peers[1].base.state, TRIB_PEER_DRAINING);
    trib_verbs_lose_peer(v, 1, "the cause");
    trib_verbs_lose_peer(v, 1, "a consequence");
    expect_loss(&pair, 0, "the cause");
    pair_close(&pair);
}

/* Events of a port are logged; connections may outlive it. */
TEST(test_port, clean, nothing_left)
{
    static const struct {
        enum ibv_event_type type;
        const char *logged;
    } cases[] = {
        {IBV_EVENT_PORT_ERR, "port 1 of fake0 is down: peers are lost unless it comes"},
        {IBV_EVENT_PORT_ACTIVE, "port 1 of fake0 is active"},
        {IBV_EVENT_GID_CHANGE, "port 1 of fake0 has new addresses"},
        {IBV_EVENT_LID_CHANGE, "port 1 of fake0 has new addresses"},
        {IBV_EVENT_PKEY_CHANGE, "port 1 of fake0 has new partition keys"},
        {IBV_EVENT_SM_CHANGE, "port 1 of fake0 has a new or restarted subnet manager"},
        {IBV_EVENT_CLIENT_REREGISTER,
         "port 1 of fake0 has a new or restarted subnet manager"},
        {IBV_EVENT_COMM_EST, ""},
    };
    struct pair pair;
    struct trib_event e;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)fake_verbs_reset();
        open_pair(&pair);
        fake_verbs_async(0, cases[i].type);
        while (fake_verbs_async_waits(0))
            usleep(1000);
        assert_ok(pair_write(&pair, 8, 1));
        expect_arrival(&pair, 1, 1, 8);
        assert_int_equal(pair_poll(&pair, 1, 20, &e), 0);
        pair_close(&pair); /* waits for the logging thread */
        assert_int_equal(pair.lines,
                         *cases[i].logged ? 2 : 0); /* a line of each side */
        contains(pair.logged, cases[i].logged);
        assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    }
}

/* A cable that is pulled and plugged in again ends no connection. */
TEST(test_unplug, clean, nothing_left)
{
    struct pair pair;
    struct trib_event e;

    open_pair(&pair);
    fake_verbs_unplug();
    assert_int_equal(pair_poll(&pair, 0, 100, &e), 0);
    assert_int_equal(pair_poll(&pair, 1, 100, &e), 0);
    assert_ok(pair_write(&pair, 8, 2));
    expect_arrival(&pair, 1, 2, 8);
    pair_close(&pair);
}

/* The writes of a dead peer come first; both directions end. */
TEST(test_cut, clean, nothing_left)
{
    struct pair pair;

    open_pair(&pair);
    struct trib_write w = {.imm = 3};
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    fake_verbs_cut();
    expect_arrival(&pair, 1, 3, 0);
    expect_loss(&pair, 1, "closed its connection");
    expect_loss(&pair, 0, "closed its connection");
    pair_close(&pair);
}

TEST(test_removal, clean, nothing_left)
{
    struct pair pair;

    open_pair(&pair);
    fake_verbs_remove();
    expect_loss(&pair, 0, "this host's RDMA device fake0 was removed");
    pair_close(&pair);
}

/* A loss ends a sleep. */
TEST(test_sleep, clean, nothing_left)
{
    struct pair pair;
    struct trib_event e;

    open_pair(&pair);
    pair.t[0]->ops->arm(pair.t[0]);
    assert_int_equal(pair_poll(&pair, 0, 0, &e), 0);
    uint64_t start = trib_now_ns();
    fake_verbs_cut();
    pair.t[0]->ops->wait(pair.t[0], 30000000);
    assert_true(trib_now_ns() - start < UINT64_C(15000000000));
    expect_loss(&pair, 0, "closed its connection");
    pair_close(&pair);
}

static uint32_t receives_of(int size, const char *params)
{
    struct pair pair = {.cfg.window = 8};
    struct trib_transport_opts opts = pair_opts(&pair, 0);

    opts.size = size;
    assert_status(trib_transport_open(params, &opts, &pair.t[0]), TRIB_OK);
    const struct verbs *v = (const struct verbs *)pair.t[0];
    const uint32_t receives = v->receives;
    assert_int_equal(((const struct fake_srq *)v->srq)->receives.n, receives);
    assert_true((uint64_t)v->cq->cqe >=
                receives + (uint64_t)(size - 1) * (v->depth + 1));
    pair.t[0]->ops->close(pair.t[0]);
    return receives;
}

/* Peers may fill their windows before this rank polls. 4096 receives for all delayed
 * 512 peers and more. */
TEST(test_receives, clean, nothing_left)
{
    fake_verbs_reset();
    assert_int_equal(receives_of(2, ALONE ",rails=1"), 4096);
    assert_int_equal(receives_of(171, ALONE ",rails=1"), 4096);
    assert_int_equal(receives_of(512, ALONE ",rails=1"), 511 * 24);
    assert_int_equal(receives_of(1024, ALONE ",rails=1"), 1023 * 24);
    assert_int_equal(receives_of(4096, ALONE ",rails=1"), 32768);
    assert_int_equal(receives_of(1024, ALONE ",rails=1,receives=100"), 100);
}

static int vector_of(int self)
{
    struct pair pair = {.cfg.window = 8};
    struct trib_transport_opts opts = pair_opts(&pair, 0);

    opts.self = self;
    opts.size = 64;
    assert_status(trib_transport_open(ALONE ",rails=1", &opts, &pair.t[0]), TRIB_OK);
    pair.t[0]->ops->close(pair.t[0]);
    return fake_verbs_vector();
}

/* The completions of a host's ranks interrupt different cores, whether its ranks are
 * consecutive or dealt out over 8 hosts. */
TEST(test_completion_vectors, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();

    opts->comp_vectors = 8;
    for (int step = 1; step <= 8; step += 7) {
        unsigned used = 0;
        for (int i = 0; i < 8; i++)
            used |= 1u << vector_of(i * step);
        assert_int_equal(used, 0xff);
    }
    opts->comp_vectors = 1;
    assert_int_equal(vector_of(63), 0);
}
