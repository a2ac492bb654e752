/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective as data: what one rank does, as a list of steps on chunks.
 *
 * The vector is cut into rounds * n_chunks chunks. A schedule says what happens in one
 * round to its chunks 0..n_chunks-1; every round repeats it. The engine runs it, the
 * simulator in tests/harness proves it.
 *
 * Meaning of a rank's steps. Chunk c of a rank holds a *value*: at first its own
 * contribution (if it has one).
 *   SEND         send the value of `chunk` to `peer`
 *   RECV_REDUCE  value = value op what `peer` sent
 *   RECV_COPY    value = what `peer` sent (always a finished result or a gathered
 *                block)
 *   SCALE        value = value / ranks (op mean; the finisher of a chunk does it once)
 *   COPY         value stays the own contribution and becomes the result here (root of
 *                a broadcast, own block of an all-gather)
 *
 * Order. Between two ranks, on one lane, the k-th SEND meets the k-th RECV_*: a pair of
 * ranks must list them in the same order. A step may run once the step `dep` of this
 * rank and round is done; besides, the steps of one rank on one (peer, lane, direction)
 * run in list order. There must be ONE order of all steps of all ranks in which every
 * step comes after its dep, its matching SEND and its predecessors on its lane, and the
 * k-th SEND on a lane after the (k-1)-th RECV there: then the engine cannot dead-lock,
 * with one slot per lane or more (argument in engine.c).
 *
 * Runs of RECV_REDUCE on the same chunk that follow each other in the list, each with
 * the previous as dep, are one k-ary sum for the engine: contributions are added in
 * the order of ranks, the own one in its place, whatever the arrival.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

#include "schedule/coll_traits.h"

enum trib_step_op {
    TRIB_STEP_SEND,
    TRIB_STEP_RECV_REDUCE,
    TRIB_STEP_RECV_COPY,
    TRIB_STEP_SCALE,
    TRIB_STEP_COPY,
    TRIB_STEP_OP_COUNT,
};

enum {
    TRIB_STEP_FINAL = 1, /* SEND, RECV_COPY: the value is finished (out-tree) */
    TRIB_STEP_FORWARD = 2, /* SEND: relay the very bytes that RECV_COPY of this chunk
                            * got */
    TRIB_STEP_STABLE = 4, /* SEND: no later step of this list writes the chunk before
                            * the receiver has read it, so it may be read in place; the
                            * operation stays open until it has been read */
};

#define TRIB_STEP_NO_DEP UINT32_MAX
#define TRIB_LANE_UP 0 /* contributions and partial sums */
#define TRIB_LANE_DOWN 1 /* results */
#define TRIB_LANES 2

struct trib_step {
    uint8_t op;
    uint8_t flags;
    uint16_t lane;
    uint32_t peer; /* rank; own rank for SCALE and COPY */
    uint32_t chunk;
    uint32_t dep; /* index of an earlier step of this list, or TRIB_STEP_NO_DEP */
};

/*
 * The tree of aggregators above the ranks, in groups. A group sums what its
 * ranks and the groups below it send: chunk c of a group with n aggregators is at its
 * aggregator number c mod n. Groups come behind their parents; group 0 is the root. An
 * aggregator belongs to one group, or to the root and to a group right below it.
 */
struct trib_agg_tree {
    int groups;
    const int *parent; /* [groups]; not read for group 0 */
    const int *first; /* [groups + 1] group u has aggregators[first[u]] up to first[u
                          * + 1] */
    const int *aggregators; /* each from 0 */
    const int *leaf_of; /* [ranks] the group to which a rank sends */
};

/*
 * Groups of ranks that are near to each other, and their leaders. Leader l of group g
 * is leader[g * leaders + l], a rank of that group, and leads nothing else.
 */
struct trib_shape_groups {
    int n;
    int leaders; /* number of leaders of each group */
    const int *of_rank; /* [ranks] the group of a rank */
    const int *leader; /* [n * leaders] */
    const int *host; /* [ranks] the host of a rank, each less than n; NULL: groups
                         * are hosts */
};

/* The arguments of a builder. */
struct trib_shape {
    trib_coll_t coll;
    trib_op_t op;
    int rank;
    int size; /* ranks, which contribute */
    int root;
    /* Number of aggregators behind the ranks. They contribute nothing; aggregator i has
     * number size + i. */
    int aggregators;
    const struct trib_agg_tree *tree; /* NULL: one group of all */
    const struct trib_shape_groups *groups; /* NULL: none are known */
    bool local_counts; /* only the two ends of a block know how long it is, so no other
                        * rank can pass it on */
    bool pairs; /* (index, value) pairs are summed, and partial sums are not rounded */
};

static inline bool trib_shape_is_aggregator(const struct trib_shape *shape)
{
    return shape->rank >= shape->size;
}

struct trib_schedule {
    uint32_t n_chunks; /* chunks of one round, >= 1 */
    uint32_t n_steps;
    uint32_t capacity;
    bool failed; /* an append ran out of memory; trib_schedule_check reports it */
    struct trib_step *steps;
};

void trib_schedule_init(struct trib_schedule *s, uint32_t n_chunks);
void trib_schedule_free(struct trib_schedule *s);

/** trib_schedule_add - append a step; its index, to be used as a dep. */
uint32_t trib_schedule_add(struct trib_schedule *s, struct trib_step step);

/** trib_schedule_append - all steps of another schedule, whose chunk 0 is first_chunk
 * here. */
void trib_schedule_append(struct trib_schedule *s, const struct trib_schedule *other,
                          uint32_t first_chunk);

/**
 * trib_schedule_check - is this list well formed for a rank of `size` ranks?
 *
 * Checks ranges, deps that point backwards, lanes and flags; says what is wrong.
 */
trib_status_t trib_schedule_check(const struct trib_schedule *s,
                                  const struct trib_shape *shape, char *text,
                                  size_t bytes);

#endif
