/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replicas: a program written for one machine runs unchanged on threads or on many
 * processes, synchronously or asynchronously. The program defines the work of one
 * replica on its part of a batch; a text, the kind, defines where replicas run and how
 * they cooperate:
 *
 *     opts.kind = "workers";              // or "threads:4", "ps:staleness=2", …
 *     opts.batch = 128; opts.sample_bytes = sizeof(struct sample); opts.steps = 1000;
 *     opts.start = make_model;            // parameters, trib_replica_trainer
 *     opts.input = read_samples;          // samples by their numbers
 *     opts.step = train;                  // trib_replica_train(replica, …)
 *     opts.finish = print_accuracy;
 *     trib_replicator_run(&opts);
 *
 * The replicas of a synchronous group share each batch and do the same step. Groups
 * divide the steps among themselves and exchange parameters through vectors in tribd
 * (tributary/store.h):
 *
 *     one                          one replica
 *     threads:N                    N ranks, threads of this process
 *     workers[:threads=N]          the ranks of a launcher, or N threads in each
 *                                  process
 *     ps[:staleness=L]             each replica is its own group (asynchronous)
 *     hybrid[:groups=G,staleness=L] synchronous within each of G groups, 2 by default
 *
 * All kinds except one accept devices=D: D consecutive ranks are the devices of one
 * replica, each with a part of the model. All accept input= (see trib_input_t), and all
 * except ps and hybrid accept shares=S, which makes the result the same, bit for bit,
 * for any number of replicas (see trib_replica_train). Separate parameters of a kind by
 * commas: "workers:threads=2,devices=2,shares=8". For staleness see
 * trib_store_set_staleness.
 *
 * Library: -ltributary-train. Threads: a replica belongs to the thread on which the
 * library calls the program's functions, one thread for each rank of a process.
 */
#ifndef TRIBUTARY_REPLICATOR_H
#define TRIBUTARY_REPLICATOR_H

#include <tributary/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A replica, seen from one of its devices. */
typedef struct trib_replica trib_replica_t;

/*
 * A request for samples. A pipeline makes the samples of one replica (input=replica),
 * of all replicas of its process (input=worker), or of all replicas (input=single); the
 * library then sends them to the replicas and to all devices of a replica. The number
 * of a sample does not depend on the pipeline: batch b of a run has the samples
 * b * batch to (b + 1) * batch - 1.
 */
typedef struct trib_input {
    uint64_t first; /* number of the first sample */
    size_t count; /* number of consecutive samples */
    size_t sample_bytes;
    int pipeline, pipelines; /* number of this pipeline, and total of pipelines */
} trib_input_t;

/*
 * Functions of the program. All return 0 on success. Any other value ends the run on
 * all ranks, with the message of trib_replica_fail, if it was called.
 */

/* Fills [input->count] samples. */
typedef int (*trib_input_fn)(trib_replica_t *replica, const trib_input_t *input,
                             void *samples);

/* One step, with trib_replica_batch samples of this replica. */
typedef int (*trib_step_fn)(trib_replica_t *replica, void *samples);

/* Called once, before or after all steps. */
typedef int (*trib_replica_fn)(trib_replica_t *replica);

/* Computes the mean loss of [count] samples at params, and its gradient. */
typedef int (*trib_gradient_fn)(trib_replica_t *replica, const float *params,
                                const void *samples, size_t count, float *gradient,
                                double *loss_out);

/* Computes the result of item `item` of a list: [count] elements. */
typedef int (*trib_map_fn)(trib_replica_t *replica, size_t item, void *out);

/* A run, the same in all processes except for the functions, arg and comm. */
typedef struct trib_replicator_opts {
    size_t size; /* sizeof(trib_replicator_opts_t) */
    const char *kind; /* NULL: "workers" */
    size_t batch; /* samples of a step over all replicas of a synchronous group; a
                   * multiple of their number */
    size_t sample_bytes; /* at least 1 */
    uint64_t steps; /* of all groups; a multiple of their number */
    size_t state_bytes; /* size of trib_replica_state */
    trib_input_fn input;
    trib_step_fn step;
    trib_replica_fn start; /* NULL: none */
    trib_replica_fn finish; /* NULL: none. Called after trib_trainer_settle of all
                             * trainers */
    void *arg; /* returned by trib_replica_arg */
    trib_comm_t *comm; /* NULL: from trib_init(NULL). Its ranks are the processes. After
                        * an error it may have failed; free it then */
} trib_replicator_opts_t;

#define TRIB_REPLICATOR_OPTS_INIT \
    { \
        sizeof(trib_replicator_opts_t), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, \
            NULL, NULL \
    }

