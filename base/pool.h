/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of objects of one size. Made once, never grows, so that the data path never
 * allocates; an empty pool is back-pressure.
 *
 *     objects  |  0  |  1  |  2  |  3  |   each on cache lines of its own
 *                 ^           ^
 *     free     [  2  |  0  |  .  |  . ]    a stack of indices: last freed, first given,
 *                       ^ n_free = 2       because it is still in the cache
 *
 * Thread: one at a time.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_pool {
    char *objects;
    uint32_t *free;
    size_t stride; /* bytes from one object to the next */
    uint32_t n;
    uint32_t n_free;
};

/**
 * trib_pool_create - memory for n objects of `bytes` each, zero, 64-aligned.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_ERR_OVERFLOW if n * bytes fits no size_t
 */
trib_status_t trib_pool_create(struct trib_pool *pool, uint32_t n, size_t bytes);

/** trib_pool_destroy - frees all objects, also those still in use. */
void trib_pool_destroy(struct trib_pool *pool);

/** trib_pool_get - an object with whatever its last user left in it; NULL if none is
 * free. */
static inline void *trib_pool_get(struct trib_pool *pool)
{
    if (!pool->n_free)
        return NULL;
    return pool->objects + pool->free[--pool->n_free] * pool->stride;
}

/** trib_pool_index - the number of an object, 0..n-1. */
static inline uint32_t trib_pool_index(const struct trib_pool *pool, const void *object)
{
    size_t offset = (size_t)((const char *)object - pool->objects);

    assert(offset % pool->stride == 0 && offset / pool->stride < pool->n);
    return (uint32_t)(offset / pool->stride);
}

/** trib_pool_at - the object with a number. */
static inline void *trib_pool_at(const struct trib_pool *pool, uint32_t index)
{
    assert(index < pool->n);
    return pool->objects + index * pool->stride;
}

/** trib_pool_put - give an object back. */
static inline void trib_pool_put(struct trib_pool *pool, void *object)
{
    assert(pool->n_free < pool->n);
    pool->free[pool->n_free++] = trib_pool_index(pool, object);
}

#endif
