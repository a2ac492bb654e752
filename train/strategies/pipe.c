/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipe-SGD: the sum of a gradient overlaps with the computation of the next one, so
 * each step applies the gradient of the previous step.
 *
 * With `predict` the gradient is computed at x - rate momentum v, where momentum alone
 * would move the parameters. That compensates for the delay.
 *
 * With width=auto, or with several codecs, it measures its first steps and chooses.
 *
 * Li et al., Pipe-SGD, NeurIPS 2018.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer/trainer.h"
#include "train/trainer/tuning.h"

enum { WIDTH, PREDICT, KEYS };
enum { BLOCK = 4096 };

static const char *const widths[] = {"auto", "1", "2", NULL};

static const struct trib_keyed_key keys[KEYS] = {
    [WIDTH] = {.name = "width",
               .must = "auto, 1 or 2 (gradients in flight)",
               .words = widths},
    [PREDICT] = {"predict", 0, 1, true, "0 or 1"},
};
static const double defaults[KEYS] = {[WIDTH] = 2, [PREDICT] = 1};

struct pipe {
    float *gradient[2]; /* [count] one is being computed, the other summed */
    float *predicted; /* [count] or NULL */
    struct trib_train_sum *sum;
    /* while a state is loaded: the sum so far, and the choice to load; else NULL */
    struct trib_train_sum *before;
    struct trib_train_choice loaded;
    int width;
    struct trib_train_tuning *tuning; /* NULL: nothing to choose */
    int now; /* index of the gradient being computed */
    double rate[2]; /* learning rate of each */
};

static bool predicts(const struct trib_trainer *t)
{
    return trib_train_number(t, PREDICT) != 0 &&
           trib_train_optimizer_momentum(&t->optimizer) > 0;
}

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct pipe, gradient[0]), .peers = true},
    {.at = offsetof(struct pipe, gradient[1]), .peers = true},
    {.at = offsetof(struct pipe, predicted), .when = predicts},
};

static trib_status_t pipe_create(struct trib_trainer *t)
{
    struct pipe *p = t->strategy;

    p->width = (int)trib_train_number(t, WIDTH);
    if (p->width != 0 && !t->codecs)
        return trib_train_make_sum(t, "gradient", 0, t->count, TRIB_FEED_WHOLE,
                                   &p->sum);
    trib_train_own_sum(t, &p->sum);
    const trib_status_t st = trib_train_tuning_create(
        t, t->codecs ? t->codecs : t->parts.codec, p->width, &p->tuning);
    return st == TRIB_OK ? trib_train_tuning_sum(t, p->tuning, -1, &p->sum) : st;
}

static void pipe_destroy(struct trib_trainer *t)
{
    const struct pipe *p = t->strategy;

    trib_train_tuning_free(p->tuning);
}

/* Predict elements [first, first + count): where momentum alone moves them, at the rate
 * of the pending gradient. */
static void predict(const struct trib_trainer *t, float *restrict to, size_t first,
                    size_t count, double rate)
{
    const float *restrict x = t->params, *restrict v = t->optimizer.vector[0];
    const float ahead = (float)(rate * trib_train_optimizer_momentum(&t->optimizer));

#pragma omp simd
    for (size_t i = first; i < first + count; i++)
        to[i] = x[i] - ahead * v[i];
}

/*
 * Apply a gradient and predict, block by block, while a block is in the cache.
 *
 * gradient NULL: only predict
 * ahead    rate of the pending gradient; negative: do not predict
 */
static void apply(struct trib_trainer *t, const float *gradient, double rate,
                  double ahead)
{
    const struct pipe *p = t->strategy;

    for (size_t first = 0; first < t->count; first += BLOCK) {
        const size_t left = t->count - first, count = left < BLOCK ? left : BLOCK;

        if (gradient)
            trib_train_update_range(t, t->params, gradient, first, count, rate);
        if (p->predicted && ahead >= 0)
            predict(t, p->predicted, first, count, ahead);
    }
    if (gradient)
        trib_train_optimizer_step(&t->optimizer);
}

/* Return true during the measured steps. */
static bool times(const struct pipe *p)
{
    return p->tuning && !p->tuning->choice.made;
}

