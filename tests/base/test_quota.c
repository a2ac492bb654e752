/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/quota.h"
#include "base/wait.h"

enum { TAKERS = 3, TIMES = 20000 };

TEST(test_all_or_nothing)
{
    struct trib_quota all = {.most = 100}, user = {.above = &all, .most = 60},
                       job = {.above = &user}, other = {.above = &all, .most = 90};

    assert_null(trib_quota_take_mt(&job, 60));
    assert_ptr_equal(trib_quota_take_mt(&job, 1), &user);
    assert_ptr_equal(trib_quota_take_mt(&job, UINT64_MAX), &user);
    assert_ptr_equal(trib_quota_take_mt(&other, 41), &all);
    assert_ptr_equal(trib_quota_take_mt(&other, 91), &other);
    assert_int_equal(trib_quota_held_mt(&job), 60);
    assert_int_equal(trib_quota_held_mt(&user), 60);
    assert_int_equal(trib_quota_held_mt(&all), 60);
    assert_int_equal(trib_quota_held_mt(&other), 0);
    assert_null(trib_quota_take_mt(&other, 40));
    trib_quota_give_mt(&job, 60);
    assert_int_equal(trib_quota_held_mt(&all), 40);
    trib_quota_add_mt(&other, 1000);
    assert_int_equal(trib_quota_held_mt(&all), 1040);
    assert_ptr_equal(trib_quota_take_mt(&job, 1), &all);
}

struct taker {
    pthread_t thread;
    struct trib_quota own;
    bool above;
};

static void *take(void *arg)
{
    struct taker *t = arg;

    for (int i = 0; i < TIMES; i++) {
        if (trib_quota_take_mt(&t->own, 2) != NULL)
            continue;
        t->above |= trib_quota_held_mt(&t->own) > 2;
        trib_quota_give_mt(&t->own, 2);
    }
    return NULL;
}

TEST(test_threads)
{
    struct trib_quota all = {.most = 4};
    struct taker takers[TAKERS];

    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.own = {.above = &all}};
        assert_int_equal(trib_thread_start(&takers[i].thread, take, &takers[i]), 0);
    }
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_int_equal(trib_quota_held_mt(&takers[i].own), 0);
        assert_false(takers[i].above);
    }
    assert_int_equal(trib_quota_held_mt(&all), 0);
}

static _Atomic bool ends;

static void *exceed(void *arg)
{
    struct taker *t = arg;

    while (!atomic_load(&ends))
        t->above |= trib_quota_take_mt(&t->own, UINT64_MAX / 4) == NULL;
    return NULL;
}

/* A job that asks for more than the service has does not make another one fail, neither
 * of another user nor of its own user. */
TEST(test_refused_beside_another)
{
    struct trib_quota all = {.most = 1000}, user = {.above = &all};
    struct trib_quota jobs[] = {{.above = &all}, {.above = &user}};
    struct taker takers[TAKERS];
    int refused = 0;

    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.own = {.above = &user}};
        assert_int_equal(trib_thread_start(&takers[i].thread, exceed, &takers[i]), 0);
    }
    for (int i = 0; i < 20 * TIMES; i++)
        for (int j = 0; j < 2; j++) {
            const bool takes = trib_quota_take_mt(&jobs[j], 10) == NULL;
            refused += !takes;
            if (takes)
                trib_quota_give_mt(&jobs[j], 10);
        }
    atomic_store(&ends, true);
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_false(takers[i].above);
    }
    assert_int_equal(refused, 0);
    assert_int_equal(trib_quota_held_mt(&all), 0);
}
