/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create plans; plan_parts.h lists the steps.
 */
#include "comm/plan/plan_make.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/text.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan_feedback.h"
#include "comm/plan/plan_model.h"
#include "comm/plan/plan_parts.h"
#include "comm/plan/plan_stats.h"
#include "comm/plan/quorum_rule.h"
#include "compress/vectors/robust_op.h"
#include "pipeline/payload/check.h"
#include "pipeline/payload/payload_pairs.h"
#include "pipeline/payload/payload_state.h"

/* Drop a codec that has no effect: elements are sent raw. */
static trib_status_t drop_codec(struct trib_plan *plan)
{
    trib_codec_destroy(plan->codec);
    plan->codec = NULL;
    return TRIB_OK;
}

static trib_status_t make_codec(struct trib_plan *plan, trib_coll_t coll,
                                const trib_desc_t *d)
{
    struct trib_comm *comm = plan->comm;
    const char *text = trib_codec_of(comm, coll, d);
    const bool of_elements = !trib_robust_is(d->op) && !trib_op_is_located(d->op);

    plan->is_exempt = comm->coded && !d->codec && !trib_configured_for(coll, d) &&
                      coll != TRIB_BARRIER;
    if (coll == TRIB_BARRIER || strcmp(text, "none") == 0)
        return TRIB_OK;
    if (plan->run.desc.blocks || trib_coll_is_prefix(coll))
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec %s: %s%s does not support a codec: use codec none",
                              text, trib_coll_name(coll),
                              coll == TRIB_ALLGATHER || coll == TRIB_REDUCE_SCATTER
                                  ? " with counts or offsets"
                                  : "");
    struct trib_error err = {0};
    trib_status_t st =
        trib_codec_create(text, comm->engine.kernels, &err, &plan->codec);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    const struct trib_codec_info *info = trib_codec_info(plan->codec);
    st = trib_codec_for_ranks(plan->codec, comm->engine.ranks, &err);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    if (trib_coll_sums(coll) && d->op == TRIB_MEAN)
        trib_codec_for_mean(plan->codec);
    if (info->flags & TRIB_CODEC_IDENTITY)
        return drop_codec(plan);
    if (info->flags & TRIB_CODEC_MODEL && trib_coll_sums(coll) &&
        coll != TRIB_ALLREDUCE)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "codec %s is trained by sums that all ranks receive, which %s does not "
            "provide: use allreduce, or another codec",
            info->text, trib_coll_name(coll));
    if (d->dtype > TRIB_BF16)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec %s supports floating-point elements, dtype is %s: "
                              "use codec none",
                              info->text, trib_dtype_name(d->dtype));
    if (trib_coll_sums(coll) && d->op != TRIB_SUM && d->op != TRIB_MEAN &&
        (!(info->flags & TRIB_CODEC_ANY_OP) || !of_elements))
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "codec %s supports sum and mean, op is %s: use codec none%s", info->text,
            trib_op_name(d->op), of_elements ? ", f16 or bf16" : "");
    if (info->flags & TRIB_CODEC_MODEL && !trib_coll_sums(coll))
        return drop_codec(plan);
    return TRIB_OK;
}

static uint64_t parameter_digest(const struct trib_run_desc *r)
{
    return trib_robust_is(r->op.op)
               ? (uint64_t)trib_digest32(&r->parameter, sizeof(r->parameter))
               : 0;
}

/* Return the digest of codec, feedback, algorithm and chunk in the plan's frames. */
static uint32_t digest_of(const struct trib_plan *plan)
{
    const char *algorithm = plan->run.desc.name;
    uint32_t codec = plan->codec ? trib_codec_info(plan->codec)->digest
                     : plan->run.desc.pairs
                         ? trib_digest32(&plan->most, sizeof(plan->most))
                         : 0;
    const uint64_t blocks = plan->run.desc.blocks ? plan->kind->digest(plan) : 0;
    const uint64_t cut[2] = {
        plan->run.desc.piece ^ parameter_digest(&plan->run.desc) ^ blocks,
        plan->quorum[0] ? trib_digest32(plan->quorum, strlen(plan->quorum)) : 0};
    uint32_t chunk = trib_digest32(cut, plan->quorum[0] ? sizeof(cut) : sizeof(cut[0]));
    if (plan->numbered)
        return trib_frame_digest_of_plan(codec, plan->number, chunk);
    uint32_t algo = trib_digest32(algorithm, strlen(algorithm));
    uint32_t feedback = plan->codec ? plan->run.desc.feedback.digest : 0;

    return trib_frame_digest(codec, feedback, algo, chunk);
}

