/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coded computing: products and gradients that finish without the slowest ranks.
 *
 * A matrix is divided into K partitions of equal size, one on each of the first K
 * ranks. A code, selected by a text, defines the sums of partitions that the other
 * ranks hold; they fetch the partitions and add them themselves. A product is done as
 * soon as the received answers suffice to decode it, without waiting for ranks that are
 * late or die.
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
 * All ranks make the same calls. Rank 0 provides x and gets the result. A call on
 * another rank receives rank 0's request with the same call number, computes, and
 * returns when its answer is being sent. A late rank skips calls that rank 0 has
 * finished without it. A rank is lost if it has died, was silent for timeout_ms, or was
 * stopped for stop_timeout_ms; rank 0 is silent between its calls.
 *
 * Codes (docs/coded.md gives the measured cost of each):
 *     none                     no redundancy: waits for all K partitions
 *     rlnc:row=half,tries=30   each further rank has a random sum of exactly half of
 *                              the partitions; the best of `tries` draws. The default
 *     rlnc:density=0.5         a plain sum of each partition with this probability;
 *                              redrawn until any one rank may be lost, at most `tries`
 *                              times
 *     mds                      each further rank has a sum of all partitions: any K
 *                              answers suffice, and encoding moves twice as much data
 *     gradient:spare=1         each rank has spare + 1 partitions and sends one sum:
 *                              for gradients that are not linear. form=groups or cyclic
 *
 * Part of a separate library (-ltributary-train), which uses only <tributary.h>.
 * Threads: as for the communicator.
 */
#ifndef TRIBUTARY_CODED_H
#define TRIBUTARY_CODED_H

#include <tributary/coll.h>
#include <tributary/elastic.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_coded trib_coded_t;

/* A coded matrix, the same on all ranks except for the partition. */
typedef struct trib_coded_desc {
    size_t size; /* sizeof(trib_coded_desc_t) */
    const char *code; /* NULL: "rlnc" */
    const float *partition; /* [rows * columns] of rank r < partitions: the matrix rows
                             * from r * rows on; ignored on other ranks */
    size_t rows, columns; /* size of a partition; the caller pads the last one with 0 */
    int partitions; /* K, from 1 to the number of ranks */
    uint64_t seed; /* of random draws; the same seed gives the same code */
} trib_coded_desc_t;

#define TRIB_CODED_DESC_INIT \
    { \
        sizeof(trib_coded_desc_t), NULL, NULL, 0, 0, 0, 1 \
    }

/**
 * trib_coded_create - encode a matrix over the ranks of a communicator.
 *
 * Each rank computes the whole code locally and fetches the partitions that its row
 * needs from the ranks that have them; no central rank is involved. Each rank keeps its
 * sum in double, for products, and over GF(2^8), to recover the exact bytes of a lost
 * partition.
 * desc     read during the call; the partition is read until trib_coded_free
 * owner    the caller frees *coded_out with trib_coded_free before trib_free_comm
 * thread   collective over comm; blocks
 * errors   TRIB_ERR_INVALID: a field, or the code's text; TRIB_ERR_MISMATCH: the ranks
 *          have different ones; TRIB_ERR_UNSUPPORTED: fewer ranks than partitions, or
 *          more than 256; TRIB_ERR_NO_MEMORY; as trib_split and trib_recv. *coded_out
 *          is then NULL, and trib_coded_error(NULL) returns the message. An error on
 *          one rank is an error on all
 * paper    "Train where the data is", arXiv 1910.10283; Lee et al., IEEE Trans. Inf.
 *          Theory 64, 2018; Tandon et al., ICML 2017 (gradient coding)
 */
TRIB_API trib_status_t trib_coded_create(trib_comm_t *comm,
                                         const trib_coded_desc_t *desc,
                                         trib_coded_t **coded_out);

/**
 * trib_coded_multiply - compute z = X x on rank 0 from the first sufficient answers.
 *
 * x        [columns] on rank 0; copied. NULL on other ranks
 * z        [partitions * rows] on rank 0. NULL on other ranks
 * thread   the communicator's; every rank makes the call, and blocks for its own part
 *          of the work
 * errors   TRIB_ERR_PEER_LOST: too many ranks are lost, and the message says how many
 *          more answers are needed; or rank 0 is lost. All ranks get this error, late
 *          ones in their next call: call trib_comm_shrink, then trib_coded_move.
 *          TRIB_ERR_INVALID; TRIB_ERR_NO_MEMORY; TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_coded_multiply(trib_coded_t *coded, const float *x,
                                           float *z);

/*
 * A function of one partition, such as the gradient of its samples.
 * number   number of the partition
 * partition [rows * columns]
 * in       [n_in] of trib_coded_gradient
 * out      [n_out] to fill; initially all 0
 */
