/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server: listens for jobs, lets them in, and lets them go. One thread, which waits for
 * sockets; what may take long is done by nodes (node.h).
 */
#ifndef TRIBD_SERVER_H
#define TRIBD_SERVER_H

#include "base/error.h"
#include "base/log.h"
#include "tribd/settings.h"

struct server;

/** server_open - listen, start the threads that sum; errors as configured, in err. */
trib_status_t server_open(const struct settings *settings, const struct trib_log *log,
                          struct trib_error *err, struct server **out);

/**
 * server_run - until it is told to stop, and all jobs have left.
 *
 * stop_fd   readable once it is to drain: no new jobs, others end between two operations
 */
void server_run(struct server *s, int stop_fd);

void server_close(struct server *s);

#endif
