/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of a table of vectors, for the files of this room. */
#ifndef AGG_STORE_STORE_VECTORS_H
#define AGG_STORE_STORE_VECTORS_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agg/store/store_table.h"
#include "agg/store/store_walk.h"

struct trib_kernels;

struct vector {
    char name[TRIB_CONTROL_JOB_MAX + 1];
    char text[TRIB_STORE_RULE_TEXT_MAX + 1]; /* text of its rule, as received */
    struct trib_store_rule rule;
    trib_dtype_t dtype; /* on the wire */
    trib_dtype_t kept; /* in memory: float32 for narrow floats */
    uint64_t count;
    uint64_t charged; /* bytes charged to the quota */
    pthread_mutex_t *stripes; /* [trib_store_stripes] locks of elements and state */

    /* The fields below are read under `gate`. A walk changes them under `gate` while it
     * also locks the first stripe. */
    pthread_mutex_t gate;
    uint64_t version;
    uint64_t changes; /* number of changes of its elements, of any kind */
    uint64_t saved; /* version of its newest snapshot, plus 1; 0: none */
    uint64_t *clock; /* [ranks] last push number */

    void *value; /* [count] of `kept` */
    void *state[TRIB_STORE_RULE_STATES];
};

struct trib_store_table {
    uint32_t ranks;
    struct trib_quota *quota;
    const struct trib_kernels *kernels;
    _Atomic uint8_t *presence; /* [ranks] enum trib_store_presence */
    struct vector **vectors; /* [TRIB_STORE_VECTORS_MAX], `n` in use */
    _Atomic uint32_t n;
    pthread_mutex_t opening; /* serialises lookups by name */
};

/** trib_store_vector - return a vector by number. */
static inline struct vector *trib_store_vector(const struct trib_store_table *table,
                                               uint32_t vector)
{
    assert(vector < atomic_load(&table->n));
    return table->vectors[vector];
}

/** trib_store_byte_at - return the address of element `first` of an array. */
static inline uint8_t *trib_store_byte_at(void *array, uint64_t first,
                                          trib_dtype_t dtype)
{
    return (uint8_t *)array + first * trib_dtype_size(dtype);
}

/** trib_store_pick - copy the elements of range->indices; they may be in any order, so
 * the walk locks all elements. */
void trib_store_pick(const struct trib_store_table *table,
                     const struct trib_store_range *range, struct trib_store_walk *walk,
                     void *out);

#endif
