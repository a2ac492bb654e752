/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/quota.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

static bool has_room(const struct trib_quota *quota, uint64_t held, uint64_t bytes)
{
    const uint64_t most = atomic_load(&quota->most);

    return !most || (bytes <= most && held <= most - bytes);
}

/* Take from one quota; false: its limit is exceeded, and nothing has changed. */
static bool take_one(struct trib_quota *quota, uint64_t bytes)
{
    uint64_t held = atomic_load(&quota->held);

    do {
        if (!has_room(quota, held, bytes))
            return false;
    } while (!atomic_compare_exchange_weak(&quota->held, &held, held + bytes));
    return true;
}

const struct trib_quota *trib_quota_take_mt(struct trib_quota *quota,
                                              uint64_t bytes)
{
    for (const struct trib_quota *at = quota; at; at = at->above)
        if (!has_room(at, atomic_load(&at->held), bytes))
            return at;
    for (struct trib_quota *at = quota; at; at = at->above) {
        if (take_one(at, bytes))
            continue;
        for (struct trib_quota *back = quota; back != at; back = back->above)
            atomic_fetch_sub(&back->held, bytes);
        return at;
    }
    return NULL;
}

void trib_quota_add_mt(struct trib_quota *quota, uint64_t bytes)
{
    for (; quota; quota = quota->above)
        atomic_fetch_add(&quota->held, bytes);
}

void trib_quota_give_mt(struct trib_quota *quota, uint64_t bytes)
{
    for (; quota; quota = quota->above) {
        const uint64_t before = atomic_fetch_sub(&quota->held, bytes);
        assert(before >= bytes);
        (void)before;
    }
}

uint64_t trib_quota_held_mt(const struct trib_quota *quota)
{
    return atomic_load(&quota->held);
}
