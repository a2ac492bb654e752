/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/core/identity.h"

#include <stdio.h>
#include <string.h>

#include <assert.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"

/* Meaning of the last number hashed into a key. */
enum origin {
    BY_NAME,
    BY_FIRST_START,
    BLOCKING_CALLS,
    BY_AGGREGATOR,
};

static const uint64_t basis = 0x7472696275746172u;

static uint64_t key_of(const struct trib_plan *plan, uint64_t comm, enum origin origin,
                       uint64_t number)
{
    const uint64_t parts[] = {plan->identity.seed, comm, origin, number};

    return trib_digest_seeded(parts, sizeof(parts), basis);
}

static void settle(struct trib_plan *plan, uint64_t key)
{
    struct trib_run_desc *r = &plan->run.desc;

    assert(!r->model || plan->codec);
    plan->identity.kept = (struct trib_identity_kept){.key = key, .settled = 1};
    r->seed = key;
    if (r->model)
        trib_model_seed(r->model, key);
}

static trib_status_t check_name(struct trib_plan *plan, const char *name)
{
    const size_t n = strnlen(name, TRIB_PLAN_NAME_MAX + 1);

    if (n == 0 || n > TRIB_PLAN_NAME_MAX)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_INVALID,
            "a plan's name must have 1 to %d characters; \"%.20s%s\" has %s",
            TRIB_PLAN_NAME_MAX, name, n > 20 ? "…" : "",
            n ? "more" : "none: use NULL for an unnamed plan");
    for (size_t i = 0; i < n; i++)
        if (name[i] < ' ' || name[i] > '~')
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "a plan's name must be printable ASCII; byte %zu is "
                                  "0x%02x",
                                  i, (unsigned)(unsigned char)name[i]);
    return TRIB_OK;
}

trib_status_t trib_identity_make(struct trib_plan *plan, const trib_desc_t *desc)
{
    struct trib_comm *comm = plan->comm;
    struct trib_identity *id = &plan->identity;

    id->seed = desc->seed ? desc->seed : (uint64_t)comm->cfg.seed;
    plan->run.desc.seed = basis;
    if (trib_engine_is_aggregator(&comm->engine))
        settle(plan, key_of(plan, comm->identity, BY_AGGREGATOR, ++comm->starts));
    if (!desc->name)
        return TRIB_OK;
    const trib_status_t st = check_name(plan, desc->name);
    if (st != TRIB_OK)
        return st;
    snprintf(id->name, sizeof(id->name), "%s", desc->name);
    plan->run.desc.label = id->name;
    return TRIB_OK;
}

void trib_plan_number(struct trib_plan *plan, const struct trib_comm *parent,
                      uint64_t start)
{
    struct trib_identity *id = &plan->identity;

    assert(start > 0);
    id->start = start;
    if (id->kept.settled || !plan->codec)
        return;
    if (id->name[0])
        settle(plan, key_of(plan, parent->identity, BY_NAME,
                            trib_digest(id->name, strlen(id->name))));
    else if (id->of_calls)
        settle(plan, key_of(plan, parent->identity, BLOCKING_CALLS, 0));
    else
        settle(plan, key_of(plan, parent->identity, BY_FIRST_START, start));
}

void trib_plan_stamp(struct trib_plan *plan)
{
    struct trib_run *run = &plan->run;

    assert(plan->identity.kept.settled ||
           trib_engine_is_aggregator(&plan->comm->engine));
    if (plan->identity.of_calls)
        run->now.step = (uint32_t)plan->identity.start - 1; /* trib_run_start adds 1 */
    trib_frame_stamp(&run->now.frame, run->now.step + 1,
                     (uint32_t)plan->identity.kept.key);
}

void trib_identity_take(struct trib_plan *plan, const struct trib_plan *from)
{
    const bool inner = plan->identity.inner;

    assert(plan != from);
    plan->identity = from->identity;
    plan->identity.inner = inner;
    trib_identity_loaded(plan);
}

void trib_identity_loaded(struct trib_plan *plan)
{
    if (plan->identity.kept.settled)
        settle(plan, plan->identity.kept.key);
}

uint64_t trib_identity_split(const struct trib_comm *parent, uint64_t starts, int color)
{
    const uint64_t parts[] = {parent->identity, starts, (uint64_t)color};

    return trib_digest_seeded(parts, sizeof(parts), basis);
}
