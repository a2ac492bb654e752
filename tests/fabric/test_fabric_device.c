/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake's devices by themselves: what their settings do, seen by queue pairs on two
 * hosts.
 */
#include "tests/fabric/fabric_end.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include "topo/rdma.h"

static struct fake_verbs_opts *two_hosts(void)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->hosts = 2;
    return fake;
}

static void expect_status(struct end *e, uint64_t wr_id, enum ibv_wc_status status)
{
    const struct ibv_wc wc = end_await(e);

    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

/* Write between two ends with these options; returns the status. */
static enum ibv_wc_status write_once(const struct end_opts opts[2], uint32_t len)
{
    struct end e[2] = {0};

    ends_open(e, opts);
    memset(e[0].mem, 7, len);
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, len, 5), 0);
    const struct ibv_wc wc = end_await(&e[0]);
    if (wc.status == IBV_WC_SUCCESS)
        assert_memory_equal(e[0].mem, e[1].mem, len);
    else
        assert_int_equal(e[1].mem[0], 0);
    ends_close(e);
    return wc.status;
}

TEST(test_write_with_immediate, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};

    two_hosts();
    ends_open(e, opts);
    end_receive(&e[1], 9);
    e[0].mem[99] = 42;
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 100, 1), 0);
    expect_status(&e[0], 1, IBV_WC_SUCCESS);
    const struct ibv_wc wc = end_await(&e[1]);
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, 100);
    assert_int_equal(e[1].mem[99], 42);
    ends_close(e);
}

TEST(test_port_is_reported, clean, nothing_left)
{
    struct ibv_port_attr attr = {0};
    const struct end_opts opts = {0};
    struct end e = {0};
    __be16 pkey;

    two_hosts()->ports = 2;
    *fake_verbs_port_opts(1, 0, 2) = (struct fake_port_opts){.active_speed = 128,
                                                             .active_width = 2,
                                                             .mtu = IBV_MTU_1024,
                                                             .pkeys = {0x8001, 0xffff}};
    end_open(&e, 1, 0, &opts);
    assert_int_equal((ibv_query_port)(e.context, 2, (void *)&attr), 0);
    assert_int_equal(attr.active_speed, 128);
    assert_int_equal(attr.active_width, 2);
    assert_int_equal(attr.active_mtu, IBV_MTU_1024);
    assert_int_equal(ibv_query_pkey(e.context, 2, 0, &pkey), 0);
    assert_int_equal(pkey, htons(0x8001));
    assert_int_equal((ibv_query_port)(e.context, 1, (void *)&attr), 0);
    assert_int_equal(attr.active_speed, 32);
    assert_int_equal(attr.active_mtu, IBV_MTU_4096);
    end_close(&e);
}

