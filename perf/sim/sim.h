/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-sim: replay the schedules of a collective on a simulated network.
 *
 * Builders make the lists of all ranks; these are cut and lowered as in plans. SimGrid
 * simulates the network. The replay models the engine, the processor and the sockets of
 * each rank. docs/scaling.md says what it leaves out.
 */
#ifndef PERF_SIM_SIM_H
#define PERF_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/common/sizes.h"
#include "perf/sim/simnet.h"

enum { SIM_WHY = 300, SIM_RANKS_MOST = 4096 };

/* Speed of a rank's processor. One thread does all work of a rank. */
struct sim_rates {
    double message_s; /* to send or receive a message */
    double wake_s; /* to wake an idle rank */
    double copy_Bps; /* bytes through the kernel, once at each end */
    double sum_Bps; /* bytes of contributions, raw or linearly encoded */
    double encode_Bps; /* bytes of elements */
    double decode_Bps;
    double near_Bps; /* between ranks on one host */
    double near_s;
};

struct sim_args {
    uint64_t given; /* bit set of given options, by row */
    const char *algorithm;
    const char *codec;
    size_t bytes; /* of the vector of floats */
    struct perf_sizes ranks;
    size_t per_host;
    size_t leaders; /* per host; 0: as the library chooses */
    size_t aggregators; /* of the service, or of its root */
    size_t rack; /* ranks per leaf aggregator; 0: all send to the root */
    size_t chunk; /* 0: as in a plan */
    size_t window;
    const char *topology;
    double rate; /* bytes/s of a link */
    double latency_s; /* of a link; a route between hosts has two or more */
    double oversubscribed; /* fat tree: hosts of a leaf switch per uplink */
    size_t mtu; /* 0: no headers below the library's */
    double crowding; /* slowdown when many connections share the links at both ends; 0:
                      * none */
    size_t in_flight; /* TRIB_IN_FLIGHT; 0: no limit */
    size_t buffer; /* bytes that a switch buffers for a port; 0: unlimited */
    double resend_s; /* time until a message that found no room is sent again; 0: its
                      * sender is paused until there is room */
    struct sim_rates rates;
    size_t cores; /* shared by all ranks; 0: one per rank */
    long late_rank; /* -1: none */
    double late_s;
    long slow_rank; /* -1: none */
    double slow_by;
    long slow_host; /* -1: no host has a slow link */
    double slow_link_by;
    bool choose; /* print what auto would choose, without a replay */
    size_t messages; /* maximum to replay; 0: all */
    const char *csv;
    const char *json;
};

struct sim_result {
    int ranks;
    int hosts; /* including hosts of aggregators */
    char algorithm[24];
    char automatic[24]; /* what auto would choose */
    char estimates[SIM_WHY]; /* estimates for that choice */
    char why[SIM_WHY]; /* why there is no result; "": there is one */
    uint32_t chunks; /* per round */
    uint32_t rounds;
    size_t piece; /* elements per chunk */
    uint32_t frames; /* the library's frames per message of the replay */
    double replayed; /* fraction of the messages replayed; if below 1, the rest is
                      * extrapolated */
    double time_s; /* until the last rank has the result */
    double first_s; /* until the first rank has the result */
    double cpu_s; /* of the busiest rank or aggregator */
    double messages; /* of all ranks, as the library sends them */
    double payload; /* bytes of all ranks, without headers */
    double far_payload; /* part of payload sent to other hosts */
    double host_most; /* bytes on the busiest link of a host, with headers */
    double host_mean; /* bytes sent per host of ranks, with headers */
    double fabric; /* bytes on all links between switches */
    double fabric_most; /* bytes on the busiest of these links */
    double backlog_most; /* largest number of bytes in flight to one port */
    double held; /* messages that found no room in the buffer of a port */
    double memory_most; /* bytes of slots */
    double memory_mean;
    int peers_most; /* connections of a rank */
    double peers_mean;
    int agg_peers; /* connections of the aggregator with the most */
    double agg_memory;
};

/** sim_args_parse - return -1 to continue; 0 after --help; 2 after a message. */
int sim_args_parse(int argc, char **argv, FILE *err, struct sim_args *out);

/** sim_shape - compute the platform for `hosts` hosts. false: why has the message. */
bool sim_shape(const struct sim_args *args, int hosts, struct simnet_shape *out,
               char why[SIM_WHY]);

/** sim_run - replay with `ranks` ranks; out->why has an error. Call it once per
 * process. */
void sim_run(const struct sim_args *args, int ranks, struct sim_result *out);

/** sim_write - write the rows of all results; false after a message. */
bool sim_write(const struct sim_args *args, const struct sim_result *results, size_t n,
               int argc, char **argv);

#endif
