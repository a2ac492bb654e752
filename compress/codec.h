/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs: float32 vectors to bytes and back. No I/O, no clock, no allocation per call.
 *
 *     transform -> select -> quantise -> pack
 *
 * A codec is a row of trib_codecs[] that names its four stages. Its text form, the same
 * everywhere: name[:key=value[,key=value]...][+stage[:…]]..., such as "none", "bf16",
 * "topk:ratio=0.01", "qsgd:bits=4,bucket=512", "topk:ratio=0.001+f16".
 *
 * The contract: trib_codec_bound(n) is the worst size in bytes; encoding n elements
 * into that many never fails. A decoder treats its input as hostile: any bytes give a
 * status, never a bad access.
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
struct trib_codec; /* immutable after creation; may be used by several threads */

enum {
    TRIB_CODEC_IDENTITY = 1, /* "none": the engine moves raw elements, never encodes */
    TRIB_CODEC_LINEAR = 2, /* words add without decoding: trib_codec_merge */
    TRIB_CODEC_UNBIASED = 4, /* E decode(encode(x)) = x */
    TRIB_CODEC_SPARSE = 8, /* contributions are selections; sums on their way are sent
                            * whole (TRIB_ENCODE_EXACT) */
    TRIB_CODEC_FEEDBACK = 16, /* error feedback is on (a row's default, or ef=0/1) */
    TRIB_CODEC_ANY_OP = 32, /* also for min, max, prod (value-wise conversions) */
    TRIB_CODEC_AGREES = 64, /* the ranks agree on scales first: trib_codec_propose */
    TRIB_CODEC_MODEL = 256, /* an all-reduce has a model (model.h); other collectives
                             * send elements as they are */
    TRIB_CODEC_VOTE = 128, /* a sum is a vote: -1, 0 or 1 come out, not x */
    TRIB_CODEC_RESULT_LOSES = 512, /* sparse: result= rounds or selects results, too */
    TRIB_CODEC_ORDERLESS =
        1024, /* linear: words add as integers or exactly, to the same
                                  * bits in any order */
    TRIB_CODEC_ROUNDS_SUM = 2048, /* linear: a finished sum is rounded once more */
};

struct trib_codec_info {
    const char *text; /* canonical text with all parameters spelled out */
    uint32_t flags;
    double delta; /* contraction: E|C(x)-x|^2 <= (1-1/delta)|x|^2; 0: none claimed */
    uint32_t digest; /* of the canonical text: ranks compare it */
    const char *stages[4]; /* names of transform, select, quantise, pack */
};

enum trib_encode_mode {
    TRIB_ENCODE_CONTRIBUTION, /* select and quantise */
    TRIB_ENCODE_EXACT, /* sparse codecs: all non-zero elements as they are, dense
                        * where that is smaller. Others: as CONTRIBUTION */
    TRIB_ENCODE_RESULT, /* sparse codecs: a finished sum, as result= says: as EXACT; all
                         * non-zero elements, quantised; or a selection of them.
                         * Others: as CONTRIBUTION */
};

/* The key of an encode's random numbers: these are counter-based, so they can be
 * repeated. */
#define TRIB_STREAM_OF_SUMS UINT32_MAX

struct trib_encode_key {
    uint64_t seed;
    uint32_t step; /* start number of the plan */
    uint32_t stream; /* rank, or of a sum of all TRIB_STREAM_OF_SUMS */
    uint64_t index; /* number of the first element in the whole vector */
};

/**
 * trib_codec_create - from its text.
 *
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_CODEC with a sentence in err (what, where, the nearest name, the
 *          range), TRIB_ERR_NO_MEMORY
 * owner    trib_codec_destroy; NULL is allowed there
 */
trib_status_t trib_codec_create(const char *text, const struct trib_kernels *kernels,
                                struct trib_error *err, struct trib_codec **out);
void trib_codec_destroy(struct trib_codec *codec);
const struct trib_codec_info *trib_codec_info(const struct trib_codec *codec);

/**
 * trib_codec_for_ranks - how many contributions a sum of its words may have; 1 before.
 *
 * Once, before the codec is used: bounds and the width of sums follow from it.
 * errors   TRIB_ERR_CODEC: the sums of so many would not fit into any lane
 */