/* Number the plan for its frames and announce it to the aggregators, if any. */
static trib_status_t announce(struct trib_plan *plan, const trib_desc_t *desc,
                              bool leaving)
{
    const struct trib_aggregators *a = plan->comm->aggregators;

    if (!a)
        return TRIB_OK;
    const trib_status_t st = a->announce(plan, desc, leaving, &plan->number);
    plan->numbered = st == TRIB_OK;
    return st;
}

/* Allocate and register the run's buffers, under the engine's lock. */
static trib_status_t prepare(struct trib_plan *plan)
{
    struct trib_engine *e = &plan->comm->engine;

    assert(!plan->comm->aggregators == !plan->numbered);
    plan->run.desc.digest = digest_of(plan);
    trib_comm_lock(plan->comm);
    trib_error_clear(&plan->comm->cause);
    if (plan->run.desc.label)
        plan->run.desc.traced_as = trib_trace_name(&e->trace, plan->run.desc.label);
    const trib_status_t st = trib_run_prepare(e, &plan->run);
    if (st != TRIB_OK)
        (void)trib_comm_fail(plan->comm, st, "%s", trib_comm_cause(plan->comm, st));
    trib_comm_unlock(plan->comm);
    return st;
}

/* Choose the algorithm, cut the vector, and compile the schedule into a program. */
static trib_status_t compile(struct trib_plan *plan, const trib_desc_t *desc,
                             bool leaving)
{
    struct trib_run_desc *r = &plan->run.desc;
    struct trib_schedule schedule = {0};
    struct trib_shape shape;

    r->op.leaving = leaving;
    r->codec = plan->codec;
    r->may_undo = plan->comm->aggregators;
    r->may_rewind = plan->comm->rewinds;
    trib_status_t st = trib_plan_build_schedule(plan, desc, &shape, &schedule);
    if (st == TRIB_OK)
        st = trib_plan_feedback(plan, desc);
    if (st == TRIB_OK)
        st = trib_plan_quorum_feedback(plan);
    if (st == TRIB_OK)
        st = trib_plan_cut(plan, desc);
    if (st == TRIB_OK && plan->codec)
        st = trib_plan_make_model(plan);
    const bool agrees =
        plan->codec && trib_codec_agreed_floats(plan->codec, r->piece) > 0;
    if (st == TRIB_OK && agrees && trib_coll_sums(shape.coll) && shape.size > 1 &&
        desc->count)
        st = trib_plan_put_agreement_first(plan, &schedule);
    if (st == TRIB_OK) {
        st = trib_program_create(&schedule, &shape, &plan->run.program);
        if (st != TRIB_OK)
            (void)trib_comm_fail(plan->comm, st, "no memory for a plan");
    }
    if (st == TRIB_OK && r->blocks)
        plan->kind->finish(plan);
    trib_schedule_free(&schedule);
    if (st == TRIB_OK)
        st = announce(plan, desc, leaving);
    return st == TRIB_OK ? prepare(plan) : st;
}

/* Which engine runs a plan. */
enum runs {
    ANY_RUNS, /* the hooks if they take it, else the communicator's own */
    OWN_RUNS,
    OWN_LEAVES, /* own engine; the final barrier of the communicator */
};

/* Properties of a plan besides its description. */
struct request {
    trib_coll_t coll;
    enum runs runs;
    const struct trib_plan_pairs *pairs; /* or NULL */
};

static trib_status_t make(struct trib_comm *comm, const struct request *request,
                          const trib_desc_t *desc, struct trib_plan **plan_out);

/* Create the plan by which ranks exchange what a model has learned. */
static trib_status_t make_exchange(struct trib_plan *plan)
{
    trib_desc_t desc;

    if (!plan->exchanged)
        return TRIB_OK;
    trib_plan_describe_exchange(plan, &desc);
    return make(plan->comm, &(struct request){TRIB_ALLREDUCE, OWN_RUNS, NULL}, &desc,
                &plan->exchange);
}

