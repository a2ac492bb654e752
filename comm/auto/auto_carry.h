/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carry the residual of one codec over to another codec's plan. A codec with a residual
 * adds it to its own; any other codec sends it with its first start. Only rounding to
 * the vector's dtype loses anything.
 */
#ifndef COMM_AUTO_AUTO_CARRY_H
#define COMM_AUTO_AUTO_CARRY_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary/status.h>

struct trib_plan;

struct trib_auto_carry {
    float *rest; /* [count] to send with the next start; NULL: nothing */
    void *sum; /* [count] of the vector's dtype: input and rest of the running start */
    const void *input; /* of the running start */
};

/**
 * trib_auto_carry_over - move the residual of `from` into *carry, for the starts of
 * `to`.
 *
 * Both are idle plans of the same vector. *carry is empty.
 * errors   TRIB_ERR_NO_MEMORY with a message in the communicator; `from` is unchanged
 */
trib_status_t trib_auto_carry_over(struct trib_auto_carry *carry,
                                   struct trib_plan *from, struct trib_plan *to);

/**
 * trib_auto_carry_begin - return the input of a start with the carried residual added.
 *
 * plan     the plan to start, for its dtype and length
 * whole    the whole input is available; else trib_auto_carry_ready announces its parts
 * returns  `input` if nothing is carried; else memory valid until trib_auto_carry_end;
 *          NULL: out of memory
 */
const void *trib_auto_carry_begin(struct trib_auto_carry *carry,
                                  const struct trib_plan *plan, const void *input,
                                  bool whole);

/** trib_auto_carry_ready - elements [first, first + count) of the input are
 * available. */
void trib_auto_carry_ready(struct trib_auto_carry *carry, const struct trib_plan *plan,
                           size_t first, size_t count);

/** trib_auto_carry_end - free the memory once the start has ended; may be called
 * without one. */
void trib_auto_carry_end(struct trib_auto_carry *carry);

#endif
