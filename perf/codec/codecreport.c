/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of codec.
 */
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "perf/codec/codec_perf.h"
#include "perf/common/output.h"

struct codec_report {
    const struct codec_args *args;
    struct perf_output out;
};

static const char *const pass_names[PASSES] = {
    "memcpy", "add", "encode", "encode_ef", "decode", "decode_add", "merge"};

/* --- table --- */

/* Ranks of the columns: narrow terminals drop the highest rank first. Encode and decode
 * are kept. */
static const int pass_ranks[PASSES] = {1, 5, 0, 4, 0, 2, 3};

static void table_open(struct codec_report *r)
{
    struct tool_table *t = &r->out.rows;

    printf("codecs, %d thread%s, chunks of %zu KiB, %s input, tributary %s\n",
           r->args->threads, r->args->threads == 1 ? "" : "s", r->args->chunk >> 10,
           codec_input_name(r->args->input), trib_version());
    puts("GB/s of float32, and the ratio to memcpy");
    tool_table_add(t, "size", "", 10, 0);
    tool_table_add(t, "bytes/", "element", 8, 0);
    tool_table_add(t, "nmse", "", 9, 0);
    tool_table_add(t, "cosine", "", 8, 1);
    for (int pass = 0; pass < PASSES; pass++)
        tool_table_add(t, pass_names[pass],
                       pass == PASS_MEMCPY ? "  GB/s      " : "  GB/s ratio", 13,
                       pass_ranks[pass]);
    tool_table_head(t);
}

/* Print a long codec text on a line above, or at the end of the row. */
static void table_row(struct codec_report *r, const struct codec_result *p)
{
    struct tool_table *t = &r->out.rows;
    char size[32];

    if (t->narrow)
        puts(p->text);
    tool_table_cell(t, "%s", perf_size_text(p->bytes, size, sizeof(size)));
    tool_table_cell(t, "%.4f", p->bytes_per_element);
    tool_table_cell(t, "%.2g", p->nmse);
    tool_table_cell(t, "%.4f", p->cosine);
    for (int pass = 0; pass < PASSES; pass++) {
        if (p->rate[pass].GBps <= 0)
            tool_table_cell(t, "%6s %5s", "-", "");
        else if (pass == PASS_MEMCPY)
            tool_table_cell(t, "%6.2f %5s", p->rate[pass].GBps, "");
        else
            tool_table_cell(t, "%6.2f %5.2f", p->rate[pass].GBps, p->rate[pass].ratio);
    }
    if (!t->narrow)
        printf("  %s", p->text);
    tool_table_row_end(t);
}

/* --- csv --- */

static void csv_header(FILE *f)
{
    fputs("codec,input,bytes,threads,bytes_per_element,nmse,cosine", f);
    for (int pass = 0; pass < PASSES; pass++)
        fprintf(f, ",%s_GBps,%s_ratio", pass_names[pass], pass_names[pass]);
    fputs(",version\n", f);
}

/* Quote codec texts, since they have commas. Missing passes are empty cells. */
static void csv_row(FILE *f, const struct codec_result *p)
{
    fprintf(f, "\"%s\",%s,%zu,%d,%.6f,%.6g,%.8f", p->text, p->input, p->bytes,
            p->threads, p->bytes_per_element, p->nmse, p->cosine);
    for (int pass = 0; pass < PASSES; pass++) {
        if (p->rate[pass].GBps > 0)
            fprintf(f, ",%.4f,%.4f", p->rate[pass].GBps, p->rate[pass].ratio);
        else
            fputs(",,", f);
    }
    fprintf(f, ",%s\n", trib_version());
}

/* --- json --- */

static json_t *json_result(const struct codec_result *p)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:f}", "codec", p->text,
                          "input", p->input, "bytes", (json_int_t)p->bytes, "threads",
                          p->threads, "bytes_per_element", p->bytes_per_element, "nmse",
                          p->nmse, "cosine", p->cosine);

    for (int pass = 0; pass < PASSES; pass++)
        if (p->rate[pass].GBps > 0)
            json_object_set_new(o, pass_names[pass],
                                json_pack("{s:f, s:f}", "GBps", p->rate[pass].GBps,
                                          "ratio", p->rate[pass].ratio));
    return o;
}

/* --- all outputs --- */

struct codec_report *codec_report_open(const struct codec_args *args, char *why,
                                       size_t why_bytes)
{
    struct codec_report *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    r->args = args;
    if (!perf_output_open(&r->out, args->csv, args->json, why, why_bytes)) {
        free(r);
        return NULL;
    }
    if (r->out.csv != NULL)
        csv_header(r->out.csv);
    if (r->out.table)
        table_open(r);
    perf_output_flush(&r->out);
    return r;
}

void codec_report_add(struct codec_report *r, const struct codec_result *result)
{
    if (r->out.table)
        table_row(r, result);
    if (r->out.csv != NULL)
        csv_row(r->out.csv, result);
    if (r->out.results != NULL)
        json_array_append_new(r->out.results, json_result(result));
    perf_output_flush(&r->out);
}

bool codec_report_finish(struct codec_report *r, char *why, size_t why_bytes)
{
    json_t *all = NULL;

    if (r->out.results != NULL)
        all = perf_output_document(
            &r->out, r->args->argc, r->args->argv,
            json_pack("{s:s, s:I, s:i, s:s}", "command", "codec", "chunk_bytes",
                      (json_int_t)r->args->chunk, "threads", r->args->threads, "input",
                      r->args->input == INPUT_FILE ? r->args->file
                                                   : codec_input_name(r->args->input)));
    return perf_output_finish(&r->out, all, why, why_bytes);
}

void codec_report_free(struct codec_report *r)
{
    if (r == NULL)
        return;
    perf_output_free(&r->out);
    free(r);
}
