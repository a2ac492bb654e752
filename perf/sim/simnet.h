/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated network: hosts, links, and transfers that share the links.
 *
 * SimGrid has the clock and divides the links; this is all of it that the replay knows.
 * One network a process. Links have no delay here: a transfer ends when its last byte
 * has left, and the caller adds the delay of the route, so that the transfers of a
 * connection follow each other without a gap.
 */
#ifndef PERF_SIM_SIMNET_H
#define PERF_SIM_SIMNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum simnet_kind {
    SIMNET_STAR, /* one switch that is never busy */
    SIMNET_FAT_TREE, /* leaf switches of `down` hosts, each with `up` spines */
    SIMNET_DRAGONFLY, /* groups of routers, each two groups with one link */
};

struct simnet_shape {
    enum simnet_kind kind;
    int hosts;
    double rate; /* bytes a second of each link, each way */
    int slow_host; /* star: its link has slow_rate; -1: none */
    double slow_rate;
    int down; /* fat tree: hosts of a leaf switch */
    int up; /* fat tree: spines, and links of a leaf switch upwards */
    int groups; /* dragonfly: groups of `chassis` x `routers` routers */
    int chassis;
    int routers;
    int nodes; /* dragonfly: hosts of a router */
};

enum { SIMNET_ROUTE_MOST = 16 };

struct simnet_route {
    int n;
    int link[SIMNET_ROUTE_MOST]; /* the first and the last belong to a host */
};

/** simnet_open - build it; once, before all else. */
void simnet_open(const struct simnet_shape *shape);

/** simnet_links - number of links so far named by simnet_route, each way one. */
int simnet_links(void);

/** simnet_route - the links from one host to another one; none to itself. */
void simnet_route(int from, int to, struct simnet_route *out);

/** simnet_now - simulated seconds. */
double simnet_now(void);

/** simnet_send - move bytes; fn is called when the last one has left. */
void simnet_send(int from, int to, double bytes, void (*fn)(void *), void *arg);

/** simnet_after - call fn after so many simulated seconds. */
void simnet_after(double seconds, void (*fn)(void *), void *arg);

/** simnet_stop - nothing more is to be called; simnet_run returns. */
void simnet_stop(void);

/** simnet_run - call fn, then whatever becomes due, until nothing is left. */
void simnet_run(void (*fn)(void *), void *arg);

#ifdef __cplusplus
}
#endif

#endif
