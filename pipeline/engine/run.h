/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: an operation of a plan, prepared once and started often, and the engine that
 * runs it. The bottom of engine/ and payload/: nothing here starts, moves or ends
 * anything.
 */
#ifndef PIPELINE_ENGINE_RUN_H
#define PIPELINE_ENGINE_RUN_H

#include <stdatomic.h>

#include "base/config.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/trace.h"
#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"
#include "compress/models/model.h"
#include "pipeline/link/registered.h"
#include "schedule/program.h"

/* Checks of contributions before they are summed: check.h. */
struct trib_check {
    bool finite;
    bool sum;    /* frames have checksums: checksum.h */
    double norm; /* the largest l2 norm of a contribution; 0: any */
};

/* How the chunks of round r lie in the vector. */
enum trib_cut {
    TRIB_CUT_INTERLEAVED, /* chunk k of round r is piece r * n_chunks + k */
    TRIB_CUT_BLOCKED,     /* chunk k is in block k of `count` elements, piece r of it */
};

/* Everything about an operation that does not change from start to start. */
struct trib_run_desc {
    struct trib_frame_op op; /* coll, dtype, op, feed, root */
    uint32_t digest; /* codec, feedback, algorithm, chunk size: see frame.h */
    size_t element;          /* bytes of one */
    size_t count;            /* elements, as in trib_desc_t */
    size_t total;            /* elements of the whole vector that is cut */
    size_t piece;            /* elements of a chunk at most */
    uint32_t n_chunks;       /* of a round; the program has more, see payload_agree.h */
    uint32_t rounds;
    enum trib_cut cut;
    bool zero_copy; /* exchange ADVERT frames; read and place in peers' memory */
    bool place;     /* the same with peers that are reached by writes: place only */
    bool stream;    /* results are too large for the cache */
    bool stream_kept; /* what undo_log.h copies is too large for it, its copy
                       * included */
    const struct trib_codec *codec; /* NULL: raw elements */
    struct trib_model *model;       /* of the codec, or NULL */
    struct trib_feedback_rule feedback; /* of a codec */
    uint64_t seed;
    double parameter; /* of op: trib_desc_t */
    struct trib_check check; /* of contributions */
    bool gathers; /* no partial sum travels: trib_algo_gathers */
    bool keep; /* a start may have to be undone: see undo_log.h */
    struct {
        uint32_t need; /* contributions of a chunk, at least; 0: of all ranks */
        uint64_t deadline_ns; /* after the first of them */
    } quorum; /* of an aggregator: see quorum.h */
    size_t share_piece;   /* floats of a chunk of what is agreed on first; 0: nothing
                           * is */
};

/* A code word that is sent several times: of the chunk's result, or of the own
 * contribution where that is both sent and summed. */
struct trib_store {
    uint8_t *bytes;
    uint32_t len;
    uint32_t round; /* rounds filled */
};

/* The agreement of all ranks before a chunk is encoded: see payload_agree.h. */
struct trib_share {
    size_t floats;      /* of a chunk of `piece` elements */
    float *own;         /* [rounds * n_chunks * floats] what this rank wants */
    float *value;       /* the same, of all ranks: what is sent on, so nothing changes
                         * it */
    float *agreed;      /* the same, as the model settles it for this rank; NULL: no
                         * model */
    float *kept;        /* [total] what is to be encoded, where nothing else has it; or
                         * NULL */
    uint32_t *measured; /* [rounds] the start in which own was measured last */
    uint32_t *settled;  /* [rounds * n_chunks] the start in which a chunk's value was
                         * last */
    uint32_t step;      /* which start this is */
};

struct trib_feedback {
    /* What the rule does; NULL if it keeps no state but the residual. */
    const struct trib_feedback_ops *ops;
    /* kept from operation to operation, [total] each, or NULL: ops->states */
    float *state[TRIB_FEEDBACK_STATES];
    float *cleared; /* one of these: 0 where an element was sent; or NULL */
    uint8_t *sent; /* of the newest operation: bit i % 8 of byte i / 8; sparse sums
                    * only */
    /* of the running operation */
    float *partial; /* [total] sums on their way, which f16 and bf16 would round, if the
                     * rule sums its states; or NULL */
    float scale; /* of the contribution: clipping */
    bool coded;     /* one rank alone encodes, too */
    struct trib_codec *codec; /* whose ratio warms up, or NULL */
    double ratio;             /* of this codec after the warm-up */
};

/* Results of a run that are still to be sent over one link; in its list. */
struct trib_out {
    struct trib_out *next;
    struct trib_run *run;
    uint32_t sent; /* of run->quorum->n_results */
    bool queued;
};

