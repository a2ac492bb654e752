/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts, groups and leaders of hypothetical ranks, for drawing a schedule.
 */
#ifndef INSPECT_SCHEDULE_GROUPS_H
#define INSPECT_SCHEDULE_GROUPS_H

#include <tributary/topology.h>

#include "collectives/schedule/schedule.h"
#include "topo/groups.h"
#include "topo/leaders.h"

struct trib_drawn {
    struct trib_rank_place *places;
    struct trib_groups hosts;
    struct trib_groups groups;
    struct trib_leaders leaders;
    struct trib_shape_groups shape; /* points into the other fields */
};

/**
 * trib_drawn_per_host - return the number of ranks per host if opts does not set it:
 * all; if `several`, about as many as there are hosts, or somewhat more.
 */
int trib_drawn_per_host(const trib_schedule_opts_t *opts, bool several);

/**
 * trib_drawn_make - place ranks on consecutive hosts; the last may have fewer. If opts
 * has groups or a machine, each rank is bound to its share of its host's cores.
 *
 * owner    free with trib_drawn_free, even after an error
 */
trib_status_t trib_drawn_make(const trib_schedule_opts_t *opts, int per_host,
                              struct trib_error *err, struct trib_drawn *out);
void trib_drawn_free(struct trib_drawn *drawn);

#endif
