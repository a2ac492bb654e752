/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost - measure the minimum cost of a rank's part of a compressed sum.
 *
 *     cost CODEC [BYTES [PASSES]]      bytes of a vector [25000000], passes [7]
 *
 * One thread encodes a vector in chunks as plans do, with error feedback if the codec
 * has it, and writes a result vector once. Prints the nanoseconds of processor time per
 * element, median of the passes. bench/cost.sh compares it with whole sums.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/codec/codec_perf.h"
#include "perf/common/samples.h"

enum { CHUNK_BYTES = 256 << 10, PASSES_MOST = 1000 };

struct cost {
    struct codec_work *work;
    enum codec_pass pass;
    char *result;
    size_t bytes;
};

static double one_pass(const struct cost *c)
{
    const double begin = perf_cpu_seconds();

    (void)codec_work_pass(c->work, c->pass, 1);
    memset(c->result, 0, c->bytes);
    __asm__ volatile("" ::: "memory"); /* keep the writes of a result that is not
                                        * read */
    return perf_cpu_seconds() - begin;
}

static double median_ns(const struct cost *c, size_t passes)
{
    double seconds[PASSES_MOST];
    struct perf_summary summary;

    (void)one_pass(c); /* warm up: pages, and the threshold that a plan keeps */
    (void)one_pass(c);
    for (size_t i = 0; i < passes; i++)
        seconds[i] = one_pass(c);
    perf_summarise(seconds, passes, &summary);
    return 1e9 * summary.p50 / (double)(c->bytes / sizeof(float));
}

static int measure(const char *text, size_t bytes, size_t passes)
{
    const struct codec_args args = {.chunk = CHUNK_BYTES, .threads = 1};
    const size_t n = bytes / sizeof(float);
    struct trib_error err = {0};
    struct trib_codec *codec = NULL;
    struct cost c = {.bytes = n * sizeof(float)};
    float *x = NULL;

    if (trib_codec_create(text, NULL, &err, &codec) == TRIB_OK &&
        trib_codec_for_ranks(codec, 2, &err) == TRIB_OK &&
        (x = codec_input_new(&args, n, stderr)) != NULL &&
        (c.result = malloc(bytes)) != NULL &&
        (c.work = codec_work_new(&args, codec, x, n, &err)) != NULL) {
        const bool feedback = trib_codec_info(codec)->flags & TRIB_CODEC_FEEDBACK;
        c.pass = feedback ? PASS_ENCODE_EF : PASS_ENCODE;
        printf("%.4f\n", median_ns(&c, passes));
    } else {
        fprintf(stderr, "cost: %s: %s.\n", text, trib_error_text(&err));
    }
    const int code = c.work != NULL ? 0 : 1;
    if (c.work != NULL)
        codec_work_free(c.work);
    free(c.result);
    free(x);
    trib_codec_destroy(codec);
    return code;
}

int main(int argc, char **argv)
{
    const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 25000000;
    const size_t passes = argc > 3 ? strtoul(argv[3], NULL, 10) : 7;

    if (argc < 2 || argc > 4 || bytes < sizeof(float) || passes < 1 ||
        passes > PASSES_MOST) {
        fprintf(stderr, "usage: cost CODEC [BYTES [PASSES]]: at least 4 bytes, 1 to %d "
                        "passes\n", PASSES_MOST);
        return 2;
    }
    return measure(argv[1], bytes, passes);
}
