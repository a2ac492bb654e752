/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan's part of a run: what is known before it is prepared, and then never
 * changes.
 */
#ifndef PIPELINE_ENGINE_RUN_DESC_H
#define PIPELINE_ENGINE_RUN_DESC_H

#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/models/model.h"
#include "pipeline/link/frame.h"
#include "pipeline/payload/pair_regions.h"

/* Checks of contributions before they are summed: check.h. */
struct trib_check {
    bool finite;
    bool sum;    /* frames have checksums: checksum.h */
    double norm; /* largest l2 norm of a contribution; 0: any */
};

/* How the chunks of round r lie in the vector. */
enum trib_cut {
    TRIB_CUT_INTERLEAVED, /* chunk k of round r is piece r * n_chunks + k */
    TRIB_CUT_BLOCKED, /* chunk k is in block k of `count` elements, piece r of it */
    TRIB_CUT_LISTED, /* chunk k is in block k of `blocks`, piece r of it */
};

#define TRIB_NO_PLACE SIZE_MAX

/* A block of a collective whose blocks lie anywhere, each of its own length. Lengths
 * and places are in elements. */
struct trib_block {
    size_t n_in; /* of this rank's contribution; of all blocks but those of an
                   * all-to-all the same as n_out */
    size_t n_out; /* of the result, or of what is passed on */
    size_t in; /* place in the input; 0 if it is not there */
    size_t out; /* place in the result, or TRIB_NO_PLACE */
    size_t held; /* place in memory of the plan, of blocks that are passed on, or of
                   * partial sums */
    uint32_t late_in; /* rounds that pass before its first chunk: a block ends with the
                       * last round */
    uint32_t late_out;
};

struct trib_blocks {
    struct trib_block *at; /* [n_chunks] */
    size_t own; /* number of the block that a rank keeps, or sends to itself */
    size_t in_end; /* elements of the input */
    size_t out_end; /* elements of the result */
    size_t held; /* elements of the plan's memory */
    bool local; /* only the two ranks of a block know its length, so frames tell it */
    bool two_lengths; /* n_in differs from n_out somewhere */
};

/* Everything about an operation that does not change from start to start. */
struct trib_run_desc {
    struct trib_frame_op op; /* coll, dtype, op, feed, root */
    uint32_t digest;         /* codec, feedback, algorithm, chunk size: see frame.h */
    size_t element;          /* bytes of one element */
    size_t count;            /* elements, as in trib_desc_t */
    size_t total;            /* elements of the whole vector that is cut */
    size_t piece;            /* largest number of elements of a chunk */
    uint32_t n_chunks; /* chunks of a round of the vector; the program has more if the
                        * ranks agree on something first: payload_agree.h */
    uint32_t rounds;
    enum trib_cut cut;
    struct trib_blocks *blocks; /* TRIB_CUT_LISTED, else NULL; the plan's */
    bool zero_copy; /* exchange ADVERT frames; read and place in peers' memory */
    bool place;     /* place also in memory of peers that are reached by writes */
    bool stream;    /* results are too large for the cache */
    bool stream_undo; /* vectors and their copies in the undo log are too large for
                       * it */
    const struct trib_codec *codec;     /* NULL: raw elements */
    struct trib_model *model;           /* the codec's model, or NULL */
    struct trib_feedback_rule feedback; /* the codec's */
    struct {
        struct trib_codec *codec; /* codec whose ratio warms up, or NULL */
        double ratio;             /* its ratio after the warm-up */
    } warm_up;
    uint64_t seed;
    double parameter; /* parameter of op: trib_desc_t */
    bool is_truth;    /* the result is 0 or 1, also of one contribution */
    struct trib_check check;
    bool pairs; /* (index, value) pairs are summed: payload_pairs.h */
    struct trib_regions_rule regions; /* of pairs; if there are any, each start has
                                       * rounds of its own */
    bool gathers; /* no partial sum travels: trib_algo_gathers */
    bool may_undo; /* a start may have to be undone: see undo_log.h */
    bool may_rewind; /* the state of the two newest starts may have to be */
    struct {
        uint32_t need; /* least number of contributions to a chunk; 0: all */
        uint64_t deadline_ns; /* time from the first of them to the closing */
    } quorum;                 /* rule of an aggregator's sums: see partial.h */
    size_t share_piece; /* floats of a chunk of the agreement; 0: there is none */
    uint32_t share_lead; /* rounds by which it runs ahead of the vector; 0: none */
    uint32_t limit_ms; /* time for the operation; 0: that of the settings, without
                        * progress */
    const char *name;   /* algorithm, for sentences */
    const char *label;  /* plan, for sentences; or NULL */
    uint32_t traced_as; /* number of the label in the trace, or 0 */
};

#endif
