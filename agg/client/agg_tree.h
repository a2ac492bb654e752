/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of a job's aggregators above its ranks (schedule.h). Rank 0
 * computes the tree and sends it to the other ranks and to the aggregators as bytes:
 *
 *     number of groups
 *     per group:            parent, number of aggregators, their numbers
 *     per run of ranks:     number of ranks - 1, group of these ranks
 *
 * Numbers are 16-bit little-endian. The runs cover all ranks in order.
 */
#ifndef AGG_CLIENT_AGG_TREE_H
#define AGG_CLIENT_AGG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "collectives/schedule/schedule.h"

/* Component name in log lines of this folder. */
#define TRIB_OFFLOAD_LOG "service"

struct trib_error;
struct trib_log;

enum { TRIB_AGGREGATORS_MAX = 64 };

struct trib_tree_layout {
    int n; /* number of aggregators that take part */
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    struct trib_agg_tree *tree; /* NULL: one group of all aggregators */
};

/**
 * trib_tree_layout_make - compute the tree of aggregators from TRIB_SERVICE, TRIB_RACKS
 * and the ranks' hosts.
 *
 *     TRIB_SERVICE = group { "+" group }
 *     group        = host:port { "," host:port } [ "=" name { "," name } ]
 *
 * A name is a host, or the address of an aggregator in a child group; names and
 * addresses may be lists such as n[01-16]. The aggregators of groups without names form
 * the root. If no group has names and TRIB_RACKS is set, an aggregator belongs to the
 * rack of its host (topo/racks/agg_groups.h).
 *
 * hosts    host of each rank
 * log      receives the tree at level info, and a warning if no rank runs on a named
 *          host
 * owner    trib_tree_layout_free, also after a failure
 * errors   TRIB_ERR_CONFIG with a message; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_tree_layout_make(const struct trib_config *cfg,
                                    const char *const *hosts, int ranks,
                                    const struct trib_log *log, struct trib_error *err,
                                    struct trib_tree_layout *out);
void trib_tree_layout_free(struct trib_tree_layout *layout);

/** trib_agg_tree_copy - copy a tree into one block, released by free(); NULL: no
 * memory. */
struct trib_agg_tree *trib_agg_tree_copy(const struct trib_agg_tree *tree, int ranks);

/**
 * trib_agg_tree_pack - serialize a tree; no tree (NULL) has 0 bytes.
 *
 * errors   TRIB_ERR_OVERFLOW: too many bytes. Cannot happen if the ranks of each rack
 *          have consecutive numbers
 */
trib_status_t trib_agg_tree_pack(const struct trib_agg_tree *tree, int ranks,
                                 uint8_t *out, size_t bytes, size_t *n_out);

/**
 * trib_agg_tree_unpack - parse and validate untrusted bytes; 0 bytes: no tree, *out is
 * NULL.
 *
 * A schedule can be built for every tree that this function accepts.
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
 * peer     [ranks + aggregators] true for each peer
 * returns  number of peers; -1: no memory
 */
int trib_agg_tree_peers(const struct trib_agg_tree *tree, int ranks, int aggregators,
                        int aggregator, bool *peer);

#endif
