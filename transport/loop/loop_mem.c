/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: registered memory, and the copies into it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/loop/loop.h"

static struct loop_region *region_find(struct loop_endpoint *ep, uint64_t key)
{
    struct loop_region *r = ep->regions;

    while (r && r->key != key)
        r = r->next;
    return r;
}

void trib_loop_copy(struct loop_endpoint *ep, struct loop_entry *e)
{
    const struct loop_region *target = e->len ? region_find(ep, e->key) : NULL;

    assert(e->peer >= 0 && (uint32_t)e->peer < ep->size && !e->copied);
    if (target && e->off <= target->len && e->len <= target->len - e->off)
        memcpy(target->ptr + e->off, e->from, e->len);
    else if (e->len)
        atomic_store(&ep->senders[e->peer].refused, 1);
    e->copied = true;
}

/* Copy all pending writes whose source is in [ptr, ptr + len), so the caller may free
 * it. */
static void copy_now(struct loop *loop, int peer, const uint8_t *ptr, size_t len)
{
    struct loop_peer *p = &loop->peers[peer];
    struct loop_endpoint *ep = p->endpoint;

    if (!ep)
        /* never connected; a disconnected peer may still have writes of ours queued */
        return;
    endpoint_lock(ep);
    for (uint64_t i = ep->head; i != ep->tail && !atomic_load(&ep->closed); i++) {
        struct loop_entry *e = entry_at(ep, i);
        bool ours = e->peer == loop->self && e->from >= ptr && e->from < ptr + len;
        if (ours && !e->copied)
            trib_loop_copy(ep, e);
    }
    pthread_mutex_unlock(&ep->lock);
}

static trib_status_t region_add(struct loop *loop, void *ptr, size_t len,
                                struct trib_region **out)
{
    struct loop_region *r = calloc(1, sizeof(*r));

    assert(ptr && len > 0);
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

trib_status_t trib_loop_reg(struct trib_transport *t, void *ptr, size_t len,
                            struct trib_region **out)
{
    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(loop_of(t)->err, TRIB_ERR_INVALID,
                         "cannot register %zu bytes at %p", len, ptr);
    return region_add(loop_of(t), ptr, len, out);
}

trib_status_t trib_loop_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                              struct trib_region **region_out)
{
    struct loop *loop = loop_of(t);
    void *ptr;

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(loop->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes",
                         len);
    if (posix_memalign(&ptr, 4096, len) != 0)
        return trib_fail(loop->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes",
                         len);
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

void trib_loop_dereg(struct trib_transport *t, struct trib_region *region)
{
    struct loop *loop = loop_of(t);
    struct loop_region *r = (struct loop_region *)region;

    if (!r)
        return;
    for (int i = 0; i < loop->size; i++)
        copy_now(loop, i, r->ptr, r->len);
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

trib_status_t trib_loop_export(struct trib_transport *t,
                               const struct trib_region *region, struct trib_blob *out)
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

trib_status_t trib_loop_import(struct trib_transport *t, int peer,
                               const struct trib_blob *blob, struct trib_remote **out)
{
    struct loop *loop = loop_of(t);
    struct loop_export x = {0};

    const struct trib_peers peers = {loop->peers, sizeof(*loop->peers), loop->self,
                                     loop->size, loop->err};
    trib_status_t status = trib_peer_check_import(&peers, peer);

    if (status != TRIB_OK)
        return status;
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

void trib_loop_release(struct trib_transport *t, struct trib_remote *remote)
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

size_t trib_loop_length(struct trib_transport *t, const struct trib_remote *remote)
{
    assert(remote);
    (void)t;
    return ((const struct loop_remote *)remote)->len;
}

void trib_loop_close_memory(struct loop *loop)
{
    for (struct loop_region *r = loop->own->regions; r; r = r->next) {
        for (int i = 0; i < loop->size; i++)
            copy_now(loop, i, r->ptr, r->len);
    }
    endpoint_lock(loop->own);
    atomic_store(&loop->own->closed, 1);
    while (loop->own->regions) {
        struct loop_region *r = loop->own->regions;
        loop->own->regions = r->next;
        if (r->allocated)
            free(r->ptr);
        free(r);
    }
    pthread_mutex_unlock(&loop->own->lock);
    while (loop->remotes) {
        struct loop_remote *r = loop->remotes;
        loop->remotes = r->next;
        free(r);
    }
}
