/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan/configured.h"

#include <assert.h>
#include <string.h>

#include "comm/core/communicator.h"
#include "comm/plan/auto_choice.h"
#include "comm/plan/quorum_rule.h"
#include "compress/feedback_ops.h"

bool trib_configured_kind(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op)
{
    return coll == TRIB_ALLREDUCE && (op == TRIB_SUM || op == TRIB_MEAN) &&
           (dtype == TRIB_F32 || dtype == TRIB_F16 || dtype == TRIB_BF16);
}

bool trib_configured_for(trib_coll_t coll, const trib_desc_t *d)
{
    return trib_configured_kind(coll, d->dtype, d->op) &&
           d->count >= TRIB_CODEC_ELEMENTS_MIN;
}

const char *trib_codec_of(const struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *d)
{
    if (d->codec)
        return d->codec;
    return trib_configured_for(coll, d) ? comm->cfg.codec : "none";
}

static trib_status_t refuse(struct trib_comm *comm, const char *setting,
                            const char *text, const char *what, const char *without)
{
    return trib_comm_fail(
        comm, TRIB_ERR_UNSUPPORTED,
        "%s=%.100s keeps %s per vector, but trib_allreduce does not identify the "
        "vector: name it (trib_allreduce_named), create a plan per vector "
        "(trib_plan_allreduce, trib_plan_start_with), or use %s",
        setting, text, what, without);
}

/* Refuse a codec or feedback that keeps state. The texts have been parsed. */
static trib_status_t check_codec(struct trib_comm *comm, const struct trib_codec *codec,
                                 const struct trib_feedback_rule *rule)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const char *const text = comm->cfg.codec;

    if (info->flags & TRIB_CODEC_MODEL)
        return refuse(comm, "TRIB_CODEC", text, "a trained model",
                      "a codec without training");
    if (rule->warmup)
        return refuse(comm, "TRIB_FEEDBACK", rule->text, "its warm-up progress",
                      "no warmup");
    if (!rule->ops->corrects)
        return TRIB_OK;
    if (strcmp(comm->cfg.feedback, "codec") == 0)
        return refuse(comm, "TRIB_CODEC", text, "a residual",
                      "a codec without a residual (ef=0, or TRIB_FEEDBACK=none)");
    return refuse(comm, "TRIB_FEEDBACK", rule->text, "a residual",
                  "TRIB_FEEDBACK=none");
}

static trib_status_t check_feedback(struct trib_comm *comm, struct trib_codec *codec)
{
    struct trib_feedback_rule rule;
    struct trib_error err = {0};

    trib_status_t st = trib_feedback_parse(comm->cfg.feedback, &err, &rule);
    if (st == TRIB_OK)
        st = trib_feedback_fit(&rule, codec, &err);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    return check_codec(comm, codec, &rule);
}

/* Refuse a quorum if aggregators may close chunks without late ranks, whose state would
 * be lost. */
static trib_status_t check_quorum(struct trib_comm *comm)
{
    struct trib_quorum_rule rule;
    struct trib_error err = {0};

    if (!comm->hooks || !comm->cfg.quorum[0])
        return TRIB_OK;
    const trib_status_t st = trib_quorum_rule_parse(comm->cfg.quorum, &err, &rule);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    if (rule.part <= 0 || trib_quorum_rule_need(&rule, comm->engine.ranks) >=
                              (uint32_t)comm->engine.ranks)
        return TRIB_OK;
    return refuse(comm, "TRIB_QUORUM", comm->cfg.quorum, "late contributions",
                  "TRIB_QUORUM=all");
}

trib_status_t trib_configured_call(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d)
{
    struct trib_error err = {0};
    struct trib_codec *codec;

    assert(!d->name && !d->codec);
    if (!trib_configured_for(coll, d))
        return TRIB_OK;
    trib_status_t st = check_quorum(comm);
    if (st != TRIB_OK || !comm->coded)
        return st;
    if (trib_auto_wanted(comm->cfg.codec)) /* codec auto keeps no residual here */
        return TRIB_OK;
    st = trib_codec_create(comm->cfg.codec, comm->engine.kernels, &err, &codec);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    st = trib_codec_info(codec)->flags & TRIB_CODEC_IDENTITY
             ? TRIB_OK
             : check_feedback(comm, codec);
    trib_codec_destroy(codec);
    return st;
}

trib_status_t trib_configured_auto(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d)
{
    const char *quorum = d->quorum ? d->quorum : comm->cfg.quorum;
    const char *feedback = d->feedback ? d->feedback : comm->cfg.feedback;
    struct trib_error err = {0};

    if (!trib_configured_kind(coll, d->dtype, d->op))
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec auto supports all-reduce with sum or mean of f32, "
                              "f16 or bf16, this is %s with %s of %s: use codec none",
                              trib_coll_name(coll), trib_op_name(d->op),
                              trib_dtype_name(d->dtype));
    if (comm->cfg.deterministic)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "codec auto chooses by measured time, so results differ between runs, "
            "which TRIB_DETERMINISTIC forbids: name a codec");
    if (*quorum && strcmp(quorum, "all") != 0)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec auto needs all ranks: quorum is %s, use all",
                              quorum);
    if (trib_auto_feedback(feedback, &err) != TRIB_OK)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED, "%s", trib_error_text(&err));
    return TRIB_OK;
}
