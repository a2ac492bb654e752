/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: memory.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "transport/tcp/tcp.h"

trib_status_t trib_tcp_reg(struct trib_transport *t, void *ptr, size_t len,
                           struct trib_region **out)
{
    struct tcp *tcp = tcp_of(t);
    struct trib_table_region *region;
    trib_status_t status = trib_table_add(&tcp->table, ptr, len, tcp->err, &region);

    if (status == TRIB_OK)
        *out = (struct trib_region *)region;
    return status;
}

trib_status_t trib_tcp_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                             struct trib_region **region_out)
{
    struct tcp *tcp = tcp_of(t);
    struct trib_table_region *region;
    trib_status_t status = trib_table_alloc(&tcp->table, len, tcp->err, &region);

    if (status != TRIB_OK)
        return status;
    *ptr_out = region->ptr;
    *region_out = (struct trib_region *)region;
    return TRIB_OK;
}

/* Cut off peers that are still writing into a region being removed: the rest of the
 * payload would overwrite memory that now belongs to others. */
static void cut_off(struct tcp *tcp, uint32_t id)
{
    for (int i = 0; i < tcp->size; i++) {
        struct tcp_peer *p = &tcp->peers[i];
        if (!p->in.in_payload || p->in.left == 0 || p->in.head.region != id)
            continue;
        trib_tcp_blame(
            tcp, i,
            "process %d was still writing into memory that is no longer registered",
            p->base.who.pid);
        trib_tcp_close_inlet(tcp, i);
    }
}

void trib_tcp_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct tcp *tcp = tcp_of(t);
    struct trib_table_region *region = (struct trib_table_region *)opaque;

    if (region)
        cut_off(tcp, region->id);
    trib_table_remove(&tcp->table, region);
}

trib_status_t trib_tcp_borrow(struct trib_transport *t, void *ptr, size_t len,
                              bool written, struct trib_region **out)
{
    trib_status_t status = trib_tcp_reg(t, ptr, len, out);

    if (status == TRIB_OK)
        ((struct trib_table_region *)*out)->closed = !written;
    return status;
}

/* Replace the region's memory by `copy`, which lives as long as the transport. */
static void move_region(struct tcp *tcp, struct trib_table_region *region,
                        uint8_t *copy)
{
    assert(!region->allocated);
    for (int i = 0; i < tcp->size; i++) {
        struct tcp_inlet *in = &tcp->peers[i].in;
        if (in->in_payload && in->left && in->head.region == region->id)
            in->to = copy + (in->to - region->ptr);
    }
    region->ptr = copy;
    region->allocated = true;
}

void trib_tcp_give_back(struct trib_transport *t, struct trib_region *opaque,
                        bool broken)
{
    struct tcp *tcp = tcp_of(t);
    struct trib_table_region *region = (struct trib_table_region *)opaque;
    void *copy = MAP_FAILED;

    if (broken)
        copy = mmap(NULL, region->len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
        move_region(tcp, region, copy);
        return;
    }
    for (int i = 0; broken && i < tcp->size; i++) {
        if (tcp->peers[i].base.state != TRIB_PEER_CONNECTED)
            continue;
        trib_tcp_mark_lost(tcp, i, "out of memory");
        trib_tcp_close_peer(tcp, i);
    }
    trib_tcp_dereg(t, opaque);
}

trib_status_t trib_tcp_export(struct trib_transport *t,
                              const struct trib_region *region, struct trib_blob *out)
{
    struct trib_table_stamp stamp = {.magic = TCP_MAGIC, .key = tcp_of(t)->local.key};

    trib_table_export((const struct trib_table_region *)region, &stamp, out);
    return TRIB_OK;
}

trib_status_t trib_tcp_import(struct trib_transport *t, int peer,
                              const struct trib_blob *blob, struct trib_remote **out)
{
    struct tcp *tcp = tcp_of(t);
    struct trib_table_remote *remote;

    const struct trib_peers peers = tcp_peers(tcp);
    trib_status_t status = trib_peer_check_import(&peers, peer);

    if (status != TRIB_OK)
        return status;
    struct trib_table_stamp stamp = {.magic = TCP_MAGIC, .key = tcp->peers[peer].key};
    status = trib_table_import(&tcp->table, peer, &stamp, blob, tcp->err, &remote);
    if (status == TRIB_OK)
        *out = (struct trib_remote *)remote;
    return status;
}

uint8_t *trib_tcp_place(struct tcp *tcp, const struct tcp_head *head)
{
    return trib_table_place(&tcp->table, head->region, head->off, head->len);
}
