/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/info.h>

/* The variance bound holds on average only, and a result is a single draw. At 4 times
 * the bound no draw of norm=max can exceed it. */
#define VARIANCE_SLACK 4
/* Slack for a sum of independent terms: this many standard deviations and largest
 * terms. */
#define DEVIATIONS 8
/* A rank is reported as lost only if at least this many elements should be its
 * alone. */
#define ALONE_LEAST 64
/* Half of the smallest subnormal step of f16. */
#define TINY 0x1p-25

/* Return the number after "key=" in a codec text. */
static double number_of(const char *codec, const char *key, double otherwise)
{
    size_t length = strlen(key);
    for (const char *at = codec; (at = strstr(at, key)) != NULL; at += length) {
        bool whole = at > codec && (at[-1] == ':' || at[-1] == ',');
        if (whole && at[length] == '=')
            return strtod(at + length + 1, NULL);
    }
    return otherwise;
}

static bool begins(const char *codec, const char *name)
{
    size_t length = strlen(name);
    return strncmp(codec, name, length) == 0 && strcspn(codec, ":+") == length;
}

static const char *text_of(const trib_codec_sheet_t *s, const char *key)
{
    for (size_t i = 0; i < s->n_params; i++)
        if (strcmp(s->params[i].key, key) == 0 && strcmp(s->params[i].row, s->row) == 0)
            return s->params[i].value;
    return "";
}

static double param_of(const trib_codec_sheet_t *s, const char *key)
{
    return strtod(text_of(s, key), NULL);
}

/* Each rank sends the elements that it selected. If k is set, ratio is unused. If the
 * result is selected again, the share of a rank is unknown, and its values are encoded
 * twice like requantised ones. */
static void take_selection(const trib_codec_sheet_t *s, struct perf_loss *loss)
{
    const char *result = text_of(s, "result");
    const double least = strcmp(result, "selected") == 0 ? 0 : s->least;
    if (strcmp(result, "sums") != 0)
        loss->variance *= 2;
    loss->k = least * param_of(s, "k");
    loss->ratio = loss->k > 0 ? 0 : least * param_of(s, "ratio");
    if (loss->ratio >= 1)
        loss->kind = loss->variance > 0 ? PERF_LOSS_UNKNOWN : PERF_LOSS_ROUNDED;
    else if (s->unbiased)
        loss->kind = loss->variance > 0 ? PERF_LOSS_RANDOM : PERF_LOSS_UNKNOWN;
    else
        loss->kind = PERF_LOSS_SELECTED;
}

/* Rotated codecs have no bound per element, only on the whole error. */
static void take_dense(const trib_codec_sheet_t *s, struct perf_loss *loss)
{
    const bool rotated = strcmp(s->stages[0], "none") != 0;
    if (rotated && loss->rounding > 0)
        loss->variance = loss->rounding * loss->rounding;
    if (loss->rounding > 0 && !rotated)
        loss->kind = PERF_LOSS_ROUNDED;
    else if (loss->variance > 0)
        loss->kind = s->unbiased ? PERF_LOSS_RANDOM : PERF_LOSS_BIASED;
    else if (s->error == 0)
        loss->kind = PERF_LOSS_NONE;
}

/* Return the bound per element; a relative one is a fraction of the largest input. */
static double bound_of(const trib_codec_sheet_t *s)
{
    const double absolute = param_of(s, "abs");
    return absolute > 0 ? absolute : PERF_INPUT_MOST * param_of(s, "rel");
}

static void take_sheet(void *arg, const trib_codec_sheet_t *s)
{
    struct perf_loss *loss = arg;
    loss->feedback = s->feedback;
    loss->rounding = s->rounding;
    loss->variance = fmax(s->error, 0);
    loss->absolute = strcmp(s->stages[2], "bounded") == 0 ? bound_of(s) : 0;
    if (loss->absolute > 0) {
        loss->kind = PERF_LOSS_BOUNDED;
    } else if (s->vote) {
        loss->kind = PERF_LOSS_VOTE;
    } else if (s->learns) {
        /* without a projection: until factors are learned, feedback keeps the
         * residual */
        const bool projects = s->error >= 0;
        loss->kind = projects || s->feedback ? PERF_LOSS_PROJECTED : PERF_LOSS_UNKNOWN;
        loss->variance = projects ? s->error - 1 : 0;
    } else if (s->sparse) {
        take_selection(s, loss);
    } else {
        take_dense(s, loss);
    }
}

struct perf_loss perf_loss_of(const char *codec)
{
    struct perf_loss loss = {.kind = PERF_LOSS_UNKNOWN};
    loss.variance = number_of(codec, "max_nmse=", 0);
    if (loss.variance > 0) { /* codec auto */
        loss.kind = PERF_LOSS_BUDGET;
        return loss;
    }
    trib_codec_describe(codec, take_sheet, &loss);
    return loss;
}

void perf_loss_feed(struct perf_loss *loss, const char *feedback)
{
    if (loss->kind == PERF_LOSS_NONE || begins(feedback, "codec"))
        return;
    loss->feedback = !begins(feedback, "none");
    /* the sum is then not of the inputs */
    if (number_of(feedback, "clip", 0) > 0 || number_of(feedback, "nesterov", 0) > 0)
        loss->kind = PERF_LOSS_UNKNOWN;
}

