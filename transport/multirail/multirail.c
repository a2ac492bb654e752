/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: combines several devices of one rank. See multirail_send.c and
 * multirail_reorder.c for spreading the writes, multirail_failover.c for the loss of a
 * rail.
 */
#include "transport/multirail/multirail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/config.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/backends.h"
#include "transport/params.h"

enum {
    SLICE_US = 250, /* length of a sleep on one inner while others may have events */
    LEAVE_MS = 1000, /* for repeated writes to be posted */
    SILENT_MS = 4000, /* limit for a silent rail if stop_timeout_ms is 0 */
};

/* Return true if the peer has said over each remaining rail that it considers this rank
 * lost. */
static bool is_given_up(const struct multirail_peer *p)
{
    const unsigned all = multirail_all(p);

    return (p->given_up & ~(unsigned)p->dead & all) != 0 &&
           ((p->given_up | p->dead) & all) == all;
}

/* Report the loss of a peer after all its events. */
static int report_loss(struct multirail *r, int peer, struct trib_event *event)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(p->state == TRIB_PEER_DRAINING);
    *event = (struct trib_event){
        .kind = TRIB_EVENT_PEER_LOST,
        .peer = peer,
        .left = (p->left & ~(unsigned)(p->dead | p->failing)) != 0,
        .given_up = is_given_up(p),
        .dead = p->process_ended,
        .lives = p->process_runs && !p->process_ended,
        .continues = p->continues,
    };
    memcpy(event->why, p->why, sizeof(event->why));
    if (!event->left)
        trib_multirail_drop_peer(r, peer);
    trib_multirail_leave_rails(r, peer, TRIB_PEER_LOST);
    return 1;
}

/* Deliver the events that are ready. A peer without further work is removed from the
 * list. */
static int report(struct multirail *r, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < r->n_list;) {
        int peer = r->list[i];
        struct multirail_peer *p = &r->peers[peer];
        if (p->trouble)
            trib_multirail_recover(r, peer);
        n += trib_multirail_deliver(p, peer, events + n, max - n);
        if (p->log)
            n += trib_multirail_reap(r, peer, events + n, max - n);
        if (p->state == TRIB_PEER_DRAINING && n < max)
            n += report_loss(r, peer, events + n);
        if (n == max || p->trouble) {
            i++;
            continue;
        }
        p->listed = false;
        r->list[i] = r->list[--r->n_list];
    }
    return n;
}

static int multirail_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct multirail *r = multirail_of(t);
    int n = r->n_list ? report(r, events, max) : 0;
    bool pulled = n < max;

    while (n < max && trib_multirail_pull(r))
        n += report(r, events + n, max - n);
    if (pulled && (r->n > 1 || r->revive) && r->confirms)
        trib_multirail_check_timeouts(r);
    for (int i = 0; i < r->n; i++)
        trib_error_clear(&r->inner_err[i]);
    return n;
}

/* Continue recovery for a while: a peer that waits for an answer must get it before
 * this rank disconnects. */
static void progress_recovery(struct multirail *r, int first, int last,
                              const bool *which)
{
    uint64_t until = trib_deadline_ms(LEAVE_MS);
    bool busy = true;

    assert(first >= 0 && last < r->size);
    while (busy && !trib_deadline_passed(until)) {
        busy = false;
        (void)trib_multirail_pull(r);
        for (int i = first; i <= last; i++) {
            struct multirail_peer *p = &r->peers[i];
            if ((which && !which[i]) || p->state != TRIB_PEER_CONNECTED || !p->trouble)
                continue;
            trib_multirail_recover(r, i);
            /* Nothing is sent to a peer without rails, and none returns here. */
            busy |= p->state == TRIB_PEER_CONNECTED && p->trouble && !p->left &&
                    p->dead != multirail_all(p);
        }
        if (busy)
            usleep(100);
    }
}

static void multirail_disconnect(struct trib_transport *t, int peer)
{
    struct multirail *r = multirail_of(t);

    if (peer < 0 || peer >= r->size || r->peers[peer].state == TRIB_PEER_LEFT)
        return;
    progress_recovery(r, peer, peer, NULL);
    trib_multirail_leave_rails(r, peer, TRIB_PEER_LEFT);
}

