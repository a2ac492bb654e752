/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program: a schedule, lowered to tasks and neighbors for the engine.
 *
 * Lowering joins a run of RECV_REDUCE, and the SCALE after it, into one k-ary task. It
 * determines whether a SEND sends the local contribution or a computed value. It
 * numbers the frames of each (peer, lane), so that the engine knows the next one.
 */
#ifndef COLLECTIVES_SCHEDULE_PROGRAM_H
#define COLLECTIVES_SCHEDULE_PROGRAM_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/schedule.h"

enum trib_task_kind {
    TRIB_TASK_SEND, /* waits for: dep, a credit, its turn on the lane */
    TRIB_TASK_REDUCE, /* waits for: dep, the frames of all its contributions */
    TRIB_TASK_COPY_IN, /* waits for: dep, its frame */
    TRIB_TASK_COPY, /* waits for: dep, the local contribution */
};

enum {
    TRIB_TASK_FINAL = 1,
    TRIB_TASK_FORWARD = 2,
    TRIB_TASK_STABLE = 4,
    TRIB_TASK_INPUT = 8, /* reads the local contribution, not a computed value */
    TRIB_TASK_MEAN = 16, /* REDUCE: divide by the number of ranks */
    TRIB_TASK_FINISH = 32, /* REDUCE: computes the final result of its chunk */
    TRIB_TASK_RELAYED = 64, /* COPY_IN: FORWARDs send its bytes on */
    TRIB_TASK_STORED = 256, /* SEND: its encoded chunk comes from the chunk's store */
    TRIB_TASK_EMPTY = 512, /* REDUCE at an aggregator without an earlier value */
    TRIB_TASK_INPUT_SENT = 128, /* REDUCE: the local contribution is also sent, so it is
                                 * summed as the receivers decode it */
};

struct trib_task {
    uint8_t kind;
    uint8_t lane : 1;
    uint8_t divided : 7; /* REDUCE: divisor code of its value, as in frames: narrow.h */
    uint16_t flags;
    uint16_t neighbor; /* SEND, COPY_IN: index into neighbors */
    uint16_t n_contribs; /* REDUCE */
    uint32_t contrib; /* REDUCE: index of the first contrib; SEND: see agg_sum.c */
    uint32_t chunk;
    uint32_t dep;     /* index of a task, or TRIB_STEP_NO_DEP */
    uint32_t ordinal; /* SEND, COPY_IN: number of the frame on its lane in a round */
    uint32_t done;    /* rounds finished in this operation */
    union {
        uint32_t in_slot; /* SEND: rounds whose elements are already in the next slot */
        uint32_t ahead; /* COPY_IN: rounds whose elements were already read */
    };
    /* SEND: bit r % 64 is set if the elements of round r >= `done` are already in the
     * peer's buffer. */
    uint64_t placed;
};

/* One contribution to a k-ary task, in rank order. */
struct trib_contrib {
    uint16_t neighbor;
    uint8_t lane;
    uint32_t ordinal;
};

struct trib_remote;

/* The reachable bytes [lo, hi) of a vector in a peer's buffer. Byte v is reached by
 * load and store at base + v, by writes at offset origin + v of remote, or by reads at
 * the peer's address origin + v. */
struct trib_view {
    uint8_t *base;              /* NULL: not within load/store reach */
    struct trib_remote *remote; /* NULL: cannot be written to */
    bool addressed; /* can be read by address */
    int64_t origin;
    size_t lo;
    size_t hi;
};

/* A peer that exchanges frames with this rank. */
struct trib_neighbor {
    int peer;
    uint32_t sends[TRIB_LANES]; /* frames of one round */
    uint32_t recvs[TRIB_LANES];
    /* Frames of the agreement (payload_agree.h), the first ones of a round. */
    uint32_t share_sends[TRIB_LANES];
    uint32_t share_recvs[TRIB_LANES];
    /* State of the running operation. */
    uint32_t send_base[TRIB_LANES]; /* position of the first frame of the first round */
    uint32_t recv_base[TRIB_LANES];
    bool advert_out; /* an ADVERT frame remains to be sent */
    bool advert_in; /* an ADVERT frame remains to be received */
    /* Position after the last GET frame: its credit ends the operation. */
    uint32_t ref_end[TRIB_LANES];
    struct trib_view peer_send;
    struct trib_view peer_recv;
};

struct trib_program {
    uint32_t n_chunks;
    uint32_t n_tasks;
    uint32_t n_contribs;
    uint32_t n_neighbors;
    uint32_t share_rounds; /* rounds with an agreement, from 0 on; or 0 */
    uint32_t share_lead; /* rounds with nothing else, from 0 on; <= share_rounds */
    struct trib_task *tasks;
    uint32_t *first; /* [n_chunks] the first task of a chunk, or TRIB_STEP_NO_DEP */
    uint32_t *next; /* [n_tasks] the next task of the same chunk, or TRIB_STEP_NO_DEP */
    struct trib_contrib *contribs;
    struct trib_neighbor *neighbors;
};

/**
 * trib_frame_seq - return the number of an operation's frames before a given one on its
 * lane.
 *
 * all      frames of a round
 * share    frames of the agreement among them: the last share_lead rounds have none,
 *          and the first share_lead rounds have only these
 */
static inline uint32_t trib_frame_seq(uint32_t all, uint32_t share,
                                      const struct trib_program *p, uint32_t round,
                                      uint32_t ordinal)
{
    uint32_t turn = round * all + ordinal;

    assert(p->share_lead <= p->share_rounds);
    turn -= (round < p->share_lead ? round : p->share_lead) * (all - share);
    if (p->share_rounds && round >= p->share_rounds)
        turn -= (round - p->share_rounds + 1) * share;
    return turn;
}

/** trib_send_seq - return the position on its lane of a SEND's frame in a round. */
static inline uint32_t trib_send_seq(const struct trib_program *p,
                                     const struct trib_task *send, uint32_t round)
{
    const struct trib_neighbor *neighbor = &p->neighbors[send->neighbor];
    int lane = send->lane;

    return neighbor->send_base[lane] + trib_frame_seq(neighbor->sends[lane],
                                                      neighbor->share_sends[lane], p,
                                                      round, send->ordinal);
}

/**
 * trib_program_create - lower a checked schedule for a rank or an aggregator of
 * `shape`.
 *
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_program_create(const struct trib_schedule *schedule,
                                  const struct trib_shape *shape,
                                  struct trib_program *out);
void trib_program_free(struct trib_program *p);

#endif
