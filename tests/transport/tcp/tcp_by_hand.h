/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Side 1 is a transport "tcp"; the test is the other side, by hand.
 */
#ifndef TESTS_TRANSPORT_TCP_TCP_BY_HAND_H
#define TESTS_TRANSPORT_TCP_TCP_BY_HAND_H

#include "tests/transport/pair.h"

#include <netinet/tcp.h>
#include <poll.h>

#include "transport/tcp/tcp.h"

static inline int dial(uint16_t port)
{
    struct sockaddr_storage to;
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    socklen_t len = trib_net_sockaddr(trib_net_loopback, port, AF_INET, &to);

    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
    return fd;
}

/* The answer of side 1 to this hello; 0 bytes: it closed the connection. */
static inline ssize_t answer(struct pair *pair, int fd, const void *hello, size_t len,
                      struct tcp_head *out)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct trib_event e;

    assert_int_equal(send(fd, hello, len, MSG_NOSIGNAL), len);
    for (int i = 0; i < 4000 && poll(&p, 1, 1) == 0; i++)
        (void)pair->t[1]->ops->poll(pair->t[1], &e, 1);
    memset(out, 0, sizeof(*out));
    return recv(fd, out, sizeof(*out), MSG_DONTWAIT);
}

/* Side 1 with memory of its caller; rank 0 is only the code that dials by hand. */
static inline struct tcp_head open_target(struct pair *pair, void *mem, size_t len)
{
    struct trib_transport_opts opts = pair_opts(pair, 1);
    struct trib_blob blob;
    struct trib_table_export x;

    assert_ok(trib_transport_open("tcp", &opts, &pair->t[1]));
    assert_ok(pair->t[1]->ops->reg(pair->t[1], mem, len, &pair->region[1]));
    assert_ok(pair->t[1]->ops->export_region(pair->t[1], pair->region[1], &blob));
    memcpy(&x, blob.bytes, sizeof(x));
    return (struct tcp_head){
        .magic = TCP_MAGIC, .kind = TCP_WRITE, .region = x.region, .len = len};
}

#endif
