/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "perf/codec/codec_perf.h"
#include "perf/common/samples.h"

#define AUTO_SECONDS 0.2
#define SAMPLE_BYTES (4 << 20) /* minimum bytes per sample, since the clock dominates
                                * short ones */

enum { LEAST = 5, MOST = 1000 };

/* Return the medians of a pass and of memcpy, measured in turns. */
static bool rate_of(struct codec_work *w, enum codec_pass pass, size_t bytes,
                    long iters, struct codec_rate *out)
{
    const long times = (long)((SAMPLE_BYTES + bytes - 1) / bytes);
    struct perf_summary here, copy;
    (void)codec_work_pass(w, PASS_MEMCPY, 1);
    (void)codec_work_pass(w, pass, 1);
    const double once = codec_work_pass(w, pass, times) * (double)times;

    if (iters == 0)
        iters = (long)fmin(fmax(AUTO_SECONDS / (2 * once), LEAST), MOST);
    double *seconds = malloc(2 * (size_t)iters * sizeof(*seconds));
    if (seconds == NULL)
        return false;
    for (long i = 0; i < iters; i++) {
        seconds[i] = codec_work_pass(w, PASS_MEMCPY, times);
        seconds[iters + i] = codec_work_pass(w, pass, times);
    }
    perf_summarise(seconds, (size_t)iters, &copy);
    perf_summarise(seconds + iters, (size_t)iters, &here);
    out->GBps = 1e-9 * (double)bytes / here.p50;
    out->ratio = copy.p50 / here.p50;
    free(seconds);
    return true;
}

static void errors_of(struct codec_work *w, const float *x, size_t n,
                      struct codec_result *out)
{
    double error = 0, x2 = 0, y2 = 0, product = 0;

    (void)codec_work_pass(w, PASS_ENCODE, 1);
    (void)codec_work_pass(w, PASS_DECODE, 1);
    const float *y = codec_work_decoded(w);
    for (size_t i = 0; i < n; i++) {
        const double d = (double)y[i] - (double)x[i];
        error += d * d;
        x2 += (double)x[i] * (double)x[i];
        y2 += (double)y[i] * (double)y[i];
        product += (double)x[i] * (double)y[i];
    }
    out->bytes_per_element = (double)codec_work_bytes(w) / (double)n;
    out->nmse = x2 > 0 ? error / x2 : 0;
    out->cosine = x2 > 0 && y2 > 0 ? product / sqrt(x2 * y2) : 0;
}

bool codec_measure(const struct codec_args *args, struct trib_codec *codec,
                   const struct codec_vector *v, struct codec_result *out,
                   struct trib_error *err)
{
    const size_t bytes = v->n * sizeof(*v->x);
    struct codec_work *w = codec_work_new(args, codec, v->x, v->n, err);
    bool ok = w != NULL;

    if (!ok)
        return false;
    *out = (struct codec_result){.text = trib_codec_info(codec)->text,
                                 .input = codec_input_name(args->input),
                                 .bytes = bytes,
                                 .threads = args->threads};
    errors_of(w, v->x, v->n, out);
    for (int pass = 0; ok && pass < PASSES; pass++) {
        if (pass == PASS_DECODE) /* encode without feedback, as the other rank does */
            (void)codec_work_pass(w, PASS_ENCODE, 1);
        if (codec_work_can(w, (enum codec_pass)pass))
            ok =
                rate_of(w, (enum codec_pass)pass, bytes, args->iters, &out->rate[pass]);
    }
    if (!ok)
        (void)trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for samples");
    codec_work_free(w);
    return ok;
}
