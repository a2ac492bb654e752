/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/metrics/http_address.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/error.h"

static bool parse(const char *text, struct trib_http_address *out)
{
    out->all = strcmp(text, "*") == 0;
    if (strcmp(text, "localhost") == 0)
        text = "127.0.0.1";
    if (out->all)
        text = "::";
    if (inet_pton(AF_INET, text, &out->at.v4.sin_addr) == 1) {
        out->at.v4.sin_family = AF_INET;
        out->loopback = ntohl(out->at.v4.sin_addr.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &out->at.v6.sin6_addr) == 1) {
        out->at.v6.sin6_family = AF_INET6;
        out->loopback = IN6_IS_ADDR_LOOPBACK(&out->at.v6.sin6_addr);
        return true;
    }
    return false;
}

trib_status_t trib_http_address(const char *text, uint16_t port, struct trib_error *err,
                                struct trib_http_address *out)
{
    memset(out, 0, sizeof(*out));
    if (!parse(text, out))
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "cannot listen for HTTP on \"%.64s\": use *, localhost or a numeric "
            "address, such as 127.0.0.1 or ::",
            text);
    if (out->at.any.sa_family == AF_INET)
        out->at.v4.sin_port = htons(port);
    else
        out->at.v6.sin6_port = htons(port);
    return TRIB_OK;
}
