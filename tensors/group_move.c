/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a group goes on in a group of another communicator. Only tensors with a
 * codec have one, and each of them is a bucket by itself.
 */
#include "tensors/tensor_group.h"

#include <tributary/elastic.h>

static const char say[] = "trib_group_state_move";

static trib_status_t check_idle(struct trib_group *g, const struct trib_group *of)
{
    const trib_status_t st = trib_comm_ours(of->comm, say);
    char text[80];

    if (st != TRIB_OK)
        return trib_comm_fail(g->comm, st, "%s", trib_last_error(of->comm));
    return of->step.running && !of->step.failed && !of->comm->engine.failed
               ? trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                                "%s is in a step: wait for it before %s",
                                trib_group_says(of, text), say)
               : TRIB_OK;
}

static trib_status_t check(struct trib_group *g, const struct trib_group *from)
{
    trib_status_t st = check_idle(g, g);

    if (st == TRIB_OK && from)
        st = check_idle(g, from);
    if (st != TRIB_OK || !from)
        return st;
    if (g == from || g->n != from->n)
        return trib_comm_fail(
            g->comm, TRIB_ERR_INVALID, "%s: the new group has %zu tensors, %s %zu", say,
            g->n, g == from ? "and is the old one, of" : "the old one", from->n);
    for (size_t i = 0; i < g->n; i++)
        if (trib_group_tensor_digest(&g->tensors[i]) !=
            trib_group_tensor_digest(&from->tensors[i]))
            return trib_comm_fail(
                g->comm, TRIB_ERR_INVALID,
                "%s: tensor %zu was \"%s\" and is \"%s\", or differs in count, dtype, "
                "priority, codec or feedback",
                say, i, from->tensors[i].desc.name, g->tensors[i].desc.name);
    return TRIB_OK;
}

static trib_plan_t *plan_of(const struct trib_group *g, size_t tensor)
{
    const struct trib_group_tensor *t = &g->tensors[tensor];

    assert(t->coded && t->bucket != TRIB_BUCKET_NONE &&
           g->buckets.at[t->bucket].n == 1);
    return g->buckets.at[t->bucket].plan;
}

trib_status_t trib_group_state_move(trib_group_t *g, trib_group_t *from, uint64_t steps)
{
    char why[400];

    if (!g)
        return TRIB_ERR_INVALID;
    trib_status_t st = check(g, from);
    st = trib_group_compare(g->comm, st == TRIB_OK ? g : NULL, st);
    for (size_t i = 0; i < g->n && st == TRIB_OK; i++) {
        if (!g->tensors[i].coded || !g->tensors[i].desc.count)
            continue;
        st = trib_plan_state_move(plan_of(g, i), from ? plan_of(from, i) : NULL, steps);
        if (st == TRIB_OK)
            continue;
        snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
        (void)trib_comm_fail(g->comm, st, "tensor \"%s\": %s", g->tensors[i].desc.name,
                             why);
    }
    return st;
}
