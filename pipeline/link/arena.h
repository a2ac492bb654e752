/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An arena: the memory in which a rank receives from all its peers. The picture of it
 * is in link.h.
 */
#ifndef PIPELINE_LINK_ARENA_H
#define PIPELINE_LINK_ARENA_H

#include <stdbool.h>

#include "transport/transport.h"

/* The description of an arena that peers get. */
struct trib_arena_blob {
    struct trib_blob blob;
    uint32_t per_link; /* the arena has no slots */
    uint32_t on_billboard; /* its rank uses the billboard, if all do: see billboard.h */
};

/* Memory and settings that all links of an engine share. */
struct trib_arena {
    struct trib_transport *transport;
    int self;
    int size;
    uint32_t window; /* largest number of frames of a lane under way */
    uint32_t raw_window; /* the same of elements without a codec; 0: no less. Set before
                          * create, the same at both ends */
    uint32_t slots; /* number of slots of a lane: a power of two, so that positions
                         * may wrap */
    size_t slot_bytes; /* size of a slot's payload, a multiple of 64 */
    size_t block_bytes; /* size of the block of one peer */
    uint8_t *base;
    struct trib_region *region;
    bool per_link; /* set before create: a link's slots are a region of its own */
    bool on_billboard; /* set before create: see billboard.h */
    uint8_t *billboard; /* in the arena of rank 0; NULL: not mapped */
    uint32_t billboard_turn; /* number of this rank's newest entry there, from 1 */
    bool to_aggregators; /* all links are between ranks and aggregators, or between
                            * aggregators */
    size_t link_bytes; /* memory of the links that are open */
    int awaited; /* open links whose peer has not advertised its slots */
    struct trib_region **link_regions; /* [size], per_link */
    bool abort_notice; /* the notice of a failure for links that are not open exists */
    struct trib_region *reports_region; /* sources of trib_link_report; or NULL */
    uint8_t *reports; /* [size] notices */
    uint8_t *staging; /* same layout, for transports without load/store reach */
    struct trib_region *staging_region;
};

/** trib_arena_create - allocate the receive side of all links, zeroed; with per_link
 * only the heads of the blocks. */
trib_status_t trib_arena_create(struct trib_arena *a);
void trib_arena_destroy(struct trib_arena *a);

/** trib_arena_export - the description of the arena for peers. */
trib_status_t trib_arena_export(const struct trib_arena *a,
                                struct trib_arena_blob *out);

/**
 * trib_arena_pinned - the bytes that a transport without load/store reach registers for
 * the slots of `size` ranks, if they are not per link.
 */
size_t trib_arena_pinned(uint32_t window, size_t chunk, int size);

/** trib_arena_heads - the bytes that are registered per_link before any link is
 * open. */
size_t trib_arena_heads(int size);

/** trib_arena_bytes - the shared or pinned memory of the arena and its open links.
 * Within load/store reach, blocks of other ranks are address space only. */
size_t trib_arena_bytes(const struct trib_arena *a);

/** trib_link_bytes - the shared or pinned memory of one link; mapped: with load/store
 * reach. */
size_t trib_link_bytes(uint32_t window, size_t chunk, bool mapped);

/** trib_arena_make_reports - memory for trib_link_report, which lasts as long as the
 * arena. */
trib_status_t trib_arena_make_reports(struct trib_arena *a);

#endif
