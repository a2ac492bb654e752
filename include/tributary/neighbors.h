/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: in each step a rank sends weighted parts of its vector to some ranks and
 * adds the parts it receives; the graph may change in every step. This is push-sum, on
 * which stochastic gradient push (SGP) is based:
 *
 *     trib_plan_neighbors(comm, &desc, &plan);
 *     trib_plan_start_neighbors(plan, &graph, x, &weight);     // at every step
 *     trib_plan_wait(plan);
 *
 * A rank sends to each rank of `to` its share of x and of the weight, which starts at
 * 1, and keeps the rest; then it adds the parts from all ranks of `from`. Both sums, of
 * x and of the weights over all ranks, are therefore constant except for rounding.
 * Shares of float32 vectors are rounded to float32. x / weight converges to the mean of
 * all x. This also holds with desc.codec; the distance of x / weight from the mean then
 * depends on the codec's error for one part.
 *
 * A step waits only for neighbours, not for all ranks. Like messages, plans of
 * neighbours are not ordered with collectives.
 *
 * If desc.late is positive, a step waits for the parts of the step `late` steps earlier
 * instead of its own (OSGP). Parts travel while the caller computes, and each is added
 * as soon as it has arrived: at the beginning or end of a step. trib_plan_in_flight
 * counts the parts in flight, and trib_plan_start_drain adds all of them, for example
 * before x is saved or compared.
 */
#ifndef TRIBUTARY_NEIGHBORS_H
#define TRIBUTARY_NEIGHBORS_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_neighbors_desc {
    size_t size; /* sizeof(trib_neighbors_desc_t) */
    size_t count; /* elements; the same on all ranks */
    trib_dtype_t dtype; /* TRIB_F32 or TRIB_F64; the same on all ranks */
    const int *peers; /* [n_peers] all ranks that any graph on this rank names; copied;
                       * NULL: all ranks. Each peer uses about 512 KiB on either side,
                       * or 1 MiB with a transport based on writes */
    int n_peers;
    int late; /* steps by which a part may be added late and neighbours may be apart, at
               * most 1000. 0: none, and every run produces the same bits. Each late
               * step may need another copy of the step's parts */
    const char *codec; /* for parts of TRIB_F32, the same on all ranks; copied; NULL:
                        * none. Must round each element independently, or be unbiased.
                        * Its ef= has no effect: the error of a part stays with the
                        * sending rank */
} trib_neighbors_desc_t;

#define TRIB_NEIGHBORS_DESC_INIT \
    { \
        sizeof(trib_neighbors_desc_t), 0, TRIB_F32, NULL, 0, 0, NULL \
    }

/* Graph of one step on this rank. Each list contains a rank at most once, and never
 * this rank. If rank a lists b in `to`, rank b lists a in `from`. */
typedef struct trib_neighbors {
    size_t size; /* sizeof(trib_neighbors_t) */
    const int *to; /* [n_to] */
    const double *shares; /* [n_to] each above 0, with a sum of at most 1; this rank
                           * keeps the rest */
    size_t n_to;
    const int *from; /* [n_from] */
    size_t n_from;
} trib_neighbors_t;

#define TRIB_NEIGHBORS_INIT \
    { \
        sizeof(trib_neighbors_t), NULL, NULL, 0, NULL, 0 \
    }

/* Parts of one plan, as counted by this rank. Summed over all ranks, given - added is
 * the number of parts in flight, and weight + weight_given - weight_added is constant:
 * the initial sum of the weights. */
typedef struct trib_in_flight {
    size_t size; /* sizeof(trib_in_flight_t) */
    uint64_t steps; /* started so far, including drains */
    uint64_t given; /* parts that this rank has sent since the plan was created */
    uint64_t added; /* received parts that this rank has added */
    uint64_t unsent; /* parts of `given` not yet handed to the transport */
    uint64_t awaited; /* parts of the started steps that have not arrived */
    uint64_t arrived; /* parts of the started steps that have arrived, but are not added
                       * yet */
    double weight_given; /* sum of the weights of parts given */
    double weight_added; /* sum of the weights of parts added */
} trib_in_flight_t;

#define TRIB_IN_FLIGHT_INIT \
    { \
        sizeof(trib_in_flight_t), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * trib_plan_neighbors - create a plan of steps with neighbours.
 *
 * Connects to all peers without waiting for any. All ranks create their plans of
 * neighbours in the same order. These functions also apply: trib_plan_test,
 * trib_plan_wait, trib_plan_notify, trib_plan_fd, trib_plan_explain and trib_plan_free.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; after
 *          steps with late parts drain the plan first, else trib_plan_free returns
 *          TRIB_ERR_BUSY
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW: a field is out of range;
 *          TRIB_ERR_UNSUPPORTED: another dtype, or a codec that would not preserve the
 *          sum; TRIB_ERR_NO_MEMORY; errors of connecting
 * paper    Kempe et al., FOCS 2003; Assran et al., ICML 2019 (SGP, and OSGP, whose tau
 *          is desc.late)
 */
TRIB_API trib_status_t trib_plan_neighbors(trib_comm_t *comm,
                                           const trib_neighbors_desc_t *desc,
                                           trib_plan_t **plan_out);

/**
 * trib_plan_start_neighbors - start a step.
 *
 * Every rank starts every step, also a step without neighbours. Parts are added in rank
 * order. The step is done when all its parts have arrived and this rank's parts have
 * been handed to the transport; with desc.late this applies to the parts of the step
 * that many steps earlier. Once a step is done, the caller may use x and weight until
 * the next start, even if parts are in flight.
 * graph    copied
 * x        [count] this rank's vector; replaced by the vector of the next step
 * weight   this rank's weight, replaced in the same way; NULL: none
 * owner    x and weight belong to the library until the plan is done
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: the graph; TRIB_ERR_BUSY; TRIB_ERR_NO_MEMORY. Nothing was
 *          started. trib_plan_wait and trib_plan_test: TRIB_ERR_MISMATCH: two ranks
 *          disagree on an edge or on the vector; the message names both.
 *          TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_plan_start_neighbors(trib_plan_t *plan,
                                                 const trib_neighbors_t *graph, void *x,
                                                 double *weight);

/**
 * trib_plan_start_drain - start a step that adds all parts in flight.
 *
 * The step has no graph. Every rank starts it at the same place among its steps, and
 * trib_plan_wait waits for it. Afterwards no part is in flight, and the sums of x and
 * of the weights over all ranks have their initial values. Steps may follow. For a plan
 * without late parts the step does nothing.
 * x        [count] as in trib_plan_start_neighbors, and weight
 * owner    as trib_plan_start_neighbors
 * errors   as trib_plan_start_neighbors
 */
TRIB_API trib_status_t trib_plan_start_drain(trib_plan_t *plan, void *x,
                                             double *weight);

/**
 * trib_plan_in_flight - return the numbers of parts of a plan that are in flight.
 *
 * counts   size is set by the caller
 * thread   the communicator's; also while a step runs
 * errors   TRIB_ERR_INVALID: the plan is not of neighbours, or counts is NULL
 */
TRIB_API trib_status_t trib_plan_in_flight(trib_plan_t *plan, trib_in_flight_t *counts);

#ifdef __cplusplus
}
#endif

#endif
