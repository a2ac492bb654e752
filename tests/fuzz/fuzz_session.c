/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as all that a job says to a tribd: by trib_session, which takes the handshake (with
 * nothing to prove), then JOIN, blobs and plans as tribd gives them to a node. The ranks are not
 * there: the node meets nobody but by these bytes, and ends with the input.
 */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/session.h"
#include "base/error.h"
#include "tests/fuzz/reach.h"
#include "tribd/lane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

unsigned fuzz_reached; /* plans that a node was told of */

enum { SAID_MOST = 65536, MEMORY = 8 << 20 };

static struct trib_auth *auth;
static struct lane *lane;
static struct trib_log quiet;
static int wake_fd;

static void need(int condition)
{
    if (!condition)
        abort();
}

static void hear_nothing(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static void close_all(void)
{
    lane_stop(lane);
    trib_auth_free(auth);
    close(wake_fd);
}

static void open_all(void)
{
    const struct trib_auth_opts opts = {.method = "none"};

    trib_log_init(&quiet, TRIB_LOG_ERROR, hear_nothing, NULL);
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    need(wake_fd >= 0 && trib_auth_open(&opts, NULL, &auth) == TRIB_OK);
    need(lane_start(NULL, &lane) == TRIB_OK);
    atexit(close_all);
}

/* As tribd's server does; false: it would end the connection. */
static bool take(struct node **node, const struct trib_control *m)
{
    struct trib_error err = {0};

    if (m->kind == TRIB_CONTROL_JOIN && !*node) {
        const struct node_opts opts = {.join = &m->join, .lane = lane, .wake_fd = wake_fd,
                                       .log = &quiet, .plan_memory = MEMORY};
        if (m->join.ranks > 64 || m->join.nodes > 8 || m->join.slots > 4096 ||
            m->join.bytes > MEMORY)
            return false; /* no quota has that */
        const trib_status_t st = node_open(&opts, &err, node);
        need(st == TRIB_OK || err.text[0]);
        return st == TRIB_OK;
    }
    if (m->kind == TRIB_CONTROL_BLOBS && *node) {
        struct trib_control own;
        uint8_t room[TRIB_CONTROL_BLOB_MAX];
        for (int i = 0; i < 1000 && !node_sent(*node, &own, room, sizeof(room)); i++)
            sched_yield(); /* its thread has begun to meet, or never does */
        return node_give(*node, &m->blobs);
    }
    if (m->kind != TRIB_CONTROL_PLAN || !*node)
        return false;
    fuzz_reached++;
    return node_announce(*node, m->plan.number, m->plan.text) == TRIB_OK;
}

static void converse(struct trib_session *session)
{
    struct node *node = NULL;
    struct trib_control m;

    while (trib_session_step(session, &m) == TRIB_OK && take(&node, &m))
        ;
    if (!node)
        return;
    node_end(node, NULL);
    while (atomic_load(&node->state) != NODE_GONE)
        sched_yield();
    node_free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_error err = {0};
    struct trib_session *session;
    int fds[2];

    if (size == 0 || size > SAID_MOST)
        return 0;
    if (!lane)
        open_all();
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    need(write(fds[1], data, size) == (ssize_t)size);
    (void)shutdown(fds[1], SHUT_WR);
    const struct trib_session_opts opts = {.fd = fds[0],
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = auth,
                                           .peer = "a job",
                                           .handshake_ms = 1000,
                                           .err = &err};
    if (trib_session_open(&opts, &session) == TRIB_OK) {
        converse(session);
        trib_session_free(session);
    }
    close(fds[1]);
    return 0;
}
