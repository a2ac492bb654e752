/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: ranks that are threads of one process, with the manners of a network card.
 *
 * It exists so that the write path of RDMA is exercised everywhere: map() never gives a
 * pointer, a posted write is copied only when its sender polls (so a source that is
 * reused before WRITE_DONE shows), queues are short, keys of regions are checked at the
 * target when the bytes arrive.
 *
 * A rank's endpoint lives in a segment, so that peers may hold on to it while its owner
 * goes. Its lock is held for the copy, hence dereg() waits for writes under way. No
 * thread ever holds two of these locks.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "transport/backends.h"
#include "transport/params.h"
#include "transport/watch.h"
#include "transport/segment.h"

#define LOOP_MAGIC 0x706f6f6cu
#define LOOP_DEPTH 64u
#define LOOP_DONE_SLOTS 1024u
#define BACKLOG_WAIT_US 100 /* a wait with unsent writes: try them again soon */

struct loop_region {
    uint8_t *ptr;
    size_t len;
    uint64_t key;
    bool allocated;
    struct loop_region *next;
};

struct loop_remote {
    int peer;
    uint64_t key;
    size_t len;
    struct loop_remote *next;
};

struct loop_entry {
    uint64_t len;
    uint32_t imm;
    int32_t peer;
};

/* Shared by the threads; all under `lock`, except what is atomic. */
struct loop_endpoint {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool woken;
    _Atomic uint32_t closed;
    uint32_t size;
    uint32_t depth;   /* entries that each sender may have in the queue */
    uint32_t head, tail;
    uint64_t next_key;
    struct loop_region *regions;
    struct loop_sender {
        uint32_t pending;      /* its entries in the queue */
        _Atomic uint32_t left; /* the owner left this peer */
    } senders[];
    /* then size * depth entries */
};

enum loop_peer_state { LOOP_UNKNOWN, LOOP_CONNECTED, LOOP_LOST, LOOP_LEFT };

struct loop_peer {
    enum loop_peer_state state;
    struct trib_segment seg;
    _Atomic(struct loop_endpoint *) endpoint;
    const char *refused;       /* why the peer counts as lost; NULL: it does not */
    struct trib_write *posted; /* a ring of `depth` writes, not yet copied */
    uint32_t head, tail;
};

struct loop {
    struct trib_transport base;
    int self;
    int size;
    uint32_t depth;
    struct trib_error *err;
    struct trib_ident me;
    struct trib_segment seg;
    struct loop_endpoint *own;
    struct loop_peer *peers;
    struct loop_remote *remotes;
    struct loop_done {
        uint64_t token;
        int peer;
    } done[LOOP_DONE_SLOTS];
    uint32_t done_head, done_tail;
    uint32_t signals; /* posted or in done[]: at most LOOP_DONE_SLOTS */
};

struct loop_address {
    uint32_t magic;
    int32_t fd;
    uint64_t boot, pidns, start;
    uint64_t key, map_len;
    int32_t pid;
    uint32_t reserved;
};

struct loop_export {
    uint32_t magic;
    int32_t pid;
    uint64_t key;
    uint64_t len;
};

static_assert(sizeof(struct loop_address) <= TRIB_BLOB_MAX, "address blob");

static struct loop *loop_of(struct trib_transport *t)
{
    return (struct loop *)t;
}

static struct loop_entry *entry_at(struct loop_endpoint *ep, uint32_t counter)
{
    struct loop_entry *entries = (struct loop_entry *)(void *)&ep->senders[ep->size];

    return &entries[counter % (ep->size * ep->depth)];
}

static void endpoint_lock(struct loop_endpoint *ep)
{
    int error = pthread_mutex_lock(&ep->lock);

    assert(error == 0);
    (void)error;
}

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
    return TRIB_OK;
}

