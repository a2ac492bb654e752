/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regression test: a store that reconnects keeps the ALIVE thread away from the session
 * that it frees.
 */
#include "tests/harness/tribtest.h"

#include <errno.h>

#include "agg/store_client/rank_store.h"

static bool was_locked;

static trib_status_t connect_again(struct trib_store *store)
{
    was_locked = pthread_mutex_trylock(&store->alive.lock) == EBUSY;
    if (!was_locked)
        pthread_mutex_unlock(&store->alive.lock);
    return TRIB_OK;
}

#define trib_store_shard_is_lost(store, shard) ((void)(shard), true)
#define trib_store_shard_again(store, shard) connect_again(store)
#include "agg/store_client/store_restore.c"

TEST(test_restore_keeps_the_thread_away)
{
    struct trib_store store = {.alive.pid = getpid()};
    struct trib_vector v = {.store = &store};
    struct trib_vector_part p = {.lost = true};

    pthread_mutex_init(&store.alive.lock, NULL);
    assert_status(check_part(&v, &p), TRIB_OK);
    assert_true(was_locked);
    assert_int_equal(pthread_mutex_trylock(&store.alive.lock), 0);
    pthread_mutex_unlock(&store.alive.lock);
    pthread_mutex_destroy(&store.alive.lock);
}
