/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services in units: a unit sums for the ranks of a rack, or what units below it have
 * summed, and its services share the chunks of the vector. One unit is the root.
 */
#ifndef TOPO_RACKS_SERVICES_H
#define TOPO_RACKS_SERVICES_H

#include "topo/racks/racks.h"

/* What stands where: places may have services, and are below each other. */
struct trib_places {
    int n;
    int *above;      /* [n] a place; -1: none */
    int services;
    int *of_service; /* [services] its place; -1: above all places */
    int ranks;
    int *of_rank;    /* [ranks] its place; -1: none */
};

/* Units behind their parents; unit 0 is the root. */
struct trib_units {
    int n;
    int *parent;  /* [n]; not read for unit 0 */
    int *first;   /* [n + 1] unit u has services[first[u]] up to first[u + 1], which
                   * rise */
    int *services;
    int *of_rank; /* [ranks] the unit to which it sends */
};

/**
 * trib_places_of_racks - where services and ranks stand, by the names of their hosts.
 *
 * A switch is a place; who is on none has none.
 * owner    trib_places_free, unless it fails: TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_places_of_racks(const struct trib_racks *racks,
                                   const char *const *services, int n_services,
                                   const char *const *ranks, int n_ranks,
                                   struct trib_places *out);

/** trib_places_make - room for so many; nothing is above or at another. Errors as
 * above. */
trib_status_t trib_places_make(int n, int services, int ranks, struct trib_places *out);

/** trib_places_free - zeroed places are allowed. */
void trib_places_free(struct trib_places *places);

/**
 * trib_units_make - who sums what, a pure function of the places.
 *
 *   - The services of a place are a unit, for the ranks there and for places below that
 *     have no service of their own; its parent is the unit of the next place above that
 *     has one.
 *   - The root is the services above all places. Where there is none, it is all
 *     services of the units that have no parent: these are in two units then.
 *   - A unit for which there would be nothing to sum but what one unit below sends is
 *     left out, and so is one below which there is no rank: its services have no part
 *     in the job.
 *
 * above    places make no circle
 * owner    trib_units_free, unless it fails
 * errors   TRIB_ERR_INVALID: no service; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_units_make(const struct trib_places *places, struct trib_error *err,
                              struct trib_units *out);

/** trib_units_free - zeroed units are allowed. */
void trib_units_free(struct trib_units *units);

#endif
