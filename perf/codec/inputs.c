/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors to encode: random with a fixed seed, or read from a file.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "perf/codec/codec_perf.h"
#include "perf/common/smooth.h"

enum {
    DRAWN = 1 << 20, /* random elements; longer vectors repeat them */
    PIECES = 64, /* read from a file that is longer than the vector */
};

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
    /* A chi-square of three degrees of freedom: the squares of three more normal
     * values. The sum of two of them is exponential. */
    const double other = sqrt(-2 * log(uniform(r.word[2]))) *
                         sin(6.283185307179586 * uniform(r.word[1]));
    const double squares = other * other - 2 * log(uniform(r.word[3]));
    return normal / sqrt(squares / 3);
}

/* Return the number of float32 in a regular file; 0 for a pipe. */
static size_t length_of(FILE *f)
{
    struct stat about;

    return fstat(fileno(f), &about) == 0 && S_ISREG(about.st_mode)
               ? (size_t)about.st_size / sizeof(float)
               : 0;
}

/* Read n numbers. From a longer file, read pieces spread over all of it, since the
 * layers of a gradient differ. */
static size_t read_spread(FILE *f, float *x, size_t n)
{
    const size_t length = length_of(f), piece = (n + PIECES - 1) / PIECES;
    size_t got = 0;

    if (length <= n)
        return fread(x, sizeof(*x), n, f);
    while (got < n) {
        const size_t count = n - got < piece ? n - got : piece;
        const size_t last = n > count ? n - count : 1;
        const double share = (double)got / (double)last;
        const size_t at = (size_t)(share * (double)(length - count));
        if (fseeko(f, (off_t)(at * sizeof(*x)), SEEK_SET) != 0 ||
            fread(x + got, sizeof(*x), count, f) != count)
            return got;
        got += count;
    }
    return got;
}

static size_t read_file(const char *path, float *x, size_t n, FILE *err)
{
    FILE *f = fopen(path, "rb");
    size_t got = f == NULL ? 0 : read_spread(f, x, n);

    if (f == NULL)
        fprintf(err, "trib-perf: %s: %s.\n", path, strerror(errno));
    else if (got == 0)
        fprintf(err, "trib-perf: %s has no float32.\n", path);
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
