/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/guard.h"

#include <assert.h>
#include <string.h>

bool trib_guard_bars(const struct trib_guard *guard, int peer)
{
    return guard && (guard->serves || peer >= guard->ranks);
}

bool trib_guard_lists(const char *list, const char *name)
{
    static const char between[] = ", ";
    const size_t bytes = strlen(name);

    for (list += strspn(list, between); *list; list += strspn(list, between)) {
        const size_t len = strcspn(list, between);
        if (len == bytes && memcmp(list, name, len) == 0)
            return true;
        list += len;
    }
    return false;
}

bool trib_guard_takes(const struct trib_guard *guard, const char *name)
{
    return !guard || !guard->transports || trib_guard_lists(guard->transports, name);
}

bool trib_guard_is_user(struct trib_guard *guard, uid_t uid)
{
    int64_t known = TRIB_GUARD_ANYBODY;

    assert(guard->serves);
    return atomic_compare_exchange_strong(&guard->user, &known, (int64_t)uid) ||
           known == (int64_t)uid;
}
