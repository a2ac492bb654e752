/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replica as one of its devices sees it, and the run that it is of.
 */
#ifndef TRAIN_REPLICATOR_REPLICA_H
#define TRAIN_REPLICATOR_REPLICA_H

#include <stdatomic.h>

#include <tributary.h>
#include <tributary/replicator.h>

#include "base/error.h"
#include "train/replicator/replicator_kind.h"

enum { REPLICA_TRAINERS = 8, REPLICA_COMMS = 5 };

/* What the ranks of a process share. */
struct trib_replicator {
    trib_replicator_opts_t opts;
    struct trib_kind kind;
    struct trib_kind_shape shape;
    int process;
};

/* A trainer, and with shares what their gradients are added in. */
struct trib_replica_trained {
    trib_trainer_t *trainer;
    const float *params; /* where its last step differentiated */
    size_t count;
    uint64_t steps; /* that the replica has made with it */
    float *send; /* [shares of this replica][count], part by part */
    float *recv; /* [all shares][this replica's part] */
    size_t *counts; /* [4][replicas of the group] */
};

struct trib_replica {
    const struct trib_replicator *of;
    int rank, id, device, group;
    trib_comm_t *world; /* all ranks; borrowed */
    trib_comm_t *self; /* this rank */
    trib_comm_t *all; /* this device of all replicas */
    trib_comm_t *sync; /* this device of the group's replicas */
    trib_comm_t *model; /* the devices of this replica */
    trib_comm_t *pipeline; /* the ranks for which one rank makes samples */
    trib_comm_t *made[REPLICA_COMMS]; /* those of the above that are to be freed */
    int n_made;
    uint64_t step;
    bool in_step;
    unsigned char *samples; /* [batch][sample_bytes] of this replica's step */
    unsigned char *pipeline_samples; /* of all replicas of the pipeline, on its first
                                      * rank; NULL: it has one rank */
    size_t *pipeline_counts; /* [2][ranks of the pipeline] bytes, offsets */
    void *state;
    struct trib_replica_trained trainers[REPLICA_TRAINERS];
    int n_trainers;
    struct trib_error err; /* why this rank cannot go on: the first reason */
    bool own; /* that is a function of the program, on this rank */
};

/**
 * trib_pipeline_open - memory for samples, and the communicator by which they travel.
 *
 * thread   collective over r->world
 * owner    trib_pipeline_close, also after an error
 */
trib_status_t trib_pipeline_open(struct trib_replica *r);
void trib_pipeline_close(struct trib_replica *r);

/** trib_pipeline_fetch - the samples of this step, into r->samples. */
trib_status_t trib_pipeline_fetch(struct trib_replica *r);

/** trib_ordered_sum - adds the gradients of all shares, [count], in their order, into
 * gradient_out. */
trib_status_t trib_ordered_sum(struct trib_replica *r, struct trib_replica_trained *s,
                               float *gradient_out);

/** trib_ordered_put - notes the gradient of share i of this replica. */
void trib_ordered_put(const struct trib_replica *r, struct trib_replica_trained *s,
                      int i, const float *gradient);

/** trib_ordered_open - memory for sums of shares; trib_ordered_close: also after an
 * error. */
trib_status_t trib_ordered_open(struct trib_replica *r, struct trib_replica_trained *s);
void trib_ordered_close(struct trib_replica_trained *s);

/** trib_ordered_shares - how many shares a replica has; 0: gradients are not cut. */
int trib_ordered_shares(const struct trib_replica *r);

/** trib_fault_comm - notes the sentence of a failed call of comm; returns status. */
trib_status_t trib_fault_comm(struct trib_replica *r, const trib_comm_t *comm,
                              trib_status_t status);

/** trib_fault_callback - a function of the program has returned `code`, not 0: notes
 * the reason, if there is none yet. */
trib_status_t trib_fault_callback(struct trib_replica *r, const char *function,
                                  int code);

/** trib_fault_split - makes a communicator of r, which r frees. */
trib_status_t trib_fault_split(struct trib_replica *r, trib_comm_t *of, int color,
                               int key, trib_comm_t **out);

#endif
