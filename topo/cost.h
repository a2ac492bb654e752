/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a collective: pure functions from counted work to microseconds.
 *
 *   time = hops * hop_us + messages * message_us + wire / wire_Bps + summed / sum_Bps
 *
 * It is the Hockney model (a start-up time and a rate) with the work of the CPU for a
 * message apart from the delay of the wire, as in LogP. Only the order of two estimates
 * matters, not their size.
 */
#ifndef TOPO_COST_H
#define TOPO_COST_H

#include <stdbool.h>

/* The times of one machine or network. */
struct trib_cost_model {
    double hop_us; /* time from a send to its sight at the receiver, 0 bytes */
    double switch_us; /* added to each hop where ranks outnumber cores: a yield */
    double message_us; /* time of a rank's CPU for one message, sent or received */
    double wire_Bps; /* bytes a second into one rank, or out of it */
    double sum_Bps; /* bytes a second of contributions that one rank sums */
    double peer; /* part by which bytes on the wire cost more for each peer of a rank
                  * but the first */
    bool shared_cores; /* the work of all ranks counts, not that of the busiest */
};

/*
 * The work of the busiest rank, and the longest chain of hops. Ranks send and receive
 * at the same time, so a rank's bytes are the larger of the two.
 */
struct trib_cost_work {
    double hops; /* messages of which each waits for the one before */
    double messages; /* sent or received by one rank, the larger number */
    double up; /* bytes of contributions and partial sums on the wire */
    double down; /* bytes of results on the wire */
    double summed; /* bytes that a rank reads to sum */
    double mean; /* mean of the work over the ranks, of that of the busiest; 0: the same
                  */
    double peers; /* with which a rank exchanges, on average; 0: one */
};

enum trib_cost_kind {
    TRIB_COST_LOAD_STORE,
    TRIB_COST_NETWORK,
    TRIB_COST_SLOW_NETWORK, /* one for which selecting elements pays */
    TRIB_COST_SHARED_CORES, /* a network's way between more ranks than cores of one
                             * host */
};

/** trib_cost_default - constants. */
const struct trib_cost_model *trib_cost_default(enum trib_cost_kind kind);

/** trib_cost_us - the estimate in microseconds. */
double trib_cost_us(const struct trib_cost_model *model,
                    const struct trib_cost_work *work, bool oversubscribed);

#endif
