/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public calls of plans. plan_make.c creates plans.
 */
#include "comm/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/contribution_check.h"
#include "comm/plan/plan_feedback.h"
#include "comm/plan/plan_make.h"
#include "comm/plan/plan_model.h"
#include "comm/plan/plan_parts.h"
#include "comm/plan/plan_stats.h"
#include "pipeline/engine/engine_wait.h"
#include "pipeline/payload/encode_ahead.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/run/run.h"

static bool disjoint(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x + a_bytes <= y || y + b_bytes <= x;
}

/* Check that this start's buffers have the collective's sizes and do not overlap. */
static trib_status_t check_buffers(struct trib_plan *plan, const void *send, void *recv)
{
    const struct trib_run_desc *r = &plan->run.desc;
    struct trib_comm *comm = plan->comm;
    bool sends = r->op.coll != TRIB_BROADCAST || (int)r->op.root == comm->engine.rank;
    bool receives = r->op.coll != TRIB_REDUCE || (int)r->op.root == comm->engine.rank;
    size_t bytes = r->element;

    sends = sends && plan->lengths[0];
    receives = receives && plan->lengths[1];
    if (!sends && !receives)
        return TRIB_OK;
    if (receives ? !recv : sends && !send && !recv)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s of %zu elements: %s is NULL",
                              trib_coll_name(r->op.coll), r->count,
                              receives ? "recv" : "send");
    if (plan->codec && trib_feedback_by_caller(&r->feedback) &&
        (!send || send == recv || (uintptr_t)send % sizeof(float)))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "feedback %s: send must be a vector of floats, separate "
                              "from recv, and keeps the residual",
                              r->feedback.text);
    if (sends && receives && send && send != recv &&
        !disjoint(send, plan->lengths[0] * bytes, recv, plan->lengths[1] * bytes))
        return trib_comm_fail(comm, TRIB_ERR_OVERLAP,
                              "%s: send (%zu bytes at %p) and recv (%zu bytes at %p) "
                              "overlap; for an in-place operation pass the same "
                              "pointer, or block `rank` of the longer buffer as the "
                              "other one",
                              trib_coll_name(r->op.coll), plan->lengths[0] * bytes,
                              send, plan->lengths[1] * bytes, recv);
    return TRIB_OK;
}

/*
 * Convert the in-place convention of MPI and NCCL to the engine's. They pass a pointer
 * to block `rank` of the longer buffer: as send of an all-gather, as recv of a
 * reduce-scatter. The engine uses send == NULL, with recv the longer buffer; a
 * reduce-scatter then leaves its result at block `rank` as well.
 */
static trib_status_t normalise(struct trib_plan *plan, const void **send, void **recv)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const uintptr_t from = (uintptr_t)*send, to = (uintptr_t)*recv;

    if (r->cut == TRIB_CUT_INTERLEAVED)
        return TRIB_OK;
    if (r->blocks) {
        assert(plan->kind && plan->kind->place);
        return plan->kind->place(plan, send, recv);
    }
    if (!from || !to)
        return TRIB_OK;
    const size_t mine = (size_t)plan->comm->engine.rank * r->count * r->element;
    if (r->op.coll == TRIB_ALLGATHER && from == to + mine) {
        *send = NULL;
    } else if (r->op.coll == TRIB_REDUCE_SCATTER && to == from + mine) {
        *recv = (char *)*recv - mine;
        *send = NULL;
    }
    return TRIB_OK;
}

/* Normalise and check the buffers of a start, and their values. */
static trib_status_t take_buffers(struct trib_plan *plan, const void **send,
                                  void **recv)
{
    trib_status_t st = normalise(plan, send, recv);

    if (st == TRIB_OK)
        st = check_buffers(plan, *send, *recv);
    if (st == TRIB_OK)
        st = trib_check_start(plan, *send, *recv);
    if (st == TRIB_OK && plan->result_stats)
        trib_plan_stats_begin(plan, *recv, !*send);
    return st;
}

trib_status_t trib_plan_run(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_comm *comm = plan->comm;

    if (comm->engine.failed)
        return comm->engine.failed;
    if (trib_comm_in_child(comm))
        return trib_comm_refuse_child(comm, trib_coll_name(plan->run.desc.op.coll));
    trib_status_t st = take_buffers(plan, &send, &recv);
    if (st != TRIB_OK)
        return st;
    st = plan->ops->run(plan, send, recv);
    if (plan->result_stats)
        trib_plan_stats_end(plan, st);
    return st;
}

