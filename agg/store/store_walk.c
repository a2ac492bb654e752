/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_walk.h"

#include <assert.h>

#include "agg/store/store_vectors.h"
#include "base/time.h"

void trib_store_walk_begin(const struct trib_store_table *table, uint32_t vector,
                           struct trib_store_walk *walk)
{
    *walk = (struct trib_store_walk){trib_store_vector(table, vector), 0, 1, 0};
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

void trib_store_walk_end(struct trib_store_walk *walk)
{
    while (walk->low < walk->high)
        pthread_mutex_unlock(&walk->v->stripes[walk->low++]);
}