static void multirail_leave(struct trib_transport *t, const bool *which)
{
    struct multirail *r = multirail_of(t);

    progress_recovery(r, 0, r->size - 1, which);
    for (int k = 0; k < r->n; k++)
        r->inner[k]->ops->leave(r->inner[k], which);
    for (int i = 0; i < r->size; i++)
        if ((!which || which[i]) && r->peers[i].state != TRIB_PEER_LEFT)
            trib_multirail_leave_rails(r, i, TRIB_PEER_LEFT); /* its rails are
                                                               * disconnected already */
}

/* Rail 0 is closed last: it has allocated the memory that the others registered. */
static void free_all(struct multirail *r)
{
    for (int i = r->n - 1; i >= 0; i--)
        r->inner[i]->ops->close(r->inner[i]);
    trib_multirail_free_memory(r);
    for (int i = 0; r->peers && i < r->size; i++) {
        trib_multirail_free_fifos(&r->peers[i]);
        free(r->peers[i].log);
    }
    if (r->epoll >= 0)
        close(r->epoll);
    free(r->peers);
    free(r->list);
    free(r);
}

/* A forked child sends nothing: the connections belong to its parent. */
static void multirail_close(struct trib_transport *t)
{
    struct multirail *r = multirail_of(t);

    if (getpid() == r->pid)
        progress_recovery(r, 0, r->size - 1, NULL);
    free_all(r);
}

static trib_status_t make_board(struct multirail *r)
{
    struct trib_region *region;
    void *boards;
    trib_status_t status = trib_multirail_alloc(
        &r->base, multirail_region_bytes(r->size), &boards, &region);

    if (status != TRIB_OK)
        return status;
    r->boards = (struct multirail_board *)((uint8_t *)boards + MULTIRAIL_BOARDS_AT);
    r->board = (struct multirail_region *)region;
    return TRIB_OK;
}

static trib_status_t open_inners(struct multirail *r,
                                 const struct trib_transport_opts *opts,
                                 const struct multirail_plan *plan)
{
    struct trib_transport_opts part = *opts;

    if (plan->n > 1) /* each rail has its own heartbeats, over its network */
        part.heartbeat = NULL;
    r->idle = opts->idle;
    part.idle = trib_idle_gate_init(&r->gate, opts->idle);
    for (int i = 0; i < plan->n; i++) {
        struct trib_transport **at = &r->inner[r->n];
        part.err = &r->inner_err[r->n];
        trib_status_t status = plan->open(plan->arg, i, &part, at);
        if (status == TRIB_OK) {
            memcpy(r->label[r->n], plan->label[i], sizeof(r->label[0]));
            (*at)->err = part.err;
            r->speed[r->n] = plan->speed[i];
            r->net[r->n++] = plan->net[i];
            continue;
        }
        *at = NULL;
        if (!plan->skips || (i + 1 == plan->n && r->n == 0))
            return trib_multirail_take_error(r, r->n, status);
        trib_log(r->log, TRIB_LOG_DEBUG, MULTIRAIL_NAME, "%s is not used: %s",
                 plan->label[i], trib_error_text(part.err));
        trib_error_clear(part.err);
    }
    return TRIB_OK;
}

trib_status_t trib_multirail_make(const struct trib_transport_opts *opts,
                                  const struct multirail_plan *plan,
                                  struct trib_transport **out)
{
    struct multirail *r = calloc(1, sizeof(*r));
    trib_status_t status = TRIB_OK;

    assert(plan->n >= 1 && plan->n <= MULTIRAIL_MAX);
    if (!r)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    r->base.ops = &trib_multirail_ops;
    r->event_fd = r->epoll = -1;
    r->self = opts->self;
    r->size = opts->size;
    r->confirms = plan->confirms;
    r->name = plan->name;
    r->same_net = plan->same_net;
    r->revive = plan->revive;
    r->sever = plan->sever;
    r->bar = plan->bar;
    r->shorten = plan->shorten;
    r->reach_ms = plan->reach_ms;
    r->log = opts->log;
    r->err = opts->err;
    r->pid = getpid();
    r->timeout_ns = trib_limit_ns(
        opts->cfg->stop_timeout_ms ? opts->cfg->stop_timeout_ms : SILENT_MS);
    r->peers = calloc((size_t)opts->size, sizeof(*r->peers));
    r->list = calloc((size_t)opts->size, sizeof(*r->list));
    if (!r->peers || !r->list)
        status = trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (int i = 0; r->peers && i < r->size; i++) {
        atomic_init(&r->peers[i].waker, -1);
        for (int k = 0; k < MULTIRAIL_MAX; k++)
            r->peers[i].rails[k].inner = r->peers[i].rails[k].other = -1;
    }
    if (status == TRIB_OK)
        status = open_inners(r, opts, plan);
    if (status == TRIB_OK)
        status = make_board(r);
    if (status != TRIB_OK) {
        free_all(r);
        return status;
    }
    *out = &r->base;
    return TRIB_OK;
}

