/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse and print sizes and times.
 */
#include "perf/common/sizes.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>


/* More sizes than this are taken for a typing error. */
#define MAX_SIZES 4096

static bool unit_shift(const char *unit, unsigned *shift_out)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {
        {"", 0},    {"b", 0},    {"k", 10}, {"kb", 10}, {"kib", 10}, {"m", 20},
        {"mb", 20}, {"mib", 20}, {"g", 30}, {"gb", 30}, {"gib", 30},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(unit, units[i].name) == 0) {
            *shift_out = units[i].shift;
            return true;
        }
    }
    return false;
}

bool perf_size_parse(const char *text, size_t *bytes_out)
{
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift;
    if (errno != 0 || !unit_shift(end, &shift) || value > (SIZE_MAX >> shift))
        return false;
    *bytes_out = (size_t)value << shift;
    return true;
}

struct size_list {
    size_t *items;
    size_t n;
};

static bool append(struct size_list *list, size_t bytes)
{
    if (list->n == MAX_SIZES)
        return false;
    if (list->items == NULL)
        list->items = malloc(MAX_SIZES * sizeof(*list->items));
    if (list->items == NULL)
        return false;
    list->items[list->n++] = bytes;
    return true;
}

/* Expand "8:64M:4" to 8, 32, 128, … up to 64 MiB. The factor defaults to 2. */
static const char *append_range(struct size_list *list, char *item)
{
    char *to_text = strchr(item, ':');
    *to_text++ = '\0';
    char *factor_text = strchr(to_text, ':');
    if (factor_text != NULL)
        *factor_text++ = '\0';

    size_t from, to, factor = 2;
    if (!perf_size_parse(item, &from) || !perf_size_parse(to_text, &to))
        return "a range is from:to:factor, such as 8:64M:4";
    if (factor_text != NULL && (!perf_size_parse(factor_text, &factor) || factor < 2))
        return "the factor of a range is a whole number of at least 2";
    if (from == 0 || from > to)
        return "a range rises, and begins above 0";
    for (size_t bytes = from; bytes <= to; bytes *= factor) {
        if (!append(list, bytes))
            return "more than 4096 sizes";
        if (bytes > to / factor)
            break;
    }
    return NULL;
}

static const char *append_item(struct size_list *list, char *item)
{
    if (strchr(item, ':') != NULL)
        return append_range(list, item);
    size_t bytes;
    if (!perf_size_parse(item, &bytes))
        return "a size is a whole number followed by B, K, M or G (powers of 1024)";
    return append(list, bytes) ? NULL : "more than 4096 sizes";
}

bool perf_sizes_parse(const char *text, struct perf_sizes *sizes_out, char *why,
                      size_t why_bytes)
{
    struct size_list list = {0};
    const char *wrong = NULL;
    char item[64] = "";

    for (const char *p = text; wrong == NULL; p++) {
        size_t length = strcspn(p, ",");
        if (length == 0 || length >= sizeof(item)) {
            snprintf(item, sizeof(item), "%s", text);
            wrong = "expected a list of sizes, such as 8,64K,16M";
            break;
        }
        char copy[sizeof(item)];
        memcpy(item, p, length);
        item[length] = '\0';
        memcpy(copy, item, sizeof(copy));
        wrong = append_item(&list, copy);
        p += length;
        if (*p == '\0')
            break;
    }
    if (wrong != NULL) {
        snprintf(why, why_bytes, "'%s': %s", item, wrong);
        free(list.items);
        return false;
    }
    sizes_out->bytes = list.items;
    sizes_out->n = list.n;
    return true;
}

void perf_sizes_free(struct perf_sizes *sizes)
{
    free(sizes->bytes);
    *sizes = (struct perf_sizes){0};
}

bool perf_time_parse(const char *text, double *seconds_out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0 && isfinite(value)) {
            *seconds_out = value * units[i].seconds;
            return true;
        }
    }
    return false;
}

char *perf_size_text(size_t bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    if (bytes >= 1000000 && bytes % 1000000 == 0 && bytes % (1 << 20) != 0) {
        snprintf(text, text_bytes, "%zu MB", bytes / 1000000);
        return text;
    }
    while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, text_bytes, "%zu %s", bytes, units[unit]);
    return text;
}
