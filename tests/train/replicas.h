/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small program for replicators: it fits parameters to samples, and fails where a
 * test requests it.
 */
#ifndef TESTS_TRAIN_REPLICAS_H
#define TESTS_TRAIN_REPLICAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tributary/replicator.h>

enum {
    REPLICAS_PARAMS = 37,
    REPLICAS_BATCH = 12,
    REPLICAS_STEPS = 8,
    REPLICAS_MAX = 16
};

/* The first elements show the order of a sum. */
enum { REPLICAS_WIDE = 5 };

enum replicas_fault {
    FAULT_NONE,
    FAULT_START,
    FAULT_INPUT,
    FAULT_STEP,
    FAULT_STEP_SILENT, /* it returns 7 without a message */
    FAULT_GRADIENT,
    FAULT_FINISH,
    FAULT_ORDER, /* it calls another collective than the others */
    FAULT_BY_HAND, /* the step is trib_trainer_end */
    FAULT_STRATEGY, /* it requests a strategy that the kind does not support */
    FAULT_DIES, /* it stays in the step until the test kills it */
};

struct replicas_job {
    const char *kind;
    trib_comm_t *comm;
    bool by_rule; /* the optimizer is "sgd", as a store needs it, else a callback */
    enum replicas_fault fault;
    int replica; /* where it happens */
    uint64_t step; /* when */
    _Atomic int *waits; /* set once FAULT_DIES waits */
    trib_replica_fn check; /* called in each step; NULL: no check */
    float params[REPLICAS_PARAMS]; /* at the end, of replica 0 */
    _Atomic int seen[REPLICAS_BATCH * REPLICAS_STEPS]; /* gradients of each sample */
    _Atomic int made[REPLICAS_BATCH * REPLICAS_STEPS]; /* by input functions */
    _Atomic int inputs; /* calls of the input function */
    _Atomic int finished; /* ranks that did */
    _Atomic int stale; /* the most of a trainer */
};

/** replicas_run - a run of REPLICAS_STEPS steps with batches of REPLICAS_BATCH
 * samples. */
trib_status_t replicas_run(struct replicas_job *job);

/** replicas_oracle - the same by hand: a batch is cut into shares, whose gradients are
 * added in order, in double. */
void replicas_oracle(int shares, float params_out[REPLICAS_PARAMS]);

/** replicas_distance - the largest difference of two vectors, but for the first
 * elements. */
double replicas_distance(const float *a, const float *b);

#endif
