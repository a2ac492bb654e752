/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective as data: the operations of one rank, as a list of steps on chunks.
 *
 * The vector is divided into rounds * n_chunks chunks. A schedule describes one round
 * of chunks 0..n_chunks-1, and every round repeats it. The engine runs the schedule;
 * the simulator in tests/harness verifies it.
 *
 * Meaning of a rank's steps. Chunk c of a rank has a *value*: initially the local
 * contribution, if there is one.
 *
 *   SEND         send the value of `chunk` to `peer`
 *   RECV_REDUCE  value = value op data from `peer`
 *   RECV_COPY    value = data from `peer` (a finished result or a gathered block)
 *   SCALE        value = value / ranks (op mean; the finisher of a chunk does it once)
 *   COPY         the local contribution is the result here (root of a broadcast, local
 *                block of an all-gather)
 *
 * Order. On one lane between two ranks, the k-th SEND matches the k-th RECV_*, so both
 * ranks must list them in the same order. A step may run once the step `dep` of this
 * rank and round is done. In addition, the steps of one rank on one (peer, lane,
 * direction) run in list order. There must be ONE order of all steps of all ranks with
 * two properties. Every step comes after its dep, its matching SEND and its
 * predecessors on its lane. The k-th SEND on a lane comes after the (k-1)-th RECV
 * there. Then the engine cannot deadlock, with one or more slots per lane (argument in
 * engine.c).
 *
 * Consecutive RECV_REDUCE steps on the same chunk, each with the previous one as dep,
 * form one k-ary sum. The engine adds the contributions in rank order, including the
 * local one, whatever the order of arrival.
 */
#ifndef COLLECTIVES_SCHEDULE_SCHEDULE_H
#define COLLECTIVES_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

#include "collectives/schedule/coll_traits.h"

enum trib_step_op {
    TRIB_STEP_SEND,
    TRIB_STEP_RECV_REDUCE,
    TRIB_STEP_RECV_COPY,
    TRIB_STEP_SCALE,
    TRIB_STEP_COPY,
    TRIB_STEP_OP_COUNT,
};

enum {
    TRIB_STEP_FINAL = 1, /* SEND, RECV_COPY: the value is a final result (lane DOWN) */
    TRIB_STEP_FORWARD = 2, /* SEND: relay the exact bytes that the RECV_COPY of this
                            * chunk received */
    TRIB_STEP_STABLE = 4, /* SEND: no later step of this list writes the chunk before
                           * the receiver has read it, so it may be read in place; the
                           * operation stays open until then */
};

#define TRIB_STEP_NO_DEP UINT32_MAX
#define TRIB_LANE_UP 0 /* contributions and partial sums */
#define TRIB_LANE_DOWN 1 /* results */
#define TRIB_LANES 2

struct trib_step {
    uint8_t op;
    uint8_t flags;
    uint16_t lane;
    uint32_t peer; /* rank; the local rank for SCALE and COPY */
    uint32_t chunk;
    uint32_t dep; /* index of an earlier step of this list, or TRIB_STEP_NO_DEP */
};

/*
 * The tree of aggregators above the ranks, in groups. A group sums the data of its
 * ranks and of the groups below it: with n aggregators, number c mod n sums chunk c. A
 * group follows its parent in the list; group 0 is the root. An aggregator belongs to
 * one group, or to the root and one group directly below it.
 */
struct trib_agg_tree {
    int groups;
    const int *parent; /* [groups]; unused for group 0 */
    const int *first; /* [groups + 1] group u has aggregators[first[u]] to
                       * aggregators[first[u + 1] - 1] */
    const int *aggregators; /* numbers from 0 */
    const int *leaf_of; /* [ranks] group that a rank sends to */
};

/*
 * Groups of ranks that are near to each other, and their leaders. Leader l of group g
 * is leader[g * leaders + l], a rank of that group; a rank leads at most once.
 */
struct trib_shape_groups {
    int n;
    int leaders; /* number of leaders per group */
    const int *of_rank; /* [ranks] group of a rank */
    const int *leader; /* [n * leaders] */
    const int *host; /* [ranks] host of a rank, below n; NULL: groups are hosts */
};

/*
 * Ranks that share a host and sum there first, so that their host exchanges each
 * element once with the aggregators: of a host's leaders, number c mod leaders sums
 * chunk c. An aggregator on that host sums for its ranks instead.
 */
struct trib_shape_hosts {
    const int *of; /* [ranks + aggregators] lowest rank of the host; without ranks: the
                    * aggregator itself */
    const int *place; /* [ranks] position of the rank on its host */
    const int *leaders; /* [ranks] how many of its host's ranks are leaders, from 1 */
};

/* The arguments of a builder. */
struct trib_shape {
    trib_coll_t coll;
    trib_op_t op;
    int rank;
    int size; /* contributing ranks */
    int root;
    /* Number of aggregators, numbered after the ranks. They contribute nothing;
     * aggregator i has number size + i. */
    int aggregators;
    const struct trib_agg_tree *tree; /* NULL: one group with all aggregators */
    const struct trib_shape_hosts *hosts; /* NULL: ranks send to aggregators only */
    const struct trib_shape_groups *groups; /* NULL: unknown */
    bool local_counts; /* only the two ranks of a block know its length, so no other
                        * rank can relay it */
    bool pairs; /* (index, value) pairs are summed; partial sums are not rounded */
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

/** trib_schedule_add - append a step and return its index, for use as a dep. */
uint32_t trib_schedule_add(struct trib_schedule *s, struct trib_step step);

/** trib_schedule_append - append all steps of another schedule, with its chunk 0 as
 * first_chunk. */
void trib_schedule_append(struct trib_schedule *s, const struct trib_schedule *other,
                          uint32_t first_chunk);

/**
 * trib_schedule_check - check that a list is well formed for its rank.
 *
 * Checks ranges, deps on earlier steps, lanes and flags; describes the error in `text`.
 */
trib_status_t trib_schedule_check(const struct trib_schedule *s,
                                  const struct trib_shape *shape, char *text,
                                  size_t bytes);

#endif
