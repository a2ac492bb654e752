/* SPDX-License-Identifier: BSD-3-Clause */
/* Start of a server: listeners, table of jobs, HTTP, control socket and workers. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "agg/metrics/http_address.h"
#include "base/addresses.h"
#include "base/config_report.h"
#include "base/fd.h"
#include "base/sockets.h"
#include "base/text.h"
#include "base/time.h"
#include "comm/core/communicator.h"
#include "comm/life/settings.h"
#include "topo/cpus.h"

static trib_status_t parse_addresses(const struct settings *t,
                                     struct trib_tcp_root roots[LISTENERS_MAX],
                                     int *n_out, struct trib_error *err)
{
    char list[SETTINGS_TEXT_BYTES], *rest;
    int n = 0;

    snprintf(list, sizeof(list), "%s", t->listen);
    for (char *a = strtok_r(list, ", ", &rest); a; a = strtok_r(NULL, ", ", &rest)) {
        if (n == LISTENERS_MAX)
            return trib_fail(err, TRIB_ERR_CONFIG, "listen: more than %d addresses",
                             LISTENERS_MAX);
        if (!trib_tcp_root_parse(a, &roots[n++]))
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "listen: \"%s\" is not host:port, such as *:4700, with "
                             "a port of 1 to 65535",
                             a);
    }
    *n_out = n;
    return n ? TRIB_OK
             : trib_fail(err, TRIB_ERR_CONFIG,
                         "listen is empty: no job could reach this service");
}

static const char *cure_of(int error)
{
    return error == EADDRINUSE      ? ": another program uses that port (see ss -ltnp)"
           : error == EADDRNOTAVAIL ? ": this host has no such address (see ip address)"
           : error == EACCES        ? ": ports below 1024 require root"
                                    : "";
}

/* Resolve a host name. Unlike trib_sockets_bind, which the ranks use, listen only on
 * its addresses and not on all of the host. */
static trib_status_t resolve(const struct trib_tcp_root *root, struct trib_error *err,
                             struct addrinfo **out)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const int failed = getaddrinfo(root->host, root->port, &hints, out);

    return failed
               ? trib_fail(err, failed == EAI_AGAIN ? TRIB_ERR_SYSTEM : TRIB_ERR_CONFIG,
                           "listen: cannot resolve %s: %s", root->host,
                           gai_strerror(failed))
               : TRIB_OK;
}

static trib_status_t listen_at(struct server *s, const struct trib_tcp_root *root,
                               struct trib_error *err)
{
    int fds[TRIB_TCP_LISTENERS_MAX], n = 0;

    const int error = trib_sockets_bind(root, NULL, fds, &n);
    if (error)
        return trib_fail(err, TRIB_ERR_BOOT, "listen: cannot listen at %s:%s: %s%s",
                         root->host, root->port, strerror(error), cure_of(error));
    for (int i = 0; i < n; i++) {
        if (s->n_listeners < LISTENERS_MAX)
            s->listeners[s->n_listeners++] = fds[i];
        else
            close(fds[i]);
    }
    return TRIB_OK;
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static trib_status_t listen_by_name(struct server *s, const struct trib_tcp_root *root,
                                    struct trib_error *err)
{
    struct addrinfo *list;
    bool reached = strcmp(root->host, "localhost") == 0;