static trib_status_t loop_open(const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    int64_t depth = LOOP_DEPTH;
    const struct trib_param params[] = {
        {.name = "depth", .min = 1, .max = 4096, .value = &depth},
    };
    trib_status_t status = trib_params_parse("loop", opts->params, params, 1, opts->err);

    if (status != TRIB_OK)
        return status;
    struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    loop->base.ops = &trib_loop_ops;
    loop->self = opts->self;
    loop->size = opts->size;
    loop->depth = (uint32_t)depth;
    loop->err = opts->err;
    loop->peers = calloc((size_t)opts->size, sizeof(*loop->peers));
    if (!loop->peers)
        status = trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (status == TRIB_OK)
        status = trib_ident_self(&loop->me, opts->err);
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

static trib_status_t loop_address(struct trib_transport *t, struct trib_blob *out)
{
    struct loop *loop = loop_of(t);
    struct trib_segment_id id = trib_segment_id(&loop->seg);
    struct loop_address a = {
        .magic = LOOP_MAGIC,
        .fd = id.fd,
        .boot = loop->me.boot,
        .pidns = loop->me.pidns,
        .start = loop->me.start,
        .key = id.key,
        .map_len = id.map_len,
        .pid = loop->me.pid,
    };

    memset(out, 0, sizeof(*out));
    out->len = sizeof(a);
    memcpy(out->bytes, &a, sizeof(a));
    return TRIB_OK;
}

static trib_status_t loop_connect(struct trib_transport *t, int peer,
                                  const struct trib_blob *address)
{
    struct loop *loop = loop_of(t);
    struct loop_address a;

    if (peer < 0 || peer >= loop->size)
        return trib_fail(loop->err, TRIB_ERR_INVALID, "peer %d of %d does not exist", peer,
                         loop->size);
    struct loop_peer *p = &loop->peers[peer];
    if (p->state == LOOP_CONNECTED)
        return TRIB_OK;
    if (p->state != LOOP_UNKNOWN)
        return trib_fail(loop->err, TRIB_ERR_PEER_LOST, "peer %d was lost or left before",
                         peer);
    if (address->len != sizeof(a))
        return trib_fail(loop->err, TRIB_ERR_INVALID, "peer %d: not an address of loop",
                         peer);
    memcpy(&a, address->bytes, sizeof(a));
    struct trib_ident who = {
        .boot = a.boot, .pidns = a.pidns, .start = a.start, .pid = a.pid};
    if (a.magic != LOOP_MAGIC)
        return trib_fail(loop->err, TRIB_ERR_INVALID, "peer %d: not an address of loop",
                         peer);
    if (!trib_ident_same(&who, &loop->me))
        return trib_fail(loop->err, TRIB_ERR_UNSUPPORTED,
                         "peer %d is process %d: loop reaches threads of one process only",
                         peer, a.pid);
    p->posted = calloc(loop->depth, sizeof(*p->posted));
    if (!p->posted)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "out of memory");
    struct trib_segment_id id = {.key = a.key, .map_len = a.map_len, .fd = a.fd};
    trib_status_t status =
        trib_segment_attach(&id, &who, &loop->me, &p->seg, loop->err);
    if (status != TRIB_OK) {
        free(p->posted);
        p->posted = NULL;
        return status;
    }
    atomic_store_explicit(&p->endpoint, (struct loop_endpoint *)(void *)p->seg.base,
                          memory_order_release);
    p->state = LOOP_CONNECTED;
    return TRIB_OK;
}

static struct loop_region *region_find(struct loop_endpoint *ep, uint64_t key)
{
    struct loop_region *r = ep->regions;

    while (r && r->key != key)
        r = r->next;
    return r;
}

/* The copy that the card would make; the target's lock is held. */
static bool deliver(struct loop *loop, struct loop_endpoint *ep, const struct trib_write *w)
{
    if (w->len) {
        const struct loop_region *local = (const struct loop_region *)w->local;
        const struct loop_remote *remote = (const struct loop_remote *)w->remote;
        struct loop_region *target = region_find(ep, remote->key);
        if (!target)
            return false;
        memcpy(target->ptr + w->remote_off, local->ptr + w->local_off, w->len);
    }
    if (!w->quiet) {
        *entry_at(ep, ep->tail++) =
            (struct loop_entry){.len = w->len, .imm = w->imm, .peer = loop->self};
        ep->senders[loop->self].pending++;
    }
    return true;
}

