/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mean of a vector over all ranks, again and again: one plan, or a group of tensors
 * where the parts of the vector have codecs of their own.
 */
#ifndef TRAIN_TRAIN_SUM_H
#define TRAIN_TRAIN_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/coll.h>

struct trib_error;
struct trib_train_parts;
struct trib_train_sum;

/* Elements [first, first + count) of the vector are final in it. */
typedef void (*trib_train_range_fn)(void *arg, size_t first, size_t count);

struct trib_train_sum_desc {
    const char *name; /* of the vector; what is drawn at random follows from it */
    const struct trib_train_parts *parts;
    size_t first, count; /* the range of the vector that is summed */
    trib_feed_t feed;
    uint64_t seed;
};

/**
 * trib_train_sum_create - collective over comm.
 *
 * desc     parts is borrowed; name is copied
 * owner    the caller frees *sum_out with trib_train_sum_free
 * errors   those of plans and groups, with a sentence in err
 */
trib_status_t trib_train_sum_create(trib_comm_t *comm,
                                    const struct trib_train_sum_desc *desc,
                                    struct trib_error *err,
                                    struct trib_train_sum **sum_out);

/** trib_train_sum_free - NULL is allowed; waits for what has been started. */
trib_status_t trib_train_sum_free(struct trib_train_sum *sum);

/**
 * trib_train_sum_start - begin to replace the range of a vector by its mean.
 *
 * vector   its element 0, in memory that the sum may overwrite from now on
 */
trib_status_t trib_train_sum_start(struct trib_train_sum *sum, float *vector);

/** trib_train_sum_ready - elements of the vector are final, with a feed other than
 * WHOLE. */
trib_status_t trib_train_sum_ready(struct trib_train_sum *sum, size_t first,
                                   size_t count);

/**
 * trib_train_sum_wait - block until the mean is there.
 *
 * done     called for each range as it comes; NULL: nobody is told
 */
trib_status_t trib_train_sum_wait(struct trib_train_sum *sum, trib_train_range_fn done,
                                  void *arg);

/** trib_train_sum_runs - true if it has been started, and nobody has waited for it. */
bool trib_train_sum_runs(const struct trib_train_sum *sum);

/** trib_train_sum_count - elements of its range. */
size_t trib_train_sum_count(const struct trib_train_sum *sum);

/** trib_train_sum_ended - starts whose mean has come, or a part of it that `done` has
 * been told of. */
uint64_t trib_train_sum_ended(const struct trib_train_sum *sum);

/** trib_train_sum_count_from - count on behind so many starts that have ended. */
void trib_train_sum_count_from(struct trib_train_sum *sum, uint64_t ended);

/** trib_train_sum_comm - its communicator, which has the sentence of a failed call. */
trib_comm_t *trib_train_sum_comm(const struct trib_train_sum *sum);

/**
 * trib_train_sum_save, _load - as the calls of plans and groups.
 *
 * ended    as trib_train_sum_ended said when it was saved
 */
trib_status_t trib_train_sum_save(struct trib_train_sum *sum, void *state, size_t bytes,
                                  size_t *bytes_out);
trib_status_t trib_train_sum_load(struct trib_train_sum *sum, const void *state,
                                  size_t bytes, uint64_t ended);

/* What has become of a rank's newest start in a move. */
enum trib_train_fate {
    TRIB_TRAIN_WHOLE, /* it has ended, or is taken back */
    TRIB_TRAIN_BEHIND, /* others have its mean, and this rank does not */
    TRIB_TRAIN_DROPPED, /* nobody has its mean: what was sent is lost */
    TRIB_TRAIN_ANEW, /* the sum begins anew: what codecs held back is lost */
};

/**
 * trib_train_sum_move - go on from a sum of another communicator.
 *
 * A start that no rank has ended is taken back, where the plans can
 * (trib_opts_t.rewind); else it is dropped. Sums that have nothing in common, such as
 * those of groups that were cut anew, begin anew.
 *
 * from     NULL on a newcomer; is not changed, but for what is taken back
 * thread   collective over sum's communicator
 * errors   what ended it
 */
trib_status_t trib_train_sum_move(struct trib_train_sum *sum,
                                  struct trib_train_sum *from);

/** trib_train_sum_fate - what the last move has made of this rank's newest start. */
enum trib_train_fate trib_train_sum_fate(const struct trib_train_sum *sum);

/** trib_train_sum_explain - appends to text what the plan or group says of itself. */
trib_status_t trib_train_sum_explain(const struct trib_train_sum *sum, char *text,
                                     size_t bytes);

#endif