TEST(test_partitions, clean, nothing_left)
{
    static const struct {
        uint16_t a, b;
        enum ibv_wc_status status;
    } rows[] = {
        {0xffff, 0xffff, IBV_WC_SUCCESS},       {0x8001, 0x0001, IBV_WC_SUCCESS},
        {0x0001, 0x0001, IBV_WC_RETRY_EXC_ERR}, /* limited members */
        {0x8001, 0x8002, IBV_WC_RETRY_EXC_ERR}, {0xffff, 0x8002, IBV_WC_RETRY_EXC_ERR},
    };
    const struct end_opts opts[2] = {{.pkey_index = 1}, {.pkey_index = 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        two_hosts();
        fake_verbs_port_opts(0, 0, 1)->pkeys[1] = rows[i].a;
        fake_verbs_port_opts(1, 0, 1)->pkeys[1] = rows[i].b;
        assert_int_equal(write_once(opts, 64), rows[i].status);
    }
}

TEST(test_mtu_of_both_ends, clean, nothing_left)
{
    const struct end_opts wide[2] = {{0}};
    const struct end_opts narrow[2] = {{.attr.path_mtu = IBV_MTU_1024},
                                       {.attr.path_mtu = IBV_MTU_1024}};

    for (int end = 0; end < 2; end++) {
        two_hosts();
        fake_verbs_port_opts(end, 0, 1)->mtu = IBV_MTU_1024;
        assert_int_equal(write_once(wide, 1024), IBV_WC_SUCCESS);
        assert_int_equal(write_once(wide, 1025), IBV_WC_RETRY_EXC_ERR);
        assert_int_equal(write_once(narrow, 1025), IBV_WC_SUCCESS);
    }
}

TEST(test_recorded_attributes, clean, nothing_left)
{
    const struct end_opts opts[2] = {
        {.attr = {.ah_attr = {.sl = 3,
                              .grh = {.traffic_class = 106,
                                      .flow_label = 77,
                                      .hop_limit = 5,
                                      .sgid_index = 3}},
                  .path_mtu = IBV_MTU_2048,
                  .timeout = 14,
                  .retry_cnt = 6,
                  .rnr_retry = 4,
                  .min_rnr_timer = 12}},
        {0},
    };
    struct end e[2] = {0};
    struct fake_qp qp;

    two_hosts();
    ends_open(e, opts);
    assert_true(fake_verbs_qp(0, &qp));
    assert_int_equal(qp.remote, e[1].qp->qp_num);
    assert_int_equal(qp.host, 0);
    assert_int_equal(qp.sl, 3);
    assert_int_equal(qp.traffic_class, 106);
    assert_int_equal(qp.flow_label, 77);
    assert_int_equal(qp.hop_limit, 5);
    assert_int_equal(qp.sgid_index, 3);
    assert_int_equal(qp.mtu, IBV_MTU_2048);
    assert_int_equal(qp.timeout, 14);
    assert_int_equal(qp.retry_cnt, 6);
    assert_int_equal(qp.rnr_retry, 4);
    assert_int_equal(qp.min_rnr_timer, 12);
    assert_int_equal(qp.pkey, 0xffff);
    assert_true(fake_verbs_qp(1, &qp));
    assert_int_equal(qp.host, 1);
    assert_false(fake_verbs_qp(2, &qp));
    ends_close(e);
    assert_true(fake_verbs_qp(0, &qp));
    assert_false(qp.live);
    assert_int_equal(qp.traffic_class, 106);
}

TEST(test_limits, clean, nothing_left)
{
    const struct end_opts opts = {0};
    struct end one = {0}, other = {0};
    struct fake_verbs_opts *fake = two_hosts();

    fake->max_contexts = 1;
    fake->max_qp = 1;
    fake->max_pinned = END_BYTES + 4096;
    end_open(&one, 0, 0, &opts);
    fake_verbs_host(0);
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_null(ibv_open_device(list[0]));
    assert_int_equal(errno, ENOMEM);
    ibv_free_device_list(list);
    struct ibv_qp_init_attr init = {.send_cq = one.cq,
                                    .recv_cq = one.cq,
                                    .srq = one.srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1}};
    assert_null(ibv_create_qp(one.pd, &init));
    assert_int_equal(errno, ENOMEM);
    assert_null((ibv_reg_mr)(one.pd, one.mem, END_BYTES, 0));
    assert_int_equal(errno, ENOMEM);
    end_open(&other, 1, 0, &opts); /* limits are each host's own */
    end_close(&other);
    end_close(&one);
    end_open(&one, 0, 0, &opts);
    init.cap.max_send_wr = (uint32_t)fake->max_qp_wr + 1;
    assert_null(ibv_create_qp(one.pd, &init));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_cq(one.context, fake->max_cqe + 1, NULL, one.channel, 0));
    struct ibv_srq_init_attr srq = {.attr.max_wr = (uint32_t)fake->max_srq_wr + 1};
    assert_null(ibv_create_srq(one.pd, &srq));
    end_close(&one);
}

TEST(test_no_shared_receive_queue, clean, nothing_left)
{
    const struct end_opts opts[2] = {{.no_srq = true}, {.no_srq = true}};
    struct ibv_srq_init_attr srq = {.attr.max_wr = 1};
    struct end e[2] = {0};

    two_hosts();
    fake_verbs_device_opts(0, 0)->no_srq = true;
    fake_verbs_device_opts(1, 0)->no_srq = true;
    ends_open(e, opts);
    assert_null(ibv_create_srq(e[0].pd, &srq));
    assert_int_equal(errno, EOPNOTSUPP);
    for (uint64_t i = 0; i < 3; i++)
        end_receive(&e[1], 100 + i);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 8, i), 0);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(end_await(&e[1]).wr_id, 100 + i);
    end_receive(&e[1], 200); /* ends with its queue pair */
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(e[1].qp, &error, IBV_QP_STATE), 0);
    expect_status(&e[1], 200, IBV_WC_WR_FLUSH_ERR);
    ends_close(e);
}

TEST(test_iwarp, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};

    two_hosts();
    fake_verbs_device_opts(0, 0)->iwarp = true;
    ends_open(e, opts);
    assert_int_equal(e[0].context->device->transport_type, IBV_TRANSPORT_IWARP);
    assert_int_equal(e[1].context->device->transport_type, IBV_TRANSPORT_IB);
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 8, 1), EINVAL);
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_SEND_WITH_IMM, 8, 1), EINVAL);
    end_receive(&e[1], 3);
    e[0].mem[3] = 5;
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_SEND, 4, 2), 0);
    expect_status(&e[0], 2, IBV_WC_SUCCESS);
    const struct ibv_wc wc = end_await(&e[1]);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.byte_len, 4);
    assert_int_equal(e[1].mem[3], 5);
    ends_close(e);
}