typedef void (*trib_coded_fn)(void *arg, int number, const float *partition,
                              const float *in, float *out);

/**
 * trib_coded_gradient - sum a function over all partitions, on rank 0.
 *
 * The sum is decoded from the first sufficient answers. For the codes gradient and
 * none, whose ranks have the partitions themselves. With other codes, trib_coded_fit
 * computes the gradient of a linear model by two products.
 * fn, arg  the same function on all ranks; the calling thread calls it once for each
 *          partition of this rank
 * in, n_in [n_in] on rank 0, at least 1; elsewhere NULL and 0
 * out, n_out [n_out] on rank 0; elsewhere NULL, with the same n_out
 * thread   as trib_coded_multiply
 * errors   as trib_coded_multiply; TRIB_ERR_UNSUPPORTED: the code's ranks have sums
 */
TRIB_API trib_status_t trib_coded_gradient(trib_coded_t *coded, trib_coded_fn fn,
                                           void *arg, const float *in, size_t n_in,
                                           float *out, size_t n_out);

/**
 * trib_coded_settle - let late ranks catch up.
 *
 * Call it before all ranks do something else together (trib_comm_grow, trib_allreduce).
 * A late rank then skips the calls that were finished without it, instead of waiting
 * for a request. Waits for no other rank.
 * thread   the communicator's; every rank makes the call
 * errors   TRIB_ERR_INVALID: coded is NULL; the error with which rank 0 has failed
 */
TRIB_API trib_status_t trib_coded_settle(trib_coded_t *coded);

/**
 * trib_coded_move - continue in a communicator of fewer or more ranks.
 *
 * comm comes from trib_comm_shrink or trib_comm_grow. Partitions of lost ranks are
 * recovered bit for bit from the remaining sums, on newcomers or on ranks that had a
 * sum. Newcomers encode new rows of the code. The other ranks keep theirs, unless the
 * remaining rows could not tolerate the loss of any one rank. With fewer ranks than
 * partitions only the code gradient can continue.
 * coded    of this rank; *coded is NULL on a newcomer, and is created. The former
 *          communicator may be freed before or afterwards
 * owner    as trib_coded_create
 * thread   collective over comm
 * errors   as trib_coded_create; also TRIB_ERR_UNSUPPORTED: a partition is lost for
 *          good. *coded is then unchanged and may be moved again, but cannot multiply
 *          until then
 */
TRIB_API trib_status_t trib_coded_move(trib_comm_t *comm, trib_coded_t **coded);

/* Work of a coded matrix. */
typedef struct trib_coded_stats {
    size_t size; /* sizeof(trib_coded_stats_t), set by the caller */
    uint64_t fetched_bytes; /* partitions received to encode this rank's blocks */
    uint64_t repaired_bytes; /* blocks received to recover lost partitions */
    uint64_t stored_bytes; /* kept by this rank now, without its own partition */
    uint64_t products; /* products and gradients that this rank finished as rank 0 */
    uint64_t waited; /* total of ranks, including rank 0, whose answers the products
                      * used: waited / products - partitions is the cost of the code */
    uint64_t decoded; /* products that lacked the answer of a partition's rank */
    uint64_t answered; /* answers of this rank to products of other ranks */
    uint64_t late; /* on rank 0 answers that came too late; elsewhere skipped calls */
    uint64_t lost; /* ranks that rank 0 can no longer reach */
} trib_coded_stats_t;

