/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of the collectives.
 */
#include "perf/coll/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/colls.h"
#include "perf/coll/measure.h"
#include "perf/coll/overlap.h"
#include "perf/common/output.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"

struct perf_writer {
    const struct perf_args *args;
    int ranks;
    struct perf_output out;
    json_t *document; /* after perf_writer_finish; NULL: none */
    bool interrupted;
};

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

static const char *op_text(const struct perf_args *args)
{
    return perf_coll_sums(args->coll) ? trib_op_name(args->op) : "";
}

static const char *call_text(const struct perf_args *args)
{
    return args->call == PERF_CALL_PLAN    ? "plan"
           : args->call == PERF_CALL_PAIRS ? "pairs"
                                           : "blocking";
}

static void add_columns(struct tool_table *t, const struct perf_args *args)
{
    static const struct {
        const char *head, *unit;
        int width, rank;
    } columns[] = {
        {"size", "", 10, 0},     {"samples", "", 8, 5}, {"batch", "", 7, 6},
        {"p50", "µs ", 11, 0},   {"p99", "µs ", 11, 1}, {"p99.9", "µs ", 11, 8},
        {"min", "µs ", 11, 3},   {"max", "µs ", 11, 7}, {"algbw", "GB/s", 9, 4},
        {"busbw", "GB/s", 9, 0}, {"wire", "B", 11, 2}};

    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        tool_table_add(t, columns[i].head, columns[i].unit, columns[i].width,
                       columns[i].rank);
    if (has_codec(args))
        tool_table_add(t, "ratio", "", 9, 0);
    if (args->check) {
        tool_table_add(t, "nmse", "", 9, 0);
        tool_table_add(t, "wrong", "", 11, 0);
    }
}

static void table_open(struct perf_writer *w)
{
    const struct perf_args *args = w->args;
    bool fed = perf_coll_sums(args->coll) && has_codec(args) &&
               strcmp(perf_feedback_text(args), "codec") != 0;
    printf("%s", perf_coll_name(args->coll));
    if (args->coll != TRIB_BARRIER)
        printf(" %s%s%s, codec %s, %s%s%salgorithm %s, memory %s, %s",
               trib_dtype_name(args->dtype), perf_coll_sums(args->coll) ? " " : "",
               op_text(args), perf_codec_text(args), fed ? "feedback " : "",
               fed ? perf_feedback_text(args) : "", fed ? ", " : "",
               perf_algorithm_text(args), memory_text(args),
               args->in_place ? "in place" : "out of place");
    if (args->density < 1)
        printf(", density %g%s", args->density,
               args->same_blocks ? " (same blocks)" : "");
    if (args->input == PERF_INPUT_SMOOTH)
        printf(", smooth input");
    printf(", %s, %d rank%s, tributary %s\n",
           args->call == PERF_CALL_BLOCKING ? "blocking calls" : call_text(args),
           w->ranks, w->ranks == 1 ? "" : "s", trib_version());
    if (w->ranks == 1)
        puts("1 rank sends nothing: start more with -n, or with trib-run");
    add_columns(&w->out.rows, args);
    tool_table_head(&w->out.rows);
}

