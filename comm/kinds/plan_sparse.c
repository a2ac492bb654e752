/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public calls of sparse vectors: tributary/sparse.h. The engine runs these plans as
 * all-reduces with a payload of pairs. It is the communicator's engine or, with
 * aggregators, an inner plan's.
 */
#include "comm/kinds/plan_sparse.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sized.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/contribution_check.h"
#include "comm/plan/plan_feedback.h"
#include "comm/plan/plan_make.h"
#include "comm/plan/plan_parts.h"
#include "pipeline/payload/check.h"

const struct trib_plan_kind trib_plan_sparse_kind = {.name = "pairs"};

/* Refuse starts with dense vectors: pairs come from trib_plan_start_sparse. */
static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    const struct trib_plan_sparse *s = trib_plan_sparse_of(plan);

    assert(s);
    if (send == &s->input)
        return s->under->start(plan, send, recv);
    return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                          "the plan sums (index, value) pairs: start it with "
                          "trib_plan_start_sparse");
}

static void destroy(struct trib_plan *plan)
{
    struct trib_plan_sparse *s = trib_plan_sparse_of(plan);

    assert(s && s->under);
    if (s->under->destroy)
        s->under->destroy(plan);
    trib_sorted_pairs_free(&s->sorted);
    free(s);
    plan->of_kind = NULL;
}

trib_status_t trib_sparse_make(struct trib_comm *comm, const trib_desc_t *desc,
                               size_t most, struct trib_plan **plan_out)
{
    struct trib_plan_sparse *s = calloc(1, sizeof(*s));

    assert(desc && plan_out);
    if (!s)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    const struct trib_plan_pairs pairs = {&trib_plan_sparse_kind, s, most};
    const trib_status_t st = trib_plan_make_pairs(comm, desc, &pairs, plan_out);
    if (st != TRIB_OK) {
        free(s);
        return st;
    }
    s->under = (*plan_out)->ops;
    s->ops = *s->under;
    s->ops.start = s->ops.run = start;
    s->ops.destroy = destroy;
    (*plan_out)->ops = &s->ops;
    return TRIB_OK;
}

trib_status_t trib_sparse_start(struct trib_plan *plan,
                                const struct trib_pairs_input *in)
{
    struct trib_plan_sparse *s = trib_plan_sparse_of(plan);

    assert(s && in);
    if (plan->comm->engine.failed)
        return plan->comm->engine.failed;
    s->input = *in;
    return plan->ops->start(plan, &s->input, NULL);
}

static trib_status_t check_desc(struct trib_comm *comm, const trib_sparse_desc_t *d)
{
    if (d->op != TRIB_SUM && d->op != TRIB_MEAN && (unsigned)d->op < TRIB_OP_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "op %s is not supported for sparse vectors, whose ranks "
                              "have no value at most indices: use sum or mean",
                              trib_op_name(d->op));
    if (d->dtype == TRIB_BOOL)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "dtype bool is not supported for sparse vectors: use u8");
    if (d->most > d->length)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "most is %zu pairs, the vector has %zu elements", d->most,
                              d->length);
    return TRIB_OK;
}

/* Copy the caller's description to this library's struct and check it. */
static trib_status_t take_desc(struct trib_comm *comm, const trib_sparse_desc_t *theirs,
                               trib_sparse_desc_t *ours)
{
    static const struct trib_sized kind = {"trib_sparse_desc_t",
                                           "TRIB_SPARSE_DESC_INIT", sizeof(*ours),
                                           TRIB_SIZED_UP_TO(trib_sparse_desc_t, name)};
    struct trib_error err = {0};

    if (trib_sized_take(&kind, theirs, ours, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    return check_desc(comm, ours);
}

trib_status_t trib_plan_sparse(trib_comm_t *comm, const trib_sparse_desc_t *desc,
                               trib_plan_t **plan_out)
{
    trib_sparse_desc_t ours = TRIB_SPARSE_DESC_INIT;
    trib_desc_t dense = TRIB_DESC_INIT;

    if (plan_out)
        *plan_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!desc || !plan_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_plan_sparse needs desc and plan_out, and %s is "
                              "NULL",
                              desc ? "plan_out" : "desc");
    trib_status_t st = take_desc(comm, desc, &ours);
    if (st != TRIB_OK)
        return st;
    dense.count = ours.length;
    dense.dtype = ours.dtype;
    dense.op = ours.op;
    dense.codec = "none";
    dense.quorum = "all";
    dense.algorithm = ours.algorithm;
    dense.name = ours.name;
    trib_gate_enter(comm);
    st = trib_sparse_make(comm, &dense, ours.most, plan_out);
    if (st == TRIB_OK)
        comm->n_plans++;
    trib_gate_leave(comm);
    return st;
}

static trib_status_t check_plan(struct trib_plan *plan, const char *call)
{
    const trib_status_t st = trib_plan_idle(plan, call);

    if (st != TRIB_OK)
        return st;
    if (!trib_plan_sparse_of(plan))
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "%s is for plans created by trib_plan_sparse", call);
    return TRIB_OK;
}

static trib_status_t check_pairs(struct trib_plan *plan,
                                 const struct trib_pairs_input *in)
{
    const size_t length = plan->run.desc.count;

    if (in->n && (!in->indices || !in->values))
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "a start with %zu pairs: %s is NULL", in->n,
                              in->indices ? "values" : "indices");
    for (size_t i = 0; i < in->n; i++)
        if (in->indices[i] >= length)
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "pair %zu has index %" PRIu64
                                  ", the vector has %zu elements",
                                  i, in->indices[i], length);
    return TRIB_OK;
}

