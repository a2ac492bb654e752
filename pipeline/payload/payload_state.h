/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload's part of a run: state of payloads between tasks and between starts. Only
 * the files of this room, and their tests, include this header.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_STATE_H
#define PIPELINE_PAYLOAD_PAYLOAD_STATE_H

#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/encoded_store.h"
#include "pipeline/run/result_store.h"

struct trib_pairs_state;
struct trib_peer_reads;

struct trib_payload_state {
    /* Accumulators of chunks that have no place in recv: chunk_memory.h. */
    uint8_t *scratch_acc; /* or NULL */
    bool acc_is_read;     /* peers read an aggregator's results in scratch_acc, see
                           * struct trib_agg_results */
    uint32_t acc_rounds;  /* rounds of an aggregator with separate accumulators */
    size_t acc_bytes;     /* size of an accumulator of an aggregator */

    /* For listed blocks: input and result, as read by peers within load/store reach. */
    struct trib_ref block_refs[2];

    struct trib_peer_reads *reads; /* contributions read by address; or NULL */

    /* Sums of elements. */
    const uint8_t **sources; /* [contributions to a reduction + 1] */
    float *weights;          /* [contributions to a reduction + 1] or NULL */
    bool narrow;             /* a mean whose partial sums are divided: narrow.h */
    bool reduces_one;        /* even a single contribution must be reduced */
    void *rows; /* memory of an op that needs all contributions at once, or NULL */

    /* Encoded chunks. */
    struct trib_encoded_store *stores;  /* [n_chunks] */
    size_t encoded_max;         /* maximum length of an encoded chunk */
    float *acc;                 /* [piece] accumulator as float32 */
    float *stage;               /* [piece] elements as float32 */
    uint8_t *encoded;             /* one encoded chunk */
    struct trib_encoded *merge_inputs; /* [contributions to a reduction + 1] inputs of a
                                        * merge of chunks that add linearly; or NULL */
    void *codec_scratch;
    struct trib_result_store result_store; /* how decoded chunks are stored */
    struct trib_encode_ahead *encode_ahead; /* chunks that workers encode, or NULL */
    struct trib_agg_sum *agg_sum;       /* an aggregator's float sums, or NULL */
    struct trib_quorum *quorum;             /* NULL: sums have all contributions */
    struct trib_undo_log *undo_log;         /* copies of changed data, or NULL */

    struct trib_pairs_state *pairs; /* for sparse vectors: payload_pairs.h; or NULL */

    struct trib_share share;
    struct trib_feedback feedback;
};

#endif
