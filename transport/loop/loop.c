/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: ranks that are threads of one process, with the semantics of a network card.
 *
 * It exercises the RDMA write path on any machine: map() never returns a pointer, and a
 * posted write is copied only when its target polls. So a source changed before
 * WRITE_DONE is noticed. Queues are short, and region keys are checked when the bytes
 * arrive.
 *
 * A rank's endpoint lives in a segment, so that peers may keep using it while its owner
 * closes. Writes to a rank queue up in its endpoint, under its lock. No thread ever
 * holds two of these locks.
 */
#include "transport/loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "transport/backends.h"
#include "transport/common/guard.h"
#include "transport/params.h"

static void endpoint_wake(struct loop_endpoint *ep)
{
    endpoint_lock(ep);
    ep->woken = true;
    pthread_cond_signal(&ep->cond);
    pthread_mutex_unlock(&ep->lock);
}

static trib_status_t endpoint_make(struct loop *loop)
{
    uint32_t size = (uint32_t)loop->size;
    size_t len = sizeof(struct loop_endpoint) + size * sizeof(struct loop_sender) +
                 (size_t)size * loop->depth * sizeof(struct loop_entry);
    trib_status_t status = trib_segment_create(len, &loop->seg, loop->err);
    pthread_condattr_t attr;

    assert(loop->depth > 0 && (loop->depth & (loop->depth - 1)) == 0);
    if (status != TRIB_OK)
        return status;
    loop->own = (struct loop_endpoint *)(void *)loop->seg.base;
    loop->own->size = size;
    loop->own->depth = loop->depth;
    loop->own->next_key = loop->seg.key | 1;
    pthread_mutex_init(&loop->own->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&loop->own->cond, &attr);
    pthread_condattr_destroy(&attr);
    atomic_store_explicit(&loop->own->made, 1, memory_order_release);
    return TRIB_OK;
}

static trib_status_t loop_open(const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    int64_t depth = LOOP_DEPTH;
    const struct trib_param params[] = {
        {.name = "depth", .min = 1, .max = 4096, .value = &depth},
    };
    trib_status_t status =
        trib_params_parse("loop", opts->params, params, 1, opts->err);

    if (status != TRIB_OK)
        return status;
    if (opts->guard && opts->guard->serves)
        return trib_fail(
            opts->err, TRIB_ERR_UNSUPPORTED,
            "loop reaches threads of one process by pointer, so it is unsafe for "
            "untrusted peers; use auto");
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    loop->base.ops = &trib_loop_ops;
    loop->self = opts->self;
    loop->size = opts->size;
    loop->depth = 1;
    while (loop->depth < depth)
        loop->depth *= 2;
    loop->err = opts->err;
    loop->peers = calloc((size_t)opts->size, sizeof(*loop->peers));
    if (!loop->peers)
        status = trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (status == TRIB_OK)
        status = trib_segment_owner(&loop->me, opts->err);
    if (status == TRIB_OK)
        status = endpoint_make(loop);
    if (status != TRIB_OK) {
        free(loop->peers);
        free(loop);
        return status;
    }
    *out = &loop->base;
    return TRIB_OK;
}

static trib_status_t loop_address(struct trib_transport *t, struct trib_address *out)
{
    struct loop *loop = loop_of(t);
    struct trib_segment_id id = trib_segment_id(&loop->seg);
    struct loop_address a = {
        .magic = LOOP_MAGIC,
        .fd = id.fd,
        .boot = loop->me.boot,
        .space = loop->me.space,
        .start = loop->me.start,
        .key = id.key,
        .map_len = id.map_len,
        .pid = loop->me.pid,
    };

    trib_peer_address(&a, sizeof(a), out);
    return TRIB_OK;
}

static trib_status_t address_check(struct loop *loop, int peer,
                                   const struct trib_address *address,
                                   struct loop_address *out)
{
    trib_status_t status = trib_peer_read_address(address, peer, "loop", LOOP_MAGIC,
                                                  out, sizeof(*out), loop->err);
    if (status != TRIB_OK)
        return status;
    struct trib_process who = {
        .boot = out->boot, .space = out->space, .start = out->start, .pid = out->pid};
    if (!trib_process_same(&who, &loop->me))
        return trib_fail(
            loop->err, TRIB_ERR_UNSUPPORTED,
            "peer %d is process %d: loop reaches threads of one process only", peer,
            out->pid);
    return TRIB_OK;
}

