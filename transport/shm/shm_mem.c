/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm: memory. This rank's memory comes from segments that peers map. Other memory is
 * reached by process_vm_writev, or directly by a thread of the same process.
 *
 * A peer describes its memory as a segment and an offset, which are checked against the
 * mapping. Memory outside all segments has an address, used only by process_vm_writev
 * and only between peers that trust each other. A thread of the same process finds such
 * memory by a key in the process's table (own_memory.h).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "transport/common/guard.h"
#include "transport/common/own_memory.h"
#include "transport/shm/shm.h"

#define ARENA_SHARE (TRIB_SHM_ARENA_LEN / 8)
#define PAGE ((size_t)4096)

static void owned_put(struct shm *shm, struct shm_owned *owned)
{
    assert(owned->refs > 0);
    if (--owned->refs > 0)
        return;
    for (struct shm_owned **p = &shm->owned; *p; p = &(*p)->next) {
        if (*p == owned) {
            *p = owned->next;
            break;
        }
    }
    trib_handout_remove(shm->handout, owned->seg.key);
    trib_segment_release(&owned->seg, false);
    free(owned);
}

/* Create a new segment with one reference. */
static trib_status_t owned_make(struct shm *shm, size_t len, struct shm_owned **out)
{
    struct shm_owned *owned = calloc(1, sizeof(*owned));

    if (!owned)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_status_t status = trib_segment_create(len, &owned->seg, shm->err);
    if (status != TRIB_OK) {
        free(owned);
        return status;
    }
    status = trib_handout_add(shm->handout, owned->seg.key,
                              (struct trib_handout_fds){owned->seg.fd, -1});
    if (status != TRIB_OK) {
        trib_segment_release(&owned->seg, false);
        free(owned);
        return trib_fail(shm->err, status, "out of memory");
    }
    owned->refs = 1;
    owned->next = shm->owned;
    shm->owned = owned;
    *out = owned;
    return TRIB_OK;
}

static trib_status_t arena_find(struct shm *shm, size_t len, struct shm_owned **out)
{
    struct shm_owned *fresh;

    assert(len > 0 && len <= TRIB_SHM_ARENA_LEN);
    if (!shm->arena || shm->arena->seg.len - shm->arena->used < len) {
        trib_status_t status = owned_make(shm, TRIB_SHM_ARENA_LEN, &fresh);
        if (status != TRIB_OK)
            return status;
        if (shm->arena)
            owned_put(shm, shm->arena);
        shm->arena = fresh;
    }
    shm->arena->refs++;
    *out = shm->arena;
    return TRIB_OK;
}

static void region_free(struct shm_region *region)
{
    if (region->key)
        (void)trib_own_memory_leave(region->key);
    if (region->private_len)
        munmap(region->ptr, region->private_len);
    free(region);
}

static void region_link(struct shm *shm, struct shm_region *region)
{
    LIST_INSERT_HEAD(&shm->regions, region, entry);
}

/* Add memory outside all segments to the table, for ranks that are threads of this
 * process. */
static trib_status_t region_publish(struct shm *shm, struct shm_region *region)
{
    uint64_t key;
    trib_status_t status = trib_own_memory_key(&key, shm->err);

    assert(!region->owned && !region->key);
    if (status == TRIB_OK)
        status = trib_own_memory_add(key, region->ptr, region->len, shm->err);
    if (status == TRIB_OK)
        region->key = key;
    return status;
}