static void push_posted(struct loop *loop, int peer)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;
    uint32_t before = p->head;

    if (p->state != LOOP_CONNECTED || p->head == p->tail || p->refused)
        return;
    endpoint_lock(ep);
    while (p->head != p->tail && !atomic_load(&ep->closed)) {
        const struct trib_write *w = &p->posted[p->head % loop->depth];
        if (!w->quiet && ep->senders[loop->self].pending >= ep->depth)
            break;
        if (!deliver(loop, ep, w)) {
            p->refused = "has refused a write to memory that it no longer registers";
            break;
        }
        p->head++;
        if (w->signal)
            loop->done[loop->done_tail++ % LOOP_DONE_SLOTS] =
                (struct loop_done){.token = w->token, .peer = peer};
    }
    if (p->head != before)
        pthread_cond_signal(&ep->cond);
    pthread_mutex_unlock(&ep->lock);
}

static void loop_disconnect(struct trib_transport *t, int peer)
{
    struct loop *loop = loop_of(t);

    if (peer < 0 || peer >= loop->size || loop->peers[peer].state == LOOP_LEFT)
        return;
    push_posted(loop, peer);
    atomic_store(&loop->own->senders[peer].left, 1);
    if (loop->peers[peer].state == LOOP_CONNECTED)
        endpoint_wake(loop->peers[peer].endpoint);
    loop->peers[peer].state = LOOP_LEFT;
}

static void free_memory(struct loop *loop)
{
    while (loop->own->regions) {
        struct loop_region *r = loop->own->regions;
        loop->own->regions = r->next;
        if (r->allocated)
            free(r->ptr);
        free(r);
    }
    while (loop->remotes) {
        struct loop_remote *r = loop->remotes;
        loop->remotes = r->next;
        free(r);
    }
}

static void loop_close(struct trib_transport *t)
{
    struct loop *loop = loop_of(t);

    if (getpid() != loop->me.pid)
        return; /* a forked child: its parent's locks may be held; all this is a copy */
    for (int i = 0; i < loop->size; i++)
        push_posted(loop, i);
    endpoint_lock(loop->own);
    atomic_store(&loop->own->closed, 1);
    free_memory(loop);
    pthread_mutex_unlock(&loop->own->lock);
    for (int i = 0; i < loop->size; i++) {
        if (loop->peers[i].state == LOOP_CONNECTED)
            endpoint_wake(loop->peers[i].endpoint);
        trib_segment_release(&loop->peers[i].seg, false);
        free(loop->peers[i].posted);
    }
    trib_segment_release(&loop->seg, false);
    free(loop->peers);
    free(loop);
}

static trib_status_t region_add(struct loop *loop, void *ptr, size_t len,
                                struct trib_region **out)
{
    struct loop_region *r = calloc(1, sizeof(*r));

    if (!r)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "out of memory");
    r->ptr = ptr;
    r->len = len;
    endpoint_lock(loop->own);
    r->key = loop->own->next_key++;
    r->next = loop->own->regions;
    loop->own->regions = r;
    pthread_mutex_unlock(&loop->own->lock);
    *out = (struct trib_region *)r;
    return TRIB_OK;
}

static trib_status_t loop_reg(struct trib_transport *t, void *ptr, size_t len,
                              struct trib_region **out)
{
    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(loop_of(t)->err, TRIB_ERR_INVALID,
                         "cannot register %zu bytes at %p", len, ptr);
    return region_add(loop_of(t), ptr, len, out);
}