static trib_status_t loop_reach(struct trib_transport *t, int peer,
                                const struct trib_address *address)
{
    struct loop_address a;

    return address_check(loop_of(t), peer, address, &a);
}

static trib_status_t loop_connect(struct trib_transport *t, int peer,
                                  const struct trib_address *address)
{
    struct loop *loop = loop_of(t);
    struct loop_address a;

    if (peer < 0 || peer >= loop->size)
        return trib_fail(loop->err, TRIB_ERR_INVALID, "peer %d of %d does not exist",
                         peer, loop->size);
    struct loop_peer *p = &loop->peers[peer];
    if (p->state == TRIB_PEER_CONNECTED)
        return TRIB_OK;
    if (p->state != TRIB_PEER_UNKNOWN)
        return trib_fail(loop->err, TRIB_ERR_PEER_LOST,
                         "peer %d was lost or left before", peer);
    trib_status_t status = address_check(loop, peer, address, &a);
    if (status != TRIB_OK)
        return status;
    p->posted = calloc(loop->depth, sizeof(*p->posted));
    if (!p->posted)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "out of memory");
    struct trib_segment_id id = {.key = a.key, .map_len = a.map_len, .fd = a.fd};
    /* address_check has verified that the segment belongs to this process. */
    status = trib_segment_attach(&id, &loop->me, &loop->me, &p->seg, loop->err);
    if (status != TRIB_OK) {
        free(p->posted);
        p->posted = NULL;
        return status;
    }
    /* The endpoint was made before its address was sent. The address may have come
     * through a socket, which orders no memory accesses, so acquire here. */
    struct loop_endpoint *ep = (struct loop_endpoint *)(void *)p->seg.base;
    uint32_t made = atomic_load_explicit(&ep->made, memory_order_acquire);
    assert(made);
    (void)made;
    atomic_store_explicit(&p->endpoint, ep, memory_order_release);
    p->state = TRIB_PEER_CONNECTED;
    return TRIB_OK;
}

static void loop_disconnect(struct trib_transport *t, int peer)
{
    struct loop *loop = loop_of(t);

    if (peer < 0 || peer >= loop->size || loop->peers[peer].state == TRIB_PEER_LEFT)
        return;
    atomic_store(&loop->own->senders[peer].left, 1);
    if (loop->peers[peer].state == TRIB_PEER_CONNECTED)
        endpoint_wake(loop->peers[peer].endpoint);
    loop->peers[peer].state = TRIB_PEER_LEFT;
}

static void loop_leave(struct trib_transport *t, const bool *which)
{
    for (int i = 0; i < loop_of(t)->size; i++)
        if (!which || which[i])
            loop_disconnect(t, i);
}

static void loop_close(struct trib_transport *t)
{
    struct loop *loop = loop_of(t);

    if (getpid() != loop->me.pid)
        /* a forked child: all of this is a copy, and its locks may be held by the
         * parent */
        return;
    trib_loop_close_memory(loop);
    for (int i = 0; i < loop->size; i++) {
        if (loop->peers[i].state == TRIB_PEER_CONNECTED)
            endpoint_wake(loop->peers[i].endpoint);
        trib_segment_release(&loop->peers[i].seg, false);
        free(loop->peers[i].posted);
    }
    trib_segment_release(&loop->seg, false);
    free(loop->peers);
    free(loop);
}

static trib_status_t check_write(struct loop *loop, int peer,
                                 const struct trib_write *w)
{
    const struct loop_region *local = (const struct loop_region *)w->local;
    const struct loop_remote *remote = (const struct loop_remote *)w->remote;

    if (w->len == 0)
        return TRIB_OK;
    if (!local || !remote)
        return trib_peer_check_bounds(w, peer, NULL, loop->err);
    const struct trib_write_bounds bounds = {remote->peer, local->len, remote->len};
    return trib_peer_check_bounds(w, peer, &bounds, loop->err);
}

