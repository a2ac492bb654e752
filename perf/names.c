/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names: the nearest to a misspelt one, and settings by name.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "perf/perf.h"

#define LONGEST_NAME 63

/* Levenshtein distance by one row; names longer than LONGEST_NAME are far from all. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(b);
    size_t row[LONGEST_NAME + 1];
    if (n > LONGEST_NAME || strlen(a) > LONGEST_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t change = diagonal + (a[i] != b[j]);
            size_t insert = row[j] + 1, remove = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = insert < remove ? insert : remove;
            if (change < row[j + 1])
                row[j + 1] = change;
        }
    }
    return row[n];
}

const char *perf_name_nearest(const char *text, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t least = 4;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, names[i]);
        /* Half of the letters wrong is no slip of the pen any more. */
        if (d < least && 2 * d <= strlen(names[i])) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}

struct setting {
    const char *name;
    char *value;
    size_t bytes;
    bool changed; /* by file, environment or API */
};

static void read_setting(void *arg, const trib_item_t *item)
{
    struct setting *s = arg;
    if (strcmp(item->name, s->name) != 0)
        return;
    snprintf(s->value, s->bytes, "%s", item->value);
    s->changed = strcmp(item->origin, "default") != 0 && item->value[0] != '\0';
}

bool perf_setting(const char *name, char *value, size_t bytes)
{
    struct setting s = {.name = name, .value = value, .bytes = bytes};
    /* Another setting that is wrong is for trib_init to refuse. */
    (void)trib_list_each(TRIB_LIST_CONFIG, read_setting, &s);
    return s.changed;
}
