/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of codec.
 */
#include <math.h>
#include <stddef.h>

#include <tributary.h>

#include "perf/codec/codec_perf.h"
#include "perf/common/columns.h"

struct row {
    struct codec_result r; /* rates of missing passes are NaN */
    struct codec_rate memory; /* of memcpy, without a ratio */
    const char *version;
};

/* clang-format off */
#define AT(member) offsetof(struct row, member)
#define SHOWN(name, unit, rank, at) \
    {NULL, name, unit, 13, rank, PERF_PAIR, 0, 2, 0, AT(at)}
#define CSV(key, at) \
    {key, PERF_UNSHOWN, PERF_FIXED, 4, 0, PERF_NO_JSON | PERF_OPTIONAL, AT(at)}
#define RATES(name, pass) \
    CSV(name "_GBps", r.rate[pass].GBps), CSV(name "_ratio", r.rate[pass].ratio)
#define PASS(name, rank, pass) \
    SHOWN(name, "  GB/s ratio", rank, r.rate[pass]), RATES(name, pass)
static const struct perf_column all_columns[] = {
    {"codec", PERF_UNSHOWN, PERF_QUOTED, 0, 0, PERF_TITLE, AT(r.text)},
    {"input", PERF_UNSHOWN, PERF_TEXT, 0, 0, 0, AT(r.input)},
    {"bytes", "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(r.bytes)},
    {"threads", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.threads)},
    {"bytes_per_element", "bytes/", "element", 8, 0, PERF_FIXED, 6, 4, 0,
     AT(r.bytes_per_element)},
    {"nmse", "nmse", "", 9, 0, PERF_GENERAL, 6, 2, 0, AT(r.nmse)},
    {"cosine", "cosine", "", 8, 1, PERF_FIXED, 8, 4, 0, AT(r.cosine)},
    SHOWN("memcpy", "  GB/s      ", 1, memory), RATES("memcpy", PASS_MEMCPY),
    PASS("add", 5, PASS_ADD),
    PASS("encode", 0, PASS_ENCODE), /* encode and decode are always shown */
    PASS("encode_ef", 4, PASS_ENCODE_EF),
    PASS("decode", 0, PASS_DECODE),
    PASS("decode_add", 2, PASS_DECODE_ADD),
    PASS("merge", 3, PASS_MERGE),
    {"version", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(version)}};
/* clang-format on */

static const struct perf_columns columns = {
    all_columns, sizeof(all_columns) / sizeof(*all_columns), 0};

static void table_open(const struct codec_args *args)
{
    printf("codecs, %d thread%s, chunks of %zu KiB, %s input, tributary %s\n",
           args->threads, args->threads == 1 ? "" : "s", args->chunk >> 10,
           codec_input_name(args->input), trib_version());
    puts("GB/s of float32, and the ratio to memcpy");
}

static void add_passes(const struct codec_result *p, json_t *object)
{
    static const char *const names[PASSES] = {
        "memcpy", "add", "encode", "encode_ef", "decode", "decode_add", "merge"};

    for (int pass = 0; pass < PASSES; pass++)
        if (p->rate[pass].GBps > 0)
            json_object_set_new(object, names[pass],
                                json_pack("{s:f, s:f}", "GBps", p->rate[pass].GBps,
                                          "ratio", p->rate[pass].ratio));
}

bool codec_report_open(struct perf_output *o, const struct codec_args *args, char *why,
                       size_t why_bytes)
{
    if (!perf_output_open(o, args->csv, args->json, why, why_bytes))
        return false;
    if (o->table)
        table_open(args);
    perf_columns_head(o, &columns);
    return true;
}

void codec_report_add(struct perf_output *o, const struct codec_result *result)
{
    struct row row = {.r = *result,
                      .memory = {result->rate[PASS_MEMCPY].GBps, (double)NAN},
                      .version = trib_version()};

    for (int pass = 0; pass < PASSES; pass++)
        if (result->rate[pass].GBps <= 0)
            row.r.rate[pass] = (struct codec_rate){(double)NAN, (double)NAN};
    json_t *object = perf_columns_row(o, &columns, &row);
    if (object != NULL)
        add_passes(result, object);
}

bool codec_report_finish(struct perf_output *o, const struct codec_args *args,
                         char *why, size_t why_bytes)
{
    json_t *all = NULL;

    if (o->results != NULL)
        all = perf_output_document(
            o, args->argc, args->argv,
            json_pack("{s:s, s:I, s:i, s:s}", "command", "codec", "chunk_bytes",
                      (json_int_t)args->chunk, "threads", args->threads, "input",
                      args->input == INPUT_FILE ? args->file
                                                : codec_input_name(args->input)));
    return perf_output_finish(o, all, why, why_bytes);
}