trib_status_t trib_shm_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                             struct trib_region **region_out)
{
    struct shm *shm = shm_of(t);
    struct shm_owned *owned;
    trib_status_t status;

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(shm->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    struct shm_region *region = calloc(1, sizeof(*region));
    if (!region)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    size_t room = (len + PAGE - 1) / PAGE * PAGE;
    status = room <= ARENA_SHARE ? arena_find(shm, room, &owned)
                                 : owned_make(shm, room, &owned);
    if (status != TRIB_OK) {
        free(region);
        return status;
    }
    region->ptr = owned->seg.base + owned->used;
    region->len = len;
    region->owned = owned;
    region->allocated = true;
    owned->used += room;
    region_link(shm, region);
    *ptr_out = region->ptr;
    *region_out = (struct trib_region *)region;
    return TRIB_OK;
}

/* Allocate private memory and register it as reg() does: peers reach it by
 * process_vm_writev, or through slots. */
static trib_status_t alloc_private(struct shm *shm, size_t len, struct shm_region **out)
{
    size_t room = (len + PAGE - 1) / PAGE * PAGE;
    struct shm_region *region = calloc(1, sizeof(*region));
    void *ptr =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!region || ptr == MAP_FAILED) {
        trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes: %m", len);
        if (ptr != MAP_FAILED)
            munmap(ptr, room);
        free(region);
        return TRIB_ERR_NO_MEMORY;
    }
    region->ptr = ptr;
    region->len = len;
    region->allocated = true;
    region->private_len = room;
    trib_status_t status = region_publish(shm, region);
    if (status != TRIB_OK) {
        region_free(region);
        return status;
    }
    region_link(shm, region);
    *out = region;
    return TRIB_OK;
}

/* If ulimit -f forbids shared memory, user data can do without it; slots cannot. */
trib_status_t trib_shm_alloc_user(struct trib_transport *t, size_t len, void **ptr_out,
                                  struct trib_region **region_out)
{
    struct shm *shm = shm_of(t);
    struct shm_region *region;
    struct trib_error why = {0};

    if (len == 0 || len > SIZE_MAX / 4 || trib_segment_check(len, &why) == TRIB_OK)
        return trib_shm_alloc(t, len, ptr_out, region_out);
    if (!shm->private_logged)
        trib_log(shm->log, TRIB_LOG_WARN, SHM_NAME,
                 "memory of trib_alloc is not shared, so its data is copied: %s",
                 why.text);
    shm->private_logged = true;
    trib_status_t status = alloc_private(shm, len, &region);
    if (status != TRIB_OK)
        return status;
    *ptr_out = region->ptr;
    *region_out = (struct trib_region *)region;
    return TRIB_OK;
}

static bool inside(const struct trib_segment *seg, const uint8_t *ptr, size_t len)
{
    uintptr_t base = (uintptr_t)seg->base, p = (uintptr_t)ptr;

    return p >= base && p - base <= seg->len && len <= seg->len - (p - base);
}

trib_status_t trib_shm_reg(struct trib_transport *t, void *ptr, size_t len,
                           struct trib_region **out)
{
    struct shm *shm = shm_of(t);

    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(shm->err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p",
                         len, ptr);
    struct shm_region *region = calloc(1, sizeof(*region));
    if (!region)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    region->ptr = ptr;
    region->len = len;
    for (struct shm_owned *o = shm->owned; o; o = o->next) {
        if (inside(&o->seg, ptr, len)) {
            region->owned = o;
            o->refs++;
            break;
        }
    }
    trib_status_t status = region->owned ? TRIB_OK : region_publish(shm, region);
    if (status != TRIB_OK) {
        region_free(region);
        return status;
    }
    region_link(shm, region);
    *out = (struct trib_region *)region;
    return TRIB_OK;
}

/* Peers map a segment until they release it, and an arena lives on. So neither closing
 * nor unmapping it here would free a page. */
void trib_shm_release_pages(struct trib_transport *t, struct trib_region *opaque)
{
    const struct shm_region *region = (const struct shm_region *)opaque;

    (void)t;
    if (region->allocated)
        madvise(region->ptr, (region->len + PAGE - 1) / PAGE * PAGE,
                region->private_len ? MADV_DONTNEED : MADV_REMOVE);
}

void trib_shm_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct shm *shm = shm_of(t);
    struct shm_region *region = (struct shm_region *)opaque;

    if (!region)
        return;
    LIST_REMOVE(region, entry);
    if (region->owned)
        owned_put(shm, region->owned);
    region_free(region);
}

