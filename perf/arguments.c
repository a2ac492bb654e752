/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf: one table gives parser and --help.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf.h"

/* Reads value (NULL for a switch) into args; false after a sentence on err. */
typedef bool (*set_fn)(struct perf_args *args, const char *value, FILE *err);

struct option {
    const char *name;
    const char *value; /* what stands for it in --help; NULL: a switch */
    set_fn set;
    const char *help;
};

#define MAX_NAMES 64
#define LONGEST_NAME 63

struct names {
    const char *item[MAX_NAMES];
    size_t n;
};

static bool wrong_name(FILE *err, const char *what, const char *text,
                       const struct names *names)
{
    const char *nearest = perf_name_nearest(text, names->item, names->n);
    fprintf(err, "trib-perf: there is no %s '%s'", what, text);
    if (nearest != NULL)
        fprintf(err, "; did you mean %s? Choose from", nearest);
    else
        fputs(". Choose from", err);
    for (size_t i = 0; i < names->n; i++)
        fprintf(err, "%s %s", i == 0 ? "" : ",", names->item[i]);
    fputs(".\n", err);
    return false;
}

/* --- setters --- */

static bool set_long(const char *name, const char *value, long least, long *out,
                     FILE *err)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || number < least) {
        fprintf(err, "trib-perf: %s '%s' is not a whole number of at least %ld.\n",
                name, value, least);
        return false;
    }
    *out = number;
    return true;
}

static bool set_int(const char *name, const char *value, int least, int *out, FILE *err)
{
    long number;
    if (!set_long(name, value, least, &number, err))
        return false;
    if (number > 4096) {
        fprintf(err, "trib-perf: %s '%s' is above 4096.\n", name, value);
        return false;
    }
    *out = (int)number;
    return true;
}

static bool set_sizes(struct perf_args *args, const char *value, FILE *err)
{
    char why[256];
    free(args->sizes);
    args->sizes = NULL;
    if (perf_sizes_parse(value, &args->sizes, &args->n_sizes, why, sizeof(why)))
        return true;
    fprintf(err, "trib-perf: --sizes %s.\n", why);
    return false;
}

static bool set_iters(struct perf_args *args, const char *value, FILE *err)
{
    return set_long("--iters", value, 1, &args->iters, err);
}

static bool set_warmup(struct perf_args *args, const char *value, FILE *err)
{
    return set_long("--warmup", value, 0, &args->warmup, err);
}

static bool set_sample(struct perf_args *args, const char *value, FILE *err)
{
    if (perf_time_parse(value, &args->sample_s) && args->sample_s <= 60)
        return true;
    fprintf(err, "trib-perf: --sample '%s' is not a time up to 60 s, such as 50ms.\n",
            value);
    return false;
}

static bool set_dtype(struct perf_args *args, const char *value, FILE *err)
{
    struct names names = {.n = TRIB_DTYPE_COUNT};
    if (trib_dtype_parse(value, &args->dtype) == TRIB_OK)
        return true;
    for (int i = 0; i < TRIB_DTYPE_COUNT; i++)
        names.item[i] = trib_dtype_name((trib_dtype_t)i);
    return wrong_name(err, "dtype", value, &names);
}

static bool set_op(struct perf_args *args, const char *value, FILE *err)
{
    struct names names = {.n = TRIB_OP_COUNT};
    if (trib_op_parse(value, &args->op) == TRIB_OK)
        return true;
    for (int i = 0; i < TRIB_OP_COUNT; i++)
        names.item[i] = trib_op_name((trib_op_t)i);
    return wrong_name(err, "op", value, &names);
}

static bool set_coll(struct perf_args *args, const char *value, FILE *err)
{
    struct names names = {.n = TRIB_COLL_COUNT};
    if (trib_coll_parse(value, &args->coll) == TRIB_OK)
        return true;
    for (int i = 0; i < TRIB_COLL_COUNT; i++)
        names.item[i] = trib_coll_name((trib_coll_t)i);
    return wrong_name(err, "collective", value, &names);
}

