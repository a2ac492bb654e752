/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create plans of collectives for callers, with any codec and with scales.
 */
#include "comm/calls/plan_create.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "comm/auto/plan_auto.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/plan_blocks.h"
#include "comm/plan/plan_make.h"
#include "comm/plan/plan_parts.h"
#include "comm/plan/plan_scale.h"

/* Copy a description, followed by its strings. */
static struct trib_plan_asked *copy_desc(trib_coll_t coll, const trib_desc_t *desc)
{
    const char *texts[TRIB_ASKED_TEXTS];
    size_t bytes = 0;

    trib_asked_list_texts(desc, texts);
    for (int i = 0; i < TRIB_ASKED_TEXTS; i++)
        bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct trib_plan_asked *a = malloc(sizeof(*a) + bytes);
    if (!a)
        return NULL;
    a->coll = coll;
    a->has_blocks = trib_desc_has_blocks(coll, desc);
    a->desc = *desc;
    a->desc.send = a->desc.recv = NULL;
    a->desc.send_counts = a->desc.send_offsets = NULL;
    a->desc.recv_counts = a->desc.recv_offsets = NULL;
    char *to = a->texts;
    for (int i = 0; i < TRIB_ASKED_TEXTS; i++) {
        if (!texts[i])
            continue;
        const size_t n = strlen(texts[i]) + 1;
        texts[i] = memcpy(to, texts[i], n);
        to += n;
    }
    assert(to == a->texts + bytes);
    trib_asked_set_texts(&a->desc, texts);
    return a;
}

/* Store the caller's description in the plan. */
static trib_status_t keep_asked(struct trib_plan *plan, trib_coll_t coll,
                                const trib_desc_t *desc)
{
    assert(!plan->asked);
    plan->asked = copy_desc(coll, desc);
    return plan->asked
               ? TRIB_OK
               : trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
}

trib_status_t trib_plan_make_asked(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc, struct trib_plan **plan_out)
{
    trib_desc_t inner = *desc;
    trib_status_t st = trib_plan_scale_take(comm, coll, &inner);

    assert(!trib_plan_scale_wanted(&inner) || st != TRIB_OK);
    if (st == TRIB_OK)
        st = trib_plan_make_coded(comm, coll, &inner, false, plan_out);
    if (st != TRIB_OK)
        return st;
    if (trib_plan_scale_wanted(desc))
        st = trib_plan_scale_wrap(*plan_out, desc);
    if (st == TRIB_OK)
        st = keep_asked(*plan_out, coll, desc);
    if (st == TRIB_OK)
        return st;
    trib_plan_destroy(*plan_out);
    *plan_out = NULL;
    return st;
}

trib_status_t trib_plan_create(trib_comm_t *comm, trib_coll_t coll,
                               const trib_desc_t *desc, trib_plan_t **plan_out)
{
    static const struct trib_sized kind = {"trib_desc_t", "TRIB_DESC_INIT",
                                           sizeof(*desc),
                                           TRIB_SIZED_UP_TO(trib_desc_t, quorum)};
    trib_desc_t ours = TRIB_DESC_INIT;
    struct trib_error err = {0};

    if (plan_out)
        *plan_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!desc || !plan_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_plan_create needs desc and plan_out, and %s is "
                              "NULL",
                              desc ? "plan_out" : "desc");
    if (trib_sized_take(&kind, desc, &ours, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    trib_gate_enter(comm);
    trib_status_t st = trib_plan_check_unused(comm, coll, &ours);
    if (st == TRIB_OK)
        st = trib_plan_make_asked(comm, coll, &ours, plan_out);
    assert(st != TRIB_OK || *plan_out);
    if (st == TRIB_OK)
        comm->n_plans++;
    trib_gate_leave(comm);
    return st;
}

trib_status_t trib_plan_allreduce(trib_comm_t *comm, const trib_desc_t *desc,
                                  trib_plan_t **plan_out)
{
    return trib_plan_create(comm, TRIB_ALLREDUCE, desc, plan_out);
}