/* Print each line of a text, indented. */
static void print_lines(const char *text)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, "\n");
        printf("           %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static void table_row(struct perf_writer *w, const struct perf_result *r)
{
    struct tool_table *t = &w->out.rows;
    char size[32];

    tool_table_cell(t, "%s", perf_size_text(r->bytes, size, sizeof(size)));
    tool_table_cell(t, "%zu", r->us.n);
    tool_table_cell(t, "%ld", r->batch);
    perf_output_us(t, r->us.p50);
    perf_output_us(t, r->us.p99);
    perf_output_us(t, r->us.p999);
    perf_output_us(t, r->us.min);
    perf_output_us(t, r->us.max);
    tool_table_cell(t, "%.3f", r->algbw_GBps);
    tool_table_cell(t, "%.3f", r->busbw_GBps);
    tool_table_cell(t, "%.0f", r->wire_bytes);
    if (has_codec(w->args))
        tool_table_cell(t, "%.2f", r->ratio);
    if (w->args->check) {
        tool_table_cell(t, "%.2g", r->nmse);
        tool_table_cell(t, "%.0f", r->wrong);
    }
    tool_table_row_end(t);
    if (w->args->explain)
        print_lines(r->explain);
    if (r->overlap.measured)
        perf_overlap_print(&r->overlap);
}

/* --- csv --- */

static void csv_header(FILE *f, bool overlap)
{
    fputs("collective,algorithm,codec,dtype,op,ranks,bytes,iters,p50_us,p99_us,p999_us,"
          "min_us,max_us,algbw_GBps,busbw_GBps,wire_bytes,nmse,wrong,"
          "mean_us,batch,count,ratio,cpu_us,memory,in_place,call,density,same_blocks,"
          "version",
          f);
    if (overlap)
        fputs(
            ",encode_GBps,link_GBps,sum_GBps,decode_GBps,bound_GBps,reached_GBps,part,"
            "core_GBps,core_part,comm_us,hidden,hidden_elsewhere",
            f);
    fputs("\n", f);
}

static void csv_overlap(FILE *f, const struct perf_overlap *o)
{
    for (int s = 0; s < PERF_STAGES; s++)
        fprintf(f, ",%.4f", o->stage_GBps[s]);
    fprintf(f, ",%.4f,%.4f,%.4f,%.4f,%.4f,%.2f,%.4f,%.4f", o->bound_GBps,
            o->reached_GBps, o->part, o->core_GBps, o->core_part, o->here.comm_us,
            o->here.part, o->elsewhere.part);
}

/* Quote codec texts, since they have commas. They have no quotation marks. */
static void csv_row(const struct perf_writer *w, const struct perf_result *r)
{
    const struct perf_args *args = w->args;
    const struct perf_summary *us = &r->us;
    FILE *f = w->out.csv;
    fprintf(f, "%s,%s,\"%s\",%s,%s,%d,%zu,%zu", perf_coll_name(args->coll),
            perf_algorithm_text(args), perf_codec_text(args),
            trib_dtype_name(args->dtype), op_text(args), w->ranks, r->bytes, us->n);
    fprintf(f, ",%.4f,%.4f,%.4f,%.4f,%.4f", us->p50, us->p99, us->p999, us->min,
            us->max);
    fprintf(f, ",%.4f,%.4f,%.1f", r->algbw_GBps, r->busbw_GBps, r->wire_bytes);
    if (args->check)
        fprintf(f, ",%.6g,%.0f", r->nmse, r->wrong);
    else
        fputs(",,", f);
    fprintf(f, ",%.4f,%ld,%zu,%.4f,%.4f,%s,%d,%s,%g,%d,%s", us->mean, r->batch,
            r->count, r->ratio, r->cpu_us, memory_text(args), args->in_place,
            call_text(args), args->density, args->same_blocks, trib_version());
    if (args->overlap)
        csv_overlap(f, &r->overlap);
    fputs("\n", f);
}

/* --- json --- */

static json_t *json_hidden(const struct perf_hidden *h)
{
    json_t *layers = json_array();

    for (int i = 0; i < PERF_LAYERS; i++)
        json_array_append_new(
            layers, json_pack("[f, f]", h->timeline.from_us[i], h->timeline.to_us[i]));
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "comm_us", h->comm_us,
                     "compute_us", h->compute_us, "both_us", h->both_us, "hidden",
                     h->part, "took_us", h->timeline.took_us, "layers_us", layers);
}

static json_t *json_overlap(const struct perf_overlap *o)
{
    json_t *all = json_pack(
        "{s:f, s:s, s:f, s:f, s:f, s:f, s:o, s:o}", "bound_GBps", o->bound_GBps,
        "narrowest", perf_overlap_stage_name((enum perf_stage)o->narrowest),
        "reached_GBps", o->reached_GBps, "part", o->part, "core_GBps", o->core_GBps,
        "core_part", o->core_part, "computing_here", json_hidden(&o->here),
        "computing_elsewhere", json_hidden(&o->elsewhere));
    json_t *alone = json_object();

    for (int s = 0; s < PERF_STAGES; s++)
        if (o->stage_GBps[s] > 0)
            json_object_set_new(alone, perf_overlap_stage_name((enum perf_stage)s),
                                json_real(o->stage_GBps[s]));
    json_object_set_new(all, "alone_GBps", alone);
    return all;
}

