/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest name compared; longer ones count by length difference. */
#define DISTANCE_MAX_BYTES 64

static int unit_shift(char unit)
{
    switch (toupper((unsigned char)unit)) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    default:
        return -1;
    }
}

bool trib_size_parse(const char *text, size_t *bytes_out)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    uintmax_t value = strtoumax(text, &end, 10);
    if (errno)
        return false;
    int shift = 0;
    if (*end) {
        shift = unit_shift(*end++);
        if (shift < 0 || *end)
            return false;
    }
    if (value > SIZE_MAX >> shift)
        return false;
    *bytes_out = (size_t)value << shift;
    return true;
}

char *trib_size_format(size_t bytes, char text[24])
{
    static const char units[] = {0, 'K', 'M', 'G'};
    size_t unit = 0;

    while (unit < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, "%zu%.1s", bytes, unit ? &units[unit] : "");
    return text;
}

bool trib_text_append(char *text, size_t bytes, const char *format, ...)
{
    static const char more[] = "...";
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < bytes - used)
        return true;
    if (bytes >= sizeof(more))
        memcpy(text + bytes - sizeof(more), more, sizeof(more));
    return false;
}

size_t trib_text_distance(const char *a, const char *b)
{
    size_t la = strlen(a);
    size_t lb = strlen(b);
    size_t row[DISTANCE_MAX_BYTES + 1]; /* one row of Levenshtein's table */

    if (la > DISTANCE_MAX_BYTES || lb > DISTANCE_MAX_BYTES)
        return la > lb ? la : lb;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

const char *trib_text_nearest(const char *text, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < n && names[i]; i++) {
        size_t len = strlen(names[i]);
        size_t limit = len / 3 > 2 ? len / 3 : 2;
        if (strlen(text) > len + limit)
            continue; /* not nearer by length alone; skip the table */
        size_t distance = trib_text_distance(text, names[i]);
        if (distance <= limit && distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
