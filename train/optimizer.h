/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Optimisers: what a gradient does to parameters, range by range.
 */
#ifndef TRIB_TRAIN_OPTIMIZER_H
#define TRIB_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

struct trib_error;
struct trib_keyed_family;

enum { TRIB_TRAIN_OPTIMIZER_VECTORS = 2 };

struct trib_train_optimizer {
    int kind; /* number of the row; -1: the caller's */
    double number[4]; /* of its keys */
    trib_update_fn update; /* the caller's, or NULL */
    void *arg;
    size_t count;
    float *vector[TRIB_TRAIN_OPTIMIZER_VECTORS]; /* [count] velocity, or both moments */
    uint64_t steps; /* updates that are whole */
};

/**
 * trib_train_optimizer_create - make an optimiser for count elements.
 *
 * text     NULL: "sgd"
 * update   not NULL: the caller's, and text is not read
 * owner    the caller: trib_train_optimizer_destroy, also after an error
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY with a sentence in err
 */
trib_status_t trib_train_optimizer_create(const char *text, trib_update_fn update,
                                          void *arg, size_t count,
                                          struct trib_error *err,
                                          struct trib_train_optimizer *out);
/** trib_train_optimizer_copy - the same optimiser with its state; as _create. */
trib_status_t trib_train_optimizer_copy(const struct trib_train_optimizer *optimizer,
                                        struct trib_error *err,
                                        struct trib_train_optimizer *out);
void trib_train_optimizer_destroy(struct trib_train_optimizer *optimizer);

/**
 * trib_train_optimizer_update - move elements [first, first + count) of params.
 *
 * params, gradient  [optimizer->count], of all elements. trib_train_optimizer_step ends
 *                   the update when all elements have been moved once.
 */
void trib_train_optimizer_update(struct trib_train_optimizer *optimizer, float *params,
                                 const float *gradient, size_t first, size_t count,
                                 double rate);
void trib_train_optimizer_step(struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_momentum - the factor of a velocity in vector[0]; 0: it has
 * none. */
double trib_train_optimizer_momentum(const struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_has_momentum - does it average gradients of several steps, by
 * momentum of SGD or beta1 of Adam? Of a caller's function nothing is known. */
bool trib_train_optimizer_has_momentum(const struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_rule - the optimiser as a rule of the store
 * (trib_store_create). */
void trib_train_optimizer_rule(const struct trib_train_optimizer *optimizer,
                               double rate, char *text, size_t bytes);

/** trib_train_optimizer_print - the optimiser in words; returns text. */
const char *trib_train_optimizer_print(const struct trib_train_optimizer *optimizer,
                                       char *text, size_t bytes);

#endif
