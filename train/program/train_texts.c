/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_texts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Minimum number of steps of a percentage, because a warm-up has several stages. */
static const double least_steps = 4;

/* Return the start of a percentage in text, and its end; NULL: none. */
static const char *percent(const char *text, const char **end_out)
{
    const char *end = strchr(text, '%'), *begin = end;

    while (begin && begin > text &&
           (isdigit((unsigned char)begin[-1]) || begin[-1] == '.'))
        begin--;
    *end_out = end;
    return begin && begin < end ? begin : NULL;
}

/* Copy text with each percentage of the steps replaced by a number of steps. */
static const char *expand(const char *text, size_t steps, char out[TRAIN_TEXT_BYTES])
{
    const char *begin, *end;
    size_t n = 0;

    if (!text)
        return NULL;
    while ((begin = percent(text, &end)) && n < TRAIN_TEXT_BYTES) {
        const double count = ceil(strtod(begin, NULL) / 100 * (double)steps);

        n += (size_t)snprintf(out + n, TRAIN_TEXT_BYTES - n, "%.*s%.0f",
                              (int)(begin - text), text,
                              count < least_steps ? least_steps : count);
        text = end + 1;
    }
    if (n < TRAIN_TEXT_BYTES)
        snprintf(out + n, TRAIN_TEXT_BYTES - n, "%s", text);
    return out;
}

static const char *make_rate(const char *text, size_t steps, char out[TRAIN_TEXT_BYTES])
{
    char own[TRAIN_TEXT_BYTES];

    if (strspn(text, "0123456789.eE+-") == strlen(text))
        snprintf(out, TRAIN_TEXT_BYTES, "linear:rate=%s,warmup=0.05,steps=%zu", text,
                 steps);
    else if (strstr(text, "steps="))
        expand(text, steps, out);
    else
        snprintf(out, TRAIN_TEXT_BYTES, "%.400s%csteps=%zu", expand(text, steps, own),
                 strchr(text, ':') ? ',' : ':', steps);
    return out;
}

/* Apply one item of --parts, such as "conv=adacomp:bin=50", to a part. Return 1 if the
 * part's name has the item's prefix, 0 if not, -1 if the item is invalid. */
static int item_codec(const char *item, size_t length, const char *name, size_t steps,
                      char out[128])
{
    const char *equals = memchr(item, '=', length);
    char own[TRAIN_TEXT_BYTES], codec[TRAIN_TEXT_BYTES];

    if (!equals || equals == item)
        return -1;
    if (strncmp(name, item, (size_t)(equals - item)) != 0)
        return 0;
    snprintf(own, sizeof(own), "%.*s", (int)(item + length - equals - 1), equals + 1);
    expand(own, steps, codec);
    return (size_t)snprintf(out, 128, "%s", codec) < 128 ? 1 : -1;
}

static trib_status_t wrong_item(const char *item, size_t length,
                                const struct task *task, struct trib_error *err)
{
    char names[256] = "";

    for (size_t i = 0; i < task->n_parts; i++)
        if (task->parts[i].dims != 1)
            trib_text_append(names, sizeof(names), " %s", task->parts[i].name);
    return trib_fail(
        err, TRIB_ERR_INVALID,
        "--parts \"%.*s\": expected layers, or NAME=CODEC; names begin with%s",
        (int)length, item, names);
}

/* Assign codecs to parts; an item that matches no part is an error. */
static trib_status_t give_codecs(const char *list, const struct task *task,
                                 size_t steps, struct train_texts *texts,
                                 struct trib_error *err)
{
    while (*list) {
        const size_t length = strcspn(list, ";");
        int taken = 0;

        for (size_t i = 0; i < task->n_parts; i++) {
            if (task->parts[i].dims == 1)
                continue;
            const int found = item_codec(list, length, task->parts[i].name, steps,
                                         texts->part_codecs[i]);
            if (found < 0)
                return wrong_item(list, length, task, err);
            if (found > 0)
                texts->parts[i].codec = texts->part_codecs[i];
            taken += found;
        }
        if (!taken)
            return wrong_item(list, length, task, err);
        list += length + (list[length] == ';');
    }
    return TRIB_OK;
}

static trib_status_t make_parts(const struct train_args *args, const struct task *task,
                                size_t steps, struct train_texts *texts,
                                trib_trainer_desc_t *desc, struct trib_error *err)
{
    if (!args->parts)
        return TRIB_OK;
    memcpy(texts->parts, task->parts, sizeof(task->parts));
    desc->parts = texts->parts;
    desc->n_parts = task->n_parts;
    return strcmp(args->parts, "layers") == 0
               ? TRIB_OK
               : give_codecs(args->parts, task, steps, texts, err);
}

trib_status_t train_texts_make(const struct train_args *args,
                               const struct task_row *row, const struct task *task,
                               size_t steps, struct train_texts *texts,
                               trib_trainer_desc_t *desc, struct trib_error *err)
{
    const char *feedback = args->feedback ? args->feedback : "";
    const char *optimizer = args->optimizer                 ? args->optimizer
                            : strstr(feedback, "momentum=") ? "sgd"
                                                            : row->optimizer;

    desc->strategy = expand(args->strategy, steps, texts->strategy);
    desc->codec = expand(args->codec, steps, texts->codec);
    desc->feedback = expand(args->feedback, steps, texts->feedback);
    desc->optimizer = expand(optimizer, steps, texts->optimizer);
    desc->rate = make_rate(args->rate ? args->rate : row->rate, steps, texts->rate);
    desc->feed = args->feed >= 0             ? (trib_feed_t)args->feed
                 : strstr(feedback, "clip=") ? TRIB_FEED_WHOLE
                                             : TRIB_FEED_BACKWARD;
    desc->seed = args->seed;
    return make_parts(args, task, steps, texts, desc, err);
}
