/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: an operation of a plan, prepared once and started often.
 *
 * It has three parts: one fixed by the plan, one that changes with each operation, and
 * one private to pipeline/payload (payload_state.h). No function here starts,
 * advances or ends anything.
 */
#ifndef PIPELINE_RUN_RUN_H
#define PIPELINE_RUN_RUN_H

#include <stdatomic.h>

#include "collectives/schedule/program.h"
#include "pipeline/link/link.h"
#include "pipeline/link/registered.h"
#include "pipeline/run/run_desc.h"

struct trib_engine;
struct trib_payload_ops;
struct trib_payload_state;
struct trib_short_path;

enum trib_run_state {
    TRIB_RUN_IDLE,
    TRIB_RUN_QUEUED,
    TRIB_RUN_ACTIVE,
    TRIB_RUN_DONE,
};

/* The current or last operation of a run. */
struct trib_run_now {
    _Atomic int state;    /* enum trib_run_state */
    trib_status_t status; /* result when DONE */
    struct trib_run *next; /* in the queue of the engine */
    const uint8_t *input; /* contribution to vector element input_first */
    uint8_t *recv;        /* vector element recv_first */
    size_t input_first;
    size_t recv_first;
    struct trib_frame frame; /* template of all frames of the operation */
    uint32_t step;           /* number of starts */
    uint32_t remaining;      /* unfinished tasks */
    uint64_t moved;          /* frames sent and received, for error messages */
    const float *exchanged;  /* sum that the ranks exchanged for the model before this
                              * start, or NULL */
    _Atomic uint32_t *unfed; /* [rounds * n_chunks] elements that the caller has not fed
                              * yet; NULL: the whole input is ready at the start */
    struct trib_place input_place; /* registered memory of input and recv */
    struct trib_place recv_place;
    struct trib_region *borrowed[2]; /* input and recv, registered for this start; NULL:
                                      * not borrowed */
    bool input_stays; /* no task overwrites the input */
    struct trib_advert advert;     /* buffers for peers within load/store reach */
    struct trib_advert advert_far; /* buffers for the other peers */
};

struct trib_run {
    struct trib_run_desc desc;
    struct trib_program program;
    /* Payloads of the vector's tasks, and of the agreement's: payload.h. */
    const struct trib_payload_ops *payload_ops[2];
    struct trib_short_path *short_path; /* for small raw operations; or NULL */
    bool is_aggregator; /* contributes nothing, accumulates in scratch_acc */
    bool reads; /* peers may receive addresses of unregistered memory */
    bool no_result;     /* recv gets no result: accumulators are in scratch_acc */

    const uint8_t *results; /* accumulators of an aggregator that peers read, or NULL */
    size_t results_bytes;

    struct trib_run_now now;
    struct trib_payload_state *payload;
};

/** trib_run_most_contribs - return the largest number of contributions to a task. */
uint32_t trib_run_most_contribs(const struct trib_run *run);

/** trib_run_bind - set the caller's buffers and the elements of the vector in them. */
void trib_run_bind(struct trib_engine *e, struct trib_run *run, const void *send,
                   void *recv);

/** trib_run_due - return the entry of a contribution's frame in a round if the frame is
 * the next on its lane and has arrived; else NULL. */
struct trib_entry *trib_run_due(struct trib_engine *e, struct trib_run *run,
                                const struct trib_contrib *m, uint32_t round);

#endif