TEST(test_not_ready, clean, nothing_left)
{
    const struct end_opts opts[2] = {{.attr.rnr_retry = 2}, {0}};
    struct end e[2] = {0};

    two_hosts();
    ends_open(e, opts);
    assert_int_equal(end_post(&e[0], &e[1], IBV_WR_SEND, 0, 4), 0);
    expect_status(&e[0], 4, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(fake_verbs_counter(1, 0, 1, FAKE_OUT_OF_BUFFER), 3);
    assert_int_equal(fake_verbs_counter(0, 0, 1, FAKE_RNR_NAK_RETRY_ERR), 3);
    assert_int_equal(fake_verbs_counter(0, 0, 1, FAKE_REQ_RNR_RETRIES_EXCEEDED), 1);
    ends_close(e);
}

/* Post n writes at once; returns how many completions come until the first error. */
static int writes_until_error(struct end e[2], int n)
{
    int done = 0;

    for (int i = 0; i < n; i++)
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 64, (uint64_t)i), 0);
    for (; done < n; done++) {
        const struct ibv_wc wc = end_await(&e[0]);
        assert_int_equal(wc.wr_id, done); /* never reordered */
        if (wc.status == IBV_WC_SUCCESS)
            continue;
        assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
        break;
    }
    return done;
}

TEST(test_loss, clean, nothing_left)
{
    const struct end_opts opts[2] = {{.attr.timeout = 1, .attr.retry_cnt = 1}, {0}};
    int done[2];

    for (int run = 0; run < 2; run++) { /* the same seed, the same loss */
        struct end e[2] = {0};
        two_hosts()->virtual_time = true;
        fake_verbs_port_opts(0, 0, 1)->loss_ppm = 250000;
        ends_open(e, opts);
        done[run] = writes_until_error(e, END_SENDS);
        assert_int_equal(
            fake_verbs_counter(0, 0, 1, FAKE_REQ_TRANSPORT_RETRIES_EXCEEDED) > 0,
            done[run] < END_SENDS);
        assert_true(fake_verbs_counter(0, 0, 1, FAKE_LOCAL_ACK_TIMEOUT_ERR) > 0);
        assert_int_equal(fake_verbs_counter(0, 0, 1, FAKE_LOCAL_ACK_TIMEOUT_ERR),
                         fake_verbs_counter(1, 0, 1, FAKE_OUT_OF_SEQUENCE));
        assert_int_equal(fake_verbs_counter(1, 0, 1, FAKE_LOCAL_ACK_TIMEOUT_ERR), 0);
        ends_close(e);
    }
    assert_int_equal(done[0], done[1]);
    assert_true(done[0] < END_SENDS);
}

/* Two queue pairs post in turn. Requests of different queue pairs may be reordered. */
TEST(test_reordering, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end a[2] = {0}, b[2] = {0};
    bool has_overtaken = false;

    struct fake_verbs_opts *fake = two_hosts();
    fake->virtual_time = true;
    fake->reorder_us = 2000;
    ends_open(a, opts);
    ends_open(b, opts);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(end_post(&a[0], &a[1], IBV_WR_RDMA_WRITE, 8, i), 0);
        assert_int_equal(end_post(&b[0], &b[1], IBV_WR_RDMA_WRITE, 8, i), 0);
    }
    for (uint64_t i = 0, j = 0; i < 8;) {
        struct ibv_wc wc;
        if (ibv_poll_cq(b[0].cq, 1, &wc) == 1)
            assert_int_equal(wc.wr_id, j++);
        if (ibv_poll_cq(a[0].cq, 1, &wc) == 1)
            assert_int_equal(wc.wr_id, i++);
        has_overtaken |= j > i;
    }
    assert_true(has_overtaken);
    ends_close(b);
    ends_close(a);
}

TEST(test_congestion_is_marked, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};
    struct fake_verbs_opts *fake = two_hosts();

    fake->virtual_time = true;
    fake->rate = 1000 * 1000 * 1000;
    fake->ecn_bytes = 2 * END_BYTES;
    ends_open(e, opts);
    assert_int_equal(writes_until_error(e, 8), 8);
    assert_int_equal(fake_verbs_counter(1, 0, 1, FAKE_NP_CNP_SENT), 0);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, END_BYTES, i), 0);
    for (uint64_t i = 0; i < 8; i++)
        expect_status(&e[0], i, IBV_WC_SUCCESS);
    assert_true(fake_verbs_counter(1, 0, 1, FAKE_NP_CNP_SENT) > 0);
    assert_int_equal(fake_verbs_counter(1, 0, 1, FAKE_NP_CNP_SENT),
                     fake_verbs_counter(0, 0, 1, FAKE_RP_CNP_HANDLED));
    assert_int_equal(fake_verbs_counter(1, 0, 1, FAKE_RCV_DATA),
                     8 * (END_BYTES / 4 + 16));
    ends_close(e);
}

