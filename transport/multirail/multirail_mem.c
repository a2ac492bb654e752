/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: memory. A region is registered with every inner transport.
 */
#include <assert.h>
#include <stdlib.h>

#include "transport/multirail/multirail.h"

/* Mark pending writes from or to this memory: they can no longer be repeated. */
static void spoil(struct multirail *r, const void *gone)
{
    assert(gone);
    for (int i = 0; i < r->size; i++) {
        struct multirail_peer *p = &r->peers[i];
        for (uint64_t at = p->head; p->log && at != p->tail; at++) {
            struct multirail_entry *e = &p->log[at % MULTIRAIL_LOG];
            if (e->w.len && (e->w.local == gone || e->w.remote == gone))
                e->spoilt = true;
        }
    }
}

static void forget(struct multirail_region *region)
{
    LIST_REMOVE(region, entry);
    free(region);
}

static struct multirail_region *make(struct multirail *r)
{
    struct multirail_region *region = calloc(1, sizeof(*region));

    if (!region) {
        trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    LIST_INSERT_HEAD(&r->regions, region, entry);
    return region;
}

/* Rail 0 is deregistered last: it frees the memory if it allocated it. */
void trib_multirail_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct multirail *r = multirail_of(t);
    struct multirail_region *region = (struct multirail_region *)opaque;

    if (!region)
        return;
    spoil(r, region);
    for (int i = r->n - 1; i >= 0; i--) {
        if (region->inner[i])
            r->inner[i]->ops->dereg(r->inner[i], region->inner[i]);
    }
    forget(region);
}

/* Borrow through all rails, or through none. */
trib_status_t trib_multirail_borrow(struct trib_transport *t, void *ptr, size_t len,
                                    bool written, struct trib_region **out)
{
    struct multirail *r = multirail_of(t);
    struct multirail_region *region = NULL;
    trib_status_t status = TRIB_OK;

    for (int i = 0; i < r->n; i++) {
        if (!r->inner[i]->ops->borrow)
            return TRIB_ERR_UNSUPPORTED;
    }
    region = make(r);
    if (!region)
        return TRIB_ERR_NO_MEMORY;
    region->ptr = ptr;
    region->len = len;
    /* Try all: some borrow memory only if they were asked before. */
    for (int i = 0; i < r->n; i++) {
        const trib_status_t one =
            r->inner[i]->ops->borrow(r->inner[i], ptr, len, written, &region->inner[i]);
        if (one == TRIB_OK)
            continue;
        region->inner[i] = NULL;
        trib_error_clear(&r->inner_err[i]);
        status = one;
    }
    *out = (struct trib_region *)region;
    if (status != TRIB_OK)
        trib_multirail_give_back(t, *out, false);
    return status;
}

void trib_multirail_give_back(struct trib_transport *t, struct trib_region *opaque,
                              bool broken)
{
    struct multirail *r = multirail_of(t);
    struct multirail_region *region = (struct multirail_region *)opaque;

    assert(region);
    spoil(r, region);
    for (int i = 0; i < r->n; i++) {
        if (region->inner[i])
            r->inner[i]->ops->give_back(r->inner[i], region->inner[i], broken);
    }
    forget(region);
}

/* Each device pins the memory separately. */
void trib_multirail_pinned_limit(struct trib_transport *t, bool near,
                                 struct trib_pinned_limit *out)
{
    struct multirail *r = multirail_of(t);

    r->inner[0]->ops->pinned_limit(r->inner[0], near, out);
    if (out->bytes != SIZE_MAX)
        out->bytes /= (size_t)r->n;
}

