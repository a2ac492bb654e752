/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The four stages of a codec, and what a codec is made of. Private to compress/.
 *
 *     x ──transform──▶ x' ──select──▶ (positions, values) ──quantise──▶ ──pack──▶ bytes
 *
 * A stage is a const row of functions with every slot filled; a codec (codec.c) names
 * one of each. A dense codec (select "all") is its quantiser's bytes and nothing else;
 * a sparse one is the block of sparse_block.c.
 */
#ifndef COMPRESS_STAGES_H
#define COMPRESS_STAGES_H

#include "compress/codec.h"
#include "compress/kernels/kernels.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "code words are little-endian and written without swapping"
#endif

enum trib_param_id {
#define PARAM(id, ...) TRIB_PARAM_##id,
#include "compress/codec_params.def"
#undef PARAM
    TRIB_PARAM_COUNT,
};

enum { TRIB_NORM_L2, TRIB_NORM_MAX }; /* values of TRIB_PARAM_NORM */
enum { TRIB_FORMAT_E4M3, TRIB_FORMAT_E5M2 }; /* of TRIB_PARAM_FORMAT */
enum { TRIB_ROUND_RANDOM, TRIB_ROUND_NEAREST }; /* of TRIB_PARAM_ROUND */
enum { TRIB_PICK_ONE, TRIB_PICK_ALL }; /* of TRIB_PARAM_PICK */
enum { TRIB_DECODER_LINEAR, TRIB_DECODER_LEAKY }; /* of TRIB_PARAM_DECODER */
/* of TRIB_PARAM_RESULT; SELECTED is of selections alone */
enum { TRIB_RESULT_SUMS, TRIB_RESULT_REQUANTISED, TRIB_RESULT_SELECTED };

enum { TRIB_PACK_BITS, TRIB_PACK_OMEGA, TRIB_PACK_ENTROPY }; /* of TRIB_PARAM_PACK */

#define TRIB_PARAM_BIT(id) (UINT64_C(1) << TRIB_PARAM_##id)

/*
 * A range of quantised values. src comes from the wire: any bytes, the right length. A
 * peer that shares memory may change them meanwhile: where a byte says how many follow,
 * it is read once, or what it says is held against the length each time.
 */
struct trib_code {
    const uint8_t *src;
    size_t len; /* bytes at src */
    size_t n; /* values at src */
    size_t first; /* range asked for */
    size_t count;
};

/* A range of values to be quantised; whole buckets are before it, and in it but at the
 * end. */
struct trib_values {
    const float *x; /* those of the range */
    size_t n; /* values of the word */
    size_t first; /* range */
    size_t count;
    struct trib_encode_key key; /* of value 0 of the word */
    const float *agreed; /* of words that add: the heads of the range's buckets; NULL:
                         * of x */
    float *kept; /* NULL, or x if trib_packed_ints_keeps: it becomes what is left */
    float *told; /* of words that add; NULL, or x: it becomes what the word says */
};

/* overwrite: x = decode(src); otherwise x += weight * decode(src) */
struct trib_decode {
    const uint8_t *src;
    size_t len;
    float *x;
    size_t n;
    float weight;
    bool overwrite;
    bool zeros; /* with overwrite: x is 0 everywhere */
    uint64_t *lines; /* sparse codecs: marks of what is not 0 (codec.h); or NULL */
};

struct trib_codec_ops; /* codec_ops.h */
struct trib_model_ops; /* model_ops.h */

struct trib_transform {
    const char *name;
    uint64_t params; /* TRIB_PARAM_BITs it reads */
    bool rotates; /* the values that are quantised are those of rotated.h */
    /* what it learns in a plan: then model.c makes the words, no other stage. Or
     * NULL */
    const struct trib_model_ops *model;
};

struct trib_selection; /* selection.h */

struct trib_select {
    const char *name;
    uint64_t params; /* TRIB_PARAM_BITs it reads */
    double ratio; /* default of that parameter */
    bool sparse;
    bool fixed; /* what is not chosen may not be sent either: never dense */
    bool counted; /* it chooses the parameter ratio of a chunk's units, and no more */
    bool drawn; /* positions are those of trib_stratified_of */
    /* elements of a unit, of which positions are the numbers; the last may be
     * shorter */
    size_t (*unit)(const struct trib_codec *c);
    /* Positions of the selected units; returns how many. */
    size_t (*choose)(const struct trib_codec *c, struct trib_selection *s);
    /* from the m elements at the positions to the values that are sent */
    void (*adjust)(const struct trib_codec *c, const struct trib_selection *s, size_t m,
                   float *values);
    bool (*unbiased)(const struct trib_codec *c);
    double (*delta)(const struct trib_codec *c); /* contraction; 0: none */
    /* part of the ratio or k elements that a rank sends at least, by its own choice; 0:
     * no such part is known */
    double least;
    /* w of E|C(x) - x|^2 <= w |x|^2 of what an unbiased selection sends; NULL: none */
    double (*error)(const struct trib_codec *c);
};

