/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classes of biased compression of Beznosikov et al. (arXiv 2002.12410) for an
 * operator C on vectors x:
 *
 *     B1(a, b)   a |x|^2 <= E|C(x)|^2 <= b <E C(x), x>
 *     B2(g, b)   g |x|^2 <= <E C(x), x>, and E|C(x)|^2 <= b <E C(x), x>
 *     B3(d)      E|C(x) - x|^2 <= (1 - 1/d) |x|^2
 *
 * Proved constants follow from the codec's description by trib_codec_describe. Measured
 * constants are the worst over vectors that are hard for one codec or another.
 */
#ifndef PERF_CODEC_CLASSES_H
#define PERF_CODEC_CLASSES_H

#include <stdbool.h>
#include <stdio.h>

struct trib_codec;

enum { CLASSES_ELEMENTS = 4096, CLASSES_VECTORS = 9, CLASSES_DRAWS = 200 };

/* Constants of the three classes; 0: not known to be in the class. */
struct codec_classes {
    double alpha, beta, gamma, delta;
};

/* Figures of one vector in units of |x|^2: the mean over the draws, and its distance
 * from the expectation at most (six deviations). */
struct codec_moments {
    double square, square_off; /* |C(x)|^2 */
    double product, product_off; /* <C(x), x> */
    double error, error_off; /* |C(x) - x|^2 */
};

/** codec_classes_have - return false if the result is not a vector like x: votes, and
 * codecs that learn. */
bool codec_classes_have(const struct trib_codec *codec);

/** codec_classes_proved - return the constants that follow from a codec's error and
 * selection. */
struct codec_classes codec_classes_proved(const char *text);

/** codec_moments_of - measure vector number v; false: out of memory. */
bool codec_moments_of(const struct trib_codec *codec, int v, int draws,
                      struct codec_moments *out);

/** codec_classes_hold - return true if the inequalities hold, else name the failing one
 * in *why_out. */
bool codec_classes_hold(const struct codec_classes *proved,
                        const struct codec_moments *moments, const char **why_out);

/** codec_classes_measured - return the worst over all vectors; false: out of memory. */
bool codec_classes_measured(const struct trib_codec *codec, struct codec_classes *out);

/**
 * codec_classes_print - print the table of the codecs, or rows separated by ; to csv.
 *
 * returns  false after a message on stderr
 */
bool codec_classes_print(struct trib_codec *const *codecs, const char *const *texts,
                         size_t n, FILE *csv);

#endif