static trib_status_t pipe_begin(struct trib_trainer *t, trib_step_t *step)
{
    struct pipe *p = t->strategy;
    const bool ahead = p->predicted && trib_train_sum_runs(p->sum);

    step->params = ahead ? p->predicted : t->params;
    step->gradient = p->gradient[p->now];
    p->rate[p->now] = step->rate;
    if (times(p))
        trib_train_tuning_begin(t, p->tuning);
    return TRIB_OK;
}

/* Wait for the pending gradient and apply it. */
static trib_status_t finish(struct trib_trainer *t)
{
    struct pipe *p = t->strategy;

    if (!trib_train_sum_runs(p->sum))
        return TRIB_OK;
    const trib_status_t st = trib_train_wait(t, p->sum, NULL, NULL);
    if (st == TRIB_OK)
        apply(t, p->gradient[!p->now], p->rate[!p->now], -1);
    return st;
}

/* Switch to the chosen width and codec. */
static trib_status_t take_choice(struct trib_trainer *t,
                                 const struct trib_train_choice *choice)
{
    struct pipe *p = t->strategy;
    struct trib_train_sum *sum = NULL;
    const trib_status_t st =
        trib_train_tuning_sum(t, p->tuning, (int)choice->codec, &sum);

    if (st != TRIB_OK)
        return st;
    trib_train_sum_count_from(sum, trib_train_sum_ended(p->sum));
    trib_train_sum_free(p->sum);
    p->sum = sum;
    p->width = (int)choice->width;
    p->tuning->choice = *choice;
    return TRIB_OK;
}

/* End a measured step: dense, and nothing pending afterwards. */
static trib_status_t timed_end(struct trib_trainer *t)
{
    struct pipe *p = t->strategy;
    float *gradient = p->gradient[p->now];

    trib_train_tuning_computed(t, p->tuning, gradient);
    trib_status_t st = trib_train_start(t, p->sum, gradient);
    if (st == TRIB_OK)
        st = trib_train_wait(t, p->sum, NULL, NULL);
    if (st != TRIB_OK)
        return st;
    trib_train_tuning_summed(t, p->tuning);
    apply(t, gradient, p->rate[p->now], -1);
    trib_train_tuning_updated(p->tuning);
    if (!trib_train_tuning_due(p->tuning))
        return TRIB_OK;
    st = trib_train_tuning_choose(t, p->tuning, gradient);
    return st == TRIB_OK ? take_choice(t, &p->tuning->choice) : st;
}

/* Start the sum of this gradient before the previous one is applied, so that the update
 * overlaps with communication. */
static trib_status_t pipe_end(struct trib_trainer *t, double loss)
{
    struct pipe *p = t->strategy;
    const bool summed = trib_train_sum_runs(p->sum);
    const int now = p->now;

    (void)loss;
    if (times(p))
        return timed_end(t);
    trib_status_t st = summed ? trib_train_wait(t, p->sum, NULL, NULL) : TRIB_OK;

    p->now = !now;
    if (st != TRIB_OK)
        return st;
    st = trib_train_start(t, p->sum, p->gradient[now]);
    if (p->width < 2)
        return st == TRIB_OK ? finish(t) : st;
    /* Also if the start failed: the parameters must include the completed sum. */
    apply(t, summed ? p->gradient[!now] : NULL, p->rate[!now], p->rate[now]);
    return st;
}

static trib_status_t pipe_finish(struct trib_trainer *t, float *model_out)
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

/* Only the choice is kept in addition to the parameters. */
static int pipe_fields(struct trib_trainer *t,
                       struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    struct pipe *p = t->strategy;

    if (!p->tuning)
        return 0;
    out[0] = (struct trib_train_field){"choice", &p->tuning->choice,
                                       sizeof(p->tuning->choice), true};
    return 1;
}

/* A state saved after the choice restores it. A state saved before the choice restarts
 * the measurement. */
static trib_status_t pipe_adopt(struct trib_trainer *t, const char *name,
                                const void *data)
{
    struct pipe *p = t->strategy;
    struct trib_train_choice choice;
    struct trib_train_sum *sum = NULL;

    if (!p->tuning || strcmp(name, "choice") != 0)
        return TRIB_OK;
    memcpy(&choice, data, sizeof(choice));
    if (choice.made && (choice.codec >= (uint32_t)p->tuning->n_codecs ||
                        choice.width < 1 || choice.width > 2))
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to a choice among other codecs");
    const trib_status_t st =
        trib_train_tuning_sum(t, p->tuning, choice.made ? (int)choice.codec : -1, &sum);
    if (st != TRIB_OK)
        return st;
    p->before = p->sum;
    p->sum = sum;
    p->loaded = choice;
    return TRIB_OK;
}

