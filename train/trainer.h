/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trainer: what all strategies share.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <tributary/train.h>

#include "base/error.h"
#include "train/optimizer.h"
#include "train/parts.h"
#include "train/rate.h"
#include "train/strategy.h"

enum { TRIB_TRAIN_SPLITS = 3 };

struct trib_trainer {
    trib_comm_t *comm;
    int rank, ranks;
    float *params; /* [count] the caller's; strategies whose ranks differ have vectors
                    * of their own, and leave the model here */
    size_t count;
    struct trib_train_parts parts;
    struct trib_train_optimizer optimizer;
    struct trib_train_rate rate;
    trib_feed_t feed;
    uint64_t seed;
    struct trib_strategy_choice choice;
    char *codecs; /* "int8|qsgd:bits=4", from which the strategy chooses; or NULL */
    void *strategy; /* its own state */
    bool
        moves; /* it goes on from another communicator: so groups that do not fit become
                 * fewer */
    char moved[256]; /* a sentence about the last move; "": there was none */
    uint64_t number; /* of the gradient that is, or will be, computed */
    bool begun;
    uint64_t begun_ns, wire_at_create;
    trib_comm_t *split[TRIB_TRAIN_SPLITS]; /* that its strategy has made of comm */
    int n_split;
    trib_trainer_stats_t stats;
    struct trib_error err;
};

enum { TRIB_TRAIN_SECTIONS = 1 + TRIB_TRAIN_OPTIMIZER_VECTORS + TRIB_TRAIN_FIELDS };

/** trib_train_taken and its like - note the sentence of a failed call of the library,
 * in the communicator of all ranks, in that of a group, or of a sum; return status. */
trib_status_t trib_train_taken(struct trib_trainer *t, trib_status_t status);
trib_status_t trib_train_group_taken(struct trib_trainer *t, trib_comm_t *group,
                                     trib_status_t status);

trib_status_t trib_train_sum_taken(struct trib_trainer *t,
                                   const struct trib_train_sum *sum,
                                   trib_status_t status);

/** trib_train_kind - a digest of what must be equal in trainers that go on from each
 * other. */
uint64_t trib_train_kind(const struct trib_trainer *t);

/** trib_train_sections, trib_train_sums - all that it keeps: the parameters, the
 * optimiser's vectors, the strategy's fields; its sums. They return how many. */
int trib_train_sections(struct trib_trainer *t,
                        struct trib_train_field out[TRIB_TRAIN_SECTIONS]);
int trib_train_sums(struct trib_trainer *t,
                    struct trib_train_sum **out[TRIB_TRAIN_SUMS]);

/** trib_train_wire_bytes - bytes that its communicator has sent. */
uint64_t trib_train_wire_bytes(const struct trib_trainer *t);

/**
 * trib_train_meet - collective: make the strategy in t->comm, with the parameters of
 * all.
 *
 * mine     of this rank's description; an error on one rank is an error on all
 * from     the trainer that goes on, of another communicator; NULL: this rank is new
 */
trib_status_t trib_train_meet(struct trib_trainer *t, trib_status_t mine,
                              struct trib_trainer *from);

/** trib_train_take_desc - read a description, without the other ranks. */
trib_status_t trib_train_take_desc(struct trib_trainer *t,
                                   const trib_trainer_desc_t *theirs);

/** trib_train_check_configured - TRIB_ERR_INVALID if the feedback of the configuration
 * (TRIB_FEEDBACK) has momentum, and what applies the sums has it, too. */
trib_status_t trib_train_check_configured(struct trib_trainer *t);

/** trib_train_refuse_parts - TRIB_ERR_UNSUPPORTED if the description has feedback, or
 * parts with codecs: for strategies that send the vector as a whole. */
trib_status_t trib_train_refuse_parts(struct trib_trainer *t);

/** trib_train_alloc, trib_train_calloc - zeroed floats in reach of the peers, or plain
 * ones. */
trib_status_t trib_train_alloc(struct trib_trainer *t, size_t count, float **out);
trib_status_t trib_train_calloc(struct trib_trainer *t, size_t count, float **out);

/**
 * trib_train_make_sum - a sum of elements [first, first + count), by the trainer's
 * codecs, over all ranks; trib_train_make_sum_of: over those of another communicator.
 */
trib_status_t trib_train_make_sum(struct trib_trainer *t, const char *name,
                                  size_t first, size_t count, trib_feed_t feed,
                                  struct trib_train_sum **out);
trib_status_t trib_train_make_sum_of(struct trib_trainer *t, trib_comm_t *comm,
                                     const char *name, trib_feed_t feed,
                                     struct trib_train_sum **out);

/** trib_train_start, trib_train_wait - start and wait for a sum; count rounds and
 * time. */
trib_status_t trib_train_start(struct trib_trainer *t, struct trib_train_sum *sum,
                               float *vector);
trib_status_t trib_train_wait(struct trib_trainer *t, struct trib_train_sum *sum,
                              trib_train_range_fn done, void *arg);

/**
 * trib_train_split - trib_split of the trainer's communicator, whose bytes count as the
 * trainer's.
 *
 * owner    the trainer: it goes when the strategy has been destroyed
 */
trib_status_t trib_train_split(struct trib_trainer *t, int color, trib_comm_t **out);

/** trib_train_unsplit - free such a communicator now. */
void trib_train_unsplit(struct trib_trainer *t, trib_comm_t *comm);

/** trib_train_mean - collective: the mean of x [count] over all ranks, uncompressed; x
 * may be out. */
trib_status_t trib_train_mean(struct trib_trainer *t, const float *x, float *out);

/** trib_train_now - the clock of the statistics, in ns. */
uint64_t trib_train_now(void);

/** trib_train_update_range - the optimiser on a range; trib_train_optimizer_step ends
 * the step. */
void trib_train_update_range(struct trib_trainer *t, float *x, const float *gradient,
                             size_t first, size_t count, double rate);

/** trib_train_update - one whole step of the optimiser on x by a gradient. */
void trib_train_update(struct trib_trainer *t, float *x, const float *gradient,
                       double rate);

/** trib_train_number - the number of key k of the strategy's text, or its default. */
double trib_train_number(const struct trib_trainer *t, int key);

#endif
