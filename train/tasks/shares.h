/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples dealt to ranks: one shuffle that all ranks know, and each rank's part of it,
 * in another order at each epoch.
 */
#ifndef TRAIN_TASKS_SHARES_H
#define TRAIN_TASKS_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct shares {
    uint32_t *picks; /* [count] this rank's */
    size_t count, next;
    uint64_t seed, epoch;
    int rank, ranks;
};

/**
 * shares_create - deal `total` samples.
 *
 * owner    the caller: shares_destroy
 * errors   -1: no memory
 */
int shares_create(struct shares *shares, size_t total, int rank, int ranks,
                  uint64_t seed);
void shares_destroy(struct shares *shares);

/** shares_take - the next `batch` samples, at most count; valid until the next call. */
const uint32_t *shares_take(struct shares *shares, size_t batch);

/**
 * shares_at - the sample of a number, of those that are one rank's; without
 * shares_take.
 *
 * Each pass over all samples has an order that depends on the seed alone.
 */
uint32_t shares_at(struct shares *shares, uint64_t number);

#endif
