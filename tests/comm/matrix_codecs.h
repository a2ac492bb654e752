/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codecs of test_matrix, and the tolerance of their results: first codecs with
 * sharp bounds, then the first text of each other row of the table, whose total error
 * is compared with trib_codec_describe.
 */
#ifndef TESTS_COMM_MATRIX_CODECS_H
#define TESTS_COMM_MATRIX_CODECS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/info.h>

/* One element: the maximum number of encodings, and the sum of its absolute inputs. */
struct matrix_element {
    double hops;
    double magnitude;
    int ranks;
    bool moved_only; /* nothing is summed */
};

struct matrix_codec {
    const char *text;
    bool any_op;
    bool noisy; /* its normalised error grows with the number of ranks */
    double (*tolerance)(const struct matrix_element *e);
    double error; /* with tolerance_unknown: from trib_codec_sheet_t */
};

enum { MATRIX_CODECS_MAX = 64 };

static inline double tolerance_f16(const struct matrix_element *e)
{
    return e->hops * 0x1p-10 * e->magnitude + e->hops * 0x1p-24;
}

static inline double tolerance_bf16(const struct matrix_element *e)
{
    return e->hops * 0x1p-7 * e->magnitude;
}

/* An eighth, or a step below the least normal number of the value encoded as 448. */
static inline double tolerance_f8(const struct matrix_element *e)
{
    return (pow(1.125, e->hops) - 1) * e->magnitude +
           e->hops * 0x1p-9 * 8 * e->ranks / 224;
}

/* Each encoded chunk is off by at most a bucket's norm / levels. */
static inline double tolerance_qsgd(const struct matrix_element *e)
{
    return e->hops * sqrt(512) * 8 * e->ranks / 127;
}

/* Each contribution is off by at most a norm, which may be 8 (f16) or more, /
 * levels. */
static inline double tolerance_int8(const struct matrix_element *e)
{
    return 1.01 * 8 * e->ranks / 127;
}

static inline double tolerance_int16(const struct matrix_element *e)
{
    return 1.01 * 8 * e->ranks / 32767 + 1e-5 * e->magnitude;
}

/* Rotated elements are below 64, of 8 by 8; after rotating back, the errors of 64 may
 * be in one. */
static inline double tolerance_rotated(const struct matrix_element *e)
{
    return 1.01 * 8 * 64 * e->ranks / 32767 + 1e-5 * e->magnitude;
}

static inline double tolerance_uniform_thc(const struct matrix_element *e)
{
    return 1.01 * 16 * e->ranks / 255;
}

/* Each encoded value is at most twice the input. */
static inline double tolerance_natural(const struct matrix_element *e)
{
    return pow(2, e->hops) * e->magnitude;
}

/* Elements that are not selected are missing; the others are f16 values. */
static inline double tolerance_topk(const struct matrix_element *e)
{
    return (e->moved_only ? 0x1p-10 : 1.001) * e->magnitude + 1e-6;
}

static inline double tolerance_topk_natural(const struct matrix_element *e)
{
    return 1.001 * e->magnitude;
}

static inline double tolerance_exact(const struct matrix_element *e)
{
    return e->hops * 0x1p-22 * e->magnitude;
}

/* The bound applies to the result, whatever the number of ranks. */
static inline double tolerance_bound(const struct matrix_element *e)
{
    return 0.01 + 0x1p-22 * e->magnitude;
}

/* An element is sent as the mean of the largest of each 8, which are at most 8. */
static inline double tolerance_adacomp(const struct matrix_element *e)
{
    return (e->moved_only ? 0 : 16.0 * e->ranks) + 0x1p-22 * e->magnitude;
}

/* Elements that a rank does not send are below 0.3, with a residual of the same size;
 * bf16. */
static inline double tolerance_threshold(const struct matrix_element *e)
{
    return 0x1p-8 * e->magnitude + (e->moved_only ? 0 : 0.6 * e->ranks) + 1e-6;
}

static struct matrix_codec matrix_codecs[MATRIX_CODECS_MAX] = {
    {"none", true, false, NULL, 0},
    {"f16", true, false, tolerance_f16, 0},
    {"bf16", true, false, tolerance_bf16, 0},
    {"f8:round=random", false, true, tolerance_f8, 0},
    {"qsgd:bits=8", false, true, tolerance_qsgd, 0},
    {"qsgd:bits=8,pack=entropy", false, true, tolerance_qsgd, 0},
    {"topk:ratio=0.25", false, false, tolerance_topk, 0},
    {"topk:ratio=0.1+f16", false, false, tolerance_topk, 0},
    {"dgc:ratio=0.2", false, false, tolerance_topk, 0},
    {"threshold:at=0.3+bf16", false, false, tolerance_threshold, 0},
    {"randomk:ratio=0.3", false, false, tolerance_topk, 0},
    {"blocks:block=8", false, false, tolerance_exact, 0},
    {"adacomp:bin=8,factor=3", false, false, tolerance_adacomp, 0},
    {"natural", false, true, tolerance_natural, 0},
    {"int8", false, true, tolerance_int8, 0},
    {"int16:bucket=64", false, true, tolerance_int16, 0},
    {"hadamard:block=64+int16:bucket=64", false, true, tolerance_rotated, 0},
    {"uniform-thc:bits=8,round=nearest", false, true, tolerance_uniform_thc, 0},
    {"topk:ratio=0.2+natural", false, false, tolerance_topk_natural, 0},
    {"exact", false, false, tolerance_exact, 0},
    {"bound:abs=0.01,bucket=64", false, false, tolerance_bound, 0},
};
static int n_matrix_codecs;

static inline double tolerance_unknown(const struct matrix_element *e)
{
    (void)e;
    return (double)INFINITY;
}

static inline bool matrix_has(const char *row)
{
    const size_t length = strlen(row);
    for (int i = 0; i < n_matrix_codecs; i++)
        if (strncmp(matrix_codecs[i].text, row, length) == 0 &&
            strcspn(matrix_codecs[i].text, ":+") == length)
            return true;
    return false;
}

static inline void matrix_take(void *arg, const trib_codec_sheet_t *sheet)
{
    (void)arg;
    if (sheet->learns || sheet->vote || matrix_has(sheet->row))
        return; /* no sum, or none before it has learned: test_model, test_linear */
    if (n_matrix_codecs == MATRIX_CODECS_MAX)
        abort();
    matrix_codecs[n_matrix_codecs++] = (struct matrix_codec){
        .text = sheet->row,
        .error = sheet->error,
        .tolerance = tolerance_unknown,
    };
}

/** matrix_codecs_find - append the rows that have no entry. */
static inline void matrix_codecs_find(void)
{
    while (n_matrix_codecs < MATRIX_CODECS_MAX && matrix_codecs[n_matrix_codecs].text)
        n_matrix_codecs++;
    if (trib_codec_describe(NULL, matrix_take, NULL) != TRIB_OK)
        abort();
}

#endif
