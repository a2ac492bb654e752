/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a vector, and how each is encoded.
 */
#ifndef TRAIN_PARTS_H
#define TRAIN_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

struct trib_error;

struct trib_train_part {
    size_t first, count;
    int dims;
    char *name;
    char *codec; /* NULL: the trainer's */
    char *feedback;
};

struct trib_train_parts {
    size_t n;
    struct trib_train_part *part; /* [n] */
    char *codec; /* the trainer's; NULL: none */
    char *feedback;
};

/**
 * trib_train_parts_create - copy the parts of a description and check them.
 *
 * codec    the trainer's, or NULL
 * rounds   sums of the run, of which texts may give percentages; 0: not known
 * owner    the caller: trib_train_parts_destroy, also after an error
 * errors   TRIB_ERR_INVALID: they do not cover the vector; TRIB_ERR_CODEC; no memory
 */
trib_status_t trib_train_parts_create(const trib_trainer_desc_t *desc,
                                      const char *codec, uint64_t rounds,
                                      struct trib_error *err,
                                      struct trib_train_parts *out);
void trib_train_parts_destroy(struct trib_train_parts *parts);

#endif
