/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts, groups and leaders of ranks that are not there, for a picture of a schedule.
 */
#ifndef INSPECT_SCHEDULE_GROUPS_H
#define INSPECT_SCHEDULE_GROUPS_H

#include <tributary/topology.h>

#include "schedule/schedule.h"
#include "topo/groups.h"
#include "topo/leaders.h"

struct trib_drawn {
    struct trib_rank_place *places;
    struct trib_groups hosts;
    struct trib_groups groups;
    struct trib_leaders leaders;
    struct trib_shape_groups shape; /* points into the others */
};

/**
 * trib_drawn_per_host - ranks of a host, where opts says nothing: all; `several`: so
 * many that hosts are as many as each has ranks, or somewhat fewer.
 */
int trib_drawn_per_host(const trib_schedule_opts_t *opts, bool several);

/**
 * trib_drawn_make - hosts one behind the other, of which the last may have fewer ranks.
 * Where opts has groups or a machine, each rank is bound to its part of the cores of
 * its host.
 *
 * owner    trib_drawn_free, also after an error
 */
trib_status_t trib_drawn_make(const trib_schedule_opts_t *opts, int per_host,
                              struct trib_error *err, struct trib_drawn *out);
void trib_drawn_free(struct trib_drawn *drawn);

#endif
