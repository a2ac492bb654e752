/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the collectives. */
#include "perf/coll/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "perf/coll/colls.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/perf_op.h"
#include "perf/common/setters.h"
#include "tools/common/setting_values.h"

#define LONGEST_NAME 63

/* --- setters --- */

static bool set_sample(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;

    if (perf_time_parse(value, &args->sample_s) && args->sample_s <= 60)
        return true;
    return tool_refuse(given, value, "is not a time up to 60 s, such as 50ms");
}

static bool set_dtype(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    struct tool_names names = {.n = TRIB_DTYPE_COUNT};

    args->dtype_named = true;
    if (trib_dtype_parse(value, &args->dtype) == TRIB_OK)
        return true;
    for (int i = 0; i < TRIB_DTYPE_COUNT; i++)
        names.item[i] = trib_dtype_name((trib_dtype_t)i);
    return tool_wrong_name(given, "dtype", value, &names);
}

/* Parse the parameter that follows an operator's name. */
static bool set_parameter(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    const bool trims = args->op == TRIB_TRIMMED_MEAN,
               clips = args->op == TRIB_CLIPPED_MEAN;
    char *end = "";

    args->parameter = trims ? 0.1 : clips ? 1 : 0;
    if (*value == ':' && (trims || clips))
        args->parameter = strtod(value + 1, &end);
    else if (*value != '\0')
        end = "?";
    if (*end == '\0' && !(trims && !(args->parameter > 0 && args->parameter < 0.5)) &&
        !(clips && !(args->parameter > 0)))
        return true;
    return tool_say(
        given, "--op: %s",
        trims   ? "trimmed-mean:P drops a fraction P above 0 and below 0.5 at each end"
        : clips ? "clipped-mean:B clips elements to a bound B above 0"
                : "this operator has no parameter");
}

static bool set_op(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    struct tool_names names;
    char name[LONGEST_NAME + 1];
    const size_t n = strcspn(value, ":");

    args->op_named = true;
    snprintf(name, sizeof(name), "%.*s", (int)(n < LONGEST_NAME ? n : LONGEST_NAME),
             value);
    names.n = TRIB_OP_COUNT;
    if (trib_op_parse(name, &args->op) == TRIB_OK)
        return set_parameter(given, value + n);
    for (size_t i = 0; i < names.n; i++)
        names.item[i] = trib_op_name((trib_op_t)i);
    return tool_wrong_name(given, "op", name, &names);
}

static bool is_command(const char *word)
{
    static const char *const commands[] = {"agg",     "calibrate", "codec",
                                           "compare", "groups",    "neighbors",
                                           "put",     "report",    "store"};

    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(word, commands[i]) == 0)
            return true;
    return false;
}

static bool take_word(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    struct tool_names names = {.n = PERF_COLL_COUNT};

    if (args->named)
        return tool_say(given, "'%s': only one collective at a time", value);
    args->named = true;
    if (is_command(value))
        return tool_say(given, "%s must be the first argument: trib-perf %s [OPTION]…",
                        value, value);
    if (perf_coll_parse(value, &args->coll))
        return true;
    for (int i = 0; i < PERF_COLL_COUNT; i++)
        names.item[i] = perf_coll_name((trib_coll_t)i);
    return tool_wrong_name(given, "collective", value, &names);
}

bool perf_set_codec(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    char why[512] = "";

    args->codec = value;
    if (trib_codec_check(value, why, sizeof(why)) == TRIB_OK)
        return true;
    return tool_refuse(given, value, "is invalid: %s", why);
}

struct search {
    const char *name;
    bool found;
    char text[TOOL_NAMES_MAX]
             [LONGEST_NAME + 1]; /* list items live only during the call */
    struct tool_names names;
};

