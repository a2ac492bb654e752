/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order in which one thread serves its jobs, and the byte budget of each turn.
 *
 * Deficit round robin (Shreedhar, Varghese: "Efficient fair queuing using deficit
 * round-robin", SIGCOMM 1995). Members that want service form a ring; the head has its
 * turn:
 *
 *     ring     [ head ] → [ … ] → [ tail ]
 *
 *     next     adds a quantum to the head if its deficit is used up; returns its budget
 *     charge   subtracts the bytes used; the head becomes the tail, or leaves the ring
 *              if it has nothing left to send
 *
 *     quantum of a job = bytes of a turn × weight / TRIB_DRR_WEIGHT_ONE
 *
 * A job cannot stop in the middle of a chunk, so it may exceed its budget. It then owes
 * the excess and sits out turns until its quanta have paid for it. A member that leaves
 * the ring loses its credit and keeps its debt, so idling or rejoining gains nothing.
 * While two jobs want service, their bytes per weight differ by at most one turn and
 * one chunk each. This holds even if one job always exceeds its budget.
 *
 * Cost: O(1) if a quantum is at least a chunk. Otherwise each skipped turn was paid for
 * by a quantum of used bytes, so O(1) per quantum, with at most three visits to each
 * member. The unit need not be bytes.
 *
 * Single-threaded. No allocation.
 */
#ifndef AGG_JOBS_DRR_H
#define AGG_JOBS_DRR_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_DRR_WEIGHT_ONE 1024 /* trib_jobs_weight of a user's only job */

/* A competitor for service. Zero it and set its weight before any other call. */
struct trib_drr_member {
    struct trib_drr_member *next; /* neighbour in the ring; NULL: not in the ring */
    struct trib_drr_member *prev;
    int64_t deficit; /* budget left; below 0: debt */
    uint32_t weight;
};

struct trib_drr {
    struct trib_drr_member *head; /* NULL: no member wants service */
    uint64_t turn_bytes;
    bool turn; /* true between trib_drr_next and trib_drr_charge */
};

/** trib_drr_init - initialise; a member of weight TRIB_DRR_WEIGHT_ONE gets
 * turn_bytes. */
void trib_drr_init(struct trib_drr *drr, uint64_t turn_bytes);

/** trib_drr_set_weight - set a member's weight, at least 1; also to change it later. */
void trib_drr_set_weight(struct trib_drr_member *member, uint32_t weight);

/** trib_drr_activate - add a member to the ring; no effect if it is in the ring
 * already. */
void trib_drr_activate(struct trib_drr *drr, struct trib_drr_member *member);

/**
 * trib_drr_next - begin a turn and return its member; trib_drr_charge must follow.
 *
 * budget_out   number of bytes that the member may use, at least 1
 * returns      NULL: no member wants service
 */
struct trib_drr_member *trib_drr_next(struct trib_drr *drr, uint64_t *budget_out);

/** trib_drr_charge - end the turn: bytes used, and whether the member wants more
 * service. */
void trib_drr_charge(struct trib_drr *drr, uint64_t bytes, bool more);

/** trib_drr_remove - remove a member, which may then be freed; not within a turn. */
void trib_drr_remove(struct trib_drr *drr, struct trib_drr_member *member);

#endif
