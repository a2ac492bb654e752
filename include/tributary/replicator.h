/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replicas: a program for one machine that runs, unchanged, on threads, on many
 * processes, synchronously or not. The program says what one replica does with its part
 * of a batch; a text, the kind, says where replicas are and how they go together:
 *
 *     opts.kind = "workers";              // or "threads:4", "ps:staleness=2", …
 *     opts.batch = 128; opts.sample_bytes = sizeof(struct sample); opts.steps = 1000;
 *     opts.start = make_model;            // parameters, trib_replica_trainer
 *     opts.input = read_samples;          // samples by their numbers
 *     opts.step = train;                  // trib_replica_train(replica, …)
 *     opts.finish = print_accuracy;
 *     trib_replicator_run(&opts);
 *
 * The replicas of a synchronous group share each batch and take the same step. Groups
 * share the steps, and meet in vectors that a tribd keeps (tributary/store.h):
 *
 *     one                          one replica
 *     threads:N                    N ranks, threads of this process
 *     workers[:threads=N]          the ranks of a launcher, or N threads in each
 *                                  process
 *     ps[:staleness=L]             each replica is a group of its own (asynchronous)
 *     hybrid[:groups=G,staleness=L] synchronous in each of G groups, 2 if not said
 *
 * All but one take devices=D: D ranks, one behind the other, are the devices of one
 * replica, and each has a part of the model. All take input= (see trib_input_t), and
 * all but ps and hybrid shares=S, which makes the result the same, bit for bit, for any
 * number of replicas (see trib_replica_train). Parameters of a kind are separated by
 * commas: "workers:threads=2,devices=2,shares=8". staleness is as
 * trib_store_set_staleness says.
 *
 * Library: -ltributary-train. Threads: a replica belongs to the thread that the
 * library calls the program's functions in, one thread for each rank of a process.
 */
#ifndef TRIBUTARY_REPLICATOR_H
#define TRIBUTARY_REPLICATOR_H

#include <tributary/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A replica, as one of its devices sees it. */
typedef struct trib_replica trib_replica_t;

/*
 * Samples to be made. A pipeline makes those of one replica (input=replica), of all
 * replicas of its process (input=worker), or of all there are (input=single); they then
 * travel to the replicas, and to all devices of a replica. A sample has the same number
 * whoever makes it: the b-th batch of a run has samples b * batch to
 * (b + 1) * batch - 1.
 */
typedef struct trib_input {
    uint64_t first; /* number of the first sample */
    size_t count; /* samples, one behind the other */
    size_t sample_bytes;
    int pipeline, pipelines; /* the number of this pipeline, and how many there are */
} trib_input_t;

/*
 * The program's functions. All return 0 for well; anything else ends the run on all
 * ranks, with the sentence of trib_replica_fail, if it was called.
 */

/* Fills in [input->count] samples. */
typedef int (*trib_input_fn)(trib_replica_t *replica, const trib_input_t *input,
                             void *samples);

/* One step, with trib_replica_batch samples of this replica. */
typedef int (*trib_step_fn)(trib_replica_t *replica, void *samples);

/* Called once, before all steps or behind them. */
typedef int (*trib_replica_fn)(trib_replica_t *replica);

/* The gradient of the mean loss of [count] samples at params, and that loss. */
typedef int (*trib_gradient_fn)(trib_replica_t *replica, const float *params,
                                const void *samples, size_t count, float *gradient,
                                double *loss_out);

/* What item `item` of a list becomes: [count] elements. */
typedef int (*trib_map_fn)(trib_replica_t *replica, size_t item, void *out);

/* A run, the same in all processes but for the functions, arg and comm. */
typedef struct trib_replicator_opts {
    size_t size; /* sizeof(trib_replicator_opts_t) */
    const char *kind; /* NULL: "workers" */
    size_t batch; /* samples of a step, of all replicas of a synchronous group; must
                   * divide by their number */
    size_t sample_bytes; /* at least 1 */
    uint64_t steps; /* of all groups; must divide by their number */
    size_t state_bytes; /* of trib_replica_state */
    trib_input_fn input;
    trib_step_fn step;
    trib_replica_fn start; /* NULL: none */
    trib_replica_fn finish; /* NULL: none. All trainers have settled before */
    void *arg; /* of trib_replica_arg */
    trib_comm_t *comm; /* NULL: that of trib_init(NULL). Its ranks are the processes. It
                        * may have failed after an error, and is then to be freed */
} trib_replicator_opts_t;