/* --- elements --- */

/* Relative rounding of a value that is encoded or summed once: codec, dtype, and the
 * f32 between them. */
static double rounding_once(const struct perf_passage *p)
{
    return p->loss->rounding + p->rounding + 0x1p-24;
}

/* Return how often a value is rounded, times 2: in a ring every rank encodes it, and
 * then the result is encoded once more. */
static int times(const struct perf_passage *p)
{
    return 2 * (p->ranks + 1);
}

bool perf_element_wrong(const struct perf_passage *p, double got, double want,
                        double magnitude)
{
    double grown = pow(1 + rounding_once(p), times(p));
    double floor = TINY * times(p);
    switch (p->loss->kind) {
    case PERF_LOSS_BOUNDED:
        return !(fabs(got - want) <= perf_element_most(p, magnitude));
    case PERF_LOSS_ROUNDED:
        return !(fabs(got - want) <= (grown - 1) * magnitude + floor);
    case PERF_LOSS_SELECTED:
        if (p->loss->variance > 0)
            return !isfinite(got);
        return !(fabs(got) <= grown * magnitude + floor);
    default:
        return !isfinite(got);
    }
}

double perf_element_most(const struct perf_passage *p, double magnitude)
{
    double grown = pow(1 + rounding_once(p), times(p));
    double floor = TINY * times(p);
    if (p->loss->kind == PERF_LOSS_BOUNDED) /* rounded once, in the result */
        return p->loss->absolute * (1 + 1e-9) +
               (p->rounding + 0x1p-24) * (magnitude + p->loss->absolute) + TINY;
    if (p->loss->kind == PERF_LOSS_ROUNDED)
        return (grown - 1) * magnitude + floor;
    if (p->loss->kind == PERF_LOSS_SELECTED && p->loss->variance == 0)
        return (grown + 1) * magnitude + floor;
    return (double)INFINITY;
}

/* --- whole result --- */

void perf_part_add(const struct perf_passage *p, struct perf_part *part, double x,
                   double got, double error)
{
    double term = error * x;
    part->n++;
    part->x2 += x * x;
    part->ex += term;
    part->ex_squares += term * term;
    part->ex_most = fmax(part->ex_most, fabs(term));
    if (got != 0 && fabs(got - x) <= 4 * rounding_once(p) * fabs(x))
        part->alone++;
}

/* Return the smallest fraction that each rank selects of its n elements; chunks round
 * up. */
static double share(const struct perf_loss *loss, double n)
{
    return loss->k > 0 ? fmin(loss->k / fmax(n, 1), 1) : loss->ratio;
}

double perf_error_limit(const struct perf_passage *p, const struct perf_whole *whole)
{
    const struct perf_loss *loss = p->loss;
    double rounded = times(p) * rounding_once(p);
    double sum = 0;
    if (loss->kind == PERF_LOSS_RANDOM || loss->kind == PERF_LOSS_BIASED) {
        /* Each encoding adds this fraction of its input, which has the earlier
         * errors. */
        double once = VARIANCE_SLACK * loss->variance + rounded * rounded;
        return whole->magnitude2 * (pow(1 + once, p->ranks + 1) - 1);
    }
    if (loss->kind == PERF_LOSS_BUDGET)
        return loss->variance * whole->square;
    if (loss->kind == PERF_LOSS_PROJECTED)
        return whole->magnitude2 * (1 + loss->variance + rounded);
    if (loss->kind != PERF_LOSS_SELECTED)
        return (double)INFINITY;
    for (int rank = 0; rank < p->ranks; rank++) {
        const struct perf_part *part = &whole->parts[rank];
        double left = fmin(1 - share(loss, part->n), 1) + rounded * rounded +
                      VARIANCE_SLACK * loss->variance;
        sum += sqrt(left * part->x2);
    }
    return sum * sum;
}

/*
 * The errors of an unbiased codec are independent of the input, so their inner product
 * with it stays near 0. A contribution that is missing or counted twice makes it large.
 * Rounding correlates with its input: hence a slack of 1e-4.
 */
static bool random_lost(const struct perf_part *part)
{
    double chance = DEVIATIONS * (sqrt(part->ex_squares) + part->ex_most);
    return fabs(part->ex) > chance + 1e-4 * part->x2;
}

/*
 * Inputs of ranks are independent. If a rank sent an element, the chance that no other
 * rank sent it is at least the fraction of elements that no rank sent. Require half of
 * the expected number.
 */
static bool selected_lost(const struct perf_loss *loss, const struct perf_part *part,
                          const struct perf_whole *whole)
{
    double untouched = 1 - whole->nonzero / fmax(whole->elements, 1);
    double expected = share(loss, part->n) * part->n * untouched;
    return expected >= ALONE_LEAST && part->alone < expected / 2;
}

int perf_parts_lost(const struct perf_passage *p, const struct perf_whole *whole)
{
    int lost = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        const struct perf_part *part = &whole->parts[rank];
        if (p->loss->kind == PERF_LOSS_RANDOM)
            lost += random_lost(part);
        else if (p->loss->kind == PERF_LOSS_SELECTED && p->loss->variance == 0)
            lost += selected_lost(p->loss, part, whole);
    }
    return lost;
}
