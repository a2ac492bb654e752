/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: transport over UCP active messages, on any network that UCX supports.
 */
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/backends.h"
#include "transport/params.h"

enum {
    DEPTH = 256, /* incomplete writes per peer */
    POLLS_PER_CLOCK = 32,
    TICK_NS = 5000000,
};

struct settings {
    int64_t port, ports, watch, depth;
    struct trib_net_ways ways;
};

static trib_status_t parse(const struct trib_transport_opts *opts, struct settings *s)
{
    char net[TRIB_NET_TEXT_BYTES] = "", device[256] = "";
    const struct trib_param params[] = {
        {.name = "port", .min = 0, .max = 65535, .value = &s->port},
        {.name = "ports", .min = 1, .max = 65535, .value = &s->ports},
        {.name = "watch", .min = 0, .max = 1, .value = &s->watch},
        {.name = "depth", .min = 2, .max = 65536, .value = &s->depth},
        {.name = "net", .text = net, .max = sizeof(net), .list = true},
        {.name = "device", .text = device, .max = sizeof(device), .list = true},
    };

    *s = (struct settings){.ports = 1000, .watch = 1, .depth = DEPTH};
    trib_status_t status = trib_params_parse(
        "ucx", opts->params, params, sizeof(params) / sizeof(params[0]), opts->err);
    if (device[0] && (status == TRIB_OK || status == TRIB_INPROGRESS))
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "ucx:device=%s: UCX chooses its devices by itself; set "
                         "UCX_NET_DEVICES=%s",
                         device, device);
    return status == TRIB_OK
               ? trib_net_ways_init(&s->ways, "ucx", net, opts->met, opts->err)
               : status;
}

