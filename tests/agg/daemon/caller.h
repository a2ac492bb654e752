/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control connection to the tribd of TRIB_SERVICE by a program that has the key and
 * speaks for itself, without a job behind it: for hostile and attack.
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
    struct trib_control m; /* heard last */
};

/** caller_prepare - read the settings and the key; false: it has said why. */
bool caller_prepare(struct caller *c);

/**
 * caller_come - connect, say HELLO and, with `prove`, both prove who they are.
 *
 * returns  false: nobody is there, or has time. The session may exist all the same
 */
bool caller_come(struct caller *c, const char *job, bool prove);

/** caller_say, caller_hear - one message; false: it did not get there, or another one
 * came. */
bool caller_say(struct caller *c, const struct trib_control *m);
bool caller_hear(struct caller *c, enum trib_control_kind kind);

/** caller_join - a JOIN as rank 0 of a job with one aggregator would send it, by the
 * settings. */
struct trib_control caller_join(const struct caller *c, const char *job, uint32_t ranks,
                                const char *transport);

/** caller_plan - announce plan 0 with any text. */
bool caller_plan(struct caller *c, const char *text);

/** caller_address - the port of TRIB_SERVICE on loopback; false: there is none. */
bool caller_address(const char *service, struct sockaddr_in *out);

/** caller_connect_from - begin to connect from one of the addresses of the loopback
 * network; -1: tribd's queue is full. */
int caller_connect_from(const struct sockaddr_in *to, uint32_t host);

#endif
