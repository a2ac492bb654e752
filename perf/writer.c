/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outputs of trib-perf: a table for people, csv and json for programs.
 *
 * Files appear whole or not at all: they are written to a temporary file beside their
 * place, which is renamed over it. Where a device or a pipe has the name, it is
 * written to as it is.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "perf/machine.h"
#include "perf/perf.h"

struct perf_writer {
    const struct perf_args *args;
    int ranks;
    bool table; /* on standard output, unless csv or json goes there */
    FILE *csv; /* standard output, or csv_text */
    char *csv_text; /* of open_memstream */
    size_t csv_bytes;
    json_t *results; /* NULL: no json */
};

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

/* NULL where path is no regular file and must be written to as it is. */
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

/* Finds out before an hour of measuring that the result cannot be kept. */
static bool file_try(const char *path, char *why, size_t why_bytes)
{
    char name[4096];
    if (is_special(path))
        return access(path, W_OK) == 0 || fail(path, why, why_bytes);
    FILE *f = temporary_open(path, name, sizeof(name));
    if (f == NULL)
        return fail(path, why, why_bytes);
    fclose(f);
    unlink(name);
    return true;
}

static bool file_write(const char *path, const char *text, size_t bytes, char *why,
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

/* --- table --- */

static const char *memory_text(const struct perf_args *args)
{
    static const char *const names[] = {"alloc", "malloc", "register"};
    return names[args->memory];
}

static bool has_codec(const struct perf_args *args)
{
    return strcmp(perf_codec_text(args), "none") != 0;
}

static bool reduces(trib_coll_t coll)
{
    return coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE || coll == TRIB_REDUCE_SCATTER;
}

static const char *op_text(const struct perf_args *args)
{
    return reduces(args->coll) ? trib_op_name(args->op) : "";
}

static void table_open(const struct perf_writer *w)
{
    const struct perf_args *args = w->args;
    printf("%s", trib_coll_name(args->coll));
    if (args->coll != TRIB_BARRIER)
        printf(" %s %s, codec %s, algorithm %s, memory %s, %s",
               trib_dtype_name(args->dtype), op_text(args), perf_codec_text(args),
               perf_algorithm_text(args), memory_text(args),
               args->in_place ? "in place" : "out of place");
    printf(", %s, %d rank%s, tributary %s\n",
           args->call == PERF_CALL_PLAN ? "plan" : "blocking calls", w->ranks,
           w->ranks == 1 ? "" : "s", trib_version());
    if (w->ranks == 1)
        puts("1 rank sends nothing: start more with -n, or with trib-run");
    printf("%10s %7s %6s %10s %10s %10s %10s %10s %8s %8s %10s", "size", "samples",
           "batch", "p50", "p99", "p99.9", "min", "max", "algbw", "busbw", "wire");
    printf("%s%s\n", has_codec(args) ? "    ratio" : "",
           args->check ? "     nmse      wrong" : "");
    printf("%10s %7s %6s %10s %10s %10s %10s %10s %8s %8s %10s\n", "", "", "", "µs ",
           "µs ", "µs ", "µs ", "µs ", "GB/s", "GB/s", "B");
}

/* Four digits that count, as far as a column goes. */
static void print_us(double us)
{
    printf(" %10.*f", us < 10 ? 3 : us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

/* Each line of a text, indented. */
static void print_lines(const char *text)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, "\n");
        printf("           %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static void table_row(const struct perf_writer *w, const struct perf_result *r)
{
    char size[32];
    printf("%10s %7zu %6ld", perf_size_text(r->bytes, size, sizeof(size)), r->us.n,
           r->batch);
    print_us(r->us.p50);
    print_us(r->us.p99);
    print_us(r->us.p999);
    print_us(r->us.min);
    print_us(r->us.max);
    printf(" %8.3f %8.3f %10.0f", r->algbw_GBps, r->busbw_GBps, r->wire_bytes);
    if (has_codec(w->args))
        printf(" %8.2f", r->ratio);
    if (w->args->check)
        printf(" %8.2g %10.0f", r->nmse, r->wrong);
    putchar('\n');
    if (w->args->explain)
        print_lines(r->explain);
    fflush(stdout);
}

/* --- csv --- */

static void csv_header(FILE *f)
{
    fputs("collective,algorithm,codec,dtype,op,ranks,bytes,iters,p50_us,p99_us,p999_us,"
          "min_us,max_us,algbw_GBps,busbw_GBps,wire_bytes,nmse,wrong,"
          "mean_us,batch,count,ratio,cpu_us,memory,in_place,call,version\n",
          f);
}

/* Codec texts have commas: always quoted. They hold no quotation marks. */
static void csv_row(const struct perf_writer *w, const struct perf_result *r)
{
    const struct perf_args *args = w->args;
    const struct perf_summary *us = &r->us;
    FILE *f = w->csv;
    fprintf(f, "%s,%s,\"%s\",%s,%s,%d,%zu,%zu", trib_coll_name(args->coll),
            perf_algorithm_text(args), perf_codec_text(args),
            trib_dtype_name(args->dtype), op_text(args), w->ranks, r->bytes, us->n);
    fprintf(f, ",%.4f,%.4f,%.4f,%.4f,%.4f", us->p50, us->p99, us->p999, us->min,
            us->max);
    fprintf(f, ",%.4f,%.4f,%.1f", r->algbw_GBps, r->busbw_GBps, r->wire_bytes);
    if (args->check)
        fprintf(f, ",%.6g,%.0f", r->nmse, r->wrong);
    else
        fputs(",,", f);
    fprintf(f, ",%.4f,%ld,%zu,%.4f,%.4f,%s,%d,%s,%s\n", us->mean, r->batch, r->count,
            r->ratio, r->cpu_us, memory_text(args), args->in_place,
            args->call == PERF_CALL_PLAN ? "plan" : "blocking", trib_version());
    fflush(f);
}

/* --- json --- */

static json_t *json_result(const struct perf_args *args, const struct perf_result *r)
{
    const struct perf_summary *us = &r->us;
    json_t *o = json_pack(
        "{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "bytes", (json_int_t)r->bytes, "count", (json_int_t)r->count, "iters",
        (json_int_t)us->n, "batch", (json_int_t)r->batch, "p50_us", us->p50, "p99_us",
        us->p99, "p999_us", us->p999, "min_us", us->min, "max_us", us->max, "mean_us",
        us->mean, "algbw_GBps", r->algbw_GBps, "busbw_GBps", r->busbw_GBps,
        "wire_bytes", r->wire_bytes, "ratio", r->ratio, "cpu_us", r->cpu_us);
    if (o != NULL && args->check) {
        /* Not a number where nothing was expected: json has no word for it. */
        json_object_set_new(o, "nmse",
                            isfinite(r->nmse) ? json_real(r->nmse) : json_null());
        json_object_set_new(o, "wrong", json_integer((json_int_t)r->wrong));
    }
    if (o != NULL && r->explain[0] != '\0')
        json_object_set_new(o, "explain", json_string(r->explain));
    return o;
}

static json_t *json_argv(const struct perf_args *args)
{
    json_t *list = json_array();
    for (int i = 0; i < args->argc; i++)
        json_array_append_new(list, json_string(args->argv[i]));
    return list;
}

static json_t *json_all(const struct perf_writer *w, const trib_stats_t *stats)
{
    const struct perf_args *args = w->args;
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *run = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:b, s:s, s:b, s:b}", "collective",
        trib_coll_name(args->coll), "dtype", trib_dtype_name(args->dtype), "op",
        op_text(args), "codec", perf_codec_text(args), "algorithm",
        perf_algorithm_text(args), "ranks", w->ranks, "memory", memory_text(args),
        "in_place", args->in_place, "call",
        args->call == PERF_CALL_PLAN ? "plan" : "blocking", "sync", args->sync,
        "rewrite", args->rewrite);
    json_t *memory =
        json_pack("{s:I, s:I}", "shared_bytes", (json_int_t)stats->shared_bytes,
                  "slot_bytes", (json_int_t)stats->slot_bytes);
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:O, s:o}", "format", 1,
                     "tributary", trib_version(), "time", when, "argv", json_argv(args),
                     "machine", perf_machine_json(), "settings", perf_settings_json(),
                     "run", run, "results", w->results, "memory", memory);
}

