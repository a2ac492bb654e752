/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cached plans of blocking calls, and plans of named calls.
 */
#ifndef COMM_CORE_CALL_CACHE_H
#define COMM_CORE_CALL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_plan;

#define TRIB_PLAN_CACHE 64

/* Cache key of a blocking call's plan. */
struct trib_plan_key {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    size_t count;
};

/** trib_plan_key_of - return a call's key; TRIB_SUM and 0 if it has no operator or
 * root. */
static inline struct trib_plan_key trib_plan_key_of(trib_coll_t coll, size_t count,
                                                    trib_dtype_t dtype, trib_op_t op,
                                                    int root)
{
    return (struct trib_plan_key){coll, dtype, op, root, count};
}

static inline bool trib_plan_key_same(const struct trib_plan_key *a,
                                      const struct trib_plan_key *b)
{
    return a->count == b->count && a->coll == b->coll && a->dtype == b->dtype &&
           a->op == b->op && a->root == b->root;
}

struct trib_plan_cache_entry {
    struct trib_plan_key key;
    struct trib_plan *plan;
    uint64_t used;
};

/* The plans of trib_allreduce_named, hashed by name: named_plans.c. */
struct trib_named_plans {
    struct trib_plan **slots; /* [n_slots], n_plans of them not NULL */
    size_t n_slots, n_plans;
};

#endif
