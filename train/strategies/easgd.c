/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elastic averaging: each rank takes local steps. Every `period` steps the ranks and a
 * shared centre move towards each other: the centre by beta times the mean distance, a
 * rank by beta / ranks times its own distance.
 *
 * Zhang, Choromanska & LeCun, EASGD, NeurIPS 2015 (the synchronous form).
 */
#include <stdio.h>
#include <string.h>

#include "train/trainer/trainer.h"

enum { PERIOD, BETA, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [PERIOD] = {"period", 1, 1e6, true, "a number of steps from 1 to 1e6"},
    [BETA] = {"beta", 0, 1, false, "a number from 0 to 1"},
};
static const double defaults[KEYS] = {[PERIOD] = 16, [BETA] = 0.9};

struct elastic {
    float *x; /* [count] the rank's parameters */
    float *gradient; /* [count] */
    float *centre; /* [count] the same on all ranks */
    float *distance; /* [count] x - centre, then its mean */
    struct trib_train_sum *sum;
};

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct elastic, x), .params = true},
    {.at = offsetof(struct elastic, gradient)},
    {.at = offsetof(struct elastic, centre), .params = true, .model = true},
    {.at = offsetof(struct elastic, distance), .peers = true},
};

static trib_status_t elastic_create(struct trib_trainer *t)
{
    struct elastic *e = t->strategy;

    return trib_train_make_sum(t, "distance", 0, t->count, TRIB_FEED_WHOLE, &e->sum);
}

static trib_status_t draw_together(struct trib_trainer *t, struct elastic *e)
{
    const float beta = (float)trib_train_number(t, BETA),
                alpha = beta / (float)t->ranks;

    for (size_t i = 0; i < t->count; i++)
        e->distance[i] = e->x[i] - e->centre[i];
    trib_status_t st = trib_train_start(t, e->sum, e->distance);
    if (st == TRIB_OK)
        st = trib_train_wait(t, e->sum, NULL, NULL);
    for (size_t i = 0; i < t->count && st == TRIB_OK; i++) {
        e->x[i] -= alpha * (e->x[i] - e->centre[i]);
        e->centre[i] += beta * e->distance[i];
    }
    return st;
}

static trib_status_t elastic_end(struct trib_trainer *t, double loss)
{
    struct elastic *e = t->strategy;

    (void)loss;
    trib_train_update(t, e->x, e->gradient, trib_train_rate_at(&t->rate, t->number));
    return (t->number + 1) % (uint64_t)trib_train_number(t, PERIOD) == 0
               ? draw_together(t, e)
               : TRIB_OK;
}

/* Include steps since the last round in the model, as an additional round without a
 * codec would. Centre and x do not change, so this call does not influence the run. */
static trib_status_t elastic_finish(struct trib_trainer *t, float *model_out)
{
    const struct elastic *e = t->strategy;
    const float beta = (float)trib_train_number(t, BETA);
    int32_t since = t->number % (uint64_t)trib_train_number(t, PERIOD) > 0;
    trib_status_t st = trib_train_set_comm_error(
        t, trib_allreduce(t->comm, NULL, &since, 1, TRIB_I32, TRIB_MAX));

    if (st != TRIB_OK)
        return st;
    memcpy(model_out, e->centre, t->count * sizeof(float));
    if (!since)
        return TRIB_OK;
    for (size_t i = 0; i < t->count; i++)
        e->distance[i] = e->x[i] - e->centre[i];
    st = trib_train_mean(t, e->distance, e->distance);
    for (size_t i = 0; i < t->count && st == TRIB_OK; i++)
        model_out[i] += beta * e->distance[i];
    return st;
}

static int elastic_fields(struct trib_trainer *t,
                          struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    const struct elastic *e = t->strategy;
    const size_t bytes = t->count * sizeof(float);

    out[0] = (struct trib_train_field){"own", e->x, bytes, false};
    out[1] = (struct trib_train_field){"centre", e->centre, bytes, true};
    return 2;
}

/* A rank that missed a move of the centre continues from the centre. */
static trib_status_t elastic_moved(struct trib_trainer *t,
                                   const struct trib_train_move *m)
{
    const struct elastic *e = t->strategy;

    (void)m;
    if (trib_train_sum_fate(e->sum) == TRIB_TRAIN_BEHIND)
        memcpy(e->x, e->centre, t->count * sizeof(float));
    return TRIB_OK;
}

static void elastic_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "every %g steps ranks and center move towards each other by %g",
             trib_train_number(t, PERIOD), trib_train_number(t, BETA));
}

const struct trib_strategy_ops trib_strategy_easgd = {
    .apart = true,
    .sums_changes = true,
    .keys = keys,
    .defaults = defaults,
    .n_keys = KEYS,
    .state_bytes = sizeof(struct elastic),
    .vectors = vectors,
    .n_vectors = sizeof(vectors) / sizeof(*vectors),
    .create = elastic_create,
    .end = elastic_end,
    .finish = elastic_finish,
    .fields = elastic_fields,
    .moved = elastic_moved,
    .explain = elastic_explain,
};
