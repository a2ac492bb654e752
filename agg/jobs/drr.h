/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which the jobs of one thread are served, and the bytes that each may
 * use.
 *
 * Deficit round robin (Shreedhar, Varghese: "Efficient fair queuing using deficit
 * round-robin", SIGCOMM 1995). Those that want service are in a ring; the head has its
 * turn:
 *
 *     ring   [ head ] → [ … ] → [ tail ]
 *
 *     next   gives the head its quantum if its deficit is used up, and says what it may
 *            use
 *     used   subtracts what it used; the head becomes the tail, or leaves the ring if
 *            it wants no more
 *
 *     quantum of a job = bytes of a turn × weight / TRIB_DRR_WEIGHT_ONE
 *
 * A job cannot stop in the middle of a chunk, so it may use more than it was told: it
 * owes that, and sits out turns until its quanta have paid for it. Who leaves the ring
 * loses what it has left and keeps what it owes, so that neither idling nor leaving and
 * coming back is worth anything. Over any time in which two jobs want service, what
 * each used per weight differs by at most a turn and a chunk of each: also where one
 * always wants more than it is told.
 *
 * Cost: O(1) where a quantum is no less than a chunk. Else each turn that is sat out
 * was paid for by a quantum of bytes that were used, so O(1) for each quantum, and
 * never more than three looks at each member. It works with any unit.
 *
 * Thread: one. Nothing allocates.
 */
#ifndef AGG_JOBS_DRR_H
#define AGG_JOBS_DRR_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_DRR_WEIGHT_ONE 1024 /* trib_jobs_weight of a user's only job */

/* A part of whatever is served; zero, and weighed, before anything else. */
struct trib_drr_member {
    struct trib_drr_member *next; /* neighbour in the ring; NULL: it is not in it */
    struct trib_drr_member *prev;
    int64_t deficit; /* it may use; below 0: it owes */
    uint32_t weight;
};

struct trib_drr {
    struct trib_drr_member *head; /* NULL: nobody wants service */
    uint64_t turn_bytes;
    bool turn; /* true between trib_drr_next and trib_drr_charge */
};

/** trib_drr_init - a turn of a member with weight TRIB_DRR_WEIGHT_ONE has
 * turn_bytes. */
void trib_drr_init(struct trib_drr *share, uint64_t turn_bytes);

/** trib_drr_set_weight - at first, and when the weight changes: at least 1. */
void trib_drr_set_weight(struct trib_drr_member *member, uint32_t weight);

/** trib_drr_activate - it wants service; nothing changes where it did already. */
void trib_drr_activate(struct trib_drr *share, struct trib_drr_member *member);

/**
 * trib_drr_next - the member whose turn begins; trib_drr_charge must follow.
 *
 * budget_out   how many bytes it may use, at least 1
 * returns      NULL: nobody wants service
 */
struct trib_drr_member *trib_drr_next(struct trib_drr *share,
                                          uint64_t *budget_out);

/** trib_drr_charge - the end of the turn: how much was used, and does it want more? */
void trib_drr_charge(struct trib_drr *share, uint64_t bytes, bool more);

/** trib_drr_remove - it wants no service, and may be freed; not between next and
 * used. */
void trib_drr_remove(struct trib_drr *share, struct trib_drr_member *member);

#endif
