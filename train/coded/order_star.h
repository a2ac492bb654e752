/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders that rank 0 sends to all other ranks, and their answers. Each pair has its own
 * communicator, so the failure of a rank does not affect other pairs.
 *
 * A rank has one order at a time. A late rank receives no further order until it
 * answers. Its answer is then dropped, and it receives the newest order. All ranks
 * count the calls: order n belongs to call n, and a late rank skips the calls whose
 * orders it did not receive.
 */
#ifndef TRAIN_CODED_ORDER_STAR_H
#define TRAIN_CODED_ORDER_STAR_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/coll.h>

#include "base/error.h"

struct trib_order_star;

/**
 * trib_order_star_open - collective over comm: connect rank 0 with all others.
 *
 * errors   as trib_split, with an error message in err
 */
trib_status_t trib_order_star_open(trib_comm_t *comm, struct trib_error *err,
                                   struct trib_order_star **star_out);

/**
 * trib_order_star_close - disconnect the pairs and free the star.
 *
 * Ranks that still wait for an order return from their calls. NULL is allowed.
 */
void trib_order_star_close(struct trib_order_star *star);

/** trib_order_star_pass - count a call that this rank does not make, because its
 * arguments are invalid. */
void trib_order_star_pass(struct trib_order_star *star);

/* Rank 0 --------------------------------------------------------------------------- */

/**
 * trib_order_star_give - start a call: send an order to all connected ranks.
 *
 * data     is copied
 * answers  [ranks] bytes of each rank's answer; must stay valid until the next order
 */
trib_status_t trib_order_star_give(struct trib_order_star *star, const void *data,
                                   size_t bytes, const size_t *answers,
                                   struct trib_error *err);

/**
 * trib_order_star_next - wait for the next answer to the newest order.
 *
 * rank_out, data_out  data belongs to the star and is valid until the next
 *          trib_order_star_give
 * returns  false: no remaining rank can answer
 */
bool trib_order_star_next(struct trib_order_star *star, int *rank_out,
                          const void **data_out);

/** trib_order_star_skip - notify late ranks that they reach the end of this call
 * without an order. No effect on ranks other than 0. */
void trib_order_star_skip(struct trib_order_star *star);

/** trib_order_star_fail - notify all ranks that no order follows, and of the cause. No
 * effect on ranks other than 0. */
void trib_order_star_fail(struct trib_order_star *star, trib_status_t status,
                          const char *why);

/** trib_order_star_lost - return the number of lost ranks; *why_out: error message of
 * the first loss. */
int trib_order_star_lost(const struct trib_order_star *star, const char **why_out);

/** trib_order_star_late - return the number of late answers so far. */
uint64_t trib_order_star_late(const struct trib_order_star *star);

/* The other ranks ------------------------------------------------------------------ */

/**
 * trib_order_star_take - start a call: wait for its order.
 *
 * data_out, bytes_out  the order; belongs to the star, valid until the next call
 * errors   TRIB_INPROGRESS: this call has no order, continue with the next;
 *          TRIB_ERR_PEER_LOST: rank 0 is lost; the status of trib_order_star_fail
 */
trib_status_t trib_order_star_take(struct trib_order_star *star, const void **data_out,
                                   size_t *bytes_out, struct trib_error *err);

/** trib_order_star_room - return the buffer for this call's answer; NULL: no memory. */
void *trib_order_star_room(struct trib_order_star *star, size_t bytes);

/** trib_order_star_answer - send the buffer without waiting. */
void trib_order_star_answer(struct trib_order_star *star, size_t bytes);

#endif
