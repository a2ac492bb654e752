/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions as rows of a table, which peers name by number: for backends that register
 * nothing with a device and put bytes into their place themselves.
 *
 * Threads: the caller's care; trib_table_place and trib_table_check only read.
 */
#ifndef TRANSPORT_COMMON_REGION_TABLE_H
#define TRANSPORT_COMMON_REGION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <tributary/status.h>

struct trib_remote;
struct trib_transport;
struct trib_blob;
struct trib_error;
struct trib_write;

#define TRIB_TABLE_INDEX_BITS 16
#define TRIB_TABLE_ROWS_MAX (1u << TRIB_TABLE_INDEX_BITS)

/* The trib_region of such a backend. */
struct trib_table_region {
    uint32_t id; /* index of its row and a generation: a row's next region has
                  * another */
    uint8_t *ptr;
    size_t len;
    bool allocated; /* the table's own memory */
    bool closed; /* peers do not write there */
};

/* The trib_remote of such a backend: an imported region of a peer. */
struct trib_table_remote {
    int peer;
    uint32_t region; /* the peer's id */
    size_t len;
    LIST_ENTRY(trib_table_remote) entry;
};

/* All zero but for the name: empty. */
struct trib_region_table {
    const char *owner; /* a backend's name, for sentences */
    struct trib_table_region **rows;
    uint32_t *generations;
    uint32_t n;
    uint32_t lowest; /* all rows before it are taken */
    LIST_HEAD(, trib_table_remote) remotes;
};

/* The owner of an exported region: magic of the backend, key of the rank. */
struct trib_table_stamp {
    uint32_t magic;
    uint64_t key;
};

/* In a blob; see docs/wire-format.md. */
struct trib_table_export {
    uint32_t magic;
    uint32_t region;
    uint64_t key; /* of the owner, as in its address */
    uint64_t len;
};

/**
 * trib_table_add - a row for memory of the caller, which outlives it.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; TRIB_ERR_OVERFLOW: the table is full
 */
trib_status_t trib_table_add(struct trib_region_table *table, void *ptr, size_t len,
                             struct trib_error *err, struct trib_table_region **out);

/**
 * trib_table_alloc - a row and memory of its own: zero pages, 4096-aligned, which are
 * taken as they are touched. An arena has room for all ranks, and few of them write to
 * it.
 *
 * errors   as above; TRIB_ERR_OVERFLOW also for a size that cannot be
 */
trib_status_t trib_table_alloc(struct trib_region_table *table, size_t len,
                               struct trib_error *err, struct trib_table_region **out);

/** trib_table_remove - the row is free again, and the table's own memory; NULL is
 * allowed. */
void trib_table_remove(struct trib_region_table *table,
                       struct trib_table_region *region);

/** trib_table_export - describe a region to peers. */
void trib_table_export(const struct trib_table_region *region,
                       const struct trib_table_stamp *stamp, struct trib_blob *out);

/**
 * trib_table_import - a region that a connected peer has exported.
 *
 * stamp    that peer's
 * errors   TRIB_ERR_INVALID: not an exported region of this peer; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_table_import(struct trib_region_table *table, int peer,
                                const struct trib_table_stamp *stamp,
                                const struct trib_blob *blob, struct trib_error *err,
                                struct trib_table_remote **out);

/** trib_table_length - bytes of an import, as its owner has said. */
static inline size_t trib_table_length(const struct trib_table_remote *remote)
{
    return remote->len;
}

/** trib_table_release - forget an import; NULL is allowed. */
void trib_table_release(struct trib_table_remote *remote);

/** trib_table_place - where a peer's write goes; NULL: not inside a region. */
uint8_t *trib_table_place(const struct trib_region_table *table, uint32_t id,
                          uint64_t off, uint64_t len);

/** trib_table_release_op, trib_table_length_op - slots `release` and `length` of such a
 * backend. */
void trib_table_release_op(struct trib_transport *t, struct trib_remote *remote);
size_t trib_table_length_op(struct trib_transport *t, const struct trib_remote *remote);

/**
 * trib_table_check - is a write of more than no bytes within its regions?
 *
 * errors   TRIB_ERR_INVALID: a region is missing, or another peer's; TRIB_ERR_RANGE
 */
trib_status_t trib_table_check(const struct trib_write *write, int peer,
                               struct trib_error *err);

/** trib_table_free - all rows, imports and memory. */
void trib_table_free(struct trib_region_table *table);

#endif
