/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ranks of a communicator are of one host, or of one NUMA node or near to one
 * device, if TRIB_GROUPS says so; and who leads them.
 */
#ifndef COMM_LOCALITY_H
#define COMM_LOCALITY_H

#include <sched.h>
#include <stdint.h>

#include "collectives/collectives.h"
#include "topo/leaders.h"

struct trib_comm;
struct trib_locality;

/* What a rank says of its host to all. */
struct trib_locality_report {
    int32_t first; /* the lowest rank that its transport takes for one of its host */
    int32_t cores; /* that the ranks of its host may run on */
    uint32_t maps; /* ranks of its host have load/store reach, as far as it can have
                    * any */
    int32_t package, numa, l3; /* of struct trib_rank_place: -1: not known */
    char nic[32];
};

/**
 * trib_locality_probe - where this rank runs and which device is near, as far as groups
 * are made or leaders are chosen by it; else nothing is known.
 *
 * It takes hwloc a good while to look. So only where there are other ranks of this
 * host, and TRIB_GROUPS wants it; or where there are several devices and other hosts,
 * too, and the rank is bound to some of the cores.
 * cpus     on which it may run
 * ours     ranks of this host, as its transport sees it
 */
void trib_locality_probe(const struct trib_comm *comm, const cpu_set_t *cpus, int ours,
                         struct trib_locality_report *fact);

/**
 * trib_locality_make - comm->locality, from what each rank says, which is the same on
 * all.
 *
 * Where a rank does not know what TRIB_GROUPS wants, hosts are the groups, and rank 0
 * warns.
 */
trib_status_t trib_locality_make(struct trib_comm *comm,
                                 const struct trib_locality_report *facts);
void trib_locality_free(struct trib_locality *near);

/* Groups as a shape points to them. */
struct trib_locality_groups {
    struct trib_shape_groups groups;
    struct trib_leaders leaders;
    const char *kind; /* of trib_group_kinds[] */
};

/**
 * trib_locality_group - the groups, with as many leaders as cfg.leaders says, or as are
 * best for a vector of so many bytes; never more than the smallest group has ranks.
 *
 * The groups of *shape point into *out and comm. Without hosts nothing is done.
 * owner    trib_locality_ungroup, also after an error
 */
trib_status_t trib_locality_group(struct trib_comm *comm, size_t bytes,
                                  struct trib_locality_groups *out,
                                  struct trib_shape *shape);
void trib_locality_ungroup(struct trib_locality_groups *groups);

/** trib_locality_describe - what a choice is to know of hosts. */
void trib_locality_describe(const struct trib_comm *comm, struct trib_choice *choice);

#endif
