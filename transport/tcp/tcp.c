/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: sockets between any hosts. One system call sends a write from its source; one
 * receives it, a large one directly at its destination.
 */
#include "transport/tcp/tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/backends.h"
#include "transport/params.h"

enum {
    POLLS_PER_CLOCK = 32,
    TICK_NS = 5000000,
    FEW = 2, /* up to this many connections are read without asking epoll */
    READY = 16,
};

static trib_status_t make_descriptors(struct tcp *tcp)
{
    struct epoll_event e = {.events = EPOLLIN};

    tcp->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    tcp->wakeup_fd = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    e.data.u64 = tcp_mark(tcp->wakeup_fd, -1);
    if (tcp->epoll < 0 || tcp->wakeup_fd < 0 ||
        epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->wakeup_fd, &e) != 0 ||
        !trib_ip_endpoint_key(&tcp->local))
        return trib_fail(tcp->err, TRIB_ERR_SYSTEM,
                         "tcp: epoll, eventfd or getrandom: %m");
    return TRIB_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Free everything without a disconnect notice. */
static void release(struct tcp *tcp)
{
    trib_tcp_helper_close(tcp);
    for (int i = 0; tcp->peers && i < tcp->size; i++) {
        if (tcp->peers[i].own != tcp->peers[i].in.fd)
            close_fd(tcp->peers[i].own);
        close_fd(tcp->peers[i].in.fd);
        free(tcp->peers[i].in.buf);
        free(tcp->peers[i].in.raw);
        trib_tcp_free_seals(&tcp->peers[i]);
        free(tcp->peers[i].queue);
        trib_peer_liveness_free(&tcp->peers[i].base.liveness);
    }
    trib_acceptor_close(&tcp->acceptor);
    close_fd(tcp->listener.fd);
    close_fd(tcp->wakeup_fd);
    close_fd(tcp->epoll);
    trib_ip_endpoint_close(&tcp->local);
    trib_table_free(&tcp->table);
    pthread_mutex_destroy(&tcp->lock);
    free(tcp->peers);
    free(tcp->inlets);
    free(tcp);
}

static struct tcp *make(const struct trib_transport_opts *opts)
{
    struct tcp *tcp = calloc(1, sizeof(*tcp));

    if (!tcp)
        return NULL;
    tcp->base.ops = &trib_tcp_ops;
    tcp->table.owner = "tcp";
    tcp->self = opts->self;
    tcp->size = opts->size;
    tcp->cfg = opts->cfg;
    tcp->log = opts->log;
    tcp->secret = opts->secret;
    tcp->err = opts->err;
    tcp->listener.fd = tcp->wakeup_fd = tcp->epoll = tcp->proofs = -1;
    pthread_mutex_init(&tcp->lock, NULL);
    tcp->stops_at = trib_now_ns();
    tcp->peers = calloc((size_t)opts->size, sizeof(*tcp->peers));
    tcp->inlets = calloc((size_t)opts->size, sizeof(*tcp->inlets));
    for (int i = 0; tcp->peers && i < opts->size; i++)
        tcp->peers[i] =
            (struct tcp_peer){.own = -1, .fd = -1, .next_fd = -1, .in = {.fd = -1}};
    if (tcp->peers && tcp->inlets)
        return tcp;
    release(tcp);
    return NULL;
}

static trib_status_t tcp_open(const struct trib_transport_opts *opts,
                              struct trib_transport **out)
{
    int64_t port = 0, ports = 1000, watch = 1, aes = 1;
    char net[TRIB_NET_TEXT_BYTES] = "";
    struct trib_net_ways ways;
    const struct trib_param params[] = {
        {.name = "port", .min = 0, .max = 65535, .value = &port},
        {.name = "ports", .min = 1, .max = 65535, .value = &ports},
        {.name = "watch", .min = 0, .max = 1, .value = &watch},
        {.name = "net", .text = net, .max = sizeof(net), .list = true},
        {.name = "aes", .min = 0, .max = 1, .value = &aes},
    };
    trib_status_t status = trib_params_parse("tcp", opts->params, params, 5, opts->err);