static void search_item(void *arg, const trib_item_t *item)
{
    struct search *s = arg;
    s->found = s->found || strcmp(item->name, s->name) == 0;
    if (s->names.n < TOOL_NAMES_MAX) {
        char *text = s->text[s->names.n];
        snprintf(text, LONGEST_NAME + 1, "%s", item->name);
        s->names.item[s->names.n++] = text;
    }
}

static bool set_algorithm(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    struct search s = {.name = value};

    search_item(&s, &(trib_item_t){.name = "auto"});
    args->algorithm = value;
    if (trib_list_each(TRIB_LIST_ALGORITHMS, search_item, &s) != TRIB_OK || s.found)
        return true;
    return tool_wrong_name(given, "algorithm", value, &s.names);
}

bool perf_set_chunk(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;

    if (perf_size_parse(value, &args->chunk) && args->chunk > 0)
        return true;
    return tool_refuse(given, value, "is not a size such as 256K");
}

bool perf_set_density(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;
    char *end;

    args->density = strtod(value, &end);
    args->same_blocks = strcmp(end, ",same") == 0;
    if (end != value && (*end == '\0' || args->same_blocks) && args->density > 0 &&
        args->density <= 1)
        return true;
    return tool_refuse(given, value,
                       "is not a fraction above 0 and up to 1, such as 0.01 or "
                       "0.01,same");
}

static bool set_peers(const struct tool_given *given, const char *value)
{
    struct perf_args *args = given->args;

    args->peers = value != NULL ? value : "";
    return true;
}

#define AT(field) offsetof(struct perf_args, field)

static const struct tool_option options[] = {
    PERF_RANKS_ROW(AT(ranks)),
    {"sizes", "LIST", perf_set_sizes, AT(sizes),
     .help = "bytes: 8,64K,16M or from:to:factor [8:64M:4]"},
    {"dtype", "NAME", set_dtype,
     .help =
         "f32 f64 f16 bf16 f8_e4m3 f8_e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool [f32]",
     .words = "f32 f64 f16 bf16 f8_e4m3 f8_e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool"},
    {"op", "NAME", set_op,
     .help =
         "sum mean min max prod median trimmed-mean[:0.1] clipped-mean[:1] band bor "
         "bxor "
         "land lor lxor minloc maxloc [sum]",
     .words =
         "sum mean min max prod median trimmed-mean clipped-mean band bor bxor land "
         "lor lxor minloc maxloc"},
    PERF_DENSITY_ROW,
    {"input", "WHAT", tool_set_choice, AT(input),
     .help = "distribution of floats: about normal, or smooth (three waves of 997 to "
             "40009 elements, and noise of 0.001) [normal]",
     .words = "normal smooth"},
    {"root", "RANK", tool_set_int, AT(root),
     .help = "root of reduce, broadcast, "
             "gather and scatter [0]",
     .most = 4096},
    {"codec", "TEXT", perf_set_codec,
     .help = "such as topk:ratio=0.01; trib-info --codecs lists them",
     .words = "@codecs"},
    {"feedback", "TEXT", tool_set_text, AT(feedback),
     .help = "such as ef14:momentum=0.9, ef21 or none [codec: as its ef= says]"},
    {"quorum", "TEXT", tool_set_text, AT(quorum),
     .help = "quorum of a service, such as 0.9,deadline=20ms: skips late ranks [all]"},
    {"algorithm", "NAME", set_algorithm,
     .help = "such as ring; trib-info --algorithms lists them", .words = "@algorithms"},
    PERF_CHUNK_ROW,
    PERF_MEMORY_ROW(AT(memory)),
    {"in-place", NULL, tool_set_switch, AT(in_place),
     .help = "input and result share a buffer"},
    {"call", "KIND", tool_set_choice, AT(call),
     .help = "blocking, plan or pairs; auto: plan if op has a parameter, if codec, "
             "feedback, quorum, algorithm or chunk is given, or with TRIB_CODEC or "
             "TRIB_QUORUM; pairs: the nonzero elements as a sparse vector [auto]",
     .words = "auto blocking plan pairs"},
    {"iters", "N", tool_set_long, AT(iters),
     .help = "samples per size [as many as fit 0.5 s, 20 to 1000]", .least = 1},
    {"sample", "TIME", set_sample,
     .help = "time calls shorter than this in batches [10us]"},
    {"warmup", "N", tool_set_long, AT(warmup),
     .help = "warm-up calls [20; 2 above 1 MiB]"},
    {"sync", NULL, tool_set_switch, AT(sync),
     .help = "run a barrier before each sample, not timed"},
    {"rewrite", NULL, tool_set_switch, AT(rewrite),
     .help = "time single calls, and write the input before each, not timed"},
    PERF_BIND_ROW(AT(bind)),
    {"check", NULL, tool_set_switch, AT(check),
     .help = "compare with an oracle; exit code 1 if results are wrong, with a codec: "
             "off by more than its bound"},
    {"explain", NULL, tool_set_switch, AT(explain),
     .help = "show the chosen algorithm, chunk and codec"},
    {"overlap", NULL, tool_set_switch, AT(overlap),
     .help =
         "with allreduce: measure each stage alone, and the fraction of the slowest "
         "stage's rate that is reached; and feed the vector layer by layer during a "
         "computation"},
    {"trace", "FILE", tool_set_text, AT(trace),
     .help = "with -n: write a timeline of the ranks for Perfetto"},
    TOOL_WIDE_ROW,
    PERF_CSV_ROW(AT(csv), "one row per size"),
    PERF_JSON_ROW(AT(json)),
    {"link", "RATE", perf_set_gbps, AT(link_gbps),
     .help = "link rate of each host in each direction, such as 10gbit: recorded in "
             "results, and drawn as a limit on their page"},
    {"plot", NULL, tool_set_switch, AT(plot),
     .help = "draw time and bandwidth as bars below the table"},
    {"compare", "FILE", tool_set_text, AT(compare),
     .help = "show which rows are slower or faster than in this --json file"},
    PERF_FAIL_ABOVE_ROW(AT(fail_above)),
    {"peers", "[FOLDER]", set_peers,
     .help = "with allreduce -n: measure the installed MPIs and Gloo in turns; FOLDER "
             "has their programs"},
    {"html", "FILE", tool_set_text, AT(html),
     .help = "write a page with charts, which include --compare FILE"},
};

