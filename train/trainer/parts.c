/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/parts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/info.h>

#include "base/error.h"
#include "train/trainer/run_share.h"

static trib_status_t copy_text(const char *text, struct trib_error *err, char **out)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out ? TRIB_OK
                         : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a text");
}

static trib_status_t check_codec(const char *codec, struct trib_error *err)
{
    char sentence[256];
    const trib_status_t st =
        codec ? trib_codec_check(codec, sentence, sizeof(sentence)) : TRIB_OK;

    return st == TRIB_OK ? TRIB_OK : trib_fail(err, st, "%s", sentence);
}

/* Copy a codec's text, with percentages of the run replaced by numbers. */
static trib_status_t copy_codec(const char *codec, uint64_t rounds,
                                struct trib_error *err, char **out)
{
    const trib_status_t st = trib_train_run_share(codec, rounds, err, out);

    return st == TRIB_OK ? check_codec(*out, err) : st;
}

static trib_status_t copy_part(const trib_part_t *theirs, size_t i, uint64_t rounds,
                               struct trib_error *err, struct trib_train_part *out)
{
    char number[32];

    snprintf(number, sizeof(number), "part%zu", i);
    if (theirs->feedback && !theirs->codec)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "part %s has feedback \"%s\" but no codec of its own: name "
                         "the codec, too",
                         theirs->name ? theirs->name : number, theirs->feedback);
    out->count = theirs->count;
    out->dims = theirs->dims;
    trib_status_t st = copy_codec(theirs->codec, rounds, err, &out->codec);
    if (st == TRIB_OK)
        st = copy_text(theirs->name ? theirs->name : number, err, &out->name);
    return st == TRIB_OK
               ? trib_train_run_share(theirs->feedback, rounds, err, &out->feedback)
               : st;
}

/* Copy and check the caller's parts. */
static trib_status_t copy_parts(const trib_trainer_desc_t *desc, uint64_t rounds,
                                struct trib_error *err, struct trib_train_parts *out)
{
    size_t first = 0;
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < desc->n_parts && st == TRIB_OK; i++) {
        trib_part_t part = TRIB_PART_INIT;

        if (desc->parts[i].size != sizeof(part))
            return trib_fail(err, TRIB_ERR_INVALID,
                             "parts[%zu].size is %zu: begin with TRIB_PART_INIT", i,
                             desc->parts[i].size);
        part = desc->parts[i];
        if (part.dims < 0)
            return trib_fail(err, TRIB_ERR_INVALID,
                             "parts[%zu].dims is %d, it must be 0 (unspecified) or "
                             "more",
                             i, part.dims);
        if (part.count > desc->count - first)
            return trib_fail(err, TRIB_ERR_INVALID,
                             "part %zu ends after the last of the %zu parameters", i,
                             desc->count);
        out->part[i].first = first;
        st = copy_part(&part, i, rounds, err, &out->part[i]);
        first += part.count;
    }
    if (st == TRIB_OK && first != desc->count)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the parts have %zu elements, but the vector has %zu", first,
                         desc->count);
    return st;
}

trib_status_t trib_train_parts_create(const trib_trainer_desc_t *desc,
                                      const char *codec, uint64_t rounds,
                                      struct trib_error *err,
                                      struct trib_train_parts *out)
{
    const bool given = desc->parts && desc->n_parts > 0;

    if (given && desc->feedback && strcmp(desc->feedback, "none") != 0 && !codec)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "feedback \"%s\" needs a codec of the trainer: name the "
                         "codec, or set the feedback of the parts",
                         desc->feedback);
    *out = (struct trib_train_parts){.n = given ? desc->n_parts : 1};
    out->part = calloc(out->n, sizeof(*out->part));
    if (!out->part)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %zu parts", out->n);

    trib_status_t st = copy_codec(codec, rounds, err, &out->codec);
    if (st == TRIB_OK)
        st = trib_train_run_share(desc->feedback, rounds, err, &out->feedback);
    if (st != TRIB_OK)
        return st;
    if (given)
        return copy_parts(desc, rounds, err, out);

    const trib_part_t all = {sizeof(all), "all", desc->count, 0, NULL, NULL};
    return copy_part(&all, 0, rounds, err, &out->part[0]);
}

void trib_train_parts_destroy(struct trib_train_parts *parts)
{
    for (size_t i = 0; parts->part && i < parts->n; i++) {
        free(parts->part[i].name);
        free(parts->part[i].codec);
        free(parts->part[i].feedback);
    }
    free(parts->part);
    free(parts->codec);
    free(parts->feedback);
    *parts = (struct trib_train_parts){.n = 0};
}
