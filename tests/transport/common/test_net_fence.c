/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fence leaves loopback open, drops nothing where all networks are chosen, and is
 * gone from the connections of a fenced port.
 */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "base/log.h"
#include "tests/transport/connect_to.h"
#include "transport/common/net_addr.h"

static struct trib_net_port port;
static int lines;

static void count(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
    lines++;
}

static void fence(const char *text)
{
    struct trib_net_choice choice;
    struct trib_error err = {0};
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_INFO, count, NULL);
    lines = 0;
    assert_status(trib_net_bind("test", SOCK_STREAM, 0, 1, &port, &err), TRIB_OK);
    assert_status(trib_net_choose("test", text, &choice, &err), TRIB_OK);
    trib_net_fence(&choice, "test", &log, &port);
}

TEST(test_all_networks)
{
    fence("");
    assert_false(port.fenced);
    assert_int_equal(lines, 0);
    trib_net_fence(NULL, "test", NULL, &port);
    assert_false(port.fenced);
    close(port.fd);
}

TEST(test_loopback_stays_open)
{
    char byte = 0;
    uint8_t from[16];

    fence("lo");
    assert_int_equal(lines, port.fenced ? 0 : 1); /* a kernel without filters returns
                                                   * this error */
    int out = connect_to(trib_net_loopback, port.port, trib_deadline_ms(5000));
    assert_true(out >= 0);
    int in = trib_accept_next(port.fd, from);
    trib_net_accepted(&port, in, from);
    assert_true(in >= 0);
    assert_int_equal(write(out, &byte, 1), 1);
    while (read(in, &byte, 1) != 1)
        usleep(1000);
    close(in);
    close(out);
    close(port.fd);
}

/* An address of this host outside the chosen network gets no answer. */
TEST(test_other_network)
{
    uint8_t own[8][16];

    int n = trib_net_own(own, 8);
    if (n == 0 || !trib_net_is_v4(own[0]))
        tribtest_skip("this host has no IPv4 address but loopback");
    fence("lo");
    if (!port.fenced) {
        close(port.fd);
        tribtest_skip("the kernel rejects the filter");
    }
    assert_int_equal(connect_to(own[0], port.port, trib_deadline_ms(300)), -1);
    close(port.fd);
}
