/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores share processor time by their weights, and a long turn is interrupted, also
 * where several threads of a store walk over one vector.
 */
#include <stdatomic.h>

#include "agg/daemon/store_turns.h"
#include "agg/jobs/drr.h"
#include "agg/store/store_walk.h"
#include "base/time.h"
#include "tests/harness/tribtest.h"

enum {
    TURN_US = 500,
    TURNS = 400,
    WALKERS = 3, /* threads of a store */
    WALKS = 4, /* of each */
    STRIPES = 12,
    STRIPE_US = 1000,
    LONG_US = 6000, /* longer than a turn */
    WAIT_MS = 10000,
};

static struct store_turns *turns;
static _Atomic int taken; /* turns taken by all */

struct store {
    pthread_t thread;
    struct store_flow flow;
    int turns;
    _Atomic bool begun;
};

static void work(long us)
{
    struct timespec t;
    long until;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    until = t.tv_sec * 1000000 + t.tv_nsec / 1000 + us;
    while (t.tv_sec * 1000000 + t.tv_nsec / 1000 < until)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

static void *take_turns(void *arg)
{
    struct store *store = arg;
    struct store_turn turn = {.has = false};

    while (atomic_load(&taken) < TURNS) {
        store_turn_begin(turns, &turn, &store->flow, NULL);
        store->begun = true;
        if (atomic_fetch_add(&taken, 1) < TURNS)
            store->turns++;
        work(TURN_US);
        store_turn_end(turns, &turn, true);
    }
    store_turn_end(turns, &turn, false);
    return NULL;
}

/* Of two busy stores, one gets three times as much. */
TEST(test_weights)
{
    struct store stores[2] = {{.flow.weight = 3 * TRIB_DRR_WEIGHT_ONE},
                              {.flow.weight = TRIB_DRR_WEIGHT_ONE}};
    struct store_turn turn = {.has = false};
    struct store_flow first = {.weight = TRIB_DRR_WEIGHT_ONE};
    unsigned rests = 0;

    assert_ok(store_turns_create(1, &turns));
    atomic_store(&taken, 0);
    store_turn_begin(turns, &turn, &first, NULL); /* until both threads have arrived */
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            pthread_create(&stores[i].thread, NULL, take_turns, &stores[i]), 0);
    while (rests < 300)
        tribtest_rest(&rests);
    store_turn_end(turns, &turn, false);
    for (int i = 0; i < 2; i++)
        pthread_join(stores[i].thread, NULL);
    assert_in_range(stores[0].turns, TURNS * 65 / 100, TURNS * 85 / 100);
    store_turns_free(turns);
}

static void count_tick(void *arg, uint64_t walk_ns)
{
    assert_int_equal(walk_ns, 0);
    ++*(int *)arg;
}

static void *take_one(void *arg)
{
    struct store *store = arg;
    struct store_turn turn = {.has = false};

    store_turn_begin(turns, &turn, &store->flow, NULL);
    store->begun = true;
    store_turn_end(turns, &turn, false);
    return NULL;
}

/* Another store interrupts a long turn, which then continues. */
TEST(test_long)
{
    struct store own = {.flow.weight = TRIB_DRR_WEIGHT_ONE};
    struct store other = {.flow.weight = TRIB_DRR_WEIGHT_ONE};
    struct store_turn turn = {.has = false};
    int ticks = 0;
    const struct trib_store_tick tick = {count_tick, &ticks};

    assert_ok(store_turns_create(1, &turns));
    store_turn_begin(turns, &turn, &own.flow, &tick);
    store_turn_pause(turns, &turn, &tick); /* no other store waits, and the turn is not
                                            * long */
    assert_int_equal(pthread_create(&other.thread, NULL, take_one, &other), 0);
    work(1000);
    while (!atomic_load(&other.begun)) {
        work(LONG_US);
        store_turn_pause(turns, &turn, &tick);
    }
    pthread_join(other.thread, NULL);
    assert_true(turn.has && !own.flow.paused);
    store_turn_end(turns, &turn, false);
    store_turns_free(turns);
}

/* A store with a vector, and threads that walk over it. */
struct walked {
    struct store_flow flow;
    struct trib_store_table *table;
};

