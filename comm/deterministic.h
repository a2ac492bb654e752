/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_DETERMINISTIC: the bits of a result follow from its description, the inputs and
 * the number of ranks alone (docs/adr/0049-the-same-bits-in-every-run.md).
 *
 * A sum that rounds is made where all contributions meet, in the order of ranks. Code
 * words have chunks of one length, whatever the slots are, and their algorithm is
 * chosen as for a network of which nothing is known. Words that add as integers or
 * exactly have the same bits in any order, so every algorithm may sum them.
 */
#ifndef COMM_DETERMINISTIC_H
#define COMM_DETERMINISTIC_H

#include "comm/plan_parts.h"

/** trib_deterministic_orders - true if the plan's sum has other bits in another order
 * of its contributions, and the setting forbids that. */
bool trib_deterministic_orders(const struct trib_plan *plan,
                               const struct trib_shape *shape, trib_dtype_t dtype);

/** trib_deterministic_cuts - true if the chunks of the plan have a length that does not
 * depend on slots. */
bool trib_deterministic_cuts(const struct trib_plan *plan);

/** trib_deterministic_forget - leaves nothing in the choice of an algorithm but what
 * follows from the description and the number of ranks. */
void trib_deterministic_forget(struct trib_choice *choice);

/** trib_deterministic_allows - refuse, with a sentence, an algorithm that was asked for
 * by name and adds in another order. */
trib_status_t trib_deterministic_allows(const struct trib_plan *plan,
                                        const struct trib_algo *algo,
                                        const struct trib_shape *shape);

/** trib_deterministic_check_cut - refuse chunks that change what a codec does to an
 * element, because slots are too small. */
trib_status_t trib_deterministic_check_cut(const struct trib_plan *plan);

/** trib_deterministic_hands_over - true if aggregators give a result the bits that it
 * has without them. */
bool trib_deterministic_hands_over(const struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc);

/** trib_deterministic_explain - appends to plan->why how the bits are kept. */
void trib_deterministic_explain(struct trib_plan *plan, bool ordered);

#endif
