/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf codec.
 */
#include <stdio.h>
#include <string.h>

#include "perf/codec/codec_perf.h"
#include "perf/options.h"

static const struct perf_names inputs = {{"normal", "laplace", "student", "smooth"}, 4};

const char *codec_input_name(enum codec_input input)
{
    return input == INPUT_FILE ? "file" : inputs.item[input];
}

static bool take_codec(void *to, const char *value, FILE *err)
{
    struct codec_args *args = to;

    if (args->n_texts == CODEC_TEXTS_MAX) {
        fprintf(err, "trib-perf: more than %d codecs.\n", CODEC_TEXTS_MAX);
        return false;
    }
    args->texts[args->n_texts++] = value;
    return true;
}

static bool set_input(const struct perf_option *option, void *to, const char *value,
                      FILE *err)
{
    struct codec_args *args = to;

    if (strchr(value, '/') != NULL || strchr(value, '.') != NULL) {
        args->input = INPUT_FILE;
        args->file = value;
        return true;
    }
    int choice = perf_choose(option->name, value, &inputs, err);
    if (choice >= 0)
        args->input = (enum codec_input)choice;
    return choice >= 0;
}

static bool set_chunk(const struct perf_option *option, void *to, const char *value,
                      FILE *err)
{
    struct codec_args *args = to;

    if (perf_size_parse(value, &args->chunk) && args->chunk >= 256 &&
        args->chunk % sizeof(float) == 0)
        return true;
    fprintf(err, "trib-perf: %s '%s' is not a size of 256 or more, such as 256K.\n",
            option->name, value);
    return false;
}

#define AT(field) offsetof(struct codec_args, field)

static const struct perf_option options[] = {
    {"--sizes", "LIST", perf_set_sizes, AT(sizes), 0,
     "bytes of float32: in the cache and beyond it [256K,64M]"},
    {"--chunk", "SIZE", set_chunk, 0, 0,
     "bytes of float32 that are encoded at once [256K]"},
    {"--threads", "N", perf_set_int, AT(threads), 1, "chunks go round among them [1]"},
    {"--input", "WHAT", set_input, 0, 0,
     "normal, laplace, student (3 degrees of freedom), smooth (three waves of 997 to "
     "40009 elements, noise of 0.001), or a file of float32 [normal]"},
    {"--iters", "N", perf_set_long, AT(iters), 1,
     "passes over the vector [as many as fit 0.2 s, at least 5]"},
    {"--classes", NULL, perf_set_switch, AT(classes), 0,
     "no times: constants of the classes of biased compression (arXiv 2002.12410), as "
     "measured and as proved"},
    {"--csv", "FILE", perf_set_text, AT(csv), 0,
     "one row a codec and size; - is standard output"},
    {"--json", "FILE", perf_set_text, AT(json), 0,
     "results with a description of the machine; - likewise"},
};

static const struct perf_command command = {
    .name = "trib-perf codec",
    .usage =
        "usage: trib-perf codec [CODEC]… [OPTION]…   without a codec: one of each row\n"
        "\n"
        "Times codecs on this host, without ranks. Rates are GB/s (1e9 bytes) of the "
        "float32\n"
        "vector, 4 bytes an element, and behind each its ratio to memcpy of that "
        "vector, in\n"
        "turns with it. add is y += x, which moves 12 bytes an element, as error "
        "feedback must\n"
        "at least; encode_ef is with error feedback, merge the sum of two ranks' words "
        "that\n"
        "need no decoding, nmse |C(x)-x|^2 / |x|^2, cosine that of the angle between "
        "C(x)\n"
        "and x.\n",
    .ending =
        "example: trib-perf codec int8 topk:ratio=0.01 --threads 2 --csv codecs.csv\n"
        "exit code: 0 done; 1 failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .word = take_codec,
};

/* Checks that need all options. */
static bool check_together(struct codec_args *args, FILE *err)
{
    if (args->threads > CODEC_THREADS_MAX) {
        fprintf(err, "trib-perf: --threads %d: at most %d.\n", args->threads,
                CODEC_THREADS_MAX);
        return false;
    }
    if (args->classes && args->json != NULL) {
        fputs("trib-perf: --classes has a table and --csv, and no --json.\n", err);
        return false;
    }
    if (!perf_outputs_differ(args->csv, args->json, err))
        return false;
    return perf_float_sizes(&args->sizes, "256K,64M", err);
}

int codec_args_parse(int argc, char **argv, FILE *err, struct codec_args *args_out)
{
    struct codec_args args = {
        .argc = argc, .argv = argv, .threads = 1, .chunk = 256 << 10};
    int code = perf_command_parse(&command, argc - 1, argv + 1, &args, err);

    if (code < 0 && !check_together(&args, err))
        code = 2;
    if (code >= 0) {
        codec_args_free(&args);
        return code;
    }
    *args_out = args;
    return -1;
}

void codec_args_free(struct codec_args *args)
{
    perf_sizes_free(&args->sizes);
}