    if (status == TRIB_OK)
        status = trib_net_ways_init(&ways, "tcp", net, opts->met, opts->err);
    if (status == TRIB_OK && opts->cfg->seal && opts->size > 1)
        status = trib_record_check(opts->secret, opts->err);
    if (status != TRIB_OK)
        return status;
    struct tcp *tcp = make(opts);
    if (!tcp)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_ip_endpoint_init(&tcp->local, opts, "tcp", &ways, watch != 0);
    tcp->local.magic = TCP_MAGIC;
    tcp->local.version = TCP_VERSION;
    tcp->seals = opts->cfg->seal && opts->size > 1;
    tcp->aes = aes && tcp->seals && trib_record_has_aes(opts->secret);
    status = make_descriptors(tcp);
    if (status == TRIB_OK)
        status = trib_tcp_listen(tcp, (int)port, (int)ports);
    if (status == TRIB_OK)
        status = trib_ip_endpoint_start(&tcp->local, opts, (int)port, (int)ports);
    if (status == TRIB_OK && !trib_tcp_helper_open(tcp))
        status = trib_fail(tcp->err, TRIB_ERR_SYSTEM, "tcp: epoll: %m");
    if (status != TRIB_OK) {
        release(tcp);
        return status;
    }
    if (tcp->seals)
        trib_log(tcp->log, TRIB_LOG_INFO, "tcp", "rank %d encrypts its traffic with %s",
                 tcp->self,
                 tcp->aes
                     ? "AES256-GCM, or XChaCha20-Poly1305 to peers whose CPU lacks AES"
                     : "XChaCha20-Poly1305");
    *out = &tcp->base;
    return TRIB_OK;
}

/* Peers that connected but were never checked get a disconnect notice, too. */
static void tcp_close(struct trib_transport *t)
{
    struct tcp *tcp = tcp_of(t);

    if (getpid() == tcp->local.me.pid) {
        trib_tcp_accept(tcp);
        trib_tcp_progress_pending(tcp);
        trib_tcp_leave(t, NULL);
        trib_tcp_drain_pending(tcp);
    }
    release(tcp);
}

/* Read the ready connections with one system call. epoll returns them in turn. */
static int read_ready(struct tcp *tcp, struct trib_event *events, int max)
{
    struct epoll_event ready[READY];
    int found = epoll_wait(tcp->epoll, ready, READY, 0), n = 0;

    for (int i = 0; i < found && n < max; i++) {
        int peer = (int)(ready[i].data.u64 >> 32) - 1;
        if (peer >= 0 && tcp->peers[peer].in.fd >= 0)
            n += trib_tcp_receive(tcp, peer, events + n, max - n);
    }
    return n;
}

/* Return true if an inlet still has buffered frames. A pass may skip an inlet, since
 * the list changes when a peer moves to another connection. */
static bool any_buffered(const struct tcp *tcp)
{
    for (int i = 0; i < tcp->n_inlets; i++) {
        if (tcp->peers[tcp->inlets[i]].in.buffered)
            return true;
    }
    return false;
}

static int read_inlets(struct tcp *tcp, struct trib_event *events, int max)
{
    int n = 0;

    if (tcp->n_inlets > FEW && !tcp->buffered)
        return read_ready(tcp, events, max);
    for (int left = tcp->n_inlets; left > 0 && n < max && tcp->n_inlets; left--) {
        if (tcp->next_inlet >= tcp->n_inlets)
            tcp->next_inlet = 0;
        n += trib_tcp_receive(tcp, tcp->inlets[tcp->next_inlet++], events + n, max - n);
    }
    return n;
}