#define TRIB_REPLICATOR_OPTS_INIT \
    { \
        sizeof(trib_replicator_opts_t), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, \
            NULL, NULL \
    }

/**
 * trib_replicator_run - run a program's steps on all replicas of a kind.
 *
 * A function of the program that fails, or a failed call of the functions below, ends
 * the run on all ranks, whatever these wait for: they say which replica failed in which
 * step, and why. A process that is lost or stopped ends its synchronous group; other
 * groups go on without it, and end well.
 * thread   blocks; collective over all processes of the job
 * errors   trib_replicator_error has the sentence, on all ranks. TRIB_ERR_INVALID: an
 *          option, the text of the kind, a batch or a number of ranks that does not
 *          divide, a kind that does not fit the processes; nothing has run then.
 *          TRIB_ERR_MISMATCH: processes have different options, or replicas called
 *          collectives in different orders. TRIB_ERR_ABORTED: a function of the program
 *          has failed. TRIB_ERR_PEER_LOST; TRIB_ERR_TIMEOUT: with a bound of staleness
 *          the pushes of a lost replica have not come; what trib_init gives
 * paper    Buchlovsky et al., TF-Replicator: Distributed machine learning for
 *          researchers, 2019
 */
TRIB_API trib_status_t trib_replicator_run(const trib_replicator_opts_t *opts);

/**
 * trib_replicator_error - the sentence of this thread's last failed run.
 *
 * owner    the library; valid until the next run of this thread
 */
TRIB_API const char *trib_replicator_error(void);

/** trib_replica_id - the number of this replica, from 0, among all replicas. */
TRIB_API int trib_replica_id(const trib_replica_t *replica);

/** trib_replica_count - how many replicas there are, of all groups. */
TRIB_API int trib_replica_count(const trib_replica_t *replica);

/** trib_replica_in_sync - how many replicas the synchronous group of this one has. */
TRIB_API int trib_replica_in_sync(const trib_replica_t *replica);

/** trib_replica_device - the number of this device of the replica, from 0. */
TRIB_API int trib_replica_device(const trib_replica_t *replica);

/** trib_replica_devices - how many devices a replica has. */
TRIB_API int trib_replica_devices(const trib_replica_t *replica);

/** trib_replica_step - the number of this replica's step, from 0. */
TRIB_API uint64_t trib_replica_step(const trib_replica_t *replica);

/**
 * trib_replica_steps - how many steps this replica makes: those of a rate that ends.
 *
 * The groups of an asynchronous kind share the steps of the options.
 */
TRIB_API uint64_t trib_replica_steps(const trib_replica_t *replica);

/** trib_replica_batch - samples of a step of this replica. */
TRIB_API size_t trib_replica_batch(const trib_replica_t *replica);

/** trib_replica_arg - the options' arg, which replicas of one process share. */
TRIB_API void *trib_replica_arg(const trib_replica_t *replica);

/**
 * trib_replica_state - state_bytes of this replica's own, zero at first, aligned to 64.
 *
 * owner    the replica; valid until trib_replicator_run returns
 */
TRIB_API void *trib_replica_state(const trib_replica_t *replica);

/**
 * trib_replica_fail - say why a function of the program fails; returns -1.
 *
 *     return trib_replica_fail(replica, "label %d", label);
 *
 * format   of printf; the first sentence of a run counts, of which other ranks get some
 *          80 characters
 */
TRIB_API int trib_replica_fail(trib_replica_t *replica, const char *format, ...);

/**
 * trib_replica_comm - this device of all replicas of the synchronous group, by their
 * order.
 *
 * All collectives of tributary/coll.h are for it; the calls below are the usual ones.
 * owner    the replica
 */
TRIB_API trib_comm_t *trib_replica_comm(const trib_replica_t *replica);

/**
 * trib_replica_model - the devices of this replica, by their numbers.
 *
 * owner    the replica
 */
TRIB_API trib_comm_t *trib_replica_model(const trib_replica_t *replica);

/**
 * trib_replica_all_reduce - reduce a value over the synchronous group, as
 * trib_allreduce.
 *
 * All replicas of a group call collectives in the same order.
 * send     NULL: recv
 * errors   as trib_allreduce. A step function returns the status, and the run says why
 */
TRIB_API trib_status_t trib_replica_all_reduce(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype,
                                               trib_op_t op);

