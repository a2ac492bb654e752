/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Training: a strategy, selected by a text, defines how gradients and parameters are
 * exchanged at each step. The same loop runs every strategy:
 *
 *     st = trib_trainer_create(comm, &desc, &trainer);
 *     for (size_t i = 0; i < steps && st == TRIB_OK; i++) {
 *         st = trib_trainer_begin(trainer, &step); // where to differentiate
 *         if (st == TRIB_OK)                       // sums, updates
 *             st = trib_trainer_end(trainer, my_gradient(step.params, step.gradient));
 *     }
 *     if (st == TRIB_OK)
 *         st = trib_trainer_settle(trainer, NULL); // params is the model
 *
 * The caller computes gradients. The trainer does the rest: it provides the parameters
 * at which to differentiate (sgp: x / w; a pipeline: those of an earlier step), and
 * decides when to communicate, with which data, and with which ranks.
 *
 * Part of a separate library (-ltributary-train), which uses only <tributary.h>.
 * Threads: as for the communicator.
 */
#ifndef TRIBUTARY_TRAIN_H
#define TRIBUTARY_TRAIN_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_trainer trib_trainer_t;

/* A part of the parameter vector that is encoded in one way, such as a layer. */
typedef struct trib_part {
    size_t size; /* sizeof(trib_part_t) */
    const char *name; /* unique; NULL: "part" and its number */
    size_t count; /* elements; consecutive parts cover the vector */
    int dims; /* dimensions, as trib_tensor_t.dims. The trainer's codec is not used for
               * parts of one dimension, such as biases, or with less than
               * TRIB_CODEC_ELEMENTS_MIN elements; 0: unknown */
    const char *codec; /* NULL: the trainer's; "none", "adacomp:bin=50", … */
    const char *feedback; /* feedback of that codec */
} trib_part_t;

#define TRIB_PART_INIT \
    { \
        sizeof(trib_part_t), NULL, 0, 0, NULL, NULL \
    }

/*
 * Optimizer of the caller: updates elements [first, first + count) of params with a
 * gradient that is final for them. Called once for each element and update, by the
 * thread that calls the trainer.
 */
typedef void (*trib_update_fn)(void *arg, float *params, const float *gradient,
                               size_t first, size_t count, double rate);

/* A trainer, the same on all ranks except for params and the callback. */
typedef struct trib_trainer_desc {
    size_t size; /* sizeof(trib_trainer_desc_t) */
    float *params; /* [count], owned by the caller; rank 0's are copied to all ranks */
    size_t count;
    const trib_part_t *parts; /* NULL, with n_parts 0: one part of all elements */
    size_t n_parts;
    const char *strategy; /* NULL: "sync". "pipe:width=2", "local:period=16+int8": the
                           * text after the first + is the codec */
    const char *optimizer; /* NULL: "sgd". "sgd:momentum=0.9,nesterov=1,decay=1e-4",
                            * "adam:beta1=0.9,beta2=0.999,eps=1e-8,decay=0" (decay as
                            * in AdamW). Applies to each rank's own steps */
    trib_update_fn update; /* replaces optimizer */
    void *update_arg;
    const char *rate; /* NULL: "0.01". "linear:rate=0.1,warmup=0.05,steps=4680" */
    const char *codec; /* for data that the strategy sends, as trib_desc_t.codec; NULL:
                        * from the strategy text, or none */
    const char *feedback; /* as trib_desc_t.feedback */
    trib_feed_t feed; /* the order in which trib_trainer_ready marks the gradient;
                       * WHOLE: it is not called */
    uint64_t seed; /* of random draws; 0: configured seed */
} trib_trainer_desc_t;

#define TRIB_TRAINER_DESC_INIT \
    { \
        sizeof(trib_trainer_desc_t), NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, TRIB_FEED_WHOLE, 0 \
    }

/* A step, filled by trib_trainer_begin. */
typedef struct trib_step {
    size_t size; /* sizeof(trib_step_t), set by the caller */
    uint64_t number; /* number of this rank's gradient, from 0 */
    const float *params; /* [count] differentiate here; valid until trib_trainer_end */
    float *gradient; /* [count] to fill, in memory that peers can access */
    double rate; /* learning rate of this step's update */
} trib_step_t;

#define TRIB_STEP_INIT \
    { \
        sizeof(trib_step_t), 0, NULL, NULL, 0 \
    }

