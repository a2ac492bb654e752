/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/racks/racks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "topo/racks/racks_reader.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define FORMATS_MAX 8

const struct trib_racks_format *const trib_racks_formats[] = {
    &trib_racks_ib, &trib_racks_slurm, &trib_racks_plain, NULL};

/* --- choose a format --- */

static const struct trib_racks_format *detect(struct trib_racks_reader *r)
{
    int i = 0;

    while (trib_racks_line(r)) {
        const char *line = r->line + strspn(r->line, " \t\r");
        if (line[0] == '\0' || line[0] == '#')
            continue;
        while (trib_racks_formats[i + 1] && !trib_racks_formats[i]->detect(line))
            i++;
        return trib_racks_formats[i];
    }
    return NULL;
}

static const struct trib_racks_format *find_format(const char *name,
                                                   struct trib_error *err)
{
    const char *names[FORMATS_MAX];
    size_t n = 0;

    for (; trib_racks_formats[n] && n < FORMATS_MAX; n++) {
        if (strcmp(trib_racks_formats[n]->name, name) == 0)
            return trib_racks_formats[n];
        names[n] = trib_racks_formats[n]->name;
    }
    const char *nearest = trib_text_nearest(name, names, n);
    trib_fail(err, TRIB_ERR_INVALID,
              "unknown rack format \"%.40s\"; did you mean \"%s\"?", name,
              nearest ? nearest : names[n - 1]);
    return NULL;
}

/* --- parse --- */

static void reader_free(struct trib_racks_reader *r)
{
    free(r->line);
    free(r->switches);
    free(r->hosts);
    free(r->children);
}

static void reader_begin(struct trib_racks_reader *r, const char *text)
{
    r->text = text;
    r->next_number = 1;
}

/* `text` is NUL-terminated; source->text need not be. */
static trib_status_t parse(struct trib_racks_reader *r, const char *text,
                           const char *format_name, struct trib_racks *out)
{
    const struct trib_racks_format *format;

    reader_begin(r, text);
    if (format_name) {
        format = find_format(format_name, r->err);
        if (!format)
            return TRIB_ERR_INVALID;
    } else {
        format = detect(r);
        if (!format)
            return trib_racks_fail(
                r, 0,
                "the file is empty: write lines such as \"rack1: host1 "
                "host2\"");
    }
    reader_begin(r, text);
    trib_status_t status = format->read(r);
    if (status == TRIB_OK)
        status = trib_racks_finish(r, out);
    out->format = format->name;
    return r->no_memory ? TRIB_ERR_NO_MEMORY : status;
}

trib_status_t trib_racks_parse(const struct trib_racks_source *source,
                               struct trib_error *err, struct trib_racks **out)
{
    struct trib_racks_reader r = {
        .file = source->file,
        .err = err,
        .names_max = source->names_max ? source->names_max : TRIB_RACKS_NAMES_MAX};
    struct trib_racks *racks = calloc(1, sizeof(*racks));
    char *text = malloc(source->bytes + 1);
    trib_status_t status = TRIB_ERR_NO_MEMORY;

    r.line = malloc(source->bytes + 1);
    if (racks && text && r.line) {
        if (source->bytes)
            memcpy(text, source->text, source->bytes);
        text[source->bytes] = '\0';
        status =
            strlen(text) == source->bytes
                ? parse(&r, text, source->format, racks)
                : trib_racks_fail(&r, 0, "the file has a zero byte: it is not text");
    }
    free(text);
    reader_free(&r);
    if (status != TRIB_OK) {
        trib_racks_free(racks);
        return status == TRIB_ERR_NO_MEMORY
                   ? trib_fail(err, status, "%s: no memory for its racks", source->file)
                   : status;
    }
    *out = racks;
    return TRIB_OK;
}

/* --- files --- */

/* Read all of a file or pipe; free *text_out even after a failure. */
static trib_status_t read_all(FILE *file, const char *path, struct trib_error *err,
                              char **text_out, size_t *bytes_out)
{
    size_t room = 0;
    size_t bytes = 0;

    *text_out = NULL;
    do {
        if (bytes == room) {
            room = room ? 2 * room : 65536;
            char *more = realloc(*text_out, room);
            if (!more)
                return trib_fail(err, TRIB_ERR_NO_MEMORY,
                                 "%s: no memory to read %zu KiB", path, room >> 10);
            *text_out = more;
        }
        bytes += fread(*text_out + bytes, 1, room - bytes, file);
    } while (!feof(file) && !ferror(file) && bytes <= FILE_MAX_BYTES);
    *bytes_out = bytes;
    if (ferror(file))
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot read the racks from %s: %m",
                         path);
    if (bytes > FILE_MAX_BYTES)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "%s has more than %zu MiB: it is not a list of racks", path,
                         FILE_MAX_BYTES >> 20);
    return TRIB_OK;
}

trib_status_t trib_racks_read(const char *path, const char *format,
                              struct trib_error *err, struct trib_racks **out)
{
    struct trib_racks_source source = {.file = path, .format = format};
    char *text;
    FILE *file = fopen(path, "re");

    if (!file)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot read the racks from %s: %m",
                         path);
    trib_status_t status = read_all(file, path, err, &text, &source.bytes);
    fclose(file);
    source.text = text;
    if (status == TRIB_OK)
        status = trib_racks_parse(&source, err, out);
    free(text);
    return status;
}

/* --- lookup --- */

