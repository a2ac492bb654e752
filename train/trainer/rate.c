/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/rate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/keyed_text.h"

enum { CONSTANT, LINEAR, COSINE };
enum { RATE, WARMUP, STEPS, RANKS, KEYS };

static const char *decay_name(int i)
{
    static const char *const names[] = {"constant", "linear", "cosine", NULL};

    return names[i];
}

static int decay_keys(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS])
{
    static const struct trib_keyed_key keys[KEYS] = {
        [RATE] = {"rate", 0, 1e6, false, "a number from 0 to 1e6"},
        [WARMUP] = {"warmup", 0, 1e12, false,
                    "a fraction of the steps below 1, or a number of steps"},
        [STEPS] = {"steps", 1, 1e15, true, "a number of steps from 1"},
        [RANKS] = {"ranks", 0, 1, true, "0 or 1"},
    };

    (void)i;
    memcpy(keys_out, keys, sizeof(keys));
    return KEYS;
}

static const struct trib_keyed_family family = {"rate", 120, decay_name, decay_keys};

static bool is_number(const char *text)
{
    return text[0] && strspn(text, "0123456789.eE+-") == strlen(text);
}

void trib_train_rate_move(struct trib_train_rate *rate, int ranks)
{
    if (rate->one_rank > 0)
        rate->rate = rate->one_rank * ranks;
}

/* Read the numbers of a text. A warm-up below 1 is a share of the steps. */
static trib_status_t take(const char *text, const struct trib_keyed_text *given,
                          int ranks, struct trib_error *err,
                          struct trib_train_rate *out)
{
    double warmup = given->value[WARMUP];

    if (!(given->given & 1u << RATE))
        return trib_fail(err, TRIB_ERR_INVALID, "rate \"%s\": rate= is missing", text);
    *out = (struct trib_train_rate){
        .decay = given->name,
        .rate = given->value[RATE],
        .one_rank = given->value[RANKS] != 0 ? given->value[RATE] : 0,
        .steps = (uint64_t)given->value[STEPS],
    };
    trib_train_rate_move(out, ranks);
    if (out->steps == 0 && (out->decay != CONSTANT || (warmup > 0 && warmup < 1)))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "rate \"%s\": %s needs steps=, the number of steps of the run",
                         text,
                         out->decay != CONSTANT ? decay_name(out->decay)
                                                : "a fraction of the steps");
    if (warmup >= 1 &&
        (warmup > floor(warmup) || (out->steps > 0 && warmup > (double)out->steps)))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "rate \"%s\": warmup is %g, it must be a fraction of the "
                         "steps below 1, or a whole number of steps, at most steps=",
                         text, warmup);
    out->warmup = (uint64_t)(warmup < 1 ? ceil(warmup * given->value[STEPS]) : warmup);
    return TRIB_OK;
}

trib_status_t trib_train_rate_parse(const char *text, int ranks, struct trib_error *err,
                                    struct trib_train_rate *rate_out)
{
    struct trib_keyed_text given;
    char number[64];

    text = text ? text : "0.01";
    if (is_number(text) && strlen(text) < 40) {
        snprintf(number, sizeof(number), "constant:rate=%s", text);
        text = number;
    }
    const trib_status_t st = trib_keyed_parse(&family, text, err, &given);
    return st != TRIB_OK ? st : take(text, &given, ranks, err, rate_out);
}

double trib_train_rate_at(const struct trib_train_rate *rate, uint64_t step)
{
    if (step < rate->warmup)
        return rate->rate * (double)(step + 1) / (double)rate->warmup;
    if (rate->decay == CONSTANT)
        return rate->rate;
    if (step >= rate->steps || rate->steps <= rate->warmup)
        return 0;

    const double left =
        (double)(rate->steps - step) / (double)(rate->steps - rate->warmup);
    return rate->rate * (rate->decay == LINEAR ? left : 0.5 - 0.5 * cos(M_PI * left));
}

const char *trib_train_rate_print(const struct trib_train_rate *rate, char *text,
                                  size_t bytes)
{
    char warmup[40] = "", steps[40] = "";

    if (rate->warmup > 0)
        snprintf(warmup, sizeof(warmup), ", reached in %" PRIu64 " steps",
                 rate->warmup);
    if (rate->decay != CONSTANT)
        snprintf(steps, sizeof(steps), ", to 0 in %" PRIu64 " steps", rate->steps);
    snprintf(text, bytes, "%s %g%s%s", decay_name(rate->decay), rate->rate, warmup,
             steps);
    return text;
}
