/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the parameters, and opening and closing a transport on one device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cache_counts.h"
#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/time.h"
#include "transport/params.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_iova.h"
#include "transport/verbs/verbs_select.h"

enum {
    DEPTH_MAX = 4096,
    REACH_MS = 15000,
    RAILS = 4, /* more only if asked for: each costs queue pairs and locked memory */
    RECEIVES_MIN = 4096,
    RECEIVES_MAX = 32768,
    MESSAGES_OTHER = 8, /* of one peer, besides frames: credits, notices, adverts */
    INLINE_BYTES = 256, /* requested; up to this size writes are posted inline */
    TABLE_MIN = 64,
    CACHE_MAX = 1 << 30, /* MiB */
};

static trib_status_t parse_connect(const char *text, enum verbs_connect *out,
                                   struct trib_error *err)
{
    static const char *const names[] = {
        [VERBS_BY_BEST] = "auto", [VERBS_BY_RDMACM] = "rdmacm", [VERBS_BY_GID] = "gid"};

    for (int i = 0; i <= VERBS_BY_GID; i++) {
        *out = (enum verbs_connect)i;
        if (strcmp(text, names[i]) == 0)
            return TRIB_OK;
    }
    return trib_fail(err, TRIB_ERR_CONFIG,
                     "verbs: connect=%s must be auto, rdmacm or gid", text);
}

/* librdmacm chooses GIDs by itself. */
static trib_status_t select_gids(struct verbs_params *s, struct trib_error *err)
{
    if (s->connect == VERBS_BY_RDMACM)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "verbs: gid= and roce= do not go with connect=rdmacm, because "
                         "librdmacm chooses the GIDs");
    s->connect = VERBS_BY_GID;
    return TRIB_OK;
}

trib_status_t trib_verbs_parse(const struct trib_transport_opts *opts,
                               struct verbs_params *s)
{
    char connect[16] = "auto", net[TRIB_NET_TEXT_BYTES] = "";
    char device[VERBS_LIST_TEXT] = "";
    const struct trib_param params[] = {
        {.name = "port", .min = 0, .max = 65535, .value = &s->port},
        {.name = "ports", .min = 1, .max = 65535, .value = &s->ports},
        {.name = "depth", .min = 16, .max = DEPTH_MAX, .value = &s->depth},
        {.name = "receives", .min = 64, .max = 65536, .value = &s->receives},
        {.name = "reach_ms", .min = 100, .max = 600000, .value = &s->reach_ms},
        {.name = "watch", .min = 0, .max = 1, .value = &s->watch},
        {.name = "device", .text = device, .max = sizeof(device), .list = true},
        {.name = "gid", .min = 0, .max = UINT8_MAX, .value = &s->gid},
        {.name = "roce", .min = 1, .max = 2, .value = &s->roce},
        {.name = "rails", .min = 1, .max = MULTIRAIL_MAX, .value = &s->rails},
        {.name = "qps", .min = 1, .max = MULTIRAIL_MAX, .value = &s->qps},
        {.name = "connect", .text = connect, .max = sizeof(connect)},
        {.name = "reconnect", .max = 1, .value = &s->reconnect},
        {.name = "relaxed_ordering", .max = 1, .value = &s->relaxed_ordering},
        {.name = "cache", .max = CACHE_MAX, .value = &s->cache},
        {.name = "net", .text = net, .max = sizeof(net), .list = true},
        {.name = "all_devices", .max = 1, .value = &s->all_devices},
        {.name = "traffic_class", .max = 255, .value = &s->traffic.traffic_class},
        {.name = "sl", .max = 15, .value = &s->traffic.sl},
        {.name = "pkey", .min = 1, .max = 0xffff, .value = &s->traffic.pkey},
        {.name = "hop_limit", .min = 1, .max = 255, .value = &s->traffic.hop_limit},
        {.name = "ack_timeout", .min = 1, .max = 22, .value = &s->traffic.ack_timeout},
        {.name = "retry_count", .min = 1, .max = 7, .value = &s->traffic.retry_count},
        {.name = "rnr_retry", .min = 1, .max = 7, .value = &s->traffic.rnr_retry},
    };

    *s = (struct verbs_params){.ports = 1000,
                               .depth = 128,
                               .rails = RAILS,
                               .qps = 1,
                               .reach_ms = REACH_MS,
                               .gid = -1,
                               .watch = 1,
                               .relaxed_ordering = 1,
                               .reconnect = 1,
                               .traffic = {-1, -1, -1, -1, -1, -1, -1}};
    trib_status_t status = trib_params_parse(
        "verbs", opts->params, params, sizeof(params) / sizeof(params[0]), opts->err);
    if (s->port && s->port + s->ports > 65536)
        s->ports = 65536 - s->port;
    if (status == TRIB_OK || status == TRIB_INPROGRESS) {
        trib_status_t list = trib_verbs_read_list(device, &s->list, opts->err);
        status = list == TRIB_OK ? status : list;
    }
    if (status == TRIB_OK)
        status = parse_connect(connect, &s->connect, opts->err);
    if (status == TRIB_OK && (s->gid >= 0 || s->roce))
        status = select_gids(s, opts->err);
    return status == TRIB_OK
               ? trib_net_ways_init(&s->ways, "verbs", net, opts->met, opts->err)
               : status;
}

