/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/keyed_text.h"

enum { SGD, ADAM };
enum { MOMENTUM, NESTEROV, SGD_DECAY, SGD_KEYS };
enum { BETA1, BETA2, EPS, ADAM_DECAY, ADAM_KEYS };

static const char *optimizer_name(int i)
{
    static const char *const names[] = {"sgd", "adam", NULL};

    return names[i];
}

static int optimizer_keys(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS])
{
    static const struct trib_keyed_key sgd[SGD_KEYS] = {
        [MOMENTUM] = {"momentum", 0, 0.9999999, false, "a number from 0 to below 1"},
        [NESTEROV] = {"nesterov", 0, 1, true, "0 or 1"},
        [SGD_DECAY] = {"decay", 0, 1, false, "a number from 0 to 1"},
    };
    static const struct trib_keyed_key adam[ADAM_KEYS] = {
        [BETA1] = {"beta1", 0, 0.9999999, false, "a number from 0 to below 1"},
        [BETA2] = {"beta2", 0, 0.9999999, false, "a number from 0 to below 1"},
        [EPS] = {"eps", 0, 1, false, "a number from 0 to 1"},
        [ADAM_DECAY] = {"decay", 0, 1, false, "a number from 0 to 1"},
    };

    if (i == SGD)
        memcpy(keys_out, sgd, sizeof(sgd));
    else
        memcpy(keys_out, adam, sizeof(adam));
    return i == SGD ? SGD_KEYS : ADAM_KEYS;
}

static const struct trib_keyed_family family = {"optimizer", 120, optimizer_name,
                                                optimizer_keys};

static void take_numbers(const struct trib_keyed_text *given,
                         struct trib_train_optimizer *o)
{
    static const double adam[ADAM_KEYS] = {0.9, 0.999, 1e-8, 0};

    o->kind = given->name;
    for (int k = 0; k < (o->kind == SGD ? (int)SGD_KEYS : (int)ADAM_KEYS); k++)
        o->number[k] =
            o->kind == ADAM && !(given->given & 1u << k) ? adam[k] : given->value[k];
}

static trib_status_t make_vectors(struct trib_train_optimizer *o, int vectors,
                                  struct trib_error *err)
{
    for (int v = 0; v < vectors; v++) {
        o->vector[v] = calloc(o->count, sizeof(float));
        if (!o->vector[v])
            return trib_fail(err, TRIB_ERR_NO_MEMORY,
                             "no memory for the optimizer's %zu floats", o->count);
    }
    return TRIB_OK;
}

trib_status_t trib_train_optimizer_create(const char *text, trib_update_fn update,
                                          void *arg, size_t count,
                                          struct trib_error *err,
                                          struct trib_train_optimizer *out)
{
    struct trib_keyed_text given;

    *out = (struct trib_train_optimizer){
        .kind = -1, .update = update, .arg = arg, .count = count};
    if (update)
        return TRIB_OK;

    const trib_status_t st =
        trib_keyed_parse(&family, text ? text : "sgd", err, &given);
    if (st != TRIB_OK)
        return st;
    take_numbers(&given, out);
    if (out->kind == SGD && out->number[NESTEROV] != 0 && out->number[MOMENTUM] == 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "optimizer \"%s\": nesterov needs momentum=", text);

    return make_vectors(out, out->kind == ADAM ? 2 : out->number[MOMENTUM] > 0, err);
}

trib_status_t trib_train_optimizer_copy(const struct trib_train_optimizer *optimizer,
                                        struct trib_error *err,
                                        struct trib_train_optimizer *out)
{
    int vectors = 0;

    *out = *optimizer;
    for (int v = 0; v < TRIB_TRAIN_OPTIMIZER_VECTORS; v++) {
        vectors += optimizer->vector[v] != NULL;
        out->vector[v] = NULL;
    }
    const trib_status_t st = make_vectors(out, vectors, err);
    for (int v = 0; v < vectors && st == TRIB_OK; v++)
        memcpy(out->vector[v], optimizer->vector[v], out->count * sizeof(float));
    return st;
}

void trib_train_optimizer_destroy(struct trib_train_optimizer *optimizer)
{
    for (int v = 0; v < TRIB_TRAIN_OPTIMIZER_VECTORS; v++)
        free(optimizer->vector[v]);
    *optimizer = (struct trib_train_optimizer){.kind = -1};
}

/* Flush a decayed momentum to 0, far below any value that moves a parameter. Otherwise
 * it becomes and stays subnormal, and arithmetic on subnormals is a hundred times
 * slower. */
