/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To which vector the state of a plan belongs, and by which numbers its noise is drawn.
 *
 * What a plan keeps (residual, momentum, models, step) belongs to the plan, never to
 * the address of a buffer. Noise is a function of (key, rank, step, element), see
 * base/rng.h. The key is a digest of the seed, the communicator and the plan:
 *
 *     plan with a name       the name
 *     plan without one       the number of its first start in the communicator
 *     blocking calls without a name   one key; their step is the number of the start
 *
 * Starts are collective and have one order, so their numbers are the same on all ranks,
 * whatever the order in which plans are made or forgotten. Frames of plans with a codec
 * carry the step and 16 bits of the key: ranks that start different plans, or are at
 * different steps of one, find out at the first frame.
 *
 * At a service the key has the number of the plan there; step and key of the frames are
 * those of the first rank whose frame comes, and all others' must be the same.
 */
#ifndef COMM_IDENTITY_H
#define COMM_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_comm;
struct trib_plan;

/* A section of a plan's saved state. */
struct trib_identity_kept {
    uint64_t key;
    uint64_t settled; /* 0: the plan was not started, which is when its key comes */
};

struct trib_identity {
    char name[TRIB_PLAN_NAME_MAX + 1]; /* "": it has none */
    uint64_t seed;                     /* of the description, or the configuration's */
    struct trib_identity_kept kept;
    bool of_calls; /* the blocking calls without a name share it */
    bool inner;    /* of a plan that is served: that one has the numbers of starts */
    uint64_t start; /* number of the newest start */
};

/**
 * trib_identity_make - of trib_plan_make: name and seed.
 *
 * errors   TRIB_ERR_INVALID with a sentence: the name is too long, or cannot be printed
 */
trib_status_t trib_identity_make(struct trib_plan *plan, const trib_desc_t *desc);

/**
 * trib_plan_number - a start begins: its number in `home`, and with the first one the
 * plan's key.
 *
 * home     the user's communicator; of a plan that is served not that of the plan
 * thread   the plan does not run
 */
void trib_plan_number(struct trib_plan *plan, const struct trib_comm *home,
                      uint64_t start);

/** trib_plan_stamp - right before a run with a codec is queued: step and key to its
 * frames. */
void trib_plan_stamp(struct trib_plan *plan);

/** trib_identity_take - this plan goes on where another one was; before it takes its
 * models. */
void trib_identity_take(struct trib_plan *plan, const struct trib_plan *from);

/** trib_identity_loaded - plan->identity.kept is of a saved state; before its models
 * are. */
void trib_identity_loaded(struct trib_plan *plan);

/** trib_identity_split - of a communicator that ranks split off another one's. */
uint64_t trib_identity_split(const struct trib_comm *parent, uint64_t starts,
                             int color);

#endif
