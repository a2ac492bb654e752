/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbour plans (tributary/neighbors.h), shared by two files: plan_neighbors.c has
 * the public calls and checks graphs, neighbor_steps.c runs the steps.
 *
 * A step ends once its messages are done and its parts are added. If parts may be late,
 * up to `late` steps before the newest one may be in flight with it.
 */
#ifndef COMM_KINDS_PLAN_NEIGHBORS_H
#define COMM_KINDS_PLAN_NEIGHBORS_H

#include <tributary/neighbors.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/neighbor_words.h"
#include "pipeline/p2p/p2p.h"

/* Each edge of a step takes three messages: the sender sends an offer and the part of
 * the vector, the receiver a demand. So each end learns of the other: an offer or
 * demand for a step that has begun here, with nothing posted for it, is an edge that
 * only one end has. */
enum trib_neighbor_message {
    TRIB_NEIGHBOR_PART,
    TRIB_NEIGHBOR_OFFER,
    TRIB_NEIGHBOR_DEMAND,
    TRIB_NEIGHBOR_MESSAGES,
};

/* Contents of an offer or demand. */
struct trib_neighbor_note {
    uint64_t step;
    uint64_t codec; /* its digest, or 0 */
    double weight; /* in an offer */
};

/* The local end of an edge. */
struct trib_neighbor_end {
    int peer;
    bool gives; /* this rank sends the part */
    bool part_done; /* the part has been transferred */
    bool offer_done; /* the weight has been transferred */
    bool added; /* on the receiver: part and weight are added */
    double share;
    struct trib_neighbor_note out, in;
    uint8_t *part; /* [bytes], followed by its encoded chunk if the plan has a codec */
    bool shared; /* the part is in memory that peers read by loads */
    struct trib_p2p_request requests[TRIB_NEIGHBOR_MESSAGES];
};

struct trib_neighbor_step {
    struct trib_plan_neighbors *of;
    struct trib_neighbor_step *next; /* newer step, or next idle step */
    uint64_t number; /* from 1 */
    uint32_t pending; /* outstanding messages */
    struct trib_neighbor_end *ends; /* [n_ends], senders first, by rank */
    struct trib_vector_part *given; /* [room] parts subtracted from the vector */
    int n_ends, room;
};

struct trib_plan_neighbors {
    struct trib_plan_ops ops; /* of a collective's plan, with a few rows replaced */
    struct trib_plan *plan;
    struct trib_plan_neighbors *next; /* in the communicator's list */
    int id; /* equal on all ranks */
    bool *peers; /* [ranks] peers that graphs may use */
    size_t bytes;
    struct trib_neighbor_words *words; /* NULL: no codec */
    uint64_t late; /* maximum lateness of a part, in steps */
    bool drains; /* the newest start waits for all steps in flight */
    bool undrained; /* parts may be late, and there were steps since the last drain */
    trib_status_t status;
    struct trib_neighbor_step *oldest; /* steps in flight */
    struct trib_neighbor_step *newest;
    struct trib_neighbor_step *idle; /* kept for reuse; accessed without the lock while
                                      * no start is in flight */
    struct trib_neighbor_step *prepared; /* for the next start, or NULL */
    trib_in_flight_t counts; /* steps, sent and added parts, and weights */
    uint8_t *x;
    double *weight;
};

extern const struct trib_plan_kind trib_plan_neighbors_kind;

/** trib_plan_neighbors_of - return the data of a neighbour plan, else NULL. */
static inline struct trib_plan_neighbors *trib_plan_neighbors_of(
    const struct trib_plan *plan)
{
    return plan->kind == &trib_plan_neighbors_kind ? plan->of_kind : NULL;
}

/** trib_neighbor_step_prepare - make n->prepared a step with room for `ends` ends;
 * TRIB_ERR_NO_MEMORY with a message. */
trib_status_t trib_neighbor_step_prepare(struct trib_plan_neighbors *n, int ends);

/** trib_neighbor_step_begin - begin n->prepared, whose ends are set, with n->x and
 * n->weight: the start function of such a plan; `send` is n. */
trib_status_t trib_neighbor_step_begin(struct trib_plan *plan, const void *send,
                                       void *recv);

/** trib_neighbor_steps_count - count what is in flight, in n->counts and the active
 * steps; with the lock. */
void trib_neighbor_steps_count(const struct trib_plan_neighbors *n,
                               trib_in_flight_t *out);

/** trib_neighbor_steps_free - free all steps of a plan. */
void trib_neighbor_steps_free(struct trib_plan_neighbors *n);

#endif
