/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: which ports a rank uses: by name, network, speed and nearness, and which port
 * of a peer each goes to.
 */
#include "tests/transport/pair.h"

#include "tests/harness/fake_verbs.h"
#include "tests/harness/fakeroot.h"
#include "transport/backends.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs_select.h"
#include "transport/verbs/verbs_speed.h"

enum { SDR = 1, EDR = 32, HDR = 64, NDR = 128, X1 = 1, X4 = 2 };

static int devices(void **state)
{
    (void)state;
    fake_verbs_reset()->devices = 8;
    return 0;
}

static void set_speed(int device, uint8_t speed, uint8_t width)
{
    struct fake_port_opts *opts = fake_verbs_port_opts(0, device, 1);

    opts->active_speed = speed;
    opts->active_width = width;
}

/* Open a transport as the rank with this place on its host. */
static trib_status_t open_at(struct pair *pair, int side, int place, const char *text)
{
    struct trib_transport_opts opts = pair_opts(pair, side);

    opts.place = place;
    trib_error_clear(&pair->err);
    return trib_transport_open(text, &opts, &pair->t[side]);
}

static void assert_rails(const char *text, int place, const char *why)
{
    struct pair pair = {0};
    struct trib_route route;

    assert_status(open_at(&pair, 0, place, text), TRIB_OK);
    struct multirail *r = multirail_of(pair.t[0]);
    char rails[200] = "";
    if (pair.t[0]->ops == &trib_multirail_ops) {
        for (int i = 0; i < r->n; i++)
            snprintf(rails + strlen(rails), sizeof(rails) - strlen(rails), "%s%s",
                     i ? " " : "", r->label[i]);
    } else {
        snprintf(rails, sizeof(rails), "%s", verbs_of(pair.t[0])->label);
    }
    assert_string_equal(rails, why);
    pair.t[0]->ops->route(pair.t[0], 1, &route);
    pair.t[0]->ops->close(pair.t[0]);
}

