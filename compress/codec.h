/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs encode float32 vectors to bytes and decode them. No I/O, no clock, no
 * allocation per call.
 *
 *     transform -> select -> quantise -> pack
 *
 * A codec is a row of trib_codecs[] that names its four stages. Its text form is
 * name[:key=value[,key=value]...][+stage[:…]]..., for example "none", "bf16",
 * "topk:ratio=0.01", "qsgd:bits=4,bucket=512", "topk:ratio=0.001+f16".
 *
 * Contract: encoding n elements into trib_codec_bound(n) bytes never fails. Decoders
 * accept any bytes: invalid input returns an error status and never causes an
 * out-of-bounds access.
 *
 * An encoded chunk (also: code word) is the encoding of one chunk of elements.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>
#include <tributary/types.h>

struct trib_error;
struct trib_kernels;
struct trib_model; /* model.h */
struct trib_codec; /* immutable after creation; threads may share it */

enum {
    /* "none": the engine moves raw elements and never encodes */
    TRIB_CODEC_IDENTITY = 1,
    TRIB_CODEC_LINEAR = 2, /* encoded chunks add without decoding: trib_codec_merge */
    TRIB_CODEC_UNBIASED = 4, /* E decode(encode(x)) = x */
    /* Contributions are selections; partial sums are sent whole (TRIB_ENCODE_EXACT). */
    TRIB_CODEC_SPARSE = 8,
    TRIB_CODEC_FEEDBACK = 16, /* error feedback is on (the row's default, or ef=0/1) */
    TRIB_CODEC_ANY_OP = 32, /* also supports min, max, prod (value-wise conversions) */
    TRIB_CODEC_AGREES = 64, /* ranks agree on scales first: trib_codec_propose */
    /* An all-reduce uses a model (model.h); other collectives send raw elements. */
    TRIB_CODEC_MODEL = 256,
    /* a sum is a majority vote: the result is -1, 0 or 1, not x */
    TRIB_CODEC_VOTE = 128,
    /* sparse: result= also quantises or sparsifies the sum */
    TRIB_CODEC_RESULT_LOSES = 512,
    TRIB_CODEC_ORDERLESS =
        1024, /* linear: sums are bit-identical in any order (integer or exact) */
    TRIB_CODEC_ROUNDS_SUM = 2048, /* linear: a finished sum is rounded once more */
};

struct trib_codec_info {
    const char *text; /* canonical text with all parameters */
    uint32_t flags;
    double delta; /* contraction: E|C(x)-x|^2 <= (1-1/delta)|x|^2; 0: none guaranteed */
    uint32_t digest; /* of the canonical text; ranks compare it */
    const char *stages[4]; /* names of transform, select, quantise, pack */
};

enum trib_encode_mode {
    TRIB_ENCODE_CONTRIBUTION, /* select and quantise */
    /* Sparse codecs: all non-zero elements unchanged, dense where that is smaller.
     * Other codecs: as CONTRIBUTION. */
    TRIB_ENCODE_EXACT,
    /* Sparse codecs: a finished sum, encoded as result= says: as EXACT, all non-zero
     * elements quantised, or a selection of them. Other codecs: as CONTRIBUTION. */
    TRIB_ENCODE_RESULT,
};

/* Key of an encoder's random numbers. They are counter-based, so they can be
 * reproduced. */
#define TRIB_STREAM_OF_SUMS UINT32_MAX

struct trib_encode_key {
    uint64_t seed;
    uint32_t step; /* how often the plan has started */
    uint32_t stream; /* rank, or TRIB_STREAM_OF_SUMS for a sum of all ranks */
    uint64_t index; /* index of the first element in the whole vector */
};

/**
 * trib_codec_create - create a codec from its text.
 *
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_CODEC with a message in err (fault, position, nearest name, range),
 *          TRIB_ERR_NO_MEMORY
 * owner    caller; free with trib_codec_destroy, which accepts NULL
 */
trib_status_t trib_codec_create(const char *text, const struct trib_kernels *kernels,
                                struct trib_error *err, struct trib_codec **out);
void trib_codec_destroy(struct trib_codec *codec);
const struct trib_codec_info *trib_codec_info(const struct trib_codec *codec);

/**
 * trib_codec_for_ranks - set the largest number of contributions to a sum (default 1).
 *
 * Call once, before the codec is used: bounds and the width of sums depend on it.
 * errors   TRIB_ERR_CODEC: sums of `ranks` contributions do not fit into any lane
 */
trib_status_t trib_codec_for_ranks(struct trib_codec *codec, int ranks,
                                   struct trib_error *err);

