/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of GIDs, on tables as ibv_devinfo -v shows them on machines of many kinds.
 */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>

#include "transport/verbs/verbs_gid_select.h"

enum { IB = VERBS_GID_IB, V1 = VERBS_GID_ROCE_V1, V2 = VERBS_GID_ROCE_V2 };

struct line {
    uint8_t index, type;
    const char *address; /* NULL: the end */
    uint8_t prefix; /* of an IPv4 address, too, the bits of its own 32; 0: not here */
};

/* mlx5 in RoCE mode: link-local of its MAC and the addresses of the interface, each in
 * v1 and v2; index 4 on is a VLAN interface. */
static const struct line mlx5_a[] = {
    {0, V1, "fe80::e42:a1ff:fe00:1", 64}, {1, V2, "fe80::e42:a1ff:fe00:1", 64},
    {2, V1, "10.1.0.1", 24},              {3, V2, "10.1.0.1", 24},
    {4, V1, "fe80::e42:a1ff:fe00:1", 64}, {5, V2, "fe80::e42:a1ff:fe00:1", 64},
    {6, V1, "10.2.0.1", 24},              {7, V2, "10.2.0.1", 24},
    {8, V1, "2001:db8:1::1", 64},         {9, V2, "2001:db8:1::1", 64},
    {0},
};
static const struct line mlx5_b[] = {
    {0, V1, "fe80::e42:a1ff:fe00:2", 64}, {1, V2, "fe80::e42:a1ff:fe00:2", 64},
    {2, V1, "10.1.0.2", 24},              {3, V2, "10.1.0.2", 24},
    {0},
};
/* Its only IPv4 address is in the subnet of the VLAN of mlx5_a. */
static const struct line vlan_only[] = {
    {0, V1, "fe80::e42:a1ff:fe00:3", 64}, {1, V2, "fe80::e42:a1ff:fe00:3", 64},
    {4, V1, "10.2.0.3", 24},              {5, V2, "10.2.0.3", 24},
    {0},
};
static const struct line far_subnet[] = {
    {0, V1, "fe80::e42:a1ff:fe00:4", 64}, {1, V2, "fe80::e42:a1ff:fe00:4", 64},
    {2, V1, "10.9.0.4", 24},              {3, V2, "10.9.0.4", 24},
    {0},
};
static const struct line six_only[] = {
    {0, V1, "fe80::e42:a1ff:fe00:5", 64}, {1, V2, "fe80::e42:a1ff:fe00:5", 64},
    {2, V1, "2001:db8:1::5", 64},         {3, V2, "2001:db8:1::5", 64},
    {0},
};
/* An interface without addresses: only the GIDs that the driver derives from the MAC.
 */
static const struct line bare[] = {
    {0, V1, "fe80::e42:a1ff:fe00:6", 0},
    {1, V2, "fe80::e42:a1ff:fe00:6", 0},
    {0},
};
/* ConnectX-3 with an old kernel, or a driver configured so: v1 only. */
static const struct line v1_a[] = {
    {0, V1, "fe80::202:c9ff:fe00:1", 64}, {1, V1, "10.1.0.11", 24}, {0}};
static const struct line v1_b[] = {
    {0, V1, "fe80::202:c9ff:fe00:2", 64}, {1, V1, "10.1.0.12", 24}, {0}};
static const struct line v1_far[] = {
    {0, V1, "fe80::202:c9ff:fe00:3", 64}, {1, V1, "10.7.0.13", 24}, {0}};
/* Soft-RoCE knows v2 alone. */
static const struct line rxe_a[] = {
    {0, V2, "fe80::5054:ff:fe77:0", 64}, {1, V2, "10.77.0.1", 24}, {0}};
static const struct line rxe_b[] = {
    {0, V2, "fe80::5054:ff:fe77:1", 64}, {1, V2, "10.77.0.2", 24}, {0}};
/* A container: the table of the host's port, whose own addresses are not of this name
 * space, with holes where other containers' are hidden. */
static const struct line pod_a[] = {
    {1, V2, "fe80::e42:a1ff:fe00:7", 0}, {3, V2, "10.1.0.7", 0},
    {38, V1, "10.200.4.7", 24},          {39, V2, "10.200.4.7", 24},
    {0},
};
static const struct line pod_b[] = {
    {1, V2, "fe80::e42:a1ff:fe00:8", 0}, {3, V2, "10.1.0.8", 0},
    {52, V1, "10.200.9.8", 24},          {53, V2, "10.200.9.8", 24},
    {0},
};
/* Both hosts have a container bridge of the same address. */
static const struct line bridge_a[] = {
    {0, V2, "172.17.0.1", 16}, {1, V2, "10.1.0.21", 24}, {0}};
static const struct line bridge_b[] = {
    {0, V2, "172.17.0.1", 16}, {1, V2, "10.5.0.22", 24}, {0}};
static const struct line ib_a[] = {{0, IB, "fe80::24:8a07:300:1", 0}, {0}};
static const struct line ib_b[] = {{0, IB, "fe80::24:8a07:300:2", 0}, {0}};
static const struct line ib_other[] = {{0, IB, "fec0:0:0:7:24:8a07:300:3", 0}, {0}};
static const struct line ib_two[] = {{0, IB, "fe80::24:8a07:300:4", 0},
                                     {1, IB, "fec0:0:0:7:24:8a07:300:4", 0},
                                     {0}};