trib_status_t trib_codec_for_ranks(struct trib_codec *codec, int ranks,
                                   struct trib_error *err);

/** trib_codec_for_mean - the sums are divided by the number of ranks at the end: what a
 * codec bounds is then the error of the mean. Once, before the codec is used. */
void trib_codec_for_mean(struct trib_codec *codec);

/** trib_codec_ratio - the part of the elements that it selects; 0: it has no such
 * parameter. */
double trib_codec_ratio(const struct trib_codec *codec);

/**
 * trib_codec_set_ratio - from now on it selects another part: the warm-up of a plan.
 *
 * Text, digest and delta stay those of the creation. Bounds change with it.
 * thread   nobody else may be using the codec
 */
void trib_codec_set_ratio(struct trib_codec *codec, double ratio);

/* Bytes that an element takes on average in words of a codec that selects. */
struct trib_expected {
    double contribution;
    double result; /* of the sum of all ranks */
};

/**
 * trib_codec_expected - what words of a sum of `ranks` vectors of n elements will take.
 *
 * Selections of the ranks are taken to be independent: where they overlap more, as
 * those of gradients do, results take less.
 * returns  false: the codec does not select, or nobody knows how much it will select
 */
bool trib_codec_expected(const struct trib_codec *codec, size_t n, int ranks,
                         struct trib_expected *out);

/** trib_codec_feedback_grows - would error feedback let its error grow without
 * bound? */
bool trib_codec_feedback_grows(const struct trib_codec *codec);

/**
 * trib_codec_bound - the largest encoding of n elements, in bytes, in any mode.
 *
 * With a model: of a chunk of any length where a whole one has n elements.
 */
size_t trib_codec_bound(const struct trib_codec *codec, size_t n);

/** trib_codec_sum_bound - the same of the words that a plan of a sum sends, of ranks
 * and of sums: a codec that learns may send no plain elements there. */
size_t trib_codec_sum_bound(const struct trib_codec *codec, size_t n);

/** trib_codec_star_bound - the longest of a contribution and of a finished sum: of all
 * words that travel where contributions meet at one place. */
size_t trib_codec_star_bound(const struct trib_codec *codec, size_t n);

/** trib_codec_own_bound - that of one rank's elements alone: a sum of words may be
 * wider. */
size_t trib_codec_own_bound(const struct trib_codec *codec, size_t n);

enum { TRIB_SELECTED_PIECE = 131072 };

/**
 * trib_codec_selected_bound - the longest word of what at most `ranks` ranks have
 * selected of the same n elements, and of each part of that sum.
 *
 * It is below trib_codec_bound for a codec that selects a ratio of each chunk, up to
 * TRIB_SELECTED_PIECE elements; else the same.
 */
size_t trib_codec_selected_bound(const struct trib_codec *codec, size_t n, int ranks);

/** trib_codec_piece - elements that a chunk should have at most; 0: as many as a slot
 * takes, SIZE_MAX: the whole vector. */
size_t trib_codec_piece(const struct trib_codec *codec);

/** trib_codec_undivided - should a chunk have so many, rather than each rank a
 * chunk? */
bool trib_codec_undivided(const struct trib_codec *codec);

/**
 * trib_codec_cut - the most elements of a chunk of which a word fits into a slot.
 *
 * count    elements of the vector
 * chunk    bytes that a chunk of elements may have, where the codec does not say
 * bound    of words: trib_codec_bound, or what is less
 * returns  whole units where there is room for one, else lines
 */
size_t trib_codec_cut(const struct trib_codec *codec, size_t count, size_t chunk,
                      size_t slot_bytes,
                      size_t (*bound)(const struct trib_codec *, size_t));

/**
 * trib_codec_unit - of how many elements a chunk should hold whole numbers: a multiple
 * of 64, and of what the codec handles together (a bucket, a rotated block, a bin),
 * which begins with the chunk.
 *
 * Chunks of such sizes give what the whole vector would, where elements do not compete.
 */
size_t trib_codec_unit(const struct trib_codec *codec);

/** trib_codec_scratch - bytes of scratch, 64-aligned, that encode or decode of n wants.
 */
size_t trib_codec_scratch(const struct trib_codec *codec, size_t n);

