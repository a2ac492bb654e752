/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of ranks that are close to each other, from the place that each rank reports.
 *
 * Pure functions: equal input on all ranks gives equal output.
 */
#ifndef TOPO_GROUPS_H
#define TOPO_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/host.h"

struct trib_error;

/* The place of a rank, as it reports it; of fixed size for sending. Numbers count from
 * 0 within the host; -1: unknown, or the rank is not bound to a single one. */
struct trib_rank_place {
    char host[TRIB_HOST_BYTES];
    char nic[32]; /* nearest network device, such as "mlx5_0"; "": none or unknown */
    int32_t package;
    int32_t numa;
    int32_t l3;
};

/* A property shared by the ranks of a group. */
struct trib_group_kind {
    const char *name; /* "numa" */
    const char *detail;
    int (*compare)(const struct trib_rank_place *a,
                   const struct trib_rank_place *b); /* 0: same group */
    /* Returns true if the place has the field that compare uses. */
    bool (*known)(const struct trib_rank_place *place);
};

/* Widest first; NULL-terminated. "auto" is not a kind, but selects one. */
extern const struct trib_group_kind *const trib_group_kinds[];

/* Groups in the order of their lowest ranks; ranks increase within a group. */
struct trib_groups {
    const struct trib_group_kind *kind;
    int size; /* total number of ranks */
    int n;
    int smallest; /* ranks of the smallest group */
    int largest;
    /* [n + 1]: group g consists of members[first[g]] to members[first[g + 1] - 1]. */
    int *first;
    int *members; /* [size] ranks */
    int *of_rank; /* [size] group of a rank */
};

/**
 * trib_groups_make - divide ranks into groups.
 *
 * places   of ranks 0 to size - 1
 * kind     the name of a kind, or "auto": several hosts: by host; one host: by NUMA
 *          node if every rank knows its node and no node has a single rank; else one
 *          group
 * owner    caller; free with trib_groups_free, unless it fails
 * errors   TRIB_ERR_INVALID: unknown kind, no rank, or an unterminated name;
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_groups_make(const struct trib_rank_place *places, int size,
                               const char *kind, struct trib_error *err,
                               struct trib_groups *out);

/**
 * trib_groups_unplaced - return the first rank that lacks the property of a kind; -1:
 * none.
 *
 * Ranks that are alone on their host do not count.
 * hosts    the same ranks by host
 * kind     "auto" requires nothing
 */
int trib_groups_unplaced(const struct trib_groups *hosts,
                         const struct trib_rank_place *places, const char *kind);

/** trib_groups_free - free groups; accepts zero-filled groups. */
void trib_groups_free(struct trib_groups *groups);

/** trib_groups_count - return the number of ranks of group g. */
static inline int trib_groups_count(const struct trib_groups *groups, int g)
{
    return groups->first[g + 1] - groups->first[g];
}

#endif
