/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders that rank 0 gives to each other rank, and the answers. Each pair has a
 * communicator of its own, so a rank that dies or stops takes no other pair with it.
 *
 * A rank has one order at a time. One that is late is given no more until it answers;
 * the answer is then dropped, and the newest order follows. All ranks count the calls:
 * order n is for call n, and a rank that was late passes over the calls whose order it
 * was not given.
 */
#ifndef TRAIN_CODED_ORDER_STAR_H
#define TRAIN_CODED_ORDER_STAR_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/coll.h>

#include "base/error.h"

struct trib_order_star;

/**
 * trib_order_star_open - connect rank 0 with all others; collective over comm.
 *
 * errors   as trib_split, with a sentence in err
 */
trib_status_t trib_order_star_open(trib_comm_t *comm, struct trib_error *err,
                                   struct trib_order_star **star_out);

/**
 * trib_order_star_close - end the pairs, and free the star.
 *
 * Ranks that still wait for an order return from their calls. NULL is allowed.
 */
void trib_order_star_close(struct trib_order_star *star);

/** trib_order_star_pass - a call that this rank does not make, as its arguments are
 * wrong. */
void trib_order_star_pass(struct trib_order_star *star);

/* Rank 0 --------------------------------------------------------------------------- */

/**
 * trib_order_star_give - begin a call: give an order to all ranks that are there.
 *
 * data     is copied
 * answers  [ranks] bytes of each rank's answer; the caller keeps them until the next
 *          order
 */
trib_status_t trib_order_star_give(struct trib_order_star *star, const void *data,
                                   size_t bytes, const size_t *answers,
                                   struct trib_error *err);

/**
 * trib_order_star_next - the next answer to the newest order; waits for it.
 *
 * rank_out, data_out   data is the star's, until the next trib_order_star_give
 * returns  false: nobody is left who could answer
 */
bool trib_order_star_next(struct trib_order_star *star, int *rank_out,
                          const void **data_out);

/** trib_order_star_skip - tell late ranks that they need no order to reach the end of
 * this call; nothing on other ranks than 0. */
void trib_order_star_skip(struct trib_order_star *star);

/** trib_order_star_fail - tell all ranks that there will be no more orders, and why;
 * nothing on other ranks than 0. */
void trib_order_star_fail(struct trib_order_star *star, trib_status_t status,
                          const char *why);

/** trib_order_star_lost - how many ranks are lost; *why_out: the sentence of the
 * first. */
int trib_order_star_lost(const struct trib_order_star *star, const char **why_out);

/** trib_order_star_late - answers that came too late so far. */
uint64_t trib_order_star_late(const struct trib_order_star *star);

/* The other ranks ------------------------------------------------------------------ */

/**
 * trib_order_star_take - begin a call: wait for its order.
 *
 * data_out, bytes_out   the order, the star's until the next call
 * errors   TRIB_INPROGRESS: there is none for this call, so go on to the next one;
 *          TRIB_ERR_PEER_LOST: rank 0 is lost; what trib_order_star_fail was given
 */
trib_status_t trib_order_star_take(struct trib_order_star *star, const void **data_out,
                                   size_t *bytes_out, struct trib_error *err);

/**
 * trib_order_star_room - where the answer of this call is put; NULL: there is no
 * memory.
 */
void *trib_order_star_room(struct trib_order_star *star, size_t bytes);

/** trib_order_star_answer - send what is in the room; does not wait. */
void trib_order_star_answer(struct trib_order_star *star, size_t bytes);

#endif