/* The elements that an encode of a sparse codec selected. */
struct trib_sent {
    uint8_t *mask; /* element i is bit (first + i) % 8 of byte (first + i) / 8: set if
                    * sent */
    size_t first;
    float *clear; /* NULL, or n floats that become 0 where sent */
};

/** trib_codec_selects - true if a contribution has some of the elements only: then a
 * plan knows which were sent. */
bool trib_codec_selects(const struct trib_codec *codec);

/** trib_codec_selects_sums - true if it selects, and looks at nothing but x + residual
 * for it: then that sum may be made before (trib_codec_encode_kept). */
bool trib_codec_selects_sums(const struct trib_codec *codec);

/** trib_codec_result_loses - true if result= encodes a sum once more, which loses. */
bool trib_codec_result_loses(const struct trib_codec *codec);

/** trib_sent_mark_all - all n elements were. */
void trib_sent_mark_all(const struct trib_sent *sent, size_t n);

/* The place of a chunk's result, in which a sparse one sets few elements of zeros. */
struct trib_zeros {
    float *at; /* n floats, such as x itself; NULL: there is no such place yet */
    bool done; /* set by the encode once it has read x and cleared them on its way */
};

/* Magnitudes that a chunk's selection leaves for its next start; 0: there are none. */
struct trib_carried {
    uint32_t threshold; /* below which the next start need not look */
    uint32_t least;     /* the last one that was selected */
};

struct trib_encode {
    const float *x; /* n elements, any alignment of 4 */
    size_t n; /* 0 is allowed */
    size_t total; /* elements of the whole vector, of which k=N selects; 0: it is x
                   * alone */
    enum trib_encode_mode mode;
    struct trib_encode_key key;
    void *scratch; /* trib_codec_scratch(n) bytes */
    const float *agreed; /* TRIB_CODEC_AGREES: what the ranks agreed on; NULL: nothing,
                         * then the word does not add to those of others */
    const struct trib_sent *sent; /* NULL: nobody asks; sparse codecs only */
    struct trib_model *model; /* TRIB_CODEC_MODEL; NULL: there is none */
    struct trib_carried *carried; /* sparse codecs, with error feedback: what this
                                   * chunk keeps from start to start. What is selected
                                   * does not depend on it. NULL: each start samples */
    struct trib_zeros *zeros; /* of sparse codecs, with error feedback; or NULL */
};

/**
 * trib_codec_encode - n elements to at most trib_codec_bound(n) bytes at dst.
 *
 * NaN and Inf: each codec says in docs/codecs.md what it does with them.
 */
size_t trib_codec_encode(const struct trib_codec *codec, const struct trib_encode *in,
                         uint8_t *dst);

/**
 * trib_codec_decode - exactly n elements from len bytes, overwriting x.
 *
 * errors   TRIB_ERR_CODEC if the bytes are not an encoding of n elements; x is then
 *          partly written, never outside its n elements
 */
trib_status_t trib_codec_decode(const struct trib_codec *codec, const uint8_t *src,
                                size_t len, float *x, size_t n);

/** trib_codec_decode_to_zeros - the same, where all n elements of x are 0 before. */
trib_status_t trib_codec_decode_to_zeros(const struct trib_codec *codec,
                                         const uint8_t *src, size_t len, float *x,
                                         size_t n);

/** trib_codec_decode_add - acc += weight * decode(src); otherwise as decode. */
trib_status_t trib_codec_decode_add(const struct trib_codec *codec, const uint8_t *src,
                                    size_t len, float weight, float *acc, size_t n);

/* Marks of a chunk's elements: bit i % 64 of word i / 64 is set if any of the 16
 * elements from 16 i on may be other than 0. */
enum { TRIB_MARKED = 16 };

/* A code word that becomes elements, or is added to them, and marks what it touches. */
struct trib_marked_word {
    const uint8_t *src;
    size_t len;
    float weight; /* by which it is multiplied if it is not the first */
    bool first; /* before it what is marked becomes 0, and its mark is cleared */
    uint64_t *lines;
};

/** trib_marked_words - how many words the marks of n elements take. */
static inline size_t trib_marked_words(size_t n)
{
    return n / TRIB_MARKED / 64 + 1;
}

/**
 * trib_codec_decode_marked - of a codec that selects: decode to x, whose elements are 0
 * where no mark is, or add to it.
 *
 * errors   as trib_codec_decode; the marks then still hold
 */