/* Create the plan that sums the ranks' pair counts per cell. */
static trib_status_t make_count_exchange(struct trib_plan *plan)
{
    const struct trib_regions_rule *rule = &plan->run.desc.regions;
    trib_desc_t desc = TRIB_DESC_INIT;

    if (!rule->cell)
        return TRIB_OK;
    desc.count = trib_divide_up(plan->run.desc.count, rule->cell);
    desc.send = desc.recv = plan->run.payload->pairs->regions.counts;
    desc.dtype = TRIB_U32;
    desc.codec = desc.feedback = "none";
    desc.quorum = "all";
    desc.algorithm = TRIB_AUTO;
    desc.timeout_ms = (int)plan->run.desc.limit_ms;
    return make(plan->comm, &(struct request){TRIB_ALLREDUCE, OWN_RUNS, NULL}, &desc,
                &plan->exchange);
}

/* Copy the description into a plan that has no codec, algorithm or schedule yet. */
static trib_status_t describe(struct trib_plan *plan, trib_coll_t coll,
                              const trib_desc_t *desc)
{
    const size_t size = (size_t)plan->comm->engine.ranks, n = desc->count;
    struct trib_run_desc *r = &plan->run.desc;

    assert(plan->comm->kind_of && !r->blocks);
    plan->send = desc->send;
    plan->recv = desc->recv;
    r->count = n;
    r->element = trib_dtype_size(desc->dtype);
    r->parameter = desc->parameter;
    r->limit_ms = (uint32_t)desc->timeout_ms;
    r->is_truth = trib_coll_sums(coll) &&
                  (desc->dtype == TRIB_BOOL || trib_op_is_logical(desc->op));
    if (desc->op == TRIB_TRIMMED_MEAN && desc->parameter <= 0)
        r->parameter = TRIB_TRIMMED_USUAL;
    /* trib_init has refused invalid texts. */
    (void)trib_check_parse(plan->comm->cfg.check, NULL, &r->check);
    if (trib_coll_sums(coll) && trib_op_is_located(desc->op)) {
        r->check.finite = false; /* indices are not floats */
        r->check.norm = 0;
    }
    r->op = (struct trib_frame_op){
        .coll = coll,
        .dtype = desc->dtype,
        .op = trib_coll_sums(coll) ? desc->op : TRIB_SUM,
        .feed = desc->feed,
        .root = trib_coll_has_root(coll) ? (uint32_t)desc->root : TRIB_ROOT_NONE,
    };
    plan->lengths[0] = coll == TRIB_REDUCE_SCATTER ? n * size : n;
    plan->lengths[1] = coll == TRIB_ALLGATHER ? n * size : n;
    const struct trib_plan_kind *kind = plan->comm->kind_of(coll, desc);
    if (kind) {
        assert(!plan->kind && kind->make && kind->free);
        plan->kind = kind;
        const trib_status_t st = kind->make(plan, desc);
        if (st != TRIB_OK)
            return st;
    }
    return trib_identity_make(plan, desc);
}

/* Create everything the plan needs to run on its communicator's own engine. */
static trib_status_t make_own(struct trib_plan *plan, trib_coll_t coll,
                              const trib_desc_t *desc, bool leaving)
{
    trib_status_t st = make_codec(plan, coll, desc);

    if (st == TRIB_OK)
        st = trib_plan_quorum(plan, desc);
    if (st == TRIB_OK)
        st = compile(plan, desc, leaving);
    if (st == TRIB_OK)
        st = make_count_exchange(plan);
    return st == TRIB_OK ? make_exchange(plan) : st;
}

/* Complete a plan that has only its communicator and table. */
static trib_status_t make_all(struct trib_plan *plan, const struct request *request,
                              const trib_desc_t *desc)
{
    const bool leaving = request->runs == OWN_LEAVES;
    struct trib_comm *comm = plan->comm;
    const trib_coll_t coll = request->coll;
    trib_status_t st = describe(plan, coll, desc);

    plan->run.desc.pairs = request->pairs;
    assert(!request->pairs || coll == TRIB_ALLREDUCE);
    if (st == TRIB_OK)
        st = comm->hooks && request->runs != OWN_RUNS &&
                     comm->hooks->takes(comm, coll, desc, leaving)
                 ? comm->hooks->plan_make(plan, coll, desc)
                 : make_own(plan, coll, desc, leaving);
    return st == TRIB_OK ? trib_plan_stats_make(plan, leaving) : st;
}

