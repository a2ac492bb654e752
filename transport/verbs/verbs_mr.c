/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: memory. Regions are registered with the adapter and pinned by the kernel.
 *
 * Peers address a region by its iova, which the blob carries (verbs_iova.c). Borrowed
 * regions share the registrations of the cache (verbs_cache.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memlock.h"
#include "base/text.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_cache.h"
#include "transport/verbs/verbs_iova.h"

#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)

enum { BORROW_MIN = 256 << 10 }; /* bytes: copying less costs as little as looking */

static size_t whole_pages(size_t len)
{
    return (len + PAGE - 1) & ~(PAGE - 1);
}

void trib_verbs_pinned_limit(struct trib_transport *t, bool near,
                             struct trib_pinned_limit *out)
{
    struct verbs *v = verbs_of(t);
    struct trib_memlock lock;
    char has[24], holds[24];

    (void)near;
    v->api.memlock(&lock);
    if (lock.limited && trib_verbs_cache_trim(&v->api))
        v->api.memlock(&lock);
    *out = (struct trib_pinned_limit){.bytes = trib_memlock_left(&lock),
                                      .cure = TRIB_MEMLOCK_CURE};
    if (lock.limited)
        snprintf(out->why, sizeof(out->why),
                 "process %d may lock %s of memory and has locked %s", v->local.me.pid,
                 trib_size_format(lock.limit, has), trib_size_format(lock.used, holds));
}

/* Check first: the kernel would only report ENOMEM. */
static trib_status_t check_limit(struct verbs *v, size_t len)
{
    struct trib_memlock lock;
    char has[24], wants[24], holds[24];

    v->api.memlock(&lock);
    if (len > trib_memlock_left(&lock) && trib_verbs_cache_trim(&v->api))
        v->api.memlock(&lock);
    if (len <= trib_memlock_left(&lock))
        return TRIB_OK;
    return trib_fail(
        v->err, TRIB_ERR_NO_MEMORY,
        "verbs: cannot register another %s: this process has locked %s and may lock "
        "%s; " TRIB_MEMLOCK_CURE,
        trib_size_format(len, wants), trib_size_format(lock.used, holds),
        trib_size_format(lock.limit, has));
}

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

/* Make a region. Takes ownership of the mr. */
static trib_status_t add_region(struct verbs *v, struct verbs_region known,
                                struct trib_region **out)
{
    struct verbs_region *region = calloc(1, sizeof(*region));

    assert(known.mr && known.ptr && known.len > 0);
    if (!region) {
        (void)v->api.ibv_dereg_mr(known.mr);
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    *region = known;
    region->lkey = known.mr->lkey;
    LIST_INSERT_HEAD(&v->regions, region, entry);
    *out = (struct trib_region *)region;
    return TRIB_OK;
}

trib_status_t trib_verbs_reg(struct trib_transport *t, void *ptr, size_t len,
                             struct trib_region **out)
{
    struct verbs *v = verbs_of(t);
    char size[24];

    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(v->err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p",
                         len, ptr);
    if (!verbs_is_ours(v))
        return trib_verbs_forked(v);
    trib_status_t status = check_limit(v, whole_pages(len));
    if (status != TRIB_OK)
        return status;
    uint64_t iova;
    const int access = ACCESS | v->relaxed;
    struct ibv_mr *mr = trib_verbs_reg_mr(&v->api, v->pd, ptr, len, access, &iova);
    if (!mr && trib_verbs_cache_trim(&v->api))
        mr = trib_verbs_reg_mr(&v->api, v->pd, ptr, len, access, &iova);
    if (mr)
        return add_region(
            v, (struct verbs_region){.mr = mr, .ptr = ptr, .iova = iova, .len = len},
            out);
    bool memory = errno == ENOMEM || errno == EAGAIN;
    return trib_fail(v->err, memory ? TRIB_ERR_NO_MEMORY : TRIB_ERR_SYSTEM,
                     "verbs: cannot register %s at %p with %s: %m%s",
                     trib_size_format(len, size), ptr, v->label,
                     memory ? trib_verbs_errno_cure(errno)
                            : ": is it mapped and writable?");
}

/* The exporter pins the memory, so the locked-memory limit does not apply. */
trib_status_t trib_verbs_reg_dmabuf(struct trib_transport *t,
                                    const struct trib_dmabuf *d,
                                    struct trib_region **out)
{
    struct verbs *v = verbs_of(t);
    uint64_t at = (uintptr_t)d->ptr;
    char size[24];

    if (!d->ptr || d->len == 0 || d->len > UINTPTR_MAX - at)
        return trib_fail(v->err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p",
                         d->len, d->ptr);
    if (at % PAGE != d->offset % PAGE)
        return trib_fail(
            v->err, TRIB_ERR_INVALID,
            "offset %zu of the dma-buf does not match its mapping at %p: both need the "
            "same offset within a page",
            d->offset, d->ptr);
    if (!verbs_is_ours(v))
        return trib_verbs_forked(v);
    if (!v->api.ibv_reg_dmabuf_mr)
        return trib_fail(v->err, TRIB_ERR_UNSUPPORTED,
                         "verbs: libibverbs cannot register a dma-buf: install "
                         "rdma-core 34 or later");
    const uint64_t iova = trib_verbs_iova(d->ptr, d->len);
    struct ibv_mr *mr =
        v->api.ibv_reg_dmabuf_mr(v->pd, d->offset, d->len, iova, d->fd, ACCESS);
    if (mr)
        return add_region(
            v,
            (struct verbs_region){.mr = mr, .ptr = d->ptr, .iova = iova, .len = d->len},
            out);
    bool never = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPROTONOSUPPORT;
    return trib_fail(v->err, never ? TRIB_ERR_UNSUPPORTED : TRIB_ERR_SYSTEM,
                     "verbs: cannot register %s of the dma-buf %d with %s: %m%s",
                     trib_size_format(d->len, size), d->fd, v->label,
                     never ? "; this device or kernel does not support dma-buf: "
                             "without registration such memory goes through slots"
                           : "");
}

/*
 * Map memory that will be pinned as a whole; MAP_FAILED: none. From 2 MiB on it is
 * aligned to huge pages, which the kernel is asked for: the adapter then translates
 * fewer addresses, and so do the cores. A last, smaller part has small pages.
 */
static void *map_pages(size_t bytes)
{
    const size_t more = bytes < HUGE_PAGE ? 0 : HUGE_PAGE;
    uint8_t *room = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (room == MAP_FAILED || !more)
        return room;
    const size_t before = -(uintptr_t)room % HUGE_PAGE;
    if (before)
        munmap(room, before);
    if (before < more)
        munmap(room + before + bytes, more - before);
    (void)madvise(room + before, bytes, MADV_HUGEPAGE); /* if the kernel allows it */
    return room + before;
}

/* Allocate whole pages: ibv_fork_init may withhold a page from child processes. */
trib_status_t trib_verbs_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                               struct trib_region **region_out)
{
    struct verbs *v = verbs_of(t);
    size_t bytes = whole_pages(len);

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(v->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    void *ptr = map_pages(bytes);
    if (ptr == MAP_FAILED)
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes: %m",
                         len);
    trib_status_t status = trib_verbs_reg(t, ptr, len, region_out);
    if (status != TRIB_OK) {
        munmap(ptr, bytes);
        return status;
    }
    ((struct verbs_region *)*region_out)->mapped = bytes;
    *ptr_out = ptr;
    return TRIB_OK;
}

static struct verbs_cache_owner owner_of(struct verbs *v)
{
    return (struct verbs_cache_owner){.api = &v->api,
                                      .domain = v->domain,
                                      .user = v->cfg,
                                      .most = v->cache_bytes,
                                      .relaxed = v->relaxed};
}

/* broken: writes of peers may be in flight. */
static void unregister(struct verbs *v, struct verbs_region *region, bool broken)
{
    const struct verbs_cache_owner owner = owner_of(v);

    if (region->cached)
        trib_verbs_cache_put(&owner, region->cached, broken && !region->is_closed);
    else
        (void)v->api.ibv_dereg_mr(region->mr);
}

static void forget(struct verbs *v, struct verbs_region *region, bool deregister)
{
    if (deregister)
        unregister(v, region, true);
    LIST_REMOVE(region, entry);
    if (region->mapped)
        munmap(region->ptr, region->mapped);
    free(region);
}

void trib_verbs_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct verbs *v = verbs_of(t);

    if (!opaque)
        return;
    if (verbs_is_ours(v))
        trib_verbs_flush(v); /* the list may name the region */
    forget(v, (struct verbs_region *)opaque, verbs_is_ours(v));
}