trib_status_t trib_plan_start(trib_plan_t *plan)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    const struct trib_run_desc *r = &plan->run.desc;
    if (!plan->send && !plan->recv && (plan->lengths[0] || plan->lengths[1]) &&
        r->op.coll != TRIB_BARRIER)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_INVALID,
            "%s of %zu elements: the plan's description has no buffers: start it with "
            "trib_plan_start_%s, which takes them",
            trib_coll_name(r->op.coll), r->count, r->pairs ? "sparse" : "with");
    return trib_plan_start_with(plan, plan->send, plan->recv);
}

trib_status_t trib_plan_start_with(trib_plan_t *plan, const void *send, void *recv)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    struct trib_comm *comm = plan->comm;
    int state = atomic_load(&plan->run.now.state);
    if (comm->engine.failed)
        return comm->engine.failed;
    trib_status_t st = trib_comm_ours(comm, "trib_plan_start");
    if (st != TRIB_OK)
        return st;
    if (state == TRIB_RUN_QUEUED || state == TRIB_RUN_ACTIVE)
        return trib_comm_fail(comm, TRIB_ERR_BUSY,
                              "the plan is still running: wait for it first");
    st = take_buffers(plan, &send, &recv);
    return st == TRIB_OK ? plan->ops->start(plan, send, recv) : st;
}

trib_status_t trib_plan_ready(trib_plan_t *plan, size_t first, size_t count)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    const struct trib_run_desc *r = &plan->run.desc;
    trib_status_t st = trib_comm_ours(plan->comm, "trib_plan_ready");
    if (st != TRIB_OK)
        return st;
    if (r->op.feed == TRIB_FEED_WHOLE)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "the plan is not fed piecewise: set trib_desc_t.feed");
    if (first > r->count || count > r->count - first)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "elements %zu to %zu are outside a vector of %zu", first,
                              first + count, r->count);
    if (plan->comm->engine.failed)
        return plan->comm->engine.failed;
    st = trib_check_fed(plan, first, count);
    if (st != TRIB_OK)
        return st;
    return plan->ops->ready(plan, first, count);
}

trib_status_t trib_plan_test(trib_plan_t *plan)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(plan->comm, "trib_plan_test");
    if (st == TRIB_OK)
        st = plan->ops->test(plan);
    if (plan->result_stats)
        trib_plan_stats_end(plan, st);
    return st;
}

trib_status_t trib_plan_wait(trib_plan_t *plan)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(plan->comm, "trib_plan_wait");
    if (st == TRIB_OK)
        st = plan->ops->wait(plan);
    if (plan->result_stats)
        trib_plan_stats_end(plan, st);
    return st;
}

/* Calls that start nothing --------------------------------------------------------- */

trib_status_t trib_plan_release(struct trib_plan *plan, const char *what,
                                const char *call)
{
    if (trib_comm_in_child(plan->comm)) /* a child's copy never runs */
        return TRIB_OK;
    if (plan->ops->busy(plan))
        return trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                              "the %s is still running: wait for it before %s", what,
                              call);
    if (plan->kind && plan->kind->release) {
        const trib_status_t st = plan->kind->release(plan);
        if (st != TRIB_OK)
            return st;
    }
    /* After a failure the plan may look done while the progress thread, which holds the
     * lock during its pass, still works on it. */
    struct trib_comm *by = trib_plan_hold(plan)->comm;
    trib_comm_lock(by);
    trib_comm_unlock(by);
    trib_plan_let_go(plan);
    return TRIB_OK;
}

trib_status_t trib_plan_free(trib_plan_t *plan)
{
    if (!plan)
        return TRIB_OK;
    const trib_status_t st = trib_plan_release(plan, "plan", "trib_plan_free");
    if (st != TRIB_OK)
        return st;
    struct trib_comm *comm = plan->comm;
    trib_gate_enter(comm);
    assert(comm->n_plans > 0);
    comm->n_plans--;
    trib_plan_destroy(plan);
    trib_gate_leave(comm);
    return TRIB_OK;
}