/**
 * trib_trainer_create - create a trainer and copy rank 0's parameters to all ranks.
 *
 * Strategies (docs/training.md describes the data that each sends, and when):
 *     sync                          the mean of all gradients, then the optimizer
 *     pipe:width=2,predict=1        the sum overlaps with computing the next
 *                                   gradient; width=auto, or codecs separated by |:
 *                                   the first 16 steps are dense and measured, then
 *                                   the fastest width and codec are used
 *                                   (trib_trainer_estimate)
 *     local:period=16               steps of each rank alone, then the mean of their
 *                                   changes
 *     diloco:period=16,rate=0.7,momentum=0.5   the same, with an outer optimizer
 *     sgp:graph=exponential,peers=1 gossip of parameters by push-sum; osgp:tau=1: the
 *                                   same, with shares up to tau steps late
 *     agp                           the same without waiting: a share is sent to a rank
 *                                   that has room for it, and added when it arrives.
 *                                   Its messages in comm have the tag 2^30
 *     easgd:period=16,beta=0.9      elastic averaging with a common centre
 *     lsgd:period=4,groups=host     pulled to the leaders of the group and of all
 *     ps:staleness=4                gradients pushed to the parameter store in tribd
 *     downpour:period=4             changes of some steps pushed to that store
 *     hybrid:groups=2               groups sum among themselves, then push
 * Rates: a number, or constant, linear, cosine with rate=R, warmup= (below 1: a
 * fraction of the steps), steps=N, ranks=1 (R is multiplied by the number of ranks).
 *
 * owner    the caller frees *trainer_out with trib_trainer_free before trib_free_comm;
 *          params belongs to the trainer between trib_trainer_begin and settle: the
 *          caller reads step.params instead
 * thread   collective over comm
 * errors   TRIB_ERR_INVALID: a field or a text; TRIB_ERR_CODEC; TRIB_ERR_UNSUPPORTED:
 *          the strategy does not support this optimizer, feed or codec;
 *          TRIB_ERR_NO_MEMORY; errors of the plans. *trainer_out is then NULL, and
 *          trib_trainer_error(NULL) returns the message. An error on one rank is an
 *          error on all
 */
TRIB_API trib_status_t trib_trainer_create(trib_comm_t *comm,
                                           const trib_trainer_desc_t *desc,
                                           trib_trainer_t **trainer_out);

/**
 * trib_trainer_begin - begin a step.
 *
 * step     size is set by the caller
 * errors   TRIB_ERR_BUSY: a step has begun; the error with which the communicator
 *          failed
 */
TRIB_API trib_status_t trib_trainer_begin(trib_trainer_t *trainer, trib_step_t *step);

/**
 * trib_trainer_ready - mark elements [first, first + count) of the gradient as final.
 *
 * With desc.feed other than WHOLE, once for each element between begin and end, by the
 * caller's thread. A strategy that sends nothing in this step ignores the call.
 * errors   TRIB_ERR_INVALID: outside the vector, or feed is WHOLE
 */
TRIB_API trib_status_t trib_trainer_ready(trib_trainer_t *trainer, size_t first,
                                          size_t count);

/**
 * trib_trainer_end - end a step: communicate, and update the parameters.
 *
 * loss     of this rank's gradient; strategies that choose leaders compare it
 * errors   TRIB_ERR_INVALID: no step has begun; the error with which the communicator
 *          failed
 */
TRIB_API trib_status_t trib_trainer_end(trib_trainer_t *trainer, double loss);

/**
 * trib_trainer_settle - finish pending work and return the model in params.
 *
 * The model includes every step, even in the middle of a period. sync: the parameters;
 * pipe: the last gradients are applied; local, diloco and easgd: the centre, and if
 * steps followed the last round, the centre after one more round without a codec; sgp,
 * osgp and agp: messages are drained, and the model is the mean of all x, because the
 * weights add up to the number of ranks; lsgd: the mean of all ranks; ps and hybrid:
 * the vector in the store; downpour: that vector with the changes that were not pushed
 * yet. All ranks get the same bits. The run can continue as if settle had not been
 * called, except that messages have arrived earlier.
 * params_out [count]; NULL: desc.params
 * thread   collective
 * errors   TRIB_ERR_BUSY: a step has begun; the error with which the communicator
 *          failed
 */
TRIB_API trib_status_t trib_trainer_settle(trib_trainer_t *trainer, float *params_out);

/**
 * trib_trainer_save - save this rank's share of a checkpoint.
 *
 * The share contains parameters, the optimizer's state, codec state and the step
 * number. If all ranks load their shares, the run continues with exactly the same bits.
 * For ps, downpour and hybrid it continues from the same vector, because the order of
 * pushes is not saved.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * errors   TRIB_ERR_BUSY: work is pending, so settle first; TRIB_ERR_OVERFLOW: the
 *          buffer is too small
 */
TRIB_API trib_status_t trib_trainer_save(trib_trainer_t *trainer, void *state,
                                         size_t bytes, size_t *bytes_out);

