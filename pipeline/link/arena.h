/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An arena: the memory in which a rank receives from all its peers. Its layout is drawn
 * in link.h.
 */
#ifndef PIPELINE_LINK_ARENA_H
#define PIPELINE_LINK_ARENA_H

#include <stdbool.h>

#include <tributary/types.h>

#include "transport/transport.h"

/* The description of an arena that is sent to the peers. */
struct trib_arena_blob {
    struct trib_blob blob;
    uint32_t per_link; /* the arena has no slots: each link has a region of its own */
    uint32_t on_billboard; /* uses the billboard if all ranks do: billboard.h */
};

/* The grants of a rank to its peers, and which frames of its own ask: grants.h. */
struct trib_grants {
    size_t budget; /* bytes in flight to this rank; 0: no limit, and its own frames do
                    * not ask */
    size_t given; /* bytes of the frames that are granted and have not arrived */
    size_t free_bytes[2]; /* [lane] frames of at most this payload do not ask */
    uint32_t *queue; /* [room] ring of lanes that wait: peer * lanes + lane */
    uint32_t room;
    uint32_t first;
    uint32_t waiting;
};

/* Memory and settings shared by all links of an engine. */
struct trib_arena {
    struct trib_transport *transport;
    int self;
    int size;
    uint32_t window; /* maximum number of frames in flight on a lane */
    uint32_t raw_window; /* maximum number of uncompressed frames in flight; 0: as
                          * window. Set before create, equal at both ends */
    uint32_t slots; /* slots of a lane: a power of two, so that positions may wrap */
    size_t slot_bytes; /* size of a slot's payload, a multiple of 64 */
    size_t block_bytes; /* size of the block of one peer */
    uint8_t *base;
    struct trib_region *region;
    bool per_link; /* set before create: the slots of each link are a separate region */
    bool on_billboard; /* set before create: see billboard.h */
    uint8_t *billboard; /* in the arena of rank 0; NULL: not mapped */
    uint32_t billboard_turn; /* number of this rank's newest billboard entry, from 1 */
    bool to_aggregators; /* every link has an aggregator at one end or at both */
    size_t link_bytes; /* memory of the open links */
    int awaited; /* open links whose peer has not advertised its slots yet */
    struct trib_region **link_regions; /* [size]; used if per_link */
    bool abort_notice; /* the notice for links that are not open was written */
    struct trib_region *reports_region; /* source memory of trib_link_report; or NULL */
    uint8_t *reports; /* [size] notices */
    struct trib_grants grants;
    uint8_t *staging; /* copy of the slots, for transports without load/store reach */
    struct trib_region *staging_region;
};

/** trib_arena_create - allocate the receive side of all links, zeroed; if per_link,
 * only the heads of the blocks. */
trib_status_t trib_arena_create(struct trib_arena *a);
void trib_arena_destroy(struct trib_arena *a);

/** trib_arena_export - return the description of the arena for peers. */
trib_status_t trib_arena_export(const struct trib_arena *a,
                                struct trib_arena_blob *out);

/**
 * trib_arena_pinned - return the bytes that a transport without load/store reach
 * registers for the slots of `size` ranks, if the slots are not per link.
 */
size_t trib_arena_pinned(uint32_t window, size_t chunk, int size);

/** trib_arena_heads - return the bytes registered before any link is open, if
 * per_link. */
size_t trib_arena_heads(int size);

/** trib_arena_bytes - return the shared or pinned memory of the arena and its open
 * links. With load/store reach, the blocks of other ranks take address space only. */
size_t trib_arena_bytes(const struct trib_arena *a);

/** trib_link_bytes - return the shared or pinned memory of one link; mapped: with
 * load/store reach. */
size_t trib_link_bytes(uint32_t window, size_t chunk, bool mapped);

/** trib_arena_make_reports - allocate memory for trib_link_report, freed with the
 * arena. */
trib_status_t trib_arena_make_reports(struct trib_arena *a);

#endif
