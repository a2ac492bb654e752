/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan's part of a run: set before the run is prepared, constant afterwards.
 */
#ifndef PIPELINE_RUN_RUN_DESC_H
#define PIPELINE_RUN_RUN_DESC_H

#include "collectives/schedule/schedule.h"
#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/models/model.h"
#include "pipeline/link/frame.h"
#include "pipeline/run/pair_regions.h"

/* Checks of contributions before they are summed: check.h. */
struct trib_check {
    bool finite;
    bool sum; /* frames have checksums: checksum.h */
    double norm; /* largest l2 norm of a contribution; 0: any */
};

/* How the chunks of round r lie in the vector. */
enum trib_cut {
    TRIB_CUT_INTERLEAVED, /* chunk k of round r is piece r * n_chunks + k */
    TRIB_CUT_BLOCKED, /* chunk k is in block k of `count` elements, piece r of it */
    TRIB_CUT_LISTED, /* chunk k is in block k of `blocks`, piece r of it */
};

#define TRIB_NO_PLACE SIZE_MAX

/* A block of a collective whose blocks have arbitrary places and lengths, in
 * elements. */
struct trib_block {
    size_t n_in; /* length of the contribution; n_out except in an all-to-all */
    size_t n_out; /* length of the result, or of the data that is forwarded */
    size_t in; /* place in the input; 0 if the block is not in it */
    size_t out; /* place in the result, or TRIB_NO_PLACE */
    size_t held; /* place in the plan's memory, for forwarded blocks and partial sums */
    uint32_t late_in; /* rounds before its first chunk: all blocks end together */
    uint32_t late_out;
};

struct trib_blocks {
    struct trib_block *at; /* [n_chunks] */
    size_t own; /* number of the block that a rank keeps, or sends to itself */
    size_t in_end; /* elements of the input */
    size_t out_end; /* elements of the result */
    size_t held; /* elements of the plan's memory */
    bool local; /* only a block's two ranks know its length: it is in frames */
    bool two_lengths; /* n_in differs from n_out in some block */
};

/* All properties of an operation that are equal in all starts. */
struct trib_run_desc {
    struct trib_frame_op op; /* coll, dtype, op, feed, root */
    uint32_t digest; /* codec, feedback, algorithm, chunk size: see frame.h */
    size_t element; /* bytes of one element */
    size_t count; /* elements, as in trib_desc_t */
    size_t total; /* elements of the whole vector */
    size_t piece; /* maximum number of elements of a chunk */
    uint32_t n_chunks; /* chunks of a round of the vector; the program has more if the
                        * ranks first agree on values: payload_agree.h */
    uint32_t rounds;
    enum trib_cut cut;
    struct trib_blocks *blocks; /* TRIB_CUT_LISTED, else NULL; owned by the plan */
    bool zero_copy; /* exchange ADVERT frames; read and write peers' memory */
    bool place; /* write results also to memory of peers without load/store reach */
    bool stream; /* results do not fit the cache */
    bool stream_undo; /* vectors and their undo copies do not fit the cache */
    const struct trib_codec *codec; /* NULL: raw elements */
    struct trib_model *model; /* the codec's model, or NULL */
    struct trib_feedback_rule feedback; /* the codec's feedback rule */
    struct {
        struct trib_codec *codec; /* codec whose ratio warms up, or NULL */
        double ratio; /* its ratio after the warm-up */
    } warm_up;
    uint64_t seed;
    double parameter; /* parameter of op: trib_desc_t */
    bool is_truth; /* the result is 0 or 1, even of a single contribution */
    struct trib_check check;
    bool pairs; /* sum (index, value) pairs: payload_pairs.h */
    struct trib_regions_rule regions; /* regions of pairs; if set, each start has its
                                       * own number of rounds */
    uint32_t senders[TRIB_LANES]; /* ranks that send to one rank at once, at most:
                                   * grants.h */
    bool gathers; /* no partial sum is sent: trib_algo_gathers */
    bool gets_whole; /* ranks send this rank only contributions, no partial sums */
    bool may_undo; /* a start may have to be undone: see undo_log.h */
    bool may_rewind; /* the state of the two newest starts may have to be undone */
    struct {
        uint32_t need; /* minimum number of contributions to a chunk; 0: all */
        uint64_t deadline_ns; /* time from the first contribution to the closing */
    } quorum; /* rule of an aggregator's sums: see partial.h */
    size_t share_piece; /* floats of a chunk of the agreement; 0: no agreement */
    uint32_t share_lead; /* rounds that the agreement runs ahead; 0: none */
    uint32_t limit_ms; /* time limit of the operation; 0: the timeout without progress
                        * from the settings */
    const char *name; /* algorithm, for error messages */
    const char *label; /* plan, for error messages; or NULL */
    uint32_t traced_as; /* number of the label in the trace, or 0 */
};

#endif