#define TRIB_CODED_STATS_INIT \
    { \
        sizeof(trib_coded_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * trib_coded_stats - return the work done for a coded matrix.
 *
 * stats    size is set by the caller
 * errors   TRIB_ERR_INVALID: coded or stats is NULL, or its size is wrong
 */
TRIB_API trib_status_t trib_coded_stats(trib_coded_t *coded, trib_coded_stats_t *stats);

/**
 * trib_coded_explain - describe the code, this rank's data and the tolerated losses.
 *
 * text     receives at most `bytes` bytes including the terminating zero
 * errors   TRIB_ERR_INVALID: no room; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_coded_explain(const trib_coded_t *coded, char *text,
                                          size_t bytes);

/**
 * trib_coded_error - return the message of the last failed call.
 *
 * coded    NULL: of this thread's last trib_coded_create, trib_coded_move of a
 *          newcomer, or trib_coded_fit
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_coded_error(const trib_coded_t *coded);

/**
 * trib_coded_free - free a coded matrix; NULL is allowed.
 *
 * Rank 0 does not wait for late ranks; their calls end.
 * errors   none
 */
TRIB_API trib_status_t trib_coded_free(trib_coded_t *coded);

/* State that a rank knows before a step of trib_coded_fit. */
typedef struct trib_coded_step {
    size_t size; /* sizeof(trib_coded_step_t) of the library */
    size_t step; /* number of the step, from 0 */
    const float *weights; /* [columns + 1] at the start of the step; on ranks other than
                           * 0 the newest weights that the rank has */
    const float *gradient; /* [columns + 1] of the previous step, decoded, without
                            * weight decay; NULL on other ranks and in the first step */
    double loss; /* of the previous step; NaN on other ranks and in the first step */
} trib_coded_step_t;

/* Called by each rank before each of its steps; a late rank also calls it for the steps
 * that it skips. */
typedef void (*trib_coded_step_fn)(void *arg, const trib_coded_step_t *step);

/* Called by a rank that has received a request, before it computes its answer. work: 1
 * for a full pass over the samples of one partition. With a code of sums a step has two
 * answers, each with half of the work. */
typedef void (*trib_coded_work_fn)(void *arg, size_t step, double work);

/* A linear model of two classes, the same on all ranks except for the samples. */
typedef struct trib_coded_fit_desc {
    size_t size; /* sizeof(trib_coded_fit_desc_t) */
    const char *loss; /* NULL, "logistic": logistic regression; "hinge": a support
                       * vector machine */
    const char *code; /* as trib_coded_desc_t */
    const float *features; /* [rows * columns] of rank r < partitions; ignored, like
                            * labels, on other ranks */
    const float *labels; /* [rows] above 0: one class; below 0: the other; 0: padding
                          * instead of a sample */
    size_t rows, columns;
    int partitions;
    uint64_t seed;
    size_t steps; /* of gradient descent on all samples */
    double rate; /* learning rate */
    double decay; /* of the weights, without the bias */
    size_t meet; /* interval in steps at which lost ranks are dropped and newcomers
                  * admitted; 0: only if a loss makes it necessary */
    trib_listener_t *listener; /* this rank's, or NULL; requires meet */
    trib_coded_step_fn step; /* NULL: none */
    void *step_arg; /* of step and work */
    trib_coded_work_fn work; /* NULL: none */
} trib_coded_fit_desc_t;

#define TRIB_CODED_FIT_DESC_INIT \
    { \
        sizeof(trib_coded_fit_desc_t), NULL, NULL, NULL, NULL, 0, 0, 0, 1, 0, 0.1, 0, \
            0, NULL, NULL, NULL, NULL \
    }

/**
 * trib_coded_fit - train a linear model by gradient descent on coded data.
 *
 * Each step needs only the first sufficient answers. With a code of sums a step is two
 * coded products: the scores z = X w, and the gradient X' r / n with the residuals r of
 * the loss, by a code of the columns. With the codes gradient and none a step is one
 * trib_coded_gradient. Both equal the uncoded gradient except for rounding.
 *
 * Ranks may be lost and may join (desc->meet) during the run; it then continues with
 * the newest weights that any rank has. A rank that joins the job calls this function
 * with the communicator of trib_join. It gets everything from the others except rate,
 * decay, steps, meet and loss, which must equal theirs.
 * comm     *comm is replaced when ranks are lost or join; the former one is freed
 * weights  [columns + 1], the last is the bias: rank 0's are the initial weights. On
 *          return the result on rank 0, and elsewhere the newest weights of this rank
 * stats    filled if not NULL; size is set by the caller. Both products count
 * thread   collective over *comm; blocks
 * errors   as trib_coded_create and trib_coded_multiply, unless a move recovers
 */
TRIB_API trib_status_t trib_coded_fit(trib_comm_t **comm,
                                      const trib_coded_fit_desc_t *desc, float *weights,
                                      trib_coded_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
