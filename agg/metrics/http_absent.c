/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP server of a build without libmicrohttpd: trib_http_start fails. */
#include <stddef.h>

#include "agg/metrics/http.h"
#include "base/error.h"

trib_status_t trib_http_start(const struct trib_http_opts *opts, struct trib_error *err,
                              struct trib_http **out)
{
    (void)opts;
    *out = NULL;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "this build has no HTTP server: install libmicrohttpd-dev, then "
                     "configure and rebuild");
}

uint16_t trib_http_port(const struct trib_http *http)
{
    (void)http;
    return 0;
}

bool trib_http_is_loopback(const struct trib_http *http)
{
    (void)http;
    return true;
}

void trib_http_tend_mt(struct trib_http *http)
{
    (void)http;
}

void trib_http_stop(struct trib_http *http)
{
    (void)http;
}
