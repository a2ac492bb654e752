/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The variance bound holds on average only, and results are single draws: at 4 times it
   no draw of norm=max can exceed it. */
#define VARIANCE_SLACK 4
/* Deviations, and greatest terms, that a sum of independent terms may be off. */
#define DEVIATIONS 8
/* Elements of its own that a rank must be expected to have before any are missed. */
#define ALONE_LEAST 64
/* f16 and what lies below its normal numbers: half of the least step. */
#define TINY 0x1p-25

/* The number behind "key=" in a codec text. */
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

/* The largest of int4, int8 or int16. */
static double integer_levels(const char *codec)
{
    return strstr(codec, "int4") ? 7 : strstr(codec, "int8") ? 127 : 32767;
}

/* w of E|C(x) - x|^2 <= w |x|^2 of values that are far from what they stand for; else
 * 0. */
static double variance_of(const char *codec)
{
    double levels = exp2(number_of(codec, "bits", 4) - 1) - 1;
    double bucket = number_of(codec, "bucket", 512);
    double r = strstr(codec, "e5m2") != NULL ? 1.25 : 1.125; /* of two f8 */
    double b = number_of(codec, "base", 2);
    double w = bucket / (4 * levels * levels), q = sqrt(bucket) * pow(b, 1 - levels);
    if (strstr(codec, "f8") != NULL)
        return (r - 1) * (r - 1) / (4 * r) + 1e-5;
    if (strstr(codec, "natural") != NULL)
        return strstr(codec, "round=nearest") != NULL ? 1.0 / 9 : 1.0 / 8;
    if (strstr(codec, "dither") != NULL)
        return (b + 1 / b - 2) / 4 + q * fmin(1, q);
    if (strstr(codec, "onebit") != NULL || strstr(codec, "efsign") != NULL)
        return 1;
    if (begins(codec, "adacomp"))
        return number_of(codec, "bin", 64) + 1;
    if (strstr(codec, "terngrad") != NULL) /* norm |x|_1 <= clip |x|^2 */
        return number_of(codec, "clip", 2.5) + 1;
    if (begins(codec, "thc"))
        return 0.03;
    if (strstr(codec, "int4") || strstr(codec, "int8") || strstr(codec, "int16"))
        return bucket / (4 * pow(integer_levels(codec), 2));
    if (strstr(codec, "uniform-thc"))
        return bucket / pow(2 * levels + 1, 2);
    if (strstr(codec, "qsgd") == NULL)
        return 0;
    return strstr(codec, "norm=l2") == NULL ? w : fmin(w, sqrt(bucket) / levels);
}

static bool selects(const char *codec)
{
    static const char *const names[] = {"topk", "dgc", "threshold", "randomk"};
    if (begins(codec, "blocks") && number_of(codec, "ratio", 1) < 1)
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (begins(codec, names[i]))
            return true;
    return false;
}

/* Learns, and then projects. */
static bool is_model(const char *codec)
{
    return begins(codec, "powersgd") || begins(codec, "gradiveq");
}

static bool is_lgc(const char *codec)
{
    return begins(codec, "lgc") || begins(codec, "lgc-ps");
}

/* By default. */
static bool feeds_back(const char *codec)
{
    if (number_of(codec, "unbiased", 0) > 0)
        return false;
    if (begins(codec, "adacomp") || begins(codec, "thc") || is_model(codec) ||
        is_lgc(codec))
        return true;
    if (strstr(codec, "onebit") != NULL || strstr(codec, "efsign") != NULL)
        return true;
    return selects(codec);
}

/* Sets the share of a block that is certainly selected: 0 with a threshold; with
 * randomk no rank has elements of its own. */
static void set_share(const char *codec, struct perf_loss *loss)
{
    bool dgc = begins(codec, "dgc");
    double part = dgc ? 0.8 : 1;
    if (!dgc && !begins(codec, "topk") && !begins(codec, "blocks"))
        return;
    loss->k = part * number_of(codec, "k", 0);
    loss->ratio =
        loss->k > 0 ? 0 : part * number_of(codec, "ratio", dgc ? 0.001 : 0.01);
}

/* Elements drawn at random, the same by all ranks, and scaled: w = n/k - 1, rounded
 * up. */
static double variance_of_draws(const char *codec)
{
    bool known = number_of(codec, "unbiased", 0) > 0 && number_of(codec, "k", 0) == 0;
    return known ? ceil(1 / number_of(codec, "ratio", 0.01)) - 1 : 0;
}

/* The loss of the values that are rotated; no single element of these is near its
 * original. */
