/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors of a loss tell each other in trib_comm_shrink who is left, over the links
 * of the communicator that has failed: no rank is asked that may have died, and no port
 * is opened.
 *
 * Each rank keeps one report for each other rank, which it writes as a notice: how far
 * it is, whom it counts as lost, and a fragment of what it gives to the exchanges of
 * the new communicator's wireup. Only the newest report counts, so a report says all
 * that is still to be known. Reports of one rank arrive in order, and behind all that
 * it had written in the operation that failed: who has heard a report of each survivor
 * gets no more late writes of the old communicator.
 *
 * A rank goes through these phases; a set is the ranks that are lost:
 *
 *   AGREES      until every rank outside of its set has told the same set. It takes
 *               over what others add to the set, and adds whom it loses itself
 *   EXCHANGES   the wireup of the new communicator
 *   READY       it could go on; until all others are ready, too
 *   COMMITTED   it goes on. It tells all others before it does
 *   GAVE_UP     it cannot go on, so none may
 *
 * A loss takes a rank back to AGREES with a larger set, unless it has committed. A rank
 * that was READY keeps the communicator meanwhile: if any survivor has committed, then
 * that one has said so before it went on, to everybody, and this rank commits as well.
 * A rank that tells the larger set will never commit the smaller one without that
 * report. So all survivors end with the same set: the agreement of a set ends only when
 * all of them have told it, and none of them has committed another one by then.
 *
 * Ranks that were stopped together must not form a second job while the ranks that
 * declared them lost continue. A rank is sure that no lost rank continues if it was not
 * stopped itself, or if it knows that each lost rank has ended. Survivors continue only
 * if at least one of them is sure.
 *
 * Connections may be cut although the processes at both ends run, for example by a
 * firewall that was restarted. Heartbeats show that. If a survivor knows it of a rank
 * of the set, then only the larger part of the communicator continues, or of two halves
 * the one with rank 0; a smaller part only if each rank of the set has said that it is
 * lost itself. Who has committed tells the lost ranks so by heartbeat: one that comes
 * late finds nobody to ask, and one that was stopped may have been taken for dead.
 *
 * trib_comm_grow ends by the same phases, with a communicator that was wired up before.
 * A loss then ends it on all ranks with an error, as READY ranks agree on it first.
 */
#ifndef COMM_SURVIVORS_H
#define COMM_SURVIVORS_H

#include "comm/communicator.h"

enum {
    TRIB_SURVIVOR_DATA = 196, /* bytes: what a notice has room for */
    TRIB_SURVIVOR_RANKS_MAX = 8 * TRIB_SURVIVOR_DATA,
};

enum trib_survivor_phase {
    TRIB_SURVIVOR_AGREES = 1,
    TRIB_SURVIVOR_EXCHANGES,
    TRIB_SURVIVOR_READY,
    TRIB_SURVIVOR_COMMITTED,
    TRIB_SURVIVOR_GAVE_UP,
};

/* Flags of a report, about the lost ranks of the set. */
enum {
    TRIB_SURVIVOR_SURE = 1, /* no lost rank continues the job */
    TRIB_SURVIVOR_ENDED = 2, /* every lost rank has ended, or said that it will */
    TRIB_SURVIVOR_CUT = 4, /* a lost rank still runs: its connection was cut */
    TRIB_SURVIVOR_CONTINUED = 8, /* a lost rank has continued the job by now */
};

/* A report on the wire, in the place of frame and text of a notice. */
struct trib_survivor_report {
    uint32_t attempt; /* TRIB_SURVIVORS_GROW, or a call of trib_comm_shrink */
    uint32_t phase;
    uint64_t set; /* digest of the set */
    uint32_t position; /* number of the fragment, from 1; 0: there is none */
    uint32_t taken; /* fragments that the sender has taken from the receiver */
    int16_t why; /* GAVE_UP: a status */
    uint16_t sure; /* TRIB_SURVIVOR_SURE and the others */
    uint32_t origin; /* GAVE_UP: the rank that was the first to, plus 1 */
    uint8_t data[TRIB_SURVIVOR_DATA]; /* AGREES: the set, bit r for rank r; else the
                                       * fragment */
};