/* A completion channel becomes readable when a delay ends, without any poll. */
TEST(test_sleepers_wake, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};

    two_hosts()->delay_us = 20000;
    ends_open(e, opts);
    for (uint64_t i = 0; i < 3; i++) {
        struct pollfd fd = {.fd = e[0].channel->fd, .events = POLLIN};
        struct ibv_cq *cq;
        void *context;
        assert_int_equal(ibv_req_notify_cq(e[0].cq, 0), 0);
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 8, i), 0);
        assert_int_equal(poll(&fd, 1, tribtest_patience_ms()), 1);
        assert_int_equal(ibv_get_cq_event(e[0].channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        expect_status(&e[0], i, IBV_WC_SUCCESS);
    }
    ends_close(e);
}

/* Requests of one port follow each other at its rate, and each arrives after the delay,
 * exact to the nanosecond. */
TEST(test_virtual_time, clean, nothing_left)
{
    enum { RATE = 1000 * 1000, DELAY_US = 3600 * 1000 * 1000u, N = 5 };
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};
    struct fake_verbs_opts *fake = two_hosts();

    fake->virtual_time = true;
    fake->rate = RATE;
    fake->delay_us = DELAY_US; /* an hour */
    ends_open(e, opts);
    const uint64_t start = fake_verbs_time();
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 1000, i), 0);
    for (uint64_t i = 0; i < N; i++) {
        expect_status(&e[0], i, IBV_WC_SUCCESS);
        assert_int_equal(fake_verbs_time() - start,
                         DELAY_US * UINT64_C(1000) + (i + 1) * 1000000);
    }
    ends_close(e);
}

TEST(test_down_fails, clean, nothing_left)
{
    const struct end_opts opts[2] = {{0}};
    struct end e[2] = {0};

    for (int end = 0; end < 2; end++) {
        two_hosts()->down_fails = true;
        ends_open(e, opts);
        fake_verbs_host(end);
        fake_verbs_port(0, 1, false);
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 8, 4), 0);
        expect_status(&e[0], 4, IBV_WC_RETRY_EXC_ERR);
        ends_close(e);
    }
}

TEST(test_removed_gid, clean, nothing_left)
{
    static const enum ibv_wc_status expected[] = {IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR,
                                                  IBV_WC_LOC_QP_OP_ERR};
    const struct end_opts opts[2] = {{.attr.ah_attr.grh.sgid_index = 3},
                                     {.attr.ah_attr.grh.sgid_index = 3}};

    for (int loss = 0; loss < 3; loss++) {
        struct end e[2] = {0};
        two_hosts()->gid_loss = loss;
        ends_open(e, opts);
        fake_verbs_host(0);
        fake_verbs_gid(0, 3, NULL, IBV_GID_TYPE_ROCE_V2);
        assert_int_equal(end_post(&e[0], &e[1], IBV_WR_RDMA_WRITE, 8, 4), 0);
        expect_status(&e[0], 4, expected[loss]);
        ends_close(e);
    }
}

static void count(void *arg, const struct trib_rdma_port *port)
{
    struct trib_rdma_port *ports = arg;

    if (port->port <= 2)
        ports[port->port - 1] = *port;
}

TEST(test_sysfs, clean, nothing_left)
{
    struct trib_rdma_port ports[2] = {0};
    char root[] = "/tmp/tributary-test-XXXXXX", path[128], command[64];

    assert_non_null(mkdtemp(root));
    two_hosts()->ports = 2;
    fake_verbs_device_opts(1, 0)->numa_node = 1;
    snprintf(fake_verbs_device_opts(1, 0)->name, 32, "mlx5_bond_0");
    fake_verbs_port_opts(1, 0, 2)->active_speed = 128;
    fake_verbs_host(1);
    fake_verbs_port(0, 1, false);
    assert_true(fake_verbs_sysfs(root, 1));
    assert_int_equal(trib_rdma_each(root, count, ports), 2);
    assert_string_equal(ports[0].device, "mlx5_bond_0");
    assert_string_equal(ports[0].state, "DOWN");
    assert_string_equal(ports[1].state, "ACTIVE");
    assert_string_equal(ports[1].rate, "400 Gb/sec (4X NDR)");
    assert_int_equal(ports[1].gids, 4);
    assert_int_equal(ports[1].gids_v2, 2);
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/mlx5_bond_0/device/numa_node",
             root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fgetc(file), '1');
    fclose(file);
    snprintf(path, sizeof(path),
             "%s/sys/class/infiniband/mlx5_bond_0/ports/1/counters/link_downed", root);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fgetc(file), '1');
    fclose(file);
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}