static struct ucx *make(const struct trib_transport_opts *opts,
                        const struct settings *s)
{
    struct ucx *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->base.ops = &trib_ucx_ops;
    u->table.owner = "ucx";
    u->self = opts->self;
    u->size = opts->size;
    u->cfg = opts->cfg;
    u->log = opts->log;
    u->secret = opts->secret;
    u->idle = opts->idle;
    u->err = opts->err;
    trib_ip_endpoint_init(&u->local, opts, "ucx", &s->ways, s->watch != 0);
    u->local.magic = UCX_MAGIC;
    u->local.version = UCX_VERSION;
    for (u->depth = 2; u->depth < (uint32_t)s->depth;)
        u->depth *= 2;
    u->listener.fd = u->wakeup_fd = u->stop = u->epoll = u->manager_epoll = -1;
    u->settings = trib_config_digest(opts->cfg);
    u->stops_at = trib_now_ns();
    pthread_mutex_init(&u->lock, NULL);
    pthread_mutex_init(&u->links, NULL);
    u->peers = calloc((size_t)opts->size, sizeof(*u->peers));
    for (int i = 0; u->peers && i < opts->size; i++)
        u->peers[i].out = u->peers[i].in = -1;
    return u;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Free everything that UCX does not own. A forked child may only do this. */
static void release(struct ucx *u)
{
    for (int i = 0; u->peers && i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        close_fd(p->out);
        close_fd(p->in);
        trib_peer_liveness_free(&p->base.liveness);
        free(p->send_reqs);
        free(p->inbox);
    }
    while (u->fetches) {
        struct ucx_fetch *f = u->fetches;
        u->fetches = f->next;
        free(f);
    }
    trib_acceptor_close(&u->acceptor);
    close_fd(u->listener.fd);
    close_fd(u->wakeup_fd);
    close_fd(u->stop);
    close_fd(u->epoll);
    close_fd(u->manager_epoll);
    trib_ip_endpoint_close(&u->local);
    trib_table_free(&u->table);
    free(u->peers);
    free(u);
}

/* Tear down without DISCONNECT messages. */
static void take_down(struct ucx *u)
{
    trib_ucx_helper_close(u);
    trib_ucx_manager_stop(u);
    trib_ucx_worker_free(u);
    pthread_mutex_destroy(&u->lock);
    pthread_mutex_destroy(&u->links);
    release(u);
}

static trib_status_t make_descriptors(struct ucx *u)
{
    struct epoll_event e = {.events = EPOLLIN};

    u->wakeup_fd = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    u->stop = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    u->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    u->manager_epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    e.data.fd = u->wakeup_fd;
    if (u->wakeup_fd < 0 || u->stop < 0 || u->epoll < 0 || u->manager_epoll < 0 ||
        epoll_ctl(u->epoll, EPOLL_CTL_ADD, u->wakeup_fd, &e) != 0 ||
        !trib_ip_endpoint_key(&u->local))
        return trib_fail(u->err, TRIB_ERR_SYSTEM,
                         "ucx: eventfd, epoll or getrandom: %m");
    return TRIB_OK;
}

static trib_status_t ucx_open(const struct trib_transport_opts *opts,
                              struct trib_transport **out)
{
    struct settings s;
    trib_status_t status = parse(opts, &s);

    if (status != TRIB_OK)
        return status;
    struct ucx *u = make(opts, &s);
    if (!u || !u->peers) {
        if (u)
            take_down(u);
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    status = make_descriptors(u);
    if (status == TRIB_OK)
        status = trib_ucx_worker_make(u);
    if (status == TRIB_OK)
        status = trib_ucx_listen(u, (int)s.port, (int)s.ports);
    if (status == TRIB_OK)
        status = trib_ip_endpoint_start(&u->local, opts, (int)s.port, (int)s.ports);
    if (status == TRIB_OK)
        status = trib_ucx_manager_start(u);
    if (status != TRIB_OK) {
        take_down(u);
        return status;
    }
    trib_ucx_helper_open(u);
    *out = &u->base;
    return TRIB_OK;
}

/* In a forked child, UCX's objects belong to the parent and are left alone. */
static void ucx_close(struct trib_transport *t)
{
    struct ucx *u = ucx_of(t);

    if (getpid() != u->local.me.pid) {
        release(u);
        return;
    }
    trib_ucx_leave(&u->base, NULL);
    take_down(u);
}

static int ucx_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct ucx *u = ucx_of(t);

    if (atomic_load_explicit(&u->lock_waiters, memory_order_relaxed))
        sched_yield();
    pthread_mutex_lock(&u->lock);
    int n = trib_ucx_reap(u, events, max);
    n += trib_ucx_deliver(u, events + n, max - n);
    if (n < max) {
        (void)trib_ucx_progress(u);
        n += trib_ucx_reap(u, events + n, max - n);
        n += trib_ucx_deliver(u, events + n, max - n);
    }
    if (atomic_load_explicit(&u->async_events, memory_order_acquire))
        trib_ucx_handle_async_events(u);
    pthread_mutex_unlock(&u->lock);

    /* Only the owner writes `polls`. */
    const uint32_t polls = atomic_load_explicit(&u->polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&u->polls, polls, memory_order_relaxed);
    if (polls % POLLS_PER_CLOCK == 0 || u->tick_at == 0 ||
        atomic_load_explicit(&u->slept, memory_order_relaxed)) {
        uint64_t now = trib_now_ns();
        atomic_store_explicit(&u->slept, false, memory_order_relaxed);
        if (now >= u->tick_at) {
            u->tick_at = now + TICK_NS;
            trib_ucx_tick(u);
        }
    }
    if (u->n_losing && n < max)
        n += trib_ucx_report_losses(u, events + n, max - n);
    return n;
}

static int ucx_event_fd(struct trib_transport *t)
{
    return ucx_of(t)->epoll;
}

/* UCX refuses to arm while events are pending; skip the sleep then. */
static void ucx_arm(struct trib_transport *t)
{
    struct ucx *u = ucx_of(t);

    pthread_mutex_lock(&u->lock);
    bool busy = u->api.ucp_worker_arm(u->worker) != UCS_OK;
    pthread_mutex_unlock(&u->lock);
    if (busy)
        trib_ucx_signal_owner(u);
}

static void ucx_wait(struct trib_transport *t, int timeout_us)
{
    struct ucx *u = ucx_of(t);
    struct epoll_event e[2];
    uint64_t rings;

    atomic_store_explicit(&u->slept, true, memory_order_relaxed);
    int n = trib_wait_epoll(u->epoll, e, 2, timeout_us);
    for (int i = 0; i < n; i++) {
        if (e[i].data.fd == u->wakeup_fd &&
            read(u->wakeup_fd, &rings, sizeof(rings)) < 0)
            return; /* another thread has read it */
    }
}

static const struct trib_transport_text texts[] = {
    {"ucx", 0},
    {"ucx:depth=8", TRIB_TEXT_THREADS},
    {"ucx:watch=0", TRIB_TEXT_REMOTE},
    {"ucx+trace+delay:us=100", 0},
    {NULL, 0},
};

static uint64_t ucx_away(struct trib_transport *t, bool maybe)
{
    return trib_heartbeat_away(ucx_of(t)->local.heartbeat, maybe);
}

const struct trib_transport_ops trib_ucx_ops = {
    .name = "ucx",
    .nets = true,
    .detail = "ranks on any hosts, over any network that UCX supports",
    .texts = texts,
    .devices = trib_ucx_devices,
    .bare = true,
    .open = ucx_open,
    .close = ucx_close,
    .address = trib_ucx_address,
    .reach = trib_ucx_reach,
    .pinned_limit = trib_no_pinned_limit,
    TRIB_OPS_WITHOUT_MAPS,
    .route = trib_only_route,
    .connect = trib_ucx_connect,
    .connect_many = trib_no_connect_many,
    .disconnect = trib_ucx_disconnect,
    .leave = trib_ucx_leave,
    .alloc = trib_ucx_alloc,
    .alloc_user = trib_ucx_alloc,
    .reg = trib_ucx_reg,
    .reg_dmabuf = trib_mapped_reg_dmabuf,
    .dereg = trib_ucx_dereg,
    .export_region = trib_ucx_export,
    .import_region = trib_ucx_import,
    .release = trib_table_release_op,
    .length = trib_table_length_op,
    .write = trib_ucx_write,
    .detach = trib_no_detach,
    .poll = ucx_poll,
    .event_fd = ucx_event_fd,
    .arm = ucx_arm,
    .wait = ucx_wait,
    .wake = trib_ucx_wake,
    .away = ucx_away,
    .trouble = trib_no_trouble,
};