trib_status_t trib_plan_absent(trib_plan_t *plan, size_t *elements_out)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    if (!elements_out)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_absent needs elements_out, one number per "
                              "rank, and it is NULL");
    trib_status_t st = trib_plan_idle(plan, "trib_plan_absent");
    if (st != TRIB_OK)
        return st;
    memset(elements_out, 0, (size_t)plan->comm->engine.ranks * sizeof(*elements_out));
    plan->ops->absent(plan, elements_out);
    return TRIB_OK;
}

/* Why the codec is none although TRIB_CODEC is set. */
#define EXEMPT \
    ": TRIB_CODEC applies to all-reduces of sum or mean, of f32, f16 or bf16, " \
    "of 1024 or more elements"

trib_status_t trib_plan_explain(const trib_plan_t *plan, char *text, size_t bytes)
{
    if (!plan || !text || !bytes)
        return TRIB_ERR_INVALID;
    if (plan->ops->explain)
        return plan->ops->explain(plan, text, bytes);
    /* The row takes a non-const plan, which this call does not modify. */
    const struct trib_plan *asked = plan;
    plan = trib_plan_hold((struct trib_plan *)(uintptr_t)plan);
    const struct trib_run_desc *r = &plan->run.desc;
    const char *name = plan->identity.name;
    const bool ahead = trib_encode_ahead_is_used(&plan->run);
    const bool splits = trib_parts_is_used(&plan->comm->engine, &plan->run);
    size_t size = r->element;
    char model[160] = "";

    trib_plan_explain_model(plan, model, sizeof(model));
    snprintf(text, bytes,
             "%s of %zu %s\n"
             "%s%s%salgorithm  %s\n"
             "codec      %s%s\n"
             "%s%s%s"
             "feedback   %s\n"
             "chunks     %" PRIu32 " round%s of %" PRIu32 ", up to %zu bytes each\n"
             "threads    %d %s\n"
             "memory     %s\n"
             "%s%s%s",
             trib_coll_name(r->op.coll), r->count, trib_dtype_name(r->op.dtype),
             name[0] ? "name       " : "", name, name[0] ? "\n" : "", plan->why,
             plan->codec ? trib_codec_info(plan->codec)->text : "none",
             plan->is_exempt ? EXEMPT : "", model[0] ? "model      " : "", model,
             model[0] ? "\n" : "", plan->codec ? r->feedback.text : "none",
             trib_run_rounds(&plan->run), trib_run_rounds(&plan->run) == 1 ? "" : "s",
             r->n_chunks, r->piece * size,
             ahead || splits ? plan->comm->cfg.encode_threads : 0,
             splits ? "share sums and copies" : "encode ahead",
             !r->zero_copy     ? "through slots"
             : plan->codec     ? "peers read sums in the aggregators' memory"
             : plan->run.reads ? "peers read and write trib_alloc memory in place, and "
                                 "copy other memory once"
                               : "peers read and write trib_alloc memory in place",
             plan->quorum[0] ? "quorum     " : "", plan->quorum,
             plan->quorum[0] ? "\n" : "");
    trib_plan_let_go(asked);
    const size_t n = strlen(text);
    if (asked->is_short)
        snprintf(text + n, bytes - n,
                 "auto       none: for vectors of less than %d elements messages cost "
                 "more than bytes\n",
                 TRIB_CODEC_ELEMENTS_MIN);
    if (asked->kind && asked->kind->explain && n + 1 < bytes)
        asked->kind->explain(asked, text + n, bytes - n);
    return TRIB_OK;
}

trib_status_t trib_plan_awaits(trib_plan_t *plan, char *text, size_t bytes)
{
    if (!plan || !text || !bytes)
        return TRIB_ERR_INVALID;
    text[0] = '\0';
    const trib_status_t st = trib_comm_ours(plan->comm, "trib_plan_awaits");
    if (st != TRIB_OK || !plan->ops->busy(plan))
        return st;
    if (plan->ops->awaits) {
        plan->ops->awaits(plan, text, bytes);
        return TRIB_OK;
    }
    struct trib_comm *by = trib_plan_hold(plan)->comm;
    trib_comm_lock(by);
    trib_engine_awaits(&by->engine, text, bytes);
    trib_comm_unlock(by);
    trib_plan_let_go(plan);
    return TRIB_OK;
}
