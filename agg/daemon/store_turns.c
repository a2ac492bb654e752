/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/store_turns.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "agg/jobs/drr.h"
#include "base/minmax.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    LONG_NS = 5000000, /* length of a turn at the weight of a user's only job */
    WEIGHT_MOST = 16 * TRIB_DRR_WEIGHT_ONE, /* maximum weight for lengthening a turn */
    TICK_MS = 250, /* interval of ticks while waiting */
    PAUSED_MOST_MS = 1000, /* then a paused turn continues, even beyond the limit */
};

struct store_turns {
    pthread_mutex_t mutex; /* guards everything here, and the flows */
    int64_t n_free; /* threads that may start; negative after let_go */
    uint64_t now; /* start tag of the newest turn */
    struct store_turn *waiting;
};

trib_status_t store_turns_create(uint32_t n, struct store_turns **out)
{
    struct store_turns *turns = calloc(1, sizeof(*turns));

    *out = turns;
    if (!turns)
        return TRIB_ERR_NO_MEMORY;
    turns->n_free = n;
    pthread_mutex_init(&turns->mutex, NULL);
    return TRIB_OK;
}

void store_turns_free(struct store_turns *turns)
{
    if (!turns)
        return;
    assert(!turns->waiting);
    pthread_mutex_destroy(&turns->mutex);
    free(turns);
}

static uint64_t processor_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Under the mutex ------------------------------------------------------------------ */

/* Return true if the turn may start. A walk waits only for earlier walks over its
 * vector. So a paused turn waits for paused turns with earlier walks, and a new turn
 * for all paused ones. */
static bool may_begin(const struct store_turn *turn)
{
    for (const struct store_turn *p = turn->flow->paused; p; p = p->next_paused)
        if (!turn->paused || p->walk_ns < turn->walk_ns)
            return false;
    return true;
}

static void pause_turn(struct store_turn *turn)
{
    turn->paused = true;
    turn->next_paused = turn->flow->paused;
    turn->flow->paused = turn;
}

static void resume_turn(struct store_turn *turn)
{
    struct store_turn **at = &turn->flow->paused;

    while (*at != turn)
        at = &(*at)->next_paused;
    *at = turn->next_paused;
    turn->paused = false;
}

/* Return true if the turn has used the time that its weight allows while others
 * wait. */
static bool is_long(const struct store_turn *turn)
{
    const uint64_t weight = trib_min(atomic_load(&turn->flow->weight), WEIGHT_MOST);

    return processor_ns() - turn->began_ns >= LONG_NS * weight / TRIB_DRR_WEIGHT_ONE;
}

/* Dequeue the next turn that may start; NULL: none. */
static struct store_turn *take_next(struct store_turns *turns)
{
    struct store_turn **best = NULL;

    for (struct store_turn **at = &turns->waiting; *at; at = &(*at)->next)
        if (may_begin(*at) && (!best || (*at)->start < (*best)->start))
            best = at;
    struct store_turn *turn = best ? *best : NULL;
    if (turn)
        *best = turn->next;
    return turn;
}

/* Start all turns that may start. */
static void grant(struct store_turns *turns)
{
    struct store_turn *turn;

    while (turns->n_free > 0 && (turn = take_next(turns))) {
        assert(!turn->has);
        turns->n_free--;
        turns->now = trib_max(turns->now, turn->start);
        if (turn->paused)
            resume_turn(turn);
        turn->has = true;
        pthread_cond_signal(&turn->granted);
    }
}

/* Charge the turn's processor time to its flow. */
static void charge(struct store_turn *turn)
{
    struct store_flow *flow = turn->flow;
    const uint64_t weight = trib_max(atomic_load(&flow->weight), 1);
    const uint64_t used_ns = processor_ns() - turn->began_ns;

    assert(turn->has);
    flow->tag =
        trib_max(flow->tag, turn->start) + used_ns * TRIB_DRR_WEIGHT_ONE / weight;
}

/* Let a paused turn continue although no thread is free. A running thread may be
 * blocked by this walk, so waiting could deadlock. */
static void let_go(struct store_turns *turns, struct store_turn *turn)
{
    struct store_turn **at = &turns->waiting;

    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    turns->n_free--;
    resume_turn(turn);
    turn->has = true;
}

/* Wait for the turn; turns with equal tags are served in order of arrival. */
static void wait_turn(struct store_turns *turns, struct store_turn *turn,
                      const struct trib_store_tick *tick)
{
    struct store_turn **last = &turns->waiting;

    turn->has = false;
    turn->start = trib_max(turn->flow->tag, turns->now);
    turn->next = NULL;
    while (*last)
        last = &(*last)->next;
    *last = turn;
    grant(turns);
    const uint64_t patience = trib_deadline_ms(PAUSED_MOST_MS);
    while (!turn->has) {
        const uint64_t until = trib_deadline_ms(TICK_MS);
        if (trib_cond_wait(&turn->granted, &turns->mutex, until) || turn->has)
            continue;
        if (turn->paused && trib_deadline_passed(patience))
            let_go(turns, turn);
        if (turn->has || !tick)
            continue;
        pthread_mutex_unlock(&turns->mutex);
        tick->call(tick->arg, 0);
        pthread_mutex_lock(&turns->mutex);
    }
}

/* Turns ---------------------------------------------------------------------------- */

void store_turn_begin(struct store_turns *turns, struct store_turn *turn,
                      struct store_flow *flow, const struct trib_store_tick *tick)
{
    assert(flow);
    if (turn->has)
        return; /* the turn was kept */
    *turn = (struct store_turn){.flow = flow};
    trib_cond_init(&turn->granted);
    pthread_mutex_lock(&turns->mutex);
    wait_turn(turns, turn, tick);
    pthread_mutex_unlock(&turns->mutex);
    turn->began_ns = processor_ns();
}

void store_turn_pause(struct store_turns *turns, struct store_turn *turn,
                      const struct trib_store_tick *tick)
{
    assert(turn->has);
    if (!is_long(turn))
        return;
    pthread_mutex_lock(&turns->mutex);
    charge(turn);
    if (turns->waiting) {
        turns->n_free++;
        pause_turn(turn);
        wait_turn(turns, turn, tick);
    }
    pthread_mutex_unlock(&turns->mutex);
    turn->began_ns = processor_ns();
}

void store_turn_give_way(struct store_turns *turns, struct store_turn *turn,
                         const struct trib_store_tick *tick)
{
    struct store_flow *flow = turn->flow;

    assert(turn->has);
    pthread_mutex_lock(&turns->mutex);
    const bool gives_way = flow->paused;
    pthread_mutex_unlock(&turns->mutex);
    if (!gives_way)
        return;
    store_turn_end(turns, turn, false);
    store_turn_begin(turns, turn, flow, tick);
}

void store_turn_end(struct store_turns *turns, struct store_turn *turn, bool more)
{
    if (!turn->has || (more && !is_long(turn)))
        return;
    pthread_mutex_lock(&turns->mutex);
    charge(turn);
    turns->n_free++;
    turn->has = false;
    grant(turns);
    pthread_mutex_unlock(&turns->mutex);
    pthread_cond_destroy(&turn->granted);
}
