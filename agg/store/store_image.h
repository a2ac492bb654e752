/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Complete state of a vector of a store, as saved in and restored from a snapshot.
 *
 * Pure. Threads: as for the table.
 */
#ifndef AGG_STORE_STORE_IMAGE_H
#define AGG_STORE_STORE_IMAGE_H

#include "agg/store/store_table.h"
#include "agg/store/store_walk.h"

struct trib_store_image {
    struct trib_store_spec spec;
    trib_dtype_t kept; /* dtype of the elements in memory */
    uint32_t states; /* number of state vectors of the rule */
    uint32_t ranks;
    uint64_t version;
    const void *clock; /* [ranks] of uint64_t: last push number of each rank */
    const void *value; /* [count] of `kept` */
    const void *state[TRIB_STORE_RULE_STATES]; /* [count] of `kept` each */
};

/** trib_store_image - describe a vector. Read its elements only while a walk locks
 * them, and its mutable metadata only right after trib_store_walk_begin. */
void trib_store_image(const struct trib_store_table *table, uint32_t vector,
                      struct trib_store_image *out);

/**
 * trib_store_put - set a vector to the state of an image.
 *
 * If the image has another number of ranks, push numbers restart.
 *
 * tick     or NULL
 * errors   TRIB_ERR_MISMATCH: dtype, length or rule differ; nothing has changed
 */
trib_status_t trib_store_put(struct trib_store_table *table, uint32_t vector,
                             const struct trib_store_image *image,
                             const struct trib_store_tick *tick,
                             struct trib_error *err);

/** trib_store_changes - return a number that grows with each change of the elements. */
uint64_t trib_store_changes(const struct trib_store_table *table, uint32_t vector);

/** trib_store_saved, trib_store_set_saved - return or set the version of the vector's
 * newest snapshot, plus 1; 0: none. */
uint64_t trib_store_saved(const struct trib_store_table *table, uint32_t vector);
void trib_store_set_saved(struct trib_store_table *table, uint32_t vector,
                          uint64_t saved);

#endif
