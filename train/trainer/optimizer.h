/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Optimizers: update ranges of the parameters by a gradient.
 */
#ifndef TRAIN_TRAINER_OPTIMIZER_H
#define TRAIN_TRAINER_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/train.h>

struct trib_error;
struct trib_keyed_family;

enum { TRIB_TRAIN_OPTIMIZER_VECTORS = 2 };

struct trib_train_optimizer {
    int kind; /* row of the table; -1: the caller's function */
    double number[4]; /* values of its keys */
    trib_update_fn update; /* the caller's function, or NULL */
    void *arg;
    size_t count;
    float *vector[TRIB_TRAIN_OPTIMIZER_VECTORS]; /* [count] velocity, or both moments */
    uint64_t steps; /* complete updates */
};

/**
 * trib_train_optimizer_create - create an optimizer for count elements.
 *
 * text     NULL: "sgd"
 * update   not NULL: the caller's function; text is ignored
 * owner    the caller: trib_train_optimizer_destroy, also after an error
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY with an error message in err
 */
trib_status_t trib_train_optimizer_create(const char *text, trib_update_fn update,
                                          void *arg, size_t count,
                                          struct trib_error *err,
                                          struct trib_train_optimizer *out);
/** trib_train_optimizer_copy - copy an optimizer with its state. Owner and errors as in
 * _create. */
trib_status_t trib_train_optimizer_copy(const struct trib_train_optimizer *optimizer,
                                        struct trib_error *err,
                                        struct trib_train_optimizer *out);
void trib_train_optimizer_destroy(struct trib_train_optimizer *optimizer);

/**
 * trib_train_optimizer_update - update elements [first, first + count) of params.
 *
 * params, gradient  [optimizer->count], the whole vectors. Call
 *          trib_train_optimizer_step after all elements have been updated once.
 */
void trib_train_optimizer_update(struct trib_train_optimizer *optimizer, float *params,
                                 const float *gradient, size_t first, size_t count,
                                 double rate);
void trib_train_optimizer_step(struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_momentum - return the momentum of the velocity in vector[0]; 0:
 * no velocity. */
double trib_train_optimizer_momentum(const struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_has_momentum - return true if the optimizer averages gradients
 * over steps (momentum of SGD, beta1 of Adam). False for a caller's function. */
bool trib_train_optimizer_has_momentum(const struct trib_train_optimizer *optimizer);

/** trib_train_optimizer_rule - print the optimizer as an update rule of the store
 * (trib_store_create). */
void trib_train_optimizer_rule(const struct trib_train_optimizer *optimizer,
                               double rate, char *text, size_t bytes);

/** trib_train_optimizer_print - describe the optimizer for people; return text. */
const char *trib_train_optimizer_print(const struct trib_train_optimizer *optimizer,
                                       char *text, size_t bytes);

#endif
