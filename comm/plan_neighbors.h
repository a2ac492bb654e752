/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of neighbours (tributary/neighbors.h), for their two files: plan_neighbors.c
 * has the public calls and checks graphs, neighbor_steps.c runs the steps.
 *
 * A step is over once its messages are through and its parts are added. Of a plan
 * whose parts may be late, up to `late` steps before the newest one are under way
 * beside it.
 */
#ifndef COMM_PLAN_NEIGHBORS_H
#define COMM_PLAN_NEIGHBORS_H

#include <tributary/neighbors.h>

#include "comm/communicator.h"
#include "comm/neighbor_words.h"
#include "pipeline/p2p/p2p.h"

/* Each edge of a step is three messages. Its sender gives an offer and the part of the
 * vector, its receiver a demand. So each end hears of the other one: an offer or a
 * demand of a step that has begun here, and for which nothing is posted, is an edge
 * that one end alone has. */
enum trib_neighbor_message {
    TRIB_NEIGHBOR_PART,
    TRIB_NEIGHBOR_OFFER,
    TRIB_NEIGHBOR_DEMAND,
    TRIB_NEIGHBOR_MESSAGES,
};

/* The elements of an offer and of a demand. */
struct trib_neighbor_note {
    uint64_t step;
    uint64_t codec; /* its digest, or 0 */
    double weight; /* of an offer */
};

/* Each of the two ranks of an edge has one of its ends. */
struct trib_neighbor_end {
    int peer;
    bool gives; /* this rank gives the part */
    bool part_done; /* the part is through, */
    bool offer_done; /* and so is its weight; */
    bool added; /* this rank takes them, and has added both */
    double share;
    struct trib_neighbor_note out, in;
    uint8_t *part; /* [bytes], and behind it, of a plan with a codec, its code words */
    bool shared; /* the part is in memory that peers read by loads */
    struct trib_p2p_request requests[TRIB_NEIGHBOR_MESSAGES];
};

struct trib_neighbor_step {
    struct trib_plan_neighbors *of;
    struct trib_neighbor_step *next; /* newer one, or another idle one */
    uint64_t number; /* from 1 */
    uint32_t pending; /* messages of it */
    struct trib_neighbor_end *ends; /* [n_ends], those that give first, by rank */
    struct trib_vector_part *given; /* [room] what is taken out of the vector */
    int n_ends, room;
};

struct trib_plan_neighbors {
    struct trib_plan_ops ops; /* those of other plans, but for a few */
    struct trib_plan *plan;
    struct trib_plan_neighbors *next; /* of the communicator */
    int id; /* the same on all ranks */
    bool *peers; /* [ranks] of which graphs may be */
    size_t bytes;
    struct trib_neighbor_words *words; /* neighbor_words.h; NULL: no codec */
    uint64_t late; /* steps by which a part may be late */
    bool drains; /* the newest start waits for all that is under way */
    bool undrained; /* parts may be late, and there were some since the last drain */
    trib_status_t status;
    struct trib_neighbor_step *oldest; /* steps that have begun and are not over */
    struct trib_neighbor_step *newest;
    struct trib_neighbor_step *idle; /* for starts to come; without the lock, while no
                                      * start is under way */
    struct trib_neighbor_step *prepared; /* for the next start, or NULL */
    trib_in_flight_t counts; /* steps, given, added and weights */
    uint8_t *x;
    double *weight;
};

/** trib_neighbor_step_prepare - have n->prepared be a step with room for these ends;
 * TRIB_ERR_NO_MEMORY with a sentence. */
trib_status_t trib_neighbor_step_prepare(struct trib_plan_neighbors *n, int ends);

/** trib_neighbor_step_begin - begin n->prepared, which has its ends, with n->x and
 * n->weight: the start of such a plan, whose `send` is n. */
trib_status_t trib_neighbor_step_begin(struct trib_plan *plan, const void *send,
                                       void *recv);

/** trib_neighbor_steps_count - count what is in flight, in counts and the steps under
 * way; with the lock. */
void trib_neighbor_steps_count(const struct trib_plan_neighbors *n,
                               trib_in_flight_t *out);

/** trib_neighbor_steps_release - TRIB_OK if the plan can be freed; else TRIB_ERR_BUSY
 * and a sentence. */
trib_status_t trib_neighbor_steps_release(struct trib_plan_neighbors *n);

/** trib_neighbor_steps_free - free all steps of a plan. */
void trib_neighbor_steps_free(struct trib_plan_neighbors *n);

#endif
