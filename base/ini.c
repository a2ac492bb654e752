/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct reader {
    FILE *file;
    char *line; /* buffer of getline */
    size_t room;
    bool too_long; /* the last line read is too long */
    int number; /* number of `line`, from 1 */
    trib_ini_fn fn;
    void *arg;
    bool refused;
};

/* Cut off the comment; the rest ends in a line feed. */
static void cut_comment(char *line)
{
    char before = ' ';

    for (char *at = line; *at && *at != '\n'; before = *at++) {
        if ((*at != '#' && *at != ';') || !strchr(" \t\r\f\v", before))
            continue;
        strcpy(at, "\n");
        break;
    }
}

/* Like fgets(), but without comments. */
static char *next_line(char *text, int bytes, void *arg)
{
    struct reader *r = arg;

    if (r->too_long || getline(&r->line, &r->room, r->file) < 0)
        return NULL;
    r->number++;
    cut_comment(r->line);
    if (strlen(r->line) >= (size_t)bytes ||
        strlen(r->line) > TRIB_INI_LINE_CHARACTERS + 1) {
        r->too_long = true;
        return NULL;
    }
    return strcpy(text, r->line);
}

static int take(void *arg, const char *section, const char *name, const char *value)
{
    struct reader *r = arg;

    (void)section;
    r->refused = !r->fn(r->arg, name, value);
    return !r->refused;
}

static trib_status_t read_all(struct reader *r, const char *path,
                              struct trib_error *err, int *line_out)
{
    errno = 0;
    const int line = ini_parse_stream(next_line, r, take, r);

    if (ferror(r->file))
        return trib_fail(err, TRIB_ERR_CONFIG, "%.200s cannot be read: %m%s", path,
                         errno == EISDIR ? "; name a file in it" : "");
    if (r->refused) {
        *line_out = line;
        return TRIB_OK;
    }
    if (r->too_long)
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "%.200s line %d is longer than %d characters, without its comment", path,
            r->number, TRIB_INI_LINE_CHARACTERS);
    if (line)
        return trib_fail(err, TRIB_ERR_CONFIG, "%.200s line %d is not \"name = value\"",
                         path, line);
    return TRIB_OK;
}

trib_status_t trib_ini_read(const char *path, trib_ini_fn fn, void *arg,
                            struct trib_error *err, int *line_out)
{
    struct reader r = {.file = fopen(path, "re"), .fn = fn, .arg = arg};

    *line_out = 0;
    if (!r.file)
        return trib_fail(err, TRIB_ERR_CONFIG, "%.200s: %m", path);
    const trib_status_t status = read_all(&r, path, err, line_out);
    free(r.line);
    fclose(r.file);
    return status;
}