static const struct line none[] = {{0}};

static struct verbs_gid gid_of(const struct line *line)
{
    struct verbs_gid gid = {
        .index = line->index, .type = line->type, .prefix = line->prefix};

    if (inet_pton(AF_INET, line->address, gid.bytes + 12) == 1) {
        gid.bytes[10] = gid.bytes[11] = 0xff;
        gid.prefix = line->prefix ? (uint8_t)(96 + line->prefix) : 0;
    } else {
        assert_int_equal(inet_pton(AF_INET6, line->address, gid.bytes), 1);
    }
    return gid;
}

/* A table as verbs_gid_table.c makes it: routable entries first. */
static struct verbs_gid_table table(uint64_t node, const struct line *lines)
{
    struct verbs_gid_table t = {
        .node = node, .layer = VERBS_ETHERNET, .mtu = 5, .lid = (uint16_t)node};

    for (int pass = 0; pass < 2; pass++) {
        for (const struct line *l = lines; l->address; l++) {
            struct verbs_gid gid = gid_of(l);
            if (l->type == IB)
                t.layer = VERBS_INFINIBAND;
            assert_true(trib_verbs_gid_usable(&gid, (enum verbs_layer)t.layer));
            if (trib_verbs_gid_routable(&gid) == (pass == 0))
                t.gid[t.n++] = gid;
        }
    }
    return t;
}

/* Both ends find pairs of the same quality; the indices of the first one are used. */
static void expect(const struct line *a, const struct line *b, enum verbs_way way,
                   int own, int peer)
{
    struct verbs_gid_table here = table(1, a), there = table(2, b);
    struct verbs_pair pair = trib_verbs_pair(&here, &there);
    struct verbs_pair back = trib_verbs_pair(&there, &here);

    assert_string_equal(trib_verbs_way_text(pair.way), trib_verbs_way_text(way));
    assert_int_equal(pair.found, own >= 0);
    assert_int_equal(trib_verbs_way_back(back.way), way);
    assert_int_equal(back.found, pair.found);
    if (own < 0)
        return;
    assert_int_equal(here.gid[pair.own].index, own);
    assert_int_equal(there.gid[pair.peer].index, peer);
    assert_int_equal(here.gid[pair.own].type, there.gid[pair.peer].type);
}

TEST(test_subnet)
{
    expect(mlx5_a, mlx5_b, VERBS_WAY_V2_SUBNET, 3, 3);
    expect(mlx5_b, mlx5_a, VERBS_WAY_V2_SUBNET, 3, 3);
    expect(mlx5_a, vlan_only, VERBS_WAY_V2_SUBNET, 7, 5);
    expect(mlx5_a, six_only, VERBS_WAY_V2_SUBNET, 9, 3);
    expect(rxe_a, rxe_b, VERBS_WAY_V2_SUBNET, 1, 1);
    expect(v1_a, v1_b, VERBS_WAY_V1_SUBNET, 1, 1);
    expect(mlx5_a, v1_a, VERBS_WAY_V1_SUBNET, 2, 1);
}

TEST(test_route)
{
    expect(mlx5_b, far_subnet, VERBS_WAY_V2_ROUTED, 3, 3);
    expect(mlx5_a, far_subnet, VERBS_WAY_V2_ROUTED, 3, 3);
    expect(mlx5_b, vlan_only, VERBS_WAY_V2_ROUTED, 3, 5);
}

/* The last resort: both may be on one cable, or not. */
TEST(test_link_local)
{
    expect(bare, mlx5_b, VERBS_WAY_V2_LINK, 1, 1);
    expect(bare, bare, VERBS_NO_COMMON_SUBNET, -1, -1); /* a clone of the MAC */
    expect(mlx5_b, six_only, VERBS_WAY_V2_LINK, 1, 1);
    expect(v1_a, v1_far, VERBS_WAY_V1_LINK, 0, 0); /* no router passes v1 on */
    expect(v1_a, bare, VERBS_WAY_V1_LINK, 0, 0);
}

/* An address that both ends have leads back to each of them. */
TEST(test_same_address)
{
    expect(bridge_a, bridge_b, VERBS_WAY_V2_ROUTED, 0, 1);
    struct verbs_gid_table here = table(1, bridge_a), there = table(2, bridge_b);
    for (int i = 0; i < 2; i++) {
        struct verbs_pair pair = trib_verbs_pair(&here, &there);
        assert_memory_not_equal(here.gid[pair.own].bytes, there.gid[pair.peer].bytes,
                                16);
    }
    /* Two ranks of one device. */
    here = table(1, mlx5_a);
    struct verbs_pair self = trib_verbs_pair(&here, &here);
    assert_int_equal(self.way, VERBS_WAY_V2_SUBNET);
    assert_int_equal(here.gid[self.own].index, 3);
    assert_int_equal(here.gid[self.peer].index, 3);
}

