/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auto: combines several transports; each peer uses the cheapest one that reaches it.
 * See auto_select.c for the choice, auto_mem.c for memory.
 */
#include "transport/auto/auto.h"
#include "transport/auto/auto_params.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/common/guard.h"
#include "transport/common/net_addr.h"
#include "transport/common/heartbeat.h"

#define SLICE_US 250 /* length of a sleep on one inner while others may have events */
#define GOING_MS 50 /* for data in flight from a lost peer over another inner */

static trib_status_t open_inner(struct auto_transport *c,
                                const struct trib_transport_ops *ops,
                                const struct trib_transport_opts *opts,
                                struct trib_transport **out)
{
    if (!trib_guard_takes(opts->guard, ops->name))
        return trib_fail(&c->inner_err, TRIB_ERR_UNSUPPORTED,
                         "it is not among this aggregator's transports");
    if (ops->bare && opts->cfg->seal)
        return trib_fail(
            &c->inner_err, TRIB_ERR_UNSUPPORTED,
            "it cannot encrypt its traffic (TRIB_SEAL=1); use tcp, or unset TRIB_SEAL");
    return ops->open(opts, out);
}

static trib_status_t open_inners(struct auto_transport *c,
                                 const struct trib_candidate *rows,
                                 const struct trib_transport_opts *opts,
                                 const struct auto_params *params,
                                 const struct trib_net_choice *choice)
{
    struct trib_transport_opts part = *opts;
    char text[96 + TRIB_NET_TEXT_BYTES + AUTO_PASSED_BYTES];

    part.err = &c->inner_err;
    /* Ignore a failure: inners that need heartbeats report it below. */
    if (trib_heartbeat_open(&part, TRIB_AUTO, (int)params->port, (int)params->ports,
                            &c->heartbeat) != TRIB_OK)
        trib_error_clear(&c->inner_err);
    else
        trib_heartbeat_fence(c->heartbeat, choice);
    part.heartbeat = c->heartbeat;
    for (const struct trib_candidate *row = rows; row->ops; row++) {
        assert(c->n_inners < AUTO_INNERS && row->id > 0 && row->id < 16);
        const char *passed = params->passed[c->n_inners];
        struct auto_inner *inner = &c->inners[c->n_inners++];
        inner->row = row;
        /* With ranks_per_host, peers are watched by heartbeats, like those on other
         * hosts. */
        snprintf(text, sizeof(text), "port=%d,ports=%d%s%s%s%s%s%s", (int)params->port,
                 (int)params->ports, row->watch && c->ranks_per_host ? ",watch=0" : "",
                 row->more ? row->more : "", params->net[0] ? ",net=" : "", params->net,
                 passed[0] ? "," : "", passed);
        part.params = row->ports ? text : "";
        part.unfit_out = &inner->unfit;
        trib_status_t status = open_inner(c, row->ops, &part, &inner->t);
        if (status == TRIB_OK) {
            inner->t->err = &c->inner_err;
            inner->unfit = false;
            continue;
        }
        inner->t = NULL;
        snprintf(inner->why, sizeof(inner->why), "%.390s",
                 trib_error_text(&c->inner_err));
        trib_error_clear(&c->inner_err);
        if (status == TRIB_ERR_CONFIG && passed[0]) /* wrong for this host's devices */
            return trib_fail(c->err, status, "%s", inner->why);
        trib_log(c->log,
                 status == TRIB_ERR_UNSUPPORTED ? TRIB_LOG_DEBUG : TRIB_LOG_INFO,
                 TRIB_AUTO, "%s is not used: %s", row->ops->name, inner->why);
    }
    return TRIB_OK;
}

