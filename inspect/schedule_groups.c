/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/schedule_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/layout.h"

int trib_drawn_per_host(const trib_schedule_opts_t *opts, bool several)
{
    const int ranks = opts->ranks;
    int hosts = 1, root = 1;

    if (opts->ranks_per_host)
        return opts->ranks_per_host < ranks ? opts->ranks_per_host : ranks;
    if (!several)
        return ranks;
    for (; root * root <= ranks; root++)
        if (ranks % root == 0)
            hosts = root;
    /* If the number of ranks is prime, the last host has fewer. */
    return hosts > 1 || ranks < 3 ? ranks / hosts : root;
}

/* Bind a rank to its share of the cores, the same on each host. */
static void bind(const struct trib_layout *layout, int local, int per_host,
                 struct trib_rank_place *place)
{
    const long cores = layout->n_cores;
    const int first = (int)(local * cores / per_host);
    int end = (int)((local + 1) * cores / per_host);
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    end = end > first ? end : first + 1;
    for (int i = first; i < end; i++)
        if (layout->cores[i].cpu >= 0 && layout->cores[i].cpu < CPU_SETSIZE)
            CPU_SET(layout->cores[i].cpu, &cpus);
    trib_layout_bound(layout, &cpus, place);
}

static trib_status_t place_ranks(const trib_schedule_opts_t *opts, int per_host,
                                 struct trib_error *err, struct trib_drawn *d)
{
    struct trib_layout layout = {0};
    const bool bound = opts->groups || opts->xml;
    trib_status_t st = bound ? trib_layout_read(opts->xml, err, &layout) : TRIB_OK;

    for (int r = 0; st == TRIB_OK && r < opts->ranks; r++) {
        struct trib_rank_place *place = &d->places[r];
        place->package = place->numa = place->l3 = -1;
        if (bound)
            bind(&layout, r % per_host, per_host, place);
        snprintf(place->host, sizeof(place->host), "host%d", r / per_host);
    }
    trib_layout_free(&layout);
    return st;
}

static trib_status_t divide(const trib_schedule_opts_t *opts, struct trib_error *err,
                            struct trib_drawn *d)
{
    const char *kind = opts->groups ? opts->groups : "host";
    trib_status_t st = trib_groups_make(d->places, opts->ranks, kind, err, &d->groups);

    if (st == TRIB_OK)
        st = trib_groups_make(d->places, opts->ranks, "host", err, &d->hosts);
    if (st != TRIB_OK)
        return st;
    const int rank = trib_groups_unplaced(&d->hosts, d->places, kind);
    if (rank >= 0)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "groups by %s: rank %d on %s, with its share of the cores, belongs to none "
            "or to several; use as many ranks per host as it has groups, or a multiple",
            kind, rank, d->places[rank].host);
    return TRIB_OK;
}

static trib_status_t appoint(const trib_schedule_opts_t *opts, struct trib_error *err,
                             struct trib_drawn *d)
{
    struct trib_leaders_ask ask;

    trib_leaders_ask_of(&d->groups, d->places, &ask);
    ask.bytes = opts->bytes;
    if (d->hosts.n == 1)
        ask.between = trib_cost_default(TRIB_COST_LOAD_STORE);
    int n = opts->leaders ? opts->leaders : trib_leaders_choose(&ask);
    n = n < d->groups.smallest ? n : d->groups.smallest;
    trib_status_t st = trib_leaders_appoint(&d->groups, d->places, n, err, &d->leaders);
    d->shape = (struct trib_shape_groups){.n = d->groups.n,
                                          .leaders = n,
                                          .of_rank = d->groups.of_rank,
                                          .leader = d->leaders.rank,
                                          .host = d->hosts.of_rank};
    return st;
}

trib_status_t trib_drawn_make(const trib_schedule_opts_t *opts, int per_host,
                              struct trib_error *err, struct trib_drawn *out)
{
    out->places = calloc((size_t)opts->ranks, sizeof(*out->places));
    trib_status_t st = out->places ? place_ranks(opts, per_host, err, out)
                                   : trib_fail(err, TRIB_ERR_NO_MEMORY,
                                               "no memory for %d ranks", opts->ranks);
    if (st == TRIB_OK)
        st = divide(opts, err, out);
    if (st == TRIB_OK)
        st = appoint(opts, err, out);
    return st;
}

void trib_drawn_free(struct trib_drawn *drawn)
{
    trib_leaders_free(&drawn->leaders);
    trib_groups_free(&drawn->groups);
    trib_groups_free(&drawn->hosts);
    free(drawn->places);
    *drawn = (struct trib_drawn){0};
}
