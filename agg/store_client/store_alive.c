/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep-alive thread of a store: tells each tribd that this process runs, even while the
 * rank computes for minutes without a call. So tribd may assume that a silent rank is
 * stopped or its host unreachable.
 */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "agg/store_client/rank_store.h"
#include "base/time.h"
#include "base/wait.h"

static void *send_alive(void *arg)
{
    struct trib_store *store = arg;
    struct trib_store_alive *alive = &store->alive;

    pthread_mutex_lock(&alive->lock);
    while (!alive->stop) {
        trib_store_keep_alive(store);
        (void)trib_cond_wait(&alive->wake, &alive->lock,
                             trib_deadline_ms(TRIB_SESSION_ALIVE_MS));
    }
    pthread_mutex_unlock(&alive->lock);
    return NULL;
}

void trib_store_keep_alive(struct trib_store *store)
{
    for (int i = 0; i < store->link->n; i++)
        trib_session_keep_alive(store->link->sessions[i]);
}

trib_status_t trib_store_alive_start(struct trib_store *store)
{
    struct trib_store_alive *alive = &store->alive;

    assert(!alive->pid && store->link);
    pthread_mutex_init(&alive->lock, NULL);
    trib_cond_init(&alive->wake);
    const int why = trib_thread_start(&alive->thread, send_alive, store);
    alive->pid = why ? 0 : getpid();
    if (!why)
        return TRIB_OK;
    pthread_cond_destroy(&alive->wake);
    pthread_mutex_destroy(&alive->lock);
    return trib_store_fail(store, TRIB_ERR_SYSTEM,
                           "cannot start the thread of a store: %s", strerror(why));
}

/* A forked child lacks this thread, and its copy of the lock may be locked forever. */
bool trib_store_alive_runs(const struct trib_store *store)
{
    return store->alive.pid && store->alive.pid == getpid();
}

trib_status_t trib_store_enter(struct trib_store *store)
{
    trib_error_clear(&store->err);
    if (trib_store_alive_runs(store))
        return TRIB_OK;
    return trib_store_fail(store, TRIB_ERR_INVALID,
                           "process %d is a forked child, and the store belongs to "
                           "process %d: call trib_init in the child, and open another "
                           "store",
                           (int)getpid(), (int)store->alive.pid);
}

void trib_store_alive_stop(struct trib_store *store)
{
    struct trib_store_alive *alive = &store->alive;

    if (!trib_store_alive_runs(store))
        return;
    pthread_mutex_lock(&alive->lock);
    alive->stop = true;
    pthread_cond_signal(&alive->wake);
    pthread_mutex_unlock(&alive->lock);
    pthread_join(alive->thread, NULL);
    pthread_cond_destroy(&alive->wake);
    pthread_mutex_destroy(&alive->lock);
    alive->pid = 0;
}

void trib_store_lock(struct trib_store *store)
{
    if (trib_store_alive_runs(store))
        pthread_mutex_lock(&store->alive.lock);
}

void trib_store_unlock(struct trib_store *store)
{
    if (trib_store_alive_runs(store))
        pthread_mutex_unlock(&store->alive.lock);
}