struct trib_quorum {
    size_t mask_bytes;
    /* of a node */
    uint32_t *order;     /* [n_order] the REDUCEs of a round, in the order of their
                          * frames */
    uint32_t n_order;
    uint32_t n_results;  /* of a start */
    uint32_t closed;     /* of these */
    uint64_t opened_ns;  /* when the first contribution of the next one was seen; 0:
                          * none was */
    uint8_t *counted;    /* [mask_bytes] who is in the chunk that is closed */
    uint8_t *results;    /* [n_results * stride] */
    float *sums;         /* [n_results * piece] where ranks get them, too:
                          * agg_sum.h; or NULL */
    size_t stride;
    uint32_t *bytes;     /* [n_results] */
    uint32_t *chunk;     /* [n_results] number of the chunk */
    size_t *elements;    /* [n_results] */
    struct trib_out *out; /* [neighbors] */
    /* of a rank */
    uint8_t *masks; /* [chunks * mask_bytes] of the newest start, by the chunk's
                     * number */
};

enum trib_run_state {
    TRIB_RUN_IDLE,
    TRIB_RUN_QUEUED,
    TRIB_RUN_ACTIVE,
    TRIB_RUN_DONE,
};

struct trib_payload_ops;
struct trib_short_path;

struct trib_run {
    struct trib_run_desc desc;
    /* Payloads of the tasks of the vector, and of those of the agreement
     * (payload.h). */
    const struct trib_payload_ops *payload[2];
    struct trib_program program;
    struct trib_short_path *short_path; /* of small raw operations, see short_path.h; or
                                         * NULL */
    const char *name;    /* of the algorithm, for sentences */
    const char *label;   /* of the plan, for sentences; or NULL */
    uint32_t traced_as;  /* number of the label in the trace, or 0 */
    _Atomic int state;   /* enum trib_run_state */
    trib_status_t status; /* when DONE */
    struct trib_run *next;

    /* of the running operation */
    const uint8_t *input; /* the own contribution to vector element input_first */
    uint8_t *recv;      /* vector element recv_first */
    size_t input_first;
    size_t recv_first;
    bool no_result; /* recv is not for this rank: values go to scratch_value */
    bool is_aggregator; /* it contributes nothing: values are in scratch_value, chunk
                         * by chunk */
    bool values_read;      /* of an aggregator: peers read them there, see struct
                            * trib_values */
    uint32_t value_rounds; /* of an aggregator: so many rounds have places in
                            * scratch_value */
    size_t value_bytes;    /* of such a place: elements, or the sum of words that add */
    struct trib_frame frame; /* template */
    uint32_t step;           /* number of starts, for codecs */
    uint32_t remaining;      /* tasks not finished */
    uint64_t moved;          /* frames sent and received, for sentences */
    struct trib_advert advert; /* what peers within load/store reach are told */
    struct trib_advert advert_far; /* what the others are */
    struct trib_place input_place; /* of own and recv, for writes out of them */
    struct trib_place recv_place;

    const float *exchanged; /* what the ranks summed before this start, for the model;
                             * or NULL */

    /* state of the plan */
    struct trib_share share;
    struct trib_quorum *quorum; /* or NULL: everybody is counted */
    struct trib_undo_log *undo_log; /* what a start changed, as it was; or NULL */
    struct trib_store *stores;  /* [n_chunks], codec only */
    size_t word_bytes;          /* of the longest code word: what a store has room
                                 * for */
    bool narrow;                /* a mean whose sums are divided on their way:
                                 * narrow.h */
    void *rows;                 /* of an op that needs all contributions at once, or
                                 * NULL */
    const uint8_t **sources; /* [contributions to a reduction + 1], of its sum */
    float *weights;             /* [the same] of a narrow mean's, or NULL */
    uint8_t *scratch_value;     /* value of chunks that have no place in recv, or
                                 * NULL */
    struct trib_agg_sum *sum; /* of an aggregator: see agg_sum.h; or NULL */
    float *residual;            /* error feedback [total], of contributions; or NULL */
    struct trib_feedback feedback;
    float *acc;                 /* [piece] accumulator, codec only */
    float *stage;               /* [piece] elements as float32, codec only */
    uint8_t *word;              /* one code word, codec only */
    struct trib_encoded *words; /* [contributions to a reduction + 1], of its merge, or
                                 * NULL */
    void *codec_scratch;
    struct trib_encode_ahead *encode_ahead; /* chunks that workers encode, or NULL */
    _Atomic uint32_t *unfed;    /* [rounds * n_chunks] elements not ready yet, or
                                 * NULL */
};

