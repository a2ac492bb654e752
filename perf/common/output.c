/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write files atomically: to a temporary file in the same folder, which is then
 * renamed. Devices and pipes are written to directly.
 */
#include "perf/common/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tributary.h>

#include "perf/common/machine_json.h"

/* --- files --- */

static bool to_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static bool fail(const char *path, char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "cannot write %s: %s", path, strerror(errno));
    return false;
}

/* Open a temporary file next to path, with the permissions of a new file. */
static FILE *temporary_open(const char *path, char *name, size_t name_bytes)
{
    if ((size_t)snprintf(name, name_bytes, "%s.XXXXXX", path) >= name_bytes) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = mkstemp(name);
    if (fd < 0)
        return NULL;
    mode_t mask = umask(0);
    umask(mask);
    FILE *f = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        close(fd);
        unlink(name);
    }
    return f;
}

static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Do not open(): it would wait for a pipe's reader, and end with its first writer. */
static bool special_try(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    errno = S_ISDIR(st.st_mode) ? EISDIR : S_ISSOCK(st.st_mode) ? ENXIO : 0;
    return errno == 0 && access(path, W_OK) == 0;
}

/* Fail early, before an hour of measuring, if the result cannot be written. */
bool perf_output_try(const char *path, char *why, size_t why_bytes)
{
    char name[4096];
    if (is_special(path))
        return special_try(path) || fail(path, why, why_bytes);
    FILE *f = temporary_open(path, name, sizeof(name));
    if (f == NULL)
        return fail(path, why, why_bytes);
    fclose(f);
    unlink(name);
    return true;
}

bool perf_output_write(const char *path, const char *text, size_t bytes, char *why,
                       size_t why_bytes)
{
    char name[4096];
    bool special = is_special(path);
    FILE *f = special ? fopen(path, "w") : temporary_open(path, name, sizeof(name));
    if (f == NULL)
        return fail(path, why, why_bytes);
    bool whole = fwrite(text, 1, bytes, f) == bytes;
    int saved = errno;
    if (fclose(f) != 0 && whole) {
        whole = false;
        saved = errno;
    }
    if (whole && !special && rename(name, path) != 0) {
        whole = false;
        saved = errno;
    }
    if (whole)
        return true;
    if (!special)
        unlink(name);
    errno = saved;
    return fail(path, why, why_bytes);
}

/* --- all outputs --- */

bool perf_output_open(struct perf_output *o, const char *csv, const char *json,
                      char *why, size_t why_bytes)
{
    memset(o, 0, sizeof(*o));
    if (csv != NULL && !to_stdout(csv) && !perf_output_try(csv, why, why_bytes))
        return false;
    if (json != NULL && !to_stdout(json) && !perf_output_try(json, why, why_bytes))
        return false;

    o->csv_path = csv;
    o->json_path = json;
    o->table = !to_stdout(csv) && !to_stdout(json);
    if (o->table)
        tool_fold_stdout();
    if (to_stdout(csv))
        o->csv = stdout;
    else if (csv != NULL)
        o->csv = open_memstream(&o->csv_text, &o->csv_bytes);
    if (json != NULL)
        o->results = json_array();
    if ((csv == NULL || o->csv != NULL) && (json == NULL || o->results != NULL))
        return true;
    perf_output_free(o);
    snprintf(why, why_bytes, "out of memory");
    return false;
}

/* Keep errno at once: a later flush with nothing to write sets none. */
static void flush(struct perf_output *o, FILE *f)
{
    errno = 0;
    if ((fflush(f) != 0 || ferror(f)) && o->error == 0)
        o->error = errno ? errno : EIO;
}

void perf_output_flush(struct perf_output *o)
{
    if (o->table)
        flush(o, stdout);
    if (o->csv != NULL)
        flush(o, o->csv);
}

void perf_output_us(struct tool_table *table, double us)
{
    tool_table_cell(table, "%.*f", us < 10 ? 3 : us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

json_t *perf_output_document(const struct perf_output *o, int argc, char **argv,
                             json_t *run)
{
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *words = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(words, json_string(argv[i]));
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:O}", "format", 1,
                     "tributary", trib_version(), "time", when, "argv", words,
                     "machine", perf_machine_json(), "settings", perf_settings_json(),
                     "run", run, "results", o->results);
}

static bool csv_finish(struct perf_output *o, char *why, size_t why_bytes)
{
    if (o->csv != stdout && ferror(o->csv)) {
        errno = o->error;
        return fail(o->csv_path, why, why_bytes);
    }
    return o->csv == stdout ||
           perf_output_write(o->csv_path, o->csv_text, o->csv_bytes, why, why_bytes);
}

bool perf_output_json(const char *path, const json_t *document, char *why,
                      size_t why_bytes)
{
    char *text = document == NULL
                     ? NULL
                     : json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    bool done = false;
    if (text == NULL)
        snprintf(why, why_bytes, "cannot make the json: out of memory");
    else if (to_stdout(path))
        done = puts(text) >= 0 && fflush(stdout) == 0;
    else
        done = perf_output_write(path, text, strlen(text), why, why_bytes);
    if (!done && text != NULL && to_stdout(path))
        fail("standard output", why, why_bytes);
    free(text);
    return done;
}

bool perf_output_finish(struct perf_output *o, json_t *document, char *why,
                        size_t why_bytes)
{
    if (o->table)
        tool_table_end(&o->rows);
    perf_output_flush(o);
    bool good = (o->csv == NULL || csv_finish(o, why, why_bytes)) &&
                (o->json_path == NULL ||
                 perf_output_json(o->json_path, document, why, why_bytes));
    if (good && o->error != 0) {
        errno = o->error;
        good = fail("standard output", why, why_bytes);
    }
    if (!good)
        clearerr(stdout); /* already reported */
    json_decref(document);
    return good;
}

void perf_output_free(struct perf_output *o)
{
    if (o->csv != NULL && o->csv != stdout)
        fclose(o->csv);
    free(o->csv_text);
    json_decref(o->results);
    memset(o, 0, sizeof(*o));
}
