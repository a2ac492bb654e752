/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continue a group's state in a group of another communicator. Only tensors with a
 * codec have state, and each of them has a bucket to itself.
 */
#include "comm/tensors/group_describe.h"

#include <stdlib.h>

#include <tributary/elastic.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/state/offers.h"

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
            g->n, g == from ? "but is the old one, with" : "the old one", from->n);
    for (size_t i = 0; i < g->n; i++)
        if (trib_group_tensor_digest(&g->tensors[i]) !=
            trib_group_tensor_digest(&from->tensors[i]))
            return trib_comm_fail(
                g->comm, TRIB_ERR_INVALID,
                "%s: tensor %zu was \"%s\" and is now \"%s\", or differs in count, "
                "dtype, priority, codec or feedback",
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

/* Recreation ----------------------------------------------------------------------- */

/* A message to all ranks about the local old group. */
struct offer {
    struct trib_offer head;
    uint64_t bytes; /* size of its description */
    uint64_t digest; /* digest of its description */
};

struct mover {
    struct trib_comm *comm; /* of the new group */
    struct trib_group *from; /* or NULL */
    char *bytes; /* the old group's description, local or received */
    size_t n;
};

static const char move[] = "trib_group_move";

static trib_status_t describe(struct mover *c, struct offer *mine)
{
    if (!c->from)
        return TRIB_OK;
    const trib_status_t st = trib_comm_ours(c->from->comm, move);
    if (st != TRIB_OK)
        return trib_comm_fail(c->comm, st, "%s", trib_last_error(c->from->comm));
    if (c->from->comm == c->comm)
        return trib_comm_fail(c->comm, TRIB_ERR_INVALID,
                              "%s: the group already belongs to this communicator",
                              move);
    c->bytes = trib_group_describe(c->from, &c->n);
    if (!c->bytes)
        return trib_comm_fail(c->comm, TRIB_ERR_NO_MEMORY, "no memory for a group");
    mine->head.gives = 1;
    mine->bytes = c->n;
    mine->digest = trib_digest(c->bytes, c->n);
    return TRIB_OK;
}

/* Send the description to the ranks that have no old group. */
static trib_status_t tell_newcomers(struct mover *c, const struct offer *all, int first)
{
    bool all_have = true;

    for (int r = 0; r < c->comm->engine.size; r++)
        all_have &= all[r].head.gives != 0;
    if (all_have)
        return TRIB_OK;
    assert(first >= 0 && all[first].bytes);
    if (!c->from) {
        c->n = (size_t)all[first].bytes;
        c->bytes = malloc(c->n);
    }
    if (!c->bytes) { /* the other ranks still enter the broadcast */
        trib_comm_fail_all(c->comm, TRIB_ERR_NO_MEMORY, "no memory to move a group");
        return TRIB_ERR_NO_MEMORY;
    }
    return trib_broadcast(c->comm, c->bytes, c->n, TRIB_U8, first);
}

static trib_status_t exchange_offers(struct mover *c)
{
    struct offer mine = {.bytes = 0};
    struct trib_offers o = {
        .comm = c->comm, .call = move, .what = "an old one", .bytes = sizeof(mine)};

    mine.head.status = describe(c, &mine);
    trib_status_t st = trib_offers_exchange(&o, &mine);
    const struct offer *all = o.all, *a = st == TRIB_OK ? &all[o.first] : NULL;
    for (int r = 0; st == TRIB_OK && r < c->comm->engine.size; r++)
        if (all[r].head.gives &&
            (all[r].digest != a->digest || all[r].bytes != a->bytes))
            st = trib_comm_fail(c->comm, TRIB_ERR_INVALID,
                                "%s: the old groups of rank %d and of rank %d differ",
                                move, o.first, r);
    if (st == TRIB_OK)
        st = tell_newcomers(c, all, o.first);
    free(o.all);
    return st;
}

/* A rank that cannot parse the description takes part in the comparison of all ranks,
 * and fails there. */
static trib_status_t make(const struct mover *c, const void *const *sends,
                          void *const *recvs, trib_group_t **group_out)
{
    trib_group_opts_t opts;
    size_t n = 1;
    trib_tensor_t *tensors = trib_group_described(c->bytes, c->n, &opts, &n);

    for (size_t i = 0; tensors && i < n; i++) {
        tensors[i].send = sends ? sends[i] : NULL;
        tensors[i].recv = recvs ? recvs[i] : NULL;
    }
    assert(!tensors || c->n);
    if (c->from) {
        opts.done = c->from->opts.done;
        opts.arg = c->from->opts.arg;
        opts.timeout_ms = c->from->opts.timeout_ms;
    }
    const trib_status_t st = trib_group_create(c->comm, tensors, n, &opts, group_out);
    free(tensors);
    return st;
}

trib_status_t trib_group_move(trib_comm_t *comm, trib_group_t *from,
                              const void *const *sends, void *const *recvs,
                              uint64_t steps, trib_group_t **group_out)
{
    struct mover c = {.comm = comm, .from = from};

    if (group_out)
        *group_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, move);
    if (st != TRIB_OK)
        return st;
    if (!group_out || (sends && !recvs))
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: %s is NULL%s", move,
                              group_out ? "recvs" : "group_out",
                              group_out ? ", but sends is not" : "");
    st = exchange_offers(&c);
    if (st == TRIB_OK)
        st = make(&c, sends, recvs, group_out);
    free(c.bytes);
    if (st == TRIB_OK)
        st = trib_group_state_move(*group_out, from, steps);
    if (st != TRIB_OK)
        trib_group_dispose(*group_out);
    if (st != TRIB_OK)
        *group_out = NULL;
    return st;
}
