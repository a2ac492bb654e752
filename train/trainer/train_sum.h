/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repeated mean of a vector over all ranks: one plan, or a group of tensors if parts
 * of the vector have their own codecs.
 */
#ifndef TRAIN_TRAINER_TRAIN_SUM_H
#define TRAIN_TRAINER_TRAIN_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_error;
struct trib_train_parts;
struct trib_train_sum;

/* Called when elements [first, first + count) of the vector are final. */
typedef void (*trib_train_range_fn)(void *arg, size_t first, size_t count);

struct trib_train_sum_desc {
    const char *name; /* of the vector; seeds random draws */
    const struct trib_train_parts *parts;
    size_t first, count; /* the range of the vector to sum */
    trib_feed_t feed;
    uint64_t seed;
};

/**
 * trib_train_sum_create - collective over comm: create a sum.
 *
 * desc     parts is borrowed; name is copied
 * owner    the caller frees *sum_out with trib_train_sum_free
 * errors   as for plans and groups, with an error message in err
 */
trib_status_t trib_train_sum_create(trib_comm_t *comm,
                                    const struct trib_train_sum_desc *desc,
                                    struct trib_error *err,
                                    struct trib_train_sum **sum_out);

/** trib_train_sum_free - wait for a running start and free the sum. NULL is allowed. */
trib_status_t trib_train_sum_free(struct trib_train_sum *sum);

/**
 * trib_train_sum_start - start to replace the range of a vector by its mean.
 *
 * vector   element 0 of the vector; the sum may overwrite it from now on
 */
trib_status_t trib_train_sum_start(struct trib_train_sum *sum, float *vector);

/** trib_train_sum_ready - mark elements as final, with a feed other than WHOLE. */
trib_status_t trib_train_sum_ready(struct trib_train_sum *sum, size_t first,
                                   size_t count);

/**
 * trib_train_sum_wait - block until the mean is complete.
 *
 * done     called for each range as it completes, or NULL
 */
trib_status_t trib_train_sum_wait(struct trib_train_sum *sum, trib_train_range_fn done,
                                  void *arg);

/** trib_train_sum_runs - return true between start and wait. */
bool trib_train_sum_runs(const struct trib_train_sum *sum);

/** trib_train_sum_count - return the number of elements in the range. */
size_t trib_train_sum_count(const struct trib_train_sum *sum);

/** trib_train_sum_ended - return the number of starts that have completed, or of which
 * `done` has reported a range. */
uint64_t trib_train_sum_ended(const struct trib_train_sum *sum);

/** trib_train_sum_count_from - set the number of completed starts. */
void trib_train_sum_count_from(struct trib_train_sum *sum, uint64_t ended);

/** trib_train_sum_comm - return the communicator, which holds the error message of a
 * failed call. */
trib_comm_t *trib_train_sum_comm(const struct trib_train_sum *sum);

/**
 * trib_train_sum_save, _load - as the calls of plans and groups.
 *
 * ended    trib_train_sum_ended at the time of the save
 */
trib_status_t trib_train_sum_save(struct trib_train_sum *sum, void *state, size_t bytes,
                                  size_t *bytes_out);
trib_status_t trib_train_sum_load(struct trib_train_sum *sum, const void *state,
                                  size_t bytes, uint64_t ended);

/* Outcome of a rank's newest start in a move. */
enum trib_train_fate {
    TRIB_TRAIN_WHOLE, /* completed, or rewound */
    TRIB_TRAIN_BEHIND, /* other ranks have the mean, this rank does not */
    TRIB_TRAIN_DROPPED, /* no rank has the mean: this rank's contribution is lost */
    TRIB_TRAIN_ANEW, /* the sum starts from scratch: residuals of codecs are lost */
};

/**
 * trib_train_sum_move - continue from a sum of another communicator.
 *
 * A start that no rank has completed is rewound if the plans can (trib_opts_t.rewind),
 * and dropped otherwise. Sums that have nothing in common, as of regrouped ranks, start
 * from scratch.
 *
 * from     NULL on a newcomer; unchanged except for the rewind
 * thread   collective over sum's communicator
 * errors   those of the collective calls
 */
trib_status_t trib_train_sum_move(struct trib_train_sum *sum,
                                  struct trib_train_sum *from);

/** trib_train_sum_fate - return the outcome of this rank's newest start in the last
 * move. */
enum trib_train_fate trib_train_sum_fate(const struct trib_train_sum *sum);

/** trib_train_sum_explain - write the plan's or group's description to text. */
trib_status_t trib_train_sum_explain(const struct trib_train_sum *sum, char *text,
                                     size_t bytes);

#endif