/* The queue has room for `depth` writes of each sender; the caller has checked. */
static trib_status_t post(struct loop *loop, int peer, const struct trib_write *w)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;
    const struct loop_region *local = (const struct loop_region *)w->local;
    const struct loop_remote *remote = (const struct loop_remote *)w->remote;
    struct loop_entry entry = {
        .len = w->len,
        .imm = w->imm,
        .peer = loop->self,
        .quiet = w->quiet,
        .signal = w->signal,
    };

    assert(p->tail - p->head < loop->depth);
    if (w->len) {
        entry.from = local->ptr + w->local_off;
        entry.key = remote->key;
        entry.off = w->remote_off;
    }
    endpoint_lock(ep);
    if (!atomic_load(&ep->closed)) {
        *entry_at(ep, ep->tail++) = entry;
        pthread_cond_signal(&ep->cond);
    }
    pthread_mutex_unlock(&ep->lock);
    p->posted[p->tail++ % loop->depth] =
        (struct loop_posted){.token = w->token, .signal = w->signal};
    return TRIB_OK;
}

static trib_status_t loop_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct loop *loop = loop_of(t);

    assert(peer >= 0 && peer < loop->size);
    struct loop_peer *p = &loop->peers[peer];
    trib_status_t status = trib_peer_check_write(p->state);
    if (status == TRIB_OK)
        status = check_write(loop, peer, write);
    if (status != TRIB_OK)
        return status;
    if (p->tail - p->head >= loop->depth)
        return TRIB_ERR_NO_RESOURCE;
    return post(loop, peer, write);
}

/* Report WRITE_DONE, in order, for writes that the peer has consumed. */
static int take_done(struct loop *loop, int peer, struct trib_event *events, int max)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;
    int n = 0;

    if (p->state != TRIB_PEER_CONNECTED || p->head == p->tail)
        return 0;
    uint32_t taken = atomic_load(&ep->senders[loop->self].taken);
    for (; n < max && p->head != taken; p->head++) {
        const struct loop_posted *posted = &p->posted[p->head % loop->depth];
        if (!posted->signal)
            continue;
        events[n].kind = TRIB_EVENT_WRITE_DONE;
        events[n].peer = peer;
        events[n].token = posted->token;
        n++;
    }
    return n;
}

static int take_arrived(struct loop *loop, struct trib_event *events, int max)
{
    struct loop_endpoint *ep = loop->own;
    int n = 0;

    endpoint_lock(ep);
    while (n < max && ep->head != ep->tail) {
        struct loop_entry *e = entry_at(ep, ep->head++);
        if (!e->copied)
            trib_loop_copy(ep, e);
        if (atomic_load(&ep->senders[e->peer].refused))
            continue;
        atomic_fetch_add(&ep->senders[e->peer].taken, 1);
        loop->peers[e->peer].wake |= e->signal;
        if (e->quiet)
            continue;
        events[n].kind = TRIB_EVENT_ARRIVED;
        events[n].peer = e->peer;
        events[n].imm = e->imm;
        events[n].len = e->len;
        n++;
    }
    pthread_mutex_unlock(&ep->lock);
    return n;
}

/* Return true if the local queue has no write of this peer. */
static bool drained(struct loop *loop, int peer)
{
    struct loop_endpoint *ep = loop->own;
    bool found = false;

    endpoint_lock(ep);
    for (uint64_t i = ep->head; i != ep->tail && !found; i++)
        found = entry_at(ep, i)->peer == peer;
    pthread_mutex_unlock(&ep->lock);
    return !found;
}

/* Return why a peer is lost, or NULL if it is not. */
static const char *loss(struct loop *loop, int peer, bool *left_out)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;

    *left_out = false;
    if (p->state != TRIB_PEER_CONNECTED || peer == loop->self)
        return NULL;
    if (atomic_load(&ep->senders[loop->self].refused))
        return "refused a write to memory that is not registered";
    if (atomic_load(&loop->own->senders[peer].refused))
        return "wrote to memory that is not registered";
    *left_out = atomic_load(&ep->closed) || atomic_load(&ep->senders[loop->self].left);
    return *left_out ? "has left" : NULL;
}

