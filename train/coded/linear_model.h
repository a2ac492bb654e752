/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coded matrices of a linear model of two classes, and its gradient.
 *
 * With a code of sums there are two matrices: the samples X, partitioned by rows, for
 * the scores X w; and X', partitioned by features, for the gradient X' r. Codes that
 * mix gradients have one matrix, of samples with labels.
 */
#ifndef TRAIN_CODED_LINEAR_MODEL_H
#define TRAIN_CODED_LINEAR_MODEL_H

#include "train/coded/coded_state.h"

/* Return the loss of a sample from its margin (label times score), and its
 * derivative. */
typedef double (*trib_linear_loss_fn)(double margin, double *slope_out);

struct trib_linear_model {
    trib_linear_loss_fn loss;
    size_t rows, columns; /* of a partition of samples; columns include the bias */
    size_t n_samples;
    int parts;
    struct trib_order_star *star; /* shared by all matrices */
    uint64_t late; /* late answers in stars that are closed */
    trib_coded_t *scores; /* X; NULL: the code mixes gradients */
    trib_coded_t *features; /* X' */
    trib_coded_t *gradients; /* samples and labels */
    float *labels; /* [parts * rows] on all ranks, because any rank may become rank 0 */
    void (*work)(void *arg, int blocks); /* as in trib_coded */
    void *work_arg;
    float *z, *r, *g; /* on rank 0: scores, slopes, the unscaled gradient */
    struct trib_error err;
};

/** trib_linear_loss_find - return a loss by name; NULL: unknown name. */
trib_linear_loss_fn trib_linear_loss_find(const char *name);

/**
 * trib_linear_model_create - collective: encode the samples.
 *
 * errors   as trib_coded_create, with an error message in model->err
 */
trib_status_t trib_linear_model_create(struct trib_linear_model *model,
                                       trib_comm_t *comm,
                                       const trib_coded_fit_desc_t *desc);

/**
 * trib_linear_model_move - collective: continue in another communicator.
 *
 * A newcomer passes a model that is zero except for the loss.
 *
 * from     a rank that has the model
 */
trib_status_t trib_linear_model_move(struct trib_linear_model *model, trib_comm_t *comm,
                                     int from);
void trib_linear_model_destroy(struct trib_linear_model *model);

/** trib_linear_model_reset - free the matrices; keep the loss and the work callback. */
void trib_linear_model_reset(struct trib_linear_model *model);

/** trib_linear_model_leave - close the star, before the communicator is freed. */
void trib_linear_model_leave(struct trib_linear_model *model);

/** trib_linear_model_fail - on rank 0, notify all ranks of a failure, so that none
 * waits for an order. No effect on other ranks. */
void trib_linear_model_fail(struct trib_linear_model *model, trib_status_t status,
                            const char *why);

/**
 * trib_linear_model_gradient - compute the mean gradient and loss of all samples, on
 * rank 0.
 *
 * weights  [columns] input on rank 0; other ranks receive the weights of the order, if
 *          they took one
 * gradient_out, loss_out  valid on rank 0
 * taken_out  true if this call has set weights
 */
trib_status_t trib_linear_model_gradient(struct trib_linear_model *model,
                                         float *weights, float *gradient_out,
                                         double *loss_out, bool *taken_out);

/** trib_linear_model_finish - let late ranks catch up, as trib_coded_settle. */
void trib_linear_model_finish(struct trib_linear_model *model);

/** trib_linear_model_stats - add up the statistics of all matrices. */
void trib_linear_model_stats(const struct trib_linear_model *model,
                             trib_coded_stats_t *out);

#endif
