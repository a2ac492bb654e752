/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of backends over IP: what one rank tells another rank reads, and connects
 * to.
 */
#include "tests/harness/tribtest.h"

#include <poll.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/common/ip_endpoint.h"
#include "transport/open.h"

static struct trib_error err;
static struct trib_config cfg = {.stop_timeout_ms = 300};
static struct trib_log quiet;

static void open_endpoint(struct trib_ip_endpoint *e, int self)
{
    const struct trib_transport_opts opts = {
        .self = self, .size = 2, .cfg = &cfg, .log = &quiet, .err = &err};
    struct trib_net_ways ways;

    assert_status(trib_net_ways_init(&ways, "test", "", NULL, &err), TRIB_OK);
    trib_ip_endpoint_init(e, &opts, "test", &ways, true);
    e->magic = 0x54726231;
    e->version = 7;
    assert_true(trib_ip_endpoint_key(e));
    assert_status(trib_ip_endpoint_start(e, &opts, 0, 1), TRIB_OK);
    assert_true(e->own_heartbeat);
}

TEST(test_address)
{
    enum trib_peer_state states[2] = {TRIB_PEER_UNKNOWN, TRIB_PEER_UNKNOWN};
    const struct trib_peers peers = {states, sizeof(states[0]), 0, 2, &err};
    struct trib_ip_endpoint e[2];
    struct trib_address address;
    struct trib_ip_address a;

    for (int i = 0; i < 2; i++)
        open_endpoint(&e[i], i);
    assert_int_not_equal(e[0].key, e[1].key);
    trib_ip_endpoint_address(&e[1], 4711, &quiet, &address);
    assert_status(trib_ip_endpoint_read(&e[0], &peers, 1, &address, &a), TRIB_OK);
    assert_int_equal(a.port, 4711);
    assert_int_equal(a.pid, getpid());
    assert_true(a.key == e[1].key && a.net == e[1].net);
    assert_int_equal(a.heartbeat_port, trib_heartbeat_port(e[1].heartbeat));
    const struct trib_ip_identity who = trib_ip_identity_of(&a);
    assert_true(trib_process_same(&who.who, &e[1].me));
    e[0].version++;
    assert_status(trib_ip_endpoint_read(&e[0], &peers, 1, &address, &a),
                  TRIB_ERR_MISMATCH);
    assert_non_null(
        strstr(err.text, "speaks version 7 of test, this process version 8: install"));
    e[0].version--;
    states[1] = TRIB_PEER_LOST;
    assert_status(trib_ip_endpoint_read(&e[0], &peers, 1, &address, &a),
                  TRIB_ERR_PEER_LOST);
    for (int i = 0; i < 2; i++) {
        trib_ip_endpoint_close(&e[i]);
        assert_null(e[i].heartbeat);
        trib_ip_endpoint_close(&e[i]); /* harmless when done before */
    }
}

TEST(test_connect)
{
    struct trib_net_port listener;
    struct trib_ip_endpoint e;
    struct trib_address address;
    struct trib_ip_address a;
    struct trib_net_found found;
    uint8_t from[16];
    int fd;

    open_endpoint(&e, 0);
    assert_status(trib_net_bind("test", SOCK_STREAM, 0, 1, &listener, &err), TRIB_OK);
    trib_ip_endpoint_address(&e, listener.port, &quiet, &address);
    memcpy(&a, address.bytes, sizeof(a));
    assert_status(trib_ip_endpoint_connect(&e, &a, &err, &fd, &found), TRIB_OK);
    assert_true(trib_net_is_loopback(found.ip)); /* of this host and name space */
    int came = trib_accept_next(listener.fd, from);
    assert_true(came >= 0);
    close(came);
    close(fd);
    close(listener.fd);
    trib_error_clear(&err);
    assert_status(trib_ip_endpoint_connect(&e, &a, &err, &fd, &found),
                  TRIB_ERR_PEER_LOST);
    assert_non_null(strstr(err.text, "cannot be reached at"));
    trib_ip_endpoint_close(&e);
}

/* A rank in this very process is not watched. */
TEST(test_watch)
{
    struct trib_peer_base p = {.state = TRIB_PEER_UNKNOWN};
    struct trib_ip_endpoint e;

    open_endpoint(&e, 0);
    const struct trib_ip_identity who = {.who = e.me, .heartbeat_port = 1};
    trib_ip_endpoint_watch(&e, 1, &who, trib_net_loopback, &p);
    assert_int_equal(p.liveness.by, TRIB_LIVENESS_BY_NOBODY);
    assert_true(trib_process_same(&p.who, &e.me));
    trib_ip_endpoint_close(&e);
}