/**
 * trib_replicator_run - run a program's steps on all replicas of a kind.
 *
 * If a function of the program or one of the calls below fails, the run ends on all
 * ranks, whatever they wait for. The message names the failed replica, its step and the
 * reason. A process that is lost or stopped ends its synchronous group; other groups
 * continue without it and finish normally.
 * thread   blocks; collective over all processes of the job
 * errors   trib_replicator_error returns the message, on all ranks. TRIB_ERR_INVALID:
 *          an option, the text of the kind, a batch or number of ranks that does not
 *          divide, or a kind that does not fit the processes; nothing has run.
 *          TRIB_ERR_MISMATCH: processes have different options, or replicas called
 *          collectives in different orders. TRIB_ERR_ABORTED: a function of the program
 *          has failed. TRIB_ERR_PEER_LOST; TRIB_ERR_TIMEOUT: with bounded staleness,
 *          pushes of a lost replica are missing; as trib_init
 * paper    Buchlovsky et al., TF-Replicator: Distributed machine learning for
 *          researchers, 2019
 */
TRIB_API trib_status_t trib_replicator_run(const trib_replicator_opts_t *opts);

/**
 * trib_replicator_error - return the message of this thread's last failed run.
 *
 * owner    the library; valid until the next run of this thread
 */
TRIB_API const char *trib_replicator_error(void);

/** trib_replica_id - return the number of this replica, from 0, among all replicas. */
TRIB_API int trib_replica_id(const trib_replica_t *replica);

/** trib_replica_count - return the number of replicas of all groups. */
TRIB_API int trib_replica_count(const trib_replica_t *replica);

/** trib_replica_in_sync - return the number of replicas in this synchronous group. */
TRIB_API int trib_replica_in_sync(const trib_replica_t *replica);

/** trib_replica_device - return the number of this device of the replica, from 0. */
TRIB_API int trib_replica_device(const trib_replica_t *replica);

/** trib_replica_devices - return the number of devices of a replica. */
TRIB_API int trib_replica_devices(const trib_replica_t *replica);

/** trib_replica_step - return the number of this replica's step, from 0. */
TRIB_API uint64_t trib_replica_step(const trib_replica_t *replica);

/**
 * trib_replica_steps - return the total number of steps of this replica.
 *
 * Use it as the number of steps of a rate that ends. The groups of an asynchronous kind
 * divide the steps of the options among themselves.
 */
TRIB_API uint64_t trib_replica_steps(const trib_replica_t *replica);

/** trib_replica_batch - return the number of samples of a step of this replica. */
TRIB_API size_t trib_replica_batch(const trib_replica_t *replica);

/** trib_replica_arg - return the options' arg, shared by the replicas of a process. */
TRIB_API void *trib_replica_arg(const trib_replica_t *replica);

/**
 * trib_replica_state - return this replica's private memory of state_bytes.
 *
 * The memory is initially zero and aligned to 64.
 * owner    the replica; valid until trib_replicator_run returns
 */
TRIB_API void *trib_replica_state(const trib_replica_t *replica);

/**
 * trib_replica_fail - set the reason why a function of the program fails; returns -1.
 *
 *     return trib_replica_fail(replica, "label %d", label);
 *
 * format   as printf; the first message of a run counts, and other ranks get about 80
 *          characters of it
 */
TRIB_API int trib_replica_fail(trib_replica_t *replica, const char *format, ...);

/**
 * trib_replica_comm - return the communicator of the synchronous group.
 *
 * Its ranks are this device of all replicas of the group, in order. All collectives of
 * tributary/coll.h work on it; the functions below cover the usual ones.
 * owner    the replica
 */
TRIB_API trib_comm_t *trib_replica_comm(const trib_replica_t *replica);

/**
 * trib_replica_model - return the communicator of the devices of this replica.
 *
 * owner    the replica
 */
TRIB_API trib_comm_t *trib_replica_model(const trib_replica_t *replica);

/**
 * trib_replica_all_reduce - reduce a value over the synchronous group.
 *
 * Works as trib_allreduce. All replicas of a group call collectives in the same order.
 * send     NULL: recv
 * errors   as trib_allreduce. If a step function returns the status, the run reports
 *          the reason
 */
TRIB_API trib_status_t trib_replica_all_reduce(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype,
                                               trib_op_t op);

/**
 * trib_replica_all_gather - gather the values of all replicas of the group, in order.
 *
 * recv     [count * trib_replica_in_sync]
 * errors   as trib_allgather
 */
