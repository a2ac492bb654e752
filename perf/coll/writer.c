/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of the collectives.
 */
#include "perf/coll/writer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/colls.h"
#include "perf/coll/measure.h"
#include "perf/coll/overlap.h"
#include "perf/common/columns.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"

struct perf_writer {
    const struct perf_args *args;
    int ranks;
    struct perf_output out;
    struct perf_columns columns;
    json_t *document; /* after perf_writer_finish; NULL: none */
    bool interrupted;
};

struct row {
    struct perf_result r;
    const char *collective, *algorithm, *codec, *dtype, *op, *memory, *call, *version;
    int ranks;
    double density;
    bool in_place, same_blocks;
};

enum { CODED = PERF_IF_A, CHECKED = PERF_IF_B };
enum { OVERLAP_COLUMNS = 12 }; /* the last ones */

/* clang-format off */
#define AT(member) offsetof(struct row, member)
#define CSV(key, type, digits, at) {key, PERF_UNSHOWN, type, digits, 0, PERF_NO_JSON, \
     AT(at)}
#define JSON(key, type, at) {key, PERF_UNSHOWN, type, 0, 0, PERF_NO_CSV, AT(at)}
#define OVERLAP(key, digits, at) CSV(key, PERF_FIXED, digits, r.overlap.at)
static const struct perf_column columns[] = {
    CSV("collective", PERF_TEXT, 0, collective),
    CSV("algorithm", PERF_TEXT, 0, algorithm),
    CSV("codec", PERF_QUOTED, 0, codec),
    CSV("dtype", PERF_TEXT, 0, dtype),
    CSV("op", PERF_TEXT, 0, op),
    CSV("ranks", PERF_INT, 0, ranks),
    {"bytes", "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(r.bytes)},
    JSON("count", PERF_SIZE, r.count),
    {"iters", "samples", "", 8, 5, PERF_SIZE, 0, 0, 0, AT(r.us.n)},
    {"batch", "batch", "", 7, 6, PERF_LONG, 0, 0, PERF_NO_CSV, AT(r.batch)},
    JSON("p25_us", PERF_FIXED, r.us.p25),
    {"p50_us", "p50", "µs ", 11, 0, PERF_US, 4, 0, 0, AT(r.us.p50)},
    JSON("p75_us", PERF_FIXED, r.us.p75),
    {"p99_us", "p99", "µs ", 11, 1, PERF_US, 4, 0, 0, AT(r.us.p99)},
    {"p999_us", "p99.9", "µs ", 11, 8, PERF_US, 4, 0, 0, AT(r.us.p999)},
    {"min_us", "min", "µs ", 11, 3, PERF_US, 4, 0, 0, AT(r.us.min)},
    {"max_us", "max", "µs ", 11, 7, PERF_US, 4, 0, 0, AT(r.us.max)},
    JSON("mean_us", PERF_FIXED, r.us.mean),
    {"algbw_GBps", "algbw", "GB/s", 9, 4, PERF_FIXED, 4, 3, 0, AT(r.algbw_GBps)},
    {"busbw_GBps", "busbw", "GB/s", 9, 0, PERF_FIXED, 4, 3, 0, AT(r.busbw_GBps)},
    {"wire_bytes", "wire", "B", 11, 2, PERF_FIXED, 1, 0, 0, AT(r.wire_bytes)},
    JSON("ratio", PERF_FIXED, r.ratio),
    {NULL, "ratio", "", 9, 0, PERF_FIXED, 0, 2, CODED, AT(r.ratio)},
    JSON("cpu_us", PERF_FIXED, r.cpu_us),
    /* NaN if all expected values are 0; json has no NaN. */
    {"nmse", "nmse", "", 9, 0, PERF_GENERAL, 6, 2, CHECKED | PERF_NO_JSON, AT(r.nmse)},
    {"nmse", PERF_UNSHOWN, PERF_GENERAL, 0, 0, CHECKED | PERF_NO_CSV | PERF_OPTIONAL,
     AT(r.nmse)},
    {"wrong", "wrong", "", 11, 0, PERF_COUNT, 0, 0, CHECKED, AT(r.wrong)},
    CSV("mean_us", PERF_FIXED, 4, r.us.mean),
    CSV("batch", PERF_LONG, 0, r.batch),
    CSV("count", PERF_SIZE, 0, r.count),
    CSV("ratio", PERF_FIXED, 4, r.ratio),
    CSV("cpu_us", PERF_FIXED, 4, r.cpu_us),
    CSV("memory", PERF_TEXT, 0, memory),
    CSV("in_place", PERF_FLAG, 0, in_place),
    CSV("call", PERF_TEXT, 0, call),
    CSV("density", PERF_GENERAL, 6, density),
    CSV("same_blocks", PERF_FLAG, 0, same_blocks),
    CSV("version", PERF_TEXT, 0, version),
    OVERLAP("encode_GBps", 4, stage_GBps[0]),
    OVERLAP("link_GBps", 4, stage_GBps[1]),
    OVERLAP("sum_GBps", 4, stage_GBps[2]),
    OVERLAP("decode_GBps", 4, stage_GBps[3]),
    OVERLAP("bound_GBps", 4, bound_GBps),
    OVERLAP("reached_GBps", 4, reached_GBps),
    OVERLAP("part", 4, part),
    OVERLAP("core_GBps", 4, core_GBps),
    OVERLAP("core_part", 4, core_part),
    OVERLAP("comm_us", 2, here.comm_us),
    OVERLAP("hidden", 4, here.part),
    OVERLAP("hidden_elsewhere", 4, elsewhere.part)};
/* clang-format on */

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
    if (w->out.table)
        table_open(w);
    w->columns = (struct perf_columns){
        columns,
        sizeof(columns) / sizeof(*columns) - (args->overlap ? 0 : OVERLAP_COLUMNS),
        (has_codec(args) ? CODED : 0u) | (args->check ? CHECKED : 0u)};
    perf_columns_head(&w->out, &w->columns);
    return w;
}

void perf_writer_add(struct perf_writer *w, const struct perf_result *result)
{
    const struct perf_args *args = w->args;
    const struct row row = {.r = *result,
                            .collective = perf_coll_name(args->coll),
                            .algorithm = perf_algorithm_text(args),
                            .codec = perf_codec_text(args),
                            .dtype = trib_dtype_name(args->dtype),
                            .op = op_text(args),
                            .memory = memory_text(args),
                            .call = call_text(args),
                            .version = trib_version(),
                            .ranks = w->ranks,
                            .density = args->density,
                            .in_place = args->in_place,
                            .same_blocks = args->same_blocks};
    json_t *object = perf_columns_row(&w->out, &w->columns, &row);

    if (object != NULL && result->overlap.measured)
        json_object_set_new(object, "overlap", json_overlap(&result->overlap));
    if (object != NULL && result->explain[0] != '\0')
        json_object_set_new(object, "explain", json_string(result->explain));
    if (w->out.table && args->explain)
        print_lines(result->explain);
    if (w->out.table && result->overlap.measured)
        perf_overlap_print(&result->overlap);
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