static json_t *json_result(const struct perf_args *args, const struct perf_result *r)
{
    const struct perf_summary *us = &r->us;
    json_t *o = json_pack(
        "{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:f}",
        "bytes", (json_int_t)r->bytes, "count", (json_int_t)r->count, "iters",
        (json_int_t)us->n, "batch", (json_int_t)r->batch, "p25_us", us->p25, "p50_us",
        us->p50, "p75_us", us->p75, "p99_us", us->p99, "p999_us", us->p999, "min_us",
        us->min, "max_us", us->max, "mean_us", us->mean, "algbw_GBps", r->algbw_GBps,
        "busbw_GBps", r->busbw_GBps, "wire_bytes", r->wire_bytes, "ratio", r->ratio,
        "cpu_us", r->cpu_us);
    if (o != NULL && args->check) {
        /* NaN if all expected values are 0; json has no NaN. */
        json_object_set_new(o, "nmse",
                            isfinite(r->nmse) ? json_real(r->nmse) : json_null());
        json_object_set_new(o, "wrong", json_integer((json_int_t)r->wrong));
    }
    if (o != NULL && r->overlap.measured)
        json_object_set_new(o, "overlap", json_overlap(&r->overlap));
    if (o != NULL && r->explain[0] != '\0')
        json_object_set_new(o, "explain", json_string(r->explain));
    return o;
}

/* Add the rate of --link and the limit that follows from it. */
static void add_link(json_t *all, double gbps)
{
    char name[40];

    snprintf(name, sizeof(name), "link, %g Gbit/s", gbps);
    json_object_set_new(json_object_get(all, "run"), "link_gbps", json_real(gbps));
    json_object_set_new(all, "limits",
                        json_pack("[{s:s, s:f}]", "name", name, "GBps", gbps / 8));
}

static json_t *json_all(const struct perf_writer *w, const trib_stats_t *stats)
{
    const struct perf_args *args = w->args;
    json_t *run = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:b, s:s, s:b, s:b, s:f, s:b}",
        "collective", perf_coll_name(args->coll), "dtype", trib_dtype_name(args->dtype),
        "op", op_text(args), "codec", perf_codec_text(args), "feedback",
        perf_feedback_text(args), "algorithm", perf_algorithm_text(args), "ranks",
        w->ranks, "memory", memory_text(args), "in_place", args->in_place, "call",
        call_text(args), "sync", args->sync, "rewrite", args->rewrite, "density",
        args->density, "same_blocks", args->same_blocks);
    json_t *memory = json_pack(
        "{s:I, s:I, s:I}", "shared_bytes", (json_int_t)stats->shared_bytes,
        "slot_bytes", (json_int_t)stats->slot_bytes, "peers", (json_int_t)stats->peers);
    json_t *all = perf_output_document(&w->out, args->argc, args->argv, run);
    json_object_set_new(all, "memory", memory);
    if (w->interrupted)
        json_object_set_new(run, "interrupted", json_true());
    if (args->link_gbps > 0)
        add_link(all, args->link_gbps);
    return all;
}

/* --- all outputs --- */

struct perf_writer *perf_writer_open(const struct perf_args *args, int ranks, char *why,
                                     size_t why_bytes)
{
    struct perf_writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    w->args = args;
    w->ranks = ranks;
    if (!perf_output_open(&w->out, args->csv, args->json, why, why_bytes)) {
        free(w);
        return NULL;
    }
    if (w->out.csv != NULL)
        csv_header(w->out.csv, args->overlap);
    if (w->out.table)
        table_open(w);
    perf_output_flush(&w->out);
    return w;
}

void perf_writer_add(struct perf_writer *w, const struct perf_result *result)
{
    if (w->out.table)
        table_row(w, result);
    if (w->out.csv != NULL)
        csv_row(w, result);
    if (w->out.results != NULL)
        json_array_append_new(w->out.results, json_result(w->args, result));
    perf_output_flush(&w->out);
}

void perf_writer_interrupted(struct perf_writer *w, size_t sizes)
{
    w->interrupted = true;
    fprintf(stderr, "trib-perf: interrupted: only %zu of %zu sizes were measured.\n",
            sizes, w->args->sizes.n);
}

bool perf_writer_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes)
{
    char shared[32], slots[32];
    if (w->out.table)
        printf(
            "memory of rank 0: %s shared or pinned, including %s of slots; connected "
            "to %llu of %d peers\n",
            perf_size_text(stats->shared_bytes, shared, sizeof(shared)),
            perf_size_text(stats->slot_bytes, slots, sizeof(slots)),
            (unsigned long long)stats->peers, w->ranks - 1);
    json_t *all = w->out.results == NULL ? NULL : json_all(w, stats);
    w->document = json_incref(all);
    return perf_output_finish(&w->out, all, why, why_bytes);
}

bool perf_writer_keep(struct perf_writer *w)
{
    if (w->out.results == NULL)
        w->out.results = json_array();
    return w->out.results != NULL;
}

json_t *perf_writer_document(const struct perf_writer *w)
{
    return w->document;
}

void perf_writer_free(struct perf_writer *w)
{
    if (w == NULL)
        return;
    json_decref(w->document);
    perf_output_free(&w->out);
    free(w);
}
