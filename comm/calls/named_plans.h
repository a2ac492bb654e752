/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of trib_allreduce_named.
 */
#ifndef COMM_CALLS_NAMED_PLANS_H
#define COMM_CALLS_NAMED_PLANS_H

#include <stdbool.h>

struct trib_comm;
struct trib_plan;

/** trib_named_plans_clear - destroy the named plans. */
void trib_named_plans_clear(struct trib_comm *comm);

/** trib_named_plans_find - return the plan of this name, or NULL. */
struct trib_plan *trib_named_plans_find(const struct trib_comm *comm, const char *name);

/** trib_named_plans_grow - make room for one more named plan; false: out of memory. */
bool trib_named_plans_grow(struct trib_comm *comm);

/** trib_named_plans_add - insert a plan with a new name; there must be room. */
void trib_named_plans_add(struct trib_comm *comm, struct trib_plan *plan);

#endif