static _Atomic int walkers; /* walkers that have ended */

static void *walk_and_pause(void *arg)
{
    struct walked *store = arg;
    struct store_turn turn = {.has = false};
    struct trib_store_walk walk;

    for (int i = 0; i < WALKS; i++) { /* several in a turn, if it is not long */
        store_turn_begin(turns, &turn, &store->flow, NULL);
        store_turn_give_way(turns, &turn, NULL);
        trib_store_walk_begin(store->table, 0, NULL, &walk);
        for (uint64_t s = 0; s < STRIPES; s++) {
            trib_store_walk_to(&walk, s * TRIB_STORE_STRIPE,
                               (s + 1) * TRIB_STORE_STRIPE);
            work(STRIPE_US);
            turn.walk_ns = walk.began_ns;
            store_turn_pause(turns, &turn, NULL);
        }
        trib_store_walk_end(&walk);
        store_turn_end(turns, &turn, i + 1 < WALKS);
    }
    (void)atomic_fetch_add(&walkers, 1);
    return NULL;
}

/* Two stores have several threads, and two threads may work at once. A walk does not
 * get a turn while it follows a walk without one: neither would end. */
TEST(test_walks)
{
    const struct trib_store_spec spec = {"v", TRIB_F32, STRIPES * TRIB_STORE_STRIPE,
                                         "sum"};
    struct walked stores[2] = {{.flow.weight = TRIB_DRR_WEIGHT_ONE},
                               {.flow.weight = TRIB_DRR_WEIGHT_ONE}};
    pthread_t threads[2 * WALKERS];
    struct trib_store_found found;
    const uint64_t until = trib_deadline_ms(WAIT_MS * tribtest_slowness());
    unsigned rests = 0;

    assert_ok(store_turns_create(2, &turns));
    for (int i = 0; i < 2; i++) {
        assert_ok(trib_store_table_create(1, NULL, &stores[i].table));
        assert_ok(trib_store_table_open(stores[i].table, &spec, NULL, &found));
    }
    for (int i = 0; i < 2 * WALKERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, walk_and_pause, &stores[i % 2]), 0);
    while (atomic_load(&walkers) < 2 * WALKERS && !trib_deadline_passed(until))
        tribtest_rest(&rests);
    assert_int_equal(atomic_load(&walkers), 2 * WALKERS);
    for (int i = 0; i < 2 * WALKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        trib_store_table_destroy(stores[i].table);
    store_turns_free(turns);
}

static _Atomic bool continued; /* the paused thread has its turn again */

/* Take the only turn and wait for work of the paused thread. */
static void *block(void *arg)
{
    struct store *store = arg;
    struct store_turn turn = {.has = false};
    const uint64_t until = trib_deadline_ms(WAIT_MS * (int)tribtest_slowness());
    unsigned rests = 0;

    store_turn_begin(turns, &turn, &store->flow, NULL);
    while (!atomic_load(&continued) && !trib_deadline_passed(until))
        tribtest_rest(&rests);
    store_turn_end(turns, &turn, false);
    return NULL;
}

/* A paused turn continues although it blocks the thread with the last turn. */
TEST(test_blocked)
{
    static struct store paused, other;
    struct store_turn turn = {.has = false};
    const uint64_t began_ns = trib_now_ns();

    paused.flow.weight = other.flow.weight = TRIB_DRR_WEIGHT_ONE;
    assert_ok(store_turns_create(1, &turns));
    store_turn_begin(turns, &turn, &paused.flow, NULL);
    assert_int_equal(pthread_create(&other.thread, NULL, block, &other), 0);
    for (uint64_t slept_ns = 0; slept_ns < 100000000;) { /* a pause with no waiting
                                                          * thread returns at once */
        work(LONG_US);
        const uint64_t before_ns = trib_now_ns();
        store_turn_pause(turns, &turn, NULL);
        slept_ns = trib_now_ns() - before_ns;
    }
    atomic_store(&continued, true);
    assert_true(turn.has);
    store_turn_end(turns, &turn, false);
    pthread_join(other.thread, NULL);
    assert_true(trib_now_ns() - began_ns <
                (uint64_t)WAIT_MS * 1000000 * (uint64_t)tribtest_slowness());
    store_turns_free(turns);
}