/* The backends that can be opened several times in one process, for
 * "rails:over=NAME". */
static const struct {
    const struct trib_transport_ops *ops;
    bool confirms;
} kinds[] = {
    {&trib_tcp_ops, false},
    {&trib_loop_ops, true},
};

static trib_status_t open_kind(void *arg, int rail,
                               const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    const struct trib_transport_ops *ops = arg;
    struct trib_transport_opts part = *opts;

    (void)rail;
    part.params = "";
    return ops->open(&part, out);
}

static trib_status_t multirail_open(const struct trib_transport_opts *opts,
                                    struct trib_transport **out)
{
    char over[16] = "tcp";
    int64_t n = 2;
    const struct trib_param params[] = {
        {.name = "n", .min = 2, .max = MULTIRAIL_MAX, .value = &n},
        {.name = "over", .max = sizeof(over), .text = over},
    };
    trib_status_t status =
        trib_params_parse(MULTIRAIL_NAME, opts->params, params,
                          sizeof(params) / sizeof(params[0]), opts->err);

    if (status != TRIB_OK)
        return status;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct multirail_plan plan = {
            .name = over,
            .n = (int)n,
            .confirms = kinds[i].confirms,
            .open = open_kind,
            .arg = (void *)(uintptr_t)kinds[i].ops,
        };
        if (strcmp(over, kinds[i].ops->name) != 0)
            continue;
        plan.name = kinds[i].ops->name;
        for (int k = 0; k < plan.n; k++)
            snprintf(plan.label[k], sizeof(plan.label[k]), "%d", k);
        return trib_multirail_make(opts, &plan, out);
    }
    return trib_fail(
        opts->err, TRIB_ERR_CONFIG,
        "rails:over=%s: must be tcp or loop; verbs makes its own rails, one per port",
        over);
}

/* Return the speed of all rails of a peer, or of this end before there are any; 0: that
 * of one is unknown. */
static uint32_t speed_to(const struct multirail *r, const struct multirail_peer *p)
{
    const int n = p->n ? p->n : r->n;
    uint32_t mbps = 0;

    for (int k = 0; k < n; k++) {
        const int inner = p->n ? p->rails[k].inner : k;
        if (inner < 0 || !r->speed[inner])
            return 0;
        mbps += r->speed[inner];
    }
    return mbps;
}

static void multirail_route(struct trib_transport *t, int peer, struct trib_route *out)
{
    const struct multirail *r = multirail_of(t);
    const struct multirail_peer *p = &r->peers[peer];
    size_t n = 0;

    assert(peer >= 0 && peer < r->size);
    if (r->n == 1) {
        r->inner[0]->ops->route(r->inner[0], peer, out);
        return;
    }
    out->name = r->name;
    out->mbps = speed_to(r, p);
    if (!p->n) {
        snprintf(out->why, sizeof(out->why), "%d rail%s at this end", r->n,
                 r->n == 1 ? "" : "s");
        return;
    }
    n = (size_t)snprintf(out->why, sizeof(out->why), "%d rail%s:", p->n,
                         p->n == 1 ? "" : "s");
    for (int k = 0; k < p->n && n < sizeof(out->why); k++)
        n += (size_t)snprintf(out->why + n, sizeof(out->why) - n, " %s%s",
                              p->rails[k].inner < 0 ? "?" : r->label[p->rails[k].inner],
                              p->dead >> k & 1 ? " (lost)" : "");
}

