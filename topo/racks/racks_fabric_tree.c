/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose a tree of a fabric's switches.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "topo/racks/racks_fabric.h"

/* Racks sampled to find the centre of the fabric; all racks would take quadratic
 * time. */
#define SAMPLES_MAX 256

struct edge {
    int a; /* a < b */
    int b;
    double Gbps[2]; /* rate according to a's section, and to b's */
};

struct neighbour {
    int to;
    double Gbps;
};

/* The state of a switch during the search for roots. */
struct standing {
    int hosts;
    int farthest; /* farthest rack, in links */
    long sum; /* sum of the distances to all racks */
    int distance; /* distance in the current search; -1: not reached */
    double Gbps; /* rate of all links to other switches */
};

struct graph {
    struct trib_fabric *f;
    int n;
    int *first; /* [n + 1] into neighbours */
    struct neighbour *to; /* each link between switches twice */
    struct standing *standing;
    int *queue;
    int *parent; /* -1: none; -2: not in a tree yet */
};

static int int_compare(int a, int b)
{
    return (a > b) - (a < b);
}

/* --- links --- */

static int id_compare(const void *a, const void *b)
{
    const struct trib_fabric_switch *const *x = a;
    const struct trib_fabric_switch *const *y = b;

    return strcmp((*x)->id, (*y)->id);
}

static trib_status_t find_ends(struct trib_fabric *f,
                               const struct trib_fabric_switch **ids)
{
    for (size_t i = 0; i < f->n_switches; i++)
        ids[i] = &f->switches[i];
    qsort(ids, f->n_switches, sizeof(*ids), id_compare);
    for (size_t i = 1; i < f->n_switches; i++)
        if (id_compare(&ids[i - 1], &ids[i]) == 0)
            return trib_racks_fail(
                f->r, ids[i]->line,
                "switch %s already has a section at line %d; use the output "
                "of one run",
                ids[i]->id, ids[i - 1]->line);
    for (size_t i = 0; i < f->n_links; i++) {
        struct trib_fabric_switch key;
        const struct trib_fabric_switch *wanted = &key;
        memcpy(key.id, f->links[i].id, sizeof(key.id));
        const struct trib_fabric_switch *const *found =
            bsearch(&wanted, ids, f->n_switches, sizeof(*ids), id_compare);
        if (!found)
            return trib_racks_fail(
                f->r, f->links[i].line,
                "switch %s has no section: the output is incomplete; run "
                "ibnetdiscover again",
                key.id);
        f->links[i].to = (int)(*found - f->switches);
    }
    return TRIB_OK;
}

static int edge_compare(const void *a, const void *b)
{
    const struct edge *x = a;
    const struct edge *y = b;

    return x->a != y->a ? int_compare(x->a, y->a) : int_compare(x->b, y->b);
}

/* Merge parallel links into one edge; drop links of a switch to itself. */
static int merge_links(const struct trib_fabric *f, struct edge *edges)
{
    size_t n = 0;
    int merged = 0;

    for (size_t i = 0; i < f->n_links; i++) {
        const struct trib_fabric_link *l = &f->links[i];
        bool up = l->from < l->to;
        if (l->from == l->to)
            continue;
        edges[n] = (struct edge){.a = up ? l->from : l->to, .b = up ? l->to : l->from};
        edges[n++].Gbps[!up] = l->Gbps;
    }
    qsort(edges, n, sizeof(*edges), edge_compare);
    for (size_t i = 0; i < n; i++) {
        if (merged > 0 && edge_compare(&edges[merged - 1], &edges[i]) == 0) {
            edges[merged - 1].Gbps[0] += edges[i].Gbps[0];
            edges[merged - 1].Gbps[1] += edges[i].Gbps[1];
        } else {
            edges[merged++] = edges[i];
        }
    }
    return merged;
}

/* List each edge at both ends; if the two sections disagree, the larger rate counts. */
static void list_neighbours(struct graph *g, const struct edge *edges, int n)
{
    for (int i = 0; i < n; i++) {
        g->first[edges[i].a + 1]++;
        g->first[edges[i].b + 1]++;
    }
    for (int i = 0; i < g->n; i++)
        g->first[i + 1] += g->first[i];
    for (int i = 0; i < n; i++) {
        const struct edge *e = &edges[i];
        double Gbps = e->Gbps[0] > e->Gbps[1] ? e->Gbps[0] : e->Gbps[1];
        g->to[g->first[e->a]++] = (struct neighbour){e->b, Gbps};
        g->to[g->first[e->b]++] = (struct neighbour){e->a, Gbps};
        g->standing[e->a].Gbps += Gbps;
        g->standing[e->b].Gbps += Gbps;
    }
    memmove(g->first + 1, g->first, (size_t)g->n * sizeof(*g->first));
    g->first[0] = 0;
}

/* --- roots --- */

