/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: listens for jobs, lets them in, and lets them go. One thread, which waits
 * for sockets; what may take long is done by aggregators (aggregator.h).
 */
#ifndef TRIBD_SERVER_H
#define TRIBD_SERVER_H

#include "base/error.h"
#include "base/log.h"
#include "tribd/tribd_settings.h"

struct server;

/** server_check - would server_open take these, as far as can be told without
 * opening? */
trib_status_t server_check(const struct settings *settings, struct trib_error *err);

/** server_open - listen, start the threads that sum; errors as configured, in err. */
trib_status_t server_open(const struct settings *settings, const struct trib_log *log,
                          struct trib_error *err, struct server **out);

/** The server's other input: signals. */
struct server_ear {
    int fd; /* a signalfd, not blocking: SIGHUP: read settings; others: drain */
    /* Settings as of now; or TRIB_ERR_CONFIG, in err. */
    trib_status_t (*load)(void *arg, struct settings *out, struct trib_error *err);
    void *arg;
};

/** server_run - serve until the server is told to stop and all jobs have left. */
void server_run(struct server *s, const struct server_ear *ear);

void server_close(struct server *s);

#endif
