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

    snprintf(text, sizeof(text), "verbs:%s%s", way, more);
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
