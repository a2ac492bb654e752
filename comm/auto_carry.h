/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The residual of one codec goes on to the plan of another: a codec that holds
 * something back as well adds to it, and any other sends it with its first start.
 * Nothing is lost, but what rounding to the dtype of the vector loses.
 */
#ifndef COMM_AUTO_CARRY_H
#define COMM_AUTO_CARRY_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_plan;

struct trib_auto_carry {
    float *rest; /* [count] to be sent with the next start; NULL: nothing is */
    void *sum; /* [count] of the vector's dtype: input and rest of the running start */
    const void *input; /* of that start */
};

/**
 * trib_auto_carry_over - take what `from` has held back, for the starts of `to`.
 *
 * Both are plans of one vector, and neither runs. Nothing is carried so far.
 * errors   TRIB_ERR_NO_MEMORY with a sentence in the communicator; `from` is as it was
 */
trib_status_t trib_auto_carry_over(struct trib_auto_carry *carry,
                                   struct trib_plan *from, struct trib_plan *to);

/**
 * trib_auto_carry_begin - the input of a start with what was held back.
 *
 * plan     the plan that is to start, for its dtype and length
 * whole    all of the input is there; else trib_auto_carry_ready names its parts
 * returns  `input` where nothing is carried; else memory that stays until
 *          trib_auto_carry_end; NULL: no memory
 */
const void *trib_auto_carry_begin(struct trib_auto_carry *carry,
                                  const struct trib_plan *plan, const void *input,
                                  bool whole);

/** trib_auto_carry_ready - elements [first, first + count) of the input are there. */
void trib_auto_carry_ready(struct trib_auto_carry *carry, const struct trib_plan *plan,
                           size_t first, size_t count);

/** trib_auto_carry_end - the start has ended, or there is none: free the memory. */
void trib_auto_carry_end(struct trib_auto_carry *carry);

#endif