static bool set_codec(struct perf_args *args, const char *value, FILE *err)
{
    char why[512] = "";
    args->codec = value;
    if (trib_codec_check(value, why, sizeof(why)) == TRIB_OK)
        return true;
    fprintf(err, "trib-perf: --codec %s: %s\n", value, why);
    return false;
}

struct search {
    const char *name;
    bool found;
    char text[MAX_NAMES][LONGEST_NAME + 1]; /* items live only as long as the call */
    struct names names;
};

static void search_item(void *arg, const trib_item_t *item)
{
    struct search *s = arg;
    s->found = s->found || strcmp(item->name, s->name) == 0;
    if (s->names.n < MAX_NAMES) {
        char *text = s->text[s->names.n];
        snprintf(text, LONGEST_NAME + 1, "%s", item->name);
        s->names.item[s->names.n++] = text;
    }
}

static bool set_algorithm(struct perf_args *args, const char *value, FILE *err)
{
    struct search s = {.name = value};
    search_item(&s, &(trib_item_t){.name = "auto"});
    args->algorithm = value;
    if (trib_list_each(TRIB_LIST_ALGORITHMS, search_item, &s) != TRIB_OK || s.found)
        return true;
    return wrong_name(err, "algorithm", value, &s.names);
}

static bool set_chunk(struct perf_args *args, const char *value, FILE *err)
{
    if (perf_size_parse(value, &args->chunk) && args->chunk > 0)
        return true;
    fprintf(err, "trib-perf: --chunk '%s' is not a size such as 256K.\n", value);
    return false;
}

static bool set_root(struct perf_args *args, const char *value, FILE *err)
{
    return set_int("--root", value, 0, &args->root, err);
}

static bool set_ranks(struct perf_args *args, const char *value, FILE *err)
{
    return set_int("-n", value, 1, &args->ranks, err);
}

/* The place of value among the names; -1 after a sentence. */
static int choose(const char *what, const char *value, const struct names *names,
                  FILE *err)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(value, names->item[i]) == 0)
            return (int)i;
    }
    wrong_name(err, what, value, names);
    return -1;
}

static bool set_memory(struct perf_args *args, const char *value, FILE *err)
{
    static const struct names names = {{"alloc", "malloc", "register"}, 3};
    int choice = choose("memory", value, &names, err);
    args->memory = (enum perf_memory)choice;
    return choice >= 0;
}

static bool set_call(struct perf_args *args, const char *value, FILE *err)
{
    static const struct names names = {{"auto", "blocking", "plan"}, 3};
    int choice = choose("call", value, &names, err);
    args->call = (enum perf_call)choice;
    return choice >= 0;
}

static bool set_bind(struct perf_args *args, const char *value, FILE *err)
{
    static const struct names names = {{"none", "core"}, 2};
    int choice = choose("binding", value, &names, err);
    args->bind = (enum perf_bind)choice;
    return choice >= 0;
}

static bool set_csv(struct perf_args *args, const char *value, FILE *err)
{
    (void)err;
    args->csv = value;
    return true;
}

static bool set_json(struct perf_args *args, const char *value, FILE *err)
{
    (void)err;
    args->json = value;
    return true;
}

static bool set_in_place(struct perf_args *args, const char *value, FILE *err)
{
    (void)value;
    (void)err;
    args->in_place = true;
    return true;
}

static bool set_sync(struct perf_args *args, const char *value, FILE *err)
{
    (void)value;
    (void)err;
    args->sync = true;
    return true;
}

static bool set_rewrite(struct perf_args *args, const char *value, FILE *err)
{
    (void)value;
    (void)err;
    args->rewrite = true;
    return true;
}

static bool set_check(struct perf_args *args, const char *value, FILE *err)
{
    (void)value;
    (void)err;
    args->check = true;
    return true;
}

static bool set_explain(struct perf_args *args, const char *value, FILE *err)
{
    (void)value;
    (void)err;
    args->explain = true;
    return true;
}

