/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coded computing: products and gradients that finish without the slowest ranks.
 *
 * A matrix lies in K partitions of equal size, one in each of the first K ranks. A
 * code, chosen by a text, says what the other ranks hold: sums of partitions, which
 * they fetch and add up by themselves. A product is done as soon as the answers of some
 * ranks suffice to decode it; ranks that are late, or die, are not waited for.
 *
 *     trib_coded_desc_t desc = TRIB_CODED_DESC_INIT;
 *     desc.code = "rlnc:row=half";                  // 12 partitions in 16 ranks
 *     desc.partition = rank < 12 ? mine : NULL;
 *     desc.rows = 1000, desc.columns = 785, desc.partitions = 12;
 *     trib_coded_create(comm, &desc, &coded);
 *     for (int step = 0; step < steps; step++)
 *         trib_coded_multiply(coded, x, z);         // rank 0 has z = X x
 *     trib_coded_free(coded);
 *
 * All ranks make the same calls. Rank 0 gives x and gets the result. Another rank's
 * call takes the order of rank 0 that has the number of the call, computes, and returns
 * when its answer is on its way; a rank that is late passes over the calls that rank 0
 * has finished without it. A rank that has been silent for timeout_ms, or stopped for
 * stop_timeout_ms, is lost, as is one that has died; rank 0 is silent while it makes no
 * call.
 *
 * Codes (docs/coded.md has what each costs, measured):
 *     none                     no further copies: all K partitions are waited for
 *     rlnc:row=half,tries=30   a further rank has a random sum of exactly half of the
 *                              partitions; the best of some draws. The default
 *     rlnc:density=0.5         a plain sum, of each partition with this probability;
 *                              drawn until any one rank may fail, at most tries times
 *     mds                      a further rank has a sum of all partitions: any K
 *                              answers suffice, and encoding moves twice as much
 *     gradient:spare=1         each rank has spare + 1 partitions, and sends one sum:
 *                              for gradients that are not linear. form=groups or cyclic
 *
 * A library of its own (-ltributary-train), which uses nothing but <tributary.h>.
 * Threads: those of the communicator.
 */
#ifndef TRIBUTARY_CODED_H
#define TRIBUTARY_CODED_H

#include <tributary/coll.h>
#include <tributary/elastic.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_coded trib_coded_t;

/* A coded matrix, the same on all ranks but for the partition. */
typedef struct trib_coded_desc {
    size_t size; /* sizeof(trib_coded_desc_t) */
    const char *code; /* NULL: "rlnc" */
    const float *partition; /* [rows * columns] of rank r < partitions: the rows
                             * r * rows and on of the matrix; not read on others */
    size_t rows, columns; /* of a partition; the caller pads the last one with 0 */
    int partitions; /* K, from 1 to the number of ranks */
    uint64_t seed; /* of what is drawn; the same seed gives the same code */
} trib_coded_desc_t;

#define TRIB_CODED_DESC_INIT \
    { \
        sizeof(trib_coded_desc_t), NULL, NULL, 0, 0, 0, 1 \
    }

/**
 * trib_coded_create - encode a matrix: each rank fetches what its row of the code says.
 *
 * Any rank computes all rows by itself, and asks the ranks that have the partitions for
 * them: nothing goes through a centre. Sums are kept in double, to compute with, and
 * over GF(2^8), to get the very bytes of a lost partition back.
 * desc     read in the call; the partition is read until trib_coded_free
 * owner    the caller frees *coded_out with trib_coded_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   TRIB_ERR_INVALID: a field, or the code's text; TRIB_ERR_MISMATCH: the ranks
 *          have different ones; TRIB_ERR_UNSUPPORTED: fewer ranks than partitions, or
 *          more than 256; TRIB_ERR_NO_MEMORY; those of trib_split and trib_recv.
 *          *coded_out is NULL then, and trib_coded_error(NULL) has the sentence. An
 *          error on one rank is an error on all
 * paper    "Train where the data is", arXiv 1910.10283; Lee et al., IEEE Trans. Inf.
 *          Theory 64, 2018; Tandon et al., ICML 2017 (gradient coding)
 */
TRIB_API trib_status_t trib_coded_create(trib_comm_t *comm,
                                         const trib_coded_desc_t *desc,
                                         trib_coded_t **coded_out);

