/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to a tribd that end when it closes the connection.
 *
 * Each call has one deadline for connecting, sending and receiving together. It blocks
 * the calling thread, and signals do not interrupt it. Only the resolution of a host
 * name may take longer. A response of more than 64 MiB is an error.
 */
#ifndef TOOLS_COMMON_TRIBD_CLIENT_H
#define TOOLS_COMMON_TRIBD_CLIENT_H

#include <stddef.h>

#define TOOL_TRIBD_TIMEOUT_MS 5000

/**
 * tool_tribd_status - GET /status over HTTP.
 *
 * host     a name or numeric address, IPv6 without brackets
 * port     a number
 * why      receives the cause of a failure, such as "Connection refused"; at least 64
 *          bytes
 * returns  the body, NUL-terminated, freed by the caller; NULL: a failure
 */
char *tool_tribd_status(const char *host, const char *port, int timeout_ms, char *why,
                        size_t bytes);

/**
 * tool_exchange - send a request on a connected stream socket and return the response.
 *
 * fd       made non-blocking; the caller closes it
 * why      as for tool_tribd_status
 * returns  all bytes until the peer closes, NUL-terminated, freed by the caller; NULL:
 *          a failure
 */
char *tool_exchange(int fd, const char *request, int timeout_ms, char *why,
                    size_t bytes);

#endif