trib_status_t trib_codec_decode_marked(const struct trib_codec *codec,
                                       const struct trib_marked_word *word, float *x,
                                       size_t n);

/**
 * trib_codec_encode_ef - encode with error feedback (EF14).
 *
 * p = x + residual; m = C(p); residual = p - decode(m); adacomp's choice looks at x,
 * too. In CONTRIBUTION mode only; conserves sum(m) + residual = sum(x) to rounding.
 * What was sent and leaves a residual of NaN or Inf leaves 0, and with it all NaN and
 * Inf of x that a selection has left out, so that one bad gradient does not stay.
 *
 * residual n elements, updated
 */
size_t trib_codec_encode_ef(const struct trib_codec *codec,
                            const struct trib_encode *in, float *residual,
                            uint8_t *dst);

/**
 * trib_codec_encode_kept - of codecs that do not select, and those of
 * trib_codec_selects_sums: encode with error feedback where in->x == residual already
 * is p, the sum of both; otherwise as encode_ef.
 */
size_t trib_codec_encode_kept(const struct trib_codec *codec,
                              const struct trib_encode *in, float *residual,
                              uint8_t *dst);

/**
 * trib_codec_agreed_floats - how much ranks agree on before n elements are encoded; 0
 * but for TRIB_CODEC_AGREES.
 *
 * With a model: before a chunk of any length where a whole one has n elements.
 */
size_t trib_codec_agreed_floats(const struct trib_codec *codec, size_t n);

/** trib_codec_agreement_op - what they make of it: TRIB_MAX, TRIB_SUM. */
trib_op_t trib_codec_agreement_op(const struct trib_codec *codec);

/**
 * trib_codec_propose - what this rank's n elements want; the largest of all ranks,
 * float by float, is what each encodes with. Codecs without a model.
 *
 * proposal_out  trib_codec_agreed_floats(n) floats
 */
void trib_codec_propose(const struct trib_codec *codec, const float *x, size_t n,
                      float *proposal_out);

/** trib_codec_propose_added - residual += x, and trib_codec_propose of that. */
void trib_codec_propose_added(const struct trib_codec *codec, const float *x,
                            float *residual, size_t n, float *proposal_out);

struct trib_encoded {
    const uint8_t *src;
    size_t len;
};

struct trib_merge {
    struct trib_encoded *words; /* of no use behind the merge */
    size_t n_words; /* at least 1 */
    size_t n;       /* elements of each */
    size_t piece;   /* TRIB_CODEC_MODEL: elements of a whole chunk */
    bool of_plan;   /* TRIB_CODEC_MODEL: dst has room for trib_codec_sum_bound(n)
                     * alone */
    bool final;     /* nothing is added to the sum any more */
    uint32_t ranks; /* to divide by (mean), with final; 0: by nothing */
    struct trib_encode_key key; /* of the sum, with final: for codecs that quantise it
                                 * anew; the same on all ranks that make it */
};

/**
 * trib_codec_merge - the word of a sum, of words of TRIB_CODEC_LINEAR.
 *
 * decode(merge(a, b)) = decode(a) + decode(b), to rounding of the decoding alone; the
 * order does not matter. signsgd: with final, which sign most contributions have;
 * result=requantised: with final, rounded once more.
 * dst      trib_codec_bound(n) bytes, none of the words
 * errors   TRIB_ERR_CODEC: a word is not one of n elements, has other scales, or more
 *          contributions are in them than trib_codec_for_ranks allows
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

/* A row of the table of codecs. The parser, trib-info, tests, fuzzers and benchmarks go
 * through the rows. */
struct trib_codec_row {
    const char *name;
    const char *grammar; /* "topk:ratio=R[,ef=0|1][+f16|+bf16]" */
    const char *detail;
    const char *paper;  /* NULL: there is none */
    const char *shared; /* what the ranks agree on first; NULL: nothing */
    const char *const *texts; /* NULL-terminated: texts to try; the first one is the
                               * example */
    struct trib_stages stages;
    uint32_t flags; /* with FEEDBACK: its default */
};

/** trib_codecs - the table, in the order in which it is shown. */
extern const struct trib_codec_row trib_codecs[];
extern const size_t trib_codecs_count;

#endif
