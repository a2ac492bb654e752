/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/feedback_rule.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/keyed_text.h"
#include "base/number.h"
#include "base/text.h"
#include "compress/codec.h"
#include "compress/feedback_ops.h"

#define RULE(id, ...) extern const struct trib_feedback_ops trib_feedback_##id;
#include "compress/feedback_rules.def"
#undef RULE

#define RULE(id, ...) &trib_feedback_##id,
const struct trib_feedback_ops *const trib_feedback_rules[] = {
#include "compress/feedback_rules.def"
    NULL};
#undef RULE

enum { RULES = sizeof(trib_feedback_rules) / sizeof(*trib_feedback_rules) - 1 };

/* Parameters of all rules. In a text they follow the rule's own. */
enum { CLIP, WARMUP, STAGES, COMMON, KEYS = TRIB_FEEDBACK_PARAMS + COMMON };

static const struct trib_feedback_param common[COMMON] = {
    [CLIP] = {"clip", (double)FLT_MIN, (double)FLT_MAX,
              .must = "a number above 0 in the range of float32"},
    [WARMUP] = {"warmup", 1, UINT32_MAX, .whole = true,
                .must = "a whole number of steps from 1"},
    [STAGES] = {"stages", 1, UINT32_MAX, .whole = true, .must = "a whole number from 1",
                .about = "warmup"},
};

static const char *name_of(int i)
{
    return i < RULES ? trib_feedback_rules[i]->name : NULL;
}

/* Return parameter k of a rule, where the common parameters follow its own; NULL:
 * none. */
static const struct trib_feedback_param *param_of(const struct trib_feedback_ops *ops,
                                                  int k)
{
    if (k >= TRIB_FEEDBACK_PARAMS)
        return &common[k - TRIB_FEEDBACK_PARAMS];
    return ops->params[k].name ? &ops->params[k] : NULL;
}

static int keys_of(int i, struct trib_keyed_key keys[TRIB_KEYED_KEYS])
{
    const struct trib_feedback_ops *ops = trib_feedback_rules[i];
    const int n = ops->takes_none ? 0 : KEYS;

    for (int k = 0; k < n; k++) {
        const struct trib_feedback_param *p = param_of(ops, k);
        keys[k] = p ? (struct trib_keyed_key){p->name, p->lowest, p->highest, p->whole,
                                              p->must, NULL}
                    : (struct trib_keyed_key){.name = NULL};
    }
    return n;
}

/* True if the text contains a parameter of this name. */
static bool is_given(const struct trib_feedback_ops *ops,
                     const struct trib_keyed_text *given, const char *name)
{
    for (int k = 0; k < KEYS; k++)
        if (given->given & 1u << k && strcmp(param_of(ops, k)->name, name) == 0)
            return true;
    return false;
}

/* Check parameters that require another one. */
static trib_status_t check_together(const char *text,
                                    const struct trib_keyed_text *given,
                                    struct trib_error *err)
{
    const struct trib_feedback_ops *ops = trib_feedback_rules[given->name];
    const double stages = given->value[TRIB_FEEDBACK_PARAMS + STAGES],
                 steps = given->value[TRIB_FEEDBACK_PARAMS + WARMUP];
    const struct trib_feedback_param *lone = NULL;

    for (int k = 0; k < KEYS; k++) {
        if (!(given->given & 1u << k))
            continue;
        const struct trib_feedback_param *p = param_of(ops, k);
        if (p->about && !is_given(ops, given, p->about))
            lone = p;
    }
    if (lone)
        return trib_fail(err, TRIB_ERR_INVALID, "feedback \"%s\": %s requires %s", text,
                         lone->name, lone->about);
    if (stages > steps)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "feedback \"%s\": %.0f stages do not fit into a warmup of %.0f "
            "steps",
            text, stages, steps);
    return TRIB_OK;
}

static void take_values(struct trib_feedback_rule *rule,
                        const struct trib_keyed_text *given)
{
    const double *last = &given->value[TRIB_FEEDBACK_PARAMS];

    rule->ops = trib_feedback_rules[given->name];
    for (int k = 0; k < TRIB_FEEDBACK_PARAMS; k++) {
        const struct trib_feedback_param *p = param_of(rule->ops, k);
        rule->param[k] = p && given->value[k] != p->off ? given->value[k] : 0;
    }
    rule->clip = last[CLIP];
    rule->warmup = (uint32_t)last[WARMUP];
    rule->stages = (uint32_t)(last[STAGES] > 0 ? last[STAGES] : last[WARMUP]);
    rule->given = given->given;
}

trib_status_t trib_feedback_parse(const char *text, struct trib_error *err,
                                  struct trib_feedback_rule *rule_out)
{
    static const struct trib_keyed_family family = {
        "feedback", TRIB_FEEDBACK_TEXT_MAX - 1, name_of, keys_of};
    struct trib_keyed_text given;

    *rule_out = (struct trib_feedback_rule){.ops = trib_feedback_for(NULL, NULL)};
    trib_status_t st = trib_keyed_parse(&family, text, err, &given);
    if (st == TRIB_OK)
        st = check_together(text, &given, err);
    if (st != TRIB_OK)
        return st;
    take_values(rule_out, &given);
    snprintf(rule_out->text, sizeof(rule_out->text), "%s", text);
    return TRIB_OK;
}

