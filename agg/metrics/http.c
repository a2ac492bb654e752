/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/metrics/http.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "agg/metrics/http_address.h"
#include "base/accept.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"

#define REQUEST_BYTES 16384 /* memory for the headers of one request */

static const char page[] =
#include "agg/metrics/page.inc"
    ;

/* Spare places above opts.connections for evicted connections, which MHD closes
 * slightly later. */
#define LEAVING_MAX 16

struct open {
    int fd;
    uint64_t until; /* deadline; 0: a free place */
    bool asked;     /* a request has arrived */
    bool leaves;    /* evicted: shut down, not closed yet */
};

struct trib_http {
    struct MHD_Daemon *daemon;
    pthread_mutex_t mutex;
    struct open *open; /* [places], under mutex */
    uint32_t places;
    struct trib_http_opts opts;
    uint16_t port;
    bool loopback;
    struct trib_accept_pause pause; /* pause of MHD's thread after a failed accept() */
};

/* --- responses --- */

struct route {
    const char *path;
    const char *type;
    char *(*render)(const struct trib_service_view *view); /* NULL: page or probe */
    enum { NO_PROBE, IS_HEALTHY, IS_READY } probe;
};

static const struct route routes[] = {
    {"/", "text/html; charset=utf-8", NULL, NO_PROBE},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", trib_metrics_text,
     NO_PROBE},
    {"/status", "application/json", trib_metrics_json, NO_PROBE},
    {"/healthz", "text/plain; charset=utf-8", NULL, IS_HEALTHY},
    {"/readyz", "text/plain; charset=utf-8", NULL, IS_READY},
};

/* Queue a response that closes its connection: idle connections would keep others
 * out. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code,
                             const char *type, struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CONNECTION, "close"},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
         "'none'"},
    };
    enum MHD_Result result = MHD_NO;

    if (!response)
        return MHD_NO;
    bool all = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        all &= MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        all &= MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (all)
        result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static struct MHD_Response *constant(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)text,
                                           MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned code,
                           const char *text)
{
    return reply(connection, code, "text/plain; charset=utf-8", constant(text));
}

static enum MHD_Result probe(const struct trib_http *http,
                             struct MHD_Connection *connection,
                             const struct route *route)
{
    char text[200] = "";
    const bool well =
        !http->opts.well || http->opts.well(http->opts.arg, route->probe == IS_READY,
                                            text, sizeof(text) - 1);

    assert(route->probe != NO_PROBE);
    strcat(text, "\n");
    return reply(
        connection, well ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, route->type,
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result show(const struct trib_http *http,
                            struct MHD_Connection *connection,
                            const struct route *route)
{
    struct trib_service_view view;
    char *text;

    if (route->probe)
        return probe(http, connection, route);
    if (!route->render)
        return reply(connection, MHD_HTTP_OK, route->type, constant(page));
    if (http->opts.view(http->opts.arg, &view))
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "the service is out of memory for a response\n");
    text = route->render(&view);
    trib_service_view_free(&view);
    if (!text)
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "the service is out of memory for a response\n");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    return reply(connection, MHD_HTTP_OK, route->type, response);
}

/* --- requests --- */

/* Return true for a host name that can only mean this host, with or without a port. */
static bool names_this_host(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; host && i < sizeof(names) / sizeof(*names); i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) == 0 && (!host[len] || host[len] == ':'))
            return true;
    }
    return !host;
}

/* Mark the connection as active: idle connections are evicted first. */
static void note_request(struct trib_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct open *o = info ? info->socket_context : NULL;

    pthread_mutex_lock(&http->mutex);
    if (o)
        o->asked = true;
    pthread_mutex_unlock(&http->mutex);
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection,
                              const char *path, const char *method, const char *version,
                              const char *upload, size_t *upload_bytes, void **state)
{
    struct trib_http *http = arg;

    (void)version, (void)upload, (void)upload_bytes, (void)state;
    note_request(http, connection);
    /* Refuse before the body arrives: MHD then closes the connection without reading
     * it. */
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                   "only GET and HEAD are supported\n");
    if (http->loopback &&
        !names_this_host(MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                     MHD_HTTP_HEADER_HOST)))
        return say(
            connection, MHD_HTTP_FORBIDDEN,
            "on loopback only the host name localhost is accepted: use localhost, or "
            "let the service listen on another address\n");
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++)
        if (strcmp(path, routes[i].path) == 0)
            return show(http, connection, &routes[i]);
    return say(connection, MHD_HTTP_NOT_FOUND,
               "not found: use /, /metrics, /status, /healthz or /readyz\n");
}

/* --- start and stop --- */

/* Make room for a new connection at once, without waiting for an idle one to time out.
 * Evicts the oldest connection without a request, else the oldest. Called with the
 * mutex held. */
static void make_place(struct trib_http *http)
{
    struct open *first = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < http->places; i++) {
        struct open *o = &http->open[i];
        if (!o->until || o->leaves)
            continue;
        n++;
        if (!first || o->asked < first->asked ||
            (o->asked == first->asked && o->until < first->until))
            first = o;
    }
    if (n < http->opts.connections)
        return;
    assert(first); /* a connection is allowed at least */
    first->leaves = true;
    (void)shutdown(first->fd, SHUT_RDWR); /* MHD closes it and notifies */
}