/*
 * The memory in which an aggregator keeps results until all peers within load/store
 * reach have read them. Operations of an engine run one after the other, and do not end
 * before that: so all runs have the same memory. It lasts as long as the engine, as
 * peers may be behind.
 */
struct trib_values {
    uint8_t *base; /* of e->memories, or NULL */
    size_t bytes;
};

/* Facts about a peer, known from the start. */
struct trib_peer {
    char host[TRIB_HOST_BYTES];
    int pid;
    struct trib_address address;
    struct trib_arena_blob arena;
};

struct trib_engine_stats {
    uint64_t operations, wire_bytes, payload_bytes, dense_bytes, copied_bytes, messages;
    uint64_t received_bytes;       /* as wire_bytes, of what came */
    uint64_t received_dense_bytes; /* as dense_bytes */
    uint64_t sums;                 /* of chunks, k-ary */
    uint64_t wait_ns, encode_ns;
    uint64_t words_ahead; /* that were there when they were due */
    uint64_t short_sums;  /* of these sums, without some rank */
    uint64_t late_frames; /* dropped: their sums had been closed without them */
};

struct trib_engine {
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    const struct trib_kernels *kernels;
    struct trib_transport *transport;
    int rank;
    int size;  /* ranks, and the aggregators of schedule.h behind them */
    int ranks; /* that contribute */
    bool oversubscribed; /* this host has more ranks than cores */
    bool all_mapped; /* no connected link needs transport events */
    struct trib_arena arena;
    struct trib_memories memories;
    struct trib_values values;
    struct trib_link *links; /* [size] */
    struct trib_peer *peers; /* [size] */
    bool *parted; /* [size] of trib_engine_part: peers that are left together */
    struct trib_workers *workers; /* of cfg->encode_threads, or NULL: not wanted so
                                   * far */
    struct trib_run *head;   /* active; the others wait behind it */
    struct trib_run *tail;
    uint32_t seq;
    bool has_backlog; /* links may have frames of operations that are over: see
                       * quorum.h */
    _Atomic int failed; /* trib_status_t: the communicator has failed */
    struct trib_error failure; /* its sentence, written once, before failed */
    uint32_t idle;          /* passes without progress */
    uint32_t yields;        /* of these, those that gave the core away */
    uint64_t idle_since;    /* ns, the first of them, over a network */
    uint64_t last_progress; /* ns; 0: not looked at since */
    uint64_t last_notice;   /* ns */
    uint64_t last_poll;
    uint32_t awaited; /* newest operation, not begun here, in which a peer says it
                       * waits */
    uint64_t awaited_since; /* ns */
    bool rest_untold; /* the engine has failed, and peers without a link do not know of
                       * it */
    bool tells_later; /* a failure takes no time: trib_engine_tell_failure follows,
                       * elsewhere */
    void (*idle_hook)(void *arg); /* called now and then while trib_engine_wait waits,
                                   * or NULL */
    void *idle_hook_arg;
    struct trib_engine_stats stats;
    struct trib_trace trace; /* cfg->trace events; the owner of the engine dumps it */
};

/** trib_engine_is_aggregator - true if the engine is that of an aggregator. */
static inline bool trib_engine_is_aggregator(const struct trib_engine *e)
{
    return e->rank >= e->ranks;
}

/** trib_share_task - is it one of the agreement? */
static inline bool trib_share_task(const struct trib_run *run,
                                   const struct trib_task *t)
{
    return t->chunk >= run->desc.n_chunks;
}

/** trib_task_first - the first round of t: those of the vector begin one later than the
 * agreement's, where there is one. */
static inline uint32_t trib_task_first(const struct trib_run *run,
                                       const struct trib_task *t)
{
    return run->desc.share_piece && !trib_share_task(run, t);
}

/** trib_task_over - are all rounds of t done? Those of the agreement end one before the
 * others, which begin one later. */
static inline bool trib_task_over(const struct trib_run *run, const struct trib_task *t)
{
    return t->done ==
           run->desc.rounds - (run->desc.share_piece && trib_share_task(run, t));
}

/* A chunk of one round. */
struct trib_chunk {
    uint32_t index; /* in the whole vector; what frames carry */
    size_t first;   /* element of the vector */
    size_t n;       /* elements, 0 behind the end of a vector that does not divide */
};

#define TRIB_CHUNK_NO_ELEMENTS 0x80000000u /* in index: of no place in the vector */

/* Rounds of the vector; one less than the program's where ranks agree on something
 * first. */
static inline uint32_t trib_run_rounds(const struct trib_run *run)
{
    return run->desc.rounds - (run->desc.share_piece != 0);
}

