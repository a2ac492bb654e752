/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns of the threads of all stores at the processors: as many threads work at a time
 * as tribd has threads that sum. So stores take half of its time from sums at most,
 * however many there are.
 *
 * Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over processor time: the
 * store that has used least, by its weight, is next. A thread that works for long gives
 * its turn up in between, also while it holds elements of a vector; then no other
 * thread of its store begins before it goes on, as that one might wait for them. Of
 * several such threads of a store, the one whose walk began first goes on first: the
 * others may be behind it on the same vector, and would keep a turn while they wait.
 */
#ifndef TRIBD_STORE_TURNS_H
#define TRIBD_STORE_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "agg/store/store_table.h"
#include "base/error.h"

struct store_turns;

/* A store; zero, and weighed, before its first turn. */
struct store_flow {
    _Atomic uint32_t weight; /* of trib_jobs_weight */
    uint64_t tag; /* what it has used, by its weight */
    struct store_turn *paused; /* of its threads, amid their work */
};

/* A thread's turn; zero before the first one. */
struct store_turn {
    struct store_turn *next; /* of those that wait */
    struct store_flow *flow;
    pthread_cond_t granted;
    bool has; /* it may work */
    bool paused;
    struct store_turn *next_paused; /* of its flow */
    uint64_t walk_ns; /* set before a pause: when the thread's walk began, or 0 */
    uint64_t start; /* the flow's tag when it began to wait */
    uint64_t began_ns; /* processor time of the thread then */
};

/** store_turns_create - n: threads that work at a time; errors: TRIB_ERR_NO_MEMORY. */
trib_status_t store_turns_create(uint32_t n, struct store_turns **out);

/** store_turns_free - NULL is allowed. */
void store_turns_free(struct store_turns *turns);

/**
 * store_turn_begin - wait until the thread may work.
 *
 * tick     called now and then meanwhile; or NULL
 */
void store_turn_begin(struct store_turns *turns, struct store_turn *turn,
                      struct store_flow *flow, const struct trib_store_tick *tick);

/** store_turn_pause - amid its work: let others go first if they wait, and the turn has
 * lasted for long. */
void store_turn_pause(struct store_turns *turns, struct store_turn *turn,
                      const struct trib_store_tick *tick);

/** store_turn_give_way - between two pieces of work of a turn: let paused turns of the
 * store go on first. A new walk may be behind theirs. */
void store_turn_give_way(struct store_turns *turns, struct store_turn *turn,
                         const struct trib_store_tick *tick);

/** store_turn_end - end the turn, if it has one; with `more` work at hand the thread
 * keeps it until it has lasted for long. */
void store_turn_end(struct store_turns *turns, struct store_turn *turn, bool more);

#endif
