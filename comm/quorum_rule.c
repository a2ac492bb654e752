/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/quorum_rule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "offload/channel.h"
#include "comm/configured.h"
#include "pipeline/payload/partial.h"

enum { LONGEST_S = 3600 };

/* Text ------------------------------------------------------------------------------------ */

/* "20ms" in ns; 0: that is no time. */
static uint64_t time_of(char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const size_t digits = strspn(text, "0123456789.");
    double ns = 0, n;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(text + digits, units[i].name) == 0)
            ns = units[i].ns;
    text[digits] = '\0';
    if (ns <= 0 || !trib_number_read(text, &n) || !(n * ns >= 1) || n * ns > LONGEST_S * 1e9)
        return 0;
    return (uint64_t)(n * ns);
}

static trib_status_t parse(char *copy, const char *text, struct trib_error *err,
                           struct trib_quorum_wish *out)
{
    static const char key[] = "deadline=";
    char *rest = strchr(copy, ',');

    if (rest)
        *rest++ = '\0';
    if (!trib_number_read(copy, &out->part) || !(out->part > 0 && out->part <= 1))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "quorum \"%s\": \"%s\" is no part of the ranks: it must be above 0, at "
                         "most 1, as in 0.9,deadline=20ms; or all",
                         text, copy);
    if (!rest || strncmp(rest, key, sizeof(key) - 1) != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "quorum \"%s\": behind the part of the ranks must stand their time, as "
                         "in 0.9,deadline=20ms",
                         text);
    out->deadline_ns = time_of(rest + sizeof(key) - 1);
    if (!out->deadline_ns)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "quorum \"%s\": deadline must be a number with us, ms or s behind it, "
                         "above 0, at most %d s",
                         text, LONGEST_S);
    return TRIB_OK;
}

trib_status_t trib_quorum_parse(const char *text, struct trib_error *err,
                                struct trib_quorum_wish *out)
{
    char copy[TRIB_QUORUM_TEXT_MAX];
    locale_t plain;

    *out = (struct trib_quorum_wish){0};
    if (strcmp(text, "all") == 0 || text[0] == '\0')
        return TRIB_OK;
    if (strlen(text) >= sizeof(copy))
        return trib_fail(err, TRIB_ERR_INVALID, "quorum \"%.20s…\" has more than %zu characters",
                         text, sizeof(copy) - 1);
    snprintf(copy, sizeof(copy), "%s", text);
    const locale_t before = trib_number_enter(&plain);
    const trib_status_t st = parse(copy, text, err, out);
    trib_number_leave(plain, before);
    if (st != TRIB_OK)
        *out = (struct trib_quorum_wish){0};
    return st;
}

uint32_t trib_quorum_need(const struct trib_quorum_wish *wish, int ranks)
{
    return (uint32_t)ceil(wish->part * ranks - 1e-9); /* 0.07 * 100 is above 7 */
}

/* Plans ----------------------------------------------------------------------------------- */

static trib_status_t refuse(struct trib_plan *plan, const char *text, const char *why)
{
    return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED, "quorum %s: %s", text, why);
}

/* What an all-reduce of floats cannot have either. */
static trib_status_t check(struct trib_plan *plan, const char *text)
{
    const uint32_t agreed = TRIB_CODEC_SHARED | TRIB_CODEC_MODEL | TRIB_CODEC_LINEAR;
    const struct trib_comm *comm = plan->comm;
    char why[300];

    if (plan->codec && trib_codec_info(plan->codec)->flags & agreed) {
        snprintf(why, sizeof(why),
                 "with codec %.100s ranks agree on something first, or are counted in its "
                 "sums: use none, or one that each decodes alone, such as topk or qsgd:ef=1",
                 trib_codec_info(plan->codec)->text);
        return refuse(plan, text, why);
    }
    if (comm->channel && comm->channel->tree)
        return refuse(plan, text,
                      "a tree of services passes on sums that do not say who is in them: name "
                      "services of one unit in TRIB_SERVICE, or leave the quorum out");
    if (trib_quorum_mask_bytes(comm->engine.ranks) > comm->cfg.chunk / 2)
        return refuse(plan, text,
                      "the names of so many ranks leave no room in a slot: raise TRIB_CHUNK");
    return TRIB_OK;
}

/* Raw elements have no residual; as words of their own type they have. */
static trib_status_t make_plain(struct trib_plan *plan)
{
    static const char *const codecs[] = {
        [TRIB_F32] = "none", [TRIB_F16] = "f16", [TRIB_BF16] = "bf16"};
    struct trib_comm *comm = plan->comm;
    struct trib_error err = {0};

    const trib_status_t st = trib_codec_create(codecs[plan->run.desc.op.dtype],
                                               comm->engine.kernels, &err, &plan->codec);
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
    struct trib_quorum_wish wish;
    struct trib_error err = {0};

    trib_status_t st = trib_quorum_parse(text, &err, &wish);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    if (wish.part <= 0)
        return TRIB_OK;
    if (!trib_configured_kind(r->op.coll, r->op.dtype, r->op.op))
        return refuse(plan, text,
                      "it is for all-reduce, op sum or mean, dtype f32, f16 or bf16: leave it "
                      "out, or say all");
    st = check(plan, text);
    if (st != TRIB_OK)
        return st;
    const uint32_t need = trib_quorum_need(&wish, comm->engine.ranks);
    plan->has_quorum = true;
    if ((!comm->channel && !comm->stands_in) || need >= (uint32_t)comm->engine.ranks)
        return TRIB_OK;
    if (comm->channel) {
        r->quorum.need = need;
        r->quorum.deadline_ns = wish.deadline_ns;
        snprintf(plan->quorum, sizeof(plan->quorum), "%.*s",
                 (int)sizeof(plan->quorum) - 1, text);
    }
    return plan->codec ? TRIB_OK : make_plain(plan);
}

trib_status_t trib_plan_quorum_feedback(struct trib_plan *plan)
{
    struct trib_feedback_rule *rule = &plan->run.desc.feedback;

    if (!plan->has_quorum || trib_engine_serves(&plan->comm->engine))
        return TRIB_OK;
    if (plan->plain)
        rule->kind = TRIB_FEEDBACK_EF14;
    if (!plan->codec || rule->kind == TRIB_FEEDBACK_EF14)
        return TRIB_OK;
    return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                          "a quorum needs a residual for what comes late, and feedback %s of "
                          "codec %s has none: use feedback ef14, codec none, or no quorum",
                          rule->text, trib_codec_info(plan->codec)->text);
}
