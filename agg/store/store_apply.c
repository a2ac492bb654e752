/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the rules, a block at a time. */
#include <assert.h>
#include <math.h>

#include "agg/store/store_rule.h"

void trib_store_apply_sgd(const double *params, const struct trib_store_block *b)
{
    const double momentum = params[TRIB_SGD_MOMENTUM], decay = params[TRIB_SGD_DECAY];
    const bool nesterov = params[TRIB_SGD_NESTEROV] != 0;
    double *x = b->value, *v = b->state[0];

    assert(b->n <= TRIB_STORE_RULE_BLOCK);
    for (size_t i = 0; i < b->n; i++) {
        const double g = b->push[i] + decay * x[i];
        v[i] = momentum * v[i] + g;
        x[i] -= b->rate * (nesterov ? g + momentum * v[i] : v[i]);
    }
}

void trib_store_apply_adam(const double *params, const struct trib_store_block *b)
{
    const double beta1 = params[TRIB_ADAM_BETA1], beta2 = params[TRIB_ADAM_BETA2];
    const double eps = params[TRIB_ADAM_EPS];
    const double kept = 1 - b->rate * params[TRIB_ADAM_DECAY];
    const double first = 1 - pow(beta1, (double)b->step);
    const double second = 1 - pow(beta2, (double)b->step);
    double *x = b->value, *m = b->state[0], *v = b->state[1];

    assert(b->step > 0 && b->n <= TRIB_STORE_RULE_BLOCK);
    for (size_t i = 0; i < b->n; i++) {
        const double g = b->push[i];
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        x[i] = kept * x[i] - b->rate * (m[i] / first) / (sqrt(v[i] / second) + eps);
    }
}

void trib_store_apply_elastic(const double *params, const struct trib_store_block *b)
{
    const double pull = params[TRIB_ELASTIC_PULL];

    assert(b->n <= TRIB_STORE_RULE_BLOCK);
    for (size_t i = 0; i < b->n; i++) {
        const double moved = pull * (b->push[i] - b->value[i]);
        b->value[i] += moved;
        b->push[i] -= moved;
    }
}
