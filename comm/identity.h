/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which vector the state of a plan belongs to, and which key its random numbers use.
 *
 * The state of a plan (residual, momentum, models, step) belongs to the plan, never to
 * the address of a buffer. Random numbers are a function of (key, rank, step, element):
 * base/rng.h. The key is a digest of the seed, the communicator and the plan:
 *
 *     plan with a name       the name
 *     plan without one       the number of its first start in the communicator
 *     blocking calls without a name   one key; their step is the number of the start
 *
 * Starts are collective and ordered, so all ranks number them alike, in whatever order
 * ranks make or forget plans. Frames of plans with a codec carry the step and 16 bits
 * of the key: ranks that start different plans, or different steps of one plan, notice
 * it at the first frame.
 *
 * On an aggregator the key contains the number of the plan there. The aggregator takes
 * step and key of the first frame that arrives, and all other ranks' frames must carry
 * the same.
 */
#ifndef COMM_IDENTITY_H
#define COMM_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/* A section of the state of a plan that trib_plan_state_save writes. */
struct trib_identity_kept {
    uint64_t key;
    uint64_t settled; /* 0: the plan has no key, as it was never started */
};

struct trib_identity {
    char name[TRIB_PLAN_NAME_MAX + 1]; /* "": it has none */
    uint64_t seed; /* of the description, else TRIB_SEED */
    struct trib_identity_kept kept;
    bool of_calls; /* shared by the blocking calls without a name */
    bool inner; /* plan behind an offloaded one, which numbers the starts */
    uint64_t start; /* number of the newest start */
};

/**
 * trib_identity_make - take name and seed from the description; trib_plan_make calls
 * it.
 *
 * errors   TRIB_ERR_INVALID with a sentence: the name is too long, or not printable
 */
trib_status_t trib_identity_make(struct trib_plan *plan, const trib_desc_t *desc);

/**
 * trib_plan_number - number a start that begins; the first one settles the plan's key.
 *
 * parent   the user's communicator, also if another one runs the plan for it
 * thread   the plan does not run
 */
void trib_plan_number(struct trib_plan *plan, const struct trib_comm *parent,
                      uint64_t start);

/** trib_plan_stamp - put step and key into the frames, right before a run with a codec
 * starts. */
void trib_plan_stamp(struct trib_plan *plan);

/** trib_identity_take - continue the identity of another plan; call it before the
 * models move. */
void trib_identity_take(struct trib_plan *plan, const struct trib_plan *from);

/** trib_identity_loaded - adopt plan->identity.kept from a saved state; call it before
 * its models are read. */
void trib_identity_loaded(struct trib_plan *plan);

/** trib_identity_split - identity of a communicator that is split off `parent`. */
uint64_t trib_identity_split(const struct trib_comm *parent, uint64_t starts,
                             int color);

#endif
