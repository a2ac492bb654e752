/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In trib_comm_shrink, survivors of a loss agree on the surviving ranks. They use the
 * links of the failed communicator: possibly dead ranks are not contacted, and no port
 * is opened.
 *
 * Each rank keeps one report for each other rank and sends it as a notice. A report has
 * the rank's phase, the ranks it counts as lost, and a fragment of its contribution to
 * the exchanges of the new communicator's wireup. Only the newest report counts, so a
 * report contains everything still needed. Reports of one rank arrive in order, after
 * everything it wrote in the failed operation. So a rank that has a report of each
 * survivor receives no late writes of the old communicator.
 *
 * A rank goes through these phases; a set is the lost ranks:
 *
 *   AGREES      until every rank outside its set has reported the same set. It adds
 *               ranks that others report lost, and ranks it loses itself
 *   EXCHANGES   the wireup of the new communicator
 *   READY       able to continue; until all others are ready, too
 *   COMMITTED   continues. It notifies all others first
 *   GAVE_UP     unable to continue, so no rank may
 *
 * A loss returns a rank to AGREES with a larger set, unless it has committed. A rank
 * that was READY keeps the new communicator during that time. A survivor that commits
 * reports that to all before continuing, and then this rank commits as well. A rank
 * that reports the larger set will never commit the smaller one without that report. So
 * all survivors end with the same set: agreement on a set ends only when all of them
 * have reported it, and none of them has committed another one by then.
 *
 * Ranks that were stopped together must not form a second job while the ranks that
 * declared them lost continue. A rank is sure that no lost rank continues if it was not
 * stopped itself, or if it knows that each lost rank has ended. Survivors continue only
 * if at least one of them is sure.
 *
 * Connections may be cut although the processes at both ends run, for example by a
 * restarted firewall. Heartbeats show that. If a survivor detects it for a rank of the
 * set, only the larger part of the communicator continues, or of two halves the one
 * with rank 0. A smaller part continues only if each rank of the set has reported that
 * it is lost itself. A rank that has committed notifies the lost ranks by heartbeat: a
 * late one finds no rank to ask, and a stopped one may have been taken for dead.
 *
 * trib_comm_grow ends with the same phases, with a communicator that is already wired
 * up. A loss then ends it on all ranks with an error, as READY ranks agree on it first.
 */
#ifndef COMM_MEMBERS_SURVIVORS_H
#define COMM_MEMBERS_SURVIVORS_H

#include "comm/core/comm_lock.h"
#include "comm/members/wireup.h"

enum {
    TRIB_SURVIVOR_DATA = 196, /* bytes: the room in a notice */
    TRIB_SURVIVOR_RANKS_MAX = 8 * TRIB_SURVIVOR_DATA,
};

enum trib_survivor_phase {
    TRIB_SURVIVOR_AGREES = 1,
    TRIB_SURVIVOR_EXCHANGES,
    TRIB_SURVIVOR_READY,
    TRIB_SURVIVOR_COMMITTED,
    TRIB_SURVIVOR_GAVE_UP,
};

/* Flags of a report about the ranks of the set. */
enum {
    TRIB_SURVIVOR_SURE = 1, /* no lost rank continues the job */
    TRIB_SURVIVOR_ENDED = 2, /* every lost rank has ended, or announced that it will */
    TRIB_SURVIVOR_CUT = 4, /* a lost rank still runs: its connection was cut */
    TRIB_SURVIVOR_CONTINUED = 8, /* a lost rank has continued the job by now */
};

/* A report on the wire, in place of a notice's frame and text. */
struct trib_survivor_report {
    uint32_t attempt; /* TRIB_SURVIVORS_GROW, or a call of trib_comm_shrink */
    uint32_t phase;
    uint64_t set; /* digest of the set */
    uint32_t position; /* number of the fragment, from 1; 0: no fragment */
    uint32_t taken; /* fragments that the sender has received from the receiver */
    int16_t why; /* GAVE_UP: a status */
    uint16_t sure; /* TRIB_SURVIVOR_ flags */
    uint32_t origin; /* GAVE_UP: the first rank to give up, plus 1 */
    uint8_t data[TRIB_SURVIVOR_DATA]; /* AGREES: the set, bit r for rank r; else the
                                       * fragment */
};

