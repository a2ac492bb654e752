/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pictures of a machine, of the racks around it, and of the steps of an algorithm; the
 * hosts of a communicator's ranks.
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
    const char *xml; /* a file with a machine, as lstopo writes it; NULL: this one */
    const char *racks; /* a file with racks: Slurm's topology.conf, what ibnetdiscover
                        * prints, or lines such as "rack1: host1 host2"; NULL: none */
    const char *format; /* of it: "slurm", "ibnetdiscover" or "hosts"; NULL: by its
                         * first line, or without racks */
    int dot; /* for Graphviz, instead of lines that people read */
    int reserved; /* 0 */
} trib_topology_opts_t;

#define TRIB_TOPOLOGY_OPTS_INIT \
    { \
        sizeof(trib_topology_opts_t), NULL, NULL, NULL, 0, 0 \
    }

typedef void (*trib_line_fn)(void *arg, const char *line);

/**
 * trib_topology_draw - switches, hosts, packages, NUMA nodes, caches, cores and network
 * devices as a tree.
 *
 * opts     NULL: this machine, as text
 * fn       called for each line, without its line feed; the line lives as long as the
 *          call
 * thread   any
 * errors   TRIB_ERR_INVALID, TRIB_ERR_SYSTEM: a file cannot be read, or understood;
 *          TRIB_ERR_UNSUPPORTED: a machine's file, without hwloc; TRIB_ERR_NO_MEMORY.
 *          trib_last_error(NULL) has the sentence, with file and line; fn was not
 *          called
 */
TRIB_API trib_status_t trib_topology_draw(const trib_topology_opts_t *opts,
                                          trib_line_fn fn, void *arg);

typedef struct trib_schedule_opts {
    size_t size; /* sizeof(trib_schedule_opts_t) */
    const char *algorithm; /* or how its name begins; drawn is its all-reduce, or the
                            * first collective that it has */
    int ranks; /* 1 to 1024 */
    size_t bytes; /* of a vector; of each rank for all-gather and
                   * reduce-scatter */
    int ranks_per_host; /* more than `ranks` is as many; 0: all are of one host; of
                         * algorithm hierarchical several hosts, about as many as each
                         * has ranks */
    int leaders; /* of a host or group, at most the ranks of the smallest; 0:
                  * by the bytes, or the algorithm has none */
    int dot; /* for Graphviz, instead of lines that people read */
    const char *service; /* of algorithm service: as TRIB_SERVICE, the hosts being
                          * host0, host1, …; NULL: none */
    const char *groups; /* as TRIB_GROUPS: who sums together; NULL: hosts */
    const char *xml; /* with or without groups: what each host is like, a file of
                      * lstopo; ranks share its cores evenly. NULL: with groups as
                      * this machine */
} trib_schedule_opts_t;

#define TRIB_SCHEDULE_OPTS_INIT \
    { \
        sizeof(trib_schedule_opts_t), NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/**
 * trib_schedule_draw - the steps of all ranks, and the messages and bytes of each link.
 *
 * The picture is of a vector that fits into one round of chunks.
 * fn       as trib_topology_draw
 * thread   any
 * errors   TRIB_ERR_INVALID; TRIB_ERR_UNSUPPORTED: the algorithm needs more than ranks;
 *          TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED: groups, xml; TRIB_ERR_CONFIG:
 *          service; TRIB_ERR_NO_MEMORY. trib_last_error(NULL) has the sentence; fn was
 *          not called
 */
TRIB_API trib_status_t trib_schedule_draw(const trib_schedule_opts_t *opts,
                                          trib_line_fn fn, void *arg);

/**
 * trib_host_of - the host of a rank, as a number from 0 in the order of the hosts'
 * lowest ranks; -1: there is no such rank.
 *
 * trib_split with it as the color makes a communicator of each host's ranks.
 * thread   any
 */
TRIB_API int trib_host_of(const trib_comm_t *comm, int rank);

#ifdef __cplusplus
}
#endif

#endif
