/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors of one store: values, rule state, versions, and the last push number of each
 * rank.
 *
 * A push is applied completely or not at all, and never twice: a rank numbers its
 * pushes to a vector from 1, and the table keeps the last number. A version is the
 * number of pushes applied to a vector.
 *
 * No I/O, only memory. Several threads may use a table, but one at a time for the same
 * rank. Threads that work on the same vector follow each other through it
 * (store_walk.h).
 */
#ifndef AGG_STORE_STORE_TABLE_H
#define AGG_STORE_STORE_TABLE_H

#include <stdint.h>

#include "agg/protocol/control.h"
#include "agg/store/store_rule.h"

struct trib_error;
struct trib_quota;
struct trib_store_table;

enum { TRIB_STORE_VECTORS_MAX = 65536 };

struct trib_store_spec {
    const char *name;
    trib_dtype_t dtype;
    uint64_t count;
    const char *rule;
};

/* A push of a rank to a vector. */
struct trib_store_table_push {
    uint32_t rank;
    uint64_t number; /* sequence number of this rank's pushes, from 1 */
    double rate; /* 0: the rule's rate */
    void *data; /* elements as received; with `gives`, overwritten by the answer */
    bool gives;
    /* Indices of the elements of `data`, in wire format: ascending, below the vector's
     * count. NULL: all elements of the vector. */
    const uint8_t *indices;
    uint64_t count; /* number of indices */
    bool decoded; /* `data` was encoded and is float32, whatever the dtype */
    uint64_t version; /* set to the vector's version after the push */
};

/* Result of looking up a name. */
struct trib_store_found {
    uint32_t vector;
    bool made; /* newly created */
};

/* Elements to read. */
struct trib_store_range {
    uint32_t vector;
    uint64_t first; /* without indices */
    uint64_t count;
    const uint8_t *indices; /* [count] as of a push, but in any order; or NULL */
};

/* Callback, called periodically during a long push, read or restore so that the caller
 * can keep connections alive. walk_ns: start of the caller's walk; 0: no walk. */
struct trib_store_tick {
    void (*call)(void *arg, uint64_t walk_ns);
    void *arg;
};

/**
 * trib_store_table_create - create an empty table.
 *
 * quota    charged for all vectors; outlives the table. Or NULL
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_store_table_create(uint32_t ranks, struct trib_quota *quota,
                                      struct trib_store_table **out);

/** trib_store_table_destroy - free the table and return its memory to the quota; NULL
 * is allowed. */
void trib_store_table_destroy(struct trib_store_table *table);

/**
 * trib_store_table_open - find a vector by name, or create it with zeros.
 *
 * spec     unvalidated: it comes from another host
 * errors   TRIB_ERR_INVALID: invalid or incompatible dtype and rule; TRIB_ERR_MISMATCH:
 *          the vector exists with other properties; TRIB_ERR_NO_RESOURCE: exceeds the
 *          quota; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_store_table_open(struct trib_store_table *table,
                                    const struct trib_store_spec *spec,
                                    struct trib_error *err,
                                    struct trib_store_found *out);

/** trib_store_table_size - return the number of vectors, numbered from 0. */
uint32_t trib_store_table_size(const struct trib_store_table *table);

/* All functions below require an existing vector. */

/** trib_store_bytes - return the bytes of its elements on the wire. */
uint64_t trib_store_bytes(const struct trib_store_table *table, uint32_t vector);

/** trib_store_element - return the bytes of one element on the wire. */
uint64_t trib_store_element(const struct trib_store_table *table, uint32_t vector);

/** trib_store_name - return its name. */
const char *trib_store_name(const struct trib_store_table *table, uint32_t vector);

/** trib_store_version - return the number of pushes applied to it. */
uint64_t trib_store_version(const struct trib_store_table *table, uint32_t vector);

/** trib_store_clock - return the number of a rank's last push to it. */
uint64_t trib_store_clock(const struct trib_store_table *table, uint32_t vector,
                          uint32_t rank);

enum trib_store_presence {
    TRIB_STORE_PRESENT, /* also a rank that has not joined yet */
    TRIB_STORE_LOST, /* may come back: others wait for its pushes */
    TRIB_STORE_LEFT, /* has left for good: others no longer wait for its pushes */
};

/** trib_store_set_presence - set whether a rank is connected; initially present. */
void trib_store_set_presence(struct trib_store_table *table, uint32_t rank,
                             enum trib_store_presence presence);

/** trib_store_lost_ranks - return the number of lost ranks; *first_out: the first. */
uint32_t trib_store_lost_ranks(const struct trib_store_table *table,
                               uint32_t *first_out);

struct trib_store_lead {
    uint64_t version; /* of the vector */
    uint64_t own; /* pushes of the rank */
    uint64_t least; /* pushes of `last`, at most `own` */
    uint32_t last; /* the rank with the fewest pushes that has not left */
};

/** trib_store_lead - compare a rank's pushes with those of the slowest rank, all at one
 * moment; last is `rank` itself if no other has fewer. */
struct trib_store_lead trib_store_lead(const struct trib_store_table *table,
                                       uint32_t vector, uint32_t rank);

/**
 * trib_store_set - set all elements of a vector without pushes; its rule state is kept.
 *
 * tick     or NULL
 * errors   TRIB_ERR_BUSY: a push was applied before
 */
trib_status_t trib_store_set(struct trib_store_table *table, uint32_t vector,
                             const void *data, const struct trib_store_tick *tick,
                             struct trib_error *err);

/**
 * trib_store_replace - set all elements and the version of a vector, unconditionally.
 *
 * The rule state is zeroed, and push numbers restart.
 *
 * version  at most TRIB_CONTROL_PUSHES_MAX
 * tick     or NULL
 */
void trib_store_replace(struct trib_store_table *table, uint32_t vector,
                        const void *data, uint64_t version,
                        const struct trib_store_tick *tick);

/**
 * trib_store_table_push - apply a push by the vector's rule.
 *
 * With indices, the rule changes only the indexed elements. A push with a number that
 * was applied before is not applied again, but is answered.
 *
 * tick     or NULL
 * errors   TRIB_ERR_PROTOCOL: gap in the push numbers; TRIB_ERR_INVALID: a rate for a
 *          rule without one; TRIB_ERR_UNSUPPORTED: encoded, but the rule changes the
 *          pusher's elements; TRIB_ERR_OVERFLOW: the vector has the highest version.
 *          Nothing has changed then
 */
trib_status_t trib_store_table_push(struct trib_store_table *table, uint32_t vector,
                                    struct trib_store_table_push *push,
                                    const struct trib_store_tick *tick,
                                    struct trib_error *err);

/**
 * trib_store_floats - return the elements from `first` as float32, in place, for a walk
 * that locks them.
 *
 * returns  NULL: stored in another dtype, for which there are no codecs
 */
const float *trib_store_floats(const struct trib_store_table *table, uint32_t vector,
                               uint64_t first);

/** trib_store_seed - return the seed of random numbers for encoding the vector. */
uint64_t trib_store_seed(const struct trib_store_table *table, uint32_t vector);

/**
 * trib_store_read - copy elements in wire format; return their version.
 *
 * range    must be valid
 * tick     or NULL
 */
uint64_t trib_store_read(const struct trib_store_table *table,
                         const struct trib_store_range *range,
                         const struct trib_store_tick *tick, void *out);

#endif
