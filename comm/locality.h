/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The groups of a communicator's ranks, and their leaders: ranks of one host, or of one
 * NUMA node or near one network device if TRIB_GROUPS says so.
 */
#ifndef COMM_LOCALITY_H
#define COMM_LOCALITY_H

#include <sched.h>
#include <stdint.h>

#include "collectives/collectives.h"
#include "topo/leaders.h"

struct trib_comm;
struct trib_locality;

/* The part of a wireup message that tells all ranks about a rank's host. */
struct trib_locality_report {
    int32_t first; /* lowest rank of its host, by its transport */
    int32_t cores; /* cores that the ranks of its host may use */
    uint32_t maps; /* 1: ranks of one host may have load/store reach */
    int32_t package, numa, l3; /* as in struct trib_rank_place; -1: unknown */
    char nic[32];
};

/**
 * trib_locality_probe - find where this rank runs and which network device is near, as
 * far as groups or leaders need it; the rest stays unknown.
 *
 * hwloc takes long to read the topology. So this asks hwloc only if the host has other
 * ranks and TRIB_GROUPS wants it, or if there are several devices and other hosts and
 * the rank is bound to some of the cores.
 * cpus     CPUs that the rank may run on
 * ours     number of ranks of this host, by its transport
 */
void trib_locality_probe(const struct trib_comm *comm, const cpu_set_t *cpus, int ours,
                         struct trib_locality_report *fact);

/**
 * trib_locality_make - fill comm->locality from the reports of all ranks, the same on
 * all.
 *
 * If some rank lacks what TRIB_GROUPS wants, hosts become the groups, and rank 0 warns.
 */
trib_status_t trib_locality_make(struct trib_comm *comm,
                                 const struct trib_locality_report *facts);
void trib_locality_free(struct trib_locality *locality);

/* The groups to which a struct trib_shape points. */
struct trib_locality_groups {
    struct trib_shape_groups groups;
    struct trib_leaders leaders;
    const char *kind; /* name in trib_group_kinds[] */
};

/**
 * trib_locality_group - the groups, with cfg.leaders leaders each, or with the best
 * number for a vector of `bytes`; never more leaders than the smallest group has ranks.
 *
 * The groups of *shape point into *out and comm. Without comm->locality, shape stays as
 * it is.
 * owner    trib_locality_ungroup, also after an error
 */
trib_status_t trib_locality_group(struct trib_comm *comm, size_t bytes,
                                  struct trib_locality_groups *out,
                                  struct trib_shape *shape);
void trib_locality_ungroup(struct trib_locality_groups *groups);

/** trib_locality_describe - tell the choice of an algorithm what it must know of
 * hosts. */
void trib_locality_describe(const struct trib_comm *comm, struct trib_choice *choice);

#endif
