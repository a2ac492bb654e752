/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine: the settings, links and memory shared by its runs, the queue of runs, and
 * the state of waiting and failures.
 */
#ifndef PIPELINE_RUN_ENGINE_STATE_H
#define PIPELINE_RUN_ENGINE_STATE_H

#include "base/config.h"
#include "base/error.h"
#include "base/host.h"
#include "base/idle_function.h"
#include "base/log.h"
#include "base/state_page.h"
#include "base/trace.h"
#include "compress/kernels/kernels.h"
#include "pipeline/run/chunk.h"
#include "pipeline/run/engine_p2p.h"

/*
 * The memory in which an aggregator keeps results until all peers within load/store
 * reach have read them. All runs share it: operations of an engine run one after the
 * other and end only after their results were read. It is freed with the engine because
 * peers may lag.
 */
struct trib_agg_results {
    uint8_t *base; /* in e->memories, or NULL */
    size_t bytes;
};

/* Constant facts about a peer. */
struct trib_peer {
    char host[TRIB_HOST_BYTES];
    int pid;
    struct trib_address address;
    struct trib_arena_blob arena;
};

struct trib_engine_stats {
    uint64_t operations, wire_bytes, payload_bytes, dense_bytes, copied_bytes, messages;
    uint64_t input_bytes, input_dense_bytes; /* the share of this rank's own vectors in
                                              * payload_bytes and dense_bytes */
    uint64_t received_bytes; /* as wire_bytes, for received frames */
    uint64_t received_dense_bytes; /* as dense_bytes, for received frames */
    uint64_t sums; /* k-ary sums of chunks */
    uint64_t wait_ns, encode_ns;
    uint64_t words_ahead; /* encoded chunks that workers had ready when they were due */
    uint64_t splits; /* sums and copies of chunks that were split over workers */
    uint64_t parts_shared; /* parts of them that workers did */
    uint64_t short_sums; /* sums closed without the contribution of some rank */
    uint64_t late_frames; /* frames dropped because their sums were already closed */
};

enum { TRIB_ABORT_WHY_MAX = 120 };

/* Any thread may request the abort of all operations. */
enum trib_abort_call {
    TRIB_ABORT_NONE,
    TRIB_ABORT_WRITES, /* a thread is writing its reason */
    TRIB_ABORT_MADE,
};

struct trib_engine {
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_error *err;
    const struct trib_kernels *kernels;
    struct trib_transport *transport;
    int rank;
    int size; /* ranks, followed by the aggregators (schedule.h) */
    int ranks; /* ranks that contribute */
    bool oversubscribed; /* this host has more ranks than cores */
    uint32_t quota; /* cores that this rank may use by its control group's quota, on
                     * average; 0: no quota */
    uint32_t core; /* core of the short operation, plus 1; oversubscribed only */
    bool all_mapped; /* no connected link needs transport events */
    struct trib_arena arena;
    struct trib_memories memories;
    struct trib_agg_results results;
    struct trib_link *links; /* [size] */
    struct trib_peer *peers; /* [size] */
    bool *parted; /* [size] peers that trib_engine_part disconnects together */
    struct trib_workers *workers; /* NULL until a plan needs them */
    bool splits; /* workers share sums and copies of large raw chunks */
    uint64_t parts_until; /* ns: workers are woken for a chunk that begins before */
    struct trib_run *head; /* active run, first of the queue */
    struct trib_run *tail;
    struct trib_engine_p2p *p2p; /* messages between ranks; NULL: no message plans */
    uint32_t seq;
    bool has_backlog; /* links may hold frames of earlier operations: see partial.h */
    _Atomic int failed; /* trib_status_t: the communicator has failed */
    uint32_t cause_lost; /* rank whose loss is the cause, plus 1; or 0. Written before
                     * failed */
    uint64_t away_ns; /* how long this rank itself was stopped before the failure, if
                       * others may have declared it lost meanwhile; else 0. Written
                       * before failed */
    bool maybe_away; /* as away_ns > 0, or a busy host may have caused the pause */
    struct trib_error failure; /* its error message, written once, before failed */
    uint32_t idle; /* passes without progress */
    uint32_t yields; /* idle passes that yielded the core */
    uint32_t short_looks; /* polls of short runs, over all waits: engine_wait.c */
    bool says_asleep; /* this rank is marked asleep on the billboard, since
                             * trib_engine_arm */
    uint64_t idle_since; /* ns, time of the first idle pass; over a network */
    uint64_t last_progress; /* ns; 0: progress since the last check */
    uint64_t last_notice; /* ns */
    uint64_t last_poll;
    uint32_t awaited; /* newest operation not begun here that a peer waits in */
    uint64_t awaited_since; /* ns */
    bool rest_unnotified; /* peers without a link do not know of the failure */
    bool notifies_later; /* the owner calls trib_engine_notify_failure itself, later */
    void (*idle_hook)(void *arg); /* called while trib_engine_wait waits; or NULL */
    void *idle_hook_arg;
    struct trib_idle *idle_fn; /* the caller's idle function; NULL: none */
    bool (*give_way)(void *arg); /* calls idle_fn without the owner's lock; true: the
                                  * caller gives up */
    void *give_way_arg;
    _Atomic int wanted; /* threads that wait for the owner's lock */
    void (*let_in)(void *arg); /* hands the owner's lock to them and reacquires it; the
                                * argument is give_way_arg */
    /* The owner's choice of the two waits of engine_wait.h. */
    trib_status_t (*wait)(struct trib_engine *e, struct trib_run *run);
    _Atomic int abort_call; /* enum trib_abort_call */
    char
        abort_why[TRIB_ABORT_WHY_MAX]; /* a clause; written before abort_call is MADE */
    uint32_t limit_seq; /* operation with a time limit */
    uint64_t limit_since; /* ns, when that operation was first checked */
    void (*survivor_said)(void *arg, int peer, const struct trib_oob_notice *notice);
    void *survivor_said_arg; /* argument of survivor_said, which handles the reports of
                              * survivors while this rank is in trib_comm_shrink; else
                              * NULL */
    struct trib_engine_stats stats;
    struct trib_state_file page; /* state page for other processes */
    const struct trib_run *page_run; /* the run whose texts are on the page; or NULL */
    struct trib_trace trace; /* cfg->trace events; dumped by the owner of the engine */
};

/** trib_engine_is_aggregator - return true if this engine belongs to an aggregator. */
static inline bool trib_engine_is_aggregator(const struct trib_engine *e)
{
    return e->rank >= e->ranks;
}

/** trib_engine_is_busy - return true if an operation or a message is in progress. */
static inline bool trib_engine_is_busy(const struct trib_engine *e)
{
    return e->head || (e->p2p && e->p2p->active);
}

#endif