/* Breadth-first search; return the number of switches reached, listed in the queue. */
static int search(struct graph *g, int from)
{
    int head = 0;
    int tail = 0;

    g->standing[from].distance = 0;
    g->queue[tail++] = from;
    while (head < tail) {
        int i = g->queue[head++];
        for (int k = g->first[i]; k < g->first[i + 1]; k++) {
            struct standing *s = &g->standing[g->to[k].to];
            if (s->distance >= 0)
                continue;
            s->distance = g->standing[i].distance + 1;
            g->queue[tail++] = g->to[k].to;
        }
    }
    return tail;
}

static void forget(struct graph *g, int reached)
{
    for (int i = 0; i < reached; i++)
        g->standing[g->queue[i]].distance = -1;
}

static void measure(struct graph *g)
{
    int racks = 0;
    int seen = 0;

    for (int i = 0; i < g->n; i++)
        racks += g->standing[i].hosts > 0;
    int stride = (racks + SAMPLES_MAX - 1) / SAMPLES_MAX;
    for (int i = 0; i < g->n; i++) {
        if (g->standing[i].hosts == 0 || seen++ % stride != 0)
            continue;
        int reached = search(g, i);
        for (int k = 0; k < reached; k++) {
            struct standing *s = &g->standing[g->queue[k]];
            s->sum += s->distance;
            if (s->distance > s->farthest)
                s->farthest = s->distance;
        }
        forget(g, reached);
    }
}

/* Return true if a is a better root than b: nearer to the centre, then with fewer
 * hosts. */
static bool better_root(const struct graph *g, int a, int b)
{
    const struct standing *x = &g->standing[a];
    const struct standing *y = &g->standing[b];

    if (x->farthest != y->farthest)
        return x->farthest < y->farthest;
    if (x->hosts != y->hosts)
        return x->hosts < y->hosts;
    if (x->sum != y->sum)
        return x->sum < y->sum;
    if (x->Gbps > y->Gbps || x->Gbps < y->Gbps)
        return x->Gbps > y->Gbps;
    return strverscmp(g->f->switches[a].name, g->f->switches[b].name) < 0;
}

/* --- trees --- */

static bool better_parent(const struct graph *g, const struct neighbour *a,
                          const struct neighbour *b)
{
    if (a->Gbps > b->Gbps || a->Gbps < b->Gbps)
        return a->Gbps > b->Gbps;
    return strverscmp(g->f->switches[a->to].name, g->f->switches[b->to].name) < 0;
}

static void choose_parent(struct graph *g, int i)
{
    const struct neighbour *best = NULL;

    for (int k = g->first[i]; k < g->first[i + 1]; k++) {
        const struct neighbour *n = &g->to[k];
        if (g->standing[n->to].distance + 1 == g->standing[i].distance &&
            (!best || better_parent(g, n, best)))
            best = n;
    }
    assert(best || g->standing[i].distance == 0);
    g->parent[i] = best ? best->to : -1;
    g->f->r->switches[i].parent = g->parent[i];
    g->f->r->switches[i].Gbps = best ? best->Gbps : 0;
}

/* Grow the tree of the connected part that contains switch i. */
static void grow_tree(struct graph *g, int i)
{
    int reached = search(g, i);
    int root = i;

    for (int k = 0; k < reached; k++)
        if (better_root(g, g->queue[k], root))
            root = g->queue[k];
    forget(g, reached);
    reached = search(g, root);
    for (int k = 0; k < reached; k++)
        choose_parent(g, g->queue[k]);
    forget(g, reached);
}

static trib_status_t grow_trees(struct graph *g)
{
    for (int i = 0; i < g->n; i++) {
        g->f->r->number = g->f->switches[i].line;
        if (trib_racks_add_switch(g->f->r, g->f->switches[i].name) < 0)
            return TRIB_ERR_NO_MEMORY;
        g->standing[i].distance = -1;
        g->parent[i] = -2;
    }
    for (size_t i = 0; i < g->f->n_hosts; i++)
        g->standing[g->f->hosts[i].from].hosts++;
    measure(g);
    for (int i = 0; i < g->n; i++)
        if (g->parent[i] == -2)
            grow_tree(g, i);
    return TRIB_OK;
}

static void graph_free(struct graph *g)
{
    free(g->first);
    free(g->to);
    free(g->standing);
    free(g->queue);
    free(g->parent);
}

trib_status_t trib_fabric_tree(struct trib_fabric *f)
{
    size_t n = f->n_switches;
    struct graph g = {.f = f, .n = (int)n};
    const struct trib_fabric_switch **ids = calloc(n, sizeof(*ids));
    struct edge *edges = calloc(f->n_links + 1, sizeof(*edges));
    trib_status_t status = TRIB_ERR_NO_MEMORY;

    g.first = calloc(n + 2, sizeof(*g.first));
    g.to = calloc(2 * f->n_links + 1, sizeof(*g.to));
    g.standing = calloc(n, sizeof(*g.standing));
    g.queue = calloc(n, sizeof(*g.queue));
    g.parent = calloc(n, sizeof(*g.parent));
    if (ids && edges && g.first && g.to && g.standing && g.queue && g.parent)
        status = find_ends(f, ids);
    if (status == TRIB_OK) {
        list_neighbours(&g, edges, merge_links(f, edges));
        status = grow_trees(&g);
    }
    graph_free(&g);
    free(ids);
    free(edges);
    return status;
}
