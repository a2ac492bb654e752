/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What connections over verbs ask of the network: partition, class, retries. The same
 * holds however ranks connect. The device is one in memory.
 */
#include "tests/transport/verbs/verbs_oob_pair.h"

static void set_class(uint8_t traffic_class)
{
    (void)fake_verbs_reset();
    fake_verbs_port_opts(0, 0, 1)->roce_tos = traffic_class;
}

static const char *const ways[] = {"connect=rdmacm", "connect=gid"};

/* Open a pair that connects one way, with more parameters. */
static void open_by(struct pair *pair, const char *way, const char *more)
{
    char text[200];

    snprintf(text, sizeof(text), ALONE ",%s%s", way, more);
    pair_open(pair, text, text);
    assert_ok(pair_write(pair, 8, 7));
    expect_arrival(pair, 1, 7, 8);
}

static struct fake_qp attributes_of(const struct ibv_qp *qp)
{
    struct fake_qp row;

    for (int n = 0; fake_verbs_qp(n, &row); n++)
        if (row.number == qp->qp_num)
            return row;
    fail();
    return row;
}

/* Return the attributes of the queue pair for rank 0's writes. Its other end, which
 * acknowledges them, has the same. */
static struct fake_qp traffic_of(struct pair *pair)
{
    const struct fake_qp out = attributes_of(inside(pair, 0)->peers[1].out.qp);
    const struct fake_qp in = attributes_of(inside(pair, 1)->peers[0].in.qp);

    assert_int_equal(in.pkey, out.pkey);
    assert_int_equal(in.traffic_class, out.traffic_class);
    assert_int_equal(in.sl, out.sl);
    assert_int_equal(in.hop_limit, out.hop_limit);
    return out;
}

TEST(test_settings, clean, nothing_left)
{
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        set_class(8);
        fake_verbs_port_opts(0, 0, 1)->pkeys[1] = 0x8001;
        open_by(&pair, ways[i],
                ",traffic_class=106,sl=3,pkey=0x8001,hop_limit=12,ack_timeout=18,"
                "retry_count=5,rnr_retry=6");
        const struct fake_qp t = traffic_of(&pair);
        assert_int_equal(t.traffic_class, 106);
        assert_int_equal(t.sl, 3);
        assert_int_equal(t.pkey, 0x8001);
        assert_int_equal(t.hop_limit, 12);
        assert_int_equal(t.timeout, 18);
        assert_int_equal(t.retry_cnt, 5);
        assert_int_equal(t.rnr_retry, 6);
        pair_close(&pair);
    }
}

/* The class is the one that the administrator gave to the port; 0 may be set. */
TEST(test_default_class, clean, nothing_left)
{
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        set_class(106);
        open_by(&pair, ways[i], "");
        const struct fake_qp t = traffic_of(&pair);
        assert_int_equal(t.traffic_class, 106);
        assert_int_equal(t.sl, 0);
        assert_int_equal(t.hop_limit, 64);
        assert_int_equal(t.retry_cnt, 7);
        assert_int_equal(t.rnr_retry, 7);
        pair_close(&pair);
        open_by(&pair, ways[i], ",traffic_class=0");
        assert_int_equal(traffic_of(&pair).traffic_class, 0);
        pair_close(&pair);
    }
}

/* On InfiniBand the class of RoCE does not apply. */
TEST(test_infiniband, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct pair pair;

    opts->infiniband = true;
    opts->lid = 17;
    fake_verbs_port_opts(0, 0, 1)->roce_tos = 106;
    for (int i = 0; i < 4; i++)
        fake_verbs_gid(0, i, i ? NULL : "fec0::1:2:3:4", IBV_GID_TYPE_IB);
    open_by(&pair, "connect=gid", ",sl=5");
    assert_int_equal(traffic_of(&pair).traffic_class, 0);
    assert_int_equal(traffic_of(&pair).sl, 5);
    pair_close(&pair);
}

/* A limited member does not reach another one: the first full membership counts. */
TEST(test_default_partition, clean, nothing_left)
{
    static const uint16_t tables[][FAKE_PKEYS] = {
        {0x7fff, 0x8001}, {0, 0x8001, 0xffff}, {0x0001, 0x0002, 0x8001}};

    for (int i = 0; i < 3; i++) {
        struct pair pair;
        (void)fake_verbs_reset();
        memcpy(fake_verbs_port_opts(0, 0, 1)->pkeys, tables[i], sizeof(tables[i]));
        open_by(&pair, "connect=gid", "");
        assert_int_equal(traffic_of(&pair).pkey, 0x8001);
        pair_close(&pair);
    }
}

