/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/run_share.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { DIGITS = 20 }; /* of the number that replaces a percentage */

/* Return the first digit of the number that ends before the percent sign at `end`. */
static const char *number_before(const char *text, const char *end)
{
    while (end > text && ((end[-1] >= '0' && end[-1] <= '9') || end[-1] == '.'))
        end--;
    return end;
}

/* Parse a percentage independently of the locale: digits, optionally a point and
 * digits. */
static double percentage(const char *at)
{
    double value = 0, part = 1;

    for (; *at >= '0' && *at <= '9'; at++)
        value = 10 * value + (*at - '0');
    for (at += *at == '.'; *at >= '0' && *at <= '9'; at++)
        value += (part /= 10) * (*at - '0');
    return value;
}

static size_t percents(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '%';
    return n;
}

trib_status_t trib_train_run_share(const char *text, uint64_t rounds,
                                   struct trib_error *err, char **out)
{
    const size_t n = text ? percents(text) : 0;
    const char *sign;

    *out = NULL;
    if (!text)
        return TRIB_OK;
    if (n && !rounds)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "\"%s\" has a fraction of the run, whose length is unknown: "
                         "add steps=N to the rate, or write a number of starts",
                         text);
    char *to = *out = malloc(strlen(text) + n * DIGITS + 1);
    if (!to)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a text");
    while ((sign = strchr(text, '%'))) {
        const char *number = number_before(text, sign);
        const double share = percentage(number) / 100;
        const uint64_t starts = (uint64_t)llround(fmin(share, 1) * (double)rounds);
        memcpy(to, text, (size_t)(number - text));
        to += number - text;
        to += snprintf(to, DIGITS, "%" PRIu64, starts > 0 ? starts : 1);
        text = sign + 1;
    }
    memcpy(to, text, strlen(text) + 1);
    return TRIB_OK;
}
