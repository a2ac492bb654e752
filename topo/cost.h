/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a collective: pure functions from counted work to microseconds.
 *
 *   time = hops * hop_us + messages * message_us + wire / wire_Bps + summed / sum_Bps
 *
 * This is the Hockney model (a start-up time and a rate), with the CPU time of a
 * message separate from the delay of the wire, as in LogP. Only the order of two
 * estimates matters, not their size.
 */
#ifndef TOPO_COST_H
#define TOPO_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Times and rates of one machine or network. */
struct trib_cost_model {
    double hop_us; /* time from a send until the receiver sees it, 0 bytes */
    double switch_us; /* added to each hop if ranks outnumber cores: a yield */
    double message_us; /* CPU time of a rank for one message, sent or received */
    double wire_Bps; /* bytes per second into or out of one rank */
    double sum_Bps; /* bytes per second of contributions that one rank sums */
    /* Relative extra cost of bytes on the wire, for each peer of a rank but the
     * first. */
    double peer;
    bool shared_cores; /* the total work of all ranks counts, not the busiest rank's */
};

/*
 * The work of the busiest rank, and the longest chain of hops. Ranks send and receive
 * at the same time, so a rank's bytes are the larger of the two.
 */
struct trib_cost_work {
    double hops; /* messages that each wait for the previous one */
    double messages; /* sent or received by one rank, whichever is more */
    double up; /* bytes of contributions and partial sums on the wire */
    double down; /* bytes of results on the wire */
    double summed; /* bytes that a rank reads to sum */
    double mean; /* mean work over the ranks relative to the busiest rank; 0: equal */
    double peers; /* peers of a rank, on average; 0: one */
};

enum trib_cost_kind {
    TRIB_COST_LOAD_STORE,
    TRIB_COST_NETWORK,
    TRIB_COST_SLOW_NETWORK, /* slow enough that selecting elements pays off */
    /* a network path between more ranks than cores of one host */
    TRIB_COST_SHARED_CORES,
};

/** trib_cost_default - return the default constants of a kind. */
const struct trib_cost_model *trib_cost_default(enum trib_cost_kind kind);

/** trib_cost_of_ports - return the constants of an RDMA network whose ports have this
 * nominal speed in Mbit/s, above 0. */
struct trib_cost_model trib_cost_of_ports(uint32_t mbps);

/** trib_cost_us - estimate the time in microseconds. */
double trib_cost_us(const struct trib_cost_model *model,
                    const struct trib_cost_work *work, bool oversubscribed);

#endif