static trib_status_t loop_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                                struct trib_region **region_out)
{
    struct loop *loop = loop_of(t);
    void *ptr;

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(loop->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    if (posix_memalign(&ptr, 4096, len) != 0)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes", len);
    memset(ptr, 0, len);
    trib_status_t status = region_add(loop, ptr, len, region_out);
    if (status != TRIB_OK) {
        free(ptr);
        return status;
    }
    ((struct loop_region *)*region_out)->allocated = true;
    *ptr_out = ptr;
    return TRIB_OK;
}

static void loop_dereg(struct trib_transport *t, struct trib_region *region)
{
    struct loop *loop = loop_of(t);
    struct loop_region *r = (struct loop_region *)region;

    if (!r)
        return;
    endpoint_lock(loop->own);
    for (struct loop_region **p = &loop->own->regions; *p; p = &(*p)->next) {
        if (*p == r) {
            *p = r->next;
            break;
        }
    }
    pthread_mutex_unlock(&loop->own->lock);
    if (r->allocated)
        free(r->ptr);
    free(r);
}

static trib_status_t loop_export(struct trib_transport *t, const struct trib_region *region,
                                 struct trib_blob *out)
{
    const struct loop_region *r = (const struct loop_region *)region;
    struct loop_export x = {
        .magic = LOOP_MAGIC,
        .pid = loop_of(t)->me.pid,
        .key = r->key,
        .len = r->len,
    };

    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    memcpy(out->bytes, &x, sizeof(x));
    return TRIB_OK;
}

static trib_status_t loop_import(struct trib_transport *t, int peer,
                                 const struct trib_blob *blob, struct trib_remote **out)
{
    struct loop *loop = loop_of(t);
    struct loop_export x = {0};

    if (peer < 0 || peer >= loop->size || loop->peers[peer].state == LOOP_UNKNOWN)
        return trib_fail(loop->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    if (loop->peers[peer].state != LOOP_CONNECTED)
        return trib_fail(loop->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    if (blob->len == sizeof(x))
        memcpy(&x, blob->bytes, sizeof(x));
    if (x.magic != LOOP_MAGIC || x.pid != loop->me.pid || x.len == 0)
        return trib_fail(loop->err, TRIB_ERR_INVALID,
                         "peer %d: not an exported region of its loop", peer);
    struct loop_remote *r = calloc(1, sizeof(*r));
    if (!r)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "out of memory");
    r->peer = peer;
    r->key = x.key;
    r->len = (size_t)x.len;
    r->next = loop->remotes;
    loop->remotes = r;
    *out = (struct trib_remote *)r;
    return TRIB_OK;
}

static void loop_release(struct trib_transport *t, struct trib_remote *remote)
{
    struct loop *loop = loop_of(t);

    for (struct loop_remote **p = &loop->remotes; *p; p = &(*p)->next) {
        if (*p == (struct loop_remote *)remote) {
            *p = (*p)->next;
            free(remote);
            return;
        }
    }
}

static trib_status_t check_write(struct loop *loop, int peer, const struct trib_write *w)
{
    const struct loop_region *local = (const struct loop_region *)w->local;
    const struct loop_remote *remote = (const struct loop_remote *)w->remote;

    if (w->len == 0)
        return TRIB_OK;
    if (!local || !remote || remote->peer != peer)
        return trib_fail(loop->err, TRIB_ERR_INVALID,
                         "a write to peer %d without a region here and one of its own",
                         peer);
    if (w->local_off > local->len || w->len > local->len - w->local_off ||
        w->remote_off > remote->len || w->len > remote->len - w->remote_off)
        return trib_fail(loop->err, TRIB_ERR_RANGE,
                         "a write of %zu bytes from offset %zu of %zu to offset %zu of %zu",
                         w->len, w->local_off, local->len, w->remote_off, remote->len);
    return TRIB_OK;
}

static trib_status_t loop_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct loop *loop = loop_of(t);

    assert(peer >= 0 && peer < loop->size);
    struct loop_peer *p = &loop->peers[peer];
    if (p->state != LOOP_CONNECTED)
        return p->state == LOOP_UNKNOWN ? TRIB_ERR_INVALID : TRIB_ERR_PEER_LOST;
    trib_status_t status = check_write(loop, peer, write);
    if (status != TRIB_OK)
        return status;
    if (p->tail - p->head >= loop->depth ||
        (write->signal && loop->signals >= LOOP_DONE_SLOTS))
        return TRIB_ERR_NO_RESOURCE;
    p->posted[p->tail++ % loop->depth] = *write;
    loop->signals += write->signal;
    return TRIB_OK;
}

static int take_done(struct loop *loop, struct trib_event *events, int max)
{
    int n = 0;

    while (n < max && loop->done_head != loop->done_tail) {
        const struct loop_done *done = &loop->done[loop->done_head++ % LOOP_DONE_SLOTS];
        events[n].kind = TRIB_EVENT_WRITE_DONE;
        events[n].peer = done->peer;
        events[n].token = done->token;
        n++;
        loop->signals--;
    }
    return n;
}

static int take_arrived(struct loop *loop, struct trib_event *events, int max)
{
    struct loop_endpoint *ep = loop->own;
    int n = 0;

    endpoint_lock(ep);
    for (; n < max && ep->head != ep->tail; n++) {
        const struct loop_entry *e = entry_at(ep, ep->head++);
        ep->senders[e->peer].pending--;
        events[n].kind = TRIB_EVENT_ARRIVED;
        events[n].peer = e->peer;
        events[n].imm = e->imm;
        events[n].len = e->len;
    }
    pthread_mutex_unlock(&ep->lock);
    return n;
}

static bool peer_gone(struct loop *loop, int peer)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;

    if (p->state != LOOP_CONNECTED || peer == loop->self)
        return false;
    if (!p->refused &&
        (atomic_load(&ep->closed) || atomic_load(&ep->senders[loop->self].left)))
        p->refused = "has left";
    if (!p->refused)
        return false;
    endpoint_lock(loop->own);
    bool drained = loop->own->senders[peer].pending == 0;
    pthread_mutex_unlock(&loop->own->lock);
    return drained;
}

