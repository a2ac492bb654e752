/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/options.h"

#include <stdint.h>
#include <string.h>

#define LONGEST_NAME 63
/* Levenshtein distance with one row. Names longer than LONGEST_NAME return SIZE_MAX. */
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

const char *tool_nearest(const char *text, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t least = 4;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, names[i]);
        /* More than half of the letters wrong is not a typo. */
        if (d < least && 2 * d <= strlen(names[i])) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}

bool tool_wrong_name(const struct tool_given *given, const char *what, const char *text,
                     const struct tool_names *names)
{
    const char *nearest = tool_nearest(text, names->item, names->n);
    FILE *err = given->err;

    fprintf(err, "%.*s: unknown %s '%s'", tool_program(given->command),
            given->command->name, what, text);
    if (nearest != NULL)
        fprintf(err, "; did you mean %s? Choose from", nearest);
    else
        fputs(". Choose from", err);
    for (size_t i = 0; i < names->n; i++)
        fprintf(err, "%s %s", i == 0 ? "" : ",", names->item[i]);
    fputs(".\n", err);
    return false;
}
