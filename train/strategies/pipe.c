/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipe-SGD: the sum of a gradient goes on while the next one is computed, so that each
 * step applies the gradient of the step before.
 *
 * With `predict` the gradient is taken where the parameters will be if only momentum
 * moves them: at x - rate momentum v. That makes up for the delay.
 *
 * Li et al., Pipe-SGD, NeurIPS 2018.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer.h"

enum { WIDTH, PREDICT, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [WIDTH] = {"width", 1, 2, true, "1 or 2, the gradients that are under way"},
    [PREDICT] = {"predict", 0, 1, true, "0 or 1"},
};
static const double defaults[KEYS] = {[WIDTH] = 2, [PREDICT] = 1};

struct pipe {
    float *gradient[2]; /* [count] one is computed, and one is summed */
    float *predicted; /* [count] or NULL */
    struct trib_train_sum *sum;
    int now; /* gradient that is computed */
    double rate[2]; /* at which each will be applied */
};

static trib_status_t pipe_create(struct trib_trainer *t)
{
    struct pipe *p = t->strategy = calloc(1, sizeof(*p));
    trib_status_t st = TRIB_OK;

    if (!p)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a strategy");
    for (int i = 0; i < 2 && st == TRIB_OK; i++)
        st = trib_train_alloc(t, t->count, &p->gradient[i]);
    if (st == TRIB_OK && trib_train_number(t, PREDICT) != 0 &&
        trib_train_optimizer_momentum(&t->optimizer) > 0)
        st = trib_train_calloc(t, t->count, &p->predicted);
    return st != TRIB_OK ? st
                         : trib_train_make_sum(t, "gradient", 0, t->count,
                                               TRIB_FEED_WHOLE, &p->sum);
}

static void pipe_destroy(struct trib_trainer *t)
{
    struct pipe *p = t->strategy;

    trib_train_sum_free(p->sum);
    for (int i = 0; i < 2; i++)
        trib_free(t->comm, p->gradient[i]);
    free(p->predicted);
    free(p);
}

static void predict(const struct trib_trainer *t, float *restrict to, double rate)
{
    const float *restrict x = t->params, *restrict v = t->optimizer.vector[0];
    const float ahead = (float)(rate * trib_train_optimizer_momentum(&t->optimizer));

    for (size_t i = 0; i < t->count; i++)
        to[i] = x[i] - ahead * v[i];
}

static trib_status_t pipe_begin(struct trib_trainer *t, trib_step_t *step)
{
    struct pipe *p = t->strategy;
    const bool ahead = p->predicted && trib_train_sum_runs(p->sum);

    if (ahead)
        predict(t, p->predicted, p->rate[!p->now]);
    step->params = ahead ? p->predicted : t->params;
    step->gradient = p->gradient[p->now];
    p->rate[p->now] = step->rate;
    return TRIB_OK;
}

/* Waits for the gradient of the step before, and applies it. */
static trib_status_t finish(struct trib_trainer *t)
{
    struct pipe *p = t->strategy;

    if (!trib_train_sum_runs(p->sum))
        return TRIB_OK;
    const trib_status_t st = trib_train_wait(t, p->sum, NULL, NULL);
    if (st == TRIB_OK)
        trib_train_update(t, t->params, p->gradient[!p->now], p->rate[!p->now]);
    return st;
}

static trib_status_t pipe_end(struct trib_trainer *t, double loss)
{
    struct pipe *p = t->strategy;
    trib_status_t st = finish(t);

    (void)loss;
    if (st == TRIB_OK)
        st = trib_train_start(t, p->sum, p->gradient[p->now]);
    p->now = !p->now;
    return st == TRIB_OK && trib_train_number(t, WIDTH) < 2 ? finish(t) : st;
}

static trib_status_t pipe_settle(struct trib_trainer *t, float *model_out)
{
    const trib_status_t st = finish(t);

    if (st == TRIB_OK)
        memmove(model_out, t->params, t->count * sizeof(float));
    return st;
}

static bool pipe_busy(const struct trib_trainer *t)
{
    const struct pipe *p = t->strategy;

    return trib_train_sum_runs(p->sum);
}

static int pipe_sums(struct trib_trainer *t,
                     struct trib_train_sum **out[TRIB_TRAIN_SUMS])
{
    struct pipe *p = t->strategy;

    out[0] = &p->sum;
    return 1;
}

/* The gradient that was under way is computed again. */
static trib_status_t pipe_moved(struct trib_trainer *t, const struct trib_train_move *m)
{
    const struct pipe *p = t->strategy;

    (void)m;
    t->number = trib_train_sum_ended(p->sum);
    return TRIB_OK;
}

static void pipe_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    const struct pipe *p = t->strategy;

    snprintf(text, bytes, "%s, gradients taken at %s parameters",
             trib_train_number(t, WIDTH) < 2 ? "each sum is waited for"
                                             : "gradients are applied one step late",
             p->predicted ? "the predicted" : "the newest");
}

const struct trib_strategy_ops trib_strategy_pipe = {
    .keys = keys,
    .defaults = defaults,
    .n_keys = KEYS,
    .create = pipe_create,
    .destroy = pipe_destroy,
    .begin = pipe_begin,
    .end = pipe_end,
    .settle = pipe_settle,
    .busy = pipe_busy,
    .sums = pipe_sums,
    .moved = pipe_moved,
    .explain = pipe_explain,
};
