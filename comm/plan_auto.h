/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of codec auto (auto_choice.h). Such a plan has an inner plan, of the codec that
 * runs now, and at some starts the ranks sum what each of them has measured.
 */
#ifndef COMM_PLAN_AUTO_H
#define COMM_PLAN_AUTO_H

#include "comm/auto_choice.h"
#include "comm/communicator.h"

/**
 * trib_plan_make_coded - make a plan of any codec: of codec auto, or as trib_plan_make
 * and trib_plan_make_own do.
 *
 * own      the communicator's own engine runs it
 * errors   those of trib_plan_make; of codec auto TRIB_ERR_CODEC and
 *          TRIB_ERR_UNSUPPORTED with a sentence
 */
trib_status_t trib_plan_make_coded(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc, bool own,
                                   struct trib_plan **plan_out);

/** trib_plan_auto_tell - the lines of trib_plan_explain about the choice; none of
 * another codec. */
void trib_plan_auto_tell(const struct trib_plan *plan, char *text, size_t bytes);

/** trib_plan_auto_holds - true if a codec of the choice keeps something of a start for
 * the next one. */
bool trib_plan_auto_holds(const struct trib_plan *plan);

#endif
