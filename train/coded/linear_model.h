/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coded matrices of a linear model of two classes, and its gradient.
 *
 * Of a code of sums there are two: the samples X, in partitions of rows, gives scores
 * X w; X', in partitions of features, gives the gradient X' r. Of other codes there is
 * one, of samples with their labels.
 */
#ifndef TRAIN_CODED_LINEAR_MODEL_H
#define TRAIN_CODED_LINEAR_MODEL_H

#include "train/coded/coded_state.h"

/* The loss of a sample by its margin, label times score, and its derivative. */
typedef double (*trib_linear_loss_fn)(double margin, double *slope_out);

struct trib_linear_model {
    trib_linear_loss_fn loss;
    size_t rows, columns; /* of a partition of samples; columns with that of the bias */
    size_t n_samples;
    int parts;
    struct trib_order_star *star; /* of all matrices */
    uint64_t late; /* answers that came too late, in stars that were closed */
    trib_coded_t *scores; /* X; NULL: the code mixes gradients */
    trib_coded_t *features; /* X' */
    trib_coded_t *gradients; /* samples and labels */
    float *labels; /* [parts * rows] on all ranks: any of them may become rank 0 */
    void (*work)(void *arg, int blocks); /* as of trib_coded */
    void *work_arg;
    float *z, *r, *g; /* rank 0's: scores, slopes, the gradient before it is scaled */
    struct trib_error err;
};

/** trib_linear_loss_find - NULL: there is none of this name. */
trib_linear_loss_fn trib_linear_loss_find(const char *name);

/**
 * trib_linear_model_create - encode the samples; collective.
 *
 * errors   as trib_coded_create, with a sentence in model->err
 */
trib_status_t trib_linear_model_create(struct trib_linear_model *model,
                                       trib_comm_t *comm,
                                       const trib_coded_fit_desc_t *desc);

/**
 * trib_linear_model_move - go on in another communicator; collective.
 *
 * A newcomer has a model of 0 but for the loss.
 * from     a rank that has the model
 */
trib_status_t trib_linear_model_move(struct trib_linear_model *model, trib_comm_t *comm,
                                     int from);
void trib_linear_model_destroy(struct trib_linear_model *model);

/** trib_linear_model_reset - as new, but for the loss and what is called. */
void trib_linear_model_reset(struct trib_linear_model *model);

/** trib_linear_model_leave - end the pairs, before the communicator is freed. */
void trib_linear_model_leave(struct trib_linear_model *model);

/** trib_linear_model_fail - rank 0 gives up: no rank waits for its orders, and all hear
 * why; nothing on other ranks. */
void trib_linear_model_fail(struct trib_linear_model *model, trib_status_t status,
                            const char *why);

/**
 * trib_linear_model_gradient - the mean gradient and loss of all samples, on rank 0.
 *
 * weights  [columns] in; elsewhere it receives those of the order, if one was taken
 * gradient_out, loss_out  on rank 0
 * taken_out   true if weights are those of this call
 */
trib_status_t trib_linear_model_gradient(struct trib_linear_model *model,
                                         float *weights, float *gradient_out,
                                         double *loss_out, bool *taken_out);

/** trib_linear_model_settle - lets late ranks catch up, as trib_coded_settle. */
void trib_linear_model_settle(struct trib_linear_model *model);

/** trib_linear_model_stats - of all matrices. */
void trib_linear_model_stats(const struct trib_linear_model *model,
                             trib_coded_stats_t *out);

#endif
