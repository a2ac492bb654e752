/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predict the next character of the King James Bible (public domain, from Debian's
 * bible-kjv and bible-kjv-text) or of any other plain text. The last 5 % are test data;
 * the rest is divided among the ranks.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/tasks/lstm.h"
#include "train/tasks/rows.h"

static const char bible[] = "bible -l100000 gen1:1-rev22:21 2>/dev/null </dev/null";
static const float norm_max = 2; /* gradients with a larger norm are scaled down */

enum { HIDDEN = 128, WINDOW = 64, SYMBOLS_MAX = 128, TEST_PERCENT = 5 };

struct text_task {
    struct task task;
    struct lstm lstm, test; /* the test has a separate state */
    uint8_t *text; /* [count] symbols of the whole text */
    size_t count, trained; /* symbols before the test data */
    size_t *at; /* [batch] position of each stream */
    size_t from, to; /* this rank's piece of the text */
    uint8_t *window; /* [batch][WINDOW + 1] */
};

/* Replace each byte by its index among the byte values that occur; return the number of
 * distinct values. */
static size_t number_symbols(uint8_t *text, size_t count)
{
    int number[256];
    size_t n = 0;

    memset(number, -1, sizeof(number));
    for (size_t i = 0; i < count; i++)
        number[text[i]] = 0;
    for (int b = 0; b < 256; b++)
        if (number[b] == 0)
            number[b] = (int)n++;
    for (size_t i = 0; i < count; i++)
        text[i] = (uint8_t)number[text[i]];
    return n;
}

static int read_all(struct text_task *t, FILE *file)
{
    size_t room = 1 << 20;

    for (;;) {
        uint8_t *more = realloc(t->text, room);

        if (!more)
            return -1;
        t->text = more;
        t->count += fread(t->text + t->count, 1, room - t->count, file);
        if (t->count < room)
            return ferror(file) ? -1 : 0;
        room *= 2;
    }
}

/* path     NULL: the output of the program bible */
static trib_status_t read_text(struct text_task *t, const char *path,
                               struct trib_error *err)
{
    FILE *file = path ? fopen(path, "rb") : popen(bible, "r");

    if (!file)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s: %s", path ? path : "bible",
                         strerror(errno));
    errno = ENOMEM;
    const int bad = read_all(t, file);
    const int why = errno;
    const int ended = path ? fclose(file) : pclose(file);

    if (bad)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s%s%s", path ? path : "",
                         path ? ": " : "", strerror(why));
    if (!path && ended != 0)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "program bible not found: install bible-kjv, or name a plain "
                         "text with --data");
    return TRIB_OK;
}

static void text_destroy(struct task *task)
{
    struct text_task *t = (struct text_task *)task;

    lstm_destroy(&t->lstm);
    lstm_destroy(&t->test);
    free(t->text);
    free(t->at);
    free(t->window);
}

static trib_status_t make(struct text_task *t, const struct task_desc *desc,
                          struct trib_error *err)
{
    const size_t symbols = number_symbols(t->text, t->count);

    t->task.batch = desc->batch ? desc->batch : 16;
    t->trained = t->count / 100 * (100 - TEST_PERCENT);
    t->from = t->trained / (size_t)desc->ranks * (size_t)desc->rank;
    t->to = t->from + t->trained / (size_t)desc->ranks;
    if (symbols > SYMBOLS_MAX || (t->to - t->from) / t->task.batch < 2 * WINDOW)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a text of %zu characters, %zu of them different, is %s",
                         t->count, symbols,
                         symbols > SYMBOLS_MAX ? "not plain text" : "too short");
    t->at = malloc(t->task.batch * sizeof(*t->at));
    t->window = malloc(t->task.batch * (WINDOW + 1));
    if (!t->at || !t->window ||
        lstm_create(&t->lstm, symbols, HIDDEN, t->task.batch, WINDOW) != 0 ||
        lstm_create(&t->test, symbols, HIDDEN, t->task.batch, WINDOW) != 0)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (size_t s = 0; s < t->task.batch; s++)
        t->at[s] = t->from + (t->to - t->from) / t->task.batch * s;
    return TRIB_OK;
}

static trib_status_t text_create(struct task *task, const struct task_desc *desc,
                                 struct trib_error *err)
{
    struct text_task *t = (struct text_task *)task;
    const struct lstm *l = &t->lstm;

    trib_status_t st = read_text(t, desc->data, err);
    if (st == TRIB_OK)
        st = make(t, desc, err);
    if (st != TRIB_OK)
        return st;
    task->n_params = l->n_params;
    task->steps_per_epoch = (t->to - t->from) / (task->batch * WINDOW);
    task_add_part(task, "input", l->wh, 2);
    task_add_part(task, "recurrent", l->b - l->wh, 2);
    task_add_part(task, "gate biases", l->wo - l->b, 1);
    task_add_part(task, "output", l->bo - l->wo, 2);
    task_add_part(task, "output biases", l->n_params - l->bo, 1);
    return TRIB_OK;
}

static void text_seed(struct task *task, float *params, uint64_t seed)
{
    lstm_seed(&((struct text_task *)task)->lstm, params, seed);
}

/* Clip gradients: those of recurrent networks are rarely, but then hugely, too large
 * (Pascanu et al., ICML 2013). */
static void clip(float *gradient, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)gradient[i] * (double)gradient[i];
    if (sum <= (double)(norm_max * norm_max))
        return;
    const float scale = norm_max / (float)sqrt(sum);

    for (size_t i = 0; i < n; i++)
        gradient[i] *= scale;
}

static double text_gradient(struct task *task, const float *params, float *gradient,
                            net_ready_fn ready, void *arg)
{
    struct text_task *t = (struct text_task *)task;

    for (size_t s = 0; s < task->batch; s++) {
        if (t->at[s] + WINDOW + 1 > t->to)
            t->at[s] = t->from;
        memcpy(t->window + s * (WINDOW + 1), t->text + t->at[s], WINDOW + 1);
        t->at[s] += WINDOW;
    }
    const double loss = lstm_gradient(&t->lstm, params, t->window, gradient);

    clip(gradient, task->n_params);
    return ready && ready(arg, 0, task->n_params) != 0 ? -1 : loss;
}

/* Sum the losses, in nats, over this rank's part of the test data. exp of the mean is
 * the perplexity per character. */
static void text_evaluate(struct task *task, const float *params, double *sum_out,
                          double *count_out)
{
    struct text_task *t = (struct text_task *)task;
    const size_t all = t->count - t->trained;
    const size_t share = all / (size_t)task->ranks;
    const size_t from = t->trained + share * (size_t)task->rank;
    const size_t stream = share / task->batch;

    *sum_out = *count_out = 0;
    lstm_forget(&t->test);
    for (size_t k = 0; (k + 1) * WINDOW < stream; k++) {
        for (size_t s = 0; s < task->batch; s++)
            memcpy(t->window + s * (WINDOW + 1),
                   t->text + from + s * stream + k * WINDOW, WINDOW + 1);
        *sum_out += lstm_gradient(&t->test, params, t->window, NULL);
        *count_out += 1;
    }
}

const struct task_ops task_text = {.bytes = sizeof(struct text_task),
                                   .create = text_create,
                                   .destroy = text_destroy,
                                   .seed = text_seed,
                                   .gradient = text_gradient,
                                   .evaluate = text_evaluate};
