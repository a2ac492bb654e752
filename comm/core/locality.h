/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of a communicator's ranks, and their leaders. A group consists of the ranks on
 * a host or, depending on TRIB_GROUPS, on a NUMA node or near one network device.
 */
#ifndef COMM_CORE_LOCALITY_H
#define COMM_CORE_LOCALITY_H

#include <sched.h>
#include <stdint.h>

#include "collectives/collectives.h"
#include "topo/leaders.h"

struct trib_comm;
struct trib_locality;

/* Part of a wireup message: where a rank runs on its host. */
struct trib_locality_report {
    int32_t first; /* lowest rank of its host, according to its transport */
    int32_t cores; /* cores available to the ranks of its host */
    uint32_t maps; /* 1: ranks of one host may reach each other by load/store */
    uint32_t mbps; /* lowest nominal speed of its ports to another host, Mbit/s; 0:
                    * unknown */
    int32_t package, numa, l3; /* as in struct trib_rank_place; -1: unknown */
    char nic[32];
};

/**
 * trib_locality_probe - find where this rank runs and its nearest network device, as
 * far as groups or leaders need it; the rest stays unknown.
 *
 * Reading the topology with hwloc is slow. So it happens only if the host has other
 * ranks and TRIB_GROUPS needs it, or if there are several devices and other hosts and
 * the rank is bound to a subset of the cores.
 * cpus     CPUs that the rank may run on
 * ours     number of ranks of this host, according to its transport
 */
void trib_locality_probe(const struct trib_comm *comm, const cpu_set_t *cpus, int ours,
                         struct trib_locality_report *fact);

/**
 * trib_locality_make - fill comm->locality from the reports of all ranks, equal on all.
 *
 * If some rank lacks the information for TRIB_GROUPS, groups fall back to hosts and
 * rank 0 warns.
 */
trib_status_t trib_locality_make(struct trib_comm *comm,
                                 const struct trib_locality_report *facts);
void trib_locality_free(struct trib_locality *locality);

/**
 * trib_locality_hosts - set comm->aggregators->hosts from the reports of all ranks and
 * aggregators, equal on all of them.
 *
 * Two ranks share a host if both report the same lowest rank, reach others by
 * load/store and send to the same group of aggregators.
 * facts    [ranks + aggregators] from other hosts: any values
 */
trib_status_t trib_locality_hosts(struct trib_comm *comm,
                                  const struct trib_locality_report *facts);

/* The groups that a struct trib_shape points to. */
struct trib_locality_groups {
    struct trib_shape_groups groups;
    struct trib_leaders leaders;
    const char *kind; /* name in trib_group_kinds[] */
};

/**
 * trib_locality_group - return the groups with cfg.leaders leaders each, or the best
 * number for a vector of `bytes`; never more leaders than the smallest group has ranks.
 *
 * The groups of *shape point into *out and comm. Without comm->locality, shape is
 * unchanged.
 * owner    trib_locality_ungroup, even after an error
 */
trib_status_t trib_locality_group(struct trib_comm *comm, size_t bytes,
                                  struct trib_locality_groups *out,
                                  struct trib_shape *shape);
void trib_locality_ungroup(struct trib_locality_groups *groups);

/** trib_locality_describe - set the host-related inputs of the algorithm choice. */
void trib_locality_describe(const struct trib_comm *comm, struct trib_choice *choice);

#endif
