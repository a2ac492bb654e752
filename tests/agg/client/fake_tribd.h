/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake tribd on a thread of rank 0's process: it accepts one job and answers its JOIN
 * as the test selects, but sums nothing.
 */
#ifndef TESTS_AGG_CLIENT_FAKE_TRIBD_H
#define TESTS_AGG_CLIENT_FAKE_TRIBD_H

#include <arpa/inet.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "base/error.h"
#include "base/time.h"
#include "tests/harness/ranks.h"

enum fake_answer {
    FAKE_REFUSES,
    FAKE_SILENT, /* admits the job and sends no wireup message */
    FAKE_ODD,    /* admits the job and sends another kind of message */
    FAKE_SHORT,  /* admits the job and sends a wireup message of one byte */
};

struct fake_tribd {
    enum fake_answer answer;
    int fd; /* listener */
    int port;
    pthread_t thread;
    struct trib_control_join join; /* JOIN of the job; valid after fake_join */
};

static inline void fake_answer(struct fake_tribd *f, struct trib_session *session)
{
    const uint64_t until = trib_deadline_ms(20000);
    static const uint8_t byte[1];
    struct trib_control m;

    if (trib_session_take_wait(session, until, &m) != TRIB_OK ||
        m.kind != TRIB_CONTROL_JOIN)
        return;
    f->join = m.join;
    m = (struct trib_control){.kind = f->answer == FAKE_REFUSES
                                          ? TRIB_CONTROL_REFUSED
                                          : TRIB_CONTROL_ADMITTED};
    if (f->answer == FAKE_REFUSES)
        snprintf(m.said.text, sizeof(m.said.text), "all slots are taken");
    else
        m.admitted = (struct trib_control_admitted){f->join.slots, f->join.bytes};
    (void)trib_session_send_wait(session, until, &m);
    m = (struct trib_control){.kind = TRIB_CONTROL_PLAN_OK};
    if (f->answer == FAKE_SHORT)
        m = (struct trib_control){.kind = TRIB_CONTROL_BLOBS,
                                  .blobs = {.total = f->join.ranks + 1,
                                            .first = f->join.ranks,
                                            .count = 1,
                                            .each = 1,
                                            .data = {byte, 1}}};
    if (f->answer == FAKE_ODD || f->answer == FAKE_SHORT)
        (void)trib_session_send_wait(session, until, &m);
    while (trib_session_take_wait(session, until, &m) == TRIB_OK &&
           m.kind != TRIB_CONTROL_GOODBYE)
        continue;
}

static inline void *fake_run(void *arg)
{
    struct fake_tribd *f = arg;
    const struct trib_auth_opts with = {.method = "none"};
    struct trib_error err = {0};
    struct trib_auth *auth = NULL;
    struct trib_session *session = NULL;
    struct trib_session_opts opts = {.fd = accept(f->fd, NULL, NULL),
                                     .role = TRIB_CONTROL_AGGREGATOR,
                                     .peer = "a job",
                                     .handshake_ms = 20000,
                                     .err = &err};

    if (opts.fd >= 0 && trib_auth_open(&with, &err, &auth) == TRIB_OK) {
        opts.auth = auth;
        if (trib_session_open(&opts, &session) == TRIB_OK)
            fake_answer(f, session);
        trib_session_free(session);
    }
    trib_auth_free(auth);
    return NULL;
}

/* Called by rank 0: from now on, a job can connect to the port. */
static inline void fake_start(struct ranks_self *self, struct fake_tribd *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);

    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ranks_assert(self, f->fd >= 0 && bind(f->fd, (struct sockaddr *)&at, bytes) == 0 &&
                           listen(f->fd, 1) == 0 &&
                           getsockname(f->fd, (struct sockaddr *)&at, &bytes) == 0);
    f->port = ntohs(at.sin_port);
    ranks_assert(self, pthread_create(&f->thread, NULL, fake_run, f) == 0);
}

/* Called after the job has disconnected or was refused. */
static inline void fake_join(struct fake_tribd *f)
{
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->fd);
}

#endif
