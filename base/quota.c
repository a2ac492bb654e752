/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/quota.h"

#include <assert.h>
#include <stddef.h>

const struct trib_quota *trib_quota_take_mt(struct trib_quota *quota,
                                              uint64_t bytes)
{
    for (struct trib_quota *at = quota; at; at = at->above) {
        const uint64_t most = atomic_load(&at->most);
        const uint64_t before = atomic_fetch_add(&at->held, bytes);
        if (!most || (bytes <= most && before <= most - bytes))
            continue;
        for (struct trib_quota *back = quota; back != at->above; back = back->above)
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