const struct tool_command perf_collective = {
    .name = "trib-perf",
    .usage =
        "usage: trib-perf COLLECTIVE [OPTION]…\n"
        "       trib-run -n RANKS -- trib-perf COLLECTIVE [OPTION]…\n"
        "       trib-perf put [OPTION]…             writes over a transport: see put "
        "--help\n"
        "       trib-perf codec [CODEC]… [OPTION]…  codecs alone: see codec --help\n"
        "       trib-perf agg [OPTION]…             jobs summed by a service: see "
        "agg --help\n"
        "       trib-perf groups [OPTION]…          groups of tensors: see groups "
        "--help\n"
        "       trib-perf neighbors [OPTION]…       steps of push-sum: see neighbors "
        "--help\n"
        "       trib-perf store [OPTION]…           pushes, pulls: see store --help\n"
        "       trib-perf calibrate [OPTION]…       the network: see calibrate "
        "--help\n"
        "       trib-perf compare OLD NEW [OPTION]… regressions: see compare --help\n"
        "       trib-perf report FILE… -o PAGE      a page of results: see report "
        "--help\n"
        "\n"
        "Measures a collective: allreduce, reduce, broadcast, allgather,\n"
        "reduce-scatter, gather, scatter, alltoall, scan, exscan or barrier; or\n"
        "sendrecv: each rank sends a message to the next rank and receives one from "
        "the\n"
        "previous rank. A size is the size of the longest buffer, which may have "
        "one\n"
        "block per rank. A sample is the time of the slowest rank. Times are in µs,\n"
        "bandwidths in GB/s (1e9 bytes): algbw = size / p50, busbw as in "
        "nccl-tests.\n"
        "wire is the number of bytes that a rank sends per operation, mean over "
        "ranks.\n"
        "nmse is the squared error over the squared expected values.\n",
    .ending =
        "example: trib-perf allreduce -n 2 --sizes 8,64K,16M --check\n"
        "exit code: 0 done; 1 wrong result, failed, or too slow; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .word = take_word,
    .words =
        "allreduce reduce broadcast allgather reduce-scatter gather scatter alltoall "
        "scan exscan barrier sendrecv",
};

