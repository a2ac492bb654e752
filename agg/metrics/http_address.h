/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses on which an HTTP server may listen: "*", "localhost" or numeric. Names are
 * not resolved. */
#ifndef AGG_METRICS_HTTP_ADDRESS_H
#define AGG_METRICS_HTTP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

struct trib_http_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    bool all;      /* "*": a dual-stack IPv6 socket, if the host has IPv6 */
    bool loopback; /* unreachable from other hosts */
};

/** trib_http_address - parse a listen address; TRIB_ERR_CONFIG, with the valid forms.
 */
trib_status_t trib_http_address(const char *text, uint16_t port, struct trib_error *err,
                                struct trib_http_address *out);

#endif
