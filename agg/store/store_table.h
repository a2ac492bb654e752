/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vectors of one store: values, the state of their rules, versions, and which push
 * of each rank was the last.
 *
 * A push is applied whole or not at all, and none twice: pushes of a rank to a vector
 * are numbered from 1 on, and the number of the last one is kept. A version is the
 * number of pushes that a vector has taken.
 *
 * Pure but for memory. Threads: several at once, but of one rank one at a time. Those
 * that work on one vector follow each other through it (store_walk.h).
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

/* A rank changes a vector by a push. */
struct trib_store_table_push {
    uint32_t rank;
    uint64_t number; /* of this rank's pushes to the vector, from 1 */
    double rate; /* 0: the rule's own */
    void *data; /* the elements as they came; with `gives` it becomes what the pusher
                 * gets back */
    bool gives;
    /* Indices of the elements of `data`, as the wire has them: rising, each below the
     * vector's count. NULL: all elements of the vector. */
    const uint8_t *indices;
    uint64_t count; /* of `indices` */
    bool decoded; /* `data` was encoded, and is of float32 whatever the dtype */
    uint64_t version; /* receives that of the vector behind the push */
};

/* A vector of a name. */
struct trib_store_found {
    uint32_t vector;
    bool made; /* it was not there before */
};

/* A function that is called now and then during a long push: its owner keeps its
 * connections alive. walk_ns: time at which the caller's walk began; 0: it has none. */
struct trib_store_tick {
    void (*call)(void *arg, uint64_t walk_ns);
    void *arg;
};

/**
 * trib_store_table_create - a store without vectors.
 *
 * quota    what vectors take is taken from it; it outlives the table. Or NULL
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_store_table_create(uint32_t ranks, struct trib_quota *quota,
                                      struct trib_store_table **out);

/** trib_store_table_destroy - free it, and give its memory back; NULL is allowed. */
void trib_store_table_destroy(struct trib_store_table *table);

/**
 * trib_store_table_open - find a vector by its name, or make one of zeros.
 *
 * spec     any numbers and texts: they come from another host
 * errors   TRIB_ERR_INVALID: a dtype or rule that is none, or do not go together;
 *          TRIB_ERR_MISMATCH: there is one of that name that differs;
 *          TRIB_ERR_NO_RESOURCE: more memory than the job may have;
 *          TRIB_ERR_NO_MEMORY. The sentence is in err
 */
trib_status_t trib_store_table_open(struct trib_store_table *table,
                                    const struct trib_store_spec *spec,
                                    struct trib_error *err,
                                    struct trib_store_found *out);

/** trib_store_table_size - the number of vectors, which are 0 to that less one. */
uint32_t trib_store_table_size(const struct trib_store_table *table);

/* The rest: of a vector that there is. */

/** trib_store_bytes - bytes of its elements as they go over the wire. */
uint64_t trib_store_bytes(const struct trib_store_table *table, uint32_t vector);

/** trib_store_element - bytes of one element on the wire. */
uint64_t trib_store_element(const struct trib_store_table *table, uint32_t vector);

/** trib_store_name - its name. */
const char *trib_store_name(const struct trib_store_table *table, uint32_t vector);

/** trib_store_version - the number of pushes that it has taken. */
uint64_t trib_store_version(const struct trib_store_table *table, uint32_t vector);

/** trib_store_clock - the number of a rank's last push to it. */
uint64_t trib_store_clock(const struct trib_store_table *table, uint32_t vector,
                          uint32_t rank);

/** trib_store_leave - whether a rank has left for good: nobody waits for its pushes. */
void trib_store_leave(struct trib_store_table *table, uint32_t rank, bool left);

/** trib_store_behind - the rank that has pushed least often among those that have not
 * left; `rank` itself if no other is behind it. */
uint32_t trib_store_behind(const struct trib_store_table *table, uint32_t vector,
                           uint32_t rank);

/**
 * trib_store_set - give it all its elements; its state stays.
 *
 * errors   TRIB_ERR_BUSY: it has taken a push; the sentence is in err
 */
trib_status_t trib_store_set(struct trib_store_table *table, uint32_t vector,
                             const void *data, struct trib_error *err);

/**
 * trib_store_replace - give it all its elements and a version, whatever it was.
 *
 * The state of its rule is zero, and the numbers of pushes begin anew.
 * version  at most TRIB_CONTROL_PUSHES_MAX
 */
void trib_store_replace(struct trib_store_table *table, uint32_t vector,
                        const void *data, uint64_t version);

/**
 * trib_store_table_push - apply a push by the vector's rule.
 *
 * With indices the rule applies to their elements, and all else stays as it is.
 * The table does not apply a push whose number it has had of the rank, but answers it.
 * tick     or NULL
 * errors   TRIB_ERR_PROTOCOL: a number between the last one and its own is missing;
 *          TRIB_ERR_INVALID: a rate for a rule that has none; TRIB_ERR_UNSUPPORTED:
 *          it was encoded, and the rule changes the pusher's elements;
 *          TRIB_ERR_OVERFLOW: the vector has the highest version. The sentence is in
 *          err, and nothing has changed
 */
trib_status_t trib_store_table_push(struct trib_store_table *table, uint32_t vector,
                                    struct trib_store_table_push *push,
                                    const struct trib_store_tick *tick,
                                    struct trib_error *err);

/** trib_store_pick - copy the elements of `count` indices, which are as in struct
 * trib_store_table_push but in any order, as they go over the wire; returns their
 * version. */
uint64_t trib_store_pick(const struct trib_store_table *table, uint32_t vector,
                         const uint8_t *indices, uint64_t count, void *out);

/**
 * trib_store_floats - the elements from `first` on as float32, in the table: for a walk
 * that holds them.
 *
 * returns  NULL: they are kept in another form, and no codec is for them
 */
const float *trib_store_floats(const struct trib_store_table *table, uint32_t vector,
                               uint64_t first);

/** trib_store_seed - the seed of what is drawn when it is encoded. */
uint64_t trib_store_seed(const struct trib_store_table *table, uint32_t vector);

/** trib_store_read - copy `count` elements from `first` on, as they go over the wire;
 * the range is one that there is. Returns their version. */
uint64_t trib_store_read(const struct trib_store_table *table, uint32_t vector,
                         uint64_t first, uint64_t count, void *out);

#endif