/* Addresses of this name space before those of the host, whose subnet is a closer
 * match. */
TEST(test_container)
{
    expect(pod_a, pod_b, VERBS_WAY_V2_ROUTED, 39, 53);
    expect(pod_a, mlx5_b, VERBS_WAY_V2_ROUTED, 39, 3);
}

TEST(test_infiniband)
{
    expect(ib_a, ib_b, VERBS_WAY_IB, 0, 0);
    expect(ib_two, ib_other, VERBS_WAY_IB, 1, 0);
    expect(ib_a, ib_other, VERBS_NO_COMMON_SUBNET, -1, -1);
    expect(ib_a, mlx5_a, VERBS_NO_COMMON_LAYER, -1, -1);
    struct verbs_gid_table a = table(1, ib_a), b = table(2, ib_b);
    assert_false(trib_verbs_pair(&a, &b).global);
    b.grh = 1;
    assert_true(trib_verbs_pair(&a, &b).global);
    b.n = 0;
    struct verbs_pair pair = trib_verbs_pair(&a, &b);
    assert_int_equal(pair.way, VERBS_NO_GID_THERE);
    assert_false(pair.found);
    b.grh = 0; /* then LIDs do */
    assert_true(trib_verbs_pair(&a, &b).found);
    b.lid = 0;
    pair = trib_verbs_pair(&a, &b);
    assert_int_equal(pair.way, VERBS_NO_LID);
    assert_false(pair.found);
}

TEST(test_nothing)
{
    static const struct line only_v2[] = {{1, V2, "10.1.0.1", 24}, {0}};
    static const struct line only_six[] = {{1, V2, "2001:db8::1", 64}, {0}};

    expect(none, mlx5_a, VERBS_NO_GID_HERE, -1, -1);
    expect(mlx5_a, none, VERBS_NO_GID_THERE, -1, -1);
    expect(v1_a, rxe_a, VERBS_NO_COMMON_TYPE, -1, -1);
    expect(only_v2, only_six, VERBS_NO_COMMON_SCOPE, -1, -1);
}

TEST(test_mtu)
{
    struct verbs_gid_table a = table(1, mlx5_a), b = table(2, mlx5_b);

    b.mtu = 3;
    assert_int_equal(trib_verbs_pair(&a, &b).mtu, 3);
    assert_int_equal(trib_verbs_pair(&b, &a).mtu, 3);
    assert_true(trib_verbs_pair(&a, &b).global);
}

TEST(test_usable)
{
    static const struct {
        const char *address;
        bool usable, routable;
    } cases[] = {
        {"::", false, false},           {"::1", false, false},
        {"fe80::", false, false},       {"ff02::1", false, false},
        {"0.0.0.0", false, false},      {"127.0.0.1", false, false},
        {"239.0.0.1", false, false},    {"169.254.3.4", true, false},
        {"fe80::1:2", true, false},     {"febf::1", true, false},
        {"fec0::1", true, true},        {"2001:db8::7", true, true},
        {"10.0.0.1", true, true},       {"fd00::1", true, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line line = {.type = V2, .address = cases[i].address};
        struct verbs_gid gid = gid_of(&line);
        assert_int_equal(trib_verbs_gid_usable(&gid, VERBS_ETHERNET), cases[i].usable);
        assert_int_equal(trib_verbs_gid_routable(&gid), cases[i].routable);
        assert_false(trib_verbs_gid_usable(&gid, VERBS_INFINIBAND));
        gid.type = IB;
        assert_false(trib_verbs_gid_usable(&gid, VERBS_ETHERNET));
    }
}

/* Whatever the tables, each pair that is found is one that can work; the order of a
 * table's lines does not change how good it is. */
TEST(test_all_pairs)
{
    static const struct line *const all[] = {
        mlx5_a, mlx5_b, vlan_only, far_subnet, six_only, bare,  v1_a,   v1_b,
        v1_far, rxe_a,  rxe_b,     pod_a,      pod_b,    ib_a,  ib_two, none,
    };
    const size_t n = sizeof(all) / sizeof(all[0]);

    for (size_t i = 0; i < n * n; i++) {
        struct verbs_gid_table a = table(1, all[i / n]), b = table(2, all[i % n]),
                           turned = a;
        struct verbs_pair pair = trib_verbs_pair(&a, &b);
        for (int k = 0; k < a.n; k++)
            turned.gid[k] = a.gid[a.n - 1 - k];
        assert_int_equal(trib_verbs_pair(&turned, &b).way, pair.way);
        assert_int_equal(pair.found, pair.way < VERBS_NO_COMMON_LAYER);
        assert_true(strlen(trib_verbs_way_text(pair.way)) > 10);
        if (!pair.found)
            continue;
        assert_true(pair.own < a.n && pair.peer < b.n);
        assert_int_equal(a.gid[pair.own].type, b.gid[pair.peer].type);
        if (a.layer == VERBS_ETHERNET)
            assert_memory_not_equal(a.gid[pair.own].bytes, b.gid[pair.peer].bytes, 16);
    }
    assert_non_null(strstr(trib_verbs_way_text(VERBS_WAYS), "unknown to this version"));
}
