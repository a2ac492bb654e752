/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scaling in plans. Such a plan has its own table, so other plans do not pay for this.
 * A start writes the scaled contribution to the result's place and sums in place. If
 * the result has another length, it uses memory of the plan. The thread that finds the
 * start completed scales the result before the caller is notified.
 *
 * A weighted mean starts a sum of the weights just before the vector's, and
 * divides by it.
 */
#include "comm/plan/plan_scale.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"
#include "base/wait.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_feedback.h"
#include "comm/plan/plan_make.h"
#include "compress/vectors/vector_scale.h"

enum state {
    SETTLED, /* no start, or its result is scaled */
    STARTED, /* the result is not scaled yet */
    SCALING, /* a thread is scaling it */
};

struct trib_plan_scale {
    const struct trib_plan_ops *ops; /* the plan's original table */
    struct trib_plan_ops with; /* its current table */
    double before, after;
    struct trib_plan *weights; /* all-reduces the weights; NULL: unweighted */
    double weight_sum; /* buffer of `weights` */
    void *stage; /* [lengths[0]] scaled contribution; NULL: it is written to recv */
    bool staged; /* the contribution is scaled before the sum */
    const char *input; /* the caller's input of the running start */
    char *scaled; /* destination of the scaled input */
    char *result; /* NULL: no result on this rank */
    _Atomic int state;
};

static void scale_input(struct trib_plan *plan, size_t first, size_t count)
{
    const struct trib_plan_scale *s = plan->scale;
    const struct trib_run_desc *d = &plan->run.desc;
    const size_t at = first * d->element;

    if (s->staged && count)
        trib_scale(plan->comm->engine.kernels, d->op.dtype, s->scaled + at,
                   s->input + at, count, s->before, 0);
}

/* Scale the whole contribution, but not the gaps between its blocks. */
static void scale_whole(struct trib_plan *plan)
{
    const struct trib_blocks *b = plan->run.desc.blocks;

    if (!b)
        scale_input(plan, 0, plan->lengths[0]);
    for (int k = 0; b && k < plan->comm->engine.ranks; k++)
        scale_input(plan, b->at[k].in, b->at[k].n_in);
}

/* Return the element offset of this rank's block in a reduce-scatter's longer
 * buffer. */
static size_t own_place(const struct trib_plan *plan)
{
    const struct trib_run_desc *d = &plan->run.desc;

    assert(!d->blocks || d->blocks->own == (size_t)plan->comm->engine.rank);
    return d->blocks ? d->blocks->at[d->blocks->own].in
                     : (size_t)plan->comm->engine.rank * d->count;
}

/* Return the result's address for these buffers, which trib_plan_start has
 * normalised. */
static char *result_of(const struct trib_plan *plan, const void *send, void *recv)
{
    const struct trib_run_desc *d = &plan->run.desc;
    const int rank = plan->comm->engine.rank;

    if ((d->op.coll == TRIB_REDUCE && d->op.root != (uint32_t)rank) ||
        (d->op.coll == TRIB_EXSCAN && rank == 0))
        return NULL;
    return d->op.coll == TRIB_REDUCE_SCATTER && (!send || send == recv)
               ? (char *)recv + own_place(plan) * d->element
               : recv;
}

/* Begin a start: sum the weights, scale the contribution, choose buffers. */
static trib_status_t begin(struct trib_plan *plan, const void **send, void **recv)
{
    struct trib_plan_scale *s = plan->scale;

    s->input = *send ? *send : *recv;
    s->result = result_of(plan, *send, *recv);
    s->scaled = s->stage ? s->stage : *recv;
    s->staged = s->weights || s->before < 1 || s->before > 1;
    if (s->weights) {
        s->weight_sum = s->before;
        const trib_status_t st =
            s->weights->ops->start(s->weights, NULL, &s->weight_sum);
        if (st != TRIB_OK)
            return st;
    }
    if (!s->staged)
        return TRIB_OK;
    if (plan->run.desc.op.feed == TRIB_FEED_WHOLE)
        scale_whole(plan);
    *send = s->stage;
    if (plan->run.desc.op.coll == TRIB_REDUCE_SCATTER)
        *recv = s->result;
    return TRIB_OK;
}

