/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/racks/agg_groups.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* The state of a place while groups are made. */
struct site {
    int aggregators;
    int ranks; /* ranks that send to it */
    int children; /* sites that send to it */
    int group; /* index of its group; -1: none */
    int depth; /* sites above */
    bool used;
};

struct planner {
    const struct trib_places *places;
    struct site *sites; /* [n + 1]; the last one is the root, above all places */
    struct trib_agg_groups groups;
};

/* --- places --- */

static int *room_for(int n)
{
    int *p = malloc((size_t)(n > 0 ? n : 1) * sizeof(*p));

    for (int i = 0; p && i < n; i++)
        p[i] = -1;
    return p;
}

trib_status_t trib_places_make(int n, int aggregators, int ranks,
                               struct trib_places *out)
{
    *out = (struct trib_places){.n = n,
                                .above = room_for(n),
                                .aggregators = aggregators,
                                .of_aggregator = room_for(aggregators),
                                .ranks = ranks,
                                .of_rank = room_for(ranks)};
    if (out->above && out->of_aggregator && out->of_rank)
        return TRIB_OK;
    trib_places_free(out);
    return TRIB_ERR_NO_MEMORY;
}

void trib_places_free(struct trib_places *places)
{
    free(places->above);
    free(places->of_aggregator);
    free(places->of_rank);
    *places = (struct trib_places){0};
}

trib_status_t trib_places_of_racks(const struct trib_racks *racks,
                                   const char *const *aggregators, int n_aggregators,
                                   const char *const *ranks, int n_ranks,
                                   struct trib_places *out)
{
    trib_status_t st = trib_places_make(racks->n_switches, n_aggregators, n_ranks, out);

    if (st != TRIB_OK)
        return st;
    for (int i = 0; i < racks->n_switches; i++)
        out->above[i] = racks->switches[i].parent;
    for (int i = 0; i < n_aggregators; i++)
        out->of_aggregator[i] = trib_racks_find(racks, aggregators[i]);
    for (int i = 0; i < n_ranks; i++)
        out->of_rank[i] = trib_racks_find(racks, ranks[i]);
    return TRIB_OK;
}

/* --- sites --- */

static struct site *root_of(const struct planner *p)
{
    return &p->sites[p->places->n];
}

/* Return the site at a place, or the first one above it that has aggregators, or the
 * root. */
static int site_at(const struct planner *p, int place)
{
    while (place >= 0 && p->sites[place].aggregators == 0)
        place = p->places->above[place];
    return place < 0 ? p->places->n : place;
}

static int site_above(const struct planner *p, int site)
{
    return site_at(p, p->places->above[site]);
}

static void settle(struct planner *p)
{
    const struct trib_places *at = p->places;

    for (int i = 0; i <= at->n; i++)
        p->sites[i] = (struct site){.group = -1};
    for (int i = 0; i < at->aggregators; i++)
        p->sites[at->of_aggregator[i] < 0 ? at->n : at->of_aggregator[i]].aggregators++;
    for (int r = 0; r < at->ranks; r++) {
        int site = site_at(p, at->of_rank[r]);
        p->sites[site].ranks++;
        while (site != at->n && !p->sites[site].used) {
            p->sites[site].used = true;
            site = site_above(p, site);
            p->sites[site].children++;
        }
    }
}

/* Omit groups that would only forward: their child replaces them. */
static void leave_out(struct planner *p)
{
    for (int i = 0; i < p->places->n; i++) {
        struct site *s = &p->sites[i];
        if (!s->used || (s->ranks == 0 && s->children == 1))
            s->aggregators = 0;
        if (s->aggregators == 0)
            s->used = false;
    }
}

/* Return the only group below a root that has nothing else to sum; -1: the root is
 * needed. */
static int instead_of_root(const struct planner *p)
{
    if (root_of(p)->ranks > 0 || root_of(p)->children != 1)
        return -1;
    for (int i = 0; i < p->places->n; i++)
        if (p->sites[i].used && site_above(p, i) == p->places->n)
            return i;
    return -1;
}

/* --- groups --- */

static bool is_of(const struct planner *p, int aggregator, int site)
{
    const int place = p->places->of_aggregator[aggregator];

    return (place < 0 ? p->places->n : place) == site;
}

/* A root without aggregators of its own uses those of the groups directly below it, or
 * all if there are no such groups. */
static bool is_of_root(const struct planner *p, int aggregator)
{
    const int place = p->places->of_aggregator[aggregator];

    if (root_of(p)->aggregators > 0 || place < 0)
        return place < 0;
    return root_of(p)->children == 0 ||
           (p->sites[place].used && site_above(p, place) == p->places->n);
}

static void add_group(struct planner *p, int site, int parent)
{
    struct trib_agg_groups *u = &p->groups;
    int end = u->first[u->n];

    for (int i = 0; i < p->places->aggregators; i++)
        if (site == p->places->n ? is_of_root(p, i) : is_of(p, i, site))
            u->aggregators[end++] = i;
    u->parent[u->n] = parent;
    p->sites[site].group = u->n++;
    u->first[u->n] = end;
}

/* Add groups below existing ones until none are left. */
static void add_groups(struct planner *p, int root)
{
    const int n = p->places->n;
    bool more = true;

    p->groups.first[0] = 0;
    add_group(p, root, 0);
    while (more) {
        more = false;
        for (int i = 0; i < n; i++) {
            if (!p->sites[i].used || p->sites[i].group >= 0)
                continue;
            const int above = p->sites[site_above(p, i)].group;
            if (above < 0)
                continue;
            add_group(p, i, above);
            more = true;
        }
    }
    for (int r = 0; r < p->places->ranks; r++)
        p->groups.of_rank[r] = p->sites[site_at(p, p->places->of_rank[r])].group;
}

trib_status_t trib_agg_groups_make(const struct trib_places *places,
                                   struct trib_error *err, struct trib_agg_groups *out)
{
    struct planner p = {.places = places};
    /* a group has an aggregator of its own, or is the root */
    const int most = places->aggregators + 1;

    if (places->aggregators < 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a tree of aggregators needs at least one");
    p.sites = malloc(((size_t)places->n + 1) * sizeof(*p.sites));
    p.groups.parent = room_for(most);
    p.groups.first = room_for(most + 1);
    p.groups.aggregators = room_for(2 * places->aggregators);
    p.groups.of_rank = room_for(places->ranks);
    if (!p.sites || !p.groups.parent || !p.groups.first || !p.groups.aggregators ||
        !p.groups.of_rank) {
        free(p.sites);
        trib_agg_groups_free(&p.groups);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for a tree of %d aggregators", places->aggregators);
    }
    settle(&p);
    leave_out(&p);
    const int instead = instead_of_root(&p);
    add_groups(&p, instead < 0 ? places->n : instead);
    free(p.sites);
    *out = p.groups;
    return TRIB_OK;
}

void trib_agg_groups_free(struct trib_agg_groups *groups)
{
    free(groups->parent);
    free(groups->first);
    free(groups->aggregators);
    free(groups->of_rank);
    *groups = (struct trib_agg_groups){0};
}
