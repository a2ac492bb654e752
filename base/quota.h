/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that threads take, under limits that stand above one another: a job's, its
 * user's, the service's. What is taken from one is taken from all above it. No locks; a
 * taker that finds too little gives back what it had on the way, so that another may
 * for a moment see less than there is, and never more.
 */
#ifndef BASE_QUOTA_H
#define BASE_QUOTA_H

#include <stdatomic.h>
#include <stdint.h>

/* Zero is one without a limit, of which nothing is taken. It outlives those below
 * it. */
struct trib_ledger {
    struct trib_ledger *above; /* or NULL */
    _Atomic uint64_t held;
    _Atomic uint64_t most; /* 0: no limit. Lowered, what is held stays held */
};

/** trib_ledger_take_mt - all or nothing; NULL, or the lowest whose limit is in the
 * way. */
const struct trib_ledger *trib_ledger_take_mt(struct trib_ledger *ledger,
                                              uint64_t bytes);

/** trib_ledger_add_mt - whatever the limits: somebody else has looked at them. */
void trib_ledger_add_mt(struct trib_ledger *ledger, uint64_t bytes);

/** trib_ledger_give_mt - what was taken, or added. */
void trib_ledger_give_mt(struct trib_ledger *ledger, uint64_t bytes);

/** trib_ledger_held_mt - at this moment. */
uint64_t trib_ledger_held_mt(const struct trib_ledger *ledger);

#endif
