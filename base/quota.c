/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/quota.h"

#include <stddef.h>

const struct trib_ledger *trib_ledger_take_mt(struct trib_ledger *ledger,
                                              uint64_t bytes)
{
    for (struct trib_ledger *at = ledger; at; at = at->above) {
        const uint64_t most = atomic_load(&at->most);
        const uint64_t before = atomic_fetch_add(&at->held, bytes);
        if (!most || (bytes <= most && before <= most - bytes))
            continue;
        for (struct trib_ledger *back = ledger; back != at->above; back = back->above)
            atomic_fetch_sub(&back->held, bytes);
        return at;
    }
    return NULL;
}

void trib_ledger_add_mt(struct trib_ledger *ledger, uint64_t bytes)
{
    for (; ledger; ledger = ledger->above)
        atomic_fetch_add(&ledger->held, bytes);
}

void trib_ledger_give_mt(struct trib_ledger *ledger, uint64_t bytes)
{
    for (; ledger; ledger = ledger->above)
        atomic_fetch_sub(&ledger->held, bytes);
}

uint64_t trib_ledger_held_mt(const struct trib_ledger *ledger)
{
    return atomic_load(&ledger->held);
}