/* Lists: names, ports, prefixes, all but these. */
TEST(test_lists, devices, nothing_left)
{
    static const struct {
        const char *text, *rails;
    } cases[] = {
        {"verbs:device=fake6,fake1", "fake6 fake1"},
        {"verbs:device=fake*", "fake0 fake1 fake2 fake3"},
        {"verbs:device=*,rails=2", "fake0 fake1"},
        {"verbs:device=fake7,fake*,rails=1", "fake0"},
        {"verbs:device=fake3,fake4*:1", "fake3 fake4"},
        {"verbs:device=^fake0", "fake1 fake2 fake3 fake4"},
        {"verbs:device=^fake0,fake2:1,rails=3", "fake1 fake3 fake4"},
        {"verbs:device=^fake1*,fake0,rails=2,depth=32", "fake2 fake3"},
        {"verbs:device=^fake0,fake1,fake2,fake3,fake4,fake5,fake6", "fake7"},
        {"verbs:device=fake5,fake3,fake4,rails=2", "fake5 fake3"},
        {"verbs:device=fake6,fake5,fake4,fake3,fake2,fake1", "fake6 fake5 fake4 fake3"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_rails(cases[i].text, 0, cases[i].rails);
}

TEST(test_wrong_lists, devices, nothing_left)
{
    static const char has[] = "this host has fake0, fake1, fake2, fake3, fake4, fake5,";

    pair_refuses("verbs:device=mlx5_*", TRIB_ERR_CONFIG, "no RDMA device \"mlx5_*\"");
    pair_refuses("verbs:device=mlx5_*", TRIB_ERR_CONFIG, has);
    pair_refuses("verbs:device=fake*,mlx5_0", TRIB_ERR_CONFIG, "no RDMA device \"mlx5");
    pair_refuses("verbs:device=fake*:2", TRIB_ERR_CONFIG, "no RDMA device \"fake:2*\"");
    pair_refuses("verbs:device=^", TRIB_ERR_CONFIG, "excludes nothing");
    pair_refuses("verbs:device=^fake*", TRIB_ERR_UNSUPPORTED,
                 "fake0 (not selected by device=), fake1 (not selected");
    pair_refuses("verbs:device=fake0,^fake1", TRIB_ERR_CONFIG, "^fake1 is neither");
    pair_refuses("verbs:device=fa*ke", TRIB_ERR_CONFIG, "fa*ke is neither");
    pair_refuses("verbs:device=fake*,fake*", TRIB_ERR_CONFIG, "twice");
}

/* An unknown name in a list of exclusions is only a warning: hosts may differ. */
TEST(test_excludes_nothing, devices, nothing_left)
{
    struct pair pair = {0};

    fake_verbs_reset()->devices = 2;
    assert_ok(open_at(&pair, 0, 0, "verbs:device=^mlx5_bond_0"));
    contains(pair.logged, "\"mlx5_bond_0\" to exclude; this host has fake0, fake1");
    pair.t[0]->ops->close(pair.t[0]);
}

/* The same lists under "auto"; ranks of the host keep shared memory. */
TEST(test_under_auto, devices, nothing_left)
{
    static const struct {
        const char *text, *name, *why;
    } cases[] = {
        {"auto:device=fake6,fake1,ranks_per_host=1", "verbs", "another host"},
        {"auto:ranks_per_host=1,device=^fake0,rails=2", "verbs", "another host"},
        {"auto:device=fake6,fake1", "shm", "same host"},
        {"auto:depth=32,receives=128,rails=2,ranks_per_host=1", "verbs",
         "another host"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_route route;
        struct pair pair;
        int before[8];
        for (int k = 0; k < 8; k++)
            before[k] = fake_verbs_carried(k, 1);
        pair_open(&pair, cases[i].text, cases[i].text);
        pair.t[0]->ops->route(pair.t[0], 1, &route);
        if (strcmp(route.name, cases[i].name) != 0)
            fail_msg("%s: %s, %s", cases[i].text, route.name, route.why);
        contains(route.why, cases[i].why);
        assert_ok(pair_write(&pair, 8, 1));
        for (int k = 0; k < 8; k++) {
            const bool chosen = i == 0   ? k == 6 || k == 1
                                : i == 1 ? k == 1 || k == 2
                                         : i == 3 && k < 2;
            assert_int_equal(fake_verbs_carried(k, 1) > before[k], chosen);
        }
        pair_close(&pair);
    }
    pair_refuses("auto:device=mlx5_0", TRIB_ERR_CONFIG, "no RDMA device \"mlx5_0\"");
    pair_refuses("auto:rails=9", TRIB_ERR_CONFIG, "verbs: rails=9 is not a whole");
    pair_refuses("auto:device=a*b,near=shm", TRIB_ERR_CONFIG, "a*b is neither");
    pair_refuses("auto:devices=a", TRIB_ERR_CONFIG,
                 "auto has no parameter \"devices\"");
    struct trib_error err = {0};
    assert_status(trib_transport_check("auto:device=x,y:1,rails=2", &err), TRIB_OK);
    assert_status(trib_transport_check("auto:device=x:,near=shm", &err),
                  TRIB_ERR_CONFIG);
}

/* net= chooses the devices, also of connections by GIDs. */
TEST(test_networks, devices, nothing_left)
{
    pair_refuses("verbs:net=127.0.0.0/16", TRIB_ERR_UNSUPPORTED,
                 "fake0 (no address selected by net=127.0.0.0/16)");
    pair_refuses("verbs:net=127.0.0.0/16,connect=gid", TRIB_ERR_UNSUPPORTED,
                 "fake7 (no address selected by net=127.0.0.0/16)");
    pair_refuses("verbs:net=127.0.0.0/16,device=fake0,connect=rdmacm",
                 TRIB_ERR_UNSUPPORTED,
                 "no IP address of the RDMA device fake0 is in net=127.0.0.0/16");
    assert_rails("verbs:net=127.0.0.0/16,all_devices=1,rails=1,device=fake5", 0,
                 "fake5");
    uint8_t own[1][16];
    char ip[TRIB_IP_TEXT_BYTES], text[100];
    if (!trib_net_own(own, 1))
        return; /* a machine without a network */
    trib_net_text(own[0], ip, sizeof(ip));
    fake_verbs_gid(5, 3, ip, IBV_GID_TYPE_ROCE_V2);
    snprintf(text, sizeof(text), "verbs:net=%s", ip);
    assert_rails(text, 0, "fake5");
}

/* An InfiniBand device of two ports: net= takes the port whose network device, of
 * IPoIB, has the address. An old kernel says so in another file, or in none. */
TEST(test_networks_of_ports, clean, nothing_left)
{
    static const struct {
        const char *dev_port, *dev_id, *rails;
    } cases[] = {{"1", "0x1", "fake0:2"},
                 {"0", "0x0", "fake0:1"},
                 {"0", "0x1", "fake0:2"},
                 {NULL, NULL, "fake0:1 fake0:2"}};
    struct trib_own_ip own[1];
    char path[100], text[100];

    if (trib_own_ips(own, 1) != 1)
        return; /* a machine without a network */
    snprintf(text, sizeof(text), "verbs:net=%s,connect=gid", own[0].name);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const lines[][2] = {{"dev_port", cases[i].dev_port},
                                        {"dev_id", cases[i].dev_id},
                                        {"address", "80"}};
        struct fake_verbs_opts *opts = fake_verbs_reset();
        struct fakeroot root;
        int n;

        opts->ports = 2;
        opts->infiniband = true;
        opts->lid = 40;
        fakeroot_make(&root);
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof(path), "/device/net/%s/%s", own[0].name, lines[k][0]);
            if (lines[k][1])
                fakeroot_write(&root, path, lines[k][1]);
        }
        struct ibv_device **list = ibv_get_device_list(&n);
        snprintf(list[0]->ibdev_path, sizeof(list[0]->ibdev_path), "%s", root.path);
        assert_rails(text, 0, cases[i].rails);
        list[0]->ibdev_path[0] = '\0';
        ibv_free_device_list(list);
        fakeroot_remove(&root);
    }
}