static inline float ended(float momentum)
{
    return fabsf(momentum) < 1e-30f ? 0 : momentum; /* keeps NaN */
}

static void update_sgd(const struct trib_train_optimizer *o, float *restrict x,
                       const float *restrict g, size_t first, size_t count, float rate)
{
    const float m = (float)o->number[MOMENTUM], decay = (float)o->number[SGD_DECAY];
    float *restrict v = o->vector[0];

    if (!v) {
#pragma omp simd
        for (size_t i = first; i < first + count; i++)
            x[i] -= rate * (g[i] + decay * x[i]);
    } else if (o->number[NESTEROV] != 0) {
#pragma omp simd
        for (size_t i = first; i < first + count; i++) {
            const float d = g[i] + decay * x[i];
            v[i] = ended(m * v[i] + d);
            x[i] -= rate * (d + m * v[i]);
        }
    } else {
#pragma omp simd
        for (size_t i = first; i < first + count; i++) {
            v[i] = ended(m * v[i] + (g[i] + decay * x[i]));
            x[i] -= rate * v[i];
        }
    }
}

static void update_adam(const struct trib_train_optimizer *o, float *restrict x,
                        const float *restrict g, size_t first, size_t count, float rate)
{
    const double t = (double)o->steps + 1;
    const float b1 = (float)o->number[BETA1], b2 = (float)o->number[BETA2];
    const float eps = (float)o->number[EPS], decay = (float)o->number[ADAM_DECAY];
    const float unbias1 = (float)(1 / (1 - pow(o->number[BETA1], t)));
    const float unbias2 = (float)(1 / (1 - pow(o->number[BETA2], t)));
    float *restrict m = o->vector[0], *restrict v = o->vector[1];

#pragma omp simd
    for (size_t i = first; i < first + count; i++) {
        m[i] = ended(b1 * m[i] + (1 - b1) * g[i]);
        v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
        x[i] -= rate * (m[i] * unbias1 / (sqrtf(v[i] * unbias2) + eps) + decay * x[i]);
    }
}

void trib_train_optimizer_update(struct trib_train_optimizer *optimizer, float *params,
                                 const float *gradient, size_t first, size_t count,
                                 double rate)
{
    if (optimizer->update)
        optimizer->update(optimizer->arg, params, gradient, first, count, rate);
    else if (optimizer->kind == SGD)
        update_sgd(optimizer, params, gradient, first, count, (float)rate);
    else
        update_adam(optimizer, params, gradient, first, count, (float)rate);
}

void trib_train_optimizer_step(struct trib_train_optimizer *optimizer)
{
    optimizer->steps++;
}

double trib_train_optimizer_momentum(const struct trib_train_optimizer *optimizer)
{
    return optimizer->kind == SGD ? optimizer->number[MOMENTUM] : 0;
}

bool trib_train_optimizer_has_momentum(const struct trib_train_optimizer *optimizer)
{
    return (optimizer->kind == SGD && optimizer->number[MOMENTUM] > 0) ||
           (optimizer->kind == ADAM && optimizer->number[BETA1] > 0);
}

void trib_train_optimizer_rule(const struct trib_train_optimizer *optimizer,
                               double rate, char *text, size_t bytes)
{
    const double *n = optimizer->number;

    if (optimizer->kind == SGD)
        snprintf(text, bytes, "sgd:rate=%.9g,momentum=%.9g,nesterov=%g,decay=%.9g",
                 rate, n[MOMENTUM], n[NESTEROV], n[SGD_DECAY]);
    else
        snprintf(text, bytes,
                 "adam:rate=%.9g,beta1=%.9g,beta2=%.9g,eps=%.9g,decay=%.9g", rate,
                 n[BETA1], n[BETA2], n[EPS], n[ADAM_DECAY]);
}

const char *trib_train_optimizer_print(const struct trib_train_optimizer *optimizer,
                                       char *text, size_t bytes)
{
    const double *n = optimizer->number;

    if (optimizer->update)
        snprintf(text, bytes, "the caller's");
    else if (optimizer->kind == SGD)
        snprintf(text, bytes, "sgd, momentum %g%s, decay %g", n[MOMENTUM],
                 n[NESTEROV] != 0 ? " (Nesterov)" : "", n[SGD_DECAY]);
    else
        snprintf(text, bytes, "adam, beta1 %g, beta2 %g, eps %g, decay %g", n[BETA1],
                 n[BETA2], n[EPS], n[ADAM_DECAY]);
    return text;
}