static bool json_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes)
{
    json_t *all = json_all(w, stats);
    char *text =
        all == NULL ? NULL : json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    bool done = false;
    if (text == NULL)
        snprintf(why, why_bytes, "cannot make the json: out of memory");
    else if (to_stdout(w->args->json))
        done = puts(text) >= 0 && fflush(stdout) == 0;
    else
        done = file_write(w->args->json, text, strlen(text), why, why_bytes);
    if (!done && text != NULL && to_stdout(w->args->json))
        fail("standard output", why, why_bytes);
    free(text);
    json_decref(all);
    return done;
}

/* --- the whole --- */

struct perf_writer *perf_writer_open(const struct perf_args *args, int ranks, char *why,
                                     size_t why_bytes)
{
    if (args->csv != NULL && !to_stdout(args->csv) &&
        !file_try(args->csv, why, why_bytes))
        return NULL;
    if (args->json != NULL && !to_stdout(args->json) &&
        !file_try(args->json, why, why_bytes))
        return NULL;

    struct perf_writer *w = calloc(1, sizeof(*w));
    if (w == NULL)
        goto err_none;
    w->args = args;
    w->ranks = ranks;
    w->table = !to_stdout(args->csv) && !to_stdout(args->json);
    if (to_stdout(args->csv))
        w->csv = stdout;
    else if (args->csv != NULL)
        w->csv = open_memstream(&w->csv_text, &w->csv_bytes);
    if (args->json != NULL)
        w->results = json_array();
    if ((args->csv != NULL && w->csv == NULL) ||
        (args->json != NULL && w->results == NULL))
        goto err_writer;
    if (w->csv != NULL)
        csv_header(w->csv);
    if (w->table)
        table_open(w);
    return w;

err_writer:
    perf_writer_free(w);
err_none:
    snprintf(why, why_bytes, "out of memory");
    return NULL;
}

