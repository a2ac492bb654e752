/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses at which an HTTP server may listen: "*", "localhost" or a numeric one.
 * No name is resolved. */
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
    bool all;      /* "*": IPv4, too, though it is an address of IPv6 */
    bool loopback; /* no other host reaches it */
};

/** trib_http_address - errors: TRIB_ERR_CONFIG, with what may stand there. */
trib_status_t trib_http_address(const char *text, uint16_t port, struct trib_error *err,
                                struct trib_http_address *out);

#endif
