/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the file of a snapshot: unchanged, and with the correct length and
 * digests. An accepted snapshot is loaded into a vector and saved unchanged; a table
 * never accepts one of another vector.
 */
#include "agg/store/store_snapshot.h"
#include "base/error.h"
#include "tests/fuzz/edits.h"

unsigned fuzz_reached; /* snapshots loaded into a vector */

enum { AT_FILE_BYTES = 16, COUNT_MOST = 1 << 16 };

static void come_back(const struct trib_store_table *table,
                      const struct trib_snapshot *s)
{
    struct trib_store_image image;
    struct trib_snapshot again;

    trib_store_image(table, 0, &image);
    need(image.version == s->about.version);
    const uint64_t n = trib_snapshot_bytes(&image);
    uint8_t *bytes = malloc(n);
    if (!bytes)
        return;
    trib_snapshot_copy(&image, &s->about, NULL, bytes);
    trib_snapshot_seal(bytes, n);
    need(trib_snapshot_read(bytes, n, NULL, &again) == TRIB_OK);
    need(strcmp(again.about.name, s->about.name) == 0);
    need(memcmp(again.about.owner, s->about.owner, sizeof(s->about.owner)) == 0);
    fuzz_reached++;
    free(bytes);
}

static void take(const struct trib_snapshot *s)
{
    struct trib_store_table *table;
    struct trib_error err = {0};
    struct trib_store_found found;

    if (s->image.spec.count > COUNT_MOST ||
        trib_store_table_create(s->image.ranks, NULL, &table) != TRIB_OK)
        return;
    if (trib_store_table_open(table, &s->image.spec, &err, &found) == TRIB_OK &&
        trib_store_put(table, found.vector, &s->image, NULL, &err) == TRIB_OK)
        come_back(table, s);
    trib_store_table_destroy(table);
}

static void read_bytes(const uint8_t *data, size_t size)
{
    struct trib_error err = {0};
    struct trib_snapshot s;

    if (trib_snapshot_read(data, size, &err, &s) == TRIB_OK)
        take(&s);
    else
        need(err.status == TRIB_ERR_MISMATCH && err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t n = size;

    read_bytes(data, size);
    if (size < TRIB_SNAPSHOT_HEAD_BYTES)
        return 0;
    uint8_t *copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    memcpy(copy + AT_FILE_BYTES, &n, sizeof(n));
    trib_snapshot_seal(copy, size);
    read_bytes(copy, size);
    free(copy);
    return 0;
}
