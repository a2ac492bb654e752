/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine: the settings, links and memory that all its runs share, their queue, and
 * the notes of its waiting and its failures.
 */
#ifndef PIPELINE_ENGINE_ENGINE_STATE_H
#define PIPELINE_ENGINE_ENGINE_STATE_H

#include "base/config.h"
#include "base/error.h"
#include "base/host.h"
#include "base/idle_function.h"
#include "base/log.h"
#include "base/state_page.h"
#include "base/trace.h"
#include "compress/kernels/kernels.h"
#include "pipeline/engine/chunk.h"
#include "pipeline/engine/engine_p2p.h"

/*
 * The memory in which an aggregator keeps results until all peers within load/store
 * reach have read them. All runs share it, as operations of an engine run one after the
 * other and end when it was read. It lasts as long as the engine, as peers may be
 * behind.
 */
struct trib_agg_results {
    uint8_t *base; /* in e->memories, or NULL */
    size_t bytes;
};

/* Facts about a peer that do not change. */
struct trib_peer {
    char host[TRIB_HOST_BYTES];
    int pid;
    struct trib_address address;
    struct trib_arena_blob arena;
};

struct trib_engine_stats {
    uint64_t operations, wire_bytes, payload_bytes, dense_bytes, copied_bytes, messages;
    uint64_t input_bytes, input_dense_bytes; /* of payload_bytes and dense_bytes, those
                                              * of this rank's own vectors */
    uint64_t received_bytes;       /* as wire_bytes, of received frames */
    uint64_t received_dense_bytes; /* as dense_bytes, of received frames */
    uint64_t sums;                 /* k-ary sums of chunks */
    uint64_t wait_ns, encode_ns;
    uint64_t words_ahead; /* code words that workers had made when they were due */
    uint64_t short_sums;  /* sums that were closed without some rank */
    uint64_t late_frames; /* frames dropped because their sums had been closed */
};

enum { TRIB_ABORT_WHY_MAX = 120 };

/* Any thread may call for the end of all that is under way. */
enum trib_abort_call {
    TRIB_ABORT_NONE,
    TRIB_ABORT_WRITES, /* a thread writes its reason */
    TRIB_ABORT_MADE,
};

struct trib_engine {
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    const struct trib_kernels *kernels;
    struct trib_transport *transport;
    int rank;
    int size;  /* ranks, and the aggregators behind them (schedule.h) */
    int ranks; /* ranks that contribute */
    bool oversubscribed; /* this host has more ranks than cores */
    uint32_t core; /* plus 1, where the short operation began; oversubscribed only */
    bool all_mapped; /* no connected link needs transport events */
    struct trib_arena arena;
    struct trib_memories memories;
    struct trib_agg_results results;
    struct trib_link *links; /* [size] */
    struct trib_peer *peers; /* [size] */
    bool *parted; /* [size] peers that trib_engine_part leaves together */
    struct trib_workers *workers; /* cfg->encode_threads threads; NULL until a plan
                                   * wants them */
    struct trib_run *head;   /* active run; the others wait behind it */
    struct trib_run *tail;
    struct trib_engine_p2p *p2p; /* messages from rank to rank; NULL: there are no plans
                                  * of such */
    uint32_t seq;
    bool has_backlog; /* links may have frames of earlier operations: see partial.h */
    _Atomic int failed; /* trib_status_t: the communicator has failed */
    uint32_t
        cause_lost; /* the rank whose loss is the failure, plus 1; 0: another cause.
                          * Written before failed */
    uint64_t away_ns; /* how long this rank itself was away before the failure, if
                       * others may have given it up meanwhile; else 0. Written before
                       * failed */
    bool maybe_away; /* the same, also where a busy host may have been the cause */
    struct trib_error failure; /* sentence of the failure, written once, before
                                * failed */
    uint32_t idle;          /* passes without progress */
    uint32_t yields;        /* passes of these that gave the core away */
    uint32_t short_looks;   /* at short runs, in all waits: engine_wait.c */
    bool says_asleep;       /* on the billboard, since trib_engine_arm */
    uint64_t idle_since;    /* ns, time of the first of them, over a network */
    uint64_t last_progress; /* ns; 0: progress since the last look */
    uint64_t last_notice;   /* ns */
    uint64_t last_poll;
    uint32_t awaited; /* newest operation in which a peer waits and which has not begun
                       * here */
    uint64_t awaited_since; /* ns */
    bool rest_untold; /* peers without a link do not know of the failure */
    bool tells_later; /* the owner calls trib_engine_tell_failure itself, elsewhere */
    void (*idle_hook)(void *arg); /* called now and then while trib_engine_wait waits;
                                   * or NULL */
    void *idle_hook_arg;
    struct trib_idle *idle_fn; /* the caller's; NULL: there is none */
    bool (*give_way)(void *arg); /* looks at idle_fn without the owner's lock; true: the
                                  * caller gives up */
    void *give_way_arg;
    _Atomic int wanted; /* threads that wait for the owner's lock */
    void (*let_in)(void *arg); /* gives the owner's lock to them and takes it again; the
                                * argument is give_way_arg */
    trib_status_t (*wait)(struct trib_engine *e, struct trib_run *run); /* the owner's
                                  * choice of the two of engine_wait.h */
    _Atomic int abort_call; /* enum trib_abort_call */
    char
        abort_why[TRIB_ABORT_WHY_MAX]; /* a clause; written before abort_call is MADE */
    uint32_t limit_seq; /* operation that has a time limit, */
    uint64_t limit_since; /* ns, and when it was seen first */
    void (*survivor_said)(void *arg, int peer, const struct trib_oob_notice *notice);
    void *survivor_said_arg; /* of the function above, which takes what survivors say
                              * while this rank is in trib_comm_shrink; else NULL */
    struct trib_engine_stats stats;
    struct trib_state_file page; /* for those who look from outside */
    const struct trib_run *page_run; /* of which the page has the texts; or NULL */
    struct trib_trace trace; /* cfg->trace events; the owner of the engine dumps it */
};

/** trib_engine_is_aggregator - true if the engine is that of an aggregator. */
static inline bool trib_engine_is_aggregator(const struct trib_engine *e)
{
    return e->rank >= e->ranks;
}

/** trib_engine_is_busy - true if an operation or a message is under way. */
static inline bool trib_engine_is_busy(const struct trib_engine *e)
{
    return e->head || (e->p2p && e->p2p->active);
}

#endif
