/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-sim: the schedules of a collective, replayed on a simulated network.
 *
 * The lists of all ranks come from the builders, are cut as plans cut them and lowered
 * as plans lower them; the network is SimGrid's. The replay stands for the engine, the
 * processor and the sockets of each rank. docs/scaling.md says what it leaves out.
 */
#ifndef PERF_SIM_SIM_H
#define PERF_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/perf.h"
#include "perf/sim/simnet.h"

enum { SIM_WHY = 300, SIM_RANKS_MOST = 4096 };

/* The speed of a rank's processor: one thread does all that a rank does. */
struct sim_rates {
    double message_s; /* a message sent, or received */
    double wake_s; /* until a rank that had nothing to do runs again */
    double copy_Bps; /* bytes through the kernel, once at each end */
    double sum_Bps; /* bytes of contributions, raw or as they add */
    double encode_Bps; /* bytes of elements */
    double decode_Bps;
    double near_Bps; /* between ranks of a host */
    double near_s;
};

struct sim_args {
    uint64_t given; /* options, by their rows */
    const char *algorithm;
    const char *codec;
    size_t bytes; /* of the vector of floats */
    struct perf_sizes ranks;
    size_t per_host;
    size_t leaders; /* of a host; 0: as the library chooses */
    size_t aggregators; /* of the service, or of its root */
    size_t rack; /* ranks below a leaf aggregator; 0: all send to the root */
    size_t chunk; /* 0: as a plan has it */
    size_t window;
    const char *topology;
    double rate; /* bytes a second of a link */
    double latency_s; /* of a link: the route from host to host has two or more */
    double oversubscribed; /* fat tree: hosts of a leaf for each of its uplinks */
    size_t mtu; /* 0: no headers below the library's */
    double crowding; /* how much longer bytes take where many connections share the
                      * links at both ends; 0: not at all */
    struct sim_rates rates;
    size_t cores; /* that all ranks share; 0: each has one */
    long late_rank; /* -1: none */
    double late_s;
    long slow_rank; /* -1: none */
    double slow_by;
    long slow_host; /* -1: none has a slow link */
    double slow_link_by;
    bool choose; /* say what auto would choose, and replay nothing */
    size_t messages; /* most that are replayed; 0: all */
    const char *csv;
    const char *json;
};

struct sim_result {
    int ranks;
    int hosts; /* with those of aggregators */
    char algorithm[24];
    char automatic[24]; /* that auto would choose */
    char estimates[SIM_WHY]; /* by which it would */
    char why[SIM_WHY]; /* why there is no result; empty: there is one */
    uint32_t chunks; /* of a round */
    uint32_t rounds;
    size_t piece; /* elements of a chunk */
    uint32_t frames; /* of the library in a message of the replay */
    double replayed; /* part of the messages; below 1 the rest is extrapolated */
    double time_s; /* until the last rank has the result */
    double first_s; /* until the first has it */
    double cpu_s; /* of the busiest rank or aggregator */
    double messages; /* of all, as the library sends them */
    double payload; /* bytes of all, without headers */
    double far_payload; /* of these to other hosts */
    double host_most; /* bytes on the busiest link of a host, with headers */
    double host_mean; /* bytes that a host of ranks sends, with headers */
    double fabric; /* bytes on all links between switches */
    double fabric_most; /* on the busiest of them */
    double memory_most; /* bytes of slots */
    double memory_mean;
    int peers_most; /* connections of a rank */
    double peers_mean;
    int agg_peers; /* of the aggregator with the most */
    double agg_memory;
};

/** sim_args_parse - -1: go on; 0 after --help; 2 after a sentence. */
int sim_args_parse(int argc, char **argv, FILE *err, struct sim_args *out);

/** sim_shape - the platform for so many hosts; false: why has the sentence. */
bool sim_shape(const struct sim_args *args, int hosts, struct simnet_shape *out,
               char why[SIM_WHY]);

/** sim_run - replay it for so many ranks; out->why says what went wrong. Once in a
 * process. */
void sim_run(const struct sim_args *args, int ranks, struct sim_result *out);

/** sim_write - rows of all results; false after a sentence. */
bool sim_write(const struct sim_args *args, const struct sim_result *results, size_t n,
               int argc, char **argv);

#endif