/* Determine the candidates for one kind of peer: all that opened, or the named one. */
static trib_status_t allow(struct auto_transport *c, const char *kind, const char *name,
                           uint16_t *out)
{
    bool near = strcmp(kind, "near") == 0;

    *out = 0;
    for (int i = 0; i < c->n_inners; i++) {
        const struct auto_inner *inner = &c->inners[i];
        bool named = strcmp(inner->row->ops->name, name) == 0;
        if (named && !inner->t)
            return trib_fail(c->err, TRIB_ERR_CONFIG, "auto:%s=%s is not available: %s",
                             kind, name, inner->why);
        if (!near && name[0]) /* others are not wanted, so do not warn about them */
            c->inners[i].unfit = false;
        if (named && inner->row->maps && !near)
            return trib_fail(c->err, TRIB_ERR_CONFIG,
                             "auto:%s=%s: it reaches ranks of one host only", kind,
                             name);
        if (inner->t && (named || (!name[0] && (near || !inner->row->maps))))
            *out |= auto_bit(inner);
    }
    if (*out || !name[0])
        return TRIB_OK;
    return trib_fail(
        c->err, TRIB_ERR_CONFIG,
        "auto:%s=%s: auto cannot choose this transport (trib-info --transports lists "
        "those it can)",
        kind, name);
}

static trib_status_t choose_allowed(struct auto_transport *c,
                                    const struct auto_params *params)
{
    trib_status_t status = allow(c, "near", params->near, &c->near);

    assert(c->n_inners > 0);
    if (status == TRIB_OK)
        status = allow(c, "far", params->far, &c->far);
    c->used = c->near | c->far;
    if (status == TRIB_OK && !c->used)
        status = trib_fail(c->err, TRIB_ERR_UNSUPPORTED, "no transport opens: %s",
                           c->inners[c->n_inners - 1].why);
    return status;
}

/* Return true if the peer's writes may come over another inner than ours to it. */
static bool is_mixed(const struct auto_transport *c, const struct auto_peer *p)
{
    uint16_t own = p->inner < 0 ? 0 : auto_bit(&c->inners[p->inner]);

    return ((p->heard ? p->heard : p->choices) & ~own) != 0;
}

/* Disconnect mixed peers from the inner with our writes first, so that the writes
 * arrive before the disconnect notices of other inners. */
static void leave_mixed(struct auto_transport *c)
{
    for (int r = 0; c->peers && r < c->size; r++) {
        struct auto_peer *p = &c->peers[r];
        if (p->state != AUTO_PEER_CONNECTED || !p->heard || !is_mixed(c, p))
            continue;
        struct trib_transport *inner = c->inners[p->inner].t;
        inner->ops->disconnect(inner, r);
    }
}

static void auto_close(struct trib_transport *t)
{
    struct auto_transport *c = auto_of(t);

    if (getpid() == c->me.pid)
        leave_mixed(c);
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t)
            c->inners[i].t->ops->close(c->inners[i].t);
    }
    trib_heartbeat_close(c->heartbeat);
    trib_auto_free_memory(c);
    for (int r = 0; c->peers && r < c->size; r++) {
        free(c->peers[r].refused);
        free(c->peers[r].address);
    }
    free(c->peers);
    free(c);
}

trib_status_t trib_auto_make(const struct trib_candidate *rows,
                             const struct trib_transport_opts *opts,
                             struct trib_transport **out)
{
    struct auto_params params;
    trib_status_t status = trib_auto_params_parse(rows, opts, &params);

    struct trib_net_choice choice;
    if (status == TRIB_OK)
        status = trib_net_choose(TRIB_AUTO, params.net, &choice, opts->err);
    if (status != TRIB_OK)
        return status;
    struct auto_transport *c = calloc(1, sizeof(*c));
    if (!c)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    c->base.ops = &trib_auto_ops;
    c->self = opts->self;
    c->size = opts->size;
    c->log = opts->log;
    c->err = opts->err;
    c->serves = opts->guard && opts->guard->serves;
    c->ranks_per_host = params.ranks_per_host;
    trib_process_self(&c->me);
    c->peers = calloc((size_t)opts->size, sizeof(*c->peers));
    for (int r = 0; c->peers && r < c->size; r++)
        atomic_init(&c->peers[r].inner, -1);
    if (!c->peers)
        status = trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (status == TRIB_OK)
        status = open_inners(c, rows, opts, &params, &choice);
    if (status == TRIB_OK)
        status = choose_allowed(c, &params);
    if (status != TRIB_OK) {
        auto_close(&c->base);
        return status;
    }
    *out = &c->base;
    return TRIB_OK;
}

static trib_status_t auto_open(const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    return trib_auto_make(opts->candidates, opts, out);
}