/* Return a descriptor for the events of all inners, or -1. */
static int join_descriptors(struct multirail *r)
{
    if (r->n == 1)
        return r->inner[0]->ops->event_fd(r->inner[0]);
    r->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    for (int i = 0; i < r->n && r->epoll >= 0; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        const int fd = r->inner[i]->ops->event_fd(r->inner[i]);
        if (fd < 0 || epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            return -1;
    }
    return r->epoll;
}

/* If each inner has a descriptor, one sleep serves all. */
static int multirail_event_fd(struct trib_transport *t)
{
    struct multirail *r = multirail_of(t);

    if (!r->asked)
        r->event_fd = join_descriptors(r);
    r->asked = true;
    return r->event_fd;
}

static void multirail_arm(struct trib_transport *t)
{
    struct multirail *r = multirail_of(t);

    (void)multirail_event_fd(t);
    for (int i = 0; i < r->n; i++)
        r->inner[i]->ops->arm(r->inner[i]);
}

/* Without descriptors the inners sleep in turn, and then the caller polls again. */
static void multirail_wait(struct trib_transport *t, int timeout_us)
{
    struct multirail *r = multirail_of(t);
    const struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    struct pollfd any = {.fd = r->event_fd, .events = POLLIN};
    int each = 0;

    atomic_store_explicit(&r->slept, true, memory_order_relaxed);
    if (r->n == 1) {
        each = timeout_us;
    } else if (r->event_fd >= 0 && timeout_us > 0) {
        /* After a failed ppoll, wait on the inners in turn. */
        if (ppoll(&any, 1, &ts, NULL) < 0 && errno != EINTR)
            each = SLICE_US;
    } else if (timeout_us > 0) {
        each = timeout_us / r->n < SLICE_US ? timeout_us / r->n : SLICE_US;
    }
    for (int i = 0; i < r->n; i++)
        r->inner[i]->ops->wait(r->inner[i], each);
}

static void multirail_wake(struct trib_transport *t, int peer)
{
    struct multirail *r = multirail_of(t);

    assert(peer >= 0 && peer < r->size);
    if (peer == r->self) {
        for (int i = 0; i < r->n; i++)
            r->inner[i]->ops->wake(r->inner[i], peer);
        return;
    }
    int i = atomic_load_explicit(&r->peers[peer].waker, memory_order_acquire);
    if (i >= 0)
        r->inner[i]->ops->wake(r->inner[i], peer);
}

static const struct trib_transport_text texts[] = {
    {"rails:n=2,over=tcp", 0},
    {"rails:n=2,over=tcp", TRIB_TEXT_THREADS | TRIB_TEXT_SEALED},
    {"rails:n=3,over=tcp", TRIB_TEXT_THREADS},
    {"rails:n=2,over=tcp+trace+delay:us=100", 0},
    {"rails:n=2,over=loop", TRIB_TEXT_THREADS},
    {"rails:n=3,over=loop", TRIB_TEXT_THREADS},
    {"rails:n=8,over=loop", TRIB_TEXT_THREADS},
    {NULL, 0},
};

static uint64_t multirail_away(struct trib_transport *t, bool maybe)
{
    const struct multirail *r = (const struct multirail *)t;

    return r->inner[0]->ops->away(r->inner[0], maybe);
}

static void multirail_trouble(struct trib_transport *t, char *text, size_t bytes)
{
    const struct multirail *r = (const struct multirail *)t;
    char one[240];

    text[0] = '\0';
    for (int i = 0; i < r->n; i++) {
        r->inner[i]->ops->trouble(r->inner[i], one, sizeof(one));
        if (one[0] && !strstr(text, one)) /* rails may share a port */
            trib_text_append(text, bytes, "%s%s", *text ? "; " : "", one);
    }
}

const struct trib_transport_ops trib_multirail_ops = {
    .name = MULTIRAIL_NAME,
    .composite = true,
    .detail = "several transports of one kind at once, n=N,over=tcp; verbs does so by "
              "itself",
    .texts = texts,
    .devices = trib_no_devices,
    .open = multirail_open,
    .close = multirail_close,
    .address = trib_multirail_address,
    .reach = trib_multirail_reach,
    .pinned_limit = trib_multirail_pinned_limit,
    TRIB_OPS_WITHOUT_MAPS,
    .route = multirail_route,
    .connect = trib_multirail_connect,
    .connect_many = trib_multirail_connect_many,
    .disconnect = multirail_disconnect,
    .leave = multirail_leave,
    .alloc = trib_multirail_alloc,
    .alloc_user = trib_multirail_alloc,
    .reg = trib_multirail_reg,
    .reg_dmabuf = trib_multirail_reg_dmabuf,
    .borrow = trib_multirail_borrow,
    .give_back = trib_multirail_give_back,
    .dereg = trib_multirail_dereg,
    .export_region = trib_multirail_export,
    .import_region = trib_multirail_import,
    .release = trib_multirail_release,
    .length = trib_multirail_length,
    .write = trib_multirail_write,
    .detach = trib_multirail_detach,
    .poll = multirail_poll,
    .event_fd = multirail_event_fd,
    .arm = multirail_arm,
    .wait = multirail_wait,
    .wake = multirail_wake,
    .away = multirail_away,
    .trouble = multirail_trouble,
};
