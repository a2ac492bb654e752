/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The four stages of a codec, and struct trib_codec. Private to compress/.
 *
 *     x ──transform──▶ x' ──select──▶ (positions, values) ──quantise──▶ ──pack──▶ bytes
 *
 * A stage is a const table of functions with no empty slot; a codec (codec.c) names one
 * of each. A dense codec (select "all") writes only its quantiser's bytes; a sparse
 * codec writes the block of sparse_block.c.
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
/* of TRIB_PARAM_RESULT; SELECTED applies to sparse codecs only */
enum { TRIB_RESULT_SUMS, TRIB_RESULT_REQUANTISED, TRIB_RESULT_SELECTED };

enum { TRIB_PACK_BITS, TRIB_PACK_OMEGA, TRIB_PACK_ENTROPY }; /* of TRIB_PARAM_PACK */

#define TRIB_PARAM_BIT(id) (UINT64_C(1) << TRIB_PARAM_##id)

/*
 * A range of quantised values. src comes from the wire: any bytes of the right length.
 * A peer that shares memory may change them at any time, so a length byte is read once,
 * or checked each time.
 */
struct trib_code {
    const uint8_t *src;
    size_t len; /* bytes at src */
    size_t n; /* values at src */
    size_t first; /* range asked for */
    size_t count;
};

/* A range of values to quantise. It starts at a bucket boundary and consists of whole
 * buckets, except at its end. */
struct trib_values {
    const float *x; /* values of the range */
    size_t n; /* values of the encoded chunk */
    size_t first; /* range */
    size_t count;
    struct trib_encode_key key; /* of value 0 of the encoded chunk */
    /* Chunks that add: bucket heads of the range; NULL: computed from x. */
    const float *agreed;
    float *kept; /* NULL, or x if trib_packed_ints_keeps: replaced by the residual */
    float *decoded; /* chunks that add: NULL, or x: replaced by the decoded values */
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
    uint64_t *lines; /* sparse codecs: marks of non-zero elements (codec.h); or NULL */
};

struct trib_codec_ops; /* codec_ops.h */
struct trib_model_ops; /* model_ops.h */

struct trib_transform {
    const char *name;
    uint64_t params; /* TRIB_PARAM_BITs that it reads */
    bool rotates; /* the quantised values are rotated (rotated.h) */
    /* A model that a plan trains; model.c then encodes, and no other stage does. Or
     * NULL. */
    const struct trib_model_ops *model;
};

struct trib_selection; /* selection.h */

struct trib_select {
    const char *name;
    uint64_t params; /* TRIB_PARAM_BITs that it reads */
    double ratio; /* default of TRIB_PARAM_RATIO */
    bool sparse;
    bool fixed; /* unselected elements must not be sent: never dense */
    bool counted; /* selects exactly the ratio of a chunk's units */
    bool drawn; /* positions come from trib_stratified_of */
    /* Elements per unit; positions count units, and the last unit may be shorter. */
    size_t (*unit)(const struct trib_codec *c);
    /* Write the positions of the selected units; return their number. */
    size_t (*choose)(const struct trib_codec *c, struct trib_selection *s);
    /* Turn the m elements at the positions into the values to send. */
    void (*adjust)(const struct trib_codec *c, const struct trib_selection *s, size_t m,
                   float *values);
    bool (*unbiased)(const struct trib_codec *c);
    double (*delta)(const struct trib_codec *c); /* contraction; 0: none */
    /* Smallest fraction of ratio or k that a rank sends by its own choice; 0:
     * unknown. */
    double least;
    /* w of E|C(x) - x|^2 <= w |x|^2 for an unbiased selection; NULL: none */
    double (*error)(const struct trib_codec *c);
};

struct trib_quantise {
    const char *name;
    uint64_t params;
    bool nearest; /* the default of TRIB_PARAM_ROUND */
    bool counts; /* codes are levels, and small levels are likely */
    size_t (*bytes)(const struct trib_codec *c, size_t n); /* exact size of n values */
    void (*encode)(const struct trib_codec *c, const struct trib_values *v,
                   uint8_t *dst);
    void (*decode)(const struct trib_codec *c, const struct trib_code *code, float *x);
    void (*decode_add)(const struct trib_codec *c, const struct trib_code *code,
                       float weight, float *acc);
    /* Contraction; 0: none; NULL: derived from error. */
    double (*delta)(const struct trib_codec *c);
    /* w of E|C(x) - x|^2 <= w |x|^2; NULL: derived from delta */
    double (*error)(const struct trib_codec *c);
    /* Largest relative error of an element without under- or overflow. NULL: exact, or
     * no bound. */
    double (*rounding)(const struct trib_codec *c);
    /* Return the quantiser for these parameters and fill its tables in c; set
     * *refusal_out if the parameters do not fit. NULL: always this quantiser. */
    const struct trib_quantise *(*resolve)(struct trib_codec *c,
                                           const char **refusal_out);
    const struct trib_bucketing *bucketing; /* of buckets.h; NULL: no buckets */
    /* Of packed_ints.h; NULL: encoded chunks do not add. */
    const struct trib_packed_ints_rule *packed_ints;
    bool exact; /* encoded as in exact_sum.h, of variable length */
    bool bounds; /* encoded as in bounded.h, of variable length */
    bool grows; /* no contraction: error feedback would grow without bound */
    const struct trib_quantise *shared; /* replacement for shared=1; or NULL */
};