/* Return true if the configured codec applies: see trib_allreduce in coll.h. */
static bool is_configured_kind(const struct perf_args *args)
{
    return args->coll == TRIB_ALLREDUCE &&
           (args->op == TRIB_SUM || args->op == TRIB_MEAN) &&
           (args->dtype == TRIB_F32 || args->dtype == TRIB_F16 ||
            args->dtype == TRIB_BF16);
}

const char *perf_codec_text(const struct perf_args *args)
{
    if (args->codec != NULL)
        return args->codec;
    return is_configured_kind(args) ? args->configured_codec : "none";
}

const char *perf_codec_text_of(const struct perf_args *args, size_t count)
{
    return args->codec == NULL && count < TRIB_CODEC_ELEMENTS_MIN
               ? "none"
               : perf_codec_text(args);
}

const char *perf_feedback_text(const struct perf_args *args)
{
    return args->feedback != NULL ? args->feedback : args->configured_feedback;
}

const char *perf_algorithm_text(const struct perf_args *args)
{
    return args->algorithm != NULL ? args->algorithm : args->configured_algorithm;
}

/* --- checks --- */

static bool check_sizes(struct perf_args *args, FILE *err)
{
    const bool pairs = perf_op_is_located(args->op);
    const size_t element = trib_dtype_size(args->dtype) * (pairs ? 2 : 1);

    for (size_t i = 0; i < args->sizes.n; i++) {
        if (args->sizes.bytes[i] % element == 0)
            continue;
        fprintf(err,
                "trib-perf: --sizes: %zu bytes are not a whole number of %s %s "
                "(%zu bytes each).\n",
                args->sizes.bytes[i], trib_dtype_name(args->dtype),
                pairs ? "pairs" : "elements", element);
        return false;
    }
    return true;
}

/* Refuse options that would have no effect. */
static bool check_applies(struct perf_args *args, FILE *err)
{
    trib_coll_t coll = args->coll;
    const char *name = perf_coll_name(coll);
    bool rooted = perf_coll_does(coll) & PERF_ROOT;
    bool data = args->sizes.n != 0 || args->codec != NULL || args->feedback != NULL ||
                args->quorum != NULL || args->algorithm != NULL || args->chunk != 0 ||
                args->dtype_named || args->op_named ||
                args->memory != PERF_MEMORY_ALLOC || args->in_place || args->rewrite ||
                args->density < 1 || args->input != PERF_INPUT_NORMAL;

    if (coll == TRIB_BARRIER && data) {
        fputs(
            "trib-perf: a barrier moves no data: leave out --sizes, --dtype, --op, "
            "--density, --input, --codec, --feedback, --quorum, --algorithm, --chunk, "
            "--memory, --in-place and --rewrite.\n",
            err);
        return false;
    }
    if (args->input == PERF_INPUT_SMOOTH && perf_number_is_integer(args->dtype)) {
        fprintf(err, "trib-perf: --input smooth requires floats, not %s.\n",
                trib_dtype_name(args->dtype));
        return false;
    }
    if (coll == PERF_SENDRECV &&
        (args->codec != NULL || args->quorum != NULL || args->algorithm != NULL ||
         args->chunk != 0 || args->in_place)) {
        fputs("trib-perf: sendrecv sends uncompressed messages: leave out --codec, "
              "--quorum, --algorithm, --chunk and --in-place.\n",
              err);
        return false;
    }
    if (args->op_named && !perf_coll_sums(coll)) {
        fprintf(err, "trib-perf: %s sums nothing: leave out --op.\n", name);
        return false;
    }
    if (args->root >= 0 && !rooted) {
        fprintf(err,
                "trib-perf: %s has no root: leave out --root, which applies to "
                "reduce, broadcast, gather and scatter.\n",
                name);
        return false;
    }
    args->root = args->root < 0 ? 0 : args->root;
    return true;
}