    s->reached |= strcmp(root->host, "*") == 0;
    if (strcmp(root->host, "*") == 0)
        return listen_at(s, root, err);
    trib_status_t st = resolve(root, err, &list);
    if (st != TRIB_OK)
        return st;
    for (const struct addrinfo *a = list; a && st == TRIB_OK; a = a->ai_next) {
        struct trib_tcp_root at = *root;
        if (getnameinfo(a->ai_addr, a->ai_addrlen, at.host, sizeof(at.host), NULL, 0,
                        NI_NUMERICHOST))
            continue;
        s->reached |= !is_loopback(at.host);
        reached |= strcmp(at.host, root->host) == 0 || !is_loopback(at.host);
        st = listen_at(s, &at, err);
    }
    freeaddrinfo(list);
    if (st == TRIB_OK && !reached)
        trib_log(
            &s->log, TRIB_LOG_WARN, "tribd",
            "listen: %s resolves to a loopback address here (/etc/hosts?), so jobs on "
            "other hosts cannot reach it: use an address, or *",
            root->host);
    return st;
}

/* Set the networks for data ports to those of `listen`. If there are more than net=
 * accepts, use all. */
static void note_networks(struct server *s)
{
    struct sockaddr_storage at;
    char ip[TRIB_IP_TEXT_BYTES];
    uint8_t bytes[16];

    s->net[0] = '\0';
    for (int i = 0; i < s->n_listeners; i++) {
        socklen_t len = sizeof(at);
        static const uint8_t any[16] = {0}, any_4[16] = {[10] = 0xff, [11] = 0xff};
        if (getsockname(s->listeners[i], (struct sockaddr *)&at, &len) != 0)
            continue;
        trib_net_ip((struct sockaddr *)&at, bytes);
        trib_net_text(bytes, ip, sizeof(ip));
        if (memcmp(bytes, any, 16) == 0 || memcmp(bytes, any_4, 16) == 0 ||
            trib_net_is_link_local(bytes) || i == TRIB_NET_CHOICES ||
            !trib_text_append(s->net, sizeof(s->net), "%s%s/%d", i ? "," : "", ip,
                              trib_net_is_v4(bytes) ? 32 : 128)) {
            s->net[0] = '\0';
            return;
        }
    }
}

static trib_status_t listen_everywhere(struct server *s, struct trib_error *err)
{
    struct trib_tcp_root roots[LISTENERS_MAX];
    int n = 0;

    trib_status_t st = parse_addresses(&s->settings, roots, &n, err);
    for (int i = 0; i < n && st == TRIB_OK; i++)
        st = listen_by_name(s, &roots[i], err);
    note_networks(s);
    return st;
}

static trib_status_t create_jobs(const struct settings *t, struct trib_error *err,
                                 struct trib_jobs **out)
{
    const struct trib_jobs_opts opts = {.service = {.slots = t->slots,
                                                    .jobs = t->jobs,
                                                    .queued = t->queue,
                                                    .bytes = server_memory(t)},
                                        .backfill_ns = (uint64_t)PATIENCE_MS * 1000000,
                                        .gate_ns = (uint64_t)GATE_MS * 1000000};
    struct quotas quotas;

    trib_status_t st = quotas_read(t, err, &quotas);
    if (st == TRIB_OK)
        st = trib_jobs_create(&opts, err, out);
    if (st == TRIB_OK)
        quotas_apply(&quotas, *out);
    return st;
}

static trib_status_t open_jobs(struct server *s, struct trib_error *err)
{
    const struct trib_metrics_opts counted = {.start_ns = trib_now_ns(),
                                              .stuck_ns = (uint64_t)STUCK_MS * 1000000};

    trib_status_t st = create_jobs(&s->settings, err, &s->jobs);
    if (st == TRIB_OK)
        st = trib_metrics_create(&counted, &s->metrics);
    return st;
}

static trib_status_t view(void *arg, struct trib_service_view *out)
{
    struct server *s = arg;
    const trib_status_t st = trib_metrics_view_mt(s->metrics, trib_now_ns(), out);

    if (st != TRIB_OK)
        return st;
    trib_process_view(&out->process);
    out->n_rdma =
        (uint32_t)trib_rdma_counters_all("", out->rdma, TRIB_RDMA_PORTS_SHOWN);
    if (s->archive)
        archive_view(s->archive, &out->snapshots);
    const int n_workers =
        atomic_load(&s->health.state) == HEALTH_OPENING ? 0 : s->n_workers;
    out->threads = calloc(1 + (size_t)n_workers, sizeof(*out->threads));
    if (!out->threads)
        return TRIB_OK; /* the view is complete otherwise */
    health_view_mt(&s->health, &out->threads[out->n_threads++]);
    for (int i = 0; i < n_workers; i++) {
        struct trib_thread_view *t = &out->threads[out->n_threads++];
        snprintf(t->name, sizeof(t->name), "lane%d", i);
        worker_view_mt(s->workers[i], t);
    }
    return TRIB_OK;
}

static bool is_well(void *arg, bool ready, char *say, size_t bytes)
{
    struct server *s = arg;

    return health_ask_mt(&s->health, ready, say, bytes);
}

static trib_status_t parse_http(const struct settings *t, struct trib_tcp_root *out,
                                struct trib_error *err)
{
    struct trib_http_address address;

    if (!trib_tcp_root_parse(t->http, out))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "http: \"%s\" is not host:port, such as 127.0.0.1:4780",
                         t->http);
    return trib_http_address(out->host, (uint16_t)atoi(out->port), err, &address);
}

static trib_status_t open_http(struct server *s, struct trib_error *err)
{
    struct trib_tcp_root at;

    if (!s->settings.http[0])
        return TRIB_OK;
    const trib_status_t st = parse_http(&s->settings, &at, err);
    if (st != TRIB_OK)
        return st;
    const struct trib_http_opts opts = {.address = at.host,
                                        .port = (uint16_t)atoi(at.port),
                                        .view = view,
                                        .well = is_well,
                                        .arg = s,
                                        .log = &s->log};
    return trib_http_start(&opts, err, &s->http);
}