static void auto_disconnect(struct trib_transport *t, int peer)
{
    struct auto_transport *c = auto_of(t);

    if (peer < 0 || peer >= c->size || c->peers[peer].state == AUTO_PEER_LEFT)
        return;
    if (c->peers[peer].state == AUTO_PEER_DRAINING)
        c->n_draining--;
    c->peers[peer].state = AUTO_PEER_LEFT;
    /* Disconnect on all inners, because the peer may write over another one. Start with
     * the one that carried our writes. */
    int first = c->peers[peer].inner;
    if (first >= 0)
        c->inners[first].t->ops->disconnect(c->inners[first].t, peer);
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t && i != first)
            c->inners[i].t->ops->disconnect(c->inners[i].t, peer);
    }
}

/* Disconnect from the peers written to over inner `i`. */
static void leave_by(struct auto_transport *c, int i, const bool *which, bool *those)
{
    assert(c->inners[i].t);
    for (int r = 0; r < c->size; r++)
        those[r] = c->peers[r].inner == i && (!which || which[r]);
    c->inners[i].t->ops->leave(c->inners[i].t, those);
}

/* Keep the order of auto_disconnect: each peer's inner that carried our writes comes
 * first. */
static void auto_leave(struct trib_transport *t, const bool *which)
{
    struct auto_transport *c = auto_of(t);
    bool *those = calloc((size_t)c->size, sizeof(*those));

    for (int r = 0; r < c->size; r++) {
        struct auto_peer *p = &c->peers[r];
        if ((which && !which[r]) || p->state == AUTO_PEER_LEFT)
            continue;
        if (!those) {
            auto_disconnect(t, r); /* out of memory: disconnect one by one */
            continue;
        }
        if (p->state == AUTO_PEER_DRAINING)
            c->n_draining--;
        p->state = AUTO_PEER_LEFT;
    }
    for (int i = 0; those && i < c->n_inners; i++)
        if (c->inners[i].t)
            leave_by(c, i, which, those);
    for (int i = 0; those && i < c->n_inners; i++)
        if (c->inners[i].t)
            c->inners[i].t->ops->leave(c->inners[i].t, which);
    free(those);
}

/* Get both regions of a write for the peer's inner. If memory cannot be registered
 * there and nothing was written yet, move the peer to its next choice. User memory is
 * no reason to move, because it can be copied. */
static trib_status_t regions_of(struct auto_transport *c, int peer,
                                const struct trib_write *write, struct trib_write *out)
{
    const struct auto_remote *remote = (const struct auto_remote *)write->remote;
    struct auto_peer *p = &c->peers[peer];
    trib_status_t status = TRIB_OK;

    if (!write->local || !remote || remote->peer != peer)
        return trib_fail(c->err, TRIB_ERR_INVALID,
                         "a write to peer %d without a region here and one of its own",
                         peer);
    while (!(out->local = trib_auto_local_region(c, write->local, p->inner))) {
        if (p->wrote || ((const struct auto_region *)write->local)->callers)
            return trib_auto_pass_error(c, c->inner_err.status);
        status = trib_auto_move(c, peer, c->inner_err.status, c->inner_err.text);
        if (status != TRIB_OK)
            return status;
    }
    out->remote = remote->remote;
    return TRIB_OK;
}

static trib_status_t auto_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct auto_transport *c = auto_of(t);
    struct auto_peer *p = &c->peers[peer];
    struct trib_write w = *write;

    assert(peer >= 0 && peer < c->size);
    if (p->state != AUTO_PEER_CONNECTED)
        return p->state == AUTO_PEER_UNKNOWN ? TRIB_ERR_INVALID : TRIB_ERR_PEER_LOST;
    trib_status_t status = w.len ? regions_of(c, peer, write, &w) : TRIB_OK;
    if (status != TRIB_OK)
        return status;
    struct trib_transport *inner = c->inners[p->inner].t;
    status = inner->ops->write(inner, peer, &w);
    if (status == TRIB_OK && !p->wrote)
        trib_auto_fix_choice(c, peer);
    return trib_auto_pass_error(c, status);
}