static bool check_feedback(const struct perf_args *args, FILE *err)
{
    char why[512] = "";
    if (args->feedback == NULL)
        return true;
    if (!perf_coll_sums(args->coll)) {
        fprintf(err, "trib-perf: %s sums nothing: leave out --feedback.\n",
                perf_coll_name(args->coll));
        return false;
    }
    if (trib_feedback_check(args->feedback, perf_codec_text(args), why, sizeof(why)) ==
        TRIB_OK)
        return true;
    fprintf(err, "trib-perf: --feedback %s: %s\n", args->feedback, why);
    return false;
}

/* Sparse vectors are summed uncompressed, so --call pairs takes no codec options. */
static bool check_pairs(const struct perf_args *args, FILE *err)
{
    const bool refused = args->feedback != NULL || args->quorum != NULL ||
                         args->chunk != 0 || args->in_place || args->rewrite ||
                         strcmp(perf_codec_text(args), "none") != 0;

    if (args->call != PERF_CALL_PAIRS ||
        (args->coll == TRIB_ALLREDUCE && !refused &&
         (args->op == TRIB_SUM || args->op == TRIB_MEAN)))
        return true;
    fputs("trib-perf: --call pairs requires allreduce with sum or mean: leave out "
          "--codec, --feedback, --quorum, --chunk, --in-place and --rewrite.\n",
          err);
    return false;
}

/* Check --overlap, and select a plan: its codec has the stages. */
static bool check_overlap(struct perf_args *args, FILE *err)
{
    if (!args->overlap)
        return true;
    if (args->coll == TRIB_ALLREDUCE && args->dtype == TRIB_F32 &&
        (args->op == TRIB_SUM || args->op == TRIB_MEAN) && args->quorum == NULL &&
        (args->call == PERF_CALL_AUTO || args->call == PERF_CALL_PLAN) &&
        strncmp(perf_codec_text(args), "auto", 4) != 0) {
        args->call = PERF_CALL_PLAN;
        return true;
    }
    fputs("trib-perf: --overlap requires plans of allreduce with f32, sum or mean, "
          "and one codec: leave out --call, --quorum and codec auto.\n",
          err);
    return false;
}

/* The peer programs only sum float32, and keep at most 1000 samples. */
static bool check_peers(const struct perf_args *args, FILE *err)
{
    bool fits = args->coll == TRIB_ALLREDUCE && args->ranks > 0 &&
                args->dtype == TRIB_F32 && args->op == TRIB_SUM && args->csv == NULL &&
                args->trace == NULL && args->iters <= 1000;

    for (size_t i = 0; i < args->sizes.n; i++)
        fits = fits && args->sizes.bytes[i] > 0;
    if (args->peers == NULL || fits)
        return true;
    fputs("trib-perf: --peers requires allreduce -n RANKS with f32 and sum, sizes "
          "above 0 and at most 1000 samples: leave out --csv and --trace.\n",
          err);
    return false;
}

/* Return true if the configuration has a codec or quorum that a blocking call may
 * refuse because it does not name its vector. */
static bool has_configured(const struct perf_args *args)
{
    return strcmp(perf_codec_text(args), "none") != 0 ||
           (is_configured_kind(args) && strcmp(args->configured_quorum, "all") != 0);
}

