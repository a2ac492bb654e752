/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte quotas in a hierarchy: a job's, its user's, the service's. Taking from one also
 * takes from all above. Lock-free. A take that exceeds a limit changes nothing, so it
 * cannot make takes of others fail. Only if several takes compete for the last bytes,
 * one of them may undo partial takes, and other threads may briefly see less than is
 * available, never more. A quota of NULL has no limit.
 */
#ifndef BASE_QUOTA_H
#define BASE_QUOTA_H

#include <stdatomic.h>
#include <stdint.h>

/* Zero-initialised: no limit, nothing held. Must outlive the quotas below. */
struct trib_quota {
    struct trib_quota *above; /* or NULL */
    _Atomic uint64_t held;
    _Atomic uint64_t most; /* 0: no limit. Lowering it does not revoke held bytes */
};

/** trib_quota_take_mt - take all bytes or none; return NULL, or the lowest quota whose
 * limit is exceeded. */
const struct trib_quota *trib_quota_take_mt(struct trib_quota *quota,
                                              uint64_t bytes);

/** trib_quota_add_mt - add bytes without checking limits, which the caller has
 * checked. */
void trib_quota_add_mt(struct trib_quota *quota, uint64_t bytes);

/** trib_quota_give_mt - return bytes that were taken or added. */
void trib_quota_give_mt(struct trib_quota *quota, uint64_t bytes);

/** trib_quota_held_mt - return the bytes held now. */
uint64_t trib_quota_held_mt(const struct trib_quota *quota);

#endif
