/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auto: memory. A region is registered with every inner transport in use. An exported
 * blob has a record for each.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "transport/auto/auto.h"

/* Return the limit of the first choice for each kind of pair. caps() tells later
 * whether all ranks share this choice. */
void trib_auto_pinned_limit(struct trib_transport *t, bool near,
                            struct trib_pinned_limit *out)
{
    struct auto_transport *c = auto_of(t);
    uint16_t kinds[] = {c->near, c->far};

    *out = (struct trib_pinned_limit){.bytes = SIZE_MAX};
    for (int kind = 0; kind < (near ? 1 : 2); kind++) {
        int i = 0;
        while (i < c->n_inners &&
               !(c->inners[i].t && (kinds[kind] & auto_bit(&c->inners[i]))))
            i++;
        if (i == c->n_inners)
            continue;
        struct trib_pinned_limit room;
        c->inners[i].t->ops->pinned_limit(c->inners[i].t, near, &room);
        if (room.bytes < out->bytes)
            *out = room;
    }
}

static void region_drop(struct auto_region *r)
{
    LIST_REMOVE(r, entry);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

void trib_auto_release_pages(struct trib_transport *t, struct trib_region *opaque)
{
    struct auto_transport *c = auto_of(t);
    struct auto_region *r = (struct auto_region *)opaque;

    if (r->owner >= 0)
        c->inners[r->owner].t->ops->release_pages(c->inners[r->owner].t,
                                                  r->inner[r->owner]);
}

/* The owner's registration goes last, because it frees the memory. */
void trib_auto_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct auto_transport *c = auto_of(t);
    struct auto_region *r = (struct auto_region *)opaque;

    if (!r)
        return;
    for (int i = 0; i < c->n_inners; i++) {
        if (r->inner[i] && i != r->owner)
            c->inners[i].t->ops->dereg(c->inners[i].t, r->inner[i]);
    }
    if (r->owner >= 0)
        c->inners[r->owner].t->ops->dereg(c->inners[r->owner].t, r->inner[r->owner]);
    region_drop(r);
}

/* Return true if a failed registration is acceptable. That holds if another inner
 * reaches the memory, or for user memory, which is then copied. Routes of peers do not
 * change for user memory. */
static bool do_without(struct auto_transport *c, const struct auto_region *r, int i)
{
    struct auto_inner *inner = &c->inners[i];

    assert(inner->t);
    if (inner->row->cheap || inner->row->maps)
        return false;
    if (r->callers) {
        if (!inner->poor[0] && !inner->memory_logged)
            trib_log(c->log, TRIB_LOG_WARN, TRIB_AUTO,
                     "registered memory is copied on its way over %s: %s",
                     inner->row->ops->name, c->inner_err.text);
        inner->memory_logged = true;
    } else if (!inner->poor[0]) {
        snprintf(inner->poor, sizeof(inner->poor), "%s",
                 trib_error_text(&c->inner_err));
        trib_log(c->log, TRIB_LOG_WARN, TRIB_AUTO,
                 "falling back to the next transport for each peer that has one: %s",
                 c->inner_err.text);
    }
    return true;
}

static trib_status_t register_one(const struct auto_region *r, struct trib_transport *t,
                                  struct trib_region **out)
{
    struct trib_dmabuf d = {r->fd, r->fd_offset, r->ptr, r->len};

    return r->fd >= 0 ? t->ops->reg_dmabuf(t, &d, out)
                      : t->ops->reg(t, r->ptr, r->len, out);
}

