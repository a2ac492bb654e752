/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: a range gives its first free one, and connections carry the caller's address.
 */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/error.h"
#include "tests/transport/connect_to.h"
#include "transport/common/net_addr.h"

TEST(test_range)
{
    struct trib_net_port first, second, third;
    struct trib_error err = {0};

    assert_ok(trib_net_bind("test", SOCK_STREAM, 0, 1, &first, &err));
    assert_true(first.port > 0 && !first.fenced);
    assert_true(fcntl(first.fd, F_GETFL) & O_NONBLOCK);
    assert_ok(trib_net_bind("test", SOCK_STREAM, first.port, 100, &second, &err));
    assert_true(second.port > first.port && second.port < first.port + 100);
    assert_status(trib_net_bind("test", SOCK_STREAM, first.port, 1, &third, &err),
                  TRIB_ERR_SYSTEM);
    assert_ptr_equal(strstr(err.text, "test"), err.text);
    close(first.fd);
    close(second.fd);
}

TEST(test_accept)
{
    struct trib_net_port port;
    uint8_t from[16];

    assert_ok(trib_net_bind("test", SOCK_STREAM, 0, 1, &port, NULL));
    assert_int_equal(trib_accept_next(port.fd, from), -1);
    assert_int_equal(errno, EAGAIN);
    int out = connect_to(trib_net_loopback, port.port, trib_deadline_ms(5000));
    assert_true(out >= 0);
    int in = trib_accept_next(port.fd, from);
    trib_net_accepted(&port, in, from);
    assert_true(in >= 0 && trib_net_is_loopback(from));
    assert_true(fcntl(in, F_GETFL) & O_NONBLOCK);
    close(in);
    close(out);
    close(port.fd);
    assert_int_equal(
        connect_to(trib_net_loopback, port.port, trib_deadline_ms(5000)), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

TEST(test_space)
{
    assert_true(trib_net_space() == trib_net_space());
}
