/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: accepts, admits and ends jobs. It has one thread, which only waits for
 * sockets; aggregators (aggregator.h) do the long-running work.
 */
#ifndef AGG_DAEMON_SERVER_H
#define AGG_DAEMON_SERVER_H

#include "agg/daemon/tribd_settings.h"
#include "base/error.h"
#include "base/log.h"

struct server;

/** server_check - validate settings as server_open would, as far as possible without
 * listening. */
trib_status_t server_check(const struct settings *settings, struct trib_error *err);

/** server_open - listen and start the worker threads; errors: as server_check, and
 * failures to listen. */
trib_status_t server_open(const struct settings *settings, const struct trib_log *log,
                          struct trib_error *err, struct server **out);

/** Signal input of the server. */
struct server_ear {
    int fd; /* non-blocking signalfd; SIGHUP: reload, others: drain */
    /* Load the current settings; TRIB_ERR_CONFIG, in err. */
    trib_status_t (*load)(void *arg, struct settings *out, struct trib_error *err);
    void *arg;
};

/** server_run - serve until a drain was requested and all jobs have disconnected.
 * Return false if the snapshot directory does not respond: threads still use the
 * server, so the process must exit without server_close. */
bool server_run(struct server *s, const struct server_ear *ear);

/** server_close - free the server, or NULL; return false after archive_lost_mt. */
bool server_close(struct server *s);

#endif
