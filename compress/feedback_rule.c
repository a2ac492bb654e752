/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/feedback_rule.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "compress/codec.h"
#include "base/number.h"

static const char *const kind_names[] = {"codec", "none", "ef14", "ef21", NULL};

enum key { MOMENTUM, NESTEROV, MASKING, CLIP, WARMUP, STAGES, KEYS };

#define BIT(key) (1u << (key))
#define OF_ALL (BIT(CLIP) | BIT(WARMUP) | BIT(STAGES))

/* The keys of each kind. */
static const unsigned keys_of[] = {
    [TRIB_FEEDBACK_CODEC] = 0,
    [TRIB_FEEDBACK_NONE] = OF_ALL,
    [TRIB_FEEDBACK_EF14] = OF_ALL | BIT(MOMENTUM) | BIT(NESTEROV) | BIT(MASKING),
    [TRIB_FEEDBACK_EF21] = OF_ALL | BIT(MOMENTUM),
};

static const struct {
    const char *name;
    double lowest, highest;
    bool whole;
    const char *must; /* be */
} keys[KEYS] = {
    [MOMENTUM] = {"momentum", 1e-6, 1, false, "a number above 0, below 1"},
    [NESTEROV] = {"nesterov", 0, 1, true, "0 or 1"},
    [MASKING] = {"masking", 0, 1, true, "0 or 1"},
    [CLIP] = {"clip", (double)FLT_MIN, (double)FLT_MAX, false,
              "a number above 0 that float32 has"},
    [WARMUP] = {"warmup", 1, UINT32_MAX, true, "a whole number of steps from 1"},
    [STAGES] = {"stages", 1, UINT32_MAX, true, "a whole number from 1"},
};

struct parsing {
    const char *text;
    struct trib_error *err;
    enum trib_feedback_kind kind;
    unsigned given;
    double value[KEYS];
};

static trib_status_t fail_key(struct parsing *p, const char *key)
{
    const char *names[KEYS];
    char all[80] = "";
    size_t n = 0;

    for (int k = 0; k < KEYS; k++)
        if (keys_of[p->kind] & BIT(k))
            names[n++] = keys[k].name;
    if (n == 0)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": codec has no parameters; write ef14 or none "
                         "where it is to have some",
                         p->text);
    const char *nearest = trib_text_nearest(key, names, n);
    if (nearest)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": %s has no parameter \"%s\"; did you mean "
                         "\"%s\"?",
                         p->text, kind_names[p->kind], key, nearest);
    for (size_t i = 0; i < n; i++)
        trib_text_append(all, sizeof(all), "%s%s", i ? ", " : "", names[i]);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "feedback \"%s\": %s has no parameter \"%s\", only %s", p->text,
                     kind_names[p->kind], key, all);
}

static bool value_fits(const struct parsing *p, int k, double v)
{
    if (!(v >= keys[k].lowest && v <= keys[k].highest) ||
        (keys[k].whole && v != floor(v)))
        return false;
    /* ef21:momentum=1 is plain EF21, which has a shorter name; M = 1 never forgets. */
    return k != MOMENTUM || v < 1 || p->kind == TRIB_FEEDBACK_EF21;
}

static trib_status_t parse_key(struct parsing *p, char *key)
{
    char *value = strchr(key, '=');
    int k = 0;

    if (value)
        *value++ = '\0';
    while (k < KEYS && !((keys_of[p->kind] & BIT(k)) && strcmp(keys[k].name, key) == 0))
        k++;
    if (k == KEYS)
        return fail_key(p, key);
    if (!value)
        return trib_fail(p->err, TRIB_ERR_INVALID, "feedback \"%s\": %s has no value",
                         p->text, key);
    if (p->given & BIT(k))
        return trib_fail(p->err, TRIB_ERR_INVALID, "feedback \"%s\": %s is given twice",
                         p->text, key);
    p->given |= BIT(k);
    if (trib_number_read(value, &p->value[k]) && value_fits(p, k, p->value[k]))
        return TRIB_OK;
    return trib_fail(
        p->err, TRIB_ERR_INVALID, "feedback \"%s\": %s is \"%s\", it must be %s",
        p->text, key, value,
        k == MOMENTUM && p->kind == TRIB_FEEDBACK_EF21 ? "a number above 0, at most 1"
                                                       : keys[k].must);
}

static trib_status_t parse_kind(struct parsing *p, const char *name)
{
    for (int i = 0; kind_names[i]; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            p->kind = (enum trib_feedback_kind)i;
            return TRIB_OK;
        }
    }
    const char *nearest = trib_text_nearest(name, kind_names, SIZE_MAX);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     nearest
                         ? "feedback \"%s\": there is no \"%s\"; did you mean \"%s\"?"
                         : "feedback \"%s\": there is no \"%s\", only codec, none, "
                           "ef14, ef21",
                     p->text, name, nearest);
}

