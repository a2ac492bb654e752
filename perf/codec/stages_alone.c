/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stages of one codec measured alone, for trib-perf allreduce --overlap.
 */
#include <math.h>
#include <stdlib.h>

#include "perf/codec/codec_perf.h"

enum { PASSES_TAKEN = 7, CHUNK = 256 << 10 };

/* Return the minimum seconds of a pass over the vector. */
static double seconds_of(struct codec_work *w, enum codec_pass pass)
{
    double least = HUGE_VAL;

    (void)codec_work_pass(w, pass, 1);
    (void)codec_work_pass(w, pass, 1); /* its thresholds depend on the first pass */
    for (int i = 0; i < PASSES_TAKEN; i++)
        least = fmin(least, codec_work_pass(w, pass, 1));
    return least;
}

static void take_stages(struct codec_work *w, bool coded, bool feedback,
                        struct codec_stages *out)
{
    const enum codec_pass encode =
        feedback && codec_work_can(w, PASS_ENCODE_EF) ? PASS_ENCODE_EF : PASS_ENCODE;
    const enum codec_pass sum = codec_work_can(w, PASS_MERGE) ? PASS_MERGE
                                : coded                       ? PASS_DECODE_ADD
                                                              : PASS_ADD;

    if (coded) {
        out->encode_s = seconds_of(w, encode);
        out->decode_s = seconds_of(w, PASS_DECODE);
    }
    out->sum_s = seconds_of(w, sum);
}

static bool tell(const struct trib_error *err, char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "%s", trib_error_text(err));
    return false;
}

bool codec_stages_alone(const struct codec_staged *what, struct codec_stages *out,
                        char *why, size_t why_bytes)
{
    const struct codec_args args = {.chunk = CHUNK, .threads = 1};
    struct trib_error err = {0};
    struct trib_codec *codec = NULL;
    float *x = codec_input_new(&args, what->n, stderr);

    if (x == NULL)
        (void)trib_fail(&err, TRIB_ERR_NO_MEMORY, "no memory for %zu elements",
                        what->n);
    else if (trib_codec_create(what->text, NULL, &err, &codec) == TRIB_OK)
        (void)trib_codec_for_ranks(codec, what->ranks, &err);
    struct codec_work *w = codec && err.status == TRIB_OK
                               ? codec_work_new(&args, codec, x, what->n, &err)
                               : NULL;
    const bool ok = w != NULL;
    if (ok) {
        const bool coded = !(trib_codec_info(codec)->flags & TRIB_CODEC_IDENTITY);
        take_stages(w, coded, what->feedback, out);
        codec_work_free(w);
    }
    trib_codec_destroy(codec);
    free(x);
    return ok || tell(&err, why, why_bytes);
}