static int report_losses(struct loop *loop, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < loop->size && n < max; i++) {
        bool left;
        const char *why = loss(loop, i, &left);
        if (!why || !drained(loop, i))
            continue;
        loop->peers[i].state = TRIB_PEER_LOST;
        events[n] = (struct trib_event){
            .kind = TRIB_EVENT_PEER_LOST, .peer = i, .left = left};
        snprintf(events[n].why, sizeof(events[n].why), "a thread of process %d %s",
                 loop->me.pid, why);
        n++;
    }
    return n;
}

static int loop_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct loop *loop = loop_of(t);
    int n = 0;

    for (int i = 0; i < loop->size; i++)
        n += take_done(loop, i, events + n, max - n);
    n += take_arrived(loop, events + n, max - n);
    for (int i = 0; i < loop->size; i++) {
        if (loop->peers[i].wake && loop->peers[i].state == TRIB_PEER_CONNECTED)
            endpoint_wake(loop->peers[i].endpoint);
        loop->peers[i].wake = false;
    }
    n += report_losses(loop, events + n, max - n);
    return n;
}

static void loop_arm(struct trib_transport *t)
{
    struct loop_endpoint *ep = loop_of(t)->own;

    endpoint_lock(ep);
    ep->woken = false;
    pthread_mutex_unlock(&ep->lock);
}

static void loop_wait(struct trib_transport *t, int timeout_us)
{
    struct loop_endpoint *ep = loop_of(t)->own;
    struct timespec ts;

    if (timeout_us <= 0)
        return;
    uint64_t until = trib_now_ns() + (uint64_t)timeout_us * 1000u;
    ts.tv_sec = (time_t)(until / 1000000000u);
    ts.tv_nsec = (long)(until % 1000000000u);
    endpoint_lock(ep);
    while (!ep->woken && ep->head == ep->tail) {
        if (pthread_cond_timedwait(&ep->cond, &ep->lock, &ts) == ETIMEDOUT)
            break;
    }
    ep->woken = false;
    pthread_mutex_unlock(&ep->lock);
}

static void loop_wake(struct trib_transport *t, int peer)
{
    struct loop *loop = loop_of(t);
    struct loop_endpoint *ep = loop->own;

    assert(peer >= 0 && peer < loop->size);
    if (peer != loop->self)
        ep = atomic_load_explicit(&loop->peers[peer].endpoint, memory_order_acquire);
    if (ep)
        endpoint_wake(ep);
}

static const struct trib_transport_text texts[] = {
    {"loop", TRIB_TEXT_THREADS},
    {"loop:depth=2", TRIB_TEXT_THREADS},
    {"loop+trace+delay:us=100", TRIB_TEXT_THREADS},
    {NULL, 0},
};

const struct trib_transport_ops trib_loop_ops = {
    .name = "loop",
    .one_process = true,
    .detail = "threads of one process: queued copies, no direct access; for tests",
    .texts = texts,
    .devices = trib_no_devices,
    .open = loop_open,
    .close = loop_close,
    .address = loop_address,
    .reach = loop_reach,
    .pinned_limit = trib_no_pinned_limit,
    TRIB_OPS_WITHOUT_MAPS,
    .route = trib_only_route,
    .connect = loop_connect,
    .connect_many = trib_no_connect_many,
    .disconnect = loop_disconnect,
    .leave = loop_leave,
    .alloc = trib_loop_alloc,
    .alloc_user = trib_loop_alloc,
    .reg = trib_loop_reg,
    .reg_dmabuf = trib_mapped_reg_dmabuf,
    .dereg = trib_loop_dereg,
    .export_region = trib_loop_export,
    .import_region = trib_loop_import,
    .release = trib_loop_release,
    .length = trib_loop_length,
    .write = loop_write,
    .detach = trib_no_detach,
    .poll = loop_poll,
    .event_fd = trib_no_event_fd,
    .arm = loop_arm,
    .wait = loop_wait,
    .wake = loop_wake,
    .away = trib_no_away,
    .trouble = trib_no_trouble,
};