/* Checks keys that need another one. */
static trib_status_t check_together(const struct parsing *p)
{
    const bool momentum = p->given & BIT(MOMENTUM), warmup = p->given & BIT(WARMUP);
    int lone = -1;

    if (!momentum && (p->given & BIT(NESTEROV)))
        lone = NESTEROV;
    if (!momentum && (p->given & BIT(MASKING)))
        lone = MASKING;
    if (!warmup && (p->given & BIT(STAGES)))
        lone = STAGES;
    if (lone >= 0)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "feedback \"%s\": %s is about the %s, and none is given",
                         p->text, keys[lone].name,
                         lone == STAGES ? "warmup" : "momentum");
    if (p->value[STAGES] > p->value[WARMUP])
        return trib_fail(
            p->err, TRIB_ERR_INVALID,
            "feedback \"%s\": %.0f stages do not fit into a warmup of %.0f "
            "steps",
            p->text, p->value[STAGES], p->value[WARMUP]);
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
    trib_status_t st = parse_kind(p, copy);
    while (st == TRIB_OK && at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        st = parse_key(p, at);
        at = comma;
    }
    return st == TRIB_OK ? check_together(p) : st;
}

trib_status_t trib_feedback_parse(const char *text, struct trib_error *err,
                                  struct trib_feedback_rule *rule_out)
{
    struct parsing p = {.text = text, .err = err};
    locale_t plain;

    const locale_t before = trib_number_enter(&plain);
    const trib_status_t st = parse(&p);
    trib_number_leave(plain, before);
    *rule_out = (struct trib_feedback_rule){.kind = TRIB_FEEDBACK_NONE};
    if (st != TRIB_OK)
        return st;
    const double eta = p.kind == TRIB_FEEDBACK_EF21 && p.value[MOMENTUM] == 1
                           ? 0
                           : p.value[MOMENTUM];
    *rule_out = (struct trib_feedback_rule){
        .kind = p.kind,
        .momentum = eta,
        .nesterov = p.value[NESTEROV] > 0,
        .masking = p.value[MASKING] > 0,
        .masking_given = p.given & BIT(MASKING),
        .clip = p.value[CLIP],
        .warmup = (uint32_t)p.value[WARMUP],
        .stages = (uint32_t)(p.given & BIT(STAGES) ? p.value[STAGES] : p.value[WARMUP]),
    };
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

static void print(struct trib_feedback_rule *rule)
{
    const bool corrects = rule->momentum > 0 && rule->kind == TRIB_FEEDBACK_EF14;
    locale_t plain;

    const locale_t before = trib_number_enter(&plain);
    snprintf(rule->text, sizeof(rule->text), "%s", kind_names[rule->kind]);
    print_number(rule, rule->momentum > 0, "momentum", rule->momentum);
    print_number(rule, corrects, "nesterov", rule->nesterov);
    print_number(rule, corrects, "masking", rule->masking);
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

static trib_status_t fit_to_none(struct trib_feedback_rule *rule,
                                 struct trib_error *err)
{
    if (rule->kind == TRIB_FEEDBACK_CODEC)
        rule->kind = TRIB_FEEDBACK_NONE;
    if (rule->kind != TRIB_FEEDBACK_NONE || !trib_feedback_plain(rule))
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

    if (flags & TRIB_CODEC_IDENTITY)
        return fit_to_none(rule, err);
    if (rule->kind == TRIB_FEEDBACK_CODEC)
        rule->kind =
            flags & TRIB_CODEC_FEEDBACK ? TRIB_FEEDBACK_EF14 : TRIB_FEEDBACK_NONE;
    if (rule->kind == TRIB_FEEDBACK_EF14 && trib_codec_feedback_grows(codec))
        return fail_fit(
            rule, codec, err,
            "the error would grow without bound; use other parameters of the "
            "codec, or feedback none");
    if (rule->kind == TRIB_FEEDBACK_EF21 && !(trib_codec_info(codec)->delta > 0))
        return fail_fit(
            rule, codec, err,
            "ef21 is for contractions, |C(x)-x|^2 <= (1-1/delta)|x|^2, and this "
            "codec promises no delta; use another, such as topk, or ef14");
    if (rule->masking && !(flags & TRIB_CODEC_SPARSE))
        return fail_fit(
            rule, codec, err,
            "masking clears the momentum of what was selected, and this codec "
            "sends all; use masking=0, or a codec such as topk");
    if (rule->warmup && !(trib_codec_ratio(codec) > 0))
        return fail_fit(
            rule, codec, err,
            "warmup is of a ratio, and this codec has none; leave it out, or use "
            "a codec with ratio=");
    if (rule->kind == TRIB_FEEDBACK_EF14 && rule->momentum > 0 && !rule->masking_given)
        rule->masking = flags & TRIB_CODEC_SPARSE;
    print(rule);
    return TRIB_OK;
}

bool trib_feedback_plain(const struct trib_feedback_rule *rule)
{
    return rule->kind != TRIB_FEEDBACK_EF21 && !(rule->momentum > 0) &&
           !(rule->clip > 0) && !rule->warmup;
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
