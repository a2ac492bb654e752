/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Division of samples among ranks: all ranks draw the same shuffle and use their part
 * of it, reshuffled at each epoch.
 */
#ifndef TRAIN_TASKS_SHARES_H
#define TRAIN_TASKS_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct shares {
    uint32_t *picks; /* [count] this rank's samples */
    size_t count, next;
    uint64_t seed, epoch;
    int rank, ranks;
};

/**
 * shares_create - divide `total` samples among the ranks.
 *
 * owner    the caller: shares_destroy
 * errors   -1: no memory
 */
int shares_create(struct shares *shares, size_t total, int rank, int ranks,
                  uint64_t seed);
void shares_destroy(struct shares *shares);

/** shares_take - return the next `batch` samples, at most count; valid until the next
 * call. */
const uint32_t *shares_take(struct shares *shares, size_t batch);

/**
 * shares_at - return the sample with a number. Only for ranks == 1, and not together
 * with shares_take.
 *
 * The order in each pass over all samples depends only on the seed.
 */
uint32_t shares_at(struct shares *shares, uint64_t number);

#endif
