/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control connection to the tribd of TRIB_SERVICE by a program with the key but
 * without a job: for hostile and attack.
 */
#ifndef TESTS_AGG_DAEMON_CALLER_H
#define TESTS_AGG_DAEMON_CALLER_H

#include <netinet/in.h>

#include "agg/protocol/session.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"

enum { CALLER_PATIENCE_MS = 10000 };

struct caller {
    struct trib_config cfg;
    struct trib_log log;
    struct trib_auth *auth;
    struct trib_error err;
    struct trib_session *session;
    struct trib_control m; /* received last */
};

/** caller_prepare - read the settings and the key; return false after printing an
 * error. */
bool caller_prepare(struct caller *c);

/**
 * caller_come - connect, send HELLO and, with `prove`, authenticate both sides.
 *
 * Return false if no tribd answers or it has no time. The session may exist even then.
 */
bool caller_come(struct caller *c, const char *job, bool prove);

/** caller_say, caller_hear - send or receive one message; return false if sending fails
 * or another kind arrives. */
bool caller_say(struct caller *c, const struct trib_control *m);
bool caller_hear(struct caller *c, enum trib_control_kind kind);

/** caller_join - return a JOIN as rank 0 of a job with one aggregator sends it, from
 * the settings. */
struct trib_control caller_join(const struct caller *c, const char *job, uint32_t ranks,
                                const char *transport);

/** caller_plan - announce plan 0 with any text. */
bool caller_plan(struct caller *c, const char *text);

/** caller_address - return the port of TRIB_SERVICE on loopback; false: there is
 * none. */
bool caller_address(const char *service, struct sockaddr_in *out);

/** caller_connect_from - begin to connect from an address of the loopback network;
 * return -1 if the queue of tribd is full. */
int caller_connect_from(const struct sockaddr_in *to, uint32_t host);

#endif