/* State about another rank. */
struct trib_survivor {
    struct trib_survivor_report said; /* its newest report */
    bool heard; /* it has reported in this attempt */
    bool due; /* it must be sent a report */
    uint64_t reported_ns; /* ns, time of the last report to it */
    uint32_t taken; /* fragments received from it */
    uint8_t *stream; /* those fragments */
};

/* Attempts. A communicator grows at most once, and a rank that shrinks it has given up
 * growing. */
enum {
    TRIB_SURVIVORS_GROW = 1,
    TRIB_SURVIVORS_SHRINK = 2, /* the first call; each failed call adds 1 */
};

struct trib_survivors {
    struct trib_comm *comm;
    const char *call; /* "trib_comm_shrink" */
    struct trib_error *err; /* of the call */
    uint32_t attempt;
    enum trib_survivor_phase phase;
    uint32_t origin; /* of the rank's report, valid once why is set */
    trib_status_t why; /* set once this rank must give up */
    bool is_evicted; /* other ranks count this rank as lost */
    uint8_t evicted[TRIB_SURVIVOR_DATA]; /* if is_evicted: the set reported by others,
                                          * which includes this rank */
    uint8_t lost[TRIB_SURVIVOR_DATA]; /* the set */
    uint8_t next_lost[TRIB_SURVIVOR_DATA]; /* the set with later additions */
    uint64_t set;
    uint64_t ready_set; /* set with which this rank was last READY; 0: never */
    bool is_committed; /* a survivor has committed ready_set */
    uint16_t sure; /* the flags in this rank's reports */
    uint32_t fragments; /* capacity of a stream in fragments */
    uint32_t given; /* fragments of this rank's stream */
    uint8_t *stream;
    struct trib_survivor *of; /* [size] */
    uint64_t moved; /* ns, time of the last progress */
    uint32_t idle;
};

/* Result of a wait. */
enum trib_survivors_end {
    TRIB_SURVIVORS_DONE,
    TRIB_SURVIVORS_AGAIN, /* the set has grown */
    TRIB_SURVIVORS_COMMIT, /* a survivor has committed ready_set */
    TRIB_SURVIVORS_STOP, /* s->why is set */
};

/** trib_survivors_open - start listening and connect to all surviving ranks. The engine
 * has failed. */
trib_status_t trib_survivors_open(struct trib_survivors *s);
void trib_survivors_close(struct trib_survivors *s);

/** trib_survivors_is_lost - return true if the rank is in the set. */
static inline bool trib_survivors_is_lost(const struct trib_survivors *s, int rank)
{
    return s->lost[rank / 8] >> rank % 8 & 1;
}

/** trib_survivors_renew - apply the additions to the set; the phase is AGREES. */
void trib_survivors_renew(struct trib_survivors *s);

/** trib_survivors_say - enter a phase and report it to all others. */
void trib_survivors_say(struct trib_survivors *s, enum trib_survivor_phase phase);

/** trib_survivors_give - append to this rank's stream; returns its number of
 * fragments. */
uint32_t trib_survivors_give(struct trib_survivors *s, const void *bytes, size_t n);

/**
 * trib_survivors_wait - block until `is_done` holds for each rank outside the set.
 *
 * arg      of is_done
 */
enum trib_survivors_end trib_survivors_wait(
    struct trib_survivors *s,
    bool (*is_done)(const struct trib_survivors *s, int rank, uint64_t arg),
    uint64_t arg);

/** trib_survivors_make_sure - block until a survivor is sure that no rank of the agreed
 * set continues. If none is sure after a second, this rank gives up. */
enum trib_survivors_end trib_survivors_make_sure(struct trib_survivors *s);

/** trib_survivors_await_loss - block for `ms`, until the set grows or s->why is set. */
void trib_survivors_await_loss(struct trib_survivors *s, int ms);

/** trib_survivors_flush - block until all others have the newest report and have
 * committed as well, or `ms` have passed. */
void trib_survivors_flush(struct trib_survivors *s, int ms);

/** trib_survivors_part - disconnect the ranks of the set, so that none can write into
 * memory that this rank reuses. */
void trib_survivors_part(struct trib_survivors *s);

/** trib_survivors_stop - set s->why and its message, if unset. */
void trib_survivors_stop(struct trib_survivors *s, trib_status_t why, const char *fmt,
                         ...) __attribute__((format(printf, 3, 4)));

#endif