/**
 * trib_trainer_load - continue from a state that trib_trainer_save returned.
 *
 * The state comes from a trainer of the same description on the same rank. ps, downpour
 * and hybrid write the vector back to the store, whose momentum and moments restart at
 * 0.
 * thread   for ps, downpour and hybrid collective; else the communicator's
 * errors   TRIB_ERR_BUSY; TRIB_ERR_INVALID, with the trainer unchanged: the bytes are
 *          damaged or belong to a different trainer; the message names the difference.
 *          If the call is collective, an error on one rank is an error on all
 */
TRIB_API trib_status_t trib_trainer_load(trib_trainer_t *trainer, const void *state,
                                         size_t bytes);

/**
 * trib_trainer_move - continue with another communicator after the ranks have changed.
 *
 * For communicators from trib_comm_shrink, trib_comm_grow or trib_split. Ranks with a
 * trainer call trib_trainer_move; newcomers call trib_trainer_create with the same
 * description, as at the start of a run. Together this is one collective call. Free the
 * old communicator afterwards.
 *
 *     // After TRIB_ERR_PEER_LOST or TRIB_ERR_ABORTED; then call trib_trainer_begin.
 *     static trib_status_t survive(trib_trainer_t *trainer, trib_comm_t **comm)
 *     {
 *         trib_comm_t *old = *comm, *smaller;
 *         trib_status_t st;
 *
 *         do {
 *             if ((st = trib_comm_shrink(*comm, &smaller)) != TRIB_OK)
 *                 return st; // trib_last_error(NULL) says why
 *             if (*comm != old)
 *                 trib_free_comm(*comm); // another rank was lost during the move
 *             *comm = smaller;
 *             st = trib_trainer_move(trainer, smaller);
 *         } while (st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED);
 *         if (st == TRIB_OK)
 *             trib_free_comm(old);
 *         return st;
 *     }
 *
 * Parameters, and all other data shared by all ranks, come from the lowest of the old
 * ranks that are furthest ahead. A rank's own state carries over, as residuals do by
 * trib_plan_state_move; newcomers start with the model, and with 0 for the rest. A step
 * that has begun is dropped, so the next call is trib_trainer_begin and not
 * trib_trainer_end. Its trib_step_t.number is the same on all ranks and may equal the
 * number of the failed step. The program's loop counts steps by that number, because
 * ranks may have been one step apart (docs/training.md has such a loop).
 *
 * An interrupted sum that no rank has received is undone if trib_opts_t.rewind is set
 * or no codec keeps state. Otherwise it is dropped, and data sent in it is lost. sgp,
 * osgp and agp rescale the weights so that they add up to the number of ranks
 * (lost_weight of trib_trainer_stats). ps, downpour and hybrid open the store again
 * with its contents; momentum and moments kept by the store restart at 0. The number of
 * groups is reduced if there are fewer ranks. trib_trainer_explain reports losses.
 *
 * Before trib_comm_grow call trib_trainer_settle if work may be pending.
 * comm     another communicator; the trainer uses it after TRIB_OK
 * thread   collective over comm; blocks
 * errors   as of trib_trainer_create, with the trainer unchanged: for example, comm has
 *          failed too, and the trainer can be moved to an even smaller one.
 *          TRIB_ERR_MISMATCH: the ranks' trainers differ
 */
TRIB_API trib_status_t trib_trainer_move(trib_trainer_t *trainer, trib_comm_t *comm);

/* Work of a trainer. The counters only grow. */
typedef struct trib_trainer_stats {
    size_t size; /* sizeof(trib_trainer_stats_t), set by the caller */
    uint64_t steps; /* gradients */
    uint64_t rounds; /* communications */
    uint64_t dense_bytes; /* bytes that a rank would send without a codec: 4 per element
                           * and round */
    uint64_t wire_bytes; /* bytes sent to other ranks and to a store */
    uint64_t compute_ns; /* between begin and end */
    uint64_t wait_ns; /* in the library, waiting for others */
    uint64_t update_ns; /* in the optimizer */
    uint64_t stale; /* pushes of others to a store between this rank's pulls and its
                     * following pushes; divided by rounds, its staleness */
    uint64_t moves; /* to other communicators */
    double weight; /* sgp, osgp and agp: w of this rank */
    double weight_under_way; /* weight of shares sent, minus weight of shares added.
                              * Over all ranks, weight and weight_under_way add up to
                              * the number of ranks */
    double lost_weight; /* weight that lost ranks had or that was in flight to them, in
                         * all moves */
} trib_trainer_stats_t;