trib_status_t trib_shm_export(struct trib_transport *t,
                              const struct trib_region *opaque, struct trib_blob *out)
{
    struct shm *shm = shm_of(t);
    const struct shm_region *region = (const struct shm_region *)opaque;
    struct trib_shm_export x = {
        .magic = TRIB_SHM_EXPORT_MAGIC,
        .kind = TRIB_SHM_FOREIGN,
        .pid = shm->me.pid,
        .fd = -1,
        .key = region->key,
        .addr = region->owned || shm->guard ? 0 : (uintptr_t)region->ptr,
        .len = region->len,
    };

    if (region->owned) {
        struct trib_segment_id id = trib_segment_id(&region->owned->seg);
        x.kind = TRIB_SHM_MAPPABLE;
        x.fd = id.fd;
        x.key = id.key;
        x.map_len = id.map_len;
        x.off = (uint64_t)(region->ptr - region->owned->seg.base);
    }
    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    out->mappable = region->owned != NULL;
    memcpy(out->bytes, &x, sizeof(x));
    return TRIB_OK;
}

static trib_status_t export_check(struct shm *shm, int peer,
                                  const struct trib_blob *blob,
                                  struct trib_shm_export *out)
{
    const struct trib_peers peers = shm_peers(shm);
    trib_status_t status = trib_peer_check_import(&peers, peer);

    if (status != TRIB_OK)
        return status;
    if (blob->len == sizeof(*out))
        memcpy(out, blob->bytes, sizeof(*out));
    if (blob->len != sizeof(*out) || out->magic != TRIB_SHM_EXPORT_MAGIC ||
        out->pid != shm->peers[peer].who.pid || out->len == 0 ||
        out->len > UINT64_MAX - out->addr)
        return trib_fail(shm->err, TRIB_ERR_INVALID,
                         "peer %d: not an exported region of its shm", peer);
    return TRIB_OK;
}

static trib_status_t attach(struct shm *shm, int peer, const struct trib_shm_export *x,
                            struct shm_attached **out)
{
    struct shm_peer *p = &shm->peers[peer];
    struct trib_segment_id id = {
        .key = x->key, .map_len = x->map_len, .fd = x->fd, .handout = p->handout};

    for (struct shm_attached *a = p->attached; a; a = a->next) {
        if (a->seg.key == x->key && a->seg.map_len == x->map_len) {
            a->refs++;
            *out = a;
            return TRIB_OK;
        }
    }
    struct shm_attached *a = calloc(1, sizeof(*a));
    if (!a)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_status_t status =
        trib_guard_bars(shm->guard, peer)
            ? trib_shm_guard_attach(shm, peer, &id, &a->seg)
            : trib_segment_attach(&id, &p->who, &shm->me, &a->seg, shm->err);
    if (status != TRIB_OK) {
        free(a);
        return status;
    }
    a->refs = 1;
    a->next = p->attached;
    p->attached = a;
    *out = a;
    return TRIB_OK;
}

static void attached_put(struct shm *shm, struct shm_peer *p,
                         struct shm_attached *attached, bool in_child)
{
    assert(attached->refs > 0);
    if (--attached->refs > 0)
        return;
    for (struct shm_attached **a = &p->attached; *a; a = &(*a)->next) {
        if (*a == attached) {
            *a = attached->next;
            break;
        }
    }
    trib_shm_guard_detach(shm, &attached->seg, in_child);
    free(attached);
}

/* A thread of this process: never use an address from its blob. */
static trib_status_t reach_own(struct shm *shm, struct shm_remote *remote,
                               const struct trib_shm_export *x)
{
    assert(shm->peers[remote->peer].same_process);
    remote->ptr = trib_own_memory_find(x->key, x->len);
    if (remote->ptr)
        return TRIB_OK;
    return trib_fail(
        shm->err, TRIB_ERR_INVALID,
        "peer %d: the memory in its export is not registered by this process",
        remote->peer);
}

static trib_status_t reach_foreign(struct shm *shm, struct shm_remote *remote,
                                   const struct trib_shm_export *x)
{
    if (!x->addr)
        return trib_fail(
            shm->err, TRIB_ERR_UNSUPPORTED,
            "peer %d: process %d allows no writes into memory that it does not share",
            remote->peer, x->pid);
    remote->addr = x->addr;
    return trib_shm_cma_probe(shm, remote->peer, x);
}

