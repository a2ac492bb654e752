/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>

#include "pipeline/link/arena_layout.h"
#include "pipeline/link/grants.h"

size_t trib_arena_heads(int size)
{
    return round_up(abort_notice_off(size) + sizeof(struct trib_oob_notice), 4096);
}

trib_status_t trib_arena_export(const struct trib_arena *a, struct trib_arena_blob *out)
{
    assert(a->region);
    out->per_link = a->per_link;
    out->on_billboard = a->on_billboard;
    return a->transport->ops->export_region(a->transport, a->region, &out->blob);
}

/* Return the size of the billboard in this arena. */
static size_t billboard_bytes(const struct trib_arena *a)
{
    return a->on_billboard && a->self == 0 && a->size > 1
               ? trib_billboard_bytes(a->size)
               : 0;
}

trib_status_t trib_arena_create(struct trib_arena *a)
{
    assert(!a->base && a->self >= 0 && a->self < a->size);
    assert(!a->on_billboard || !a->per_link);
    size_up(a);
    const size_t bytes =
        a->per_link ? trib_arena_heads(a->size) : blocks_bytes(a) + billboard_bytes(a);
    void *base;
    if (a->per_link) {
        a->link_regions = calloc((size_t)a->size, sizeof(*a->link_regions));
        if (!a->link_regions)
            return TRIB_ERR_NO_MEMORY;
    }
    trib_status_t st =
        trib_grants_create(&a->grants, a->size)
            ? a->transport->ops->alloc(a->transport, bytes, &base, &a->region)
            : TRIB_ERR_NO_MEMORY;
    a->base = st == TRIB_OK ? base : NULL;
    a->billboard = a->base && billboard_bytes(a) ? a->base + billboard_off(a) : NULL;
    if (st != TRIB_OK) {
        trib_grants_destroy(&a->grants);
        free(a->link_regions);
        a->link_regions = NULL;
    }
    return st;
}

trib_status_t trib_arena_make_reports(struct trib_arena *a)
{
    void *base;

    if (a->reports_region)
        return TRIB_OK;
    const trib_status_t st = a->transport->ops->alloc(
        a->transport, (size_t)a->size * sizeof(struct trib_oob_notice), &base,
        &a->reports_region);
    if (st == TRIB_OK)
        a->reports = base;
    else
        a->reports_region = NULL;
    return st;
}

void trib_arena_destroy(struct trib_arena *a)
{
    if (a->reports)
        a->transport->ops->dereg(a->transport, a->reports_region);
    a->reports = NULL;
    for (int p = 0; a->link_regions && p < a->size; p++)
        if (a->link_regions[p])
            a->transport->ops->dereg(a->transport, a->link_regions[p]);
    free(a->link_regions);
    a->link_regions = NULL;
    if (a->staging)
        a->transport->ops->dereg(a->transport, a->staging_region);
    if (a->base)
        a->transport->ops->dereg(a->transport, a->region);
    trib_grants_destroy(&a->grants);
    a->staging = NULL;
    a->base = a->billboard = NULL;
}

size_t trib_arena_pinned(uint32_t window, size_t chunk, int size)
{
    struct trib_arena a = {.window = window, .slot_bytes = chunk, .size = size};

    size_up(&a);
    return blocks_bytes(&a) + round_up(staging_bytes(&a), 4096);
}

size_t trib_link_bytes(uint32_t window, size_t chunk, bool mapped)
{
    struct trib_arena a = {.window = window, .slot_bytes = chunk};

    size_up(&a);
    return link_bytes(&a, mapped);
}

size_t trib_arena_bytes(const struct trib_arena *a)
{
    if (a->per_link)
        return trib_arena_heads(a->size) + a->link_bytes;
    return a->staging ? blocks_bytes(a) + round_up(staging_bytes(a), 4096)
                      : a->link_bytes + billboard_bytes(a);
}