/**
 * trib_codec_for_mean - declare that sums are divided by the number of ranks at the
 * end.
 *
 * Error bounds then apply to the mean. Call once, before the codec is used.
 */
void trib_codec_for_mean(struct trib_codec *codec);

/** trib_codec_ratio - return the fraction of elements selected; 0: no such
 * parameter. */
double trib_codec_ratio(const struct trib_codec *codec);

/**
 * trib_codec_set_ratio - change the selected fraction, for the warm-up of a plan.
 *
 * Bounds change with the ratio; text, digest and delta do not.
 * thread   no other thread may use the codec during the call
 */
void trib_codec_set_ratio(struct trib_codec *codec, double ratio);

/* Average bytes per element in the encoded chunks of a codec that selects. */
struct trib_expected {
    double contribution;
    double result; /* of the sum of all ranks */
};

/**
 * trib_codec_expected - estimate encoded bytes per element, for sums of `ranks` vectors
 * of n elements.
 *
 * Assumes that ranks select independently. Gradients overlap more, so their results are
 * smaller.
 * returns  false: the codec does not select, or the amount cannot be predicted
 */
bool trib_codec_expected(const struct trib_codec *codec, size_t n, int ranks,
                         struct trib_expected *out);

/** trib_codec_feedback_grows - return true if the error of error feedback would be
 * unbounded. */
bool trib_codec_feedback_grows(const struct trib_codec *codec);

/**
 * trib_codec_bound - return the largest encoding of n elements, in bytes, in any mode.
 *
 * With a model: the bound of a chunk of any length, where a whole chunk has n elements.
 */
size_t trib_codec_bound(const struct trib_codec *codec, size_t n);

/**
 * trib_codec_sum_bound - return the bound for chunks of a sum plan: contributions and
 * sums.
 *
 * Codecs with a model may send no raw elements in such a plan, so the bound can be
 * smaller than trib_codec_bound.
 */
size_t trib_codec_sum_bound(const struct trib_codec *codec, size_t n);

/**
 * trib_codec_star_bound - return the bound for contributions and finished sums only.
 *
 * These are the chunks sent when one place sums all contributions.
 */
size_t trib_codec_star_bound(const struct trib_codec *codec, size_t n);

/** trib_codec_own_bound - return the bound for one rank's elements; encoded sums may be
 * larger. */
size_t trib_codec_own_bound(const struct trib_codec *codec, size_t n);

enum { TRIB_SELECTED_PIECE = 131072 };

/**
 * trib_codec_selected_bound - return the largest encoding of a sum of selections, or of
 * any part of that sum.
 *
 * At most `ranks` ranks have selected from the same n elements. The bound is smaller
 * than trib_codec_bound if the codec selects a ratio of each chunk of up to
 * TRIB_SELECTED_PIECE elements; otherwise both are equal.
 */
size_t trib_codec_selected_bound(const struct trib_codec *codec, size_t n, int ranks);

/**
 * trib_codec_piece - return the largest advisable number of elements per chunk.
 *
 * 0: as many as fit into a slot; SIZE_MAX: the whole vector.
 */
size_t trib_codec_piece(const struct trib_codec *codec);

/** trib_codec_undivided - return true if full-size chunks are better than one chunk per
 * rank. */
bool trib_codec_undivided(const struct trib_codec *codec);

/**
 * trib_codec_cut - return the largest number of elements whose encoding fits into a
 * slot.
 *
 * count    elements of the vector
 * chunk    largest chunk in bytes of elements, unless the codec prescribes a size
 * bound    bound of encoded chunks: trib_codec_bound or a smaller one
 * returns  a multiple of trib_codec_unit if one fits, else of 64 elements
 */
size_t trib_codec_cut(const struct trib_codec *codec, size_t count, size_t chunk,
                      size_t slot_bytes,
                      size_t (*bound)(const struct trib_codec *, size_t));

/**
 * trib_codec_unit - return the preferred divisor of chunk sizes, in elements.
 *
 * It is a multiple of 64 and of the group that the codec handles together (a bucket, a
 * rotated block, a bin). Groups start at the start of a chunk. Chunks that are
 * multiples of it give the same result as the whole vector, unless elements compete.
 */
size_t trib_codec_unit(const struct trib_codec *codec);

/** trib_codec_scratch - return the scratch bytes, 64-aligned, to encode or decode n
 * elements. */
size_t trib_codec_scratch(const struct trib_codec *codec, size_t n);