static trib_status_t reach(struct shm *shm, struct shm_remote *remote,
                           const struct trib_shm_export *x)
{
    struct shm_peer *p = &shm->peers[remote->peer];

    if (x->kind == TRIB_SHM_MAPPABLE) {
        trib_status_t status = attach(shm, remote->peer, x, &remote->attached);
        if (status != TRIB_OK)
            return status;
        size_t len = remote->attached->seg.len;
        if (x->off > len || x->len > len - x->off) {
            attached_put(shm, p, remote->attached, false);
            return trib_fail(shm->err, TRIB_ERR_RANGE,
                             "peer %d: the exported region does not fit its segment",
                             remote->peer);
        }
        remote->ptr = remote->attached->seg.base + x->off;
        return TRIB_OK;
    }
    if (x->kind != TRIB_SHM_FOREIGN)
        return trib_fail(shm->err, TRIB_ERR_INVALID,
                         "peer %d: exported region of unknown kind %u", remote->peer,
                         x->kind);
    if (trib_guard_bars(shm->guard, remote->peer))
        return trib_fail(
            shm->err, TRIB_ERR_UNSUPPORTED,
            "peer %d exports memory outside a shared segment, which a job and an "
            "aggregator may not access in each other",
            remote->peer);
    if (p->same_process)
        return reach_own(shm, remote, x);
    return reach_foreign(shm, remote, x);
}

trib_status_t trib_shm_import(struct trib_transport *t, int peer,
                              const struct trib_blob *blob, struct trib_remote **out)
{
    struct shm *shm = shm_of(t);
    struct trib_shm_export x;
    trib_status_t status = export_check(shm, peer, blob, &x);

    if (status != TRIB_OK)
        return status;
    struct shm_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    remote->len = (size_t)x.len;
    status = reach(shm, remote, &x);
    shm->peers[peer].in_rendezvous &= status != TRIB_OK;
    if (status != TRIB_OK) {
        free(remote);
        return status;
    }
    LIST_INSERT_HEAD(&shm->remotes, remote, entry);
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}

static void remote_free(struct shm *shm, struct shm_remote *remote, bool in_child)
{
    LIST_REMOVE(remote, entry);
    if (remote->attached)
        attached_put(shm, &shm->peers[remote->peer], remote->attached, in_child);
    free(remote);
}

void trib_shm_release(struct trib_transport *t, struct trib_remote *remote)
{
    if (remote)
        remote_free(shm_of(t), (struct shm_remote *)remote, false);
}

size_t trib_shm_length(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    return ((const struct shm_remote *)remote)->len;
}

/* A region inside an arena becomes stale only when the whole arena is free. */
bool trib_shm_stale(struct trib_transport *t, const struct trib_remote *remote)
{
    const struct shm_attached *attached = ((const struct shm_remote *)remote)->attached;

    (void)t;
    return attached && trib_segment_abandoned(&attached->seg);
}

void *trib_shm_map(struct trib_transport *t, const struct trib_remote *opaque,
                   size_t *len_out)
{
    const struct shm_remote *remote = (const struct shm_remote *)opaque;

    (void)t;
    if (len_out)
        *len_out = remote->ptr ? remote->len : 0;
    return remote->ptr;
}

trib_status_t trib_shm_copy(struct shm *shm, int peer, const struct trib_write *write)
{
    const struct shm_region *local = (const struct shm_region *)write->local;
    const struct shm_remote *remote = (const struct shm_remote *)write->remote;

    if (!local || !remote)
        return trib_peer_check_bounds(write, peer, NULL, shm->err);
    const struct trib_write_bounds bounds = {remote->peer, local->len, remote->len};
    trib_status_t status = trib_peer_check_bounds(write, peer, &bounds, shm->err);
    if (status != TRIB_OK)
        return status;
    const uint8_t *from = local->ptr + write->local_off;
    if (!remote->ptr)
        return trib_shm_cma_write(shm, remote, write->remote_off, from, write->len);
    memcpy(remote->ptr + write->remote_off, from, write->len);
    return TRIB_OK;
}

void trib_shm_free_memory(struct shm *shm, bool in_child)
{
    while (!LIST_EMPTY(&shm->remotes))
        remote_free(shm, LIST_FIRST(&shm->remotes), in_child);
    while (!LIST_EMPTY(&shm->regions)) {
        struct shm_region *region = LIST_FIRST(&shm->regions);
        LIST_REMOVE(region, entry);
        region_free(region);
    }
    while (shm->owned) {
        struct shm_owned *owned = shm->owned;
        shm->owned = owned->next;
        trib_segment_release(&owned->seg, in_child);
        free(owned);
    }
}