static bool auto_detach(struct trib_transport *t, int peer)
{
    struct auto_transport *c = auto_of(t);
    const struct auto_peer *p = &c->peers[peer];

    assert(peer >= 0 && peer < c->size);
    if (p->state != AUTO_PEER_CONNECTED)
        return false;
    struct trib_transport *inner = c->inners[p->inner].t;
    return inner->ops->detach(inner, peer);
}

/* Hold back losses until all inners were polled. Drop events after a reported loss.
 * Ignore a loss on an inner that does not carry our writes: that one decides. */
static int filter_events(struct auto_transport *c, int from, struct trib_event *events,
                         int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        struct auto_peer *p = &c->peers[events[i].peer];
        bool lost = events[i].kind == TRIB_EVENT_PEER_LOST;
        if (events[i].kind == TRIB_EVENT_ARRIVED)
            p->heard |= auto_bit(&c->inners[from]);
        if (lost && p->state == AUTO_PEER_CONNECTED && p->inner == from) {
            p->state = AUTO_PEER_DRAINING;
            p->loss = events[i];
            p->lost_at = trib_now_ns();
            c->n_draining++;
        }
        if (lost || p->state == AUTO_PEER_LOST || p->state == AUTO_PEER_LEFT)
            continue;
        if (kept != i)
            events[kept] = events[i];
        kept++;
    }
    return kept;
}

/* Report held losses. All inners were polled since `begin`. */
static int report_losses(struct auto_transport *c, uint64_t begin,
                         struct trib_event *events, int max)
{
    int n = 0;

    for (int r = 0; r < c->size && n < max && c->n_draining; r++) {
        struct auto_peer *p = &c->peers[r];
        /* Writes of the peer may still be in flight over another inner. */
        if (p->state != AUTO_PEER_DRAINING ||
            (is_mixed(c, p) && begin < p->lost_at + GOING_MS * UINT64_C(1000000)))
            continue;
        events[n++] = p->loss;
        p->state = AUTO_PEER_LOST;
        c->n_draining--;
    }
    return n;
}

static int auto_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct auto_transport *c = auto_of(t);
    uint64_t begin = c->n_draining ? trib_now_ns() : 0;
    bool more = false;
    int n = 0;

    for (int k = 0; k < c->n_inners; k++) {
        int from = c->next;
        struct trib_transport *inner = c->inners[from].t;
        c->next = c->next + 1 < c->n_inners ? c->next + 1 : 0;
        if (!inner || n == max) {
            more |= inner != NULL;
            continue;
        }
        int got = inner->ops->poll(inner, events + n, max - n);
        more |= got == max - n;
        n += filter_events(c, from, events + n, got);
    }
    if (++c->next >= c->n_inners)
        c->next = 0;
    if (c->n_draining && !more)
        n += report_losses(c, begin, events + n, max - n);
    if (c->inner_err.status != TRIB_OK)
        trib_error_clear(&c->inner_err);
    return n;
}

static int n_open(const struct auto_transport *c)
{
    int n = 0;

    for (int i = 0; i < c->n_inners; i++)
        n += c->inners[i].t != NULL;
    return n;
}

/* If several inners are open and each has an event_fd, one sleep serves all. */
static void ask_descriptors(struct auto_transport *c)
{
    c->asked = true;
    if (n_open(c) < 2)
        return;
    for (int i = 0; i < c->n_inners; i++) {
        struct trib_transport *inner = c->inners[i].t;
        int fd = inner ? inner->ops->event_fd(inner) : 0;
        if (fd < 0) {
            c->n_sleep = 0;
            return;
        }
        if (inner)
            c->sleep[c->n_sleep++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
}

static void auto_arm(struct trib_transport *t)
{
    struct auto_transport *c = auto_of(t);

    if (!c->asked)
        ask_descriptors(c);
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t)
            c->inners[i].t->ops->arm(c->inners[i].t);
    }
}

/* A single inner sleeps by its own wait. Inners without event_fd sleep in turn, and
 * then the caller polls again: events that came in another's turn have not ended the
 * sleep. */