/**
 * trib_trainer_stats - return the work done by a trainer.
 *
 * errors   TRIB_ERR_INVALID: stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_trainer_stats(trib_trainer_t *trainer,
                                          trib_trainer_stats_t *stats);

/**
 * trib_trainer_explain - describe a trainer: strategy, optimizer, rate, codecs.
 *
 * text     receives at most `bytes` bytes including the terminating zero
 * errors   TRIB_ERR_INVALID: no room
 */
TRIB_API trib_status_t trib_trainer_explain(const trib_trainer_t *trainer, char *text,
                                            size_t bytes);

/*
 * Estimated time of a step whose gradients are summed by one algorithm with one codec.
 * The step waits for each sum (width 1) or overlaps it with the next gradient (width
 * 2). Times are in seconds.
 */
typedef struct trib_estimate {
    size_t size; /* sizeof(trib_estimate_t), set by the caller */
    /* Input: */
    const char *algorithm; /* NULL: "direct"; "ring", "halving-doubling", "flat",
                            * "tree", or "server": one that waits for all ranks */
    const char *codec; /* label for ratio, agreements and busy; not read */
    int ranks;
    size_t count; /* elements of the gradient, in float32 */
    int width; /* 1 or 2 */
    double compute; /* time to compute a gradient */
    double update; /* time to update the parameters */
    double start; /* the caller's time to start a sum; with width 1 part of the sum */
    double latency; /* of a message */
    double rate; /* bytes per second of a rank's link, each way */
    double ratio; /* dense bytes divided by bytes sent */
    int agreements; /* exchanges before a sum: 1 if ranks agree on scales */
    double busy; /* CPU time of a sum: codec, additions, network stack */
    double load; /* other CPU time of a step, without accelerator time */
    double crowd; /* ranks that share a CPU; 1: none */
    double dense; /* time of a dense synchronous step; 0: estimated with busy = 0 */
    /* Output: */
    double wire; /* time of the bytes and messages of a sum */
    double step;
    double gain; /* dense / step */
    double cap; /* 1 + ratio: upper bound of the gain of any pipeline with this codec,
                 * for any times of computing and communicating */
} trib_estimate_t;

#define TRIB_ESTIMATE_INIT \
    { \
        sizeof(trib_estimate_t), NULL, NULL, 1, 0, 1, 0, 0, 0, 0, 1.25e8, 1, 0, 0, 0, \
            1, 0, 0, 0, 0, 0 \
    }

/**
 * trib_estimate_step - compute the outputs of the timing model.
 *
 * A sum takes hops * latency * (1 + agreements) + volume * 4 * count / ratio / rate,
 * with hops and volume of p ranks: direct 2 and 2 (p - 1) / p; ring 2 (p - 1) and
 * 2 (p - 1) / p; halving-doubling 2 log2 p and 2 (p - 1) / p; flat 1 and p - 1; tree
 * 2 log2 p and 2 log2 p; server 2 and 2 p. Width 1 takes compute + update + sum, and
 * width 2 the larger of compute + update + start and the sum. Ranks that share a CPU
 * (crowd) lengthen the sum as described in docs/training.md.
 * estimate the caller sets size and the inputs
 * thread   any
 * errors   TRIB_ERR_INVALID, with a message in trib_trainer_error(NULL)
 * paper    Li et al., Pipe-SGD, NeurIPS 2018
 */
TRIB_API trib_status_t trib_estimate_step(trib_estimate_t *estimate);

/**
 * trib_trainer_estimate - return an estimate that a trainer made from measurements.
 *
 * For strategy pipe with width=auto, or with several codecs (pipe+int8|qsgd:bits=4).
 * Row 0 is the dense synchronous step, the reference for gains; the other rows are each
 * codec with each width.
 * row      from 0
 * estimate size is set by the caller; texts are valid as long as the trainer
 * chosen_out 1: the trainer has chosen this row; may be NULL
 * errors   TRIB_ERR_UNSUPPORTED: the trainer makes no estimates; TRIB_ERR_BUSY: it is
 *          still measuring, in its first steps; TRIB_ERR_INVALID: no such row
 */
TRIB_API trib_status_t trib_trainer_estimate(trib_trainer_t *trainer, size_t row,
                                             trib_estimate_t *estimate,
                                             int *chosen_out);

/**
 * trib_trainer_error - return the message of the last failed call of a trainer.
 *
 * NULL: of this thread's last trib_trainer_create.
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_trainer_error(const trib_trainer_t *trainer);

/**
 * trib_trainer_free - free a trainer; NULL is allowed.
 *
 * Blocks until pending work is done.
 * errors   none
 */
TRIB_API trib_status_t trib_trainer_free(trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif
