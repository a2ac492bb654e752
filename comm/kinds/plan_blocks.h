/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans whose blocks have individual lengths and offsets: gather, scatter, all-to-all,
 * and all-gather and reduce-scatter with counts.
 */
#ifndef COMM_KINDS_PLAN_BLOCKS_H
#define COMM_KINDS_PLAN_BLOCKS_H

#include "comm/core/communicator.h"

/** trib_desc_has_blocks - return true if plans of this description list blocks. */
bool trib_desc_has_blocks(trib_coll_t coll, const trib_desc_t *desc);

/** trib_plan_kind_of - return the kind of plans that list blocks if the description
 * needs it, else NULL. Wireup stores this function in trib_comm.kind_of. */
const struct trib_plan_kind *trib_plan_kind_of(trib_coll_t coll,
                                               const trib_desc_t *desc);

#endif