static trib_status_t start_workers(struct server *s, struct trib_error *err)
{
    const int n = s->settings.threads ? (int)s->settings.threads : trib_cpus_usable();
    trib_status_t st = TRIB_OK;

    assert(n > 0 && !s->workers);
    s->workers = calloc((size_t)n, sizeof(*s->workers));
    if (!s->workers)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for %d threads", n);
    for (int i = 0; i < n && st == TRIB_OK; i++) {
        st = worker_start(err, &s->workers[i]);
        s->n_workers += st == TRIB_OK;
    }
    if (st == TRIB_OK && store_turns_create((uint32_t)n, &s->turns) != TRIB_OK)
        st = trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for scheduling stores");
    return st;
}

/* Validate TRIB_* variables, which apply to all jobs of this process. */
static trib_status_t check_variables(struct trib_error *err)
{
    struct trib_config_faults *faults = calloc(1, sizeof(*faults));
    struct trib_config cfg;
    trib_status_t st = TRIB_OK;

    if (!faults)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for settings");
    trib_config_examine(&cfg, NULL, faults);
    if (!trib_settings_check(&cfg, faults)) {
        const char *sentence = faults->other;
        for (int i = 0; i < TRIB_CONFIG_ROWS && !sentence[0]; i++)
            sentence = faults->row[i];
        st = trib_fail(err, TRIB_ERR_CONFIG, "invalid TRIB_* variable: %s", sentence);
    }
    free(faults);
    return st;
}

static trib_status_t check_addresses(const struct trib_tcp_root *roots, int n,
                                     struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < n && st == TRIB_OK; i++) {
        struct addrinfo *list = NULL;
        if (strcmp(roots[i].host, "*") == 0)
            continue;
        st = resolve(&roots[i], err, &list);
        if (list)
            freeaddrinfo(list);
    }
    return st;
}

trib_status_t server_check(const struct settings *t, struct trib_error *err)
{
    struct trib_tcp_root roots[LISTENERS_MAX];
    struct trib_jobs *jobs = NULL;
    struct credentials *credentials = NULL;
    int n = 0;

    trib_status_t st = parse_addresses(t, roots, &n, err);
    if (st == TRIB_OK)
        st = check_addresses(roots, n, err);
    if (st == TRIB_OK)
        st = check_variables(err);
    if (st == TRIB_OK && t->http[0])
        st = parse_http(t, roots, err);
    if (st == TRIB_OK)
        st = create_jobs(t, err, &jobs);
    if (st == TRIB_OK)
        st = credentials_open(t, err, &credentials);
    trib_jobs_destroy(jobs);
    credentials_release(credentials);
    return st;
}

static trib_status_t open_manage(struct server *s, struct trib_error *err)
{
    const struct ctl_server_ops ops = {.act = server_control,
                                       .is_settled = server_is_settled,
                                       .arg = s,
                                       .log = &s->log};

    return s->settings.socket[0]
               ? ctl_server_open(s->settings.socket, &ops, err, &s->ctl)
               : TRIB_OK;
}

static trib_status_t open_archive(struct server *s, struct trib_error *err)
{
    const struct archive_limits limits = server_disk(&s->settings);

    return s->settings.snapshots[0]
               ? archive_open(s->settings.snapshots, &limits, &s->log, err, &s->archive)
               : TRIB_OK;
}

/* Open the descriptors and tables of the server thread. */
static trib_status_t open_waits(struct server *s, struct trib_error *err)
{
    /* All running jobs may be stores, and end in addition to those that have ended. */
    s->n_clients_max = (int)(2 * s->settings.jobs + s->settings.queue) +
                       ENDED_STORES_MAX + UNAUTHENTICATED_MAX;
    s->clients = calloc((size_t)s->n_clients_max, sizeof(struct client *));
    s->wake_fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    s->epoll_fd = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    s->spare_fd = trib_fd_keep(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!s->clients || !listener_open(s))
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for %d connections",
                         s->n_clients_max);
    if (s->wake_fd < 0 || s->epoll_fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot wait for jobs: %m");
    return request_worker_start(s->wake_fd, err, &s->request_worker);
}

trib_status_t server_open(const struct settings *settings, const struct trib_log *log,
                          struct trib_error *err, struct server **out)
{
    struct server *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    s->settings = *settings;
    s->log = *log;
    watchdog_open(&s->watchdog);
    trib_status_t st = open_waits(s, err);
    if (st == TRIB_OK)
        st = check_variables(err);
    if (st == TRIB_OK)
        st = credentials_open(&s->settings, err, &s->credentials);
    if (st == TRIB_OK)
        st = open_jobs(s, err);
    if (st == TRIB_OK)
        st = listen_everywhere(s, err);
    if (st == TRIB_OK)
        st = open_archive(s, err);
    if (st == TRIB_OK)
        st = open_http(s, err);
    if (st == TRIB_OK)
        st = open_manage(s, err);
    if (st == TRIB_OK)
        st = start_workers(s, err);
    if (st != TRIB_OK) {
        (void)server_close(s);
        return st;
    }
    *out = s;
    return TRIB_OK;
}
