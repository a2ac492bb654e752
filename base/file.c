/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

FILE *trib_file_open(const char *root, const char *path)
{
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s%s", root, path);

    return n >= 0 && (size_t)n < sizeof(full) ? fopen(full, "re") : NULL;
}

bool trib_file_line(const char *root, const char *path, char *text, size_t bytes)
{
    FILE *file = trib_file_open(root, path);

    if (!file)
        return false;
    bool ok = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    if (ok)
        text[strcspn(text, "\n")] = '\0';
    return ok;
}

bool trib_file_field(const char *root, const char *path, const char *name, bool colon,
                     char *out, size_t bytes)
{
    char line[512];
    size_t n = strlen(name);
    const char *value = NULL;
    FILE *file = trib_file_open(root, path);

    if (!file)
        return false;
    while (!value && fgets(line, sizeof(line), file)) {
        const char *at = colon ? strchr(line, ':') : line + n;
        if (strncmp(line, name, n) != 0 || !at)
            continue;
        line[strcspn(line, "\n")] = '\0';
        value = at + colon + strspn(at + colon, " \t");
    }
    fclose(file);
    if (value)
        snprintf(out, bytes, "%s", value);
    return value != NULL;
}
