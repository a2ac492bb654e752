/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors to encode: drawn, the same ones every time, or read from a file.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "perf/codec/codec_perf.h"
#include "perf/smooth.h"

enum { DRAWN = 1 << 20 }; /* of these it is repeated */

static double uniform(uint32_t bits)
{
    return ((double)bits + 0.5) * 0x1p-32;
}

static double draw(enum codec_input input, uint64_t i)
{
    const struct trib_rng rng = {.seed = 1, .stream = (uint32_t)input};
    const struct trib_rng_block r = trib_rng_draw4(rng, i);
    const double radius = sqrt(-2 * log(uniform(r.word[0])));
    const double normal = radius * cos(6.283185307179586 * uniform(r.word[1]));

    if (input == INPUT_NORMAL)
        return normal;
    if (input == INPUT_SMOOTH)
        return perf_smooth(0, i, normal);
    if (input == INPUT_LAPLACE)
        return r.word[2] & 1 ? log(uniform(r.word[0])) : -log(uniform(r.word[0]));
    /* three more normal values' squares: those of two are exponential */
    const double other = sqrt(-2 * log(uniform(r.word[2]))) *
                         sin(6.283185307179586 * uniform(r.word[1]));
    const double squares = other * other - 2 * log(uniform(r.word[3]));
    return normal / sqrt(squares / 3);
}

static size_t read_file(const char *path, float *x, size_t n, FILE *err)
{
    FILE *f = fopen(path, "rb");
    size_t got = f == NULL ? 0 : fread(x, sizeof(*x), n, f);

    if (f == NULL)
        fprintf(err, "trib-perf: %s: %s.\n", path, strerror(errno));
    else if (got == 0)
        fprintf(err, "trib-perf: %s has no float32 in it.\n", path);
    if (f != NULL)
        fclose(f);
    return got;
}

float *codec_input_new(const struct codec_args *args, size_t n, FILE *err)
{
    float *x = aligned_alloc(64, (n * sizeof(*x) + 63) / 64 * 64);
    size_t have = n < DRAWN ? n : DRAWN;

    if (x == NULL) {
        fprintf(err, "trib-perf: no memory for %zu elements.\n", n);
        return NULL;
    }
    if (args->input == INPUT_FILE) {
        have = read_file(args->file, x, n, err);
    } else {
        for (size_t i = 0; i < have; i++)
            x[i] = (float)draw(args->input, i);
    }
    if (have == 0) {
        free(x);
        return NULL;
    }
    for (size_t i = have; i < n; i++)
        x[i] = x[i - have];
    return x;
}
