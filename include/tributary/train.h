/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Training: a strategy, chosen by a text, says what becomes of gradients and parameters
 * at each step. The same loop runs every strategy:
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
 * The caller computes gradients, and the trainer does everything else: it says at which
 * parameters to differentiate (sgp: x / w; a pipeline: those of a step before),
 * when to communicate, what, and with whom.
 *
 * A library of its own (-ltributary-train), which uses nothing but <tributary.h>.
 * Threads: those of the communicator.
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
    size_t count; /* elements; parts follow one another and cover the vector */
    int dims; /* dimensions, as trib_tensor_t.dims: parts of one dimension, such as
               * biases, get no codec of the trainer's, nor do those of less than
               * TRIB_CODEC_ELEMENTS_MIN elements; 0: not said */
    const char *codec; /* NULL: the trainer's; "none", "adacomp:bin=50", … */
    const char *feedback; /* of that codec */
} trib_part_t;

#define TRIB_PART_INIT \
    { \
        sizeof(trib_part_t), NULL, 0, 0, NULL, NULL \
    }

/*
 * An optimiser of the caller's: moves elements [first, first + count) of params by a
 * gradient that is final for them. Called once for each element and update, by the
 * thread that calls the trainer.
 */
typedef void (*trib_update_fn)(void *arg, float *params, const float *gradient,
                               size_t first, size_t count, double rate);

/* A trainer, the same on all ranks but for params and the callback. */
typedef struct trib_trainer_desc {
    size_t size; /* sizeof(trib_trainer_desc_t) */
    float *params; /* [count], the caller's; rank 0's are those of all at first */
    size_t count;
    const trib_part_t *parts; /* NULL, with n_parts 0: one, of all elements */
    size_t n_parts;
    const char *strategy; /* NULL: "sync". "pipe:width=2", "local:period=16+int8": what
                           * stands behind the first + is the codec */
    const char *optimizer; /* NULL: "sgd". "sgd:momentum=0.9,nesterov=1,decay=1e-4",
                            * "adam:beta1=0.9,beta2=0.999,eps=1e-8,decay=0" (decay is
                            * AdamW's): of each rank's own steps */
    trib_update_fn update; /* instead of optimizer */
    void *update_arg;
    const char *rate; /* NULL: "0.01". "linear:rate=0.1,warmup=0.05,steps=4680" */
    const char *codec; /* of what the strategy sends, as trib_desc_t.codec; NULL: the
                        * strategy text's, or none */
    const char *feedback; /* as trib_desc_t.feedback */
    trib_feed_t feed; /* the order in which trib_trainer_ready marks the gradient;
                       * WHOLE: it is not called */
    uint64_t seed; /* of what is drawn at random; 0: the configuration's */
} trib_trainer_desc_t;

#define TRIB_TRAINER_DESC_INIT \
    { \
        sizeof(trib_trainer_desc_t), NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, TRIB_FEED_WHOLE, 0 \
    }

/* A step, as trib_trainer_begin tells it. */
typedef struct trib_step {
    size_t size; /* sizeof(trib_step_t), set by the caller */
    uint64_t number; /* of this rank's gradients, from 0 */
    const float *params; /* [count] differentiate here; valid until trib_trainer_end */
    float *gradient; /* [count] to be filled, in memory that peers reach */
    double rate; /* of this step's update */
} trib_step_t;

#define TRIB_STEP_INIT \
    { \
        sizeof(trib_step_t), 0, NULL, NULL, 0 \
    }

