/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan's feedback, which compensates codec loss: which text applies and which are
 * refused. Also the mask of the elements that a plan has sent.
 */
#include "comm/plan/plan_feedback.h"

#include <assert.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan_parts.h"
#include "compress/feedback_ops.h"
#include "pipeline/payload/error_feedback.h"

/* Return true if each contribution is encoded once, and sums are forwarded and returned
 * without further loss. */
static bool sums_whole(const struct trib_plan *plan)
{
    const uint32_t whole = TRIB_CODEC_SPARSE | TRIB_CODEC_LINEAR;
    const uint32_t flags = trib_codec_info(plan->codec)->flags;
    return (flags & whole && !(flags & TRIB_CODEC_RESULT_LOSES)) ||
           trib_algo_find(plan->run.desc.name)->encodes_once;
}

/* Check caller feedback: each rank's encoding modifies the caller's vector, once per
 * operation. */
static trib_status_t check_by_caller(struct trib_plan *plan)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const struct trib_engine *e = &plan->comm->engine;
    const char *why = NULL;

    if (r->op.coll != TRIB_ALLREDUCE || r->op.dtype != TRIB_F32)
        why = "it supports only all-reduces of float32";
    else if (e->size > e->ranks || plan->has_quorum)
        why = "aggregators and a quorum must be able to undo a start, which needs the "
              "unmodified vector: name an algorithm and no quorum";
    return why ? trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                                "feedback %s: %s, or omit caller=1", r->feedback.text,
                                why)
               : TRIB_OK;
}

static trib_status_t check(struct trib_plan *plan)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const struct trib_feedback_rule *rule = &r->feedback;

    assert(plan->run.desc.name);
    if (trib_feedback_plain(rule))
        return TRIB_OK;
    if (r->op.op != TRIB_SUM && r->op.op != TRIB_MEAN)
        return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                              "feedback %s supports sum and mean, op is %s", rule->text,
                              trib_op_name(r->op.op));
    if (rule->clip > 0 && r->op.feed != TRIB_FEED_WHOLE)
        return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                              "feedback %s: clip needs the norm of the whole vector "
                              "before the first chunk is sent, but this plan is fed "
                              "piecewise: use feed TRIB_FEED_WHOLE, or omit clip",
                              rule->text);
    if (trib_feedback_by_caller(rule))
        return check_by_caller(plan);
    if (!rule->ops->sums_state)
        return TRIB_OK;
    const char *other = trib_feedback_residual()->name;
    if (r->op.coll != TRIB_ALLREDUCE)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "feedback %s supports allreduce, where every rank keeps the sum, not %s: "
            "use %s",
            rule->text, trib_coll_name(r->op.coll), other);
    if (!sums_whole(plan))
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "feedback %s: with algorithm %s codec %s also loses part of sums, so %s "
            "would drift: use algorithm flat, a codec that selects, or %s",
            rule->text, plan->run.desc.name, trib_codec_info(plan->codec)->text,
            rule->ops->name, other);
    return TRIB_OK;
}

trib_status_t trib_plan_feedback(struct trib_plan *plan, const trib_desc_t *desc)
{
    struct trib_run_desc *r = &plan->run.desc;
    struct trib_feedback_rule *rule = &r->feedback;
    /* The configured feedback applies to all-reduces with a codec. A feedback in the
     * description is mandatory. */
    const bool here = trib_coll_sums(r->op.coll) && plan->codec && !plan->plain;
    const bool configured =
        here && trib_configured_kind(r->op.coll, r->op.dtype, r->op.op);
    const char *text = desc->feedback ? desc->feedback
                       : configured   ? plan->comm->cfg.feedback
                       : here         ? "codec"
                                      : "none";
    struct trib_error err = {0};

    const struct trib_codec *codec = plan->plain ? NULL : plan->codec;

    trib_status_t st = trib_feedback_parse(text, &err, rule);
    if (st == TRIB_OK && !trib_coll_sums(r->op.coll)) {
        if (rule->ops->corrects || !trib_feedback_plain(rule))
            return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                                  "feedback %s applies to sums, not to %s: omit it",
                                  rule->text, trib_coll_name(r->op.coll));
        rule->ops = trib_feedback_for(NULL, NULL);
    }
    if (st == TRIB_OK)
        st = trib_feedback_fit(rule, codec, &err);
    if (st != TRIB_OK)
        return trib_comm_fail(plan->comm, st, "%s", trib_error_text(&err));
    st = check(plan);
    if (st == TRIB_OK && rule->warmup) {
        assert(plan->codec);
        plan->run.desc.warm_up.codec = plan->codec;
        plan->run.desc.warm_up.ratio = trib_codec_ratio(plan->codec);
        /* Encodings are largest at first: size slots and buffers for these. */
        trib_codec_set_ratio(
            plan->codec, trib_feedback_ratio(rule, plan->run.desc.warm_up.ratio, 0));
    }
    return st;
}

trib_status_t trib_plan_idle(struct trib_plan *plan, const char *call)
{
    trib_status_t st = trib_comm_ours(plan->comm, call);

    if (st == TRIB_OK && plan->ops->busy(plan))
        st = trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                            "the plan is still running: wait for it before %s", call);
    return st;
}

trib_status_t trib_plan_sent(trib_plan_t *plan, const unsigned char **mask_out,
                             size_t *sent_out)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    return plan->ops->sent(plan, mask_out, sent_out);
}

trib_status_t trib_plan_own_sent(struct trib_plan *plan, const unsigned char **mask_out,
                                 size_t *sent_out)
{
    if (!mask_out)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_sent needs mask_out, and it is NULL");
    trib_status_t st = trib_plan_idle(plan, "trib_plan_sent");
    if (st != TRIB_OK)
        return st;
    const uint8_t *mask = trib_feedback_of(&plan->run)->sent;
    if (!mask)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "%s with codec %s sends every element: trib_plan_sent is for sums with a "
            "codec that selects elements",
            trib_coll_name(plan->run.desc.op.coll),
            plan->codec ? trib_codec_info(plan->codec)->text : "none");
    *mask_out = mask;
    if (!sent_out)
        return TRIB_OK;
    *sent_out = 0;
    for (size_t i = 0; i < plan->run.desc.total / 8 + 1; i++)
        *sent_out += (size_t)__builtin_popcount(mask[i]);
    return TRIB_OK;
}