/* Register with all inners in use that can. On error the caller deregisters all. */
static trib_status_t register_all(struct auto_transport *c, struct auto_region *r)
{
    trib_status_t refused = TRIB_OK;
    bool reached = false;

    for (int i = 0; i < c->n_inners; i++) {
        struct trib_transport *t = c->inners[i].t;
        if (trib_auto_in_use(c, i) && !r->inner[i]) {
            trib_status_t status = register_one(r, t, &r->inner[i]);
            if (status != TRIB_OK) {
                r->inner[i] = NULL;
                refused = status;
                if (!do_without(c, r, i))
                    return trib_auto_pass_error(c, status);
            }
        }
        reached |= r->inner[i] != NULL;
    }
    if (!reached && refused != TRIB_OK)
        return trib_auto_pass_error(c, refused);
    trib_error_clear(&c->inner_err);
    return TRIB_OK;
}

static struct auto_region *region_make(struct auto_transport *c)
{
    struct auto_region *r = calloc(1, sizeof(*r));

    if (!r) {
        trib_fail(c->err, TRIB_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    r->owner = -1;
    r->fd = -1;
    LIST_INSERT_HEAD(&c->regions, r, entry);
    return r;
}

/* Keep a duplicate of the descriptor: another inner may need it later
 * (trib_auto_local_region). */
trib_status_t trib_auto_reg_dmabuf(struct trib_transport *t,
                                   const struct trib_dmabuf *d,
                                   struct trib_region **out)
{
    struct auto_transport *c = auto_of(t);
    struct auto_region *r = region_make(c);

    if (!r)
        return TRIB_ERR_NO_MEMORY;
    r->ptr = d->ptr;
    r->len = d->len;
    r->callers = true;
    r->fd_offset = d->offset;
    r->fd = d->fd >= 0 ? fcntl(d->fd, F_DUPFD_CLOEXEC, 3) : -1;
    trib_status_t status = d->fd >= 0 && r->fd < 0
                               ? trib_fail(c->err, TRIB_ERR_SYSTEM,
                                           "cannot duplicate descriptor %d: %m", d->fd)
                               : register_all(c, r);
    if (status != TRIB_OK) {
        trib_auto_dereg(t, (struct trib_region *)r);
        return status;
    }
    *out = (struct trib_region *)r;
    return TRIB_OK;
}

trib_status_t trib_auto_reg(struct trib_transport *t, void *ptr, size_t len,
                            struct trib_region **out)
{
    struct trib_dmabuf plain = {.fd = -1, .ptr = ptr, .len = len};

    return trib_auto_reg_dmabuf(t, &plain, out);
}

void trib_auto_give_back(struct trib_transport *t, struct trib_region *opaque,
                         bool broken)
{
    struct auto_transport *c = auto_of(t);
    struct auto_region *r = (struct auto_region *)opaque;

    for (int i = 0; i < c->n_inners; i++)
        if (r->inner[i])
            c->inners[i].t->ops->give_back(c->inners[i].t, r->inner[i], broken);
    region_drop(r);
}

/* Borrow through all inners, or through none. Inners that map memory need no region. */
trib_status_t trib_auto_borrow(struct trib_transport *t, void *ptr, size_t len,
                               bool written, struct trib_region **out)
{
    struct auto_transport *c = auto_of(t);
    trib_status_t status = TRIB_OK;
    int borrowed = 0;

    for (int i = 0; i < c->n_inners; i++)
        if (trib_auto_in_use(c, i) && !c->inners[i].row->maps &&
            !c->inners[i].t->ops->borrow)
            return TRIB_ERR_UNSUPPORTED;
    struct auto_region *r = region_make(c);
    if (!r)
        return TRIB_ERR_NO_MEMORY;
    r->callers = true;
    r->ptr = ptr;
    r->len = len;
    for (int i = 0; status == TRIB_OK && i < c->n_inners; i++) {
        struct trib_transport *inner = c->inners[i].t;
        if (!trib_auto_in_use(c, i) || c->inners[i].row->maps)
            continue;
        status = inner->ops->borrow(inner, ptr, len, written, &r->inner[i]);
        if (status != TRIB_OK)
            r->inner[i] = NULL;
        borrowed += status == TRIB_OK;
    }
    if (status == TRIB_OK && borrowed) {
        *out = (struct trib_region *)r;
        return TRIB_OK;
    }
    trib_auto_give_back(t, (struct trib_region *)r, false);
    trib_error_clear(&c->inner_err);
    return TRIB_ERR_UNSUPPORTED;
}

/* Allocate through the cheapest inner in use: mappable memory can also be registered
 * with all others. */
static trib_status_t alloc_owned(struct auto_transport *c, struct auto_region *r,
                                 size_t len, void **ptr_out)
{
    trib_status_t status = TRIB_ERR_NO_MEMORY;

    assert(r->owner < 0);
    for (int i = 0; i < c->n_inners; i++) {
        struct trib_transport *t = c->inners[i].t;
        if (!trib_auto_in_use(c, i))
            continue;
        trib_error_clear(&c->inner_err);
        status = (r->callers ? t->ops->alloc_user : t->ops->alloc)(t, len, ptr_out,
                                                                   &r->inner[i]);
        if (status == TRIB_OK)
            r->owner = i;
        if (status != TRIB_OK)
            r->inner[i] = NULL;
        if (status == TRIB_OK || !do_without(c, r, i))
            break;
    }
    return status;
}

static trib_status_t alloc_for(struct trib_transport *t, bool callers, size_t len,
                               void **ptr_out, struct trib_region **region_out)
{
    struct auto_transport *c = auto_of(t);
    struct auto_region *r = region_make(c);
    void *ptr;

    if (!r)
        return TRIB_ERR_NO_MEMORY;
    r->callers = callers;
    trib_status_t status = alloc_owned(c, r, len, &ptr);
    if (status != TRIB_OK) {
        region_drop(r);
        return trib_auto_pass_error(c, status);
    }
    r->ptr = ptr;
    r->len = len;
    status = register_all(c, r);
    if (status != TRIB_OK) {
        trib_auto_dereg(t, (struct trib_region *)r);
        return status;
    }
    *ptr_out = ptr;
    *region_out = (struct trib_region *)r;
    return TRIB_OK;
}

trib_status_t trib_auto_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                              struct trib_region **region_out)
{
    return alloc_for(t, false, len, ptr_out, region_out);
}

trib_status_t trib_auto_alloc_user(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out)
{
    return alloc_for(t, true, len, ptr_out, region_out);
}

struct trib_region *trib_auto_local_region(struct auto_transport *c,
                                           const struct trib_region *opaque, int inner)
{
    /* The region is const for the caller, but its registrations are not. */
    struct auto_region *r = (struct auto_region *)(uintptr_t)opaque;
    struct trib_transport *t = c->inners[inner].t;

    if (!r->inner[inner] && register_one(r, t, &r->inner[inner]) != TRIB_OK) {
        r->inner[inner] = NULL;
        (void)do_without(c, r, inner);
    }
    return r->inner[inner];
}

trib_status_t trib_auto_export(struct trib_transport *t,
                               const struct trib_region *opaque, struct trib_blob *out)
{
    struct auto_transport *c = auto_of(t);
    const struct auto_region *r = (const struct auto_region *)opaque;
    uint32_t magic = AUTO_MAGIC;
    size_t at = sizeof(magic);

    memset(out, 0, sizeof(*out));
    memcpy(out->bytes, &magic, sizeof(magic));
    if (r->callers)
        (void)trib_auto_put(out->bytes, sizeof(out->bytes), &at, AUTO_USERS, out->bytes,
                            0);
    for (int i = 0; i < c->n_inners; i++) {
        const struct auto_inner *inner = &c->inners[i];
        struct trib_blob b;
        if (!r->inner[i])
            continue;
        trib_status_t status = inner->t->ops->export_region(inner->t, r->inner[i], &b);
        if (status != TRIB_OK)
            return trib_auto_pass_error(c, status);
        out->mappable |= b.mappable;
        if (!trib_auto_put(out->bytes, sizeof(out->bytes), &at, inner->row->id, b.bytes,
                           b.len))
            return trib_fail(c->err, TRIB_ERR_OVERFLOW,
                             "the regions of %d transports do not fit into %d bytes",
                             c->n_inners, TRIB_BLOB_MAX);
    }
    out->len = (uint16_t)at;
    return TRIB_OK;
}

static const uint8_t *record_of(const struct trib_blob *blob, int id, size_t *len_out)
{
    uint32_t magic = 0;

    if (blob->len >= sizeof(magic) && blob->len <= TRIB_BLOB_MAX)
        memcpy(&magic, blob->bytes, sizeof(magic));
    return magic == AUTO_MAGIC
               ? trib_auto_get(blob->bytes, blob->len, sizeof(magic), id, len_out)
               : NULL;
}

/* Extract an inner's part of a blob. Return false if there is none. */
static bool part_of(const struct auto_inner *inner, const struct trib_blob *blob,
                    struct trib_blob *out)
{
    size_t len = 0;
    const uint8_t *bytes = record_of(blob, inner->row->id, &len);

