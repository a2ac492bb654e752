/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which vector a plan's state belongs to, and which key its random numbers use.
 *
 * The state of a plan (residual, momentum, models, step) belongs to the plan, never to
 * a buffer address. Random numbers are a function of (key, rank, step, element):
 * base/rng.h. The key is a digest of the seed, the communicator and the plan:
 *
 *     plan with a name       the name
 *     plan without one       the number of its first start in the communicator
 *     blocking calls without a name   one key; their step is the number of the start
 *
 * Starts are collective and ordered, so all ranks number them alike, whatever order
 * they create or drop plans in. Frames of plans with a codec carry the step and 16 bits
 * of the key: ranks that start different plans, or different steps of one plan, detect
 * it at the first frame.
 *
 * On an aggregator the key contains the plan's number there. The aggregator takes step
 * and key from the first frame to arrive, and the frames of all other ranks must match.
 */
#ifndef COMM_CORE_IDENTITY_H
#define COMM_CORE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/* Section of a plan's state written by trib_plan_state_save. */
struct trib_identity_kept {
    uint64_t key;
    uint64_t settled; /* 0: the plan was never started and has no key */
};

struct trib_identity {
    char name[TRIB_PLAN_NAME_MAX + 1]; /* "": unnamed */
    uint64_t seed; /* of the description, else TRIB_SEED */
    struct trib_identity_kept kept;
    bool of_calls; /* shared by the unnamed blocking calls */
    bool inner; /* inner plan of an offloaded one, which numbers the starts */
    uint64_t start; /* number of the newest start */
};

/**
 * trib_identity_make - copy name and seed from the description; called by
 * trib_plan_make.
 *
 * errors   TRIB_ERR_INVALID with a message: the name is too long or not printable
 */
trib_status_t trib_identity_make(struct trib_plan *plan, const trib_desc_t *desc);

/**
 * trib_plan_number - number a start that begins; the first start fixes the plan's key.
 *
 * parent   the user's communicator, even if another one runs the plan for it
 * thread   the plan is not running
 */
void trib_plan_number(struct trib_plan *plan, const struct trib_comm *parent,
                      uint64_t start);

/** trib_plan_stamp - set step and key of the frames, just before a coded run. */
void trib_plan_stamp(struct trib_plan *plan);

/** trib_identity_take - inherit another plan's identity; call before models move. */
void trib_identity_take(struct trib_plan *plan, const struct trib_plan *from);

/** trib_identity_loaded - adopt plan->identity.kept from a saved state; call it before
 * its models are read. */
void trib_identity_loaded(struct trib_plan *plan);

/** trib_identity_split - return the identity of a communicator split off `parent`. */
uint64_t trib_identity_split(const struct trib_comm *parent, uint64_t starts,
                             int color);

#endif
