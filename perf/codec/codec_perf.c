/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/codec/codec_perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "perf/codec/classes.h"
#include "perf/common/output.h"

enum { RANKS = 2 }; /* whose encoded vectors are merged */

/* Use the codecs on the command line, else one per row of the codec table. */
static size_t texts_of(const struct codec_args *args, const char **texts_out)
{
    size_t n = trib_codecs_count;

    if (args->n_texts != 0) {
        for (size_t i = 0; i < args->n_texts; i++)
            texts_out[i] = args->texts[i];
        return args->n_texts;
    }
    if (n > CODEC_TEXTS_MAX)
        n = CODEC_TEXTS_MAX;
    for (size_t i = 0; i < n; i++)
        texts_out[i] = trib_codecs[i].name;
    return n;
}

/* Skip a codec that cannot encode such a vector, unless the user named it. */
static bool passes_over(const struct codec_args *args, const struct trib_error *err)
{
    return args->n_texts == 0 && err->status != TRIB_ERR_NO_MEMORY;
}

/* Create all codecs first, so that a wrong text fails before anything is measured. */
static bool make_codecs(const char *const *texts, size_t n, struct trib_codec **out)
{
    struct trib_error err = {0};

    for (size_t i = 0; i < n; i++) {
        if (trib_codec_create(texts[i], NULL, &err, &out[i]) == TRIB_OK &&
            trib_codec_for_ranks(out[i], RANKS, &err) == TRIB_OK)
            continue;
        fprintf(stderr, "trib-perf: %s.\n", trib_error_text(&err));
        return false;
    }
    return true;
}

static bool measure_size(const struct codec_args *args,
                         struct trib_codec *const *codecs, size_t n_codecs,
                         size_t bytes, size_t *n_done, struct perf_output *report)
{
    const size_t n = bytes / sizeof(float);
    float *x = codec_input_new(args, n, stderr);
    const struct codec_vector vector = {x, n};
    bool ok = x != NULL;

    for (size_t i = 0; ok && i < n_codecs; i++) {
        struct codec_result result;
        struct trib_error err = {0};
        tool_ticker_part((*n_done)++, n_codecs * args->sizes.n);
        if (codec_measure(args, codecs[i], &vector, &result, &err)) {
            tool_ticker_hide();
            codec_report_add(report, &result);
            continue;
        }
        fprintf(stderr, "trib-perf: %zu bytes: %s.\n", bytes, trib_error_text(&err));
        ok = passes_over(args, &err);
    }
    free(x);
    return ok;
}

static int measure_all(const struct codec_args *args, struct trib_codec *const *codecs,
                       size_t n_codecs)
{
    char why[4352];
    struct perf_output report;
    bool ok = true;
    size_t n_done = 0;

    if (!codec_report_open(&report, args, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    tool_ticker_begin("trib-perf codec: codecs and sizes");
    for (size_t i = 0; ok && i < args->sizes.n; i++)
        ok = measure_size(args, codecs, n_codecs, args->sizes.bytes[i], &n_done,
                          &report);
    tool_ticker_end();
    if (ok && !codec_report_finish(&report, args, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        ok = false;
    }
    perf_output_free(&report);
    return ok ? 0 : 1;
}

static int print_classes(const struct codec_args *args,
                         struct trib_codec *const *codecs, const char *const *texts,
                         size_t n)
{
    const bool to_file = args->csv != NULL && strcmp(args->csv, "-") != 0;
    FILE *f = to_file ? fopen(args->csv, "w") : args->csv != NULL ? stdout : NULL;

    if (args->csv != NULL && f == NULL) {
        fprintf(stderr, "trib-perf: %s: %s.\n", args->csv, strerror(errno));
        return 1;
    }
    bool ok = codec_classes_print(codecs, texts, n, f);
    if ((to_file ? fclose(f) : fflush(stdout)) != 0) {
        fprintf(stderr, "trib-perf: %s: %s.\n", to_file ? args->csv : "standard output",
                strerror(errno));
        ok = false;
    }
    return ok ? 0 : 1;
}

int codec_main(int argc, char **argv)
{
    const char *texts[CODEC_TEXTS_MAX];
    struct trib_codec *codecs[CODEC_TEXTS_MAX] = {NULL};
    struct codec_args args;
    int code = codec_args_parse(argc, argv, stderr, &args);

    if (code >= 0)
        return code;
    const size_t n = texts_of(&args, texts);
    if (!make_codecs(texts, n, codecs))
        code = 2;
    else
        code = args.classes ? print_classes(&args, codecs, texts, n)
                            : measure_all(&args, codecs, n);
    for (size_t i = 0; i < n; i++)
        trib_codec_destroy(codecs[i]);
    codec_args_free(&args);
    return code;
}