/* Register from rail `first` on; dmabuf may be NULL. On error the region is freed. */
static trib_status_t register_from(struct multirail *r, struct multirail_region *region,
                                   int first, const struct trib_dmabuf *dmabuf)
{
    assert(first >= 0 && first <= r->n);
    for (int i = first; i < r->n; i++) {
        struct trib_transport *t = r->inner[i];
        trib_status_t status =
            dmabuf ? t->ops->reg_dmabuf(t, dmabuf, &region->inner[i])
                   : t->ops->reg(t, region->ptr, region->len, &region->inner[i]);
        if (status != TRIB_OK) {
            region->inner[i] = NULL;
            trib_multirail_dereg(&r->base, (struct trib_region *)region);
            return trib_multirail_take_error(r, i, status);
        }
    }
    return TRIB_OK;
}

static trib_status_t register_all(struct multirail *r, void *ptr, size_t len,
                                  const struct trib_dmabuf *dmabuf,
                                  struct trib_region **out)
{
    struct multirail_region *region = make(r);

    if (!region)
        return TRIB_ERR_NO_MEMORY;
    region->ptr = ptr;
    region->len = len;
    *out = (struct trib_region *)region;
    return register_from(r, region, 0, dmabuf);
}

trib_status_t trib_multirail_reg(struct trib_transport *t, void *ptr, size_t len,
                                 struct trib_region **out)
{
    return register_all(multirail_of(t), ptr, len, NULL, out);
}

trib_status_t trib_multirail_reg_dmabuf(struct trib_transport *t,
                                        const struct trib_dmabuf *d,
                                        struct trib_region **out)
{
    return register_all(multirail_of(t), d->ptr, d->len, d, out);
}

trib_status_t trib_multirail_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out)
{
    struct multirail *r = multirail_of(t);
    struct multirail_region *region = make(r);
    void *ptr;

    if (!region)
        return TRIB_ERR_NO_MEMORY;
    trib_status_t status =
        r->inner[0]->ops->alloc(r->inner[0], len, &ptr, &region->inner[0]);
    if (status != TRIB_OK) {
        forget(region);
        return trib_multirail_take_error(r, 0, status);
    }
    region->ptr = ptr;
    region->len = len;
    status = register_from(r, region, 1, NULL);
    if (status != TRIB_OK)
        return status;
    *ptr_out = ptr;
    *region_out = (struct trib_region *)region;
    return TRIB_OK;
}

void trib_multirail_release(struct trib_transport *t, struct trib_remote *opaque)
{
    struct multirail *r = multirail_of(t);
    struct multirail_remote *remote = (struct multirail_remote *)opaque;

    if (!remote)
        return;
    spoil(r, remote);
    for (int k = 0; k < r->peers[remote->peer].n; k++) {
        if (!remote->rail[k])
            continue;
        struct trib_transport *inner = r->inner[r->peers[remote->peer].rails[k].inner];
        inner->ops->release(inner, remote->rail[k]);
    }
    LIST_REMOVE(remote, entry);
    free(remote->later);
    free(remote);
}

/* Return the smallest length, because any rail may carry the next write. If all rails
 * are lost, return SIZE_MAX: nothing is written, and the loss will be reported instead
 * of a range error. */
size_t trib_multirail_length(struct trib_transport *t, const struct trib_remote *opaque)
{
    struct multirail *r = multirail_of(t);
    const struct multirail_remote *remote = (const struct multirail_remote *)opaque;
    size_t least = SIZE_MAX;

    assert(remote->peer >= 0 && remote->peer < r->size);
    for (int k = 0; k < r->peers[remote->peer].n; k++) {
        if (!remote->rail[k])
            continue;
        struct trib_transport *inner = r->inner[r->peers[remote->peer].rails[k].inner];
        const size_t len = inner->ops->length(inner, remote->rail[k]);
        least = len < least ? len : least;
    }
    return least;
}

/* Free this transport's records; the inner transports free their own. */
void trib_multirail_free_memory(struct multirail *r)
{
    while (!LIST_EMPTY(&r->regions))
        forget(LIST_FIRST(&r->regions));
    while (!LIST_EMPTY(&r->remotes)) {
        struct multirail_remote *remote = LIST_FIRST(&r->remotes);
        LIST_REMOVE(remote, entry);
        free(remote->later);
        free(remote);
    }
}
