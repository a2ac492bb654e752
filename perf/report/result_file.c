/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/colls.h"
#include "perf/common/samples.h"
#include "perf/report/perf_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>


#define SIZE_MOST 0x1p62

enum { FORMAT = 1 }; /* format number of perf_output_document */

/* --- rows --- */

static double number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double first_of(const json_t *row, const char *const *keys)
{
    double value = (double)NAN;

    for (; *keys != NULL && isnan(value); keys++)
        value = number(row, *keys);
    return value;
}

/* Read the quartiles. Documents without them: the minimum stands for the first
 * quartile, and the third is as far above the median. */
static void read_spread(const json_t *row, struct report_row *out)
{
    out->lower = number(row, "p25_us");
    out->upper = number(row, "p75_us");
    if (!isnan(out->lower) && !isnan(out->upper))
        return;
    out->lower = number(row, "min_us");
    if (isnan(out->lower))
        out->lower = 2 * out->p50 - number(row, "p95_us");
    if (isnan(out->lower))
        out->lower = out->p50;
    out->upper = 2 * out->p50 - out->lower;
}

static double element_bytes(const json_t *row)
{
    const double whole = sizeof(float), ratio = number(row, "ratio");

    if (json_object_get(row, "bytes_per_element") != NULL)
        return number(row, "bytes_per_element");
    return json_object_get(row, "algbw_GBps") != NULL && ratio > 0 ? whole / ratio
                                                                   : (double)NAN;
}

static void read_row(const json_t *row, struct report_row *out)
{
    static const char *const names[] = {"way", "codec", NULL};
    static const char *const rates[] = {"busbw_GBps", "GBps", NULL};

    *out = (struct report_row){.name = "", .bytes = number(row, "bytes")};
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *text = json_string_value(json_object_get(row, names[i]));
        if (text != NULL)
            out->name = text;
    }
    out->p50 = number(row, "p50_us");
    out->p99 = number(row, "p99_us");
    read_spread(row, out);
    out->GBps = first_of(row, rates);
    out->nmse = number(row, "nmse");
    out->element_bytes = element_bytes(row);
    out->overlap = json_object_get(row, "overlap");
}

/* --- documents --- */

static bool check(const json_t *document, const char *path, char *why, size_t why_bytes)
{
    const json_t *format = json_object_get(document, "format");
    const json_t *results = json_object_get(document, "results");

    if (!json_is_integer(format) ||
        !json_is_string(json_object_get(document, "tributary")))
        snprintf(why, why_bytes,
                 "%s is not a result of trib-perf: create one with --json FILE", path);
    else if (json_integer_value(format) != FORMAT)
        snprintf(why, why_bytes,
                 "%s has format %lld of tributary %s, but this trib-perf reads "
                 "format %d: use the trib-perf of that version",
                 path, (long long)json_integer_value(format),
                 json_string_value(json_object_get(document, "tributary")), FORMAT);
    else if (json_array_size(results) == 0)
        snprintf(why, why_bytes, "%s has no results", path);
    else
        return true;
    return false;
}

static size_t count_rows(const json_t *document)
{
    const json_t *peers = json_object_get(document, "peers"), *peer;
    size_t n = json_array_size(json_object_get(document, "results")), i;

    json_array_foreach(peers, i, peer)
    {
        n += json_array_size(json_object_get(peer, "results"));
    }
    return n;
}

/* name     of all rows; "": each row has its own */
static void read_rows(const json_t *rows, const char *name, struct report_file *out)
{
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct report_row *to = &out->rows[out->n];
        read_row(row, to);
        if (*name)
            to->name = name;
        out->n += to->bytes >= 0 && to->bytes < SIZE_MOST;
    }
}

/* Compute the bus bandwidth of a collective's rows that only have a time. */
static void add_rates(const json_t *document, struct report_file *out)
{
    const json_t *run = json_object_get(document, "run");
    const char *name = json_string_value(json_object_get(run, "collective"));
    const int ranks = (int)json_integer_value(json_object_get(run, "ranks"));
    trib_coll_t coll;

    if (name == NULL || ranks < 1 || !perf_coll_parse(name, &coll))
        return;
    for (size_t i = 0; i < out->n; i++) {
        struct report_row *r = &out->rows[i];
        if (isnan(r->GBps) && r->p50 > 0)
            r->GBps = r->bytes / r->p50 * 1e-3 * perf_bus_factor(coll, ranks);
    }
}

