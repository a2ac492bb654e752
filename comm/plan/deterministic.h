/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_DETERMINISTIC: the bits of a result depend only on its description, the inputs
 * and the number of ranks (docs/adr/0049-the-same-bits-in-every-run.md).
 *
 * A sum that rounds is computed where all contributions arrive, in rank order. Encoded
 * chunks have one length whatever the slot size, and their algorithm is chosen as if
 * nothing were known about the network. Encoded chunks that add as integers, or
 * exactly, give the same bits in any order, so any algorithm may sum them.
 */
#ifndef COMM_PLAN_DETERMINISTIC_H
#define COMM_PLAN_DETERMINISTIC_H

#include "comm/plan/plan_parts.h"

/** trib_deterministic_orders - return true if the order of contributions changes the
 * bits of the plan's sum and the setting forbids that. */
bool trib_deterministic_orders(const struct trib_plan *plan,
                               const struct trib_shape *shape, trib_dtype_t dtype);

/** trib_deterministic_cuts - return true if the plan's chunk length must not depend on
 * slots. */
bool trib_deterministic_cuts(const struct trib_plan *plan);

/** trib_deterministic_forget - clear all inputs of the algorithm choice except the
 * description and the number of ranks. */
void trib_deterministic_forget(struct trib_choice *choice);

/** trib_deterministic_allows - refuse an algorithm requested by name that adds in
 * another order, with a message. */
trib_status_t trib_deterministic_allows(const struct trib_plan *plan,
                                        const struct trib_algo *algo,
                                        const struct trib_shape *shape);

/** trib_deterministic_check_cut - refuse chunks that change how a codec encodes an
 * element because slots are too small. */
trib_status_t trib_deterministic_check_cut(const struct trib_plan *plan);

/** trib_deterministic_hands_over - return true if aggregators give the result the same
 * bits as without them. */
bool trib_deterministic_hands_over(const struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc);

/** trib_deterministic_explain - append to plan->why how determinism is ensured. */
void trib_deterministic_explain(struct trib_plan *plan, bool ordered);

#endif
