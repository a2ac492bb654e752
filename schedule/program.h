/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A schedule, lowered to what the engine runs: tasks, and the neighbors that they use.
 *
 * Lowering joins a run of RECV_REDUCE (and the SCALE behind it) to one k-ary task,
 * finds out whether a SEND takes the own contribution or the value that was made of it,
 * and numbers the frames of each (peer, lane) so that the engine knows whose turn it
 * is.
 */
#ifndef SCHEDULE_PROGRAM_H
#define SCHEDULE_PROGRAM_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "schedule/schedule.h"

enum trib_task_kind {
    TRIB_TASK_SEND, /* waits for: dep, a credit, its turn on the lane */
    TRIB_TASK_REDUCE, /* waits for: dep, the frames of all its contributions */
    TRIB_TASK_COPY_IN, /* waits for: dep, its frame */
    TRIB_TASK_COPY, /* waits for: dep, the own contribution */
};

enum {
    TRIB_TASK_FINAL = 1,
    TRIB_TASK_FORWARD = 2,
    TRIB_TASK_STABLE = 4,
    TRIB_TASK_INPUT = 8, /* takes the own contribution, not a value made
                          * before */
    TRIB_TASK_MEAN = 16, /* REDUCE: divide by the number of ranks */
    TRIB_TASK_FINISH = 32, /* REDUCE: makes the finished result of its chunk */
    TRIB_TASK_RELAYED = 64, /* COPY_IN: its bytes are sent on by FORWARDs */
    TRIB_TASK_STORED = 256, /* SEND: its code word comes from the chunk's store */
    TRIB_TASK_EMPTY = 512, /* REDUCE at an aggregator: no value precedes its
                            * contributions */
    TRIB_TASK_INPUT_SENT = 128, /* REDUCE: the own contribution goes to others as well,
                                 * so it counts here as they decode it */
};

struct trib_task {
    uint8_t kind;
    uint8_t lane : 1;
    uint8_t divided : 7; /* REDUCE: its value, as frames say it: see narrow.h */
    uint16_t flags;
    uint16_t neighbor; /* SEND, COPY_IN: index into neighbors */
    uint16_t n_contribs; /* REDUCE */
    uint32_t contrib; /* REDUCE: index of the first; SEND: see agg_sum.c */
    uint32_t chunk;
    uint32_t dep;     /* index of a task, or TRIB_STEP_NO_DEP */
    uint32_t ordinal; /* SEND, COPY_IN: which frame of its lane and round it is */
    uint32_t done;    /* rounds finished in this operation */
    union {
        uint32_t in_slot; /* SEND: rounds whose elements already are in the next slot */
        uint32_t ahead; /* COPY_IN: rounds whose elements are there already */
    };
    /* SEND: bit r % 64 says that the elements of round r, of those from `done` on,
     * already are in the peer's buffer. */
    uint64_t placed;
};

/* One contribution of a k-ary task, in the order of ranks. */
struct trib_contrib {
    uint16_t neighbor;
    uint8_t lane;
    uint32_t ordinal;
};

struct trib_remote;

/* A peer's buffer, of which vector bytes [lo, hi) can be reached: by load and store at
 * base + v, by writes at byte origin + v of remote, or by reads at address origin + v
 * of the peer. */
struct trib_view {
    uint8_t *base;              /* NULL: not within load/store reach */
    struct trib_remote *remote; /* NULL: cannot be written to */
    bool addressed; /* can be read by address */
    int64_t origin;
    size_t lo;
    size_t hi;
};

/* A peer that this rank exchanges frames with. */
struct trib_neighbor {
    int peer;
    uint32_t sends[TRIB_LANES]; /* frames of one round */
    uint32_t recvs[TRIB_LANES];
    /* Messages of the agreement (payload_agree.h), the first ones of a round. */
    uint32_t share_sends[TRIB_LANES];
    uint32_t share_recvs[TRIB_LANES];
    /* State of the running operation. */
    uint32_t send_base[TRIB_LANES]; /* position of its first round's first frame */
    uint32_t recv_base[TRIB_LANES];
    bool advert_out; /* an ADVERT frame is still to be sent */
    bool advert_in; /* an ADVERT frame is still to come */
    /* Position behind the last GET frame: its credit ends the operation. */
    uint32_t ref_end[TRIB_LANES];
    struct trib_view peer_send;
    struct trib_view peer_recv;
};

struct trib_program {
    uint32_t n_chunks;
    uint32_t n_tasks;
    uint32_t n_contribs;
    uint32_t n_neighbors;
    uint32_t share_rounds; /* rounds that begin with an agreement, from 0 on; or 0 */
    uint32_t share_lead; /* rounds that have nothing else, from 0 on; at most these */
    struct trib_task *tasks;
    uint32_t *first; /* [n_chunks] the first task of a chunk, or TRIB_STEP_NO_DEP */
    uint32_t *next; /* [n_tasks] the next task of the same chunk, or TRIB_STEP_NO_DEP */
    struct trib_contrib *contribs;
    struct trib_neighbor *neighbors;
};

/**
 * trib_frame_seq - the number of frames of an operation that a lane carries before one.
 *
 * all      frames of a round
 * share    frames of the agreement among them: the last share_lead rounds have none of
 *          them, and the first share_lead rounds have no others
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

/** trib_send_seq - the position of a SEND's frame of a round on its lane. */
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
 * trib_program_create - lower a checked schedule for a rank, or an aggregator, of
 * `shape`.
 *
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_program_create(const struct trib_schedule *schedule,
                                  const struct trib_shape *shape,
                                  struct trib_program *out);
void trib_program_free(struct trib_program *p);

#endif