TRIB_API trib_status_t trib_replica_all_gather(trib_replica_t *replica,
                                               const void *send, void *recv,
                                               size_t count, trib_dtype_t dtype);

/**
 * trib_replica_broadcast - broadcast the value of one replica of the group to all.
 *
 * source   from 0 to trib_replica_in_sync - 1
 * errors   as trib_broadcast
 */
TRIB_API trib_status_t trib_replica_broadcast(trib_replica_t *replica, void *value,
                                              size_t count, trib_dtype_t dtype,
                                              int source);

/**
 * trib_replica_map_gather - map the items of a list on all replicas of the group.
 *
 * Each replica maps a contiguous part of the items; all replicas get all results. All
 * devices of a replica map the same items.
 * items    number of items, the same on all replicas
 * result   [items * count], by item number
 * errors   as trib_allgatherv; TRIB_ERR_ABORTED: map has failed; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_replica_map_gather(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype);

/**
 * trib_replica_map_reduce - map the items of a list and reduce the results to one.
 *
 * Works as trib_replica_map_gather. Results are reduced in item order, in double or
 * int64_t, so the result has the same bits for any number of replicas.
 * result   [count]; zeros if items is 0
 * dtype    TRIB_F32, TRIB_F64 or TRIB_I64
 * op       TRIB_SUM, TRIB_MEAN, TRIB_MIN or TRIB_MAX. A mean of integers is rounded
 *          towards zero
 * errors   as trib_replica_map_gather; TRIB_ERR_UNSUPPORTED: another dtype or op
 */
TRIB_API trib_status_t trib_replica_map_reduce(trib_replica_t *replica, trib_map_fn map,
                                               size_t items, void *result, size_t count,
                                               trib_dtype_t dtype, trib_op_t op);

/**
 * trib_replica_trainer - create a trainer of this replica's parameters.
 *
 * The counterpart of TF-Replicator's wrap_optimizer. The trainer averages the replicas'
 * gradients before the optimizer's step; the kinds ps and hybrid push the mean to a
 * store in tribd. With several devices each has a trainer for its own part. A replica
 * may have up to 8 trainers.
 * desc     as of trib_trainer_create. strategy: NULL, or any strategy for kinds that do
 *          not use a store. With shares=S only "sync", no codec or feedback, and feed
 *          WHOLE
 * owner    the replica; valid until trib_replicator_run returns, and settled before
 *          opts.finish
 * thread   collective over the replicas, of all groups
 * errors   as trib_trainer_create; TRIB_ERR_UNSUPPORTED: the kind does not support the
 *          strategy, codec or feed; TRIB_ERR_NO_RESOURCE: more than 8 trainers
 */
TRIB_API trib_status_t trib_replica_trainer(trib_replica_t *replica,
                                            const trib_trainer_desc_t *desc,
                                            trib_trainer_t **trainer_out);

/**
 * trib_replica_train - run one training step on the samples of the step.
 *
 * Computes the gradient, averages it over the replicas and updates the parameters.
 * Without shares=S, gradient is called once, with all samples of this replica, and any
 * number of replicas computes the same parameters except for rounding.
 *
 * With shares=S each batch is divided into S shares, and each of n replicas gets S / n
 * consecutive shares. gradient is called for each share. The results of the S calls are
 * added in the order of shares, in double, divided by S and rounded once. The
 * parameters are therefore the same, bit for bit, for any n that divides S, and for any
 * kind, transport and input. This requires that gradient returns the same bits for the
 * same params and samples, and that the rate has the same text (its ranks=1 has no
 * effect). Each replica sends (S / n + 1) / 2 times the bytes of a plain sum, and needs
 * memory for S / n + 2 gradients.
 * loss_out  the mean over this replica's samples; NULL: not wanted
 * errors   TRIB_ERR_ABORTED: gradient has failed; TRIB_ERR_INVALID: not in a step, or
 *          not a trainer of this replica; as trib_trainer_begin and trib_trainer_end
 */
TRIB_API trib_status_t trib_replica_train(trib_replica_t *replica,
                                          trib_trainer_t *trainer,
                                          trib_gradient_fn gradient, double *loss_out);

/**
 * trib_replica_params - return the current parameters of a trainer on this replica.
 *
 * Valid also between steps, for a step that reads the parameters of another trainer;
 * desc.params may not contain them before the end of the run. In strategies that look
 * ahead (pipe) these are the parameters at which the last gradient was computed.
 * owner    the trainer; [count], valid until the next call of trib_replica_train for
 *          it. NULL: not a trainer of this replica
 */
TRIB_API const float *trib_replica_params(const trib_replica_t *replica,
                                          const trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif
