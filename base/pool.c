/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

trib_status_t trib_pool_create(struct trib_pool *pool, uint32_t n, size_t bytes)
{
    size_t total;

    *pool = (struct trib_pool){0};
    if (bytes > SIZE_MAX - TRIB_CACHE_LINE)
        return TRIB_ERR_OVERFLOW;
    size_t lines = bytes ? (bytes + TRIB_CACHE_LINE - 1) / TRIB_CACHE_LINE : 1;
    if (__builtin_mul_overflow(lines * TRIB_CACHE_LINE, (size_t)n, &total))
        return TRIB_ERR_OVERFLOW;

    pool->free = malloc((n ? n : 1) * sizeof(*pool->free));
    if (!pool->free)
        return TRIB_ERR_NO_MEMORY;
    pool->objects = aligned_alloc(TRIB_CACHE_LINE, total ? total : TRIB_CACHE_LINE);
    if (!pool->objects)
        goto err_free_stack;
    memset(pool->objects, 0, total);
    pool->stride = lines * TRIB_CACHE_LINE;
    pool->n = n;
    for (uint32_t i = n; i > 0; i--) /* the first get gives object 0 */
        pool->free[pool->n_free++] = i - 1;
    return TRIB_OK;

err_free_stack:
    free(pool->free);
    pool->free = NULL;
    return TRIB_ERR_NO_MEMORY;
}

void trib_pool_destroy(struct trib_pool *pool)
{
    free(pool->objects);
    free(pool->free);
    *pool = (struct trib_pool){0};
}