/* Another rank. */
struct trib_survivor {
    struct trib_survivor_report said; /* its newest report */
    bool heard; /* it has said one in this attempt */
    bool due; /* it is to get a report */
    uint64_t told; /* ns, time of the last report to it */
    uint32_t taken; /* fragments taken from it */
    uint8_t *stream; /* those fragments */
};

/* Attempts. A communicator grows at most once, and a rank that shrinks it has given
 * that up. */
enum {
    TRIB_SURVIVORS_GROW = 1,
    TRIB_SURVIVORS_SHRINK = 2, /* the first call; each one that failed adds 1 */
};

struct trib_survivors {
    struct trib_comm *comm;
    const char *call; /* "trib_comm_shrink" */
    struct trib_error *err; /* of the call */
    uint32_t attempt;
    enum trib_survivor_phase phase;
    uint32_t origin; /* of the rank's report, once why is set */
    trib_status_t why; /* set once this rank has to give up */
    bool is_evicted; /* others count this rank as lost */
    uint8_t evicted[TRIB_SURVIVOR_DATA]; /* then: the set that they told, with it */
    uint8_t lost[TRIB_SURVIVOR_DATA]; /* the set */
    uint8_t next_lost[TRIB_SURVIVOR_DATA]; /* with what was added since */
    uint64_t set;
    uint64_t ready_set; /* set with which this rank was READY last; 0: never */
    bool is_committed; /* a survivor has committed ready_set */
    uint16_t sure; /* as in this rank's reports */
    uint32_t fragments; /* room for fragments in a stream */
    uint32_t given; /* fragments of this rank's stream */
    uint8_t *stream;
    struct trib_survivor *of; /* [size] */
    uint64_t moved; /* ns, time of the last news */
    uint32_t idle;
};

/* A wait ends by one of these. */
enum trib_survivors_end {
    TRIB_SURVIVORS_DONE,
    TRIB_SURVIVORS_AGAIN, /* the set has grown */
    TRIB_SURVIVORS_COMMIT, /* a survivor has committed ready_set */
    TRIB_SURVIVORS_STOP, /* s->why is set */
};

/** trib_survivors_open - begin to listen, and connect to all who are left. The engine
 * has failed. */
trib_status_t trib_survivors_open(struct trib_survivors *s);
void trib_survivors_close(struct trib_survivors *s);

/** trib_survivors_is_lost - true if the rank is in the set. */
static inline bool trib_survivors_is_lost(const struct trib_survivors *s, int rank)
{
    return s->lost[rank / 8] >> rank % 8 & 1;
}

/** trib_survivors_renew - take over what was added to the set; the phase is AGREES. */
void trib_survivors_renew(struct trib_survivors *s);

/** trib_survivors_say - enter a phase, and tell all others. */
void trib_survivors_say(struct trib_survivors *s, enum trib_survivor_phase phase);

/** trib_survivors_give - append to this rank's stream; returns the number of fragments
 * in it. */
uint32_t trib_survivors_give(struct trib_survivors *s, const void *bytes, size_t n);

/**
 * trib_survivors_wait - until what `is_done` asks for is true of each rank outside of
 * the set.
 *
 * arg      of is_done
 */
enum trib_survivors_end trib_survivors_wait(
    struct trib_survivors *s,
    bool (*is_done)(const struct trib_survivors *s, int rank, uint64_t arg),
    uint64_t arg);

/** trib_survivors_make_sure - wait until a survivor is sure that no rank of the set, on
 * which all agree, continues. If none is after a second, then this rank gives up. */
enum trib_survivors_end trib_survivors_make_sure(struct trib_survivors *s);

/** trib_survivors_await_loss - for so long, or until the set grows or s->why is set. */
void trib_survivors_await_loss(struct trib_survivors *s, int ms);

/** trib_survivors_flush - until all others have the newest report and have committed as
 * well, or ms have passed. */
void trib_survivors_flush(struct trib_survivors *s, int ms);

/** trib_survivors_part - disconnect the ranks of the set, so that none can write into
 * memory that this rank reuses. */
void trib_survivors_part(struct trib_survivors *s);

/** trib_survivors_stop - set s->why and its sentence, if they are not set. */
void trib_survivors_stop(struct trib_survivors *s, trib_status_t why, const char *fmt,
                         ...) __attribute__((format(printf, 3, 4)));

#endif
