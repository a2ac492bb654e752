/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/fakeroot.h"
#include "topo/rdma.h"

#define PORTS_MAX 8

struct found {
    int n;
    struct trib_rdma_port ports[PORTS_MAX];
};

static void note(void *arg, const struct trib_rdma_port *port)
{
    struct found *found = arg;

    assert_true(found->n < PORTS_MAX);
    found->ports[found->n++] = *port;
}

static int look(const struct fakeroot *root, struct found *found)
{
    memset(found, 0, sizeof(*found));
    return trib_rdma_each(root->path, note, found);
}

TEST(test_no_device)
{
    struct fakeroot root;
    struct found found;

    fakeroot_make(&root);
    assert_int_equal(look(&root, &found), 0);
    assert_int_equal(found.n, 0);
    fakeroot_remove(&root);
}

TEST(test_roce)
{
    struct fakeroot root;
    struct found found;

    fakeroot_make(&root);
    fakeroot_rdma(&root, "mlx5_0", "Ethernet", "4: ACTIVE");
    fakeroot_gid(&root, "mlx5_0", 0, "fe80:0000:0000:0000:0000:0000:0000:0001",
                 "IB/RoCE v1", "eth2");
    fakeroot_gid(&root, "mlx5_0", 1, "0000:0000:0000:0000:0000:ffff:0a4d:0001",
                 "RoCE v2", "eth2");
    fakeroot_gid(&root, "mlx5_0", 2, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
    fakeroot_write(&root, "/sys/class/net/eth2/mtu", "9000");
    assert_int_equal(look(&root, &found), 1);
    const struct trib_rdma_port *p = &found.ports[0];
    assert_string_equal(p->device, "mlx5_0");
    assert_int_equal(p->port, 1);
    assert_string_equal(p->state, "ACTIVE");
    assert_string_equal(p->physical, "LinkUp");
    assert_string_equal(p->link_layer, "Ethernet");
    assert_string_equal(p->rate, "100 Gb/sec (4X EDR)");
    assert_int_equal(p->gids, 2);
    assert_int_equal(p->gids_v2, 1);
    assert_string_equal(p->netdev, "eth2");
    assert_int_equal(p->netdev_mtu, 9000);
    assert_int_equal(p->active_mtu, 4096);
    assert_string_equal(p->file, "/dev/infiniband/uverbs0");
    assert_true(p->file_there && p->file_open);
    fakeroot_remove(&root);
}

TEST(test_two_devices_no_file)
{
    struct fakeroot root;
    struct found found;

    fakeroot_make(&root);
    fakeroot_rdma(&root, "mlx5_1", "InfiniBand", "2: INIT");
    fakeroot_rdma(&root, "mlx5_0", "InfiniBand", "1: DOWN");
    fakeroot_delete(&root, "/dev/infiniband/uverbs0");
    assert_int_equal(look(&root, &found), 2);
    assert_string_equal(found.ports[0].device, "mlx5_0");
    assert_string_equal(found.ports[0].state, "DOWN");
    assert_string_equal(found.ports[1].state, "INIT");
    assert_int_equal(found.ports[1].active_mtu, 0);
    assert_false(found.ports[1].file_there);
    fakeroot_remove(&root);
}

TEST(test_mtu)
{
    assert_int_equal(trib_rdma_roce_mtu(9000), 4096);
    assert_int_equal(trib_rdma_roce_mtu(4192), 4096);
    assert_int_equal(trib_rdma_roce_mtu(4191), 2048);
    assert_int_equal(trib_rdma_roce_mtu(1500), 1024);
    assert_int_equal(trib_rdma_roce_mtu(351), 0);
}