/* TRIB_CHECK=finite: a bad value fails the operation on all ranks. */
static trib_status_t check_finite(struct trib_plan *plan,
                                  const struct trib_pairs_input *in)
{
    const struct trib_run_desc *d = &plan->run.desc;
    struct trib_comm *comm = plan->comm;
    char text[160];

    if (!d->check.finite)
        return TRIB_OK;
    const size_t at =
        trib_check_first_bad(comm->engine.kernels, d->op.dtype, in->values, in->n);
    if (at == in->n)
        return TRIB_OK;
    snprintf(text, sizeof(text),
             "rank %d gave NaN or an infinity, element %" PRIu64 ", in a sparse %s "
             "(TRIB_CHECK)",
             comm->engine.rank, in->indices[at], trib_coll_name(d->op.coll));
    trib_comm_fail_all(comm, TRIB_ERR_INVALID, text);
    return TRIB_ERR_INVALID;
}

/* Sort the pairs of a start and apply TRIB_CHECK. */
static trib_status_t take_pairs(struct trib_plan *plan,
                                const struct trib_pairs_input *given)
{
    struct trib_plan_sparse *s = trib_plan_sparse_of(plan);
    struct trib_comm *comm = plan->comm;
    trib_status_t st = check_pairs(plan, given);

    assert(s && plan->run.desc.pairs);
    if (st != TRIB_OK)
        return st;
    st = trib_sorted_pairs_make(&s->sorted, plan->run.desc.op.dtype,
                                comm->engine.kernels, given, &s->input);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "no memory to sort %zu pairs", given->n);
    if (plan->most && s->input.n > plan->most)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "a start with %zu indices, but the plan was created for "
                              "%zu (trib_sparse_desc_t.most)",
                              s->input.n, plan->most);
    st = check_finite(plan, &s->input);
    if (st != TRIB_OK)
        return st;
    plan->lengths[0] = s->input.n; /* of the values, for their norm */
    return trib_check_start(plan, s->input.values, NULL);
}

trib_status_t trib_plan_start_sparse(trib_plan_t *plan, const uint64_t *indices,
                                     const void *values, size_t count)
{
    const struct trib_pairs_input given = {indices, values, count};

    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_comm *comm = plan->comm;
    if (comm->engine.failed)
        return comm->engine.failed;
    trib_status_t st = check_plan(plan, "trib_plan_start_sparse");
    if (st == TRIB_OK)
        st = take_pairs(plan, &given);
    if (st != TRIB_OK)
        return st;
    struct trib_plan_sparse *s = trib_plan_sparse_of(plan);
    assert(s && plan->ops); /* plan_notify.c may have replaced the table */
    st = plan->ops->start(plan, &s->input, NULL);
    s->has_started |= st == TRIB_OK;
    return st;
}

/* Results -------------------------------------------------------------------------- */

static trib_status_t check_result(struct trib_plan *plan, const void *place,
                                  const char *call)
{
    const trib_status_t st = check_plan(plan, call);

    if (st != TRIB_OK)
        return st;
    if (!trib_plan_sparse_of(plan)->has_started || plan->ops->test(plan) != TRIB_OK)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "%s: the plan has no result because no start has "
                              "succeeded",
                              call);
    if (!place)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "%s: the result pointer is NULL", call);
    return TRIB_OK;
}

trib_status_t trib_plan_sparse_count(trib_plan_t *plan, size_t *count_out)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    const trib_status_t st = check_result(plan, count_out, "trib_plan_sparse_count");
    if (st != TRIB_OK)
        return st;
    *count_out = trib_pairs_count(&trib_plan_hold(plan)->run);
    trib_plan_let_go(plan);
    return TRIB_OK;
}

static trib_status_t copy_pairs(struct trib_plan *plan, const struct trib_run *run,
                                uint64_t *indices, void *values, size_t room)
{
    const size_t n = trib_pairs_count(run);

    if (n > room)
        return trib_comm_fail(plan->comm, TRIB_ERR_OVERFLOW,
                              "the union has %zu pairs, but there is room for %zu "
                              "(trib_plan_sparse_count returns the number)",
                              n, room);
    if (n && !(indices && values))
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_sparse_pairs: the result pointer is NULL");
    trib_pairs_get(run, indices, values);
    return TRIB_OK;
}

trib_status_t trib_plan_sparse_pairs(trib_plan_t *plan, uint64_t *indices, void *values,
                                     size_t room)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = check_result(plan, &room, "trib_plan_sparse_pairs");
    if (st != TRIB_OK)
        return st;
    st = copy_pairs(plan, &trib_plan_hold(plan)->run, indices, values, room);
    trib_plan_let_go(plan);
    return st;
}

trib_status_t trib_plan_sparse_dense(trib_plan_t *plan, void *vector)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    const trib_status_t st = check_result(plan, plan->run.desc.count ? vector : plan,
                                          "trib_plan_sparse_dense");
    if (st != TRIB_OK)
        return st;
    trib_pairs_dense(&trib_plan_hold(plan)->run, vector);
    trib_plan_let_go(plan);
    return TRIB_OK;
}
