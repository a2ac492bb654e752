/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan/quorum_rule.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/configured.h"
#include "compress/feedback_ops.h"
#include "pipeline/payload/partial.h"

static trib_status_t refuse(struct trib_plan *plan, const char *text, const char *why)
{
    return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED, "quorum %s: %s", text, why);
}

/* Refuse codecs, trees and chunks that do not support a quorum. */
static trib_status_t check(struct trib_plan *plan, const char *text)
{
    const uint32_t agreed = TRIB_CODEC_AGREES | TRIB_CODEC_MODEL | TRIB_CODEC_LINEAR;
    const struct trib_comm *comm = plan->comm;
    char why[300];

    if (comm->cfg.deterministic)
        return refuse(plan, text,
                      "the ranks in a sum depend on when contributions arrive, which "
                      "TRIB_DETERMINISTIC forbids: drop the quorum");
    if (plan->codec && trib_codec_info(plan->codec)->flags & agreed) {
        snprintf(
            why, sizeof(why),
            "with codec %.100s ranks agree on scales first, or its sums depend on the "
            "number of ranks: use none, or a codec that is decoded per rank, such as "
            "topk or qsgd:ef=1",
            trib_codec_info(plan->codec)->text);
        return refuse(plan, text, why);
    }
    if (comm->aggregators && comm->aggregators->tree)
        return refuse(
            plan, text,
            "a tree of aggregators forwards sums without listing their ranks: list one "
            "level in TRIB_SERVICE, or drop the quorum");
    if (trib_quorum_mask_bytes(comm->engine.ranks) > comm->cfg.chunk / 2)
        return refuse(
            plan, text,
            "a bitmap of this many ranks leaves no room in a slot: raise TRIB_CHUNK");
    return TRIB_OK;
}

/* Raw elements have no residual, but encoded chunks of the same type do: use a codec
 * that encodes to the vector's own type. */
static trib_status_t make_plain(struct trib_plan *plan)
{
    static const char *const codecs[] = {
        [TRIB_F32] = "none", [TRIB_F16] = "f16", [TRIB_BF16] = "bf16"};
    struct trib_comm *comm = plan->comm;
    struct trib_error err = {0};

    assert(!plan->codec && plan->run.desc.op.dtype <= TRIB_BF16);
    const trib_status_t st = trib_codec_create(
        codecs[plan->run.desc.op.dtype], comm->engine.kernels, &err, &plan->codec);
    plan->plain = st == TRIB_OK;
    return st == TRIB_OK ? st : trib_comm_fail(comm, st, "%s", trib_error_text(&err));
}

trib_status_t trib_plan_quorum(struct trib_plan *plan, const trib_desc_t *desc)
{
    struct trib_comm *comm = plan->comm;
    struct trib_run_desc *r = &plan->run.desc;
    const char *text = desc->quorum                            ? desc->quorum
                       : trib_configured_for(r->op.coll, desc) ? comm->cfg.quorum
                                                               : "all";
    struct trib_quorum_rule rule;
    struct trib_error err = {0};

    trib_status_t st = trib_quorum_rule_parse(text, &err, &rule);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    if (rule.part <= 0)
        return TRIB_OK;
    if (!trib_configured_kind(r->op.coll, r->op.dtype, r->op.op))
        return refuse(
            plan, text,
            "a quorum supports all-reduce, op sum or mean, dtype f32, f16 or bf16: "
            "omit it, or use all");
    st = check(plan, text);
    if (st != TRIB_OK)
        return st;
    const uint32_t need = trib_quorum_rule_need(&rule, comm->engine.ranks);
    assert(need > 0);
    plan->has_quorum = true;
    if ((!comm->aggregators && !comm->is_fallback) ||
        need >= (uint32_t)comm->engine.ranks)
        return TRIB_OK;
    if (comm->aggregators) {
        r->quorum.need = need;
        r->quorum.deadline_ns = rule.deadline_ns;
        snprintf(plan->quorum, sizeof(plan->quorum), "%.*s",
                 (int)sizeof(plan->quorum) - 1, text);
    }
    return plan->codec ? TRIB_OK : make_plain(plan);
}

trib_status_t trib_plan_quorum_feedback(struct trib_plan *plan)
{
    struct trib_feedback_rule *rule = &plan->run.desc.feedback;

    if (!plan->has_quorum || trib_engine_is_aggregator(&plan->comm->engine))
        return TRIB_OK;
    assert(!plan->plain || plan->codec);
    if (plan->plain)
        rule->ops = trib_feedback_residual();
    if (!plan->codec || rule->ops->residual)
        return TRIB_OK;
    return trib_comm_fail(
        plan->comm, TRIB_ERR_UNSUPPORTED,
        "a quorum needs a residual for late contributions, but feedback %s of codec %s "
        "has none: use feedback %s, codec none, or no quorum",
        rule->text, trib_codec_info(plan->codec)->text, trib_feedback_residual()->name);
}
