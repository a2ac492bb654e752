/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client side of tribctl: queries status over HTTP, and sends commands to tribd's
 * control socket.
 */
#ifndef AGG_DAEMON_CTL_CLIENT_H
#define AGG_DAEMON_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

/**
 * ctl_client_status - GET /status from "host:port".
 *
 * out      the body, freed by the caller
 * errors   TRIB_ERR_CONFIG: invalid address; TRIB_ERR_PEER_LOST: no answer from a tribd
 *          within 5 s
 */
trib_status_t ctl_client_status(const char *address, struct trib_error *err,
                                char **out);

/**
 * ctl_client_command - send one line to the socket at `path` and return the answer line
 * without "ok: " or "error: ".
 *
 * line      shorter than CTL_LINE, without a newline
 * done_out  true: the command succeeded
 * errors    as ctl_client_status
 */
trib_status_t ctl_client_command(const char *path, const char *line,
                                 struct trib_error *err, char *answer, size_t bytes,
                                 bool *done_out);

#endif
