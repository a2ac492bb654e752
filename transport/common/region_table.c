/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/region_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "transport/common/peer.h"
#include "transport/transport.h"

static trib_status_t grow(struct trib_region_table *table, struct trib_error *err)
{
    uint32_t n = table->n ? 2 * table->n : 16;

    /* Not TRIB_ERR_NO_RESOURCE, which means that polling helps. */
    if (n > TRIB_TABLE_ROWS_MAX)
        return trib_fail(err, TRIB_ERR_OVERFLOW,
                         "%s: %u regions are registered, which is the limit; register "
                         "larger pieces of memory, or free plans and registered memory",
                         table->owner, TRIB_TABLE_ROWS_MAX);
    struct trib_table_region **rows = realloc(table->rows, n * sizeof(*rows));
    if (rows)
        table->rows = rows;
    uint32_t *generations = realloc(table->generations, n * sizeof(*generations));
    if (generations)
        table->generations = generations;
    if (!rows || !generations)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (uint32_t i = table->n; i < n; i++) {
        rows[i] = NULL;
        generations[i] = 0;
    }
    table->n = n;
    return TRIB_OK;
}

trib_status_t trib_table_add(struct trib_region_table *table, void *ptr, size_t len,
                             struct trib_error *err, struct trib_table_region **out)
{
    uint32_t i = table->lowest;

    if (!ptr || len == 0 || len > UINTPTR_MAX - (uintptr_t)ptr)
        return trib_fail(err, TRIB_ERR_INVALID, "cannot register %zu bytes at %p", len,
                         ptr);
    while (i < table->n && table->rows[i])
        i++;
    if (i == table->n) {
        trib_status_t status = grow(table, err);
        if (status != TRIB_OK)
            return status;
    }
    struct trib_table_region *region = calloc(1, sizeof(*region));
    if (!region)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    region->id = ++table->generations[i] << TRIB_TABLE_INDEX_BITS | i;
    region->ptr = ptr;
    region->len = len;
    assert((region->id & (TRIB_TABLE_ROWS_MAX - 1)) == i && !table->rows[i]);
    table->rows[i] = region;
    table->lowest = i + 1;
    *out = region;
    return TRIB_OK;
}

trib_status_t trib_table_alloc(struct trib_region_table *table, size_t len,
                               struct trib_error *err, struct trib_table_region **out)
{
    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(err, TRIB_ERR_OVERFLOW, "cannot allocate %zu bytes", len);
    void *ptr =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ptr == MAP_FAILED)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "cannot allocate %zu bytes: %m", len);
    trib_status_t status = trib_table_add(table, ptr, len, err, out);
    if (status != TRIB_OK) {
        munmap(ptr, len);
        return status;
    }
    (*out)->allocated = true;
    return TRIB_OK;
}

void trib_table_remove(struct trib_region_table *table,
                       struct trib_table_region *region)
{
    if (!region)
        return;
    uint32_t i = region->id & (TRIB_TABLE_ROWS_MAX - 1);
    assert(table->rows[i] == region);
    table->rows[i] = NULL;
    if (i < table->lowest)
        table->lowest = i;
    if (region->allocated)
        munmap(region->ptr, region->len);
    free(region);
}

void trib_table_export(const struct trib_table_region *region,
                       const struct trib_table_stamp *stamp, struct trib_blob *out)
{
    struct trib_table_export x = {.magic = stamp->magic,
                                  .region = region->id,
                                  .key = stamp->key,
                                  .len = region->len};

    assert(region->id && region->len);
    memset(out, 0, sizeof(*out));
    out->len = sizeof(x);
    memcpy(out->bytes, &x, sizeof(x));
}

trib_status_t trib_table_import(struct trib_region_table *table, int peer,
                                const struct trib_table_stamp *stamp,
                                const struct trib_blob *blob, struct trib_error *err,
                                struct trib_table_remote **out)
{
    struct trib_table_export x = {0};

    if (blob->len == sizeof(x))
        memcpy(&x, blob->bytes, sizeof(x));
    if (x.magic != stamp->magic || x.key != stamp->key || x.len == 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "peer %d: not an exported region of its %s", peer,
                         table->owner);
    struct trib_table_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    remote->region = x.region;
    remote->len = (size_t)x.len;
    LIST_INSERT_HEAD(&table->remotes, remote, entry);
    *out = remote;
    return TRIB_OK;
}

void trib_table_release(struct trib_table_remote *remote)
{
    if (!remote)
        return;
    LIST_REMOVE(remote, entry);
    free(remote);
}

void trib_table_release_op(struct trib_transport *t, struct trib_remote *remote)
{
    (void)t;
    trib_table_release((struct trib_table_remote *)remote);
}

size_t trib_table_length_op(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    return trib_table_length((const struct trib_table_remote *)remote);
}

uint8_t *trib_table_place(const struct trib_region_table *table, uint32_t id,
                          uint64_t off, uint64_t len)
{
    uint32_t i = id & (TRIB_TABLE_ROWS_MAX - 1);
    const struct trib_table_region *region = i < table->n ? table->rows[i] : NULL;

    if (!region || region->id != id || region->closed || off > region->len ||
        len > region->len - off)
        return NULL;
    return region->ptr + off;
}

trib_status_t trib_table_check(const struct trib_write *w, int peer,
                               struct trib_error *err)
{
    const struct trib_table_region *local = (const struct trib_table_region *)w->local;
    const struct trib_table_remote *remote =
        (const struct trib_table_remote *)w->remote;

    if (!local || !remote)
        return trib_peer_check_bounds(w, peer, NULL, err);
    const struct trib_write_bounds bounds = {remote->peer, local->len, remote->len};
    return trib_peer_check_bounds(w, peer, &bounds, err);
}

void trib_table_free(struct trib_region_table *table)
{
    while (!LIST_EMPTY(&table->remotes))
        trib_table_release(LIST_FIRST(&table->remotes));
    for (uint32_t i = 0; i < table->n; i++)
        trib_table_remove(table, table->rows[i]);
    free(table->rows);
    free(table->generations);
}
