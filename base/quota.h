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
struct trib_quota {
    struct trib_quota *above; /* or NULL */
    _Atomic uint64_t held;
    _Atomic uint64_t most; /* 0: no limit. Lowered, what is held stays held */
};

/** trib_quota_take_mt - all or nothing; NULL, or the lowest whose limit is in the
 * way. */
const struct trib_quota *trib_quota_take_mt(struct trib_quota *quota,
                                              uint64_t bytes);

/** trib_quota_add_mt - whatever the limits: somebody else has looked at them. */
void trib_quota_add_mt(struct trib_quota *quota, uint64_t bytes);

/** trib_quota_give_mt - give back bytes that were taken, or added. */
void trib_quota_give_mt(struct trib_quota *quota, uint64_t bytes);

/** trib_quota_held_mt - at this moment. */
uint64_t trib_quota_held_mt(const struct trib_quota *quota);

#endif
