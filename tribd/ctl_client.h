/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client side of tribctl: it asks for status over HTTP, and sends commands to
 * tribd's control socket.
 */
#ifndef TRIBD_CTL_CLIENT_H
#define TRIBD_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

/**
 * ctl_client_status - GET /status at "host:port".
 *
 * out      the body, which the caller frees
 * errors   TRIB_ERR_CONFIG: no address; TRIB_ERR_PEER_LOST: nobody there, or no tribd;
 *          TRIB_ERR_TIMEOUT after 5 s; TRIB_ERR_NO_MEMORY; with a sentence
 */
trib_status_t ctl_client_status(const char *address, struct trib_error *err,
                                char **out);

/**
 * ctl_client_command - one line to the socket at `path`, one line back without "ok: "
 * or "error: ".
 *
 * done_out  was it done?
 * errors    as ctl_client_status
 */
trib_status_t ctl_client_command(const char *path, const char *line,
                                 struct trib_error *err, char *answer, size_t bytes,
                                 bool *done_out);

#endif