static void print_number(struct trib_feedback_rule *rule, bool shown, const char *name,
                         double v)
{
    char number[32];

    if (!shown)
        return;
    trib_number_print(number, sizeof(number), v);
    trib_text_append(rule->text, sizeof(rule->text), "%c%s=%s",
                     strchr(rule->text, ':') ? ',' : ':', name, number);
}

static bool param_shown(const struct trib_feedback_rule *rule, int k)
{
    const struct trib_feedback_param *params = rule->ops->params;

    if (!params[k].about)
        return rule->param[k] > 0;
    int other = 0;
    while (strcmp(params[other].name, params[k].about) != 0)
        other++;
    return rule->param[other] > 0;
}

static void print(struct trib_feedback_rule *rule)
{
    const struct trib_feedback_param *params = rule->ops->params;
    locale_t plain;

    const locale_t before = trib_number_enter(&plain);
    snprintf(rule->text, sizeof(rule->text), "%s", rule->ops->name);
    for (int k = 0; params[k].name; k++)
        print_number(rule, param_shown(rule, k), params[k].name, rule->param[k]);
    print_number(rule, rule->clip > 0, "clip", rule->clip);
    print_number(rule, rule->warmup > 0, "warmup", rule->warmup);
    print_number(rule, rule->warmup > 0, "stages", rule->stages);
    trib_number_leave(plain, before);
    rule->digest = trib_digest32(rule->text, strlen(rule->text));
}

static trib_status_t fail_fit(const struct trib_feedback_rule *rule,
                              const struct trib_codec *codec, struct trib_error *err,
                              const char *why)
{
    return trib_fail(err, TRIB_ERR_UNSUPPORTED, "feedback %s with codec %s: %s",
                     rule->text, codec ? trib_codec_info(codec)->text : "none", why);
}

const struct trib_feedback_ops *trib_feedback_for(const struct trib_feedback_rule *rule,
                                                  const struct trib_codec *codec)
{
    const struct trib_feedback_ops *ops = rule ? rule->ops : NULL;

    for (int i = 0; !ops; i++)
        if (trib_feedback_rules[i]->chosen_for)
            ops = trib_feedback_rules[i];
    return ops->chosen_for ? ops->chosen_for(codec) : ops;
}

static trib_status_t fit_to_none(struct trib_feedback_rule *rule,
                                 struct trib_error *err)
{
    if (rule->ops->corrects || !trib_feedback_plain(rule))
        return fail_fit(
            rule, NULL, err,
            "feedback requires a lossy codec; choose one, or feedback none");
    print(rule);
    return TRIB_OK;
}

trib_status_t trib_feedback_fit(struct trib_feedback_rule *rule,
                                const struct trib_codec *codec, struct trib_error *err)
{
    const uint32_t flags = codec ? trib_codec_info(codec)->flags : TRIB_CODEC_IDENTITY;

    rule->ops = trib_feedback_for(rule, flags & TRIB_CODEC_IDENTITY ? NULL : codec);
    if (flags & TRIB_CODEC_IDENTITY)
        return fit_to_none(rule, err);
    const char *misfit = rule->ops->misfit ? rule->ops->misfit(rule, codec) : NULL;
    if (!misfit && rule->warmup && !(trib_codec_ratio(codec) > 0))
        misfit = "warmup changes the ratio, and this codec has none; omit it, or use "
                 "a codec with ratio=";
    if (misfit)
        return fail_fit(rule, codec, err, misfit);
    if (rule->ops->complete)
        rule->ops->complete(rule, codec);
    print(rule);
    return TRIB_OK;
}

bool trib_feedback_keeps(const struct trib_feedback_rule *rule, unsigned i)
{
    const struct trib_feedback_state *s = rule->ops ? &rule->ops->states[i] : NULL;

    return s && s->name && (!s->optional || rule->param[s->param] > 0);
}

const struct trib_feedback_ops *trib_feedback_residual(void)
{
    int i = 0;

    while (!trib_feedback_rules[i]->residual)
        i++;
    return trib_feedback_rules[i];
}

unsigned trib_feedback_states(const struct trib_feedback_rule *rule)
{
    unsigned n = 0;

    for (unsigned i = 0; i < TRIB_FEEDBACK_STATES; i++)
        n += trib_feedback_keeps(rule, i);
    return n;
}

bool trib_feedback_by_caller(const struct trib_feedback_rule *rule)
{
    return rule->ops && rule->ops->caller && rule->param[rule->ops->caller] > 0;
}

bool trib_feedback_plain(const struct trib_feedback_rule *rule)
{
    return !trib_feedback_states(rule) && !(rule->clip > 0) && !rule->warmup &&
           !trib_feedback_by_caller(rule);
}

double trib_feedback_ratio(const struct trib_feedback_rule *rule, double ratio,
                           uint32_t step)
{
    if (step >= rule->warmup)
        return ratio;
    const uint32_t stage =
        (uint32_t)((uint64_t)step * rule->stages / rule->warmup);
    return fmax(pow(ratio, ((double)stage + 1) / ((double)rule->stages + 1)), ratio);
}