static const struct option options[] = {
    {"-n", "RANKS", set_ranks,
     "start so many ranks on this host; without it a launcher has"},
    {"--sizes", "LIST", set_sizes, "bytes: 8,64K,16M or from:to:factor [8:64M:4]"},
    {"--dtype", "NAME", set_dtype, "f32 f64 f16 bf16 i8 i32 i64 [f32]"},
    {"--op", "NAME", set_op, "sum mean min max prod [sum]"},
    {"--root", "RANK", set_root, "of reduce and broadcast [0]"},
    {"--codec", "TEXT", set_codec,
     "such as topk:ratio=0.01; trib-info --codecs lists them"},
    {"--algorithm", "NAME", set_algorithm,
     "such as ring; trib-info --algorithms lists them"},
    {"--chunk", "SIZE", set_chunk, "bytes of a chunk"},
    {"--memory", "KIND", set_memory, "alloc (trib_alloc), malloc, register [alloc]"},
    {"--in-place", NULL, set_in_place, "input and result share a buffer"},
    {"--call", "KIND", set_call,
     "blocking, plan, auto: plan if codec, algorithm or chunk is given [auto]"},
    {"--iters", "N", set_iters, "samples a size [as many as fit 0.5 s, 20 to 1000]"},
    {"--sample", "TIME", set_sample,
     "calls shorter than this are timed in batches [10us]"},
    {"--warmup", "N", set_warmup, "calls before the first sample [20; 2 above 1 MiB]"},
    {"--sync", NULL, set_sync, "a barrier before each sample, outside its time"},
    {"--rewrite", NULL, set_rewrite,
     "write the input before each sample of one call, outside its time"},
    {"--bind", "HOW", set_bind, "core: one core a rank, in turn; none [none]"},
    {"--check", NULL, set_check,
     "compare with an oracle; exit code 1 if an element is wrong"},
    {"--explain", NULL, set_explain,
     "say which algorithm, chunk and codec were chosen"},
    {"--csv", "FILE", set_csv, "one row a size; - is standard output"},
    {"--json", "FILE", set_json,
     "results with a description of the machine; - likewise"},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static void print_help(void)
{
    puts(
        "usage: trib-perf COLLECTIVE [OPTION]…\n"
        "       trib-run -n RANKS -- trib-perf COLLECTIVE [OPTION]…\n"
        "\n"
        "Times a collective: allreduce, reduce, broadcast, allgather, reduce-scatter\n"
        "or barrier. A size is that of the whole vector, also for allgather and\n"
        "reduce-scatter. A sample counts as long as the slowest rank took. Times\n"
        "are in µs, bandwidths in GB/s (1e9 bytes): algbw = size / p50, busbw as\n"
        "nccl-tests define it. wire is what a rank sends in one operation, in bytes,\n"
        "mean over ranks. nmse is the squared error over the squared expected values.\n");
    for (size_t i = 0; i < N_OPTIONS; i++)
        printf("  %-12s %-6s %s\n", options[i].name,
               options[i].value == NULL ? "" : options[i].value, options[i].help);
    puts("  --help, --version\n"
         "\n"
         "example: trib-perf allreduce -n 2 --sizes 8,64K,16M --bind core --check\n"
         "exit code: 0 done; 1 wrong result or failed; 2 wrong arguments");
}

const char *perf_codec_text(const struct perf_args *args)
{
    return args->codec != NULL ? args->codec : args->configured_codec;
}

const char *perf_algorithm_text(const struct perf_args *args)
{
    return args->algorithm != NULL ? args->algorithm : args->configured_algorithm;
}

/* --- the whole --- */

static const struct option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

static bool unknown_option(const char *text, FILE *err)
{
    struct names names = {.n = N_OPTIONS};
    for (size_t i = 0; i < N_OPTIONS; i++)
        names.item[i] = options[i].name;
    const char *nearest = perf_name_nearest(text, names.item, names.n);
    fprintf(err, "trib-perf: there is no option '%s'", text);
    if (nearest != NULL)
        fprintf(err, "; did you mean %s?", nearest);
    else
        fputs(";", err);
    fputs(" trib-perf --help lists them.\n", err);
    return false;
}

/* Reads the option at argv[*at] and moves *at to its last word. */
static bool parse_option(struct perf_args *args, int *at, FILE *err)
{
    const char *text = args->argv[*at];
    size_t length = strcspn(text, "=");
    const struct option *option = find_option(text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;

    if (option == NULL)
        return unknown_option(text, err);
    if (option->value == NULL && value != NULL) {
        fprintf(err, "trib-perf: %s takes no value.\n", option->name);
        return false;
    }
    if (option->value != NULL && value == NULL) {
        if (*at + 1 >= args->argc) {
            fprintf(err, "trib-perf: %s needs a value: %s.\n", option->name,
                    option->value);
            return false;
        }
        value = args->argv[++*at];
    }
    return option->set(args, value, err);
}

static bool check_sizes(struct perf_args *args, FILE *err)
{
    size_t element = trib_dtype_size(args->dtype);
    for (size_t i = 0; i < args->n_sizes; i++) {
        if (args->sizes[i] % element == 0)
            continue;
        fprintf(err,
                "trib-perf: --sizes: %zu bytes are not a whole number of %s elements "
                "(%zu bytes each).\n",
                args->sizes[i], trib_dtype_name(args->dtype), element);
        return false;
    }
    return true;
}

/* What only shows once all options are known. */
static bool check_together(struct perf_args *args, FILE *err)
{
    bool plan_only = args->codec != NULL || args->algorithm != NULL || args->chunk != 0;
    bool barrier = args->coll == TRIB_BARRIER;

    if (barrier && (args->n_sizes != 0 || plan_only)) {
        fputs("trib-perf: a barrier moves no data: leave out --sizes, --codec, "
              "--algorithm and --chunk.\n",
              err);
        return false;
    }
    if (plan_only && args->call == PERF_CALL_BLOCKING) {
        fputs("trib-perf: blocking calls take codec, algorithm and chunk from the "
              "configuration: set TRIB_* or use --call plan.\n",
              err);
        return false;
    }
    if (args->call == PERF_CALL_AUTO)
        args->call = plan_only ? PERF_CALL_PLAN : PERF_CALL_BLOCKING;
    if (args->ranks > 0 && args->root >= args->ranks) {
        fprintf(err, "trib-perf: --root %d: the ranks are 0 to %d.\n", args->root,
                args->ranks - 1);
        return false;
    }
    if (args->csv != NULL && args->json != NULL && strcmp(args->csv, args->json) == 0) {
        fprintf(err, "trib-perf: --csv and --json cannot both write to %s.\n",
                args->csv[0] == '-' ? "standard output" : args->csv);
        return false;
    }
    if (args->coll == TRIB_BROADCAST)
        args->in_place = true;
    if (args->n_sizes == 0 && !set_sizes(args, barrier ? "0" : "8:64M:4", err))
        return false;
    return check_sizes(args, err);
}

static bool parse_all(struct perf_args *args, FILE *err)
{
    bool named = false;
    for (int i = 1; i < args->argc; i++) {
        const char *text = args->argv[i];
        if (text[0] == '-') {
            if (!parse_option(args, &i, err))
                return false;
        } else if (named) {
            fprintf(err, "trib-perf: '%s': one collective at a time.\n", text);
            return false;
        } else if (!set_coll(args, text, err)) {
            return false;
        } else {
            named = true;
        }
    }
    if (!named) {
        fputs("trib-perf: say which collective, such as trib-perf allreduce -n 2; "
              "trib-perf --help tells more.\n",
              err);
        return false;
    }
    return check_together(args, err);
}

int perf_args_parse(int argc, char **argv, FILE *err, struct perf_args *args_out)
{
    struct perf_args args = {
        .argc = argc,
        .argv = argv,
        .warmup = -1,
        .sample_s = 10e-6,
        .configured_codec = "none",
        .configured_algorithm = "auto",
    };
    perf_setting("TRIB_CODEC", args.configured_codec, sizeof(args.configured_codec));
    perf_setting("TRIB_ALGORITHM", args.configured_algorithm,
                 sizeof(args.configured_algorithm));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("trib-perf %s\n", trib_version());
            return 0;
        }
    }
    if (!parse_all(&args, err)) {
        free(args.sizes);
        return 2;
    }
    *args_out = args;
    return -1;
}

void perf_args_free(struct perf_args *args)
{
    free(args->sizes);
    args->sizes = NULL;
    args->n_sizes = 0;
}
