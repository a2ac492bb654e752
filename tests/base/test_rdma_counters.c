/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/fakeroot.h"

#include "base/rdma_counters.h"

#define MLX5 "/sys/class/infiniband/mlx5_0/ports/1/"

static bool has_only(const struct trib_rdma_counters *c, const char *names)
{
    char text[400] = " ";

    for (int i = 0; i < TRIB_RDMA_COUNTERS; i++)
        if (c->has[i]) {
            strcat(text, trib_rdma_counter_name((enum trib_rdma_counter)i));
            strcat(text, " ");
        }
    return strcmp(text, names) == 0;
}

TEST(test_none)
{
    struct trib_rdma_counters c;
    struct fakeroot root;

    fakeroot_make(&root);
    assert_int_equal(trib_rdma_counters_all(root.path, &c, 1), 0);
    fakeroot_rdma(&root, "mlx5_0", "Ethernet", "4: ACTIVE");
    assert_int_equal(trib_rdma_counters_all(root.path, &c, 1), 0);
    assert_false(trib_rdma_counters_read(root.path, "mlx5_0", 1, &c));
    assert_false(trib_rdma_counters_read(root.path, "../infiniband/mlx5_0", 1, &c));
    fakeroot_remove(&root);
}

/* Each driver has its own names. */
TEST(test_drivers)
{
    struct trib_rdma_counters c;
    struct fakeroot root;

    fakeroot_make(&root);
    fakeroot_rdma(&root, "mlx5_0", "Ethernet", "4: ACTIVE");
    fakeroot_write(&root, MLX5 "hw_counters/np_cnp_sent", "7");
    fakeroot_write(&root, MLX5 "hw_counters/local_ack_timeout_err",
                   "18446744073709551615");
    fakeroot_write(&root, MLX5 "counters/port_xmit_wait", "12");
    fakeroot_write(&root, MLX5 "counters/symbol_error", "N/A (no PMA)");
    fakeroot_write(&root, MLX5 "hw_counters/out_of_sequence", "18446744073709551616");
    fakeroot_write(&root, MLX5 "hw_counters/packet_seq_err", "-1");
    assert_true(trib_rdma_counters_read(root.path, "mlx5_0", 1, &c));
    assert_true(has_only(&c, " cnp_sent local_ack_timeout port_xmit_wait "));
    assert_true(c.count[TRIB_RDMA_CNP_SENT] == 7);
    assert_true(c.count[TRIB_RDMA_ACK_TIMEOUT] == UINT64_MAX);
    assert_true(c.count[TRIB_RDMA_XMIT_WAIT] == 12);

    fakeroot_rdma(&root, "rxe0", "Ethernet", "4: ACTIVE");
    fakeroot_write(&root, "/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_rnr_err",
                   "3");
    /* bnxt_re counts for the device, which has one port here. */
    fakeroot_rdma(&root, "bnxt_re0", "Ethernet", "4: ACTIVE");
    fakeroot_write(&root, "/sys/class/infiniband/bnxt_re0/hw_counters/to_retransmits",
                   "4");
    struct trib_rdma_counters all[4];
    assert_int_equal(trib_rdma_counters_all(root.path, all, 4), 3);
    assert_string_equal(all[0].device, "bnxt_re0");
    assert_int_equal(all[0].port, 1);
    assert_true(has_only(&all[0], " local_ack_timeout "));
    assert_string_equal(all[1].device, "mlx5_0");
    assert_true(has_only(&all[2], " rnr_nak_retry "));
    assert_int_equal(trib_rdma_counters_all(root.path, all, 2), 2);
    fakeroot_remove(&root);
}

TEST(test_grown)
{
    struct trib_rdma_counters before = {.port = 1}, after;
    char text[80];

    before.has[TRIB_RDMA_CNP_HANDLED] = before.has[TRIB_RDMA_RNR_NAK_RETRY] = true;
    before.has[TRIB_RDMA_LINK_DOWNED] = true;
    before.count[TRIB_RDMA_LINK_DOWNED] = 9;
    after = before;
    assert_int_equal(trib_rdma_counters_grown(&before, &after, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    after.count[TRIB_RDMA_CNP_HANDLED] = 5;
    after.count[TRIB_RDMA_RNR_NAK_RETRY] = 12;
    after.count[TRIB_RDMA_LINK_DOWNED] = 2; /* reset by somebody */
    after.has[TRIB_RDMA_ECN_MARKED] = true;
    after.count[TRIB_RDMA_ECN_MARKED] = 2; /* the driver was replaced */
    assert_int_equal(trib_rdma_counters_grown(&before, &after, text, sizeof(text)), 2);
    assert_string_equal(text, "cnp_handled +5, rnr_nak_retry +12");
    assert_false(trib_rdma_counter_is_trouble(TRIB_RDMA_CNP_HANDLED));
    assert_true(trib_rdma_counter_is_trouble(TRIB_RDMA_RNR_NAK_RETRY));
}
