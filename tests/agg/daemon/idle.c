/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle PORT KEY - authenticate to the tribd at that port, send nothing, and print why
 * the connection ends. Exit code 0 if it ends within two minutes.
 *
 * idle PORT KEY together - send STORE_JOIN and STORE_OPEN in one segment. Exit code 0
 * if tribd answers both before its own ALIVE is due on the connection.
 *
 * idle PORT KEY crowd - the same, after CROWD others have sent STORE_JOIN, more than a
 * user may start at once, and closed their connections. It may take SOON_MS.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tributary/types.h>

#include "agg/protocol/session.h"
#include "base/error.h"
#include "base/time.h"

enum { TRIES = 5, CROWD = 300, SOON_MS = 4000 };

static trib_status_t meet(int fd, const struct trib_auth *auth, struct trib_error *err,
                          struct trib_session **out)
{
    const struct trib_session_opts opts = {.fd = fd,
                                           .role = TRIB_CONTROL_JOB,
                                           .auth = auth,
                                           .job = "idle",
                                           .peer = "tribd",
                                           .handshake_ms = 60000,
                                           .err = err};

    const trib_status_t st = trib_session_open(&opts, out);
    return st == TRIB_OK ? trib_session_ready_wait(*out, trib_deadline_ms(120000)) : st;
}

static trib_status_t wait_for_end(struct trib_session *session)
{
    struct trib_control got;

    return trib_session_take_wait(session, trib_deadline_ms(120000), &got);
}

static bool hears(struct trib_session *session, enum trib_control_kind kind)
{
    struct trib_control got;

    return trib_session_take_wait(session, trib_deadline_ms(60000), &got) == TRIB_OK &&
           got.kind == kind;
}

/* Ask for a store and a vector at once. Return true if both answers arrived in time. */
static bool ask(struct trib_session *session, int limit_ms)
{
    static const struct trib_control join = {.kind = TRIB_CONTROL_STORE_JOIN,
                                             .store_join.ranks = 1};
    static const struct trib_control open = {.kind = TRIB_CONTROL_STORE_OPEN,
                                             .store_open = {"v", TRIB_F32, 1, "sum"}};
    static const struct trib_control goodbye = {.kind = TRIB_CONTROL_GOODBYE};
    const int fd = trib_session_fd(session);
    const uint64_t until = trib_deadline_ms(limit_ms);

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){1}, sizeof(int));
    (void)trib_session_send(session, &join);
    (void)trib_session_send(session, &open);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){0}, sizeof(int));
    const bool answered = hears(session, TRIB_CONTROL_STORE_JOINED) &&
                          hears(session, TRIB_CONTROL_STORE_VECTOR);
    (void)trib_session_send(session, &goodbye);
    return answered && !trib_deadline_passed(until);
}

static trib_status_t dial(const struct sockaddr_in *at, const struct trib_auth *auth,
                          struct trib_error *err, struct trib_session **out)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0) {
        close(fd);
        return TRIB_ERR_SYSTEM;
    }
    return meet(fd, auth, err, out);
}

/* Ask for stores, each of another run, and leave. */
static void ask_and_leave(const struct sockaddr_in *at, const struct trib_auth *auth,
                          struct trib_error *err)
{
    static struct trib_session *crowd[CROWD];
    static const struct trib_control goodbye = {.kind = TRIB_CONTROL_GOODBYE};
    struct trib_control join = {.kind = TRIB_CONTROL_STORE_JOIN, .store_join.ranks = 1};

    for (int i = 0; i < CROWD; i++) {
        if (dial(at, auth, err, &crowd[i]) != TRIB_OK)
            continue;
        join.store_join.token[0] = join.store_join.owner[0] = (uint8_t)(1 + i % 255);
        join.store_join.token[1] = join.store_join.owner[1] = (uint8_t)(1 + i / 255);
        (void)trib_session_send(crowd[i], &join);
        (void)trib_session_send(crowd[i], &goodbye);
    }
    for (int i = 0; i < CROWD; i++)
        trib_session_free(crowd[i]);
}

int main(int argc, char **argv)
{
    const bool together = argc == 4;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct trib_error err = {0};
    struct trib_auth *auth;
    bool right = false;

    if (argc < 3)
        return 2;
    const struct trib_auth_opts opts = {.method = "key", .key_file = argv[2]};
    at.sin_port = htons((uint16_t)atoi(argv[1]));
    if (trib_auth_open(&opts, &err, &auth) != TRIB_OK)
        return 1;
    const bool crowd = together && strcmp(argv[3], "crowd") == 0;
    if (crowd)
        ask_and_leave(&at, auth, &err);
    for (int i = 0; i < (together && !crowd ? TRIES : 1) && !right; i++) {
        struct trib_session *session = NULL;
        const trib_status_t st = dial(&at, auth, &err, &session);
        if (st == TRIB_OK)
            right = together ? ask(session, crowd ? SOON_MS : TRIB_SESSION_ALIVE_MS)
                             : wait_for_end(session) < 0;
        trib_session_free(session);
    }
    trib_auth_free(auth);
    printf("%s\n", trib_error_text(&err));
    return right ? 0 : 1;
}
