/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: runs any schedule over any transport with any codec.
 *
 * Operations of one engine run one after the other, in the order of their starts. It is
 * not locked: comm/ sees to it that one thread at a time calls it; the one exception is
 * trib_run_feed.
 */
#ifndef PIPELINE_ENGINE_ENGINE_H
#define PIPELINE_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "base/config.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/trace.h"
#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "compress/models/model.h"
#include "pipeline/payload/check.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/link/registered.h"
#include "schedule/program.h"

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
    bool zero_copy; /* exchange OPEN frames; read and place in peers' memory */
    bool place;     /* the same with peers that are reached by writes: place only */
    bool stream;    /* results are too large for the cache */
    bool stream_kept; /* what undo_log.h copies is too large for it, its copy included */
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
    } quorum; /* of a service: see quorum.h */
    size_t share_piece;   /* floats of a chunk of what is agreed on first; 0: nothing is */
};

/* A code word that is sent several times: of the chunk's result, or of the own
 * contribution where that is both sent and summed. */
struct trib_store {
    uint8_t *bytes;
    uint32_t len;
    uint32_t round; /* rounds filled */
};

/* What all ranks agree on before a chunk is encoded: see payload_agree.h. */
struct trib_share {
    size_t floats;      /* of a chunk of `piece` elements */
    float *own;         /* [rounds * n_chunks * floats] what this rank wants */
    float *value;       /* the same, of all ranks: what is sent on, so nothing changes it */
    float *agreed;      /* the same, as the model settles it for this rank; NULL: no model */
    float *kept;        /* [total] what is to be encoded, where nothing else has it; or NULL */
    uint32_t *measured; /* [rounds] the start in which own was measured last */
    uint32_t *settled;  /* [rounds * n_chunks] the start in which a chunk's value was last */
    uint32_t step;      /* which start this is */
};

enum trib_run_state {
    TRIB_RUN_IDLE,
    TRIB_RUN_QUEUED,
    TRIB_RUN_ACTIVE,
    TRIB_RUN_DONE,
};

struct trib_run {
    struct trib_run_desc desc;
    struct trib_program program;
    const char *name;    /* of the algorithm, for sentences */
    const char *label;   /* of the plan, for sentences; or NULL */
    uint32_t traced_as;  /* number of the label in the trace, or 0 */
    _Atomic int state;   /* enum trib_run_state */
    trib_status_t status; /* when DONE */
    struct trib_run *next;

    /* of the running operation */
    const uint8_t *own; /* the own contribution to vector element own_first */
    uint8_t *recv;      /* vector element recv_first */
    size_t own_first;
    size_t recv_first;
    bool no_result; /* recv is not for this rank: values go to scratch_value */
    bool serves;    /* it contributes nothing: values are in scratch_value, chunk by chunk */
    bool values_read;      /* of a service: peers read them there, see struct trib_values */
    uint32_t value_rounds; /* of a service: so many rounds have places in scratch_value */
    size_t value_bytes;    /* of such a place: elements, or the sum of words that add */
    struct trib_frame frame; /* template */
    uint32_t step;           /* number of starts, for codecs */
    uint32_t remaining;      /* tasks not finished */
    uint64_t moved;          /* frames sent and received, for sentences */
    struct trib_open open;   /* what peers within load/store reach are told */
    struct trib_open open_far;   /* what the others are */
    struct trib_place own_place; /* of own and recv, for writes out of them */
    struct trib_place recv_place;

    const float *exchanged; /* what the ranks summed before this start, for the model; or NULL */

    /* state of the plan */
    struct trib_share share;
    struct trib_quorum *quorum; /* or NULL: everybody is counted */
    struct trib_keep *keep; /* what a start changed, as it was; or NULL */
    struct trib_store *stores;  /* [n_chunks], codec only */
    size_t word_bytes;          /* of the longest code word: what a store has room for */
    bool narrow;                /* a mean whose sums are divided on their way: narrow.h */
    void *rows;                 /* of an op that needs all contributions at once, or NULL */
    const uint8_t **sources;    /* [members of a reduction + 1], of its sum */
    float *weights;             /* [the same] of a narrow mean's, or NULL */
    uint8_t *scratch_value;     /* value of chunks that have no place in recv, or NULL */
    struct trib_service_sum *sum; /* of a service: see service_sum.h; or NULL */
    float *residual;            /* error feedback [total], of contributions; or NULL */
    struct trib_feedback feedback;
    float *acc;                 /* [piece] accumulator, codec only */
    float *stage;               /* [piece] elements as float32, codec only */
    uint8_t *word;              /* one code word, codec only */
    struct trib_word *words;    /* [members of a reduction + 1], of its merge, or NULL */
    void *codec_scratch;
    struct trib_run_ahead *ahead;   /* chunks that workers encode, or NULL */
    _Atomic uint32_t *unfed;    /* [rounds * n_chunks] elements not ready yet, or NULL */
};

/*
 * Of a service: where results lie until all within load/store reach who get them have read
 * them. Operations of an engine run one after the other, and do not end before that: so all
 * runs have the same memory. It lasts as long as the engine, as peers may be behind.
 */
struct trib_values {
    uint8_t *base; /* of e->memories, or NULL */
    size_t bytes;
};

