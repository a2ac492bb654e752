/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of blocking calls.
 */
#ifndef COMM_CALLS_PLAN_CACHE_H
#define COMM_CALLS_PLAN_CACHE_H

struct trib_comm;
struct trib_plan_cache_entry;
struct trib_plan_key;

/** trib_plan_cache_find - return the entry of this key, or one to reuse for it. */
struct trib_plan_cache_entry *trib_plan_cache_find(struct trib_comm *comm,
                                                   const struct trib_plan_key *key);

/** trib_plan_cache_clear - destroy the cached plans of blocking calls and the named
 * ones. */
void trib_plan_cache_clear(struct trib_comm *comm);

#endif