struct trib_quantise {
    const char *name;
    uint64_t params;
    bool nearest; /* the default of TRIB_PARAM_ROUND */
    bool counts; /* its codes are levels, small ones the likely ones */
    size_t (*bytes)(const struct trib_codec *c, size_t n); /* exact, for n values */
    void (*encode)(const struct trib_codec *c, const struct trib_values *v,
                   uint8_t *dst);
    void (*decode)(const struct trib_codec *c, const struct trib_code *code, float *x);
    void (*decode_add)(const struct trib_codec *c, const struct trib_code *code,
                       float weight, float *acc);
    /* The contraction; 0: none; NULL: that which follows from error. */
    double (*delta)(const struct trib_codec *c);
    /* w of E|C(x) - x|^2 <= w |x|^2; NULL: that which delta says */
    double (*error)(const struct trib_codec *c);
    /* what an element is off by at most, relative to itself, while nothing under- or
     * overflows; NULL: nothing, or no such bound */
    double (*rounding)(const struct trib_codec *c);
    /* The quantiser for these parameters, its tables in c made; or a reason why there
     * is none. NULL: this one. */
    const struct trib_quantise *(*resolve)(struct trib_codec *c,
                                           const char **refusal_out);
    const struct trib_bucketing *bucketing; /* of buckets.h; NULL: it knows none */
    const struct trib_packed_ints_rule *packed_ints; /* of packed_ints.h; NULL: its
                                         * words do not add */
    bool exact; /* words are those of exact_sum.h, of no fixed length */
    bool bounds; /* words are those of bounded.h, of no fixed length */
    bool grows; /* no contraction: error feedback around it would grow without bound */
    const struct trib_quantise *shared; /* what shared=1 makes of it; or NULL */
};

/* How the positions of a sparse block, or the bits of a dense one, are laid out. */
struct trib_pack {
    const char *name;
    /* of codes of variable length, dense codecs only (varlen.h); NULL: the quantiser's
     * own bytes */
    const struct trib_varlen *varlen;
};

enum { TRIB_CODEC_TEXT_MAX = 160, TRIB_LEVELS_MAX = 128 };

struct trib_codec {
    const struct trib_codec_ops *ops; /* of its kind */
    const struct trib_codec_row *row;
    const struct trib_codec_row *values; /* whose quantiser takes the row's place: what
                                          * stands behind a "+"; or NULL */
    struct trib_codec *coefficients; /* a model's, where they are not written as f32; or
                                      * NULL */
    struct trib_stages stages;
    const struct trib_kernels *kernels;
    double param[TRIB_PARAM_COUNT];
    uint32_t ranks; /* contributions that a word may have, at most */
    bool mean; /* what is asked for is their mean */
    float level[TRIB_LEVELS_MAX]; /* of quantisers that look levels up */
    float per_gap[TRIB_LEVELS_MAX]; /* 1 / (level[k + 1] - level[k]) */
    struct trib_codec_info info;
    char text[TRIB_CODEC_TEXT_MAX];
};

/** trib_quantise_delta - the contraction of the quantiser; 0: it is none. */
double trib_quantise_delta(const struct trib_codec *c);

/** trib_grid_error - the w of buckets that are rounded to a grid of `steps` levels
 * between 0 and the bucket's largest magnitude. */
double trib_grid_error(double bucket, double steps);

/** trib_quantise_bucket - values that have a head together; 1: each is on its own. */
size_t trib_quantise_bucket(const struct trib_codec *c);

/* Stages that other files than the table name. codec_table.c declares those of its
 * rows. */
extern const struct trib_transform trib_transform_none;
extern const struct trib_select trib_select_blocks;
extern const struct trib_quantise trib_quantise_f32;
extern const struct trib_quantise trib_quantise_dither;
extern const struct trib_quantise trib_quantise_dither_table;
extern const struct trib_quantise trib_quantise_qsgd_shared;
extern const struct trib_quantise trib_quantise_ternary_shared;
extern const struct trib_pack trib_pack_omega;
extern const struct trib_pack trib_pack_entropy;

/* codec_text.c: row and parameters from a text; the canonical text of a codec.
 * inner_out: the text of the codec of a model's coefficients; "": it has none */
trib_status_t trib_codec_parse(struct trib_codec *c, const char *text,
                               struct trib_error *err,
                               char inner_out[TRIB_CODEC_TEXT_MAX]);
void trib_codec_print(struct trib_codec *c);

/* A parameter that the text of a codec may have. */
struct trib_param_text {
    size_t segment; /* 0: before a "+", 1: behind it */
    enum trib_param_id id;
    const char *key;
    const char *meaning;
    const char *const *names; /* of its values, where they are few; NULL-terminated */
    char value[32]; /* "": none */
    char range[96];
};

enum { TRIB_PARAM_TEXTS_MAX = 2 * TRIB_PARAM_COUNT };

/** trib_codec_params - all of them, in the order of the canonical text; their
 * number. */
size_t trib_codec_params(const struct trib_codec *c,
                         struct trib_param_text params_out[TRIB_PARAM_TEXTS_MAX]);

/* sparse_block.c: the block of a sparse codec */
size_t trib_sparse_bound(const struct trib_codec *c, size_t n);
size_t trib_sparse_scratch(const struct trib_codec *c, size_t n);
/* residual: NULL, or as of trib_codec_encode_ef */
size_t trib_sparse_encode(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst);
trib_status_t trib_sparse_decode(const struct trib_codec *c,
                                 const struct trib_decode *d);

/* select.c: positions of the k elements largest in magnitude; ties: the first ones.
 * Zeros are never among them. NaN counts as larger than Inf. */
size_t trib_select_largest(const struct trib_kernels *kernels, const float *x, size_t n,
                           size_t k, uint32_t *positions_out, uint32_t *work);

#endif
