/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replica as seen by one of its devices (ranks), and its run.
 */
#ifndef TRAIN_REPLICATOR_REPLICA_H
#define TRAIN_REPLICATOR_REPLICA_H

#include <stdatomic.h>

#include <tributary.h>
#include <tributary/replicator.h>

#include "base/error.h"
#include "train/replicator/replicator_kind.h"

enum { REPLICA_TRAINERS = 8, REPLICA_COMMS = 5 };

/* State shared by the ranks of a process; read-only during the run. */
struct trib_replicator {
    trib_replicator_opts_t opts;
    struct trib_kind kind;
    struct trib_kind_shape shape;
    int process;
};

/* A trainer; with shares also the buffers of the ordered sum. */
struct trib_replica_trained {
    trib_trainer_t *trainer;
    const float *params; /* the point at which its last step differentiated */
    size_t count;
    uint64_t steps; /* made by the replica with this trainer */
    float *send; /* [shares of this replica][count], part by part */
    float *recv; /* [all shares][this replica's part] */
    size_t *counts; /* [4][replicas of the group] */
};

struct trib_replica {
    const struct trib_replicator *of;
    int rank, id, device, group;
    trib_comm_t *world; /* all ranks; borrowed */
    trib_comm_t *self; /* this rank */
    trib_comm_t *all; /* the same device of all replicas */
    trib_comm_t *sync; /* the same device of the group's replicas */
    trib_comm_t *model; /* the devices of this replica */
    trib_comm_t *pipeline; /* the ranks that one rank makes samples for */
    trib_comm_t *made[REPLICA_COMMS]; /* the communicators above that r owns */
    int n_made;
    uint64_t step;
    bool in_step;
    unsigned char *samples; /* [batch][sample_bytes] of the replica's current step */
    /* of all replicas of the pipeline, on its first rank only; NULL: one rank */
    unsigned char *pipeline_samples;
    size_t *pipeline_counts; /* [2][ranks of the pipeline] bytes, offsets */
    void *state;
    struct trib_replica_trained trainers[REPLICA_TRAINERS];
    int n_trainers;
    struct trib_error err; /* the first error of this rank */
    bool own; /* err comes from a function of the program, on this rank */
};

/**
 * trib_pipeline_open - allocate samples and create the communicator that scatters them.
 *
 * thread   collective over r->world
 * owner    trib_pipeline_close, also after an error
 */
trib_status_t trib_pipeline_open(struct trib_replica *r);
void trib_pipeline_close(struct trib_replica *r);

/** trib_pipeline_fetch - get the samples of this step into r->samples. */
trib_status_t trib_pipeline_fetch(struct trib_replica *r);

/** trib_ordered_sum - write the mean of the gradients of all shares, added in the order
 * of shares, to gradient_out [count]. */
trib_status_t trib_ordered_sum(struct trib_replica *r, struct trib_replica_trained *s,
                               float *gradient_out);

/** trib_ordered_put - store the gradient of share i of this replica. */
void trib_ordered_put(const struct trib_replica *r, struct trib_replica_trained *s,
                      int i, const float *gradient);

/** trib_ordered_open - allocate the buffers of an ordered sum. trib_ordered_close frees
 * them, also after an error. */
trib_status_t trib_ordered_open(struct trib_replica *r, struct trib_replica_trained *s);
void trib_ordered_close(struct trib_replica_trained *s);

/** trib_ordered_shares - return the number of shares per replica; 0: no shares. */
int trib_ordered_shares(const struct trib_replica *r);

/** trib_fault_comm - record the error message of a failed call of comm; return
 * status. */
trib_status_t trib_fault_comm(struct trib_replica *r, const trib_comm_t *comm,
                              trib_status_t status);

/** trib_fault_callback - record that a function of the program returned `code` != 0, or
 * its cause. A recorded error is kept. */
trib_status_t trib_fault_callback(struct trib_replica *r, const char *function,
                                  int code);

/** trib_fault_split - split `of` into a communicator that r owns. */
trib_status_t trib_fault_split(struct trib_replica *r, trib_comm_t *of, int color,
                               int key, trib_comm_t **out);

#endif
