/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores share processor time by their weights, and a long turn is interrupted. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "agg/jobs/drr.h"
#include "tests/harness/tribtest.h"
#include "tribd/store_turns.h"

enum { TURN_US = 500, TURNS = 400 };

static struct store_turns *turns;
static _Atomic int taken; /* turns of all */

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

/* Of two that always want to work, one has three times as much. */
static void test_weights(void **state)
{
    struct store stores[2] = {{.flow.weight = 3 * TRIB_DRR_WEIGHT_ONE},
                              {.flow.weight = TRIB_DRR_WEIGHT_ONE}};
    struct store_turn turn = {.has = false};
    struct store_flow first = {.weight = TRIB_DRR_WEIGHT_ONE};
    unsigned rests = 0;

    (void)state;
    assert_status(store_turns_create(1, &turns), TRIB_OK);
    atomic_store(&taken, 0);
    store_turn_begin(turns, &turn, &first, NULL); /* until both threads are there */
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

static void count_tick(void *arg)
{
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

/* Another store goes first amid a long turn, which goes on then. */
static void test_long(void **state)
{
    struct store own = {.flow.weight = TRIB_DRR_WEIGHT_ONE};
    struct store other = {.flow.weight = TRIB_DRR_WEIGHT_ONE};
    struct store_turn turn = {.has = false};
    int ticks = 0;
    const struct trib_store_tick tick = {count_tick, &ticks};

    (void)state;
    assert_status(store_turns_create(1, &turns), TRIB_OK);
    store_turn_begin(turns, &turn, &own.flow, &tick);
    store_turn_pause(turns, &turn, &tick); /* nobody waits, and it is no long turn */
    assert_int_equal(pthread_create(&other.thread, NULL, take_one, &other), 0);
    work(1000);
    while (!atomic_load(&other.begun)) {
        work(6000);
        store_turn_pause(turns, &turn, &tick);
    }
    pthread_join(other.thread, NULL);
    assert_true(turn.has && own.flow.n_paused == 0);
    store_turn_end(turns, &turn, false);
    store_turns_free(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_long)};

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
