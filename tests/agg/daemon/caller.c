/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agg/daemon/caller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sockets.h"
#include "base/time.h"
#include "collectives/schedule/schedule.h"

bool caller_prepare(struct caller *c)
{
    const struct trib_auth_opts auth = {.method = "key",
                                        .key_file = c->cfg.service_key};

    if (trib_config_load(&c->cfg, NULL, &c->log, &c->err) == TRIB_OK &&
        trib_auth_open(&auth, &c->err, &c->auth) == TRIB_OK)
        return true;
    fprintf(stderr, "%s\n", trib_error_text(&c->err));
    return false;
}

bool caller_come(struct caller *c, const char *job, bool prove)
{
    struct trib_session_opts opts = {.role = TRIB_CONTROL_JOB,
                                     .auth = c->auth,
                                     .job = job,
                                     .peer = "tribd",
                                     .handshake_ms = CALLER_PATIENCE_MS,
                                     .err = &c->err};
    struct trib_tcp_root at;
    char why[160];

    c->session = NULL;
    trib_error_clear(&c->err);
    if (!trib_tcp_root_parse(c->cfg.service, &at))
        return false;
    opts.fd = trib_sockets_connect(&at, trib_deadline_ms(CALLER_PATIENCE_MS), NULL, why,
                                   sizeof(why));
    if (opts.fd < 0 || trib_session_open(&opts, &c->session) != TRIB_OK)
        return false;
    return !prove || trib_session_ready_wait(
                         c->session, trib_deadline_ms(CALLER_PATIENCE_MS)) == TRIB_OK;
}

bool caller_say(struct caller *c, const struct trib_control *m)
{
    return trib_session_send_wait(c->session, trib_deadline_ms(CALLER_PATIENCE_MS),
                                  m) == TRIB_OK;
}

bool caller_hear(struct caller *c, enum trib_control_kind kind)
{
    const uint64_t until = trib_deadline_ms(CALLER_PATIENCE_MS);

    return trib_session_take_wait(c->session, until, &c->m) == TRIB_OK &&
           c->m.kind == kind;
}

struct trib_control caller_join(const struct caller *c, const char *job, uint32_t ranks,
                                const char *transport)
{
    struct trib_control m = {.kind = TRIB_CONTROL_JOIN};
    struct trib_control_join *j = &m.join;

    snprintf(j->job, sizeof(j->job), "%s", job);
    j->ranks = ranks;
    j->aggregators = 1;
    j->weight = 1;
    j->slots = ranks * (uint32_t)c->cfg.window * TRIB_LANES;
    j->bytes = (uint64_t)j->slots * c->cfg.chunk;
    const int at =
        snprintf(j->settings, sizeof(j->settings), "transport=%s ", transport);
    trib_config_same_text(&c->cfg, j->settings + at, sizeof(j->settings) - (size_t)at);
    return m;
}

bool caller_plan(struct caller *c, const char *text)
{
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN};

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    return caller_say(c, &m);
}

bool caller_address(const char *service, struct sockaddr_in *out)
{
    struct trib_tcp_root at;

    if (!service || !trib_tcp_root_parse(service, &at))
        return false;
    *out = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(at.port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return true;
}

int caller_connect_from(const struct sockaddr_in *to, uint32_t host)
{
    const struct sockaddr_in from = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + host)};
    const int fd =
        trib_fd_keep(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    if (fd < 0)
        return -1;
    if (bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0 &&
        (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 ||
         errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}
