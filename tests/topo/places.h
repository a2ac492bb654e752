/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of a cluster that is not there, for tests.
 */
#ifndef TESTS_TOPO_PLACES_H
#define TESTS_TOPO_PLACES_H

#include <stdio.h>

#include "topo/groups.h"

/*
 * Rank r of `per_host` ranks a host; each host has two packages of two NUMA nodes of
 * two L3 caches, and `nics` devices; ranks fill the nodes in blocks, as launchers bind
 * them.
 */
static inline struct trib_rank_place place_of(int rank, int per_host, int nics)
{
    int local = rank % per_host;
    struct trib_rank_place place = {.package = local * 2 / per_host,
                                    .numa = local * 4 / per_host,
                                    .l3 = local * 8 / per_host};

    snprintf(place.host, sizeof(place.host), "n%d", rank / per_host);
    if (nics > 0)
        snprintf(place.nic, sizeof(place.nic), "mlx5_%d", local * nics / per_host);
    return place;
}

#endif
