/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which services a job has, and how they stand above its ranks (schedule/schedule.h,
 * "How services stand"). Rank 0 lays it out; the other ranks and the services get it as
 * bytes:
 *
 *     units · of each: its parent, how many services, these · how many ranks, less one,
 *     and the unit to which they send · …
 *
 * Numbers of two bytes, the lower first, until all ranks have their unit.
 */
#ifndef OFFLOAD_AGG_TREE_H
#define OFFLOAD_AGG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "schedule/schedule.h"

/* The component of log lines of offload/. */
#define TRIB_OFFLOAD_LOG "service"

struct trib_error;
struct trib_log;

enum { TRIB_AGGREGATORS_MAX = 64 };

struct trib_tree_layout {
    int n; /* services that have a part in the job */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    struct trib_agg_tree *tree; /* NULL: one unit of all */
};

/**
 * trib_tree_layout_make - what TRIB_SERVICE and TRIB_RACKS make of services for these
 * ranks.
 *
 *     TRIB_SERVICE = unit { "+" unit }
 *     unit         = host:port { "," host:port } [ "=" name { "," name } ]
 *
 * A name is a host, or a service of a unit below; names and addresses may be lists such
 * as n[01-16]. A unit without names is of the root. Where no unit has names, and there
 * is a file of racks, services stand in the racks of their hosts
 * (topo/racks/services.h).
 *
 * hosts    of each rank
 * log      says, for info, what was laid out; and warns of names that no rank has
 * owner    trib_tree_layout_free, also after a failure
 * errors   TRIB_ERR_CONFIG with a sentence; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_tree_layout_make(const struct trib_config *cfg,
                                    const char *const *hosts, int ranks,
                                    const struct trib_log *log, struct trib_error *err,
                                    struct trib_tree_layout *out);
void trib_tree_layout_free(struct trib_tree_layout *layout);

/** trib_agg_tree_copy - in one piece, for free(); NULL: no memory. */
struct trib_agg_tree *trib_agg_tree_copy(const struct trib_agg_tree *tree, int ranks);

/**
 * trib_agg_tree_pack - as bytes; NULL is none.
 *
 * errors   TRIB_ERR_OVERFLOW: there are too few; not where each rack's ranks are in a
 *          row
 */
trib_status_t trib_agg_tree_pack(const struct trib_agg_tree *tree, int ranks,
                                 uint8_t *out, size_t bytes, size_t *n_out);

/**
 * trib_agg_tree_unpack - from any bytes; none are no tree: *out is NULL.
 *
 * What it gives, the schedule can be built for (algorithm "service").
 * owner    free()
 * errors   TRIB_ERR_PROTOCOL, TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_agg_tree_unpack(const uint8_t *bytes, size_t n, int ranks,
                                   int services, struct trib_error *err,
                                   struct trib_agg_tree **out);

/**
 * trib_agg_tree_peers - with whom a node exchanges anything.
 *
 * tree     or NULL
 * peer     [ranks + services] set for each
 * returns  how many; -1: no memory
 */
int trib_agg_tree_peers(const struct trib_agg_tree *tree, int ranks, int services,
                        int node, bool *peer);

#endif
