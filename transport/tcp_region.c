/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: memory. A region is a row of a table; peers name it by number.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "transport/tcp.h"

#define INDEX_BITS 16
#define REGIONS_MAX (1u << INDEX_BITS)

static trib_status_t table_grow(struct tcp *tcp)
{
    uint32_t n = tcp->n_regions ? 2 * tcp->n_regions : 16;

    if (n > REGIONS_MAX)
        return trib_fail(tcp->err, TRIB_ERR_NO_RESOURCE,
                         "more than %u regions are registered", REGIONS_MAX);
    struct tcp_region **rows = realloc(tcp->regions, n * sizeof(*rows));
    if (rows)
        tcp->regions = rows;
    uint32_t *generations = realloc(tcp->generations, n * sizeof(*generations));
    if (generations)
        tcp->generations = generations;
    if (!rows || !generations)
        return trib_fail(tcp->err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (uint32_t i = tcp->n_regions; i < n; i++) {
        rows[i] = NULL;
        generations[i] = 0;
    }
    tcp->n_regions = n;
    return TRIB_OK;
}

trib_status_t trib_socket_reg(struct trib_transport *t, void *ptr, size_t len,
                            struct trib_region **out)
{
    struct tcp *tcp = tcp_of(t);
    uint32_t i = 0;

    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(tcp->err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p",
                         len, ptr);
    while (i < tcp->n_regions && tcp->regions[i])
        i++;
    if (i == tcp->n_regions) {
        trib_status_t status = table_grow(tcp);
        if (status != TRIB_OK)
            return status;
    }
    struct tcp_region *region = calloc(1, sizeof(*region));
    if (!region)
        return trib_fail(tcp->err, TRIB_ERR_NO_MEMORY, "out of memory");
    region->id = ++tcp->generations[i] << INDEX_BITS | i;
    region->ptr = ptr;
    region->len = len;
    tcp->regions[i] = region;
    *out = (struct trib_region *)region;
    return TRIB_OK;
}

/* Zero pages that are taken as they are touched: an arena has room for all ranks, and few of
 * them write to it. */
trib_status_t trib_socket_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                              struct trib_region **region_out)
{
    struct tcp *tcp = tcp_of(t);

    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(tcp->err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    void *ptr =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ptr == MAP_FAILED)
        return trib_fail(tcp->err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes: %m",
                         len);
    trib_status_t status = trib_socket_reg(t, ptr, len, region_out);
    if (status != TRIB_OK) {
        munmap(ptr, len);
        return status;
    }
    ((struct tcp_region *)*region_out)->allocated = true;
    *ptr_out = ptr;
    return TRIB_OK;
}

static void forget(struct tcp *tcp, struct tcp_region *region)
{
    if (!region)
        return;
    tcp->regions[region->id & (REGIONS_MAX - 1)] = NULL;
    if (region->allocated)
        munmap(region->ptr, region->len);
    free(region);
}

/* The rest of a payload that is under way would go into memory that is of somebody else:
 * whoever still writes here is lost. */
static void cut_off(struct tcp *tcp, uint32_t id)
{
    for (int i = 0; i < tcp->size; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        if (!p->in.in_payload || p->in.left == 0 || p->in.head.region != id)
            continue;
        trib_socket_going(
            tcp, i, "process %d was still writing into memory that is no region any more",
            p->who.pid);
        trib_socket_inlet_close(tcp, i);
    }
}

void trib_socket_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_region *region = (struct tcp_region *)opaque;

    if (region)
        cut_off(tcp, region->id);
    forget(tcp, region);
}

trib_status_t trib_socket_export(struct trib_transport *t, const struct trib_region *opaque,
                               struct trib_blob *out)
{
    const struct tcp_region *region = (const struct tcp_region *)opaque;
    struct tcp_export x = {.magic = TCP_MAGIC,
                           .region = region->id,
                           .key = tcp_of(t)->key,
                           .len = region->len};

    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    memcpy(out->bytes, &x, sizeof(x));
    return TRIB_OK;
}

trib_status_t trib_socket_import(struct trib_transport *t, int peer,
                               const struct trib_blob *blob, struct trib_remote **out)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_export x = {0};

    if (peer < 0 || peer >= tcp->size || tcp->peers[peer].state == TCP_PEER_UNKNOWN)
        return trib_fail(tcp->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    if (tcp->peers[peer].state != TCP_PEER_CONNECTED)
        return trib_fail(tcp->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    if (blob->len == sizeof(x))
        memcpy(&x, blob->bytes, sizeof(x));
    if (x.magic != TCP_MAGIC || x.key != tcp->peers[peer].key || x.len == 0)
        return trib_fail(tcp->err, TRIB_ERR_INVALID,
                         "peer %d: not an exported region of its tcp", peer);
    struct tcp_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(tcp->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    remote->region = x.region;
    remote->len = (size_t)x.len;
    remote->next = tcp->remotes;
    if (remote->next)
        remote->next->prev = remote;
    tcp->remotes = remote;
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}

void trib_socket_release(struct trib_transport *t, struct trib_remote *opaque)
{
    struct tcp *tcp = tcp_of(t);
    struct tcp_remote *remote = (struct tcp_remote *)opaque;

    if (!remote)
        return;
    if (remote->prev)
        remote->prev->next = remote->next;
    else
        tcp->remotes = remote->next;
    if (remote->next)
        remote->next->prev = remote->prev;
    free(remote);
}

uint8_t *trib_socket_place(struct tcp *tcp, const struct tcp_head *head)
{
    uint32_t i = head->region & (REGIONS_MAX - 1);
    const struct tcp_region *region = i < tcp->n_regions ? tcp->regions[i] : NULL;

    if (!region || region->id != head->region || head->off > region->len ||
        head->len > region->len - head->off)
        return NULL;
    return region->ptr + head->off;
}

void trib_socket_free_memory(struct tcp *tcp)
{
    while (tcp->remotes)
        trib_socket_release(&tcp->base, (struct trib_remote *)tcp->remotes);
    for (uint32_t i = 0; i < tcp->n_regions; i++)
        forget(tcp, tcp->regions[i]);
    free(tcp->regions);
    free(tcp->generations);
}