/* Layout of a sparse block's positions, or of a dense block's bits. */
struct trib_pack {
    const char *name;
    /* Codes of variable length, dense codecs only (varlen.h); NULL: the quantiser's own
     * bytes. */
    const struct trib_varlen *varlen;
};

enum { TRIB_CODEC_TEXT_MAX = 160, TRIB_LEVELS_MAX = 128 };

struct trib_codec {
    const struct trib_codec_ops *ops; /* operations of its kind */
    const struct trib_codec_row *row;
    /* The row after "+", whose quantiser replaces the row's own; or NULL. */
    const struct trib_codec_row *values;
    /* Codec of a model's coefficients, unless they are f32; or NULL. */
    struct trib_codec *coefficients;
    struct trib_stages stages;
    const struct trib_kernels *kernels;
    double param[TRIB_PARAM_COUNT];
    uint32_t ranks; /* most contributions to an encoded chunk */
    bool mean; /* the caller wants the mean of the contributions */
    float level[TRIB_LEVELS_MAX]; /* level table, for quantisers that use one */
    float per_gap[TRIB_LEVELS_MAX]; /* 1 / (level[k + 1] - level[k]) */
    struct trib_codec_info info;
    char text[TRIB_CODEC_TEXT_MAX];
};

/** trib_quantise_delta - return the quantiser's contraction; 0: none. */
double trib_quantise_delta(const struct trib_codec *c);

/* Contraction of stages that guarantee none, and of those that lose nothing. */
double trib_delta_none(const struct trib_codec *c);
double trib_delta_exact(const struct trib_codec *c);

/** trib_grid_error - return w for buckets rounded to a grid of `steps` levels between 0
 * and the bucket's largest magnitude. */
double trib_grid_error(double bucket, double steps);

/** trib_quantise_bucket - return the number of values that share a head; 1: each is
 * separate. */
size_t trib_quantise_bucket(const struct trib_codec *c);

/* Stages used by files other than codec_table.c, which declares those of its rows. */
extern const struct trib_transform trib_transform_none;
extern const struct trib_select trib_select_blocks;
extern const struct trib_quantise trib_quantise_f32;
extern const struct trib_quantise trib_quantise_dither;
extern const struct trib_quantise trib_quantise_dither_table;
extern const struct trib_quantise trib_quantise_qsgd_shared;
extern const struct trib_quantise trib_quantise_ternary_shared;
extern const struct trib_pack trib_pack_omega;
extern const struct trib_pack trib_pack_entropy;

/* codec_text.c: parse row and parameters from a text; write the canonical text.
 * inner_out: text of the codec of a model's coefficients; "": none. */
trib_status_t trib_codec_parse(struct trib_codec *c, const char *text,
                               struct trib_error *err,
                               char inner_out[TRIB_CODEC_TEXT_MAX]);
void trib_codec_print(struct trib_codec *c);

/* A parameter that the text of a codec may contain. */
struct trib_param_text {
    size_t segment; /* 0: before a "+", 1: after it */
    enum trib_param_id id;
    const char *key;
    const char *meaning;
    /* names of its values, if they have names; NULL-terminated */
    const char *const *names;
    char value[32]; /* "": none */
    char range[96];
};

enum { TRIB_PARAM_TEXTS_MAX = 2 * TRIB_PARAM_COUNT };

/** trib_codec_params - write all parameters in canonical order; return their number. */
size_t trib_codec_params(const struct trib_codec *c,
                         struct trib_param_text params_out[TRIB_PARAM_TEXTS_MAX]);

/* sparse_block.c: the block of a sparse codec */
size_t trib_sparse_bound(const struct trib_codec *c, size_t n);
size_t trib_sparse_scratch(const struct trib_codec *c, size_t n);
/* residual: NULL, or as in trib_codec_encode_ef */
size_t trib_sparse_encode(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst);
trib_status_t trib_sparse_decode(const struct trib_codec *c,
                                 const struct trib_decode *d);

/* select.c: write the positions of the k largest magnitudes; of equal ones the first.
 * Zeros are never selected. NaN counts as larger than Inf. */
size_t trib_select_largest(const struct trib_kernels *kernels, const float *x, size_t n,
                           size_t k, uint32_t *positions_out, uint32_t *work);

#endif
