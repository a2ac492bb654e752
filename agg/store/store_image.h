/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that a vector of a store is, as a snapshot holds it and as it comes back.
 *
 * Pure. Threads: as of the table.
 */
#ifndef AGG_STORE_STORE_IMAGE_H
#define AGG_STORE_STORE_IMAGE_H

#include "agg/store/store_table.h"
#include "agg/store/store_walk.h"

struct trib_store_image {
    struct trib_store_spec spec;
    trib_dtype_t kept; /* dtype of the elements in memory */
    uint32_t states; /* vectors that the rule keeps */
    uint32_t ranks;
    uint64_t version;
    const void *clock; /* [ranks] of uint64_t: numbers of their last pushes */
    const void *value; /* [count] of `kept` */
    const void *state[TRIB_STORE_RULE_STATES]; /* [count] of `kept` each */
};

/** trib_store_image - describe a vector. Its elements are those of a walk that holds
 * them, and the rest, but for what never changes, of one that has just begun. */
void trib_store_image(const struct trib_store_table *table, uint32_t vector,
                      struct trib_store_image *out);

/**
 * trib_store_put - make a vector what an image says.
 *
 * If the image is of another number of ranks, the numbers of their pushes begin anew.
 * errors   TRIB_ERR_MISMATCH: it differs in dtype, length or rule. The sentence is in
 *          err, and nothing has changed
 */
trib_status_t trib_store_put(struct trib_store_table *table, uint32_t vector,
                             const struct trib_store_image *image,
                             struct trib_error *err);

/** trib_store_changes - a number that grows whenever elements of the vector change. */
uint64_t trib_store_changes(const struct trib_store_table *table, uint32_t vector);

/** trib_store_saved, trib_store_set_saved - the version of the vector's newest
 * snapshot, plus 1; 0: there is none. */
uint64_t trib_store_saved(const struct trib_store_table *table, uint32_t vector);
void trib_store_set_saved(struct trib_store_table *table, uint32_t vector,
                          uint64_t saved);

#endif