/* What is known of a peer from the start. */
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
    int size;  /* ranks, and the services of schedule.h behind them */
    int ranks; /* that contribute */
    bool oversubscribed; /* this host has more ranks than cores */
    bool all_mapped; /* no connected link needs transport events */
    struct trib_arena arena;
    struct trib_memories memories;
    struct trib_values values;
    struct trib_link *links; /* [size] */
    struct trib_peer *peers; /* [size] */
    bool *parted; /* [size] of trib_engine_part: peers that are left together */
    struct trib_workers *workers; /* of cfg->encode_threads, or NULL: not wanted so far */
    struct trib_run *head;   /* active; the others wait behind it */
    struct trib_run *tail;
    uint32_t seq;
    bool owing; /* links may have frames of operations that are over: see quorum.h */
    _Atomic int failed; /* trib_status_t: the communicator has failed */
    struct trib_error failure; /* its sentence, written once, before failed */
    uint32_t idle;          /* passes without progress */
    uint32_t yields;        /* of these, those that gave the core away */
    uint64_t idle_since;    /* ns, the first of them, over a network */
    uint64_t last_progress; /* ns; 0: not looked at since */
    uint64_t last_notice;   /* ns */
    uint64_t last_poll;
    bool tells_later; /* a failure takes no time: trib_engine_tell_failure follows, elsewhere */
    void (*aside)(void *arg); /* called now and then while trib_engine_wait waits, or NULL */
    void *aside_arg;
    struct trib_engine_stats stats;
    struct trib_trace trace; /* cfg->trace events; the owner of the engine dumps it */
};

/**
 * trib_engine_open - make the arena; peers[] is filled by the caller before a run.
 *
 * Sets up e from its cfg, log, err, kernels, transport, rank, size, arena.per_edge.
 */
trib_status_t trib_engine_open(struct trib_engine *e);

/**
 * trib_engine_part - after a failure: no peer is written to any more, and none writes.
 *
 * For who gives memory back that a write may still be under way from or to.
 */
void trib_engine_part(struct trib_engine *e);

/** trib_engine_close - leave all links. No run may be queued. */
void trib_engine_close(struct trib_engine *e);

/**
 * trib_engine_connect - bring up the link to a peer; nothing happens when it is.
 *
 * Runs do it for their edges. One at the start, so that what is wrong shows there.
 * operation  who needs it, for the sentence
 * errors   those of connecting; the communicator has then failed
 */
trib_status_t trib_engine_connect(struct trib_engine *e, int peer, const char *operation);

/** trib_engine_link - the same, but who fails only has its sentence in e->err. */
trib_status_t trib_engine_link(struct trib_engine *e, int peer);

/**
 * trib_run_prepare - connect the edges of run->program and allocate what run->desc wants.
 *
 * run      zero but for desc, program and name
 * errors   TRIB_ERR_NO_MEMORY, and what connecting gives
 */
trib_status_t trib_run_prepare(struct trib_engine *e, struct trib_run *run);

/**
 * trib_run_bytes - what trib_run_prepare will allocate for a service's run, or a little more.
 *
 * run         as trib_run_prepare takes it
 * values_out  what memories grow by that stay when the run is gone (trib_values)
 */
uint64_t trib_run_bytes(const struct trib_engine *e, const struct trib_run *run,
                        uint64_t *values_out);

/** trib_engine_serves - is this a service of schedule.h? */
static inline bool trib_engine_serves(const struct trib_engine *e)
{
    return e->rank >= e->ranks;
}

/** trib_run_dispose - free what prepare made, and the program. */
void trib_run_dispose(struct trib_run *run);

/** trib_run_start - queue it; send == recv or NULL is in place. */
void trib_run_start(struct trib_engine *e, struct trib_run *run, const void *send,
                    void *recv);

/** trib_run_due - the cell of a frame whose turn it is, or NULL. */
struct trib_cell *trib_run_due(struct trib_engine *e, struct trib_run *run,
                               const struct trib_member *m, uint32_t round);

/** trib_run_bind - where the vector's elements are in the buffers of this rank. */
void trib_run_bind(struct trib_engine *e, struct trib_run *run, const void *send,
                   void *recv);

/** trib_run_open - which of them are registered, and what peers are told of that. */
void trib_run_open(struct trib_engine *e, struct trib_run *run);

/** trib_engine_view - where a peer's buffer is; none of it if it is not within reach, or
 * if the engine failed. */
struct trib_view trib_engine_view(struct trib_engine *e, struct trib_link *l,
                                  const struct trib_ref *ref);

/**
 * trib_run_feed - elements [first, first + count) of the input are final.
 *
 * thread   any, also while another drives the engine
 * returns  false: some are not awaited, because they were final before or because
 *          nothing was started; nothing has changed
 */
bool trib_run_feed(struct trib_run *run, size_t first, size_t count);

/**
 * trib_engine_progress - do what can be done now; never blocks.
 *
 * returns  true if anything moved
 */
bool trib_engine_progress(struct trib_engine *e);

/**
 * trib_engine_look - look after peers, notices and deadlines; never blocks.
 *
 * returns  true: nothing has moved for milliseconds, sleeping is right
 */
bool trib_engine_look(struct trib_engine *e);

/** trib_engine_awake - something moved: begin to spin anew, deadlines start again. */
void trib_engine_awake(struct trib_engine *e);

/** trib_engine_wait - progress until the run is done; its status. */
trib_status_t trib_engine_wait(struct trib_engine *e, struct trib_run *run);

/**
 * trib_engine_fail - the communicator has failed: tell all peers, end all runs.
 *
 * The first failure wins; its sentence goes to e->failure, which any thread may read
 * once it has seen e->failed.
 */
void trib_engine_fail(struct trib_engine *e, trib_status_t status, const char *text);

/**
 * trib_engine_tell_failure - of an engine that tells later and has failed: the peers to which it
 * has no link, and those whose transport was full.
 *
 * May take some 100 ms, and longer where such a peer must be connected to first.
 */
void trib_engine_tell_failure(struct trib_engine *e);

#endif
