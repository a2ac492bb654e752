/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptions of trainers: texts are parsed, and invalid combinations are refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sized.h"
#include "train/trainer/run_share.h"
#include "train/trainer/trainer.h"

static const struct trib_sized desc_kind = {
    "trib_trainer_desc_t", "TRIB_TRAINER_DESC_INIT", sizeof(trib_trainer_desc_t),
    TRIB_SIZED_UP_TO(trib_trainer_desc_t, seed)};

/* Return the number of sums in the run; 0: the number of steps is unknown. */
static uint64_t rounds_of(const struct trib_trainer *t)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    uint64_t period = 1;

    for (int i = 0; i < ops->n_keys; i++)
        if (strcmp(ops->keys[i].name, "period") == 0 && t->choice.number[i] >= 1)
            period = (uint64_t)t->choice.number[i];
    return t->rate.steps / period;
}

/* Strategies that choose accept several codecs, separated by |. The parts get the
 * first. */
static trib_status_t read_codecs(struct trib_trainer *t,
                                 const trib_trainer_desc_t *desc)
{
    const char *codec = t->choice.codec[0] ? t->choice.codec : desc->codec;
    const char *more = codec ? strchr(codec, '|') : NULL;

    if (!more)
        return trib_train_parts_create(desc, codec, rounds_of(t), &t->err, &t->parts);
    if (!t->choice.row->ops->picks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "codecs \"%s\": strategy %s does not choose among codecs: "
                         "name a single one, or use pipe",
                         codec, t->choice.row->name);
    char *first = strndup(codec, (size_t)(more - codec));
    trib_status_t st =
        first ? trib_train_run_share(codec, rounds_of(t), &t->err, &t->codecs)
              : trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a text");
    if (st == TRIB_OK)
        st = trib_train_parts_create(desc, first, rounds_of(t), &t->err, &t->parts);
    free(first);
    return st;
}

trib_status_t trib_train_refuse_parts(struct trib_trainer *t)
{
    const struct trib_train_parts *parts = &t->parts;

    if (parts->feedback)
        return trib_fail(&t->err, TRIB_ERR_UNSUPPORTED,
                         "strategy %s does not use feedback \"%s\": remove it",
                         t->choice.row->name, parts->feedback);
    for (size_t i = 0; i < parts->n; i++)
        if (parts->part[i].codec && strcmp(parts->part[i].codec, "none") != 0)
            return trib_fail(&t->err, TRIB_ERR_UNSUPPORTED,
                             "strategy %s sends the vector as a whole: part %s cannot "
                             "have its own codec \"%s\"",
                             t->choice.row->name, parts->part[i].name,
                             parts->part[i].codec);
    return TRIB_OK;
}

trib_status_t trib_train_refuse_codecs(struct trib_trainer *t, const char *sends)
{
    if (!t->parts.codec)
        return trib_train_refuse_parts(t);
    return trib_fail(&t->err, TRIB_ERR_UNSUPPORTED,
                     "strategy %s %s uncompressed, not by codec \"%s\"",
                     t->choice.row->name, sends, t->parts.codec);
}

static bool has_momentum(const char *feedback)
{
    const char *key = feedback ? strstr(feedback, "momentum=") : NULL;
    char value[32];
    double momentum;

    if (!key)
        return false;
    key += strlen("momentum=");
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(key, ","), key);
    /* momentum=1 of ef21 means none */
    return trib_number_take(value, &momentum) && momentum < 1;
}

/* Momentum in the feedback is part of the sum, so the optimizer that applies the sum
 * must have none: the strategy's outer optimizer, or the trainer's. */
