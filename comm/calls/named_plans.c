/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls for named vectors. Each name has a plan that lives as long as the
 * communicator. Plans are in an open-addressing hash table that is at most half full.
 */
#include "comm/calls/named_plans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "comm/calls/plan_create.h"
#include "comm/core/call_cache.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

enum { SLOTS_FIRST = 64 };

static struct trib_plan **slot_of(struct trib_plan **slots, size_t n, const char *name)
{
    size_t at = trib_digest(name, strlen(name)) % n;

    assert(n > 0);
    while (slots[at] && strcmp(slots[at]->identity.name, name) != 0)
        at = (at + 1) % n;
    return &slots[at];
}

bool trib_named_plans_grow(struct trib_comm *comm)
{
    struct trib_named_plans *named = &comm->named;
    const size_t n = named->n_slots ? 2 * named->n_slots : SLOTS_FIRST;

    if (2 * (named->n_plans + 1) <= named->n_slots)
        return true;
    struct trib_plan **slots = calloc(n, sizeof(struct trib_plan *));
    if (!slots)
        return false;
    for (size_t i = 0; i < named->n_slots; i++)
        if (named->slots[i])
            *slot_of(slots, n, named->slots[i]->identity.name) = named->slots[i];
    free(named->slots);
    named->slots = slots;
    named->n_slots = n;
    return true;
}

void trib_named_plans_clear(struct trib_comm *comm)
{
    struct trib_named_plans *named = &comm->named;

    for (size_t i = 0; i < named->n_slots; i++)
        trib_plan_destroy(named->slots[i]);
    free(named->slots);
    *named = (struct trib_named_plans){0};
}

static trib_status_t check_same(const struct trib_plan *plan, const trib_desc_t *d)
{
    const struct trib_run_desc *r = &plan->run.desc;

    if (r->count == d->count && r->op.dtype == d->dtype && r->op.op == d->op)
        return TRIB_OK;
    return trib_comm_fail(
        plan->comm, TRIB_ERR_INVALID,
        "\"%s\" names a vector of %zu %s with %s, but this call sums %zu %s with %s: "
        "use another name, or create a plan (trib_plan_allreduce)",
        d->name, r->count, trib_dtype_name(r->op.dtype), trib_op_name(r->op.op),
        d->count, trib_dtype_name(d->dtype), trib_op_name(d->op));
}

void trib_named_plans_add(struct trib_comm *comm, struct trib_plan *plan)
{
    struct trib_named_plans *named = &comm->named;
    struct trib_plan **slot =
        slot_of(named->slots, named->n_slots, plan->identity.name);

    assert(!*slot && 2 * (named->n_plans + 1) <= named->n_slots);
    *slot = plan;
    named->n_plans++;
}

struct trib_plan *trib_named_plans_find(const struct trib_comm *comm, const char *name)
{
    const struct trib_named_plans *named = &comm->named;

    return named->n_slots ? *slot_of(named->slots, named->n_slots, name) : NULL;
}

static trib_status_t find(struct trib_comm *comm, const trib_desc_t *d,
                          struct trib_plan **plan_out)
{
    struct trib_named_plans *named = &comm->named;

    if (!trib_named_plans_grow(comm))
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    struct trib_plan **slot = slot_of(named->slots, named->n_slots, d->name);
    const trib_status_t st =
        *slot ? check_same(*slot, d)
              : trib_plan_make_asked(comm, TRIB_ALLREDUCE, d, plan_out);
    if (st != TRIB_OK)
        return st;
    if (!*slot)
        trib_named_plans_add(comm, *plan_out);
    *plan_out = *slot;
    return TRIB_OK;
}

trib_status_t trib_allreduce_named(trib_comm_t *comm, const char *name,
                                   const void *send, void *recv, size_t count,
                                   trib_dtype_t dtype, trib_op_t op)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_plan *plan;

    if (!comm)
        return TRIB_ERR_INVALID;
    if (!name)
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "trib_allreduce_named: name is NULL; use trib_allreduce for unnamed "
            "vectors");
    desc.name = name;
    desc.count = count;
    desc.dtype = dtype;
    desc.op = op;
    trib_gate_enter(comm);
    trib_status_t st = find(comm, &desc, &plan);
    trib_gate_leave(comm);
    if (st == TRIB_OK && !comm->gate)
        return trib_plan_run(plan, send, recv);
    if (st == TRIB_OK)
        st = trib_plan_start_with(plan, send, recv);
    return st == TRIB_OK ? trib_plan_wait(plan) : st;
}