static void auto_wait(struct trib_transport *t, int timeout_us)
{
    struct auto_transport *c = auto_of(t);
    struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    struct pollfd sleep[AUTO_INNERS];
    int n = n_open(c), each = timeout_us;

    if (c->n_sleep && timeout_us > 0) {
        memcpy(sleep, c->sleep, sizeof(sleep)); /* two threads may wait at once */
        /* After a failed ppoll, wait on the inners in turn. */
        const int found = ppoll(sleep, (nfds_t)c->n_sleep, &ts, NULL);
        each = found < 0 && errno != EINTR ? SLICE_US : 0;
    } else if (n > 1) {
        each = timeout_us / n < SLICE_US ? timeout_us / n : SLICE_US;
    }
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t)
            c->inners[i].t->ops->wait(c->inners[i].t, each);
    }
}

/* Called for every frame stored through map(), so keep it short. */
static void auto_wake(struct trib_transport *t, int peer)
{
    struct auto_transport *c = auto_of(t);

    assert(peer >= 0 && peer < c->size);
    int i = atomic_load_explicit(&c->peers[peer].inner, memory_order_acquire);
    if (i >= 0)
        c->inners[i].t->ops->wake(c->inners[i].t, peer);
    for (int k = 0; peer == c->self && k < c->n_inners; k++) {
        if (c->inners[k].t)
            c->inners[k].t->ops->wake(c->inners[k].t, peer);
    }
}

static const struct trib_transport_text texts[] = {
    {"auto", TRIB_TEXT_MAPS | TRIB_TEXT_CMA},
    {"auto:near=shm,far=tcp,ranks_per_host=1", TRIB_TEXT_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=2",
     TRIB_TEXT_MAPS | TRIB_TEXT_CMA | TRIB_TEXT_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=1", TRIB_TEXT_THREADS},
    {"auto:near=tcp+trace+delay:us=100", 0},
    {NULL, 0},
};

static uint64_t auto_away(struct trib_transport *t, bool maybe)
{
    struct auto_transport *c = auto_of(t);

    return c->heartbeat ? trib_heartbeat_away(c->heartbeat, maybe) : 0;
}

static void auto_trouble(struct trib_transport *t, char *text, size_t bytes)
{
    const struct auto_transport *c = auto_of(t);
    char one[320];

    text[0] = '\0';
    for (int i = 0; i < c->n_inners; i++) {
        struct trib_transport *inner = c->inners[i].t;
        if (!inner)
            continue;
        inner->ops->trouble(inner, one, sizeof(one));
        if (one[0])
            trib_text_append(text, bytes, "%s%s", *text ? "; " : "", one);
    }
}

const struct trib_transport_ops trib_auto_ops = {
    .name = TRIB_AUTO,
    .composite = true,
    .nets = true,
    .detail = "for each peer the cheapest that reaches it: shm within a host, else "
              "verbs, else tcp",
    .texts = texts,
    .devices = trib_no_devices, /* each candidate lists its own */
    .open = auto_open,
    .close = auto_close,
    .address = trib_auto_address,
    .reach = trib_auto_reach,
    .pinned_limit = trib_auto_pinned_limit,
    .caps = trib_auto_caps,
    .agree = trib_auto_agree,
    .route = trib_auto_route,
    .connect = trib_auto_connect,
    .connect_many = trib_auto_connect_many,
    .disconnect = auto_disconnect,
    .leave = auto_leave,
    .alloc = trib_auto_alloc,
    .alloc_user = trib_auto_alloc_user,
    .reg = trib_auto_reg,
    .reg_dmabuf = trib_auto_reg_dmabuf,
    .borrow = trib_auto_borrow,
    .give_back = trib_auto_give_back,
    .release_pages = trib_auto_release_pages,
    .dereg = trib_auto_dereg,
    .export_region = trib_auto_export,
    .import_region = trib_auto_import,
    .release = trib_auto_release,
    .length = trib_auto_length,
    .stale = trib_auto_stale,
    .map = trib_auto_map,
    .reads = trib_auto_reads,
    .read = trib_auto_read,
    .write = auto_write,
    .detach = auto_detach,
    .poll = auto_poll,
    .event_fd = trib_no_event_fd,
    .arm = auto_arm,
    .wait = auto_wait,
    .wake = auto_wake,
    .away = auto_away,
    .trouble = auto_trouble,
};
