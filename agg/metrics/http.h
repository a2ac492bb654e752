/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service, seen from a browser, by Prometheus and by who starts it anew: /,
 * /metrics, /status, /healthz and /readyz, GET only.
 *
 * The server has one thread, which reads views (agg/metrics/metrics.h) and never the
 * service. It has no authentication, so it listens at loopback unless told otherwise.
 * There it answers to the name localhost alone: a page from elsewhere could read it by
 * a name that points here.
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
    const char *address;  /* an address of agg/metrics/http_address.h; NULL:
                           * 127.0.0.1 */
    uint16_t port;        /* 0: any that is free */
    uint32_t connections; /* at a time: one more, and the oldest that idles is closed;
                           * 0: 16 */
    uint32_t timeout_s;   /* a connection on which nothing moves is closed; 0: 10 */
    uint32_t lifetime_s;  /* any connection is, by trib_http_tend_mt; 0: 10 */
    /* Makes the view to show; called on the HTTP server's thread. */
    trib_status_t (*view)(void *arg, struct trib_service_view *out);
    /* Answers /healthz, and with `ready` /readyz: true for 200, false for 503, and a
     * sentence. NULL: 200 */
    bool (*well)(void *arg, bool ready, char *say, size_t bytes);
    void *arg;
    const struct trib_log *log; /* log of what keeps it from taking connections; or
                                 * NULL */
};

/**
 * trib_http_start - listen, and answer from now on.
 *
 * owner    trib_http_stop
 * errors   TRIB_ERR_CONFIG: the address is none; TRIB_ERR_BOOT: it cannot be listened
 *          at; TRIB_ERR_UNSUPPORTED: built without libmicrohttpd; TRIB_ERR_SYSTEM
 */
trib_status_t trib_http_start(const struct trib_http_opts *opts, struct trib_error *err,
                              struct trib_http **out);

/** trib_http_port - the port at which it listens. */
uint16_t trib_http_port(const struct trib_http *http);

/** trib_http_is_loopback - can this host alone reach it? */
bool trib_http_is_loopback(const struct trib_http *http);

/**
 * trib_http_tend_mt - close what has been open for too long: now and then, from any
 * thread.
 *
 * Each connection is for one request; of one that comes byte by byte something always
 * moves.
 */
void trib_http_tend_mt(struct trib_http *http);

/** trib_http_stop - closes its connections and ends its thread; NULL is allowed. */
void trib_http_stop(struct trib_http *http);

#endif