static void log_unwatched(struct verbs *v, const char *why)
{
    if (!v->cache_logged)
        trib_log(v->log, TRIB_LOG_INFO, "verbs",
                 "some memory of operations is copied instead of registered: %s", why);
    v->cache_logged = true;
}

trib_status_t trib_verbs_borrow(struct trib_transport *t, void *ptr, size_t len,
                                bool written, struct trib_region **out)
{
    struct verbs *v = verbs_of(t);
    const struct verbs_cache_owner owner = owner_of(v);
    const char *why;

    assert(ptr && len <= UINTPTR_MAX - (uintptr_t)ptr);
    if (len < BORROW_MIN || !v->cache_bytes || !verbs_is_ours(v))
        return TRIB_ERR_UNSUPPORTED;
    struct verbs_cached *c = trib_verbs_cache_get(&owner, ptr, len, written, &why);
    if (why)
        log_unwatched(v, why);
    struct verbs_region *region = c ? calloc(1, sizeof(*region)) : NULL;
    if (c && !region)
        trib_verbs_cache_put(&owner, c, false);
    if (!region)
        return c ? TRIB_ERR_NO_MEMORY : TRIB_ERR_UNSUPPORTED;
    *region =
        (struct verbs_region){.mr = c->mr,
                              .lkey = c->mr->lkey,
                              .ptr = ptr,
                              .iova = c->iova + (uint64_t)((uint8_t *)ptr - c->ptr),
                              .len = len,
                              .cached = c,
                              .is_closed = !written};
    LIST_INSERT_HEAD(&v->regions, region, entry);
    *out = (struct trib_region *)region;
    return TRIB_OK;
}