/* The elements that a sparse codec selected. */
struct trib_sent {
    /* Bit (first + i) % 8 of byte (first + i) / 8 is set if element i was sent. */
    uint8_t *mask;
    size_t first;
    float *clear; /* NULL, or n floats; those sent are set to 0 */
};

/**
 * trib_codec_selects - return true if a contribution contains only some of the
 * elements.
 *
 * Plans then track which elements were sent.
 */
bool trib_codec_selects(const struct trib_codec *codec);

/**
 * trib_codec_selects_sums - return true if the codec selects from x + residual alone.
 *
 * The caller may then compute that sum first (trib_codec_encode_kept).
 */
bool trib_codec_selects_sums(const struct trib_codec *codec);

/** trib_codec_result_loses - return true if result= re-encodes a sum with loss. */
bool trib_codec_result_loses(const struct trib_codec *codec);

/** trib_sent_mark_all - mark all n elements as sent. */
void trib_sent_mark_all(const struct trib_sent *sent, size_t n);

/* Destination of a chunk's result; a sparse result sets few elements, the rest are
 * 0. */
struct trib_zeros {
    float *at; /* n floats, may be x itself; NULL: no destination yet */
    /* set by the encoder when it has read x and cleared `at` in the same pass */
    bool done;
};

/* Magnitudes that a chunk's selection passes to the next start; 0: none. */
struct trib_carried {
    uint32_t threshold; /* the next start may skip smaller magnitudes */
    uint32_t least; /* the smallest selected magnitude */
};

struct trib_encode {
    const float *x; /* n elements, 4-aligned */
    size_t n; /* 0 is allowed */
    /* Elements of the whole vector, from which k=N selects; 0: x is the whole
     * vector. */
    size_t total;
    enum trib_encode_mode mode;
    struct trib_encode_key key;
    void *scratch; /* trib_codec_scratch(n) bytes */
    /* TRIB_CODEC_AGREES: the agreed scales. NULL: none, and the encoded chunk does not
     * add to those of other ranks. */
    const float *agreed;
    const struct trib_sent *sent; /* sparse codecs only; NULL: not wanted */
    struct trib_model *model; /* TRIB_CODEC_MODEL; NULL: none */
    /* Sparse codecs with error feedback: state of this chunk from start to start. It
     * does not change the selection. NULL: each start samples again. */
    struct trib_carried *carried;
    struct trib_zeros *zeros; /* sparse codecs with error feedback; or NULL */
};

/**
 * trib_codec_encode - encode n elements into at most trib_codec_bound(n) bytes at dst.
 *
 * docs/codecs.md specifies each codec's handling of NaN and Inf.
 */
size_t trib_codec_encode(const struct trib_codec *codec, const struct trib_encode *in,
                         uint8_t *dst);

/**
 * trib_codec_decode - decode exactly n elements from len bytes, overwriting x.
 *
 * errors   TRIB_ERR_CODEC if the bytes do not encode n elements; x may then be partly
 *          written, never outside its n elements
 */
trib_status_t trib_codec_decode(const struct trib_codec *codec, const uint8_t *src,
                                size_t len, float *x, size_t n);

/** trib_codec_decode_to_zeros - as trib_codec_decode, for x already filled with
 * zeros. */
trib_status_t trib_codec_decode_to_zeros(const struct trib_codec *codec,
                                         const uint8_t *src, size_t len, float *x,
                                         size_t n);

/** trib_codec_decode_add - compute acc += weight * decode(src); errors as
 * trib_codec_decode. */
trib_status_t trib_codec_decode_add(const struct trib_codec *codec, const uint8_t *src,
                                    size_t len, float weight, float *acc, size_t n);

/* Marks of a chunk's elements: bit i % 64 of word i / 64 is set if any of elements 16 i
 * to 16 i + 15 may be non-zero. */
enum { TRIB_MARKED = 16 };

/* An encoded chunk that overwrites x or is added to it, and marks the lines it
 * touches. */
struct trib_marked_word {
    const uint8_t *src;
    size_t len;
    float weight; /* factor, unless `first` */
    bool first; /* clear the marked elements and their marks first, then overwrite */
    uint64_t *lines;
};

/** trib_marked_words - return the number of 64-bit words that mark n elements. */
static inline size_t trib_marked_words(size_t n)
{
    return n / TRIB_MARKED / 64 + 1;
}

/**
 * trib_codec_decode_marked - decode to x or add to x. For codecs that select.
 *
 * Unmarked elements of x must be 0.
 * errors   as trib_codec_decode; the marks remain valid
 */
trib_status_t trib_codec_decode_marked(const struct trib_codec *codec,
                                       const struct trib_marked_word *word, float *x,
                                       size_t n);

