/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trainer: state and functions shared by all strategies.
 */
#ifndef TRAIN_TRAINER_TRAINER_H
#define TRAIN_TRAINER_TRAINER_H

#include <tributary/train.h>

#include "base/error.h"
#include "train/trainer/optimizer.h"
#include "train/trainer/parts.h"
#include "train/trainer/rate.h"
#include "train/trainer/strategy.h"

enum { TRIB_TRAIN_SPLITS = 3 };

struct trib_trainer {
    trib_comm_t *comm;
    int rank, ranks;
    /* [count] the caller's. Strategies whose ranks differ train their own vectors and
     * store the model here. */
    float *params;
    size_t count;
    struct trib_train_parts parts;
    struct trib_train_optimizer optimizer;
    struct trib_train_rate rate;
    trib_feed_t feed;
    uint64_t seed;
    struct trib_strategy_choice choice;
    char *codecs; /* choices of the strategy, such as "int8|qsgd:bits=4"; or NULL */
    void *strategy; /* private state of the strategy */
    struct trib_train_sum **sums[TRIB_TRAIN_SUMS]; /* in that state; owned */
    int n_sums;
    /* Continues from another communicator. Groups that do not fit are then reduced in
     * number instead of refused. */
    bool moves;
    char moved[256]; /* description of the last move; "": none */
    uint64_t number; /* number of the current or next gradient */
    bool begun;
    uint64_t begun_ns, wire_at_create;
    /* communicators that the strategy has split from comm */
    trib_comm_t *split[TRIB_TRAIN_SPLITS];
    int n_split;
    trib_trainer_stats_t stats;
    struct trib_error err;
};

enum { TRIB_TRAIN_SECTIONS = 1 + TRIB_TRAIN_OPTIMIZER_VECTORS + TRIB_TRAIN_FIELDS };

/** trib_train_set_comm_error, _group_error, _sum_error - record the error message of a
 * failed library call, from the trainer's communicator, a group's or a sum's; return
 * status. */
trib_status_t trib_train_set_comm_error(struct trib_trainer *t, trib_status_t status);
trib_status_t trib_train_set_group_error(struct trib_trainer *t, trib_comm_t *group,
                                         trib_status_t status);

trib_status_t trib_train_set_sum_error(struct trib_trainer *t,
                                       const struct trib_train_sum *sum,
                                       trib_status_t status);

/**
 * trib_train_agree - collective: an error on one rank fails all; the others name that
 * rank.
 *
 * mine     this rank's status, with a message in t->err
 * what     the rank cannot do, for the error message: "load its state"
 * errors   mine; TRIB_ERR_INVALID: another rank's
 */
trib_status_t trib_train_agree(struct trib_trainer *t, trib_status_t mine,
                               const char *what);

/** trib_train_kind - return a digest of the properties that must match between trainers
 * that exchange state. */
uint64_t trib_train_kind(const struct trib_trainer *t);

/** trib_train_sections - list all state except sums: the parameters, the optimizer's
 * vectors, the strategy's fields. Return the number. */
int trib_train_sections(struct trib_trainer *t,
                        struct trib_train_field out[TRIB_TRAIN_SECTIONS]);

/** trib_train_wire_bytes - return the bytes sent by this rank, over all communicators
 * and to the store. */
uint64_t trib_train_wire_bytes(const struct trib_trainer *t);

/** trib_train_open_strategy - collective: allocate the strategy's state and vectors,
 * and create it. */
trib_status_t trib_train_open_strategy(struct trib_trainer *t);

/** trib_train_release - free the strategy, the split communicators and the
 * optimizer. */
void trib_train_release(struct trib_trainer *t);

/** trib_train_copy_model - write this rank's view of the model to out [count]. */
void trib_train_copy_model(struct trib_trainer *t, float *out);

