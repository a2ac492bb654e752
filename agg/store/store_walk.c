/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_walk.h"

#include <assert.h>

#include "agg/store/store_vectors.h"
#include "base/time.h"

enum { ELEMENTS_A_TICK = 8 * TRIB_STORE_STRIPE };

void trib_store_walk_begin(const struct trib_store_table *table, uint32_t vector,
                           const struct trib_store_tick *tick,
                           struct trib_store_walk *walk)
{
    *walk = (struct trib_store_walk){
        .v = trib_store_vector(table, vector), .high = 1, .tick = tick};
    pthread_mutex_lock(&walk->v->stripes[0]);
    walk->began_ns = trib_now_ns();
}

void trib_store_walk_to(struct trib_store_walk *walk, uint64_t first, uint64_t end)
{
    const uint64_t low = first / TRIB_STORE_STRIPE;
    const uint64_t high = trib_store_stripes(end);

    assert(first < end && end <= walk->v->count && low >= walk->low);
    while (walk->low < low || walk->high < high) {
        if (walk->low < low && walk->low + 1 < walk->high)
            pthread_mutex_unlock(&walk->v->stripes[walk->low++]);
        else
            pthread_mutex_lock(&walk->v->stripes[walk->high++]);
    }
}

void trib_store_walk_did(struct trib_store_walk *walk, uint64_t n)
{
    walk->done += n;
    if (!walk->tick || walk->done < ELEMENTS_A_TICK)
        return;
    walk->done = 0;
    walk->tick->call(walk->tick->arg, walk->began_ns);
}

void trib_store_walk_end(struct trib_store_walk *walk)
{
    while (walk->low < walk->high)
        pthread_mutex_unlock(&walk->v->stripes[walk->low++]);
}