/* The membership bit of the setting does not matter. */
TEST(test_partition_number, clean, nothing_left)
{
    static const char *const texts[] = {",pkey=5", ",pkey=0x8005", ",pkey=32773"};

    for (int i = 0; i < 6; i++) {
        static const uint16_t table[] = {0xffff, 0x0005, 0x8005, 0x8006};
        struct pair pair;
        (void)fake_verbs_reset();
        memcpy(fake_verbs_port_opts(0, 0, 1)->pkeys, table, sizeof(table));
        open_by(&pair, ways[i % 2], texts[i / 2]);
        assert_int_equal(traffic_of(&pair).pkey, 0x8005);
        pair_close(&pair);
    }
}

/* Without a subnet manager, a port is in no partition. */
TEST(test_no_partition, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();

    fake_verbs_port_opts(0, 0, 1)->pkeys[0] = 0;
    opts->infiniband = true;
    opts->lid = 17;
    pair_refuses(BY_GID, TRIB_ERR_UNSUPPORTED,
                 "port 1 of fake0 is in no partition: is a subnet manager running?");
}

TEST(test_bad_values, clean, nothing_left)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"verbs:traffic_class=256", "traffic_class=256 is not a whole number from 0"},
        {"verbs:traffic_class=-1", "traffic_class=-1 is not a whole number from 0"},
        {"verbs:traffic_class", "traffic_class needs a value, as in traffic_class=0"},
        {"verbs:sl=16", "sl=16 is not a whole number from 0 to 15"},
        {"verbs:sl=0x", "sl=0x is not a whole number"},
        {"verbs:pkey=0", "pkey=0 is not a whole number from 1 to 65535"},
        {"verbs:pkey=0x10000", "pkey=0x10000 is not a whole number from 1 to 65535"},
        {"verbs:pkey=0x8005",
         "pkey=0x8005: port 1 of fake0 is not in this partition, but in 0xffff, "
         "0x0003"},
        {"verbs:pkey=0x8000", "pkey=0x8000: port 1 of fake0 is not in this partition"},
        {"verbs:hop_limit=0", "hop_limit=0 is not a whole number from 1 to 255"},
        {"verbs:ack_timeout=0", "ack_timeout=0 is not a whole number from 1 to 22"},
        {"verbs:ack_timeout=23", "ack_timeout=23 is not a whole number from 1 to 22"},
        {"verbs:retry_count=8", "retry_count=8 is not a whole number from 1 to 7"},
        {"verbs:qps=0", "qps=0 is not a whole number from 1 to 8"},
        {"verbs:qps=9", "qps=9 is not a whole number from 1 to 8"},
        {"verbs:rnr_retry=0", "rnr_retry=0 is not a whole number from 1 to 7"},
        {"verbs:service_level=1", "verbs has no parameter \"service_level\""},
    };

    (void)fake_verbs_reset();
    fake_verbs_port_opts(0, 0, 1)->pkeys[1] = 3;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        pair_refuses(cases[i].text, TRIB_ERR_CONFIG, cases[i].words);
}

/* A silent peer is lost after TRIB_STOP_TIMEOUT_MS, however often packets are sent. */
TEST(test_timeout, clean, nothing_left)
{
    struct pair pair;

    open_by(&pair, "connect=gid", "");
    const struct fake_qp often = traffic_of(&pair);
    pair_close(&pair);
    open_by(&pair, "connect=gid", ",retry_count=1");
    assert_int_equal(traffic_of(&pair).retry_cnt, 1);
    assert_int_equal(traffic_of(&pair).timeout, often.timeout + 2);
    pair_close(&pair);
}