/**
 * trib_train_create_strategy - collective: create the strategy in t->comm, with common
 * parameters.
 *
 * mine     status of this rank's description; an error on one rank fails all
 * from     the trainer to continue, in another communicator; NULL: this rank is new
 */
trib_status_t trib_train_create_strategy(struct trib_trainer *t, trib_status_t mine,
                                         struct trib_trainer *from);

/** trib_train_take_desc - read a description, without communication. */
trib_status_t trib_train_take_desc(struct trib_trainer *t,
                                   const trib_trainer_desc_t *theirs);

/** trib_train_check_configured - return TRIB_ERR_INVALID if both the configured
 * feedback (TRIB_FEEDBACK) and the optimizer that applies the sums have momentum. */
trib_status_t trib_train_check_configured(struct trib_trainer *t);

/** trib_train_refuse_parts - return TRIB_ERR_UNSUPPORTED if the description has
 * feedback or parts with codecs. For strategies that send the vector as a whole.
 * trib_train_refuse_codecs: also if it has any codec; `sends` completes the error
 * message "strategy X sends … uncompressed". */
trib_status_t trib_train_refuse_parts(struct trib_trainer *t);
trib_status_t trib_train_refuse_codecs(struct trib_trainer *t, const char *sends);

/** trib_train_alloc, trib_train_calloc - allocate zeroed floats, in memory that peers
 * can access or in private memory. */
trib_status_t trib_train_alloc(struct trib_trainer *t, size_t count, float **out);
trib_status_t trib_train_calloc(struct trib_trainer *t, size_t count, float **out);

/** trib_train_make_sum - create a sum of elements [first, first + count) over all
 * ranks, with the trainer's codecs. trib_train_make_sum_of: of all elements, over
 * another communicator. `out` is in t->strategy; the trainer owns the sum. */
trib_status_t trib_train_make_sum(struct trib_trainer *t, const char *name,
                                  size_t first, size_t count, trib_feed_t feed,
                                  struct trib_train_sum **out);
trib_status_t trib_train_make_sum_of(struct trib_trainer *t, trib_comm_t *comm,
                                     const char *name, trib_feed_t feed,
                                     struct trib_train_sum **out);

/** trib_train_own_sum - let the trainer own, save and move a sum in t->strategy. */
void trib_train_own_sum(struct trib_trainer *t, struct trib_train_sum **sum);

/** trib_train_start, trib_train_wait - start a sum and wait for it; count rounds and
 * time. */
trib_status_t trib_train_start(struct trib_trainer *t, struct trib_train_sum *sum,
                               float *vector);
trib_status_t trib_train_wait(struct trib_trainer *t, struct trib_train_sum *sum,
                              trib_train_range_fn done, void *arg);

/**
 * trib_train_split - split the trainer's communicator and count the new one's bytes as
 * the trainer's.
 *
 * owner    the trainer: frees it after the strategy has been destroyed
 */
trib_status_t trib_train_split(struct trib_trainer *t, int color, trib_comm_t **out);

/** trib_train_unsplit - free such a communicator now. */
void trib_train_unsplit(struct trib_trainer *t, trib_comm_t *comm);

/** trib_train_mean - collective: compute the uncompressed mean of x [count] over all
 * ranks; x may equal out. */
trib_status_t trib_train_mean(struct trib_trainer *t, const float *x, float *out);

/** trib_train_now - return the clock of the statistics, in ns. */
uint64_t trib_train_now(void);

/** trib_train_update_range - apply the optimizer to a range; trib_train_optimizer_step
 * ends the step. */
void trib_train_update_range(struct trib_trainer *t, float *x, const float *gradient,
                             size_t first, size_t count, double rate);

/** trib_train_update - apply one whole step of the optimizer to x. */
void trib_train_update(struct trib_trainer *t, float *x, const float *gradient,
                       double rate);

/** trib_train_number - return the value of key k of the strategy's text, or its
 * default. */
double trib_train_number(const struct trib_trainer *t, int key);

#endif
