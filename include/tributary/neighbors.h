/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: a rank gives weighted parts of its vector to some ranks and adds what
 * comes from others, over another graph at each step, if it likes. This is push-sum, of
 * which gossip (SGP) is made:
 *
 *     trib_plan_neighbors(comm, &desc, &plan);
 *     trib_plan_start_neighbors(plan, &graph, x, &weight);     // at every step
 *     trib_plan_wait(plan);
 *
 * The rank sends each rank of `to` the share of x and of its weight, 1 at first, that
 * belongs to it, and keeps the rest; then it adds the parts of all ranks of `from`. So
 * nothing is lost and nothing made: the sums of x and of the weights over all ranks
 * stay what they were, but for rounding. Shares of float32 are rounded to it. x /
 * weight tends to the mean of all x. That holds with desc.codec, too: x / weight is
 * then as far from the mean as the codec's loss of one part is large.
 *
 * A step waits for neighbours alone, and not for all ranks. Plans of neighbours have no
 * place in the order of collectives, as messages have none.
 *
 * With desc.late above 0 a step does not wait for its own parts, but for those of the
 * step `late` steps before it (OSGP). Parts go on their way while the caller computes,
 * and each is added as soon as it is there: when a step begins, or when it ends. What
 * is in flight is counted (trib_plan_in_flight), and trib_plan_start_drain adds all of
 * it, before x is saved or compared.
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
    const int *peers; /* [n_peers] the ranks that any graph names here; copied; NULL:
                       * all ranks. Each takes about 512 KiB on either side, 1 MiB where
                       * it is reached by writes */
    int n_peers;
    int late; /* steps by which a part may be added late, and neighbours be apart; 1000
               * at most. 0: none, and every run gives the same bits. Each of them may
               * take one more copy of the step's parts. */
    const char *codec; /* of parts of TRIB_F32, the same on all ranks; copied; NULL:
                        * none. It rounds each element by itself, or is unbiased; its
                        * ef= has no effect:
                        * what a part loses by it stays with the rank that gives it */
} trib_neighbors_desc_t;

#define TRIB_NEIGHBORS_DESC_INIT \
    { \
        sizeof(trib_neighbors_desc_t), 0, TRIB_F32, NULL, 0, 0, NULL \
    }

/* The graph of one step, as this rank has it. A rank is in each list once at most, and
 * not itself. If a has b in `to`, b has a in `from`. */
typedef struct trib_neighbors {
    size_t size; /* sizeof(trib_neighbors_t) */
    const int *to; /* [n_to] */
    const double *shares; /* [n_to] above 0; 1 at most in all; what is left is kept */
    size_t n_to;
    const int *from; /* [n_from] */
    size_t n_from;
} trib_neighbors_t;

#define TRIB_NEIGHBORS_INIT \
    { \
        sizeof(trib_neighbors_t), NULL, NULL, 0, NULL, 0 \
    }

/* Parts of one plan, as this rank has them. Over all ranks, `given` less `added` is
 * what is in flight, and the sum of weight + weight_given - weight_added is what the
 * sum of the weights was at first. */
typedef struct trib_in_flight {
    size_t size; /* sizeof(trib_in_flight_t) */
    uint64_t steps; /* begun so far, and drains */
    uint64_t given; /* parts that this rank has given away since the plan was made */
    uint64_t added; /* parts of others that it has added */
    uint64_t unsent; /* of those given: not handed over yet */
    uint64_t awaited; /* of the steps begun: parts of others that have not come */
    uint64_t arrived; /* the same: have come, and are not added yet */
    double weight_given; /* sum of the weights of parts given */
    double weight_added; /* the same of those added */
} trib_in_flight_t;

#define TRIB_IN_FLIGHT_INIT \
    { \
        sizeof(trib_in_flight_t), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * trib_plan_neighbors - make a plan of steps with neighbours.
 *
 * Connects to all ranks that it names, and waits for none. All ranks make their plans
 * of neighbours in the same order. trib_plan_test, trib_plan_wait, trib_plan_notify,
 * trib_plan_fd, trib_plan_explain and trib_plan_free are for these plans as well.
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; after
 *          steps with late parts a drain comes first, else it gives TRIB_ERR_BUSY
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW: a field is out of range;
 *          TRIB_ERR_UNSUPPORTED: another dtype, or a codec that would not keep the
 *          sum; TRIB_ERR_NO_MEMORY; what connecting
 *          gives
 * paper    Kempe et al., FOCS 2003; Assran et al., ICML 2019 (SGP, and OSGP, whose tau
 *          is desc.late)
 */
TRIB_API trib_status_t trib_plan_neighbors(trib_comm_t *comm,
                                           const trib_neighbors_desc_t *desc,
                                           trib_plan_t **plan_out);

/**
 * trib_plan_start_neighbors - begin a step.
 *
 * Every rank begins every step, also one without neighbours. Parts are added in the
 * order of ranks. The step is done when all parts have come, and when those of this
 * rank have been handed over; with desc.late, those of the step that many before it.
 * Once a step is done, x and weight are the caller's until the next one, whatever is
 * still in flight.
 * graph    copied
 * x        [count] the rank's vector, which becomes that of the next step
 * weight   the same of its weight; NULL: there is none
 * owner    x and weight belong to the library until the plan is done
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: the graph; TRIB_ERR_BUSY; TRIB_ERR_NO_MEMORY. Nothing has
 *          started. trib_plan_wait and trib_plan_test: TRIB_ERR_MISMATCH: two ranks do
 *          not say the same of an edge, or of the vector; the sentence names both.
 *          TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_plan_start_neighbors(trib_plan_t *plan,
                                                 const trib_neighbors_t *graph, void *x,
                                                 double *weight);

/**
 * trib_plan_start_drain - begin a step without a graph, which adds all that is in
 * flight.
 *
 * Every rank does so at the same place among its steps; trib_plan_wait waits for it.
 * Then no part is in flight, and the sums of x and of the weights over all ranks are
 * what they were at first. Steps may follow. Of a plan without late parts it does
 * nothing.
 * x        [count] as in trib_plan_start_neighbors, and weight
 * owner    as there
 * errors   as there
 */
TRIB_API trib_status_t trib_plan_start_drain(trib_plan_t *plan, void *x,
                                             double *weight);

/**
 * trib_plan_in_flight - count the parts of a plan that are under way.
 *
 * counts   size is set by the caller
 * thread   the communicator's; also while a step runs
 * errors   TRIB_ERR_INVALID: the plan is not one of neighbours, or counts is NULL
 */
TRIB_API trib_status_t trib_plan_in_flight(trib_plan_t *plan, trib_in_flight_t *counts);

#ifdef __cplusplus
}
#endif

#endif