/**
 * trib_coded_multiply - z = X x on rank 0, from the first answers that suffice.
 *
 * x        [columns] on rank 0; is copied. Elsewhere NULL
 * z        [partitions * rows] on rank 0. Elsewhere NULL
 * thread   the communicator's; every rank makes the call, and blocks for its own part
 *          of it
 * errors   TRIB_ERR_PEER_LOST: too many ranks are lost, and the sentence says how many
 *          more answers are needed; or rank 0 is. All ranks get it, those that are late
 *          in their next call: trib_comm_shrink, then trib_coded_move.
 *          TRIB_ERR_INVALID; TRIB_ERR_NO_MEMORY; TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_coded_multiply(trib_coded_t *coded, const float *x,
                                           float *z);

/*
 * A function of one partition, such as the gradient of its samples.
 * number   of the partition
 * partition [rows * columns]
 * in       [n_in] of trib_coded_gradient
 * out      [n_out] is all 0, and to be filled
 */
typedef void (*trib_coded_fn)(void *arg, int number, const float *partition,
                              const float *in, float *out);

/**
 * trib_coded_gradient - the sum of a function over all partitions, on rank 0, from the
 * first answers that suffice.
 *
 * For codes whose ranks have partitions as they are: gradient, and none. Of linear
 * models a code of sums gives the gradient by two products: trib_coded_fit.
 * fn, arg  the same function on all ranks; called once for each partition that this
 *          rank has, by the calling thread
 * in, n_in [n_in] on rank 0, at least 1; elsewhere NULL and 0
 * out, n_out [n_out] on rank 0; elsewhere NULL, and n_out as there
 * thread   as trib_coded_multiply
 * errors   as trib_coded_multiply; TRIB_ERR_UNSUPPORTED: the code has sums
 */
TRIB_API trib_status_t trib_coded_gradient(trib_coded_t *coded, trib_coded_fn fn,
                                           void *arg, const float *in, size_t n_in,
                                           float *out, size_t n_out);

/**
 * trib_coded_settle - let ranks that are late catch up.
 *
 * Before all ranks do something else together (trib_comm_grow, trib_allreduce): a rank
 * that is behind then passes over the calls that were finished without it, instead of
 * waiting for an order. Waits for nobody.
 * thread   the communicator's; every rank makes the call
 * errors   TRIB_ERR_INVALID: coded is NULL; what rank 0 has failed with
 */
TRIB_API trib_status_t trib_coded_settle(trib_coded_t *coded);

/**
 * trib_coded_move - go on in a communicator of fewer or more ranks.
 *
 * Collective over comm, which trib_comm_shrink or trib_comm_grow has made. Partitions
 * whose rank is lost come back, bit for bit, from the sums that are left, at newcomers
 * or at ranks that had a sum. Newcomers encode rows of their own; the other ranks keep
 * theirs, unless the rows that are left are too poor to bear the loss of any one rank.
 * With fewer ranks than partitions only the code gradient goes on.
 * coded    of this rank; *coded is NULL on a newcomer, and is made. The former
 *          communicator may be freed before or afterwards
 * owner    as of trib_coded_create
 * errors   as of trib_coded_create; TRIB_ERR_UNSUPPORTED, too: a partition is lost for
 *          good. *coded is as it was, may be moved again, and cannot multiply until
 *          then
 */
TRIB_API trib_status_t trib_coded_move(trib_comm_t *comm, trib_coded_t **coded);

/* Work of a coded matrix. */
typedef struct trib_coded_stats {
    size_t size; /* sizeof(trib_coded_stats_t), set by the caller */
    uint64_t fetched_bytes; /* partitions that came to this rank to encode its blocks */
    uint64_t repaired_bytes; /* blocks that came to get lost partitions back */
    uint64_t stored_bytes; /* that this rank keeps now, without its own partition */
    uint64_t products; /* and gradients that this rank has finished as rank 0 */
    uint64_t waited; /* ranks that had answered when they were done, rank 0 too, in
                      * all: waited / products - partitions is the price of the code */
    uint64_t decoded; /* of them, those in which a partition's answer was missing */
    uint64_t answered; /* of other ranks' products: answers of this rank */
    uint64_t late; /* answers that came too late; elsewhere: calls passed over */
    uint64_t lost; /* ranks that rank 0 does not reach any more */
} trib_coded_stats_t;