static uint32_t power_of_two(uint32_t least, uint32_t n)
{
    assert(least > 0 && (least & (least - 1)) == 0);
    while (least < n)
        least *= 2;
    return least;
}

/* Return the number of receives with which all peers may fill their windows while this
 * rank does not poll. A peer that finds none waits 0.32 ms before it tries again. */
static uint32_t receives_for(int size, int window)
{
    const uint64_t n = (uint64_t)(size - 1) * (2 * (uint64_t)window + MESSAGES_OTHER);

    return n < RECEIVES_MIN   ? RECEIVES_MIN
           : n > RECEIVES_MAX ? RECEIVES_MAX
                              : (uint32_t)n;
}

static trib_status_t load(struct verbs *v)
{
    char why[200];

    if (!trib_verbs_present()) /* without devices, skip loading the libraries */
        return trib_verbs_no_device(v);
    if (!trib_verbs_load(&v->api, why, sizeof(why)))
        return trib_fail(
            v->err, TRIB_ERR_UNSUPPORTED,
            "verbs: %s; install rdma-core's libraries (Debian: libibverbs1, "
            "librdmacm1, ibverbs-providers)",
            why);
    /* Registered pages must stay valid after a fork. New kernels guarantee that. With
     * older ones, libibverbs withholds them from children, which need the program's
     * memory: it is not registered then. */
    const enum ibv_fork_status forks = v->api.ibv_is_fork_initialized
                                           ? v->api.ibv_is_fork_initialized()
                                           : IBV_FORK_DISABLED;
    if (forks != IBV_FORK_UNNEEDED)
        v->cache_bytes = 0;
    if (v->cache_bytes)
        trib_cache_count_set(&trib_cache_counts.limit, v->cache_bytes);
    if (forks == IBV_FORK_DISABLED) {
        errno = v->api.ibv_fork_init();
        if (errno)
            trib_log(v->log, TRIB_LOG_INFO, "verbs",
                     "ibv_fork_init was called too late: %m; this process should not "
                     "fork");
    }
    return TRIB_OK;
}

static struct verbs *make(const struct trib_transport_opts *opts,
                          const struct verbs_params *s)
{
    struct verbs *v = calloc(1, sizeof(*v));
    uint32_t slots = power_of_two(TABLE_MIN, 4 * (uint32_t)opts->size);

    if (!v)
        return NULL;
    v->base.ops = s->ops;
    v->self = opts->self;
    v->size = opts->size;
    v->cfg = opts->cfg;
    v->log = opts->log;
    v->secret = opts->secret;
    v->idle = trib_idle_gate_init(&v->gate, opts->idle);
    v->err = opts->err;
    v->trust.guard = opts->guard;
    if (opts->secret)
        trib_secret_mark(opts->secret, v->trust.secret);
    v->depth = power_of_two(16, (uint32_t)s->depth);
    v->receives = s->receives ? (uint32_t)s->receives
                              : receives_for(opts->size, opts->cfg->window);
    atomic_init(&v->inline_bytes, INLINE_BYTES);
    v->reach_ms = (int)s->reach_ms;
    trib_ip_endpoint_init(&v->local, opts, "verbs", &s->ways, s->watch != 0);
    v->local.ways.idle = v->idle;
    v->wakeup_fd = v->stop = v->epoll = v->oob.at.fd = v->oob.epoll = -1;
    v->relaxed = s->relaxed_ordering ? VERBS_RELAXED_ORDERING : 0;
    v->cache_bytes = (size_t)s->cache << 20;
    v->connect = s->connect;
    v->reconnects = s->reconnect != 0;
    v->traffic = s->traffic;
    trib_verbs_set_choice(v, s);
    v->settings = trib_config_digest(opts->cfg);
    v->stops_at = trib_now_ns();
    pthread_mutex_init(&v->links, NULL);
    v->peers = calloc((size_t)opts->size, sizeof(*v->peers));
    trib_verbs_list_init(v);
    v->asking = calloc((size_t)opts->size, sizeof(*v->asking));
    v->routes = calloc(slots, sizeof(*v->routes));
    v->routes_mask = slots - 1;
    return v;
}

static void release(struct verbs *v)
{
    trib_verbs_oob_listener_close(v);
    for (int i = 0; v->peers && i < v->size; i++) {
        free(v->peers[i].asked);
        free(v->peers[i].outcome);
        trib_peer_liveness_free(&v->peers[i].base.liveness);
        if (v->peers[i].in.by_oob)
            close(v->peers[i].in.oob_fd);
        if (v->peers[i].out.by_oob)
            close(v->peers[i].out.oob_fd);
    }
    trib_ip_endpoint_close(&v->local);
    if (v->wakeup_fd >= 0)
        close(v->wakeup_fd);
    if (v->stop >= 0)
        close(v->stop);
    if (v->epoll >= 0)
        close(v->epoll);
    pthread_mutex_destroy(&v->links);
    free(v->deferred_cqes);
    free(v->owing);
    free(v->asking);
    free((void *)v->routes);
    free(v->peers);
    free(v->challenges);
    free(v);
}

