/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_rule.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/keyed_text.h"

/* Arithmetic, one block per call --------------------------------------------------- */

static void apply_sgd(const double *params, const struct trib_store_block *b)
{
    const double momentum = params[TRIB_SGD_MOMENTUM], decay = params[TRIB_SGD_DECAY];
    const bool nesterov = params[TRIB_SGD_NESTEROV] != 0;
    const double *restrict push = b->push;
    double *restrict x = b->value, *restrict v = b->state[0];
    const double rate = b->rate;

    assert(b->n <= TRIB_STORE_RULE_BLOCK);
    if (nesterov) {
#pragma omp simd
        for (size_t i = 0; i < b->n; i++) {
            const double g = push[i] + decay * x[i];
            v[i] = momentum * v[i] + g;
            x[i] -= rate * (g + momentum * v[i]);
        }
    } else {
#pragma omp simd
        for (size_t i = 0; i < b->n; i++) {
            v[i] = momentum * v[i] + (push[i] + decay * x[i]);
            x[i] -= rate * v[i];
        }
    }
}

static void apply_adam(const double *params, const struct trib_store_block *b)
{
    const double beta1 = params[TRIB_ADAM_BETA1], beta2 = params[TRIB_ADAM_BETA2];
    const double eps = params[TRIB_ADAM_EPS];
    const double kept = 1 - b->rate * params[TRIB_ADAM_DECAY];
    const double first = 1 - pow(beta1, (double)b->step);
    const double second = 1 - pow(beta2, (double)b->step);
    const double *restrict push = b->push, rate = b->rate;
    double *restrict x = b->value, *restrict m = b->state[0], *restrict v = b->state[1];

    assert(b->step > 0 && b->n <= TRIB_STORE_RULE_BLOCK);
#pragma omp simd
    for (size_t i = 0; i < b->n; i++) {
        const double g = push[i];
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        x[i] = kept * x[i] - rate * (m[i] / first) / (sqrt(v[i] / second) + eps);
    }
}

static void apply_elastic(const double *params, const struct trib_store_block *b)
{
    const double pull = params[TRIB_ELASTIC_PULL];
    double *restrict x = b->value, *restrict push = b->push;

    assert(b->n <= TRIB_STORE_RULE_BLOCK);
#pragma omp simd
    for (size_t i = 0; i < b->n; i++) {
        const double moved = pull * (push[i] - x[i]);
        x[i] += moved;
        push[i] -= moved;
    }
}

/* Texts ---------------------------------------------------------------------------- */

#define ABOVE_0 DBL_MIN, (double)FLT_MAX, "a number above 0"
#define FROM_0 0, (double)FLT_MAX, "a number from 0"
#define BELOW_1 0, 1 - DBL_EPSILON, "a number from 0 and below 1"

const struct trib_store_rule_row trib_store_rules[] = {
    {.name = "sum", .apply = NULL},
    {.name = "sgd",
     .states = 1,
     .floats = true,
     .rated = true,
     .params = {[TRIB_SGD_RATE] = {"rate", NAN, ABOVE_0},
                [TRIB_SGD_MOMENTUM] = {"momentum", 0, BELOW_1},
                [TRIB_SGD_NESTEROV] = {"nesterov", 0, 0, 1, "0 or 1"},
                [TRIB_SGD_DECAY] = {"decay", 0, FROM_0}},
     .apply = apply_sgd},
    {.name = "adam",
     .states = 2,
     .floats = true,
     .rated = true,
     .params = {[TRIB_ADAM_RATE] = {"rate", NAN, ABOVE_0},
                [TRIB_ADAM_BETA1] = {"beta1", 0.9, BELOW_1},
                [TRIB_ADAM_BETA2] = {"beta2", 0.999, BELOW_1},
                [TRIB_ADAM_EPS] = {"eps", 1e-8, ABOVE_0},
                [TRIB_ADAM_DECAY] = {"decay", 0, FROM_0}},
     .apply = apply_adam},
    {.name = "elastic",
     .floats = true,
     .gives_push = true,
     .params = {[TRIB_ELASTIC_PULL] = {"pull", NAN, DBL_MIN, 1,
                                       "a number above 0, at most 1"}},
     .apply = apply_elastic},
    {.name = NULL},
};

static const char *name_of(int i)
{
    return trib_store_rules[i].name;
}

static int keys_of(int i, struct trib_keyed_key keys[TRIB_KEYED_KEYS])
{
    const struct trib_store_param *params = trib_store_rules[i].params;
    int n = 0;

    for (; params[n].name; n++)
        keys[n] = (struct trib_keyed_key){.name = params[n].name,
                                          .lowest = params[n].lowest,
                                          .highest = params[n].highest,
                                          .must = params[n].must};
    return n;
}

/* Set the parameters; those missing in the text get their default, if they have one. */
static trib_status_t take_values(const char *text, const struct trib_keyed_text *given,
                                 struct trib_error *err, struct trib_store_rule *rule)
{
    const struct trib_store_param *params = rule->row->params;

    for (int i = 0; params[i].name; i++) {
        rule->param[i] = given->given & 1u << i ? given->value[i] : params[i].usual;
        if (isnan(rule->param[i]))
            return trib_fail(err, TRIB_ERR_INVALID,
                             "rule \"%s\" requires %s, such as \"%s:%s=0.1\"", text,
                             params[i].name, rule->row->name, params[i].name);
    }
    return TRIB_OK;
}

trib_status_t trib_store_rule_parse(const char *text, struct trib_error *err,
                                    struct trib_store_rule *out)
{
    static const struct trib_keyed_family family = {"rule", TRIB_STORE_RULE_TEXT_MAX,
                                                    name_of, keys_of};
    struct trib_keyed_text given;

    memset(out, 0, sizeof(*out));
    const trib_status_t st = trib_keyed_parse(&family, text, err, &given);
    if (st != TRIB_OK)
        return st;
    out->row = &trib_store_rules[given.name];
    return take_values(text, &given, err, out);
}
