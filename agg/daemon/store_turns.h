/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling of the threads of all stores: at most as many run at a time as tribd has
 * worker threads. So stores take at most half of the processor time, however many there
 * are.
 *
 * Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over processor time: the
 * store with the least use, divided by its weight, is next. A long-running thread
 * pauses its turn in between, even while it locks elements of a vector. Then no other
 * thread of its store starts before it continues, because that thread might wait for
 * the locked elements. Of several paused threads of a store, the one with the earliest
 * walk continues first: the others may be behind it on the same vector, and would hold
 * a turn while blocked.
 */
#ifndef AGG_DAEMON_STORE_TURNS_H
#define AGG_DAEMON_STORE_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "agg/store/store_table.h"
#include "base/error.h"

struct store_turns;

/* A store. Zero it and set its weight before the first turn. */
struct store_flow {
    _Atomic uint32_t weight; /* see trib_jobs_weight */
    uint64_t tag; /* processor time used, divided by weight */
    struct store_turn *paused; /* paused turns of its threads */
};

/* A thread's turn; zero before its first use. */
struct store_turn {
    struct store_turn *next; /* queue of waiting turns */
    struct store_flow *flow;
    pthread_cond_t granted;
    bool has; /* the thread may run */
    bool paused;
    struct store_turn *next_paused; /* list of its flow */
    uint64_t walk_ns; /* set before a pause: start of the thread's walk, or 0 */
    uint64_t start; /* the flow's tag at the start of the wait */
    uint64_t began_ns; /* thread's processor time at the start */
};

/** store_turns_create - create a scheduler of n concurrent threads; errors:
 * TRIB_ERR_NO_MEMORY. */
trib_status_t store_turns_create(uint32_t n, struct store_turns **out);

/** store_turns_free - free it; NULL is allowed. */
void store_turns_free(struct store_turns *turns);

/**
 * store_turn_begin - wait until the thread may run.
 *
 * tick     called periodically during the wait; or NULL
 */
void store_turn_begin(struct store_turns *turns, struct store_turn *turn,
                      struct store_flow *flow, const struct trib_store_tick *tick);

/** store_turn_pause - during work: let waiting turns go first if this turn was long. */
void store_turn_pause(struct store_turns *turns, struct store_turn *turn,
                      const struct trib_store_tick *tick);

/** store_turn_give_way - between two pieces of work: let paused turns of the store
 * continue first. A new walk might be blocked by theirs. */
void store_turn_give_way(struct store_turns *turns, struct store_turn *turn,
                         const struct trib_store_tick *tick);

/** store_turn_end - end the turn, if the thread has one; with `more` work the thread
 * keeps it until the turn was long. */
void store_turn_end(struct store_turns *turns, struct store_turn *turn, bool more);

#endif