    memset(out, 0, sizeof(*out));
    if (!bytes)
        return false;
    out->len = (uint16_t)len;
    out->mappable = blob->mappable;
    memcpy(out->bytes, bytes, len);
    return true;
}

/* Return true if the region is registered with another choice of the peer's, and worth
 * a move. */
static bool has_other_part(const struct auto_transport *c, int peer,
                           const struct trib_blob *blob)
{
    struct trib_blob part;
    bool has = false;
    size_t len;

    if (record_of(blob, AUTO_USERS, &len))
        return false;
    for (int i = 0; i < c->n_inners && !c->peers[peer].wrote; i++)
        has |= c->inners[i].t && (c->peers[peer].choices & auto_bit(&c->inners[i])) &&
               part_of(&c->inners[i], blob, &part);
    return has;
}

static trib_status_t import_part(struct auto_transport *c, int peer,
                                 const struct trib_blob *blob, struct auto_remote *out)
{
    const struct auto_inner *inner = &c->inners[c->peers[peer].inner];
    struct trib_blob part;

    assert(inner->t);
    out->inner = c->peers[peer].inner;
    out->remote = NULL;
    if (!part_of(inner, blob, &part))
        return trib_fail(c->err, TRIB_ERR_INVALID,
                         "peer %d: not a region exported for %s", peer,
                         inner->row->ops->name);
    trib_status_t status =
        trib_transport_import(inner->t, peer, &part, out->len, &out->remote);
    if (status == TRIB_OK && !out->len)
        out->len = inner->t->ops->length(inner->t, out->remote);
    return trib_auto_pass_error(c, status);
}

static void keep_blob(struct auto_remote *remote, const struct trib_blob *blob)
{
    remote->blob = malloc(sizeof(*blob)); /* on failure it cannot move; moving then
                                           * reports an error */
    if (remote->blob)
        *remote->blob = *blob;
}

/* Import all regions of a peer again after its inner has changed. */
static trib_status_t import_again(struct auto_transport *c, int peer)
{
    trib_status_t status = TRIB_OK;
    struct auto_remote *r;

    LIST_FOREACH(r, &c->remotes, entry)
    {
        if (r->peer != peer || status != TRIB_OK)
            continue;
        struct trib_transport *old = c->inners[r->inner].t;
        old->ops->release(old, r->remote);
        r->remote = NULL;
        status = r->blob ? import_part(c, peer, r->blob, r)
                         : trib_fail(c->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    return status;
}

trib_status_t trib_auto_move(struct auto_transport *c, int peer, trib_status_t reason,
                             const char *why)
{
    const trib_status_t status = trib_auto_connect_next(c, peer, reason, why);

    return status == TRIB_OK ? import_again(c, peer) : status;
}

trib_status_t trib_auto_import(struct trib_transport *t, int peer,
                               const struct trib_blob *blob, struct trib_remote **out)
{
    struct auto_transport *c = auto_of(t);
    trib_status_t status = TRIB_OK;
    struct trib_blob part;

    if (peer < 0 || peer >= c->size || c->peers[peer].state == AUTO_PEER_UNKNOWN)
        return trib_fail(c->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    const struct auto_peer *p = &c->peers[peer];
    if (p->state != AUTO_PEER_CONNECTED)
        return trib_fail(c->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    while (status == TRIB_OK && !part_of(&c->inners[p->inner], blob, &part) &&
           has_other_part(c, peer, blob))
        status = trib_auto_move(c, peer, TRIB_ERR_UNSUPPORTED,
                                "the peer could not register its memory: see its log");
    if (status != TRIB_OK)
        return status;
    struct auto_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(c->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    status = import_part(c, peer, blob, remote);
    if (status != TRIB_OK) {
        free(remote);
        return status;
    }
    if (p->address && !p->wrote)
        keep_blob(remote, blob);
    LIST_INSERT_HEAD(&c->remotes, remote, entry);
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}

void trib_auto_fix_choice(struct auto_transport *c, int peer)
{
    struct auto_peer *p = &c->peers[peer];
    struct auto_remote *r;

    assert(!p->wrote);
    p->wrote = true;
    if (!p->address)
        return;
    free(p->address);
    p->address = NULL;
    LIST_FOREACH(r, &c->remotes, entry)
    {
        if (r->peer != peer)
            continue;
        free(r->blob);
        r->blob = NULL;
    }
}

void trib_auto_release(struct trib_transport *t, struct trib_remote *opaque)
{
    struct auto_transport *c = auto_of(t);
    struct auto_remote *remote = (struct auto_remote *)opaque;

    if (!remote)
        return;
    struct trib_transport *inner = c->inners[remote->inner].t;
    inner->ops->release(inner, remote->remote);
    LIST_REMOVE(remote, entry);
    free(remote->blob);
    free(remote);
}

size_t trib_auto_length(struct trib_transport *t, const struct trib_remote *opaque)
{
    (void)t;
    return ((const struct auto_remote *)opaque)->len;
}

bool trib_auto_stale(struct trib_transport *t, const struct trib_remote *opaque)
{
    const struct auto_remote *remote = (const struct auto_remote *)opaque;
    struct trib_transport *inner = auto_of(t)->inners[remote->inner].t;

    return remote->remote && inner->ops->stale(inner, remote->remote);
}

void *trib_auto_map(struct trib_transport *t, const struct trib_remote *opaque,
                    size_t *len_out)
{
    const struct auto_remote *remote = (const struct auto_remote *)opaque;
    struct trib_transport *inner = auto_of(t)->inners[remote->inner].t;

    if (!remote->remote)
        return trib_no_map(t, opaque, len_out);
    return inner->ops->map(inner, remote->remote, len_out);
}

void trib_auto_close_inner(struct auto_transport *c, int i, const char *why)
{
    struct auto_inner *inner = &c->inners[i];
    struct auto_region *r;

    assert(inner->t);
    LIST_FOREACH(r, &c->regions, entry)
    {
        if (r->owner == i)
            return;
    }
    LIST_FOREACH(r, &c->regions, entry)
    {
        if (r->inner[i])
            inner->t->ops->dereg(inner->t, r->inner[i]);
        r->inner[i] = NULL;
    }
    inner->t->ops->close(inner->t);
    inner->t = NULL;
    snprintf(inner->why, sizeof(inner->why), "%s", why);
}

void trib_auto_free_memory(struct auto_transport *c)
{
    while (!LIST_EMPTY(&c->regions))
        region_drop(LIST_FIRST(&c->regions));
    while (!LIST_EMPTY(&c->remotes)) {
        struct auto_remote *remote = LIST_FIRST(&c->remotes);
        LIST_REMOVE(remote, entry);
        free(remote->blob);
        free(remote);
    }
}
