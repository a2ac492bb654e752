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
    int rank, ranks;
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
static int read_text(struct text_task *t, const char *path, char *error, size_t bytes)
{
    FILE *file = path ? fopen(path, "rb") : popen(bible, "r");

    if (!file) {
        snprintf(error, bytes, "%s: %s", path ? path : "bible", strerror(errno));
        return -1;
    }
    errno = ENOMEM;
    const int bad = read_all(t, file);
    const int why = errno;
    const int ended = path ? fclose(file) : pclose(file);

    if (bad || (!path && ended != 0)) {
        snprintf(error, bytes, "%s%s%s", bad && path ? path : "",
                 bad && path ? ": " : "",
                 bad ? strerror(why)
                     : "program bible not found: install bible-kjv, or name a plain "
                       "text with --data");
        return -1;
    }
    return 0;
}

static void text_destroy(struct task *task)
{
    struct text_task *t = (struct text_task *)task;

    lstm_destroy(&t->lstm);
    lstm_destroy(&t->test);
    free(t->text);
    free(t->at);
    free(t->window);
    free(t);
}

static int make(struct text_task *t, const struct task_desc *desc, char *error,
                size_t bytes)
{
    const size_t symbols = number_symbols(t->text, t->count);

    t->task.batch = desc->batch ? desc->batch : 16;
    t->trained = t->count / 100 * (100 - TEST_PERCENT);
    t->from = t->trained / (size_t)desc->ranks * (size_t)desc->rank;
    t->to = t->from + t->trained / (size_t)desc->ranks;
    if (symbols > SYMBOLS_MAX || (t->to - t->from) / t->task.batch < 2 * WINDOW) {
        snprintf(error, bytes, "a text of %zu characters, %zu of them different, is %s",
                 t->count, symbols,
                 symbols > SYMBOLS_MAX ? "not plain text" : "too short");
        return -1;
    }
    t->at = malloc(t->task.batch * sizeof(*t->at));
    t->window = malloc(t->task.batch * (WINDOW + 1));
    if (!t->at || !t->window ||
        lstm_create(&t->lstm, symbols, HIDDEN, t->task.batch, WINDOW) != 0 ||
        lstm_create(&t->test, symbols, HIDDEN, t->task.batch, WINDOW) != 0) {
        snprintf(error, bytes, "out of memory");
        return -1;
    }
    for (size_t s = 0; s < t->task.batch; s++)
        t->at[s] = t->from + (t->to - t->from) / t->task.batch * s;
    return 0;
}

static int text_create(const struct task_desc *desc, const struct task_row *row,
                       struct task **task_out, char *error, size_t bytes)
{
    struct text_task *t = calloc(1, sizeof(*t));

    *task_out = NULL;
    if (!t) {
        snprintf(error, bytes, "out of memory");
        return -1;
    }
    t->rank = desc->rank;
    t->ranks = desc->ranks;
    if (read_text(t, desc->data, error, bytes) != 0 ||
        make(t, desc, error, bytes) != 0) {
        text_destroy(&t->task);
        return -1;
    }
    t->task.ops = row->ops;
    t->task.n_params = t->lstm.n_params;
    t->task.steps_per_epoch = (t->to - t->from) / (t->task.batch * WINDOW);
    t->task.parts[0] =
        (trib_part_t){sizeof(trib_part_t), "input", t->lstm.wh, 2, NULL, NULL};
    t->task.parts[1] = (trib_part_t){
        sizeof(trib_part_t), "recurrent", t->lstm.b - t->lstm.wh, 2, NULL, NULL};
    t->task.parts[2] = (trib_part_t){
        sizeof(trib_part_t), "gate biases", t->lstm.wo - t->lstm.b, 1, NULL, NULL};
    t->task.parts[3] = (trib_part_t){
        sizeof(trib_part_t), "output", t->lstm.bo - t->lstm.wo, 2, NULL, NULL};
    t->task.parts[4] = (trib_part_t){sizeof(trib_part_t),
                                     "output biases",
                                     t->lstm.n_params - t->lstm.bo,
                                     1,
                                     NULL,
                                     NULL};
    t->task.n_parts = 5;
    *task_out = &t->task;
    return 0;
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
    const size_t from = t->trained + all / (size_t)t->ranks * (size_t)t->rank;
    const size_t stream = all / (size_t)t->ranks / task->batch;

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

const struct task_ops task_text = {text_create,   text_destroy,  text_seed,
                                   text_gradient, text_evaluate, NULL,
                                   NULL,          NULL};