static trib_status_t refuse_two_momenta(struct trib_trainer *t, const char *feedback)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    char optimizer[128];

    for (int k = 0; has_momentum(feedback) && k < ops->n_keys; k++)
        if (strcmp(ops->keys[k].name, "momentum") == 0 && t->choice.number[k] > 0)
            return trib_fail(
                &t->err, TRIB_ERR_INVALID,
                "momentum twice: feedback \"%s\", and momentum=%g of strategy %s: set "
                "momentum=0 in one of them, or remove it",
                feedback, t->choice.number[k], t->choice.row->name);
    if (!has_momentum(feedback) || ops->sums_changes ||
        !trib_train_optimizer_has_momentum(&t->optimizer))
        return TRIB_OK;
    trib_train_optimizer_print(&t->optimizer, optimizer, sizeof(optimizer));
    return trib_fail(
        &t->err, TRIB_ERR_INVALID,
        "momentum twice: feedback \"%s\", and the optimizer (%s): remove one of them",
        feedback, optimizer);
}

static trib_status_t check_momenta(struct trib_trainer *t)
{
    trib_status_t st = refuse_two_momenta(t, t->parts.feedback);

    for (size_t i = 0; i < t->parts.n && st == TRIB_OK; i++)
        st = refuse_two_momenta(t, t->parts.part[i].feedback);
    return st;
}

trib_status_t trib_train_check_configured(struct trib_trainer *t)
{
    char text[4096];
    char *feedback = t->n_sums > 0 && trib_train_sum_explain(*t->sums[0], text,
                                                             sizeof(text)) == TRIB_OK
                         ? strstr(text, "\nfeedback ")
                         : NULL;

    if (!feedback)
        return TRIB_OK;
    feedback += strlen("\nfeedback ");
    feedback += strspn(feedback, " ");
    feedback[strcspn(feedback, "\n")] = '\0';
    return refuse_two_momenta(t, feedback);
}

/* Read the fields that need no communication. */
static trib_status_t read_texts(struct trib_trainer *t, const trib_trainer_desc_t *desc)
{
    trib_status_t st = trib_strategy_parse(desc->strategy, &t->err, &t->choice);

    if (st == TRIB_OK && desc->codec && t->choice.codec[0])
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "two codecs: \"%s\" of the strategy \"%s\", and codec \"%s\"",
                         t->choice.codec, desc->strategy, desc->codec);
    if (st == TRIB_OK && desc->optimizer && desc->update)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "optimizer \"%s\" and a callback (update): set only one of "
                         "them",
                         desc->optimizer);
    if (st == TRIB_OK)
        st = trib_train_rate_parse(desc->rate, t->ranks, &t->err, &t->rate);
    if (st == TRIB_OK)
        st =
            trib_train_optimizer_create(desc->optimizer, desc->update, desc->update_arg,
                                        desc->count, &t->err, &t->optimizer);
    if (st == TRIB_OK)
        st = read_codecs(t, desc);
    return st == TRIB_OK ? check_momenta(t) : st;
}

static trib_status_t check_fields(struct trib_trainer *t, const trib_trainer_desc_t *d)
{
    if (!d->params || d->count == 0)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "a trainer needs params and a count");
    if ((unsigned)d->feed > TRIB_FEED_BACKWARD)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "trib_trainer_desc_t.feed is %d, it must be a trib_feed_t",
                         (int)d->feed);
    if (!d->parts != !d->n_parts)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "trib_trainer_desc_t.n_parts is %zu, and parts is %sNULL: set "
                         "both, or neither for one part of all elements",
                         d->n_parts, d->parts ? "not " : "");
    return TRIB_OK;
}

trib_status_t trib_train_take_desc(struct trib_trainer *t,
                                   const trib_trainer_desc_t *theirs)
{
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_status_t st = trib_sized_take(&desc_kind, theirs, &desc, &t->err);

    if (st != TRIB_OK)
        return st;
    st = check_fields(t, &desc);
    if (st != TRIB_OK)
        return st;
    t->params = desc.params;
    t->count = desc.count;
    t->feed = desc.feed;
    t->seed = desc.seed;
    return read_texts(t, &desc);
}
