/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classes of biased compression of Beznosikov et al. (arXiv 2002.12410), of an
 * operator C on vectors x:
 *
 *     B1(a, b)   a |x|^2 <= E|C(x)|^2 <= b <E C(x), x>
 *     B2(g, b)   g |x|^2 <= <E C(x), x>, and E|C(x)|^2 <= b <E C(x), x>
 *     B3(d)      E|C(x) - x|^2 <= (1 - 1/d) |x|^2
 *
 * What is proved follows from what trib_codec_describe says of a codec, and what is
 * measured is the worst over vectors that are hard for one codec or another.
 */
#ifndef PERF_CODEC_CLASSES_H
#define PERF_CODEC_CLASSES_H

#include <stdbool.h>
#include <stdio.h>

struct trib_codec;

enum { CLASSES_ELEMENTS = 4096, CLASSES_VECTORS = 9, CLASSES_DRAWS = 200 };

/* Constants of the three classes; 0: the codec is in none, as far as is known. */
struct codec_classes {
    double alpha, beta, gamma, delta;
};

/* One vector's figures, each in |x|^2: mean of the draws, and how far that may be from
 * the expectation (six deviations). */
struct codec_moments {
    double square, square_off; /* |C(x)|^2 */
    double product, product_off; /* <C(x), x> */
    double error, error_off; /* |C(x) - x|^2 */
};

/** codec_classes_have - false for codecs whose result is no vector like x: votes, and
 * those that learn. */
bool codec_classes_have(const struct trib_codec *codec);

/** codec_classes_proved - of a codec text: what follows from its error and
 * selection. */
struct codec_classes codec_classes_proved(const char *text);

/** codec_moments_of - of vector number v; false: no memory. */
bool codec_moments_of(const struct trib_codec *codec, int v, int draws,
                      struct codec_moments *out);

/** codec_classes_hold - true if the inequalities hold; else what fails is in
 * *why_out. */
bool codec_classes_hold(const struct codec_classes *proved,
                        const struct codec_moments *moments, const char **why_out);

/** codec_classes_measured - the worst over all vectors; false: no memory. */
bool codec_classes_measured(const struct trib_codec *codec, struct codec_classes *out);

/**
 * codec_classes_print - the table of some codecs, or rows with ; between fields.
 *
 * returns  false after a sentence on stderr
 */
bool codec_classes_print(struct trib_codec *const *codecs, const char *const *texts,
                         size_t n, FILE *csv);

#endif