/* Tear down without DISCONNECT messages. */
static void take_down(struct verbs *v)
{
    trib_verbs_manager_stop(v);
    trib_verbs_events_stop(v);
    trib_verbs_free_memory(v, true);
    trib_verbs_free_queues(v);
    release(v);
}

static trib_status_t make_descriptors(struct verbs *v)
{
    struct epoll_event rung = {.events = EPOLLIN};

    v->wakeup_fd = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    v->stop = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    v->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    rung.data.fd = v->wakeup_fd;
    if (v->wakeup_fd < 0 || v->stop < 0 || v->epoll < 0 ||
        epoll_ctl(v->epoll, EPOLL_CTL_ADD, v->wakeup_fd, &rung) != 0 ||
        !trib_ip_endpoint_key(&v->local))
        return trib_fail(v->err, TRIB_ERR_SYSTEM,
                         "verbs: eventfd, epoll or getrandom: %m");
    return TRIB_OK;
}

/* Return true if OOB connections are possible. They are also used next to librdmacm,
 * because a peer may lack it. */
static bool may_use_oob(struct verbs *v)
{
    struct verbs_gid_table table;

    return v->connect != VERBS_BY_RDMACM &&
           trib_verbs_gid_table_read(v, v->context, v->port_num, &table) == 0 &&
           (table.n > 0 || table.lid);
}

/* Add advice to the error message, which names the device and the missing feature. */
static void advise_unfit(struct verbs *v, trib_status_t status)
{
    char text[400];

    snprintf(text, sizeof(text), "%s", v->err ? trib_error_text(v->err) : "");
    trib_error_clear(v->err);
    (void)trib_fail(v->err, status, "%s; use another device or TRIB_TRANSPORT=auto",
                    text);
}

trib_status_t trib_verbs_open_one(const struct trib_transport_opts *opts,
                                  const struct verbs_params *s,
                                  const struct verbs_port *at,
                                  struct trib_transport **out)
{
    trib_status_t status;
    struct verbs *v = make(opts, s);

    assert(s->ops && opts->self >= 0 && opts->self < opts->size);
    if (!v || !v->peers || !v->routes || !v->asking) {
        if (v)
            release(v);
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    v->path = at->path;
    v->n_paths = at->n_paths;
    trib_fd_guard(); /* libibverbs must not get descriptors 0 to 2 */
    status = make_descriptors(v);
    if (at->key)
        v->local.key = at->key;
    if (status == TRIB_OK)
        status = load(v);
    if (status == TRIB_OK)
        status = trib_verbs_choose(v, at);
    if (status == TRIB_OK)
        status = trib_verbs_traffic_choose(v);
    if (status == TRIB_OK)
        status = trib_verbs_make_queues(v);
    if (status == TRIB_OK)
        status = trib_verbs_listen(v, (int)s->port, (int)s->ports);
    if (status == TRIB_OK && *v->no_rdmacm)
        trib_log(v->log, TRIB_LOG_INFO, "verbs", "connections on %s use GIDs: %s",
                 v->label, v->no_rdmacm);
    if (status == TRIB_OK && may_use_oob(v))
        status = trib_verbs_oob_listener_open(v, (int)s->port, (int)s->ports);
    if (status == TRIB_OK)
        /* Use the port range of librdmacm, though these are other ports, so that a
         * firewall needs only one range. */
        status = trib_ip_endpoint_start(&v->local, opts, (int)s->port, (int)s->ports);
    if (status == TRIB_OK)
        status = trib_verbs_manager_start(v);
    if (status == TRIB_OK)
        status = trib_verbs_events_start(v);
    if (status != TRIB_OK) {
        if (v->unfit && !opts->unfit_out)
            advise_unfit(v, status);
        if (opts->unfit_out) /* a named device may have failed: its host warns, too */
            *opts->unfit_out = trib_verbs_present() || (s->list.n && !s->list.except);
        take_down(v);
        return status;
    }
    *out = &v->base;
    return TRIB_OK;
}

/* A forked child shares the device's files: objects that it destroyed would also be
 * gone for its parent. */
void trib_verbs_close(struct trib_transport *t)
{
    struct verbs *v = verbs_of(t);
    char text[240];

    if (!verbs_is_ours(v)) {
        trib_verbs_free_memory(v, false);
        trib_verbs_adapter_close(v->adapter);
        release(v);
        return;
    }
    trib_verbs_leave(&v->base, NULL);
    trib_verbs_trouble(v, text, sizeof(text));
    if (text[0])
        trib_log(v->log, TRIB_LOG_INFO, "verbs",
                 "counters of all programs since the start: %s", text);
    take_down(v);
}