void perf_writer_add(struct perf_writer *w, const struct perf_result *result)
{
    if (w->table)
        table_row(w, result);
    if (w->csv != NULL)
        csv_row(w, result);
    if (w->results != NULL)
        json_array_append_new(w->results, json_result(w->args, result));
}

static bool csv_finish(struct perf_writer *w, char *why, size_t why_bytes)
{
    bool whole = fflush(w->csv) == 0 && !ferror(w->csv);
    if (!whole)
        return fail(to_stdout(w->args->csv) ? "standard output" : w->args->csv, why,
                    why_bytes);
    return w->csv == stdout ||
           file_write(w->args->csv, w->csv_text, w->csv_bytes, why, why_bytes);
}

bool perf_writer_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes)
{
    char shared[32], slots[32];
    if (w->table)
        printf("memory of rank 0: %s shared or pinned, of it %s slots\n",
               perf_size_text(stats->shared_bytes, shared, sizeof(shared)),
               perf_size_text(stats->slot_bytes, slots, sizeof(slots)));
    if (w->csv != NULL && !csv_finish(w, why, why_bytes))
        return false;
    return w->results == NULL || json_finish(w, stats, why, why_bytes);
}

void perf_writer_free(struct perf_writer *w)
{
    if (w == NULL)
        return;
    if (w->csv != NULL && w->csv != stdout)
        fclose(w->csv);
    free(w->csv_text);
    json_decref(w->results);
    free(w);
}
