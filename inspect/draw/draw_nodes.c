/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/draw/draw_nodes.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LABEL_BYTES 160
#define LIST_BYTES 72 /* bytes of names or ranks in a label; the rest is counted */

struct drafter {
    const struct trib_drawing *drawing;
    struct trib_nodes *nodes;
    struct trib_groups hosts; /* ranks by host; without ranks n is 0 */
    int *rack_of; /* [hosts.n] -1: none */
    bool *drawn; /* [racks->n_hosts] drawn separately, not in a list */
    int *first; /* [racks->n_switches + 1] first host of each rack in by_rack */
    int *by_rack; /* [racks->n_hosts] hosts, grouped by rack */
    int own; /* the layout's host in the racks; -1: not found */
    int own_group; /* its group among the hosts of the ranks; -1: it has no rank */
    bool no_memory;
};

static void add(struct drafter *d, enum trib_node_kind kind, int depth,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Replace control characters from a file, which must not reach the terminal. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

static void add(struct drafter *d, enum trib_node_kind kind, int depth,
                const char *format, ...)
{
    struct trib_nodes *nodes = d->nodes;
    va_list list;

    if (nodes->n == nodes->room) {
        int room = nodes->room ? 2 * nodes->room : 64;
        struct trib_node *more = realloc(nodes->node, (size_t)room * sizeof(*more));
        if (!more) {
            d->no_memory = true;
            return;
        }
        nodes->node = more;
        nodes->room = room;
    }
    struct trib_node *node = &nodes->node[nodes->n++];
    node->kind = kind;
    node->depth = depth < TRIB_NODE_DEPTH_MAX ? depth : TRIB_NODE_DEPTH_MAX;
    va_start(list, format);
    vsnprintf(node->label, sizeof(node->label), format, list);
    va_end(list);
    clean(node->label);
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* --- numbers in ranges: "0-3 8" --- */

struct ranges {
    char text[LIST_BYTES + 32];
    int n;
    int left_out;
    int first;
    int last;
};

static void close_range(struct ranges *r)
{
    size_t at = strlen(r->text);

    if (r->n == 0)
        return;
    if (at + 24 > LIST_BYTES) {
        r->left_out += r->last - r->first + 1;
        return;
    }
    int n =
        snprintf(r->text + at, sizeof(r->text) - at, "%s%d", at ? " " : "", r->first);
    if (r->last > r->first)
        snprintf(r->text + at + n, sizeof(r->text) - at - (size_t)n, "-%d", r->last);
}

static void add_number(struct ranges *r, int number)
{
    if (r->n > 0 && number == r->last + 1) {
        r->last = number;
    } else {
        close_range(r);
        r->first = r->last = number;
    }
    r->n++;
}

/* ", ranks 0-3 8"; "" if there are none. */
static const char *ranges_text(struct ranges *r, const char *what,
                               char text[LABEL_BYTES])
{
    text[0] = '\0';
    if (r->n == 0)
        return text;
    close_range(r);
    snprintf(text, LABEL_BYTES, ", %s%s %s", what, plural(r->n), r->text);
    if (r->left_out > 0)
        trib_text_append(text, LABEL_BYTES, " and %d more", r->left_out);
    return text;
}

/* --- the inside of a host --- */

/* A place in a host; -1: not a single one. */
struct spot {
    int package;
    int numa;
    int l3;
};

/* Return the core's NUMA node if it lies within the core's package, else -1: nodes may
 * span packages. */
static int numa_of(const struct trib_layout *l, const struct trib_layout_core *c)
{
    return c->numa >= 0 && l->numa[c->numa].package == c->package ? c->numa : -1;
}

static bool core_at(const struct trib_layout *l, int core, const struct spot *spot)
{
    const struct trib_layout_core *c = &l->cores[core];

    return c->package == spot->package && numa_of(l, c) == spot->numa &&
           c->l3 == spot->l3;
}

/* Return true if a core is within the spot; -1 matches any. */
static bool exists(const struct trib_layout *l, const struct spot *spot)
{
    for (int i = 0; i < l->n_cores; i++) {
        const struct trib_layout_core *c = &l->cores[i];
        if (c->package == spot->package &&
            (spot->numa < 0 || numa_of(l, c) == spot->numa) &&
            (spot->l3 < 0 || c->l3 == spot->l3))
            return true;
    }
    return false;
}

/* Return the spot where a rank is drawn: as deep as the layout knows its place. */
static struct spot spot_of(const struct trib_layout *l,
                           const struct trib_rank_place *place)
{
    struct spot spot = {place->package, place->numa, place->l3};

    if (!exists(l, &spot))
        spot.l3 = -1;
    if (!exists(l, &spot))
        spot.numa = -1;
    if (!exists(l, &spot))
        spot.package = -1;
    return spot;
}

/* List the ranks of host group g drawn at a spot. */
static const char *ranks_at(const struct drafter *d, int g, const struct spot *spot,
                            char text[LABEL_BYTES])
{
    struct ranges ranges = {.n = 0};

    for (int i = g < 0 ? 0 : d->hosts.first[g]; g >= 0 && i < d->hosts.first[g + 1];
         i++) {
        int rank = d->hosts.members[i];
        struct spot at = spot_of(d->drawing->layout, &d->drawing->places[rank]);
        if (memcmp(&at, spot, sizeof(at)) == 0)
            add_number(&ranges, rank);
    }
    return ranges_text(&ranges, "rank", text);
}

static void add_nics(struct drafter *d, int depth, int package, int numa)
{
    const struct trib_layout *l = d->drawing->layout;

    for (int i = 0; i < l->n_nics; i++) {
        const struct trib_layout_nic *nic = &l->nics[i];
        bool within = nic->numa >= 0 && l->numa[nic->numa].package == nic->package;
        if (nic->package != package || (within ? nic->numa : -1) != numa)
            continue;
        add(d, TRIB_NODE_NIC, depth, nic->netdev[0] ? "%s (%s)" : "%s", nic->name,
            nic->netdev);
    }
}

static void add_cores(struct drafter *d, int depth, int g, const struct spot *spot)
{
    const struct trib_layout *l = d->drawing->layout;
    struct ranges cores = {.n = 0};
    char text[LABEL_BYTES], ranks[LABEL_BYTES];

    for (int i = 0; i < l->n_cores; i++)
        if (core_at(l, i, spot))
            add_number(&cores, i);
    if (cores.n == 0)
        return;
    ranges_text(&cores, "core", text);
    if (spot->l3 < 0)
        add(d, TRIB_NODE_PART, depth, "%s", text + 2);
    else
        add(d, TRIB_NODE_PART, depth, "L3 cache %d%s%s", spot->l3, text,
            ranks_at(d, g, spot, ranks));
}

static void add_numa(struct drafter *d, int depth, int g, const struct spot *spot)
{
    const struct trib_layout *l = d->drawing->layout;
    char ranks[LABEL_BYTES];

    if (spot->numa >= 0)
        add(d, TRIB_NODE_PART, depth++, "NUMA node %d, %.3g GiB%s", spot->numa,
            (double)l->numa[spot->numa].memory_bytes / (1 << 30),
            ranks_at(d, g, spot, ranks));
    struct spot below = *spot;
    for (below.l3 = -1; below.l3 < l->machine.l3_count; below.l3++)
        add_cores(d, depth, g, &below);
    add_nics(d, depth, spot->package, spot->numa);
}

/* Package -1: parts outside any package. */
static void add_package(struct drafter *d, int depth, int g, int package)
{
    const struct trib_layout *l = d->drawing->layout;
    struct spot spot = {package, -1, -1};
    char ranks[LABEL_BYTES];

    if (package >= 0)
        add(d, TRIB_NODE_PART, depth++, "package %d%s", package,
            ranks_at(d, g, &spot, ranks));
    for (int numa = 0; numa < l->n_numa; numa++) {
        spot.numa = numa;
        if (l->numa[numa].package == package)
            add_numa(d, depth, g, &spot);
    }
    spot.numa = -1;
    add_numa(d, depth, g, &spot);
}

static void add_inside(struct drafter *d, int depth, int g)
{
    const struct trib_layout *l = d->drawing->layout;
    static const struct spot nowhere = {-1, -1, -1};
    char ranks[LABEL_BYTES];

    add(d, TRIB_NODE_HOST, depth, "%s, %s%s%d core%s%s", l->host, l->machine.model,
        l->machine.model[0] ? ", " : "", l->n_cores, plural(l->n_cores),
        ranks_at(d, g, &nowhere, ranks));
    for (int package = 0; package < l->machine.packages; package++)
        add_package(d, depth + 1, g, package);
    add_package(d, depth + 1, g, -1);
}

/* --- hosts and switches --- */

static const char *host_of(const struct drafter *d, int g)
{
    return d->drawing->places[d->hosts.members[d->hosts.first[g]]].host;
}

static void add_group(struct drafter *d, int depth, int g)
{
    struct ranges ranges = {.n = 0};
    char ranks[LABEL_BYTES];

    if (g == d->own_group)
        return; /* already drawn with its parts */
    for (int i = d->hosts.first[g]; i < d->hosts.first[g + 1]; i++)
        add_number(&ranges, d->hosts.members[i]);
    add(d, TRIB_NODE_HOST, depth, "%s%s", host_of(d, g),
        ranges_text(&ranges, "rank", ranks));
}

/* Add the other hosts of a rack as one line. */
static void add_list(struct drafter *d, int depth, int rack)
{
    const struct trib_racks *r = d->drawing->racks;
    char text[LIST_BYTES + TRIB_HOSTNAME_BYTES] = "";
    int left_out = 0;

    for (int i = d->first[rack]; i < d->first[rack + 1]; i++) {
        const char *name = r->hosts[d->by_rack[i]].name;
        size_t n = strlen(text);
        if (d->drawn[d->by_rack[i]])
            continue;
        if (n > 0 && n + strlen(name) > LIST_BYTES)
            left_out++;
        else
            snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", name);
    }
    if (left_out > 0)
        add(d, TRIB_NODE_HOST, depth, "%s and %d more", text, left_out);
    else if (text[0])
        add(d, TRIB_NODE_HOST, depth, "%s", text);
}

static void add_switch(struct drafter *d, int i)
{
    const struct trib_racks_switch *s = &d->drawing->racks->switches[i];
    char hosts[32] = "";
    char rate[48] = "";

    if (s->hosts > 0)
        snprintf(hosts, sizeof(hosts), ", %d host%s", s->hosts, plural(s->hosts));
    if (s->Gbps > 0)
        snprintf(rate, sizeof(rate), ", %g Gb/s up", s->Gbps);
    add(d, TRIB_NODE_SWITCH, s->depth, "%s%s%s", s->name, hosts, rate);
    if (s->hosts == 0)
        return;
    if (d->own >= 0 && d->drawing->racks->hosts[d->own].rack == i)
        add_inside(d, s->depth + 1, d->own_group);
    for (int g = 0; g < d->hosts.n; g++)
        if (d->rack_of[g] == i)
            add_group(d, s->depth + 1, g);
    add_list(d, s->depth + 1, i);
}

static void add_all(struct drafter *d)
{
    const struct trib_drawing *drawing = d->drawing;

    for (int i = 0; drawing->racks && i < drawing->racks->n_switches; i++)
        add_switch(d, i);
    if (drawing->layout && d->own < 0)
        add_inside(d, 0, d->own_group);
    for (int g = 0; g < d->hosts.n; g++)
        if (d->rack_of[g] < 0)
            add_group(d, 0, g);
}

/* --- places of the hosts --- */

/* Hosts are sorted by name, and remain so within each rack. */
static void sort_by_rack(struct drafter *d)
{
    const struct trib_racks *r = d->drawing->racks;

    for (int i = 0; i < r->n_switches; i++)
        d->first[i + 1] = d->first[i] + r->switches[i].hosts;
    for (int i = 0; i < r->n_hosts; i++)
        d->by_rack[d->first[r->hosts[i].rack]++] = i;
    memmove(d->first + 1, d->first, (size_t)r->n_switches * sizeof(*d->first));
    d->first[0] = 0;
}

static void find_hosts(struct drafter *d)
{
    const struct trib_racks *racks = d->drawing->racks;
    const struct trib_layout *layout = d->drawing->layout;

    d->own = d->own_group = -1;
    for (int g = 0; g < d->hosts.n; g++) {
        int host = racks ? trib_racks_host(racks, host_of(d, g)) : -1;
        d->rack_of[g] = host < 0 ? -1 : racks->hosts[host].rack;
        if (host >= 0)
            d->drawn[host] = true;
        if (layout && strcmp(host_of(d, g), layout->host) == 0)
            d->own_group = g;
    }
    if (racks && layout)
        d->own = trib_racks_host(racks, layout->host);
    if (d->own >= 0)
        d->drawn[d->own] = true;
}

/* From the last node to the first: a bar is needed if a sibling has been seen, but no
 * parent since. */
static void mark_siblings(struct trib_nodes *nodes)
{
    bool seen[TRIB_NODE_DEPTH_MAX + 1] = {false};

    for (int i = nodes->n - 1; i >= 0; i--) {
        struct trib_node *node = &nodes->node[i];
        node->more = seen[node->depth];
        seen[node->depth] = true;
        for (int d = node->depth + 1; d <= TRIB_NODE_DEPTH_MAX; d++)
            seen[d] = false;
    }
}

static bool make_room(struct drafter *d)
{
    const struct trib_racks *r = d->drawing->racks;

    d->rack_of = calloc((size_t)d->hosts.n + 1, sizeof(*d->rack_of));
    d->drawn = calloc(r ? (size_t)r->n_hosts : 1, sizeof(*d->drawn));
    d->by_rack = calloc(r ? (size_t)r->n_hosts : 1, sizeof(*d->by_rack));
    d->first = calloc(r ? (size_t)r->n_switches + 2 : 1, sizeof(*d->first));
    return d->rack_of && d->drawn && d->by_rack && d->first;
}

trib_status_t trib_nodes_make(const struct trib_drawing *drawing,
                              struct trib_nodes *out)
{
    struct drafter d = {.drawing = drawing, .nodes = out};
    trib_status_t status = TRIB_OK;

    *out = (struct trib_nodes){0};
    if (drawing->n_places > 0)
        status = trib_groups_make(drawing->places, drawing->n_places, "host", NULL,
                                  &d.hosts);
    if (status == TRIB_OK && make_room(&d)) {
        if (drawing->racks)
            sort_by_rack(&d);
        find_hosts(&d);
        add_all(&d);
        mark_siblings(out);
    } else if (status == TRIB_OK) {
        status = TRIB_ERR_NO_MEMORY;
    }
    free(d.rack_of);
    free(d.drawn);
    free(d.by_rack);
    free(d.first);
    trib_groups_free(&d.hosts);
    return d.no_memory ? TRIB_ERR_NO_MEMORY : status;
}
