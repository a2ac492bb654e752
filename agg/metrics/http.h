/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP server of tribd for browsers, Prometheus and supervisors: /, /metrics, /status,
 * /healthz and /readyz, GET only.
 *
 * The server has one thread, which reads views (agg/metrics/metrics.h) and never the
 * service itself. Requests are not authenticated, so it listens on loopback by default.
 * There it accepts only the host name localhost: otherwise a foreign page could read it
 * through a DNS name that resolves to this host.
 */
#ifndef AGG_METRICS_HTTP_H
#define AGG_METRICS_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "agg/metrics/metrics.h"

struct trib_error;
struct trib_log;
struct trib_http;

struct trib_http_opts {
    const char *address;  /* see agg/metrics/http_address.h; NULL: 127.0.0.1 */
    uint16_t port;        /* 0: any free port */
    uint32_t connections; /* beyond this, the oldest idle connection is closed; 0: 16 */
    uint32_t timeout_s;   /* closes a connection without traffic; 0: 10 */
    uint32_t lifetime_s;  /* closes any connection, by trib_http_tend_mt; 0: 10 */
    /* Fill the view to show; called on the server's thread. */
    trib_status_t (*view)(void *arg, struct trib_service_view *out);
    /* Answer /healthz, or /readyz if `ready`: true for 200, false for 503, with a
     * message. NULL: 200. */
    bool (*well)(void *arg, bool ready, char *say, size_t bytes);
    void *arg;
    const struct trib_log *log; /* logs failures to accept connections; or NULL */
};

/**
 * trib_http_start - listen, and answer from now on.
 *
 * owner    trib_http_stop
 * errors   TRIB_ERR_CONFIG: invalid address; TRIB_ERR_BOOT: cannot listen at it;
 *          TRIB_ERR_UNSUPPORTED: built without libmicrohttpd; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_http_start(const struct trib_http_opts *opts, struct trib_error *err,
                              struct trib_http **out);

/** trib_http_port - return the port on which the server listens. */
uint16_t trib_http_port(const struct trib_http *http);

/** trib_http_is_loopback - return true if only this host can reach the server. */
bool trib_http_is_loopback(const struct trib_http *http);

/**
 * trib_http_tend_mt - close connections past lifetime_s; call periodically, from any
 * thread.
 *
 * A connection serves one request. A client that sends byte by byte never reaches
 * timeout_s.
 */
void trib_http_tend_mt(struct trib_http *http);

/** trib_http_stop - close all connections and end the thread; NULL is allowed. */
void trib_http_stop(struct trib_http *http);

#endif
