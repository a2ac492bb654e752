/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check if a connected peer still runs, for backends whose connections do not show it.
 * A process on this host is checked through /proc, one on another host by heartbeats.
 */
#ifndef TRANSPORT_COMMON_PEER_LIVENESS_H
#define TRANSPORT_COMMON_PEER_LIVENESS_H

#include "base/process.h"
#include "transport/common/heartbeat.h"

enum trib_liveness_by {
    TRIB_LIVENESS_BY_NOBODY,
    TRIB_LIVENESS_BY_KERNEL,
    TRIB_LIVENESS_BY_HEARTBEAT
};

/* All zero: watches no peer. */
struct trib_peer_liveness {
    enum trib_liveness_by by;
    struct trib_process_watch process; /* KERNEL */
    uint64_t stopped_ns;
    struct trib_heartbeat *heartbeat; /* NULL: the peer cannot be asked */
    bool asks; /* the peer is watched by heartbeats */
    int peer;
    struct trib_heartbeat_peer heart;
};

struct trib_peer_liveness_opts {
    const struct trib_process *me;
    const struct trib_process *who;
    bool proc; /* /proc may be used; false if this host poses as several */
    struct trib_heartbeat *heartbeat;
    int peer;
    struct trib_heartbeat_peer heart;
};

/** trib_peer_liveness_begin - start watching a peer; a peer in this same process needs
 * no watching. */
void trib_peer_liveness_begin(struct trib_peer_liveness *w,
                              const struct trib_peer_liveness_opts *opts);

/** trib_peer_liveness_end - stop watching; no-op if already stopped. */
void trib_peer_liveness_end(struct trib_peer_liveness *w);

/** trib_peer_liveness_free - release this process's resources; also for a forked
 * child. */
void trib_peer_liveness_free(struct trib_peer_liveness *w);

/**
 * trib_peer_liveness_due - return the time covered by the next check of /proc, in ns.
 *
 * last     when it was last called, by trib_now_ns; updated
 * returns  0: too early for a check
 */
uint64_t trib_peer_liveness_due(uint64_t *last);

/**
 * trib_peer_liveness_lost - return true if the peer has died, or was stopped or silent
 * for too long.
 *
 * due      from trib_peer_liveness_due; 0: do not check /proc. Long times are clipped:
 *          when a whole job resumes after suspension, its peers must not appear lost
 * why      then receives a clause
 */
bool trib_peer_liveness_lost(struct trib_peer_liveness *w, uint64_t due,
                             int stop_timeout_ms, char *why, size_t bytes);

/** trib_peer_liveness_dead - return true if the peer is known to have ended. A peer on
 * another host may also have disconnected, so process its earlier data first. */
bool trib_peer_liveness_dead(const struct trib_peer_liveness *w);

/** trib_peer_liveness_ask - ask a peer on any host by heartbeat if it is alive; return
 * the number of the question, or 0 if the peer cannot be asked. */
uint64_t trib_peer_liveness_ask(struct trib_peer_liveness *w);

/** trib_peer_liveness_answered - return true if the peer answered that question, so it
 * was alive when asked. */
bool trib_peer_liveness_answered(const struct trib_peer_liveness *w, uint64_t question);

/** trib_peer_liveness_send_continues - notify a lost peer that the job has continued
 * without it; allowed after trib_peer_liveness_end, too. */
void trib_peer_liveness_send_continues(const struct trib_peer_liveness *w);

/** trib_peer_liveness_continues - return true if the peer sent that notice. */
bool trib_peer_liveness_continues(const struct trib_peer_liveness *w);

#endif
