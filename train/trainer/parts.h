/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts (layers) of a vector, and the codec of each.
 */
#ifndef TRAIN_TRAINER_PARTS_H
#define TRAIN_TRAINER_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

struct trib_error;

struct trib_train_part {
    size_t first, count;
    int dims;
    char *name;
    char *codec; /* NULL: the trainer's codec */
    char *feedback;
};

struct trib_train_parts {
    size_t n;
    struct trib_train_part *part; /* [n] */
    char *codec; /* the trainer's; NULL: none */
    char *feedback;
};

/**
 * trib_train_parts_create - copy and check the parts of a description.
 *
 * codec    the trainer's, or NULL
 * rounds   sums in the run, the base of percentages in texts; 0: unknown
 * owner    the caller: trib_train_parts_destroy, also after an error
 * errors   TRIB_ERR_INVALID: the parts do not cover the vector; TRIB_ERR_CODEC; no
 *          memory
 */
trib_status_t trib_train_parts_create(const trib_trainer_desc_t *desc,
                                      const char *codec, uint64_t rounds,
                                      struct trib_error *err,
                                      struct trib_train_parts *out);
void trib_train_parts_destroy(struct trib_train_parts *parts);

#endif