static void scale_result(struct trib_plan *plan)
{
    const struct trib_plan_scale *s = plan->scale;
    const struct trib_run_desc *d = &plan->run.desc;
    const double divisor = s->weights ? s->weight_sum : 0;
    const size_t count = d->blocks ? d->blocks->at[d->blocks->own].n_out : d->count;

    if (s->result && count && (divisor > 0 || s->after < 1 || s->after > 1))
        trib_scale(plan->comm->engine.kernels, d->op.dtype, s->result, s->result, count,
                   s->after, divisor);
}

/* Handle a start's status st. Return st once the result is scaled, by this thread or
 * another, or TRIB_INPROGRESS. */
static trib_status_t settle(struct trib_plan *plan, trib_status_t st)
{
    struct trib_plan_scale *s = plan->scale;
    int started = STARTED;

    if (st == TRIB_OK && s->weights)
        st = s->weights->ops->test(s->weights);
    if (st == TRIB_INPROGRESS)
        return st;
    if (atomic_compare_exchange_strong(&s->state, &started, SCALING)) {
        if (st == TRIB_OK)
            scale_result(plan);
        atomic_store(&s->state, SETTLED);
    }
    return atomic_load(&s->state) == SETTLED ? st : TRIB_INPROGRESS;
}

static trib_status_t wait(struct trib_plan *plan)
{
    struct trib_plan_scale *s = plan->scale;
    trib_status_t st = s->ops->wait(plan);

    if (st == TRIB_OK && s->weights)
        st = s->weights->ops->wait(s->weights);
    for (unsigned turn = 1; settle(plan, st) == TRIB_INPROGRESS; turn++)
        trib_wait_turn(turn, TRIB_WAIT_YIELDS);
    return st;
}

static trib_status_t test(struct trib_plan *plan)
{
    return settle(plan, plan->scale->ops->test(plan));
}

static trib_status_t poll_scaled(struct trib_plan *plan)
{
    return settle(plan, plan->scale->ops->poll(plan));
}

static trib_status_t start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_plan_scale *s = plan->scale;
    trib_status_t st = begin(plan, &send, &recv);

    if (st != TRIB_OK)
        return st;
    atomic_store(&s->state, STARTED);
    st = s->ops->start(plan, send, recv);
    if (st != TRIB_OK)
        atomic_store(&s->state, SETTLED);
    return st;
}

static trib_status_t run(struct trib_plan *plan, const void *send, void *recv)
{
    const trib_status_t st = start(plan, send, recv);

    return st == TRIB_OK ? wait(plan) : st;
}

static trib_status_t ready(struct trib_plan *plan, size_t first, size_t count)
{
    if (plan->scale->ops->input(plan))
        scale_input(plan, first, count);
    return plan->scale->ops->ready(plan, first, count);
}

static bool busy(const struct trib_plan *plan)
{
    const struct trib_plan_scale *s = plan->scale;

    return s->ops->busy(plan) || (s->weights && s->weights->ops->busy(s->weights));
}

static const void *input(const struct trib_plan *plan)
{
    return plan->scale->ops->input(plan) ? plan->scale->input : NULL;
}

static void destroy(struct trib_plan *plan)
{
    struct trib_plan_scale *s = plan->scale;

    plan->ops = s->ops;
    plan->scale = NULL;
    trib_plan_destroy(s->weights);
    free(s->stage);
    free(s);
    if (plan->ops->destroy)
        plan->ops->destroy(plan);
}

/* Creation ------------------------------------------------------------------------- */

static trib_status_t check_desc(struct trib_comm *comm, trib_coll_t coll,
                                const trib_desc_t *d)
{
    if (!isfinite(d->prescale) || !isfinite(d->postscale))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "prescale is %g and postscale %g, they must be finite",
                              d->prescale, d->postscale);
    if (!trib_coll_sums(coll) || (d->op != TRIB_SUM && d->op != TRIB_MEAN))
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "prescale, postscale and weighted support sum and mean: "
                              "this is %s%s%s",
                              trib_coll_name(coll), trib_coll_sums(coll) ? " by " : "",
                              trib_coll_sums(coll) ? trib_op_name(d->op) : "");
    if (!trib_dtype_is_float(d->dtype))
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "prescale, postscale and weighted support floating-point "
                              "elements, dtype is %s",
                              trib_dtype_name(d->dtype));
    if (!d->weighted)
        return TRIB_OK;
    if (d->op != TRIB_MEAN)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "weighted needs op mean, op is %s: prescale alone "
                              "weights the contributions of a sum",
                              trib_op_name(d->op));
    if (d->prescale < 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "a weight is %g (prescale), it must be 0 or more",
                              d->prescale);
    if (d->quorum && *d->quorum && strcmp(d->quorum, "all") != 0)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "a weighted mean needs all ranks: quorum is %s, use all",
                              d->quorum);
    return TRIB_OK;
}

