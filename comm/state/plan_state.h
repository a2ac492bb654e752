/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a plan's saved state: plan_state.c describes, writes and reads it,
 * state_merge.c merges several states.
 */
#ifndef COMM_STATE_PLAN_STATE_H
#define COMM_STATE_PLAN_STATE_H

#include "base/sections.h"

struct trib_comm;
struct trib_plan;

/* The first section, "plan". */
struct trib_state_plan {
    uint64_t count;
    uint32_t ranks, rank;
    uint32_t coll, dtype, op, root;
};
_Static_assert(sizeof(struct trib_state_plan) == 32, "trib_state_plan has no padding");

/**
 * trib_state_open - open a plan's state and read its first section.
 *
 * errors   TRIB_ERR_INVALID with a message
 */
trib_status_t trib_state_open(const void *state, size_t bytes, struct trib_error *err,
                              struct trib_sections *out,
                              struct trib_state_plan *plan_out);

/** trib_state_check_kind - return TRIB_OK if collective, dtype and op are equal; else
 * TRIB_ERR_INVALID with a message. */
trib_status_t trib_state_check_kind(const struct trib_state_plan *theirs,
                                    const struct trib_state_plan *ours,
                                    struct trib_error *err);

/**
 * trib_state_check_section - check that a section of a state fits the plan's.
 *
 * ours     [bytes] compared if the section is a text. The length of a model is not
 *          checked: trib_model_read does
 * errors   TRIB_ERR_INVALID with a message
 */
trib_status_t trib_state_check_section(const struct trib_section *theirs,
                                       const void *ours, size_t bytes,
                                       struct trib_error *err);

/** trib_state_refuse - report that the state's plan differs in `what`; returns
 * TRIB_ERR_INVALID. */
trib_status_t trib_state_refuse(struct trib_error *err, const char *what,
                                const char *theirs, const char *ours);

/* Moves a plan's state to a plan of another communicator. */
struct trib_state_mover {
    struct trib_comm *comm; /* of the new plan */
    struct trib_plan *from; /* NULL: this rank has no old plan */
    uint64_t steps; /* as for trib_plan_state_move */
    const char *call; /* for error messages */
};

/**
 * trib_plan_state_move_by - trib_plan_state_move where a rank may have failed to create
 * its plan.
 *
 * to       the new plan; NULL: creation failed with `status`, whose message is in
 *          c->comm. The other ranks are notified
 */
trib_status_t trib_plan_state_move_by(const struct trib_state_mover *c,
                                      struct trib_plan *to, trib_status_t status);

#endif