static void pipe_adopted(struct trib_trainer *t, bool loaded)
{
    struct pipe *p = t->strategy;

    if (!p->before)
        return;
    trib_train_sum_free(loaded ? p->before : p->sum);
    if (!loaded) {
        p->sum = p->before;
    } else {
        p->tuning->timed = 0;
        if (p->loaded.made) {
            p->tuning->n_rows = 0;
            p->width = (int)p->loaded.width;
        }
    }
    p->before = NULL;
}

static trib_status_t pipe_estimate(struct trib_trainer *t, size_t row,
                                   trib_estimate_t *out, int *chosen_out)
{
    const struct trib_train_tuning *tuning = ((struct pipe *)t->strategy)->tuning;

    if (!tuning || (tuning->choice.made && tuning->n_rows == 0))
        return trib_fail(
            &t->err, TRIB_ERR_UNSUPPORTED,
            tuning ? "the choice came from a checkpoint or another communicator, "
                     "so nothing was measured here"
                   : "width and codec are given, so nothing is estimated: use "
                     "pipe:width=auto");
    if (!tuning->choice.made)
        return trib_fail(&t->err, TRIB_ERR_BUSY, "step %d of %d is being measured",
                         tuning->timed + 1, TRIB_TRAIN_TIMED);
    if (row >= (size_t)tuning->n_rows)
        return trib_fail(&t->err, TRIB_ERR_INVALID, "row %zu of %d", row,
                         tuning->n_rows);
    *out = tuning->row[row];
    *chosen_out = (int)row == tuning->chosen;
    return TRIB_OK;
}

/* Set *anew_out on all ranks if a move made any rank's sum start from scratch, with its
 * first codec. */
static trib_status_t begins_anew(struct trib_trainer *t, bool *anew_out)
{
    const struct pipe *p = t->strategy;
    int32_t anew = trib_train_sum_fate(p->sum) == TRIB_TRAIN_ANEW;
    const trib_status_t st =
        trib_allreduce(t->comm, NULL, &anew, 1, TRIB_I32, TRIB_MAX);

    *anew_out = anew != 0;
    return trib_train_set_comm_error(t, st);
}

/* The pending gradient is computed again. A choice is kept; an unfinished measurement
 * restarts. */
static trib_status_t pipe_moved(struct trib_trainer *t, const struct trib_train_move *m)
{
    struct pipe *p = t->strategy;
    trib_status_t st = TRIB_OK;

    (void)m;
    t->number = trib_train_sum_ended(p->sum);
    if (!p->tuning)
        return TRIB_OK;
    p->tuning->timed = 0;
    if (p->tuning->choice.made) {
        bool anew = false;

        p->width = (int)p->tuning->choice.width;
        st = begins_anew(t, &anew);
        if (st == TRIB_OK && anew)
            st = take_choice(t, &p->tuning->choice);
    }
    return st;
}

static void pipe_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    const struct pipe *p = t->strategy;
    size_t at = (size_t)snprintf(text, bytes, "%s, gradients computed at %s parameters",
                                 p->width < 2 ? "each step waits for its sum"
                                              : "gradients are applied one step late",
                                 p->predicted && p->width == 2 ? "the predicted"
                                                               : "the newest");

    if (!p->tuning || at + 3 >= bytes)
        return;
    at += (size_t)snprintf(text + at, bytes - at, "\n");
    trib_train_tuning_print(p->tuning, text + at, bytes - at);
}

const struct trib_strategy_ops trib_strategy_pipe = {
    .keys = keys,
    .defaults = defaults,
    .n_keys = KEYS,
    .state_bytes = sizeof(struct pipe),
    .vectors = vectors,
    .n_vectors = sizeof(vectors) / sizeof(*vectors),
    .create = pipe_create,
    .destroy = pipe_destroy,
    .begin = pipe_begin,
    .end = pipe_end,
    .finish = pipe_finish,
    .busy = pipe_busy,
    .moved = pipe_moved,
    .fields = pipe_fields,
    .adopt = pipe_adopt,
    .adopted = pipe_adopted,
    .estimate = pipe_estimate,
    .picks = true,
    .explain = pipe_explain,
};
