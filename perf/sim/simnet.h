/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated network: hosts, links, and transfers that share the links.
 *
 * This is the replay's interface to SimGrid, which keeps the clock and divides the
 * links. One network per process. Links have no latency here: a transfer ends when its
 * last byte is sent, and the caller adds the latency of the route. So transfers of a
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
    SIMNET_STAR, /* one switch with unlimited capacity */
    SIMNET_FAT_TREE, /* leaf switches of `down` hosts, each linked to `up` spines */
    SIMNET_DRAGONFLY, /* groups of routers; each pair of groups has one link */
};

struct simnet_shape {
    enum simnet_kind kind;
    int hosts;
    double rate; /* bytes/s of a link in each direction */
    int slow_host; /* star: host with slow_rate; -1: none */
    double slow_rate;
    int down; /* fat tree: hosts per leaf switch */
    int up; /* fat tree: spines, and uplinks per leaf switch */
    int groups; /* dragonfly: groups of `chassis` x `routers` routers */
    int chassis;
    int routers;
    int nodes; /* dragonfly: hosts per router */
};

enum { SIMNET_ROUTE_MOST = 16 };

struct simnet_route {
    int n;
    int link[SIMNET_ROUTE_MOST]; /* the first and the last belong to a host */
};

/** simnet_open - build the network; call it once, first. */
void simnet_open(const struct simnet_shape *shape);

/** simnet_links - return the number of links that simnet_route has used so far; each
 * direction counts. */
int simnet_links(void);

/** simnet_route - return the links between two hosts; none from a host to itself. */
void simnet_route(int from, int to, struct simnet_route *out);

/** simnet_now - return the simulated seconds. */
double simnet_now(void);

/** simnet_send - send bytes; call fn when the last one is sent. */
void simnet_send(int from, int to, double bytes, void (*fn)(void *), void *arg);

/** simnet_after - call fn after `seconds` simulated seconds. */
void simnet_after(double seconds, void (*fn)(void *), void *arg);

/** simnet_stop - stop the simulation; simnet_run returns. */
void simnet_stop(void);

/** simnet_run - call fn, then run all events until none is left. */
void simnet_run(void (*fn)(void *), void *arg);

#ifdef __cplusplus
}
#endif

#endif
