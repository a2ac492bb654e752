/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an engine is: the settings, links and memory that all its runs share, their
 * queue, and what the waiting and the failures of the engine note.
 */
#ifndef PIPELINE_ENGINE_ENGINE_STATE_H
#define PIPELINE_ENGINE_ENGINE_STATE_H

#include "base/config.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/trace.h"
#include "compress/kernels/kernels.h"
#include "pipeline/engine/chunk.h"

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

#endif