/* Chunk `chunk` of the round `round` of the vector. */
static inline struct trib_chunk trib_vector_chunk(const struct trib_run *run,
                                                  uint32_t round, uint32_t chunk)
{
    const struct trib_run_desc *d = &run->desc;
    size_t end = d->total;
    struct trib_chunk c;

    if (d->cut == TRIB_CUT_BLOCKED) {
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)chunk * d->count + (size_t)round * d->piece;
        end = (size_t)(chunk + 1) * d->count;
    } else {
        if (d->op.feed == TRIB_FEED_BACKWARD)
            round = trib_run_rounds(run) - 1 - round;
        c.index = round * d->n_chunks + chunk;
        c.first = (size_t)c.index * d->piece;
    }
    c.first = c.first < end ? c.first : end;
    c.n = end - c.first < d->piece ? end - c.first : d->piece;
    return c;
}

/* The same for a round of the program, which comes one later where ranks agree on
 * something first: round 0 has none. Not for the chunks of that: see
 * payload_agree.h. */
static inline struct trib_chunk trib_run_chunk(const struct trib_run *run,
                                               uint32_t round, uint32_t chunk)
{
    return trib_vector_chunk(run, round - (run->desc.share_piece != 0), chunk);
}

/* Is all of this chunk's own contribution there? */
static inline bool trib_chunk_fed(const struct trib_run *run,
                                  const struct trib_chunk *c)
{
    return c->n == 0 || !run->unfed ||
           atomic_load_explicit(&run->unfed[c->index], memory_order_acquire) == 0;
}

/** trib_run_input, trib_run_acc - where the own contribution and the value of a chunk
 * are. */
const uint8_t *trib_run_input(const struct trib_run *run, const struct trib_chunk *c);
uint8_t *trib_run_acc(const struct trib_run *run, const struct trib_chunk *c);

/** trib_value_at - that of a chunk at an aggregator which has opened the places of some
 * rounds; NULL: it has not. */
const uint8_t *trib_value_at(const struct trib_run *run, const struct trib_view *view,
                             const struct trib_chunk *c);

/** trib_run_due - the entry of a frame whose turn it is, or NULL. */
struct trib_entry *trib_run_due(struct trib_engine *e, struct trib_run *run,
                                const struct trib_contrib *m, uint32_t round);

/** trib_run_value_free - may the place of t's value be written to? That of an
 * aggregator is also the one of some round before, and peers may still read it. */
bool trib_run_value_free_at_aggregator(const struct trib_engine *e,
                                    const struct trib_run *run,
                                    const struct trib_task *t);
static inline bool trib_run_value_free(const struct trib_engine *e,
                                       const struct trib_run *run,
                                       const struct trib_task *t)
{
    return !run->is_aggregator || trib_run_value_free_at_aggregator(e, run, t);
}

/** trib_run_fed - is what t takes of the own contribution there? */
static inline bool trib_run_fed(const struct trib_run *run, const struct trib_task *t,
                                const struct trib_chunk *c)
{
    return !run->unfed || !(t->flags & TRIB_TASK_INPUT) || trib_chunk_fed(run, c);
}

/** trib_run_bind - where the vector's elements are in the buffers of this rank. */
void trib_run_bind(struct trib_engine *e, struct trib_run *run, const void *send,
                   void *recv);

/** trib_quorum_mask_bytes - of the bitmap of so many ranks. */
static inline size_t trib_quorum_mask_bytes(int ranks)
{
    return ((size_t)ranks + 7) / 8;
}

static inline bool trib_quorum_bit(const uint8_t *mask, int rank)
{
    return mask[rank / 8] >> rank % 8 & 1;
}

/** trib_quorum_counts - is this peer's contribution in the chunk that is closed now? */
static inline bool trib_quorum_counts(const struct trib_run *run, int peer)
{
    return !run->quorum || trib_quorum_bit(run->quorum->counted, peer);
}

/** trib_quorum_bits - the number of ranks in a bitmap of so many bytes. */
int trib_quorum_bits(const uint8_t *mask, size_t bytes);

/** trib_quorum_contributors - how many are in it. */
int trib_quorum_contributors(const struct trib_engine *e, const struct trib_run *run);

/** trib_codec_flags - what the run's codec is, as in compress/codec.h; the run has
 * one. */
static inline uint32_t trib_codec_flags(const struct trib_run *run)
{
    return trib_codec_info(run->desc.codec)->flags;
}

/** trib_coded_linear - do the run's words add without decoding? */
bool trib_coded_linear(const struct trib_run *run);

/** trib_coded_bound - the longest code word of the run. */
size_t trib_coded_bound(const struct trib_run *run);

#endif
