/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports in one thread that reach each other: enough for whatever does not need
 * ranks that run by themselves.
 */
#ifndef TESTS_TRANSPORT_PAIR_H
#define TESTS_TRANSPORT_PAIR_H

#include "tests/harness/tribtest.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <tributary/status.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "tests/transport/connect_to.h"
#include "transport/common/ip_endpoint.h"
#include "transport/open.h"

#define PAIR_LEN 4096

struct pair {
    struct trib_transport *t[2];
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err;
    struct trib_secret secret[2]; /* of both sides; not set: there is none */
    char logged[1024]; /* the last line */
    int lines;
    uint8_t *mem[2];
    struct trib_region *region[2];
    struct trib_remote *remote[2]; /* [i]: i's import of the other's region */
};

/* Threads of both sides may log at once. */
static pthread_mutex_t pair_log_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void pair_log(void *arg, trib_log_level_t level, const char *line)
{
    struct pair *pair = arg;

    (void)level;
    pthread_mutex_lock(&pair_log_lock);
    snprintf(pair->logged, sizeof(pair->logged), "%s", line);
    pair->lines++;
    pthread_mutex_unlock(&pair_log_lock);
}

/* Does the last line contain this? A thread of the transport may be writing it. */
static inline bool pair_has_logged(struct pair *pair, const char *part)
{
    pthread_mutex_lock(&pair_log_lock);
    bool has = strstr(pair->logged, part) != NULL;
    pthread_mutex_unlock(&pair_log_lock);
    return has;
}

static inline struct trib_transport_opts pair_opts(struct pair *pair, int self)
{
    pair->cfg.stop_timeout_ms = 300;
    trib_log_init(&pair->log, TRIB_LOG_INFO, pair_log, pair);
    return (struct trib_transport_opts){
        .self = self,
        .size = 2,
        .params = "",
        .cfg = &pair->cfg,
        .log = &pair->log,
        .err = &pair->err,
        .secret = self < 2 ? &pair->secret[self] : NULL,
    };
}

/* Before a side is opened. */
static inline void pair_secret(struct pair *pair, int self, uint8_t number)
{
    char why[160];

    pair->secret[self] = (struct trib_secret){.is_set = true, .bytes = {number}};
    if (!trib_secret_arm(&pair->secret[self], why, sizeof(why)))
        tribtest_skip(why);
}

static inline void contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* A text that opens no transport: the error has `sentence`. */
static inline void pair_refuses(const char *text, trib_status_t expected,
                                const char *sentence)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    struct trib_transport *t = NULL;

    assert_status(trib_transport_open(text, &opts, &t), expected);
    assert_null(t);
    contains(pair.err.text, sentence);
}

/* Memory of one side, and the reference that the other side needs. */
static inline void pair_offer(struct pair *pair, int i, struct trib_address *address,
                              struct trib_blob *region)
{
    const struct trib_transport_ops *ops = pair->t[i]->ops;
    void *mem;

    assert_ok(ops->address(pair->t[i], address));
    assert_ok(ops->alloc(pair->t[i], PAIR_LEN, &mem, &pair->region[i]));
    pair->mem[i] = mem;
    assert_ok(ops->export_region(pair->t[i], pair->region[i], region));
}

/* Both sides, with what pair_offer has returned for each, connect to the other. */
static inline void pair_connect(struct pair *pair, const struct trib_address address[2],
                                const struct trib_blob region[2])
{
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = pair->t[i]->ops;
        assert_ok(ops->connect(pair->t[i], !i, &address[!i]));
        assert_ok(ops->import_region(pair->t[i], !i, &region[!i], &pair->remote[i]));
    }
}

static inline void pair_open(struct pair *pair, const char *text0, const char *text1)
{
    struct trib_address address[2];
    struct trib_blob region[2];

    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_ok(trib_transport_open(i ? text1 : text0, &opts, &pair->t[i]));
        pair_offer(pair, i, &address[i], &region[i]);
    }
    pair_connect(pair, address, region);
}

static inline void pair_close(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        pair->t[i]->ops->close(pair->t[i]);
}

/* The address of a side whose transport begins with a TCP connection. */
static inline struct trib_ip_address pair_ip_address(struct pair *pair, int side)
{
    struct trib_address address;
    struct trib_ip_address a;

    assert_ok(pair->t[side]->ops->address(pair->t[side], &address));
    assert_int_equal(address.len, sizeof(a));
    memcpy(&a, address.bytes, sizeof(a));
    return a;
}

/* A write of `len` bytes of side 0 to side 1. */
static inline trib_status_t pair_write(struct pair *pair, size_t len, uint32_t imm)
{
    struct trib_write w = {
        .local = pair->region[0],
        .remote = pair->remote[0],
        .len = len,
        .imm = imm,
        .signal = true,
        .token = imm,
    };

    return pair->t[0]->ops->write(pair->t[0], 1, &w);
}

/* The next event of a side; 0 after `ms` without one. */
static inline int pair_poll(struct pair *pair, int side, int ms,
                            struct trib_event *event)
{
    uint64_t deadline = trib_deadline_ms(ms);

    do {
        if (pair->t[side]->ops->poll(pair->t[side], event, 1))
            return 1;
        usleep(100);
    } while (!trib_deadline_passed(deadline));
    return 0;
}

/* The next event of a side, which is sure to come. */
static inline int pair_await(struct pair *pair, int side, struct trib_event *event)
{
    return pair_poll(pair, side, tribtest_patience_ms(), event);
}

/* Another descriptor of this process's socket with that UDP port: after its owner
 * closed it the port stays open and silent, as that of a stopped process. */
static inline int pair_keep_port(uint16_t port)
{
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in6 own = {0}; /* IPv4's has its port at the same place */
        socklen_t len = sizeof(own), type_len = sizeof(int);
        int type = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
            type == SOCK_DGRAM &&
            getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
            (own.sin6_family == AF_INET6 || own.sin6_family == AF_INET) &&
            ntohs(own.sin6_port) == port)
            return dup(fd);
    }
    fail_msg("no socket has UDP port %u", port);
    return -1;
}

#endif
