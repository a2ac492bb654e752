/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a connected peer still run? For backends whose connections do not tell: a
 * process of this host is looked at in /proc, one of another host is asked by
 * heartbeats.
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

/* All zero: watches nobody. */
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
    bool proc; /* may be looked for in /proc: false where a host is made out to be
                * another */
    struct trib_heartbeat *heartbeat;
    int peer;
    struct trib_heartbeat_peer heart;
};

/** trib_peer_liveness_begin - watch a peer from now on; one of this very process needs
 * nobody. */
void trib_peer_liveness_begin(struct trib_peer_liveness *w,
                              const struct trib_peer_liveness_opts *opts);

/** trib_peer_liveness_end - watch it no more; harmless when done before. */
void trib_peer_liveness_end(struct trib_peer_liveness *w);

/** trib_peer_liveness_free - release what this process holds: also in a forked
 * child. */
void trib_peer_liveness_free(struct trib_peer_liveness *w);

/**
 * trib_peer_liveness_due - the time for which the next looks into /proc stand, in ns.
 *
 * last     when it was asked last, by trib_now_ns; is set
 * returns  0: it is too early for a look
 */
uint64_t trib_peer_liveness_due(uint64_t *last);

/**
 * trib_peer_liveness_lost - has the peer died, been stopped or been silent for too
 * long?
 *
 * due      of trib_peer_liveness_due; 0: no look into /proc. Of a long time only a part
 *          counts, in which somebody watched: a job that was suspended as a whole and
 *          goes on must not find all its peers lost
 * why      then receives a clause
 */
bool trib_peer_liveness_lost(struct trib_peer_liveness *w, uint64_t due,
                             int stop_timeout_ms, char *why, size_t bytes);

/** trib_peer_liveness_dead - is it known to have died? One of another host may have
 * left instead: what it said before counts first. */
bool trib_peer_liveness_dead(const struct trib_peer_liveness *w);

/** trib_peer_liveness_ask - ask a peer by heartbeat whether it lives, on whichever
 * host; the number of the question, 0: nobody can be asked. */
uint64_t trib_peer_liveness_ask(struct trib_peer_liveness *w);

/** trib_peer_liveness_answered - has it answered that question, so that it lived when
 * it was asked? */
bool trib_peer_liveness_answered(const struct trib_peer_liveness *w, uint64_t question);

/** trib_peer_liveness_say_continues - tell a lost peer that the job has continued
 * without it, also after trib_peer_liveness_end. */
void trib_peer_liveness_say_continues(const struct trib_peer_liveness *w);

/** trib_peer_liveness_continues - has the peer said so to this rank? */
bool trib_peer_liveness_continues(const struct trib_peer_liveness *w);

#endif
