/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions as rows of a table that peers address by number. For backends that register
 * nothing with a device and copy bytes to their destination themselves.
 *
 * Threads: the caller serializes calls; trib_table_place and trib_table_check only
 * read.
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

/* The struct trib_region of such a backend. */
struct trib_table_region {
    uint32_t id; /* row index and generation: the next region of a row gets a new id */
    uint8_t *ptr;
    size_t len;
    bool allocated; /* memory allocated by the table */
    bool closed; /* peers may not write to it */
};

/* The struct trib_remote of such a backend: an imported region of a peer. */
struct trib_table_remote {
    int peer;
    uint32_t region; /* the peer's id for it */
    size_t len;
    LIST_ENTRY(trib_table_remote) entry;
};

/* Empty if all zero but the name. */
struct trib_region_table {
    const char *owner; /* name of the backend, for messages */
    struct trib_table_region **rows;
    uint32_t *generations;
    uint32_t n;
    uint32_t lowest; /* all rows before it are in use */
    LIST_HEAD(, trib_table_remote) remotes;
};

/* Identifies the owner of an exported region: magic of the backend, key of the rank. */
struct trib_table_stamp {
    uint32_t magic;
    uint64_t key;
};

/* Content of a blob; see docs/wire-format.md. */
struct trib_table_export {
    uint32_t magic;
    uint32_t region;
    uint64_t key; /* of the owner, as in its address */
    uint64_t len;
};

/**
 * trib_table_add - add a row for memory of the caller; the memory outlives the row.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY; TRIB_ERR_OVERFLOW: the table is full
 */
trib_status_t trib_table_add(struct trib_region_table *table, void *ptr, size_t len,
                             struct trib_error *err, struct trib_table_region **out);

/**
 * trib_table_alloc - add a row with memory of its own: zero pages, 4096-aligned,
 * allocated on first touch. An arena has room for all ranks, but few of them write to
 * it.
 *
 * errors   as above; TRIB_ERR_OVERFLOW also for an impossible size
 */
trib_status_t trib_table_alloc(struct trib_region_table *table, size_t len,
                               struct trib_error *err, struct trib_table_region **out);

/** trib_table_remove - free a row, and its memory if the table allocated it; NULL is
 * allowed. */
void trib_table_remove(struct trib_region_table *table,
                       struct trib_table_region *region);

/** trib_table_export - describe a region to peers. */
void trib_table_export(const struct trib_table_region *region,
                       const struct trib_table_stamp *stamp, struct trib_blob *out);

/**
 * trib_table_import - import a region that a connected peer has exported.
 *
 * stamp    the peer's
 * errors   TRIB_ERR_INVALID: not an exported region of this peer; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_table_import(struct trib_region_table *table, int peer,
                                const struct trib_table_stamp *stamp,
                                const struct trib_blob *blob, struct trib_error *err,
                                struct trib_table_remote **out);

/** trib_table_length - return the size of an import, as stated by its owner. */
static inline size_t trib_table_length(const struct trib_table_remote *remote)
{
    return remote->len;
}

/** trib_table_release - free an import; NULL is allowed. */
void trib_table_release(struct trib_table_remote *remote);

/** trib_table_place - return the destination of a peer's write; NULL: not inside a
 * region. */
uint8_t *trib_table_place(const struct trib_region_table *table, uint32_t id,
                          uint64_t off, uint64_t len);

/** trib_table_release_op, trib_table_length_op - fill the slots `release` and `length`
 * of such a backend. */
void trib_table_release_op(struct trib_transport *t, struct trib_remote *remote);
size_t trib_table_length_op(struct trib_transport *t, const struct trib_remote *remote);

/**
 * trib_table_check - check that a write of at least one byte stays within its regions.
 *
 * errors   TRIB_ERR_INVALID: a region is missing, or is another peer's; TRIB_ERR_RANGE
 */
trib_status_t trib_table_check(const struct trib_write *write, int peer,
                               struct trib_error *err);

/** trib_table_free - free all rows, imports and memory. */
void trib_table_free(struct trib_region_table *table);

#endif