/* Read {"name": "link, 10 Gbit/s", "GBps": 1.25}, with or without bytes; false: out of
 * memory. */
static bool read_limits(const json_t *document, struct report_file *out)
{
    const json_t *limits = json_object_get(document, "limits"), *limit;
    size_t i;

    out->limits = calloc(json_array_size(limits) + 1, sizeof(*out->limits));
    if (out->limits == NULL)
        return false;
    json_array_foreach(limits, i, limit)
    {
        const char *name = json_string_value(json_object_get(limit, "name"));
        const double bytes = number(limit, "bytes"), rate = number(limit, "GBps");
        if (name != NULL && rate > 0)
            out->limits[out->n_limits++] = (struct report_row){
                .name = name, .bytes = bytes > 0 ? bytes : 0, .GBps = rate};
    }
    return true;
}

bool report_file_take(json_t *document, const char *path, struct report_file *out,
                      char *why, size_t why_bytes)
{
    const json_t *peers = json_object_get(document, "peers"), *peer;
    size_t i;

    if (!check(document, path, why, why_bytes))
        return false;
    *out = (struct report_file){.path = path};
    out->rows = calloc(count_rows(document), sizeof(*out->rows));
    if (out->rows == NULL || !read_limits(document, out)) {
        free(out->rows);
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    read_rows(json_object_get(document, "results"), "", out);
    out->own = out->n;
    json_array_foreach(peers, i, peer)
    {
        const char *name = json_string_value(json_object_get(peer, "name"));
        read_rows(json_object_get(peer, "results"), name != NULL ? name : "a peer",
                  out);
    }
    add_rates(document, out);
    out->document = json_incref(document);
    if (out->n > 0)
        return true;
    snprintf(why, why_bytes, "%s has no results with sizes", path);
    report_file_close(out);
    return false;
}

bool report_file_open(const char *path, struct report_file *out, char *why,
                      size_t why_bytes)
{
    json_error_t error;
    FILE *f = fopen(path, "r");

    if (f == NULL) {
        snprintf(why, why_bytes, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    json_t *document = json_loadf(f, 0, &error);
    fclose(f);
    if (document == NULL) {
        snprintf(why, why_bytes, "%s is not JSON: line %d: %s", path, error.line,
                 error.text);
        return false;
    }
    const bool taken = report_file_take(document, path, out, why, why_bytes);
    json_decref(document);
    return taken;
}

void report_file_close(struct report_file *file)
{
    free(file->rows);
    free(file->limits);
    json_decref(file->document);
    *file = (struct report_file){0};
}

/* --- words --- */

const char *report_text(const struct report_file *file, const char *object,
                        const char *key)
{
    const json_t *from = json_object_get(file->document, object);
    const char *text = json_string_value(json_object_get(from, key));

    return text != NULL ? text : "";
}

char *report_title(const struct report_file *file, char *text, size_t bytes)
{
    const json_t *run = json_object_get(file->document, "run");
    const char *codec = report_text(file, "run", "codec");
    const char *command = report_text(file, "run", "command");
    const char *coll = report_text(file, "run", "collective");
    const char *dtype = report_text(file, "run", "dtype");
    const char *op = report_text(file, "run", "op");
    const int ranks = (int)json_integer_value(json_object_get(run, "ranks"));
    char of_ranks[32] = "";

    if (ranks > 0)
        snprintf(of_ranks, sizeof(of_ranks), ", %d rank%s", ranks,
                 ranks == 1 ? "" : "s");
    snprintf(text, bytes, "%s%s%s%s%s%s%s%s%s", *coll ? "" : "trib-perf ",
             *coll ? coll : command, *dtype ? " " : "", dtype, *op ? " " : "", op,
             *codec && strcmp(codec, "none") != 0 ? ", codec " : "",
             strcmp(codec, "none") != 0 ? codec : "", of_ranks);
    return text;
}