/**
 * trib_replica_all_gather - the values of all replicas of the group, by their order.
 *
 * recv     [count * trib_replica_in_sync]
 * errors   as trib_allgather
 */
TRIB_API trib_status_t trib_replica_all_gather(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype);

/**
 * trib_replica_broadcast - give the value of one replica of the group to all.
 *
 * source   from 0 to trib_replica_in_sync - 1
 * errors   as trib_broadcast
 */
TRIB_API trib_status_t trib_replica_broadcast(trib_replica_t *replica, void *value,
                                              size_t count, trib_dtype_t dtype,
                                              int source);

/**
 * trib_replica_map_gather - what each item of a list becomes, computed by all replicas
 * of the group together.
 *
 * Each replica maps a part of the items, one behind the other; all get all results. All
 * devices of a replica map the same items.
 * items    how many there are, the same on all replicas
 * result   [items * count], by the number of the item
 * errors   as trib_allgatherv; TRIB_ERR_ABORTED: map has failed; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_replica_map_gather(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype);

/**
 * trib_replica_map_reduce - the same, and the results of all items are reduced to one.
 *
 * They are reduced in the order of items, in double or int64_t: the result has the same
 * bits for any number of replicas.
 * result   [count]; zeros where items is 0
 * dtype    TRIB_F32, TRIB_F64 or TRIB_I64
 * op       TRIB_SUM, TRIB_MEAN, TRIB_MIN or TRIB_MAX. A mean of integers is rounded
 *          towards zero
 * errors   as trib_replica_map_gather; TRIB_ERR_UNSUPPORTED: another dtype or op
 */
TRIB_API trib_status_t trib_replica_map_reduce(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype, trib_op_t op);

/**
 * trib_replica_trainer - make a trainer of this replica's parameters (wrap_optimizer).
 *
 * It takes the mean of the replicas' gradients before the optimiser does its step; the
 * kinds ps and hybrid push it to a store in tribd. With several devices each has
 * a trainer of its own part. A replica may have several trainers, up to 8.
 * desc     as of trib_trainer_create. strategy: NULL, or, in kinds that do not go by a
 *          store, any. With shares=S no other than "sync", no codec or feedback, and
 *          feed WHOLE
 * owner    the replica; valid until trib_replicator_run returns, and settled before
 *          opts.finish
 * thread   collective over the replicas, of all groups
 * errors   as trib_trainer_create; TRIB_ERR_UNSUPPORTED: the kind cannot have the
 *          strategy, codec or feed; TRIB_ERR_NO_RESOURCE: more than 8 trainers
 */
TRIB_API trib_status_t trib_replica_trainer(trib_replica_t *replica,
                                            const trib_trainer_desc_t *desc,
                                            trib_trainer_t **trainer_out);

/**
 * trib_replica_train - a step of a trainer with the samples of the step: gradient, mean
 * over the replicas, optimiser.
 *
 * Without shares=S, gradient is called once, with all samples of this replica, and any
 * number of replicas comes to the same parameters but for rounding.
 *
 * With shares=S each batch is cut into S shares, of which each of n replicas has S / n,
 * one behind the other. gradient is called for each share, and what the S calls give is
 * added in the order of shares, in double, divided by S and rounded once. So the
 * parameters are the same, bit for bit, for any n that divides S, any kind, transport
 * and input, if gradient gives the same bits for the same params and samples, and the
 * rate is of the same text (its ranks=1 is of no effect). That takes S / n + 1
 * times the bytes of the plain sum in half, and memory for S / n + 2 gradients.
 * loss_out  the mean over this replica's samples; NULL: not wanted
 * errors   TRIB_ERR_ABORTED: gradient has failed; TRIB_ERR_INVALID: not in a step, or
 *          not a trainer of this replica; those of trib_trainer_begin and
 *          trib_trainer_end
 */
TRIB_API trib_status_t trib_replica_train(trib_replica_t *replica,
                                          trib_trainer_t *trainer,
                                          trib_gradient_fn gradient, double *loss_out);

/**
 * trib_replica_params - the parameters of a trainer as this replica has them now, also
 * between steps.
 *
 * For a step that reads what another trainer trains: desc.params need not have it
 * before the run has settled. In strategies that look ahead (pipe) it is where the last
 * step differentiated.
 * owner    the trainer; [count], valid until the next call of trib_replica_train for
 *          it. NULL: it is not a trainer of this replica
 */
TRIB_API const float *trib_replica_params(const trib_replica_t *replica,
                                          const trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif
