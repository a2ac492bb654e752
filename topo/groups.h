/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of ranks that are near to each other, from what each rank says of its place.
 *
 * Pure functions: what all ranks know alike goes in, and the same comes out on all of
 * them.
 */
#ifndef TOPO_GROUPS_H
#define TOPO_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/host.h"

struct trib_error;

/* The place of a rank, in its own words; of fixed size, so that ranks can send it.
 * Numbers are those of its host, from 0; -1: not known, or the rank is bound to no
 * single one. */
struct trib_rank_place {
    char host[TRIB_HOST_BYTES];
    char nic[32]; /* the nearest network device: "mlx5_0"; "": none, or not known */
    int32_t package;
    int32_t numa;
    int32_t l3;
};

/* The property that the ranks of a group have in common. */
struct trib_group_kind {
    const char *name; /* "numa" */
    const char *detail;
    int (*compare)(const struct trib_rank_place *a,
                   const struct trib_rank_place *b); /* 0: a group */
    bool (*known)(const struct trib_rank_place *place); /* true if the place has the
                                                         * field that compare looks
                                                         * at */
};

/* The widest first; ends with NULL. "auto" is none of them: it chooses one. */
extern const struct trib_group_kind *const trib_group_kinds[];

/* Groups are in the order of their lowest ranks, and their ranks rise. */
struct trib_groups {
    const struct trib_group_kind *kind;
    int size; /* ranks of all groups */
    int n;
    int smallest; /* ranks of the smallest group */
    int largest;
    int *
        first; /* [n + 1]: group g has members[first[g]] to members[first[g + 1] - 1] */
    int *members; /* [size] ranks */
    int *of_rank; /* [size] group of a rank */
};

/**
 * trib_groups_make - divide ranks into groups.
 *
 * places   of rank 0 to size - 1
 * kind     the name of a kind, or "auto": hosts where there are several; in one host
 * NUMA nodes, if each rank knows its own and no node has a rank alone; else one group
 * owner    trib_groups_free, unless it fails
 * errors   TRIB_ERR_INVALID: no such kind, no rank, or a name that does not end;
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_groups_make(const struct trib_rank_place *places, int size,
                               const char *kind, struct trib_error *err,
                               struct trib_groups *out);

/**
 * trib_groups_unplaced - the first rank that does not know what groups of a kind are
 * made of, though others of its host could be in another group; -1: there is none.
 *
 * hosts    the same ranks by host
 * kind     "auto" wants nothing
 */
int trib_groups_unplaced(const struct trib_groups *hosts,
                         const struct trib_rank_place *places, const char *kind);

/** trib_groups_free - zeroed groups are allowed. */
void trib_groups_free(struct trib_groups *groups);

/** trib_groups_count - the number of ranks of group g. */
static inline int trib_groups_count(const struct trib_groups *groups, int g)
{
    return groups->first[g + 1] - groups->first[g];
}

#endif
