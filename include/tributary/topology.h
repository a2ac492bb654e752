/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drawings of a machine, its racks and the steps of an algorithm; the hosts of ranks.
 */
#ifndef TRIBUTARY_TOPOLOGY_H
#define TRIBUTARY_TOPOLOGY_H

#include <stddef.h>

#include <tributary/comm.h>
#include <tributary/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_topology_opts {
    size_t size; /* sizeof(trib_topology_opts_t) */
    const char *xml; /* XML file of lstopo that describes a machine; NULL: this one */
    const char *racks; /* file with racks: Slurm's topology.conf, output of
                        * ibnetdiscover, or lines such as "rack1: host1 host2"; NULL:
                        * none */
    const char *format; /* format of racks: "slurm", "ibnetdiscover" or "hosts"; NULL:
                         * detected from its first line, or no racks */
    int dot; /* non-zero: Graphviz format instead of text */
    int reserved; /* 0 */
} trib_topology_opts_t;

#define TRIB_TOPOLOGY_OPTS_INIT \
    { \
        sizeof(trib_topology_opts_t), NULL, NULL, NULL, 0, 0 \
    }

typedef void (*trib_line_fn)(void *arg, const char *line);

/**
 * trib_topology_draw - draw a machine and its racks as a tree.
 *
 * The tree contains switches, hosts, packages, NUMA nodes, caches, cores and network
 * devices.
 * opts     NULL: this machine, as text
 * fn       called for each line, without its line feed; the line is valid during the
 *          callback
 * thread   any
 * errors   TRIB_ERR_INVALID, TRIB_ERR_SYSTEM: a file cannot be read or parsed;
 *          TRIB_ERR_UNSUPPORTED: a machine's file, in a build without hwloc;
 *          TRIB_ERR_NO_MEMORY. trib_last_error(NULL) returns the message, with file and
 *          line; fn was not called
 */
TRIB_API trib_status_t trib_topology_draw(const trib_topology_opts_t *opts,
                                          trib_line_fn fn, void *arg);

typedef struct trib_schedule_opts {
    size_t size; /* sizeof(trib_schedule_opts_t) */
    const char *algorithm; /* name, or a prefix of it. Draws its all-reduce, or the
                            * first collective that it supports */
    int ranks; /* 1 to 1024 */
    size_t bytes; /* size of the vector; for all-gather and reduce-scatter the size per
                   * rank */
    int ranks_per_host; /* capped at `ranks`; 0: one host, or, with algorithm
                         * hierarchical, about as many hosts as ranks per host */
    int leaders; /* leaders per host or group, at most the ranks of the smallest; 0:
                  * chosen by the bytes, or the algorithm has none */
    int dot; /* non-zero: Graphviz format instead of text */
    const char *service; /* for algorithm service: as TRIB_SERVICE, with hosts named
                          * host0, host1, …; NULL: none */
    const char *groups; /* as TRIB_GROUPS: ranks that sum together; NULL: hosts */
    const char *xml; /* with or without groups: file of lstopo that describes each
                      * host; ranks share its cores evenly. NULL: with groups, this
                      * machine */
} trib_schedule_opts_t;

#define TRIB_SCHEDULE_OPTS_INIT \
    { \
        sizeof(trib_schedule_opts_t), NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/**
 * trib_schedule_draw - draw the steps of all ranks and the traffic of each link.
 *
 * Traffic is in messages and bytes. The vector fits into one round of chunks.
 * fn       as trib_topology_draw
 * thread   any
 * errors   TRIB_ERR_INVALID; TRIB_ERR_UNSUPPORTED: the algorithm needs more than ranks;
 *          TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED: groups, xml; TRIB_ERR_CONFIG:
 *          service; TRIB_ERR_NO_MEMORY. trib_last_error(NULL) returns the message; fn
 *          was not called
 */
TRIB_API trib_status_t trib_schedule_draw(const trib_schedule_opts_t *opts,
                                          trib_line_fn fn, void *arg);

/**
 * trib_host_of - return the number of a rank's host.
 *
 * Hosts are numbered from 0 in the order of their lowest ranks. Returns -1 if the rank
 * does not exist. Pass the number to trib_split as color to create a communicator for
 * each host.
 * thread   any
 */
TRIB_API int trib_host_of(const trib_comm_t *comm, int rank);

#ifdef __cplusplus
}
#endif

#endif
