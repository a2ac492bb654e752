/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: memory. If a device needs registered memory, UCX registers it per transfer and
 * caches the registration.
 */
#include "base/error.h"
#include "transport/ucx/ucx.h"

trib_status_t trib_ucx_reg(struct trib_transport *t, void *ptr, size_t len,
                           struct trib_region **out)
{
    struct ucx *u = ucx_of(t);
    struct trib_table_region *region;

    pthread_mutex_lock(&u->lock);
    trib_status_t status = trib_table_add(&u->table, ptr, len, u->err, &region);
    pthread_mutex_unlock(&u->lock);
    if (status == TRIB_OK)
        *out = (struct trib_region *)region;
    return status;
}

trib_status_t trib_ucx_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                             struct trib_region **region_out)
{
    struct ucx *u = ucx_of(t);
    struct trib_table_region *region;

    pthread_mutex_lock(&u->lock);
    trib_status_t status = trib_table_alloc(&u->table, len, u->err, &region);
    pthread_mutex_unlock(&u->lock);
    if (status != TRIB_OK)
        return status;
    *ptr_out = region->ptr;
    *region_out = (struct trib_region *)region;
    return TRIB_OK;
}

static bool receives_into(const struct ucx_peer *p, uint32_t region)
{
    for (uint32_t i = 0; p->pending && i < p->inbox_size; i++) {
        if (p->inbox[i].region == region)
            return true;
    }
    return false;
}

/* A fetch in progress would write into memory after its region has ended. Close the
 * endpoint of any peer with such a fetch. */
static void close_fetching_peers(struct ucx *u, uint32_t id)
{
    assert(ucx_lock_held(u));
    for (int i = 0; i < u->size; i++) {
        struct ucx_peer *p = &u->peers[i];
        if (!p->ep || !receives_into(p, id))
            continue;
        p->violation = "was still writing into a deregistered region";
        p->expected = false; /* closing makes progress, which must not start another
                              * fetch */
        trib_ucx_endpoint_close(u, i);
        atomic_store_explicit(&u->async_events, true, memory_order_release);
    }
}

void trib_ucx_dereg(struct trib_transport *t, struct trib_region *opaque)
{
    struct ucx *u = ucx_of(t);
    struct trib_table_region *region = (struct trib_table_region *)opaque;

    if (!region)
        return;
    pthread_mutex_lock(&u->lock);
    close_fetching_peers(u, region->id);
    trib_table_remove(&u->table, region);
    pthread_mutex_unlock(&u->lock);
}

trib_status_t trib_ucx_export(struct trib_transport *t,
                              const struct trib_region *region, struct trib_blob *out)
{
    struct trib_table_stamp stamp = {.magic = UCX_MAGIC, .key = ucx_of(t)->local.key};

    trib_table_export((const struct trib_table_region *)region, &stamp, out);
    return TRIB_OK;
}

trib_status_t trib_ucx_import(struct trib_transport *t, int peer,
                              const struct trib_blob *blob, struct trib_remote **out)
{
    struct ucx *u = ucx_of(t);
    struct trib_table_remote *remote;

    const struct trib_peers peers = ucx_peers(u);
    trib_status_t status = trib_peer_check_import(&peers, peer);

    if (status != TRIB_OK)
        return status;
    struct trib_table_stamp stamp = {.magic = UCX_MAGIC, .key = u->peers[peer].key};
    status = trib_table_import(&u->table, peer, &stamp, blob, u->err, &remote);
    if (status == TRIB_OK)
        *out = (struct trib_remote *)remote;
    return status;
}

uint8_t *trib_ucx_target(struct ucx *u, const struct ucx_head *head)
{
    return trib_table_place(&u->table, head->region, head->off, head->len);
}