static struct perf_loss loss_of_rotated(const char *codec)
{
    const char *plus = strchr(codec, '+');
    struct perf_loss loss = perf_loss_of(plus ? plus + 1 : "uniform-thc");
    loss.feedback = number_of(codec, "ef", loss.feedback) > 0;
    if (loss.kind == PERF_LOSS_ROUNDED) {
        loss.kind = PERF_LOSS_BIASED;
        loss.variance = loss.rounding * loss.rounding;
    }
    return loss;
}

struct perf_loss perf_loss_of(const char *codec)
{
    if (begins(codec, "hadamard"))
        return loss_of_rotated(codec);
    struct perf_loss loss = {.kind = PERF_LOSS_UNKNOWN, .variance = variance_of(codec)};
    loss.feedback = number_of(codec, "ef", feeds_back(codec)) > 0;
    if (begins(codec, "f16") || strstr(codec, "+f16") != NULL)
        loss.rounding = 0x1p-11;
    else if (begins(codec, "bf16") || strstr(codec, "+bf16") != NULL)
        loss.rounding = 0x1p-8;
    if (strstr(codec, "round=random") != NULL)
        loss.rounding *= 2;

    if (begins(codec, "none") || begins(codec, "exact")) {
        loss.kind = PERF_LOSS_NONE;
    } else if (begins(codec, "signsgd")) {
        loss.kind = PERF_LOSS_VOTE;
    } else if (is_model(codec) || (is_lgc(codec) && loss.feedback)) {
        loss.kind = PERF_LOSS_PROJECTED; /* lgc: its first starts send what they
                                          * select */
    } else if (begins(codec, "f16") || begins(codec, "bf16")) {
        loss.kind = PERF_LOSS_ROUNDED;
    } else if (begins(codec, "blocks") && !selects(codec)) {
        loss.kind = loss.variance > 0 ? PERF_LOSS_UNKNOWN : PERF_LOSS_ROUNDED;
    } else if (number_of(codec, "unbiased", 0) > 0) {
        double w = variance_of_draws(codec);
        loss.kind = w > 0 && loss.variance == 0 ? PERF_LOSS_RANDOM : PERF_LOSS_UNKNOWN;
        loss.variance = w;
    } else if (selects(codec)) {
        loss.kind = PERF_LOSS_SELECTED;
        set_share(codec, &loss);
    } else if (begins(codec, "natural") && strstr(codec, "round=nearest") != NULL) {
        loss.kind = PERF_LOSS_ROUNDED;
        loss.rounding = 1.0 / 3;
    } else if (loss.variance > 0) {
        bool biased = begins(codec, "onebit") || begins(codec, "efsign");
        biased |= begins(codec, "terngrad") || begins(codec, "adacomp");
        biased |= begins(codec, "thc") || strstr(codec, "round=nearest") != NULL;
        biased |= begins(codec, "f8") && strstr(codec, "round=random") == NULL;
        loss.kind = biased ? PERF_LOSS_BIASED : PERF_LOSS_RANDOM;
    }
    return loss;
}

void perf_loss_feed(struct perf_loss *loss, const char *feedback)
{
    if (loss->kind == PERF_LOSS_NONE || begins(feedback, "codec"))
        return;
    loss->feedback = !begins(feedback, "none");
    /* what is summed is then not the input */
    if (number_of(feedback, "clip", 0) > 0 || number_of(feedback, "nesterov", 0) > 0)
        loss->kind = PERF_LOSS_UNKNOWN;
}

/* --- elements --- */

/* Rounding of a value that is encoded or summed once: by the codec, the dtype, and the
 * f32 between them. */
static double rounding_once(const struct perf_passage *p)
{
    return p->loss->rounding + p->rounding + 0x1p-24;
}

/* In a ring a value is encoded by every rank, and once more as a result; twice that. */
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
    if (p->loss->kind == PERF_LOSS_ROUNDED)
        return (grown - 1) * magnitude + floor;
    if (p->loss->kind == PERF_LOSS_SELECTED && p->loss->variance == 0)
        return (grown + 1) * magnitude + floor;
    return (double)INFINITY;
}

/* --- the whole --- */

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

/* The least number that each rank selects of its n elements: each chunk rounds up. */
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
        /* Each encode adds that much of what it encodes, earlier errors with it. */
        double once = VARIANCE_SLACK * loss->variance + rounded * rounded;
        return whole->magnitude2 * (pow(1 + once, p->ranks + 1) - 1);
    }
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
 * Sums of independent errors without bias stay near 0, and what is left out, or comes
 * twice, does not. A slack of 1e-4 is for what rounding has in common with its input.
 */
static bool random_lost(const struct perf_part *part)
{
    double chance = DEVIATIONS * (sqrt(part->ex_squares) + part->ex_most);
    return fabs(part->ex) > chance + 1e-4 * part->x2;
}

/*
 * Inputs are independent of one another: an element that a rank has sent is its alone
 * at least as often as elements are that nobody has sent. Half of that must be there.
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