/* Each message fits the port with the smaller limit, whichever way ranks connect. */
TEST(test_message_size, clean, nothing_left)
{
    for (int i = 0; i < 4; i++) {
        struct fake_verbs_opts *opts = fake_verbs_reset();
        struct trib_address address[2];
        struct trib_blob region[2];
        struct pair pair = {0};
        char text[40];
        snprintf(text, sizeof(text), ALONE ",%s", ways[i % 2]);
        for (int k = 0; k < 2; k++) {
            opts->message_max = k == i / 2 ? 1 << 30 : 1024;
            struct trib_transport_opts side = pair_opts(&pair, k);
            assert_ok(trib_transport_open(text, &side, &pair.t[k]));
            pair_offer(&pair, k, &address[k], &region[k]);
        }
        assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address[1]));
        assert_ok(
            pair.t[0]->ops->import_region(pair.t[0], 1, &region[1], &pair.remote[0]));
        const int before = fake_verbs_posted().sends;
        const struct trib_write w = {.local = pair.region[0],
                                     .remote = pair.remote[0],
                                     .len = 3 * 1024 + 1,
                                     .imm = 5};
        assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
        expect_arrival(&pair, 1, 5, 3 * 1024 + 1);
        assert_int_equal(fake_verbs_posted().sends - before, 5); /* with the number of
                                                                  * pieces */
        pair_close(&pair);
    }
}

/* A rank that cannot read a class, as in a container, uses its peer's. */
TEST(test_unknown_class, clean, nothing_left)
{
    for (int knows = 0; knows < 2; knows++) {
        struct trib_address address;
        struct pair pair;
        set_class(106);
        open_apart(&pair, BY_GID, &address);
        inside(&pair, !knows)->has_class = false;
        inside(&pair, !knows)->traffic_class = 0;
        connects(&pair, &address);
        assert_int_equal(traffic_of(&pair).traffic_class, 106);
        pair_close(&pair);
    }
}

/* The listener uses the requester's partition, wherever its own table has it. */
TEST(test_common_partition, clean, nothing_left)
{
    static const struct {
        uint16_t tables[2][FAKE_PKEYS];
        const char *words; /* NULL: they connect */
    } cases[] = {
        {{{0x8001, 0xffff}, {0xffff, 0x8001}}, NULL},
        {{{0x8001, 0xffff}, {0x8002, 0x0001}}, NULL},
        {{{0x8001}, {0x8002}}, "not in the partition of this rank's port"},
        {{{0x0001}, {0x8002, 0x0001}}, "both are limited members"},
    };

    for (int i = 0; i < 4; i++) {
        struct trib_address address;
        struct pair pair = {0};
        fake_verbs_reset()->hosts = 2;
        for (int k = 0; k < 2; k++) {
            memcpy(fake_verbs_port_opts(k, 0, 1)->pkeys, cases[i].tables[k],
                   sizeof(cases[i].tables[k]));
            fake_verbs_host(k);
            struct trib_transport_opts side = pair_opts(&pair, k);
            assert_ok(trib_transport_open(BY_GID, &side, &pair.t[k]));
        }
        fake_verbs_host(0);
        assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
        if (cases[i].words)
            connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, cases[i].words);
        else
            connects(&pair, &address);
        pair_close(&pair);
    }
}

/* The connection manager connects ranks of different partitions, but no packet would
 * get through. By GIDs they connect if one may follow the other. */
TEST(test_unequal_partitions, clean, nothing_left)
{
    static const struct {
        const char *settings[2], *words;
        bool by_gids;
    } cases[] = {
        {{",pkey=5", ",pkey=6"},
         "the partitions differ: here 0x8005 (verbs:pkey), there 0x8006 (verbs:pkey): "
         "set the same verbs:pkey on all ranks",
         false},
        {{",pkey=5", ""}, "here 0x8005 (verbs:pkey), there 0xffff (librdmacm's)", true},
        {{"", ",pkey=6"},
         "here 0xffff (librdmacm's), there 0x8006 (verbs:pkey)",
         false},
        {{",pkey=7", ",pkey=7"}, "and make one port a full member", false},
        {{",pkey=5", ",pkey=5"}, NULL, true},
        {{"", ",pkey=0x7fff"}, NULL, true},
    };
    static const uint16_t table[FAKE_PKEYS] = {0xffff, 0x8005, 0x8006, 0x0007};

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const bool best = i % 2;
        const char *words = best && cases[i / 2].by_gids ? NULL : cases[i / 2].words;
        struct trib_address address;
        struct pair pair = {0};
        (void)fake_verbs_reset();
        memcpy(fake_verbs_port_opts(0, 0, 1)->pkeys, table, sizeof(table));
        for (int k = 0; k < 2; k++) {
            char text[160];
            struct trib_transport_opts side = pair_opts(&pair, k);
            snprintf(text, sizeof(text), ALONE "%s%s", cases[i / 2].settings[k],
                     best ? "" : ",connect=rdmacm");
            assert_ok(trib_transport_open(text, &side, &pair.t[k]));
        }
        assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
        if (words)
            connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, words);
        else
            connects(&pair, &address);
        pair_close(&pair);
    }
}

