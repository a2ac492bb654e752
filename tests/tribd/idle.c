/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle PORT KEY - proves to the tribd at that port who it is, asks for nothing, and
 * prints why the conversation ends. Exit code 0 if it does within two minutes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "base/error.h"
#include "base/time.h"

static trib_status_t wait_for_end(int fd, const struct trib_auth *auth,
                                  struct trib_error *err)
{
    const uint64_t until = trib_deadline_ms(120000);
    const struct trib_session_opts opts = {.fd = fd,
                                           .role = TRIB_CONTROL_JOB,
                                           .auth = auth,
                                           .job = "idle",
                                           .peer = "tribd",
                                           .handshake_ms = 60000,
                                           .err = err};
    struct trib_session *session;
    struct trib_control got;

    trib_status_t st = trib_session_open(&opts, &session);
    if (st != TRIB_OK)
        return st;
    st = trib_session_meet_wait(session, until);
    if (st == TRIB_OK)
        st = trib_session_take_wait(session, until, &got);
    trib_session_free(session);
    return st;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct trib_error err = {0};
    struct trib_auth *auth;

    if (argc != 3)
        return 2;
    const struct trib_auth_opts opts = {.method = "key", .key_file = argv[2]};
    at.sin_port = htons((uint16_t)atoi(argv[1]));
    if (trib_auth_open(&opts, &err, &auth) != TRIB_OK ||
        connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
        return 1;
    const trib_status_t st = wait_for_end(fd, auth, &err);
    trib_auth_free(auth);
    printf("%s\n", trib_error_text(&err));
    return st < 0 ? 0 : 1;
}