trib_status_t trib_plan_scale_take(struct trib_comm *comm, trib_coll_t coll,
                                   trib_desc_t *d)
{
    if (!trib_plan_scale_wanted(d))
        return TRIB_OK;
    const trib_status_t st = check_desc(comm, coll, d);
    if (st != TRIB_OK)
        return st;
    if (d->weighted) {
        d->op = TRIB_SUM;
        d->quorum = "all";
    }
    d->prescale = d->postscale = 0;
    d->weighted = 0;
    return TRIB_OK;
}

static trib_status_t make_weights(struct trib_plan *plan)
{
    trib_desc_t d = TRIB_DESC_INIT;

    d.count = 1;
    d.dtype = TRIB_F64;
    d.codec = "none";
    d.algorithm = TRIB_AUTO;
    d.quorum = "all";
    d.timeout_ms = (int)plan->run.desc.limit_ms;
    return trib_plan_make_own(plan->comm, TRIB_ALLREDUCE, &d, &plan->scale->weights);
}

/* Return true if the scaled contribution cannot go to the result's place: it does not
 * fit, or, on rank 0 of an exscan, that memory must not change. */
static bool needs_stage(const struct trib_plan *plan)
{
    const struct trib_frame_op *op = &plan->run.desc.op;

    return op->coll == TRIB_REDUCE_SCATTER || op->coll == TRIB_EXSCAN ||
           (op->coll == TRIB_REDUCE && op->root != (uint32_t)plan->comm->engine.rank);
}

trib_status_t trib_plan_scale_wrap(struct trib_plan *plan, const trib_desc_t *d)
{
    struct trib_plan_scale *s = calloc(1, sizeof(*s));
    const size_t bytes = plan->lengths[0] * plan->run.desc.element;

    assert(!plan->scale && trib_plan_scale_wanted(d));
    if (s && needs_stage(plan))
        s->stage = malloc(bytes ? bytes : 1);
    if (!s || (needs_stage(plan) && !s->stage)) {
        free(s);
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for a scaled copy of %zu bytes", bytes);
    }
    s->before = d->prescale != 0 ? d->prescale : 1;
    s->after = d->postscale != 0 ? d->postscale : 1;
    s->ops = plan->ops;
    s->with = *plan->ops;
    s->with.run = run;
    s->with.start = start;
    s->with.ready = ready;
    s->with.test = test;
    s->with.poll = s->ops->poll ? poll_scaled : NULL;
    s->with.wait = wait;
    s->with.busy = busy;
    s->with.input = input;
    s->with.destroy = destroy;
    plan->scale = s;
    plan->ops = &s->with;
    return d->weighted ? make_weights(plan) : TRIB_OK;
}

void trib_plan_scale_get(const struct trib_plan *plan, double *prescale_out,
                         double *postscale_out)
{
    const struct trib_plan_scale *s = plan->scale;

    *prescale_out = s ? s->before : 1;
    *postscale_out = s ? s->after : 1;
}

trib_status_t trib_plan_set_scale(trib_plan_t *plan, double prescale, double postscale)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_comm *comm = plan->comm;
    struct trib_plan_scale *s = plan->scale;
    const trib_status_t st = trib_plan_idle(plan, "trib_plan_set_scale");
    if (st != TRIB_OK)
        return st;
    if (!s)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "the plan was created without scales: set "
                              "trib_desc_t.prescale to 1 to change it later");
    if (!isfinite(prescale) || !isfinite(postscale) || (s->weights && prescale < 0))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "prescale is %g and postscale %g, they must be finite%s",
                              prescale, postscale,
                              s->weights ? ", and a weight 0 or more" : "");
    s->before = prescale;
    s->after = postscale;
    return TRIB_OK;
}
