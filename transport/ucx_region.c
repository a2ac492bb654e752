/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: memory. A region is a row of a table; peers name it by number. Where a device wants
 * memory registered, UCX does so with each transfer and remembers it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport/ucx.h"

#define INDEX_BITS 16
#define REGIONS_MAX (1u << INDEX_BITS)

static trib_status_t table_grow(struct ucx *u)
{
    uint32_t n = u->n_regions ? 2 * u->n_regions : 16;

    if (n > REGIONS_MAX)
        return trib_fail(u->err, TRIB_ERR_NO_RESOURCE,
                         "more than %u regions are registered", REGIONS_MAX);
    struct ucx_region **rows = realloc(u->regions, n * sizeof(*rows));
    if (rows)
        u->regions = rows;
    uint32_t *generations = realloc(u->generations, n * sizeof(*generations));
    if (generations)
        u->generations = generations;
    if (!rows || !generations)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (uint32_t i = u->n_regions; i < n; i++) {
        rows[i] = NULL;
        generations[i] = 0;
    }
    u->n_regions = n;
    return TRIB_OK;
}

trib_status_t trib_ucx_reg(struct trib_transport *t, void *ptr, size_t len,
                            struct trib_region **out)
{
    struct ucx *u = ucx_of(t);
    uint32_t i = 0;

    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(u->err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p",
                         len, ptr);
    struct ucx_region *region = calloc(1, sizeof(*region));
    if (!region)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "out of memory");
    region->ptr = ptr;
    region->len = len;
    pthread_mutex_lock(&u->lock);
    while (i < u->n_regions && u->regions[i])
        i++;
    trib_status_t status = i == u->n_regions ? table_grow(u) : TRIB_OK;
    if (status == TRIB_OK) {
        region->id = ++u->generations[i] << INDEX_BITS | i;
        u->regions[i] = region;
    }
    pthread_mutex_unlock(&u->lock);
    if (status != TRIB_OK) {
        free(region);
        return status;
    }
    *out = (struct trib_region *)region;
    return TRIB_OK;
}

trib_status_t trib_ucx_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                              struct trib_region **region_out)
{
    struct ucx *u = ucx_of(t);
    void *ptr;

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(u->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    if (posix_memalign(&ptr, 4096, len) != 0)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes", len);
    memset(ptr, 0, len);
    trib_status_t status = trib_ucx_reg(t, ptr, len, region_out);
    if (status != TRIB_OK) {
        free(ptr);
        return status;
    }
    ((struct ucx_region *)*region_out)->allocated = true;
    *ptr_out = ptr;
    return TRIB_OK;
}

static void forget(struct ucx *u, struct ucx_region *region)
{
    if (!region)
        return;
    u->regions[region->id & (REGIONS_MAX - 1)] = NULL;
    if (region->allocated)
        free(region->ptr);
    free(region);
}

/* A rendezvous that is under way would go on into memory that is of somebody else:
 * whoever still writes here has lost its endpoint. */
static void cut_off(struct ucx *u, uint32_t id)
{
    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        if (!p->ep || !trib_ucx_receives_into(p, id))
            continue;
        p->misdeed = "was still writing into memory that is no region any more";
        p->expected = false; /* closing makes progress: it must not begin anew */
        trib_ucx_endpoint_close(u, i);
        atomic_store_explicit(&u->news, true, memory_order_release);
    }
}

void trib_ucx_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct ucx *u = ucx_of(t);
    struct ucx_region *region = (struct ucx_region *)opaque;

    if (!region)
        return;
    pthread_mutex_lock(&u->lock);
    cut_off(u, region->id);
    forget(u, region);
    pthread_mutex_unlock(&u->lock);
}

trib_status_t trib_ucx_export(struct trib_transport *t, const struct trib_region *opaque,
                               struct trib_blob *out)
{
    const struct ucx_region *region = (const struct ucx_region *)opaque;
    struct ucx_export x = {.magic = UCX_MAGIC,
                           .region = region->id,
                           .key = ucx_of(t)->key,
                           .len = region->len};

    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    memcpy(out->bytes, &x, sizeof(x));
    return TRIB_OK;
}

trib_status_t trib_ucx_import(struct trib_transport *t, int peer,
                               const struct trib_blob *blob, struct trib_remote **out)
{
    struct ucx *u = ucx_of(t);
    struct ucx_export x = {0};

    if (peer < 0 || peer >= u->size || u->peers[peer].state == UCX_PEER_UNKNOWN)
        return trib_fail(u->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    if (u->peers[peer].state != UCX_PEER_CONNECTED)
        return trib_fail(u->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    if (blob->len == sizeof(x))
        memcpy(&x, blob->bytes, sizeof(x));
    if (x.magic != UCX_MAGIC || x.key != u->peers[peer].key || x.len == 0)
        return trib_fail(u->err, TRIB_ERR_INVALID,
                         "peer %d: not an exported region of its ucx", peer);
    struct ucx_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    remote->region = x.region;
    remote->len = (size_t)x.len;
    remote->next = u->remotes;
    if (remote->next)
        remote->next->prev = remote;
    u->remotes = remote;
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}

void trib_ucx_release(struct trib_transport *t, struct trib_remote *opaque)
{
    struct ucx *u = ucx_of(t);
    struct ucx_remote *remote = (struct ucx_remote *)opaque;

    if (!remote)
        return;
    if (remote->prev)
        remote->prev->next = remote->next;
    else
        u->remotes = remote->next;
    if (remote->next)
        remote->next->prev = remote->prev;
    free(remote);
}

uint8_t *trib_ucx_place(struct ucx *u, const struct ucx_head *head)
{
    uint32_t i = head->region & (REGIONS_MAX - 1);
    const struct ucx_region *region = i < u->n_regions ? u->regions[i] : NULL;

    if (!region || region->id != head->region || head->off > region->len ||
        head->len > region->len - head->off)
        return NULL;
    return region->ptr + head->off;
}

void trib_ucx_free_memory(struct ucx *u)
{
    while (u->remotes)
        trib_ucx_release(&u->base, (struct trib_remote *)u->remotes);
    for (uint32_t i = 0; i < u->n_regions; i++)
        forget(u, u->regions[i]);
    free(u->regions);
    free(u->generations);
}