/* Create a plan that has only its communicator and table. */
static trib_status_t make_empty(struct trib_comm *comm, trib_coll_t coll,
                                const trib_desc_t *desc, struct trib_plan **plan_out)
{
    trib_status_t st = trib_comm_ours(comm, "a plan");

    *plan_out = NULL;
    if (st == TRIB_OK)
        st = trib_plan_check_desc(comm, coll, desc);
    if (st != TRIB_OK)
        return st;
    struct trib_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    plan->ops = &trib_plan_own_ops;
    plan->comm = comm;
    *plan_out = plan;
    return TRIB_OK;
}

/* Destroy an incomplete plan. */
static trib_status_t made(trib_status_t st, struct trib_plan **plan)
{
    if (st == TRIB_OK)
        return st;
    trib_plan_destroy(*plan);
    *plan = NULL;
    return st;
}

static trib_status_t make(struct trib_comm *comm, const struct request *request,
                          const trib_desc_t *desc, struct trib_plan **plan_out)
{
    const trib_status_t st = make_empty(comm, request->coll, desc, plan_out);
    struct trib_plan *plan = *plan_out;

    if (st != TRIB_OK)
        return st;
    if (request->pairs) {
        plan->kind = request->pairs->kind;
        plan->of_kind = request->pairs->of_kind;
        plan->most = request->pairs->most;
    }
    return made(make_all(plan, request, desc), plan_out);
}

trib_status_t trib_plan_make_outer(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc, struct trib_plan **plan_out)
{
    trib_status_t st = make_empty(comm, coll, desc, plan_out);

    if (st != TRIB_OK)
        return st;
    st = describe(*plan_out, coll, desc);
    if (st == TRIB_OK)
        st = trib_plan_stats_make(*plan_out, false);
    return made(st, plan_out);
}

/* The calling thread's floating-point modes may differ between ranks. Parse numbers and
 * choose algorithms in the default modes. */
static trib_status_t make_in_modes(struct trib_comm *comm,
                                   const struct request *request,
                                   const trib_desc_t *desc, struct trib_plan **plan_out)
{
    fenv_t callers_modes;

    assert(comm && desc && plan_out);
    trib_fpenv_enter_all(&callers_modes);
    const trib_status_t st = make(comm, request, desc, plan_out);
    trib_fpenv_leave_all(&callers_modes);
    return st;
}

trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out)
{
    const struct request request = {coll, leaving ? OWN_LEAVES : ANY_RUNS, NULL};

    return make_in_modes(comm, &request, desc, plan_out);
}

trib_status_t trib_plan_make_own(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *desc, struct trib_plan **plan_out)
{
    return make_in_modes(comm, &(struct request){coll, OWN_RUNS, NULL}, desc, plan_out);
}

trib_status_t trib_plan_make_pairs(struct trib_comm *comm, const trib_desc_t *desc,
                                   const struct trib_plan_pairs *pairs,
                                   struct trib_plan **plan_out)
{
    const struct request request = {TRIB_ALLREDUCE, ANY_RUNS, pairs};

    return make_in_modes(comm, &request, desc, plan_out);
}

void trib_plan_destroy(struct trib_plan *plan)
{
    if (!plan)
        return;
    assert(plan->ops && plan->comm);
    trib_plan_stats_free(plan);
    if (plan->ops->destroy)
        plan->ops->destroy(plan);
    if (plan->numbered)
        plan->comm->aggregators->free_plan(plan);
    trib_run_dispose(&plan->run);
    trib_plan_destroy(plan->exchange);
    trib_plan_dispose_model(plan);
    trib_codec_destroy(plan->codec);
    if (plan->kind && plan->kind->free)
        plan->kind->free(plan);
    free(plan->counts);
    free(plan->asked);
    free(plan);
}