/* Check rules that involve several options. */
static bool check_together(struct perf_args *args, FILE *err)
{
    bool plan_only = args->codec != NULL || args->feedback != NULL ||
                     args->quorum != NULL || args->algorithm != NULL ||
                     args->chunk != 0 || args->parameter > 0;
    bool barrier = args->coll == TRIB_BARRIER;

    if (!args->named) {
        fputs("trib-perf: no collective: name one, such as trib-perf allreduce -n 2; "
              "see trib-perf --help.\n",
              err);
        return false;
    }
    if (!check_applies(args, err) || !check_feedback(args, err) ||
        !check_pairs(args, err) || !check_overlap(args, err) || !check_peers(args, err))
        return false;
    if (plan_only && args->call == PERF_CALL_BLOCKING) {
        fputs("trib-perf: blocking calls use codec, feedback, quorum, algorithm and "
              "chunk of the configuration, and no op with a parameter: set TRIB_* or "
              "use --call plan.\n",
              err);
        return false;
    }
    if (args->call == PERF_CALL_AUTO)
        args->call =
            plan_only || has_configured(args) ? PERF_CALL_PLAN : PERF_CALL_BLOCKING;
    if (args->ranks > 0 && args->root >= args->ranks) {
        fprintf(err, "trib-perf: --root %d: the ranks are 0 to %d.\n", args->root,
                args->ranks - 1);
        return false;
    }
    if (args->trace != NULL && args->ranks == 0) {
        fputs("trib-perf: --trace requires -n; under a launcher use trib-run "
              "--trace, or TRIB_TRACE on all ranks and trib-info --merge-trace.\n",
              err);
        return false;
    }
    if (!perf_outputs_differ(args->csv, args->json, err))
        return false;
    if (args->html != NULL && strcmp(args->html, "-") == 0) {
        fputs("trib-perf: --html requires a file name.\n", err);
        return false;
    }
    if (args->fail_above > 0 && args->compare == NULL) {
        fputs("trib-perf: --fail-above requires --compare FILE.\n", err);
        return false;
    }
    if (args->coll == TRIB_BROADCAST)
        args->in_place = true;
    const char *sizes = barrier                        ? "0"
                        : perf_op_is_located(args->op) ? "16:64M:4" /* 16: a pair of
                                                                     * f64 */
                                                       : "8:64M:4";
    char why[256];
    if (args->sizes.n == 0 &&
        !perf_sizes_parse(sizes, &args->sizes, why, sizeof(why))) {
        fprintf(err, "trib-perf: --sizes %s.\n", why);
        return false;
    }
    return check_sizes(args, err);
}

void perf_args_init(struct perf_args *args, int argc, char **argv)
{
    *args = (struct perf_args){
        .argc = argc,
        .argv = argv,
        .warmup = -1,
        .root = -1,
        .density = 1,
        .sample_s = 10e-6,
        .bind = TOOL_BIND_AUTO,
        .configured_codec = "none",
        .configured_feedback = "codec",
        .configured_quorum = "all",
        .configured_algorithm = "auto",
    };
    tool_setting("TRIB_CODEC", args->configured_codec, sizeof(args->configured_codec));
    tool_setting("TRIB_FEEDBACK", args->configured_feedback,
                 sizeof(args->configured_feedback));
    tool_setting("TRIB_QUORUM", args->configured_quorum,
                 sizeof(args->configured_quorum));
    tool_setting("TRIB_ALGORITHM", args->configured_algorithm,
                 sizeof(args->configured_algorithm));
}

int perf_args_parse(int argc, char **argv, FILE *err, struct perf_args *args)
{
    perf_args_init(args, argc, argv);
    int code = tool_parse(&perf_collective, argc, argv, args, err);
    if (code < 0 && !check_together(args, err))
        code = 2;
    if (code >= 0)
        perf_args_free(args);
    return code;
}

void perf_args_free(struct perf_args *args)
{
    perf_sizes_free(&args->sizes);
}