void trib_verbs_give_back(struct trib_transport *t, struct trib_region *opaque,
                          bool broken)
{
    struct verbs *v = verbs_of(t);
    struct verbs_region *region = (struct verbs_region *)opaque;

    assert(region);
    if (verbs_is_ours(v)) {
        trib_verbs_flush(v); /* the list may name the region */
        unregister(v, region, broken);
    }
    LIST_REMOVE(region, entry);
    free(region);
}

trib_status_t trib_verbs_export(struct trib_transport *t,
                                const struct trib_region *opaque, struct trib_blob *out)
{
    const struct verbs_region *region = (const struct verbs_region *)opaque;
    struct verbs_export x = {.magic = VERBS_MAGIC,
                             .rkey = region->mr->rkey,
                             .key = verbs_of(t)->local.key,
                             .address = region->iova,
                             .len = region->len};

    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    memcpy(out->bytes, &x, sizeof(x));
    return TRIB_OK;
}

trib_status_t trib_verbs_import(struct trib_transport *t, int peer,
                                const struct trib_blob *blob, struct trib_remote **out)
{
    struct verbs *v = verbs_of(t);
    struct verbs_export x = {0};

    const struct trib_peers peers = verbs_peers(v);
    trib_status_t status = trib_peer_check_import(&peers, peer);

    if (status != TRIB_OK)
        return status;
    if (blob->len > TRIB_BLOB_MAX ||
        trib_multirail_nth((struct multirail_bytes){blob->bytes, blob->len},
                           sizeof(uint32_t), v->peers[peer].device, (uint8_t *)&x,
                           sizeof(x)) != sizeof(x))
        memset(&x, 0, sizeof(x));
    if (x.magic != VERBS_MAGIC || x.key != v->peers[peer].key || x.len == 0 ||
        x.len > UINT64_MAX - x.address)
        return trib_fail(v->err, TRIB_ERR_INVALID,
                         "peer %d: not a region exported by verbs", peer);
    struct verbs_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    remote->rkey = x.rkey;
    remote->address = x.address;
    remote->len = (size_t)x.len;
    LIST_INSERT_HEAD(&v->remotes, remote, entry);
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}

void trib_verbs_release(struct trib_transport *t, struct trib_remote *opaque)
{
    struct verbs_remote *remote = (struct verbs_remote *)opaque;

    (void)t;
    if (!remote)
        return;
    LIST_REMOVE(remote, entry);
    free(remote);
}

size_t trib_verbs_length(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    return ((const struct verbs_remote *)remote)->len;
}

void trib_verbs_free_memory(struct verbs *v, bool deregister)
{
    while (!LIST_EMPTY(&v->remotes))
        trib_verbs_release(&v->base, (struct trib_remote *)LIST_FIRST(&v->remotes));
    while (!LIST_EMPTY(&v->regions))
        forget(v, LIST_FIRST(&v->regions), deregister);
}