/**
 * trib_trainer_create - make a trainer; all ranks have rank 0's parameters behind it.
 *
 * Strategies (docs/training.md has what each sends, and when):
 *     sync                          the mean of all gradients, then the optimiser
 *     pipe:width=2,predict=1        the sum goes on while the next gradient is
 *                                   computed; width=auto, or codecs with | between
 *                                   them: 16 steps are dense and measured, then the
 *                                   fastest width and codec go on
 *                                   (trib_trainer_estimate)
 *     local:period=16               steps of each rank's own, then the mean of what
 *                                   they have changed
 *     diloco:period=16,rate=0.7,momentum=0.5   the same, with an outer optimiser
 *     sgp:graph=exponential,peers=1 gossip of parameters by push-sum; osgp:tau=1: the
 *                                   same, where shares may come tau steps late
 *     agp                           the same without waiting: a share is given where
 *                                   there is room for it, and added when it has come.
 *                                   Its messages in comm have the tag 2^30
 *     easgd:period=16,beta=0.9      elastic averaging with a common centre
 *     lsgd:period=4,groups=host     pulled to the leaders of the group and of all
 *     ps:staleness=4                gradients pushed to the parameter store in tribd
 *     downpour:period=4             the changes of some steps pushed there
 *     hybrid:groups=2               groups sum among themselves, then push
 * Rates: a number, or constant, linear, cosine with rate=R, warmup= (below 1: a share
 * of the steps), steps=N, ranks=1 (R is multiplied by the number of ranks).
 *
 * owner    the caller frees *trainer_out with trib_trainer_free before trib_free_comm;
 *          params belongs to the trainer between trib_trainer_begin and settle: the
 *          caller reads step.params instead
 * thread   collective over comm
 * errors   TRIB_ERR_INVALID: a field or a text; TRIB_ERR_CODEC; TRIB_ERR_UNSUPPORTED:
 *          the strategy cannot have this optimiser, feed or codec; TRIB_ERR_NO_MEMORY;
 *          those of the plans. *trainer_out is NULL then, and trib_trainer_error(NULL)
 *          has the sentence. An error on one rank is an error on all
 */
TRIB_API trib_status_t trib_trainer_create(trib_comm_t *comm,
                                           const trib_trainer_desc_t *desc,
                                           trib_trainer_t **trainer_out);

/**
 * trib_trainer_begin - begin a step.
 *
 * step     size is set by the caller
 * errors   TRIB_ERR_BUSY: a step has begun; what ended the communicator
 */
TRIB_API trib_status_t trib_trainer_begin(trib_trainer_t *trainer, trib_step_t *step);

/**
 * trib_trainer_ready - elements [first, first + count) of the gradient are final.
 *
 * With desc.feed other than WHOLE, each element once between begin and end, by the
 * caller's thread. A strategy that sends nothing in this step ignores it.
 * errors   TRIB_ERR_INVALID: outside of the vector, or feed is WHOLE
 */
TRIB_API trib_status_t trib_trainer_ready(trib_trainer_t *trainer, size_t first,
                                          size_t count);

/**
 * trib_trainer_end - end a step: communicate, and update the parameters.
 *
 * loss     of this rank's gradient; strategies that choose leaders compare it
 * errors   TRIB_ERR_INVALID: no step has begun; what ended the communicator
 */
TRIB_API trib_status_t trib_trainer_end(trib_trainer_t *trainer, double loss);

/**
 * trib_trainer_settle - finish what is under way; params is then the model to evaluate
 * or to keep.
 *
 * The model counts every step, wherever in a period the run is. sync: the parameters;
 * pipe: the last gradients are applied; local, diloco and easgd: the centre, and if
 * steps came after the last round, the centre after one more round without a codec;
 * sgp, osgp and agp: messages are drained, and it is the mean of all x, as the weights
 * add up to the number of ranks; lsgd: the mean of all ranks; ps and hybrid: the vector
 * in the store; downpour: that vector with the changes that were not pushed yet. The
 * same bits on all ranks. The run continues as if settle had not been called, but for
 * messages that have come earlier.
 * params_out [count]; NULL: desc.params
 * thread   collective
 * errors   TRIB_ERR_BUSY: a step has begun; what ended the communicator
 */
TRIB_API trib_status_t trib_trainer_settle(trib_trainer_t *trainer, float *params_out);

/**
 * trib_trainer_save - this rank's share of a checkpoint: parameters, the optimiser's
 * state, what codecs keep, the number of the step.
 *
 * Loaded by all ranks, the run goes on with the very bits that it would have had; of
 * ps, downpour and hybrid, whose order of pushes no state has, from the same vector.
 * state    receives *bytes_out bytes; NULL: only *bytes_out is wanted
 * errors   TRIB_ERR_BUSY: something is under way, so settle first; TRIB_ERR_OVERFLOW:
 *          too little room
 */
TRIB_API trib_status_t trib_trainer_save(trib_trainer_t *trainer, void *state,
                                         size_t bytes, size_t *bytes_out);

