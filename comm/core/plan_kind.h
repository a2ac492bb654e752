/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of plans besides plain collectives: comm/kinds/ and comm/auto/ define tables,
 * through which comm/plan/ calls them. A plan has at most one kind; kind NULL is a
 * collective whose blocks all have the same length.
 */
#ifndef COMM_CORE_PLAN_KIND_H
#define COMM_CORE_PLAN_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_plan;

struct trib_plan_kind {
    const char *name; /* "blocks"; for debuggers */

    /* Plans with run.desc.blocks. These rows are NULL for other kinds. */

    /** List the blocks: set run.desc.blocks, its count, and plan->lengths. */
    trib_status_t (*make)(struct trib_plan *plan, const trib_desc_t *desc);
    /** Return the digest of counts that all ranks know; 0: no such counts. */
    uint64_t (*digest)(const struct trib_plan *plan);
    /** Return the number of elements of the largest block. */
    size_t (*largest)(const struct trib_plan *plan);
    /** Return the mean elements per block; equal on all ranks. */
    size_t (*mean)(const struct trib_plan *plan);
    /** Complete the list once the vector is cut and the program built. */
    void (*finish)(struct trib_plan *plan);
    /** Convert the buffers of a start to the engine's convention. */
    trib_status_t (*place)(struct trib_plan *plan, const void **send, void **recv);
    /** Free the list, even an incomplete one. */
    void (*free)(struct trib_plan *plan);

    /* Any kind; NULL: nothing to do. */

    /** Return TRIB_OK if an idle plan can be freed. */
    trib_status_t (*release)(struct trib_plan *plan);
    /** Append lines to trib_plan_explain, at `text`. */
    void (*explain)(const struct trib_plan *plan, char *text, size_t bytes);
};

/** trib_plan_kind_fn - return the kind of plans of a description, or NULL. */
typedef const struct trib_plan_kind *(*trib_plan_kind_fn)(trib_coll_t coll,
                                                          const trib_desc_t *desc);

#endif
