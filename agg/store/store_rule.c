/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_rule.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

#define ABOVE_0 DBL_MIN, (double)FLT_MAX, "a number above 0"
#define FROM_0 0, (double)FLT_MAX, "a number from 0"
#define BELOW_1 0, 1 - DBL_EPSILON, "a number from 0 and below 1"

const struct trib_store_rule_row trib_store_rules[] = {
    {.name = "sum", .apply = trib_store_apply_sum},
    {.name = "sgd",
     .states = 1,
     .floats = true,
     .rated = true,
     .params = {[TRIB_SGD_RATE] = {"rate", NAN, ABOVE_0},
                [TRIB_SGD_MOMENTUM] = {"momentum", 0, BELOW_1},
                [TRIB_SGD_NESTEROV] = {"nesterov", 0, 0, 1, "0 or 1"},
                [TRIB_SGD_DECAY] = {"decay", 0, FROM_0}},
     .apply = trib_store_apply_sgd},
    {.name = "adam",
     .states = 2,
     .floats = true,
     .rated = true,
     .params = {[TRIB_ADAM_RATE] = {"rate", NAN, ABOVE_0},
                [TRIB_ADAM_BETA1] = {"beta1", 0.9, BELOW_1},
                [TRIB_ADAM_BETA2] = {"beta2", 0.999, BELOW_1},
                [TRIB_ADAM_EPS] = {"eps", 1e-8, ABOVE_0},
                [TRIB_ADAM_DECAY] = {"decay", 0, FROM_0}},
     .apply = trib_store_apply_adam},
    {.name = "elastic",
     .floats = true,
     .gives_push = true,
     .params = {[TRIB_ELASTIC_PULL] = {"pull", NAN, DBL_MIN, 1,
                                       "a number above 0, at most 1"}},
     .apply = trib_store_apply_elastic},
    {.name = NULL},
};

enum { NAMES_MOST = 16 };

struct parsing {
    const char *text;
    struct trib_error *err;
    struct trib_store_rule *rule;
    bool given[TRIB_STORE_RULE_PARAMS];
};

/* Fails with the nearest name, or all names. */
static trib_status_t no_such(const struct parsing *p, const char *what,
                             const char *name, const char *const *names, size_t n)
{
    const char *nearest = trib_text_nearest(name, names, n);
    char all[160] = "";

    for (size_t i = 0; i < n && !nearest; i++)
        trib_text_append(all, sizeof(all), "%s%s", i ? ", " : "", names[i]);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "rule \"%s\": there is no %s \"%s\"%s%s%s", p->text, what, name,
                     nearest ? "; did you mean \""
                     : n     ? ", only "
                             : "",
                     nearest ? nearest : all, nearest ? "\"?" : "");
}

static trib_status_t parse_name(struct parsing *p, const char *name)
{
    const char *names[NAMES_MOST];
    size_t n = 0;

    for (const struct trib_store_rule_row *row = trib_store_rules; row->name; row++) {
        names[n++] = row->name;
        if (strcmp(row->name, name))
            continue;
        p->rule->row = row;
        for (int i = 0; row->params[i].name; i++)
            p->rule->param[i] = row->params[i].usual;
        return TRIB_OK;
    }
    return no_such(p, "rule", name, names, n);
}

static trib_status_t parse_param(struct parsing *p, char *key)
{
    const struct trib_store_param *params = p->rule->row->params;
    const char *names[TRIB_STORE_RULE_PARAMS];
    char *value = strchr(key, '=');
    size_t n = 0, at = TRIB_STORE_RULE_PARAMS;

    if (value)
        *value++ = '\0';
    for (; params[n].name; n++) {
        names[n] = params[n].name;
        at = strcmp(names[n], key) == 0 ? n : at;
    }
    if (at == TRIB_STORE_RULE_PARAMS)
        return no_such(p, "parameter", key, names, n);
    double *out = &p->rule->param[at];
    if (p->given[at])
        return trib_fail(p->err, TRIB_ERR_INVALID, "rule \"%s\": %s is given twice",
                         p->text, key);
    p->given[at] = true;
    if (value && trib_number_read(value, out) && *out >= params[at].lowest &&
        *out <= params[at].highest)
        return TRIB_OK;
    return trib_fail(p->err, TRIB_ERR_INVALID, "rule \"%s\": %s must be %s", p->text,
                     key, params[at].must);
}

/* Checks that nothing is missing. */
static trib_status_t check_all(const struct parsing *p)
{
    const struct trib_store_rule *rule = p->rule;

    for (int i = 0; rule->row->params[i].name; i++)
        if (isnan(rule->param[i]))
            return trib_fail(p->err, TRIB_ERR_INVALID,
                             "rule \"%s\" has no %s, such as \"%s:%s=0.1\"", p->text,
                             rule->row->params[i].name, rule->row->name,
                             rule->row->params[i].name);
    return TRIB_OK;
}

static trib_status_t parse(struct parsing *p)
{
    char copy[TRIB_STORE_RULE_TEXT_MAX + 1];
    const size_t n = strnlen(p->text, sizeof(copy));

    if (n == sizeof(copy))
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "rule \"%.40s...\" has more than %d characters", p->text,
                         TRIB_STORE_RULE_TEXT_MAX);
    memcpy(copy, p->text, n + 1);
    char *at = strchr(copy, ':');
    if (at)
        *at++ = '\0';
    trib_status_t st = parse_name(p, copy);
    while (st == TRIB_OK && at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        st = parse_param(p, at);
        at = comma;
    }
    return st == TRIB_OK ? check_all(p) : st;
}

trib_status_t trib_store_rule_parse(const char *text, struct trib_error *err,
                                    struct trib_store_rule *out)
{
    struct parsing p = {.text = text, .err = err, .rule = out};
    locale_t plain, before = trib_number_enter(&plain);

    memset(out, 0, sizeof(*out));
    const trib_status_t st = parse(&p);
    trib_number_leave(plain, before);
    return st;
}
