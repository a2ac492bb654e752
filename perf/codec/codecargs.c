/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf codec.
 */
#include <stdio.h>
#include <string.h>

#include "perf/codec/codec_perf.h"
#include "perf/common/setters.h"

enum { CHUNK = 256 << 10 }; /* bytes */

/* Names in the order of enum codec_input. */
static const struct tool_names inputs = {{"normal", "laplace", "student", "smooth"}, 4};

const char *codec_input_name(enum codec_input input)
{
    return input == INPUT_FILE ? "file" : inputs.item[input];
}

static bool take_codec(const struct tool_given *given, const char *value)
{
    struct codec_args *args = given->args;

    if (args->n_texts == CODEC_TEXTS_MAX)
        return tool_say(given, "more than %d codecs", CODEC_TEXTS_MAX);
    args->texts[args->n_texts++] = value;
    return true;
}

static bool set_input(const struct tool_given *given, const char *value)
{
    struct codec_args *args = given->args;

    if (strchr(value, '/') != NULL || strchr(value, '.') != NULL) {
        args->input = INPUT_FILE;
        args->file = value;
        return true;
    }
    for (size_t i = 0; i < inputs.n; i++) {
        if (strcmp(value, inputs.item[i]) != 0)
            continue;
        args->input = (enum codec_input)i;
        return true;
    }
    return tool_wrong_name(given, "input", value, &inputs);
}

static bool set_chunk(const struct tool_given *given, const char *value)
{
    struct codec_args *args = given->args;

    if (perf_size_parse(value, &args->chunk) && args->chunk >= 256 &&
        args->chunk % sizeof(float) == 0)
        return true;
    return tool_refuse(given, value, "is not a size of 256 or more, such as 256K");
}

#define AT(field) offsetof(struct codec_args, field)

static const struct tool_option options[] = {
    {"sizes", "LIST", perf_set_sizes, AT(sizes),
     .help = "bytes of float32: within the cache and beyond [256K,64M]"},
    {"chunk", "SIZE", set_chunk, .help = "bytes of float32 per chunk [256K]"},
    {"threads", "N", tool_set_int, AT(threads),
     .help = "threads that share the chunks [1]", .least = 1,
     .most = CODEC_THREADS_MAX},
    {"input", "WHAT", set_input,
     .help = "normal, laplace, student (3 degrees of freedom), smooth (three waves of "
             "997 to 40009 elements, noise of 0.001), or a file of float32; a longer "
             "file is sampled in pieces from all of it [normal]",
     .words = "normal laplace student smooth"},
    {"iters", "N", tool_set_long, AT(iters),
     .help = "passes over the vector [as many as fit 0.2 s, at least 5]", .least = 1},
    {"classes", NULL, tool_set_switch, AT(classes),
     .help = "measure and prove constants of the classes of biased compression "
             "(arXiv 2002.12410) instead of times"},
    TOOL_WIDE_ROW,
    PERF_CSV_ROW(AT(csv), "one row per codec and size"),
    PERF_JSON_ROW(AT(json)),
};

const struct tool_command codec_command = {
    .name = "trib-perf codec",
    .usage =
        "usage: trib-perf codec [CODEC]… [OPTION]…   without a codec: one per row\n"
        "\n"
        "Measures codecs on this host, without ranks. Rates are GB/s (1e9 bytes) of "
        "the\n"
        "float32 vector, 4 bytes per element, each followed by its ratio to memcpy "
        "of\n"
        "that vector, measured in turns. add is y += x, which moves 12 bytes per\n"
        "element, the minimum of error feedback. encode_ef is with error feedback; "
        "merge\n"
        "sums two encoded vectors without decoding; nmse is |C(x)-x|^2 / |x|^2; "
        "cosine\n"
        "is of the angle between C(x) and x.\n",
    .ending =
        "example: trib-perf codec int8 topk:ratio=0.01 --threads 2 --csv codecs.csv\n"
        "exit code: 0 done; 1 failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .word = take_codec,
    .words = "@codecs",
};

/* Check rules that involve several options. */
static bool check_together(struct codec_args *args, FILE *err)
{
    if (args->classes && (args->sizes.n || args->chunk != CHUNK || args->threads != 1 ||
                          args->iters || args->input || args->file)) {
        fputs("trib-perf: --classes uses its own vectors: leave out --sizes, --chunk, "
              "--threads, --iters and --input.\n",
              err);
        return false;
    }
    if (args->classes && args->json != NULL) {
        fputs("trib-perf: --classes prints a table or --csv, but no --json.\n", err);
        return false;
    }
    if (!perf_outputs_differ(args->csv, args->json, err))
        return false;
    return perf_float_sizes(&args->sizes, "256K,64M", err);
}

int codec_args_parse(int argc, char **argv, FILE *err, struct codec_args *args)
{
    *args =
        (struct codec_args){.argc = argc, .argv = argv, .threads = 1, .chunk = CHUNK};
    int code = tool_parse(&codec_command, argc - 1, argv + 1, args, err);

    if (code < 0 && !check_together(args, err))
        code = 2;
    if (code >= 0)
        codec_args_free(args);
    return code;
}

void codec_args_free(struct codec_args *args)
{
    perf_sizes_free(&args->sizes);
}