static int report_losses(struct loop *loop, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < loop->size && n < max; i++) {
        if (!peer_gone(loop, i))
            continue;
        struct loop_peer *p = &loop->peers[i];
        for (; p->head != p->tail; p->head++)
            loop->signals -= p->posted[p->head % loop->depth].signal;
        p->state = LOOP_LOST;
        events[n].kind = TRIB_EVENT_PEER_LOST;
        events[n].peer = i;
        snprintf(events[n].why, sizeof(events[n].why), "a thread of process %d %s",
                 loop->me.pid, p->refused);
        n++;
    }
    return n;
}

static int loop_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct loop *loop = loop_of(t);
    int n;

    for (int i = 0; i < loop->size; i++)
        push_posted(loop, i);
    n = take_done(loop, events, max);
    n += take_arrived(loop, events + n, max - n);
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

static bool has_backlog(const struct loop *loop)
{
    for (int i = 0; i < loop->size; i++) {
        if (loop->peers[i].head != loop->peers[i].tail)
            return true;
    }
    return false;
}

static void loop_wait(struct trib_transport *t, int timeout_us)
{
    struct loop *loop = loop_of(t);
    struct loop_endpoint *ep = loop->own;
    struct timespec ts;

    if (timeout_us > BACKLOG_WAIT_US && has_backlog(loop))
        timeout_us = BACKLOG_WAIT_US;
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

const struct trib_transport_ops trib_loop_ops = {
    .name = "loop",
    .detail = "threads of one process: queued copies, no direct reach; for tests",
    .open = loop_open,
    .close = loop_close,
    .address = loop_address,
    .connect = loop_connect,
    .disconnect = loop_disconnect,
    .alloc = loop_alloc,
    .reg = loop_reg,
    .dereg = loop_dereg,
    .export_region = loop_export,
    .import_region = loop_import,
    .release = loop_release,
    .map = trib_no_map,
    .write = loop_write,
    .poll = loop_poll,
    .arm = loop_arm,
    .wait = loop_wait,
    .wake = loop_wake,
};