/* A transport lists the counters of all its ports, each once. */
TEST(test_trouble, clean, nothing_left)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"verbs:rails=1", "fake0 port 1: local_ack_timeout +3"},
        {"verbs:qps=2,device=fake0", "fake0 port 1: local_ack_timeout +3"},
        {"verbs",
         "fake0 port 1: local_ack_timeout +3; fake1 port 1: local_ack_timeout +1"},
        {"verbs:rails=1+trace", "fake0 port 1: local_ack_timeout +3"},
        {"auto:ranks_per_host=1",
         "fake0 port 1: local_ack_timeout +3; fake1 port 1: local_ack_timeout +1"},
        {"auto:ranks_per_host=1,qps=2,device=fake0",
         "fake0 port 1: local_ack_timeout +3"},
        {"tcp", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[320] = "x";
        struct pair pair = {0};
        struct trib_transport *t;
        fake_verbs_reset()->devices = 2;
        fake_verbs_port_opts(0, 0, 1)->ack_timeouts = 7;
        struct trib_transport_opts opts = pair_opts(&pair, 0);
        assert_ok(trib_transport_open(cases[i].text, &opts, &t));
        t->ops->trouble(t, text, sizeof(text));
        assert_string_equal(text, "");
        fake_verbs_port_opts(0, 0, 1)->ack_timeouts = 10;
        fake_verbs_port_opts(0, 1, 1)->ack_timeouts = 1;
        t->ops->trouble(t, text, sizeof(text));
        assert_string_equal(text, cases[i].expected);
        t->ops->close(t);
    }
}

/* Count the connected queue pairs of each path, by the flow label. */
static void count_labels(int counts[8], int *without)
{
    struct fake_qp row;

    *without = 0;
    memset(counts, 0, 8 * sizeof(*counts));
    for (int n = 0; fake_verbs_qp(n, &row); n++) {
        if (!row.remote)
            continue;
        assert_true(row.flow_label < 1 << 14); /* the source port is this, | 0xc000 */
        if (row.flow_label)
            counts[row.flow_label & 7]++;
        else
            ++*without;
    }
}

/* All queue pairs of two ranks have different source ports. With one queue pair, the
 * device chooses the port. A path has four queue pairs: two in each direction. */
TEST(test_paths, clean, nothing_left)
{
    static const struct {
        const char *text;
        int devices, counts[8], without;
    } cases[] = {
        {",qps=3", 1, {4, 4, 4}, 0},
        {",qps=8", 1, {4, 4, 4, 4, 4, 4, 4, 4}, 0},
        {",qps=4", 2, {8, 8, 8, 8}, 0},
        {",qps=8", 2, {8, 8, 8, 8}, 0}, /* at most 8 rails */
        {",qps=2,device=fake1", 2, {4, 4}, 0},
        {",qps=3", 3, {12, 12}, 0},
        {",qps=2,rails=5", 5, {0}, 20},
        {"", 1, {0}, 4},
    };

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        int counts[8], without;
        struct pair pair;
        fake_verbs_reset()->devices = cases[i / 2].devices;
        open_by(&pair, ways[i % 2], cases[i / 2].text);
        count_labels(counts, &without);
        assert_memory_equal(counts, cases[i / 2].counts, sizeof(counts));
        assert_int_equal(without, cases[i / 2].without);
        pair_close(&pair);
    }
}

/* Registrations ask for relaxed ordering, if the library can. */
TEST(test_relaxed_ordering, clean, nothing_left)
{
    static const struct {
        const char *text;
        bool old;
        bool asks;
    } cases[] = {{ALONE, false, true},
                 {ALONE, true, false},
                 {ALONE ",relaxed_ordering=1", false, true},
                 {ALONE ",relaxed_ordering=0", false, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        struct pair pair;
        fake->no_iova2 = cases[i].old;
        pair_open(&pair, cases[i].text, cases[i].text);
        assert_ok(pair_write(&pair, 100, 2));
        expect_arrival(&pair, 1, 2, 100);
        assert_true(fake->regs > 0);
        assert_int_equal(fake->relaxed_regs, cases[i].asks ? fake->regs : 0);
        pair_close(&pair);
    }
}