/**
 * trib_trainer_load - go on from what trib_trainer_save gave to a trainer of the same
 * description on the same rank.
 *
 * ps, downpour and hybrid put the vector back into the store, whose momentum and
 * moments begin at 0.
 * thread   of ps, downpour and hybrid collective; else the communicator's
 * errors   TRIB_ERR_BUSY; TRIB_ERR_INVALID, and nothing has changed: the bytes are
 *          damaged, or of another trainer: the sentence says in what
 */
TRIB_API trib_status_t trib_trainer_load(trib_trainer_t *trainer, const void *state,
                                         size_t bytes);

/**
 * trib_trainer_move - go on with another communicator: ranks have been lost, or come.
 *
 * For what trib_comm_shrink, trib_comm_grow or trib_split has made. Ranks that have a
 * trainer call trib_trainer_move, newcomers trib_trainer_create with the same
 * description, as if the run began: all of that together is one collective call. The
 * old communicator is freed behind it.
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
 *                 trib_free_comm(*comm); // another rank is lost meanwhile
 *             *comm = smaller;
 *             st = trib_trainer_move(trainer, smaller);
 *         } while (st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED);
 *         if (st == TRIB_OK)
 *             trib_free_comm(old);
 *         return st;
 *     }
 *
 * Parameters, and all else that is the same on all ranks, come from the lowest of the
 * old ranks that are furthest ahead. A rank's own state goes on as it is, as residuals
 * do by trib_plan_state_move; newcomers begin with the model, and with 0 for the rest.
 * A step that has begun is dropped, so the next call is trib_trainer_begin and not
 * trib_trainer_end. Its trib_step_t.number is the same on all ranks, and may be that of
 * the step that has failed: the loop counts steps by that number, as ranks may have
 * been a step apart (docs/training.md has such a loop).
 *
 * A sum that was cut short, and that no rank has got, is taken back if
 * trib_opts_t.rewind says so or no codec keeps anything, else dropped: what was sent in
 * it is lost. sgp, osgp and agp scale the weights: they add up to the ranks again
 * (lost_weight of trib_trainer_stats). ps, downpour and hybrid open the store anew,
 * with what was in it; momentum and moments that the store keeps begin at 0. Groups
 * become fewer where ranks are. trib_trainer_explain says what was lost.
 *
 * Before trib_comm_grow call trib_trainer_settle where something may be under way.
 * comm     another one; it is the trainer's behind TRIB_OK
 * thread   collective over comm; blocks
 * errors   as of trib_trainer_create, and the trainer is as it was: comm has failed in
 *          its turn, say, and the trainer is moved to one that is smaller again.
 *          TRIB_ERR_MISMATCH: the ranks' trainers differ
 */
TRIB_API trib_status_t trib_trainer_move(trib_trainer_t *trainer, trib_comm_t *comm);

/* Work of a trainer. The counters only grow. */
typedef struct trib_trainer_stats {
    size_t size; /* sizeof(trib_trainer_stats_t), set by the caller */
    uint64_t steps; /* gradients */
    uint64_t rounds; /* communications */
    uint64_t dense_bytes; /* that a rank would send without a codec: 4 an element and
                           * round */
    uint64_t wire_bytes; /* that it has sent, to other ranks and to a store */
    uint64_t compute_ns; /* between begin and end */
    uint64_t wait_ns; /* in the library, for others */
    uint64_t update_ns; /* in the optimiser */
    uint64_t stale; /* pushes of others to a store that came between this rank's pushes
                     * and what it had pulled before; divided by rounds, its
                     * staleness */
    uint64_t moves; /* to other communicators */
    double weight; /* of sgp, osgp and agp: w of this rank, and */
    double weight_under_way; /* that of shares which it has given away, less that of
                              * those which it has added. Over all ranks the sum of both
                              * is the number of ranks */
    double lost_weight; /* the same: what went with lost ranks, or was on its way to
                         * them, in all moves */
} trib_trainer_stats_t;

/**
 * trib_trainer_stats - the work of a trainer so far.
 *
 * errors   TRIB_ERR_INVALID: stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_trainer_stats(trib_trainer_t *trainer,
                                          trib_trainer_stats_t *stats);

/**
 * trib_trainer_explain - what the trainer does: strategy, optimiser, rate, codecs.
 *
 * text     receives at most `bytes` bytes with the final zero
 * errors   TRIB_ERR_INVALID: no room
 */