/* Track connections by socket. MHD's timeout restarts at each byte, so a slow client
 * never times out. */
static void note_connection(void *arg, struct MHD_Connection *connection,
                            void **socket_context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct trib_http *http = arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct open *o = *socket_context;

    pthread_mutex_lock(&http->mutex);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && o)
        o->until = 0;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        make_place(http);
    for (uint32_t i = 0;
         info && what == MHD_CONNECTION_NOTIFY_STARTED && i < http->places; i++) {
        if (http->open[i].until)
            continue;
        http->open[i] =
            (struct open){.fd = info->connect_fd,
                          .until = trib_deadline_ms((int)http->opts.lifetime_s * 1000)};
        *socket_context = &http->open[i];
        break;
    }
    pthread_mutex_unlock(&http->mutex);
}

void trib_http_tend_mt(struct trib_http *http)
{
    if (!http)
        return;
    pthread_mutex_lock(&http->mutex);
    for (uint32_t i = 0; i < http->places; i++)
        if (http->open[i].until && trib_deadline_passed(http->open[i].until))
            (void)shutdown(http->open[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&http->mutex);
}

/*
 * Called by MHD in its thread when accept() lacks a descriptor. MHD retries at once
 * while it has no connection, so this callback pauses.
 */
static void hear_complaint(void *arg, const char *format, va_list args)
{
    const struct timespec nap = {0, TRIB_ACCEPT_PAUSE_MS * 1000000L};
    const int error = errno;
    struct trib_http *http = arg;

    (void)args;
    if (!strstr(format, "resource limit"))
        return;
    const int cause =
        error == ENFILE || error == ENOMEM || error == ENOBUFS ? error : EMFILE;
    if (trib_accept_failed(&http->pause, cause) && http->opts.log)
        trib_log(http->opts.log, TRIB_LOG_WARN, "tribd",
                 "cannot accept HTTP connections: %s; %s", strerror(cause),
                 trib_accept_cure(cause));
    nanosleep(&nap, NULL);
}

/* Start MHD with all signals blocked: its thread inherits the mask, and only the
 * daemon's own threads handle signals. */
static struct MHD_Daemon *start_daemon(struct trib_http *http,
                                       const struct trib_http_address *address)
{
    unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG;
    sigset_t all, before;

    if (address->at.any.sa_family == AF_INET6)
        flags |= address->all ? MHD_USE_DUAL_STACK : MHD_USE_IPv6;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = 0;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, http->opts.port, NULL, NULL, answer, http, MHD_OPTION_EXTERNAL_LOGGER,
        hear_complaint, (void *)http, MHD_OPTION_SOCK_ADDR,
        &address->at.any, MHD_OPTION_NOTIFY_CONNECTION, note_connection, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)http->places,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)http->opts.timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_END);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return daemon;
}

static trib_status_t listen_at(struct trib_http *http, const char *text,
                               struct trib_error *err)
{
    struct trib_http_address address;

    assert(!http->daemon);
    trib_status_t st = trib_http_address(text, http->opts.port, err, &address);
    if (st != TRIB_OK)
        return st;
    http->loopback = address.loopback;
    http->daemon = start_daemon(http, &address);
    if (!http->daemon && address.all && errno != EADDRINUSE) { /* host without IPv6 */
        (void)trib_http_address("0.0.0.0", http->opts.port, err, &address);
        http->daemon = start_daemon(http, &address);
    }
    return http->daemon
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_BOOT,
                           "cannot listen for HTTP on %s, port %u: %m: choose another "
                           "port or address",
                           text, http->opts.port);
}

trib_status_t trib_http_start(const struct trib_http_opts *opts, struct trib_error *err,
                              struct trib_http **out)
{
    struct trib_http *http = calloc(1, sizeof(*http));
    const union MHD_DaemonInfo *info;
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    assert(opts->view);
    *out = NULL;
    if (http) {
        http->opts = *opts;
        http->opts.connections = opts->connections ? opts->connections : 16;
        http->opts.timeout_s = opts->timeout_s ? opts->timeout_s : 10;
        http->opts.lifetime_s = opts->lifetime_s ? opts->lifetime_s : 10;
        http->places = http->opts.connections + LEAVING_MAX;
        http->open = calloc(http->places, sizeof(*http->open));
        pthread_mutex_init(&http->mutex, NULL);
    }
    if (!http || !http->open)
        (void)trib_fail(err, st, "out of memory for an HTTP server");
    else
        st = listen_at(http, opts->address ? opts->address : "127.0.0.1", err);
    if (st != TRIB_OK) {
        trib_http_stop(http);
        return st;
    }
    assert(http->daemon);
    info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = info ? info->port : opts->port;
    *out = http;
    return TRIB_OK;
}

bool trib_http_is_loopback(const struct trib_http *http)
{
    return http->loopback;
}

uint16_t trib_http_port(const struct trib_http *http)
{
    return http->port;
}

void trib_http_stop(struct trib_http *http)
{
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    pthread_mutex_destroy(&http->mutex);
    free(http->open);
    free(http);
}