#define TRIB_CODED_STATS_INIT \
    { \
        sizeof(trib_coded_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * trib_coded_stats - the work of a coded matrix so far.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID: coded or stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_coded_stats(trib_coded_t *coded, trib_coded_stats_t *stats);

/**
 * trib_coded_explain - the code, what this rank has, and which losses the code bears.
 *
 * text     receives at most `bytes` bytes with the final zero
 * errors   TRIB_ERR_INVALID: no room; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_coded_explain(const trib_coded_t *coded, char *text,
                                          size_t bytes);

/**
 * trib_coded_error - the sentence of the last failed call.
 *
 * coded    NULL: of the last trib_coded_create, trib_coded_move of a newcomer, or
 *          trib_coded_fit of this thread
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_coded_error(const trib_coded_t *coded);

/**
 * trib_coded_free - free a coded matrix; NULL is allowed.
 *
 * Rank 0 does not wait for ranks that are late: their calls end.
 * errors   none today
 */
TRIB_API trib_status_t trib_coded_free(trib_coded_t *coded);

/* The state that a rank knows before a step of trib_coded_fit. */
typedef struct trib_coded_step {
    size_t size; /* sizeof(trib_coded_step_t) of the library */
    size_t step; /* its number, from 0 */
    const float *weights; /* [columns + 1] that it begins with; on a rank other than 0
                           * the newest that the rank knows */
    const float *gradient; /* [columns + 1] of the step before, decoded, without the
                            * decay of weights; NULL on other ranks, and at first */
    double loss; /* of the step before; NaN on other ranks, and at first */
} trib_coded_step_t;

/* Called by each rank before each of its steps; a rank that is late also calls it for
 * the steps that it passes over. */
typedef void (*trib_coded_step_fn)(void *arg, const trib_coded_step_t *step);

/* Called by a rank that has its order, before it computes its answer. work: of how many
 * partitions it goes through all samples: a code of sums has two answers a step, and
 * half of the work in each. */
typedef void (*trib_coded_work_fn)(void *arg, size_t step, double work);

/* A linear model of two classes, the same on all ranks but for the samples. */
typedef struct trib_coded_fit_desc {
    size_t size; /* sizeof(trib_coded_fit_desc_t) */
    const char *loss; /* NULL, "logistic": logistic regression; "hinge": a support
                       * vector machine */
    const char *code; /* as trib_coded_desc_t */
    const float *features; /* [rows * columns] of rank r < partitions; not read on
                            * others, as labels */
    const float *labels; /* [rows] above 0: the one class; below: the other; 0: no
                          * sample, but padding */
    size_t rows, columns;
    int partitions;
    uint64_t seed;
    size_t steps; /* of gradient descent on all samples */
    double rate; /* of a step */
    double decay; /* of the weights, without the bias */
    size_t meet; /* every so many steps lost ranks are left behind and newcomers taken
                  * in; 0: only when it must be */
    trib_listener_t *listener; /* this rank's, or NULL; needs meet */
    trib_coded_step_fn step; /* NULL: nothing is called */
    void *step_arg; /* of step and work */
    trib_coded_work_fn work; /* NULL: nothing is called */
} trib_coded_fit_desc_t;

#define TRIB_CODED_FIT_DESC_INIT \
    { \
        sizeof(trib_coded_fit_desc_t), NULL, NULL, NULL, NULL, 0, 0, 0, 1, 0, 0.1, 0, \
            0, NULL, NULL, NULL, NULL \
    }

/**
 * trib_coded_fit - train a linear model by gradient descent, with any ranks whose
 * answers suffice.
 *
 * Of codes of sums a step is two coded products: scores z = X w, and the gradient
 * X' r / n of what the loss makes of them, by a code of the columns. Of gradient and
 * none it is one trib_coded_gradient. Both equal the uncoded gradient but for rounding.
 *
 * Ranks may be lost, and come (desc->meet), during the run: weights are then those of
 * the rank that knows the newest. A rank that joins the job calls this function with
 * the communicator of trib_join; it takes everything from the others but rate, decay,
 * steps, meet, loss, which must be theirs.
 * comm     *comm is replaced when ranks leave or come; the former one is freed
 * weights  [columns + 1], the last is the bias: where to begin, of rank 0; receives the
 *          result on rank 0, and elsewhere the newest weights that this rank knows
 * stats    filled if not NULL; size is set by the caller. Both products count
 * thread   collective over *comm; blocks
 * errors   as trib_coded_create and trib_coded_multiply, those that no move can mend
 */
TRIB_API trib_status_t trib_coded_fit(trib_comm_t **comm,
                                      const trib_coded_fit_desc_t *desc, float *weights,
                                      trib_coded_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