TRIB_API trib_status_t trib_trainer_explain(const trib_trainer_t *trainer, char *text,
                                            size_t bytes);

/*
 * What a step takes, of gradients that are summed by one algorithm, with one codec,
 * each waited for (width 1) or summed while the next one is computed (width 2). Times
 * are in seconds.
 */
typedef struct trib_estimate {
    size_t size; /* sizeof(trib_estimate_t), set by the caller */
    /* given: */
    const char *algorithm; /* NULL: "direct"; "ring", "halving-doubling", "flat",
                            * "tree", or "server": one that waits for all ranks */
    const char *codec; /* a name for what ratio, agreements and busy are of; not read */
    int ranks;
    size_t count; /* elements of the gradient, in float32 */
    int width; /* 1 or 2 */
    double compute; /* of a gradient */
    double update; /* of the parameters */
    double start; /* of the caller, to start a sum; of a sum that is waited for it is a
                   * part */
    double latency; /* of a message */
    double rate; /* bytes a second of a rank's link, each way */
    double ratio; /* dense bytes to those that are sent */
    int agreements; /* exchanges before a sum: 1 where ranks agree on scales */
    double busy; /* processor time of a sum: codec, additions, network stack */
    double load; /* other processor time of a step, beside what an accelerator does */
    double crowd; /* ranks that share a processor; 1: none does */
    double dense; /* a dense synchronous step; 0: as the rest says, with nothing busy */
    /* estimated: */
    double wire; /* time of the bytes and messages of a sum */
    double step;
    double gain; /* dense / step */
    double cap; /* 1 + ratio: no pipeline with this codec gains more, whatever the times
                 * of computing and communicating are to each other */
} trib_estimate_t;

#define TRIB_ESTIMATE_INIT \
    { \
        sizeof(trib_estimate_t), NULL, NULL, 1, 0, 1, 0, 0, 0, 0, 1.25e8, 1, 0, 0, 0, \
            1, 0, 0, 0, 0, 0 \
    }

/**
 * trib_estimate_step - the timing model: fill in what is estimated.
 *
 * A sum takes hops * latency * (1 + agreements) + volume * 4 * count / ratio / rate,
 * with hops and volume of p ranks: direct 2 and 2 (p - 1) / p; ring 2 (p - 1) and
 * 2 (p - 1) / p; halving-doubling 2 log2 p and 2 (p - 1) / p; flat 1 and p - 1; tree
 * 2 log2 p and 2 log2 p; server 2 and 2 p. Width 1 takes compute + update + sum, and
 * width 2 the larger of compute + update + start and the sum. Processors that ranks
 * share (crowd) lengthen the sum as docs/training.md says.
 * estimate size and what is given are set by the caller
 * thread   any
 * errors   TRIB_ERR_INVALID, with a sentence of trib_trainer_error(NULL)
 * paper    Li et al., Pipe-SGD, NeurIPS 2018
 */
TRIB_API trib_status_t trib_estimate_step(trib_estimate_t *estimate);

/**
 * trib_trainer_estimate - what a trainer estimated, from what it has measured itself.
 *
 * Of strategy pipe with width=auto, or with several codecs (pipe+int8|qsgd:bits=4). Row
 * 0 is the dense synchronous step, to which gains are relative; then each codec with
 * each width.
 * row      from 0
 * estimate size is set by the caller; texts are valid as long as the trainer
 * chosen_out 1: the trainer goes on with this row; may be NULL
 * errors   TRIB_ERR_UNSUPPORTED: the trainer estimates nothing; TRIB_ERR_BUSY: it still
 *          measures, in its first steps; TRIB_ERR_INVALID: there is no such row
 */
TRIB_API trib_status_t trib_trainer_estimate(trib_trainer_t *trainer, size_t row,
                                             trib_estimate_t *estimate,
                                             int *chosen_out);

/**
 * trib_trainer_error - the sentence of the last failed call of a trainer.
 *
 * NULL: of the last trib_trainer_create of this thread.
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_trainer_error(const trib_trainer_t *trainer);

/**
 * trib_trainer_free - free a trainer; NULL is allowed.
 *
 * What is under way is waited for.
 * errors   none
 */
TRIB_API trib_status_t trib_trainer_free(trib_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif
