/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/feedback_rule.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
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

/* The parameters of all rules. A text gives them behind the rule's own. */
enum { CLIP, WARMUP, STAGES, COMMON, KEYS = TRIB_FEEDBACK_PARAMS + COMMON };

static const struct trib_feedback_param common[COMMON] = {
    [CLIP] = {"clip", (double)FLT_MIN, (double)FLT_MAX,
              .must = "a number above 0 that float32 has"},
    [WARMUP] = {"warmup", 1, UINT32_MAX, .whole = true,
                .must = "a whole number of steps from 1"},
    [STAGES] = {"stages", 1, UINT32_MAX, .whole = true,
                .must = "a whole number from 1", .about = "warmup"},
};

struct parsing {
    const char *text;
    struct trib_error *err;
    const struct trib_feedback_ops *ops;
    const struct trib_feedback_param *keys[KEYS]; /* NULL: the rule has no such one */
    uint32_t given;
    double value[KEYS];
};

static void keys_of(struct parsing *p)
{
    for (int k = 0; k < TRIB_FEEDBACK_PARAMS && p->ops->params[k].name; k++)
        p->keys[k] = &p->ops->params[k];
    for (int k = 0; k < COMMON && !p->ops->takes_none; k++)
        p->keys[TRIB_FEEDBACK_PARAMS + k] = &common[k];
}

/* Appends the names of all rules, or of those that have parameters. */
static void names_append(char *all, size_t bytes, bool with_params)
{
    const char *comma = "";

    for (int i = 0; i < RULES; i++) {
        if (with_params && trib_feedback_rules[i]->takes_none)
            continue;
        trib_text_append(all, bytes, "%s%s", comma, trib_feedback_rules[i]->name);
        comma = ", ";
    }
}

static trib_status_t fail_key(struct parsing *p, const char *key)
{
    const char *names[KEYS];
    char all[160] = "";
    size_t n = 0;

    for (int k = 0; k < KEYS; k++)
        if (p->keys[k])
            names[n++] = p->keys[k]->name;
    if (n == 0) {
        names_append(all, sizeof(all), true);
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": %s has no parameters, only %s have",
                         p->text, p->ops->name, all);
    }
    const char *nearest = trib_text_nearest(key, names, n);
    if (nearest)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": %s has no parameter \"%s\"; did you mean "
                         "\"%s\"?",
                         p->text, p->ops->name, key, nearest);
    for (size_t i = 0; i < n; i++)
        trib_text_append(all, sizeof(all), "%s%s", i ? ", " : "", names[i]);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "feedback \"%s\": %s has no parameter \"%s\", only %s", p->text,
                     p->ops->name, key, all);
}

static bool value_fits(const struct trib_feedback_param *key, double v)
{
    return v >= key->lowest && v <= key->highest && (!key->whole || v == floor(v));
}

static int find_key(const struct parsing *p, const char *name)
{
    int k = 0;

    while (k < KEYS && !(p->keys[k] && strcmp(p->keys[k]->name, name) == 0))
        k++;
    return k;
}

static trib_status_t parse_key(struct parsing *p, char *key)
{
    char *value = strchr(key, '=');

    if (value)
        *value++ = '\0';
    const int k = find_key(p, key);
    if (k == KEYS)
        return fail_key(p, key);
    if (!value)
        return trib_fail(p->err, TRIB_ERR_INVALID, "feedback \"%s\": %s has no value",
                         p->text, key);
    if (p->given & 1u << k)
        return trib_fail(p->err, TRIB_ERR_INVALID, "feedback \"%s\": %s is given twice",
                         p->text, key);
    p->given |= 1u << k;
    if (trib_number_read(value, &p->value[k]) && value_fits(p->keys[k], p->value[k]))
        return TRIB_OK;
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "feedback \"%s\": %s is \"%s\", it must be %s", p->text, key,
                     value, p->keys[k]->must);
}

static trib_status_t parse_name(struct parsing *p, const char *name)
{
    const char *names[RULES];
    char all[160] = "";

    for (int i = 0; i < RULES; i++) {
        names[i] = trib_feedback_rules[i]->name;
        if (strcmp(names[i], name) == 0) {
            p->ops = trib_feedback_rules[i];
            keys_of(p);
            return TRIB_OK;
        }
    }
    const char *nearest = trib_text_nearest(name, names, RULES);
    if (nearest)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": there is no \"%s\"; did you mean \"%s\"?",
                         p->text, name, nearest);
    names_append(all, sizeof(all), false);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "feedback \"%s\": there is no \"%s\", only %s", p->text, name,
                     all);
}

/* Checks keys that need another one. */
static trib_status_t check_together(const struct parsing *p)
{
    const double stages = p->value[TRIB_FEEDBACK_PARAMS + STAGES],
                 steps = p->value[TRIB_FEEDBACK_PARAMS + WARMUP];
    const struct trib_feedback_param *lone = NULL;

    for (int k = 0; k < KEYS; k++)
        if (p->given & 1u << k && p->keys[k]->about &&
            !(p->given & 1u << find_key(p, p->keys[k]->about)))
            lone = p->keys[k];
    if (lone)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": %s is about the %s, and none is given",
                         p->text, lone->name, lone->about);
    if (stages > steps)
        return trib_fail(
            p->err, TRIB_ERR_INVALID,
            "feedback \"%s\": %.0f stages do not fit into a warmup of %.0f "
            "steps",
            p->text, stages, steps);
    return TRIB_OK;
}

static trib_status_t parse(struct parsing *p)
{
    char copy[TRIB_FEEDBACK_TEXT_MAX];
    const size_t len = strlen(p->text);

    if (len >= sizeof(copy))
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%.40s…\" has %zu characters, the limit is %zu",
                         p->text, len, sizeof(copy) - 1);
    memcpy(copy, p->text, len + 1);
    char *at = strchr(copy, ':');
    if (at)
        *at++ = '\0';
    trib_status_t st = parse_name(p, copy);
    while (st == TRIB_OK && at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        st = parse_key(p, at);
        at = comma;
    }
    return st == TRIB_OK ? check_together(p) : st;
}

static void take_values(struct trib_feedback_rule *rule, const struct parsing *p)
{
    const double *last = &p->value[TRIB_FEEDBACK_PARAMS];

    for (int k = 0; k < TRIB_FEEDBACK_PARAMS; k++) {
        const struct trib_feedback_param *key = p->keys[k];
        rule->param[k] = key && p->value[k] != key->off ? p->value[k] : 0;
    }
    rule->clip = last[CLIP];
    rule->warmup = (uint32_t)last[WARMUP];
    rule->stages = (uint32_t)(last[STAGES] > 0 ? last[STAGES] : last[WARMUP]);
    rule->given = p->given;
}

trib_status_t trib_feedback_parse(const char *text, struct trib_error *err,
                                  struct trib_feedback_rule *rule_out)
{
    struct parsing p = {.text = text, .err = err};
    locale_t plain;

    const locale_t before = trib_number_enter(&plain);
    const trib_status_t st = parse(&p);
    trib_number_leave(plain, before);
    *rule_out = (struct trib_feedback_rule){.ops = trib_feedback_for(NULL, NULL)};
    if (st != TRIB_OK)
        return st;
    rule_out->ops = p.ops;
    take_values(rule_out, &p);
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
            "feedback goes with a codec that loses something; choose one, or "
            "feedback none");
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
        misfit = "warmup is of a ratio, and this codec has none; leave it out, or use "
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

bool trib_feedback_plain(const struct trib_feedback_rule *rule)
{
    return !trib_feedback_states(rule) && !(rule->clip > 0) && !rule->warmup;
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