/**
 * trib_codec_encode_ef - encode with error feedback (EF14).
 *
 * p = x + residual; m = C(p); residual = p - decode(m). adacomp's selection also reads
 * x. CONTRIBUTION mode only. Conserves sum(m) + residual = sum(x) up to rounding. If a
 * sent element leaves a residual of NaN or Inf, all residuals that are NaN or Inf
 * become 0, also those of unselected elements. Thus one bad gradient does not persist.
 *
 * residual n elements, updated
 */
size_t trib_codec_encode_ef(const struct trib_codec *codec,
                            const struct trib_encode *in, float *residual,
                            uint8_t *dst);

/**
 * trib_codec_encode_kept - encode with error feedback from p = x + residual, already
 * computed.
 *
 * in->x == residual holds p. Otherwise as trib_codec_encode_ef. The codec must not
 * select, or satisfy trib_codec_selects_sums.
 */
size_t trib_codec_encode_kept(const struct trib_codec *codec,
                              const struct trib_encode *in, float *residual,
                              uint8_t *dst);

/**
 * trib_codec_agreed_floats - return the number of floats that ranks agree on before n
 * elements are encoded.
 *
 * 0 without TRIB_CODEC_AGREES. With a model: for a chunk of any length, where a whole
 * chunk has n elements.
 */
size_t trib_codec_agreed_floats(const struct trib_codec *codec, size_t n);

/** trib_codec_agreement_op - return the operator of the agreement: TRIB_MAX or
 * TRIB_SUM. */
trib_op_t trib_codec_agreement_op(const struct trib_codec *codec);

/**
 * trib_codec_propose - compute this rank's proposed scales for n elements.
 *
 * The elementwise maximum over all ranks is then used by every encoder. Codecs without
 * a model only.
 *
 * proposal_out  trib_codec_agreed_floats(n) floats
 */
void trib_codec_propose(const struct trib_codec *codec, const float *x, size_t n,
                      float *proposal_out);

/** trib_codec_propose_added - residual += x, then trib_codec_propose of the
 * residual. */
void trib_codec_propose_added(const struct trib_codec *codec, const float *x,
                            float *residual, size_t n, float *proposal_out);

struct trib_encoded {
    const uint8_t *src;
    size_t len;
};

struct trib_merge {
    struct trib_encoded *words; /* unspecified after the merge */
    size_t n_words; /* at least 1 */
    size_t n; /* elements of each encoded chunk */
    size_t piece; /* TRIB_CODEC_MODEL: elements of a whole chunk */
    bool of_plan; /* TRIB_CODEC_MODEL: dst has only trib_codec_sum_bound(n) bytes */
    bool final; /* nothing will be added to this sum */
    uint32_t ranks; /* with final: divide by this (mean); 0: do not divide */
    /* Of the sum, with final: for codecs that quantise the sum again. It is the same on
     * all ranks that compute the sum. */
    struct trib_encode_key key;
};

/**
 * trib_codec_merge - add encoded chunks of a TRIB_CODEC_LINEAR codec.
 *
 * decode(merge(a, b)) = decode(a) + decode(b) up to the rounding of the decoder, in any
 * order. With final, signsgd yields the majority sign, and result=requantised rounds
 * the sum once more.
 * dst      trib_codec_bound(n) bytes, distinct from all inputs
 * errors   TRIB_ERR_CODEC: an input does not encode n elements or has other scales, or
 *          there are more contributions than trib_codec_for_ranks allows
 */
trib_status_t trib_codec_merge(const struct trib_codec *codec,
                               const struct trib_merge *m, uint8_t *dst,
                               size_t *len_out);

struct trib_stages {
    const struct trib_transform *transform;
    const struct trib_select *select;
    const struct trib_quantise *quantise;
    const struct trib_pack *pack;
};

/* A row of the codec table. The parser, trib-info, tests, fuzzers and benchmarks
 * iterate over the rows. */
struct trib_codec_row {
    const char *name;
    const char *grammar; /* "topk:ratio=R[,ef=0|1][+f16|+bf16]" */
    const char *detail;
    const char *paper; /* NULL: none */
    const char *shared; /* what the ranks agree on first; NULL: nothing */
    /* NULL-terminated texts to test; the first is the example */
    const char *const *texts;
    struct trib_stages stages;
    uint32_t flags; /* FEEDBACK here is the default */
};

/** trib_codecs - the table, in display order. */
extern const struct trib_codec_row trib_codecs[];
extern const size_t trib_codecs_count;

#endif
