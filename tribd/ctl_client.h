/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How tribctl asks a tribd: what it knows by HTTP, what it is to do by its socket.
 */
#ifndef TRIBD_CTL_CLIENT_H
#define TRIBD_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

/**
 * ask_status - GET /status at "host:port".
 *
 * out      the body, which the caller frees
 * errors   TRIB_ERR_CONFIG: no address; TRIB_ERR_PEER_LOST: nobody there, or no tribd;
 *          TRIB_ERR_TIMEOUT after 5 s; TRIB_ERR_NO_MEMORY; with a sentence
 */
trib_status_t ask_status(const char *address, struct trib_error *err, char **out);

/**
 * ask_to - one line to the socket at `path`, one line back without "ok: " or "error: ".
 *
 * done_out  was it done?
 * errors    as ask_status
 */
trib_status_t ask_to(const char *path, const char *line, struct trib_error *err,
                     char *answer, size_t bytes, bool *done_out);

#endif