static int tcp_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct tcp *tcp = tcp_of(t);
    int n = trib_tcp_reap(tcp, events, max);
    bool slept = atomic_load_explicit(&tcp->slept, memory_order_relaxed);

    /* Only the owner writes the count. */
    const uint32_t polls = atomic_load_explicit(&tcp->polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&tcp->polls, polls, memory_order_relaxed);
    if (polls % POLLS_PER_CLOCK == 0 || tcp->tick_at == 0 || slept) {
        uint64_t now = trib_now_ns();
        atomic_store_explicit(&tcp->slept, false, memory_order_relaxed);
        if (now >= tcp->tick_at) {
            tcp->tick_at = now + TICK_NS;
            trib_tcp_tick(tcp);
        } else if (tcp->acceptor.n || tcp->n_inlets < tcp->size - 1) {
            trib_tcp_accept(tcp);
            trib_tcp_progress_pending(tcp);
            trib_tcp_poll_outlets(tcp, slept ? tcp->size : 1);
        }
    }
    if (n < max) {
        n += read_inlets(tcp, events + n, max - n);
        assert(n <= max);
        tcp->buffered = n == max || (tcp->buffered && any_buffered(tcp));
    }
    if (tcp->n_losing && n < max)
        n += trib_tcp_report_losses(tcp, events + n, max - n);
    return n;
}

static int tcp_event_fd(struct trib_transport *t)
{
    return tcp_of(t)->epoll;
}

static void tcp_wait(struct trib_transport *t, int timeout_us)
{
    struct tcp *tcp = tcp_of(t);
    struct epoll_event e;
    uint64_t rings;

    atomic_store_explicit(&tcp->slept, true, memory_order_relaxed);
    if (trib_wait_epoll(tcp->epoll, &e, 1, timeout_us) > 0 &&
        e.data.u64 == tcp_mark(tcp->wakeup_fd, -1) &&
        read(tcp->wakeup_fd, &rings, sizeof(rings)) < 0)
        return; /* another thread has read it */
}

static const struct trib_transport_text texts[] = {
    {"tcp", 0},
    {"tcp", TRIB_TEXT_THREADS},
    {"tcp:watch=0", TRIB_TEXT_REMOTE},
    {"tcp+trace+delay:us=100", 0},
    {"tcp", TRIB_TEXT_SEALED},
    {"tcp:aes=0", TRIB_TEXT_THREADS | TRIB_TEXT_SEALED},
    {NULL, 0},
};

static uint64_t tcp_away(struct trib_transport *t, bool maybe)
{
    return trib_heartbeat_away(tcp_of(t)->local.heartbeat, maybe);
}

const struct trib_transport_ops trib_tcp_ops = {
    .name = "tcp",
    .nets = true,
    .detail = "ranks of any hosts: sockets",
    .texts = texts,
    .devices = trib_tcp_devices,
    .open = tcp_open,
    .close = tcp_close,
    .address = trib_tcp_address,
    .reach = trib_tcp_reach,
    .pinned_limit = trib_no_pinned_limit,
    TRIB_OPS_WITHOUT_MAPS,
    .route = trib_only_route,
    .connect = trib_tcp_connect,
    .connect_many = trib_no_connect_many,
    .disconnect = trib_tcp_disconnect,
    .leave = trib_tcp_leave,
    .alloc = trib_tcp_alloc,
    .alloc_user = trib_tcp_alloc,
    .reg = trib_tcp_reg,
    .reg_dmabuf = trib_mapped_reg_dmabuf,
    .borrow = trib_tcp_borrow,
    .give_back = trib_tcp_give_back,
    .dereg = trib_tcp_dereg,
    .export_region = trib_tcp_export,
    .import_region = trib_tcp_import,
    .release = trib_table_release_op,
    .length = trib_table_length_op,
    .write = trib_tcp_write,
    .detach = trib_tcp_detach,
    .poll = tcp_poll,
    .event_fd = tcp_event_fd,
    .arm = trib_no_arm,
    .wait = tcp_wait,
    .wake = trib_tcp_wake,
    .away = tcp_away,
    .trouble = trib_no_trouble,
};