/* GID index and RoCE version of all connections. */
TEST(test_gids, devices, nothing_left)
{
    static const struct {
        const char *text, *by;
    } cases[] = {
        {"verbs:device=fake0", "librdmacm"},
        {"verbs:device=fake0,connect=gid", "GID 3 (10.9.0.1) to"},
        {"verbs:device=fake0,gid=1", "GID 1 (fe80::"},
        {"verbs:device=fake0,roce=1", "GID 2 (10.9.0.1) to"},
        {"verbs:device=fake0,roce=2,gid=3", "GID 3 (10.9.0.1) to"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_route route;
        struct pair pair;
        pair_open(&pair, cases[i].text, cases[i].text);
        pair.t[0]->ops->route(pair.t[0], 1, &route);
        contains(route.why, cases[i].by);
        pair_close(&pair);
    }
    pair_refuses("verbs:gid=3,connect=rdmacm", TRIB_ERR_CONFIG, "gid= and roce=");
    pair_refuses("verbs:gid=200", TRIB_ERR_UNSUPPORTED,
                 "fake0 (no address selected by gid= or roce=)");
    pair_refuses("verbs:roce=3", TRIB_ERR_CONFIG, "from 1 to 2");
}

/* Ports under a quarter of the fastest do not join, unless they are named. */
TEST(test_speeds, devices, nothing_left)
{
    fake_verbs_reset()->devices = 4;
    set_speed(0, EDR, X1);
    set_speed(1, HDR, X4);
    set_speed(2, HDR, X1);
    set_speed(3, NDR, X4);
    assert_rails("verbs", 0, "fake1 fake3");
    assert_rails("verbs:device=^fake3", 0, "fake1 fake2");
    assert_rails("verbs:device=fake*", 0, "fake1 fake3");
    assert_rails("verbs:device=fake0,fake3", 0, "fake0 fake3");
    set_speed(3, 0, X4); /* not known */
    assert_rails("verbs", 0, "fake1 fake2 fake3");
}

TEST(test_speed_codes)
{
    static const struct {
        uint8_t speed, width;
        uint32_t mbps;
    } cases[] = {
        {1, 1, 2500},     {1, 2, 10000},     {2, 2, 20000},    {4, 2, 40000},
        {4, 1, 10000},    {8, 2, 40000},     {16, 2, 56000},   {32, 2, 100000},
        {32, 1, 25000},   {64, 2, 200000},   {64, 16, 100000}, {128, 2, 400000},
        {128, 4, 800000}, {128, 8, 1200000}, {0, 2, 0},        {3, 2, 0},
        {32, 3, 0},       {32, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(trib_verbs_mbps(cases[i].speed, cases[i].width),
                         cases[i].mbps);
}

/* Of eight ports each rank takes the nearest; equally near ones are spread over the
 * ranks of the host. */
TEST(test_near, devices, nothing_left)
{
    static const char *const one[] = {"fake4", "fake5", "fake6", "fake7"};

    for (int i = 0; i < 8; i++)
        fake_verbs_device_opts(0, i)->numa_node = i < 4;
    assert_rails("verbs", 0, "fake4 fake5 fake6 fake7");
    assert_rails("verbs", 3, "fake4 fake5 fake6 fake7");
    for (int place = 0; place < 8; place++)
        assert_rails("verbs:rails=1", place, one[place % 4]);
    for (int i = 0; i < 8; i++)
        fake_verbs_device_opts(0, i)->numa_node = i < 6;
    assert_rails("verbs", 0, "fake0 fake1 fake6 fake7");
}

TEST(test_spread, devices, nothing_left)
{
    char text[16];

    for (int place = 0; place < 16; place++) {
        snprintf(text, sizeof(text), "fake%d", place % 8);
        assert_rails("verbs:rails=1", place, text);
        assert_rails("verbs", place,
                     place % 2 ? "fake4 fake5 fake6 fake7" : "fake0 fake1 fake2 fake3");
    }
    assert_rails("verbs:device=fake4,fake5,fake6,rails=2", 1, "fake4 fake6");
}

/* A preferred port that does not open is replaced. */
TEST(test_next, devices, nothing_left)
{
    for (int i = 0; i < FAKE_GIDS; i++)
        fake_verbs_gid(0, i, NULL, IBV_GID_TYPE_ROCE_V2);
    assert_rails("verbs:rails=1,connect=gid", 0, "fake1");
}

/* Ports that cannot be used take no other port's place. */
TEST(test_iwarp_among_others, devices, nothing_left)
{
    for (int i = 0; i < 4; i++)
        fake_verbs_device_opts(0, i)->iwarp = true;
    assert_rails("verbs", 0, "fake4 fake5 fake6 fake7");
    assert_rails("verbs:device=^fake7,rails=2", 1, "fake4 fake6");
    pair_refuses("verbs:device=fake0*", TRIB_ERR_UNSUPPORTED,
                 "fake0 (is an iWARP device, which cannot write with an immediate)");
}

/* Rails join ports of one network, though the hosts list them differently: by their
 * addresses, by GIDs, and on InfiniBand by the subnet. */
TEST(test_pairs, devices, nothing_left)
{
    static const char *const texts[][2] = {
        {"verbs:device=fake0,fake1", "verbs:device=fake1,fake0"},
        {"verbs:device=fake0,fake1,connect=gid",
         "verbs:device=fake1,fake0,connect=gid"},
        {"verbs:device=fake0,fake1,fake2,connect=gid",
         "verbs:device=fake2,fake0,connect=gid"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct trib_route route[2];
        struct pair pair;
        pair_open(&pair, texts[i][0], texts[i][1]);
        for (int side = 0; side < 2; side++)
            pair.t[side]->ops->route(pair.t[side], !side, &route[side]);
        assert_string_equal(route[0].why, route[1].why);
        pair_close(&pair);
    }
}

TEST(test_infiniband_pairs, devices, nothing_left)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();
    struct trib_route route[2];
    struct pair pair;

    fake->devices = 2;
    fake->infiniband = true;
    fake->lid = 7;
    for (int device = 0; device < 2; device++) {
        char gid[40];
        snprintf(gid, sizeof(gid), "fec0:0:0:%d::%d", device + 1, device + 1);
        fake_verbs_gid(device, 0, gid, IBV_GID_TYPE_IB);
        for (int i = 1; i < FAKE_GIDS; i++)
            fake_verbs_gid(device, i, NULL, IBV_GID_TYPE_IB);
    }
    pair_open(&pair, "verbs:device=fake0,fake1,connect=gid",
              "verbs:device=fake1,fake0,connect=gid");
    for (int side = 0; side < 2; side++)
        pair.t[side]->ops->route(pair.t[side], !side, &route[side]);
    assert_string_equal(route[0].why, "2 rails: fake0 fake1");
    assert_string_equal(route[1].why, "2 rails: fake0 fake1");
    pair_close(&pair);
}

/* A host with many virtual functions. */

enum { MANY = 200 };

static struct ibv_device many[MANY];

static struct ibv_device **list_many(int *n)
{
    struct ibv_device **list = calloc(MANY + 1, sizeof(*list));

    (void)n;
    for (int i = 0; i < MANY; i++) {
        snprintf(many[i].name, sizeof(many[i].name), "vf%d", i);
        list[i] = &many[i];
    }
    return list;
}

static struct ibv_context *open_one_of_many(struct ibv_device *device)
{
    struct ibv_context *context = calloc(1, sizeof(*context));

    context->device = device;
    return context;
}

static int query_one_of_many(struct ibv_context *context, struct ibv_device_attr *out)
{
    (void)context;
    *out = (struct ibv_device_attr){.phys_port_cnt = 1};
    return 0;
}

static int query_port_of_many(struct ibv_context *context, uint8_t port,
                              struct _compat_ibv_port_attr *out)
{
    (void)context;
    (void)port;
    ((struct ibv_port_attr *)(void *)out)->state = IBV_PORT_ACTIVE;
    return 0;
}

static int distance_of_many(const struct ibv_device *device)
{
    (void)device;
    return 0;
}

static int close_one_of_many(struct ibv_context *context)
{
    free(context);
    return 0;
}

TEST(test_many_devices, devices, nothing_left)
{
    struct verbs *v = calloc(1, sizeof(*v));
    struct verbs_ports *ports = calloc(1, sizeof(*ports));
    struct trib_error err = {0};
    struct verbs_list list;
    char why[200];

    assert_true(trib_verbs_load(&v->api, why, sizeof(why)));
    v->gid = -1;
    v->api.ibv_get_device_list = list_many;
    v->api.ibv_open_device = open_one_of_many;
    v->api.ibv_close_device = close_one_of_many;
    v->api.ibv_query_device = query_one_of_many;
    v->api.ibv_query_port = query_port_of_many;
    v->api.distance = distance_of_many;
    const struct verbs_wish wish = {.list = &list, .v = v, .rails = 4};
    assert_ok(trib_verbs_read_list("vf19*", &list, &err));
    if (trib_verbs_find_ports(&wish, NULL, ports, &err) != TRIB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(ports->n_taken, 4);
    assert_string_equal(ports->of[ports->order[0]].at.device, "vf19");
    assert_string_equal(ports->of[ports->order[1]].at.device, "vf190");
    free(ports);
    free(v);
}

/* What trib-info prints: the ports that a rank takes, and why it takes no others. */
TEST(test_text, devices, nothing_left)
{
    char text[1024];

    fake_verbs_reset()->devices = 4;
    set_speed(0, EDR, X1);
    set_speed(1, HDR, X4);
    fake_verbs_port(3, 1, false);
    trib_transport_devices(&trib_verbs_ops, "auto:device=^fake2", text, sizeof(text));
    assert_string_equal(
        text, "fake1 200 Gbit/s (by librdmacm); not used: fake0 (25 Gbit/s, "
              "less than 1/4 of the 200 Gbit/s of fake1), fake2 (not selected "
              "by device=), fake3 (not active)");
    trib_transport_devices(&trib_verbs_ops, "verbs:device=x*", text, sizeof(text));
    contains(text, "no RDMA device \"x*\"; this host has fake0, fake1");
    trib_transport_devices(&trib_verbs_ops, "auto:net=127.0.0.0/16,near=shm", text,
                           sizeof(text));
    contains(text, "fake1 (no address selected by net=127.0.0.0/16)");
    trib_transport_devices(&trib_verbs_ops, "auto:net=127.0.0.0/16,all_devices=1", text,
                           sizeof(text));
    contains(text, "fake1 200 Gbit/s");
    trib_transport_devices(&trib_verbs_ops, "tcp:port=7000", text, sizeof(text));
    contains(text, "fake1 200 Gbit/s");
}
