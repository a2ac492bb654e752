/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of the rules, one block per call. */
#include <assert.h>
#include <math.h>

#include "agg/store/store_rule.h"

void trib_store_apply_sgd(const double *params, const struct trib_store_block *b)
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

void trib_store_apply_adam(const double *params, const struct trib_store_block *b)
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

void trib_store_apply_elastic(const double *params, const struct trib_store_block *b)
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
