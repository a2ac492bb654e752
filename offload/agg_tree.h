/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The aggregators of a job, and how they stand above its ranks (schedule/schedule.h).
 * Rank 0 lays the tree out; the other ranks and the aggregators get it as bytes:
 *
 *     groups · for each: its parent, the number of its aggregators, these · number of
 *     ranks less one, and the group to which they send · …
 *
 * Numbers have two bytes, the lower first. The last part repeats until all ranks have a
 * group.
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
    int n; /* number of aggregators that take part */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    struct trib_agg_tree *tree; /* NULL: one group of all */
};

/**
 * trib_tree_layout_make - lay out the aggregators of TRIB_SERVICE and TRIB_RACKS for
 * these ranks.
 *
 *     TRIB_SERVICE = group { "+" group }
 *     group        = host:port { "," host:port } [ "=" name { "," name } ]
 *
 * A name is a host, or an aggregator of a group below; names and addresses may be lists
 * such as n[01-16]. A group without names is at the root. If no group has names, and
 * there is a file of racks, aggregators stand in the racks of their hosts
 * (topo/racks/agg_groups.h).
 *
 * hosts    host of each rank
 * log      gets the layout at level info, and a warning of names that no rank has
 * owner    trib_tree_layout_free, also after a failure
 * errors   TRIB_ERR_CONFIG with a sentence; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_tree_layout_make(const struct trib_config *cfg,
                                    const char *const *hosts, int ranks,
                                    const struct trib_log *log, struct trib_error *err,
                                    struct trib_tree_layout *out);
void trib_tree_layout_free(struct trib_tree_layout *layout);

/** trib_agg_tree_copy - copy a tree into one block, for free(); NULL: no memory. */
struct trib_agg_tree *trib_agg_tree_copy(const struct trib_agg_tree *tree, int ranks);

/**
 * trib_agg_tree_pack - write a tree as bytes; NULL is no tree, and no bytes.
 *
 * errors   TRIB_ERR_OVERFLOW: too few bytes, which cannot happen if the ranks of each
 *          rack are numbered in a row
 */
trib_status_t trib_agg_tree_pack(const struct trib_agg_tree *tree, int ranks,
                                 uint8_t *out, size_t bytes, size_t *n_out);

/**
 * trib_agg_tree_unpack - read a tree from any bytes; no bytes are no tree: *out is
 * NULL.
 *
 * A schedule can be built for every tree that this returns.
 * owner    free()
 * errors   TRIB_ERR_PROTOCOL, TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_agg_tree_unpack(const uint8_t *bytes, size_t n, int ranks,
                                   int aggregators, struct trib_error *err,
                                   struct trib_agg_tree **out);

/**
 * trib_agg_tree_peers - find the peers of an aggregator.
 *
 * tree     or NULL
 * peer     [ranks + aggregators] set for each peer
 * returns  number of peers; -1: no memory
 */
int trib_agg_tree_peers(const struct trib_agg_tree *tree, int ranks, int aggregators,
                        int node, bool *peer);

#endif
