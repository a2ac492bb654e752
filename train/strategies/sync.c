/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synchronous SGD: average all gradients, then take the same step on every rank.
 *
 * With a feed other than WHOLE the sum starts with the step, and pieces are sent during
 * back-propagation. Each part is updated as soon as its mean is complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer/trainer.h"

struct sync {
    float *gradient; /* [count] summed in place */
    struct trib_train_sum *sum;
    double rate; /* of the current step */
};

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct sync, gradient), .peers = true},
};

static trib_status_t sync_create(struct trib_trainer *t)
{
    struct sync *s = t->strategy;

    return trib_train_make_sum(t, "gradient", 0, t->count, t->feed, &s->sum);
}

static trib_status_t sync_begin(struct trib_trainer *t, trib_step_t *step)
{
    struct sync *s = t->strategy;

    step->params = t->params;
    step->gradient = s->gradient;
    s->rate = step->rate;
    return t->feed == TRIB_FEED_WHOLE ? TRIB_OK
                                      : trib_train_start(t, s->sum, s->gradient);
}

static trib_status_t sync_ready(struct trib_trainer *t, size_t first, size_t count)
{
    const struct sync *s = t->strategy;

    return trib_train_sum_ready(s->sum, first, count);
}

static void move_range(void *arg, size_t first, size_t count)
{
    struct trib_trainer *t = arg;
    const struct sync *s = t->strategy;

    trib_train_update_range(t, t->params, s->gradient, first, count, s->rate);
}

static trib_status_t sync_end(struct trib_trainer *t, double loss)
{
    struct sync *s = t->strategy;
    trib_status_t st = TRIB_OK;

    (void)loss;
    if (t->feed == TRIB_FEED_WHOLE)
        st = trib_train_start(t, s->sum, s->gradient);
    if (st == TRIB_OK)
        st = trib_train_wait(t, s->sum, move_range, t);
    if (st == TRIB_OK)
        trib_train_optimizer_step(&t->optimizer);
    return st;
}

static trib_status_t sync_finish(struct trib_trainer *t, float *model_out)
{
    memmove(model_out, t->params, t->count * sizeof(float));
    return TRIB_OK;
}

static void sync_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    (void)t;
    snprintf(text, bytes, "the mean of all gradients at each step");
}

const struct trib_strategy_ops trib_strategy_sync = {
    .state_bytes = sizeof(struct sync),
    .vectors = vectors,
    .n_vectors = 1,
    .create = sync_create,
    .begin = sync_begin,
    .ready = sync_ready,
    .end = sync_end,
    .finish = sync_finish,
    .explain = sync_explain,
};
