/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/services.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* What is known of a service while the tree grows. */
struct service {
    int rack;
    int racks; /* that send to it */
    int parts; /* nodes that it plays */
    int leaf; /* its node of level 0; -1: none */
};

struct planter {
    const struct trib_tree_ask *ask;
    struct trib_tree tree;
    struct service *services;
    int *first; /* [n_switches + 1] the nodes on top below a switch; the last: of all */
    int *next; /* [nodes] the next one there; -1: none */
    int *tops; /* those of one switch */
};

/* What is not joined is further away than anything. */
static int hops(const struct planter *p, int a, int b)
{
    int n = trib_racks_hops(p->ask->racks, a, b);

    return n < 0 ? INT_MAX : n;
}

static int add_node(struct planter *p, int service, int level)
{
    int i = p->tree.n++;

    assert(i < 2 * p->ask->n_services);
    p->tree.nodes[i] =
        (struct trib_tree_node){.service = service, .parent = -1, .level = level};
    p->next[i] = -1;
    p->services[service].parts++;
    return i;
}

/* --- leaves --- */

static int nearest_service(const struct planter *p, int rack)
{
    int best = 0;
    int least = hops(p, rack, p->services[0].rack);

    for (int i = 1; i < p->ask->n_services; i++) {
        const struct service *s = &p->services[i];
        int n = hops(p, rack, s->rack);
        if (n < least || (n == least && s->racks < p->services[best].racks)) {
            best = i;
            least = n;
        }
    }
    return best;
}

static void add_leaves(struct planter *p)
{
    const struct trib_racks *racks = p->ask->racks;

    for (int i = 0; i < racks->n_switches; i++) {
        int hosts = racks->switches[i].hosts;
        p->tree.of_rack[i] = -1;
        if (hosts == 0)
            continue;
        int service = nearest_service(p, i);
        struct service *s = &p->services[service];
        if (s->leaf < 0)
            s->leaf = add_node(p, service, 0);
        s->racks++;
        p->tree.nodes[s->leaf].hosts += hosts;
        p->tree.of_rack[i] = s->leaf;
    }
}

/* --- parents --- */

/* Is a service below switch `at`? n_switches is above all. */
static bool is_below(const struct planter *p, int service, int at)
{
    int i = p->services[service].rack;

    while (i > at && i >= 0) /* parents have lower numbers */
        i = p->ask->racks->switches[i].parent;
    return i == at || at == p->ask->racks->n_switches;
}

static bool is_among(const struct planter *p, int service, const int *children, int n)
{
    for (int i = 0; i < n; i++)
        if (p->tree.nodes[children[i]].service == service)
            return true;
    return false;
}

/* Of those that play as few parts one that is a child: what it sums need not travel. */
static int choose_parent(const struct planter *p, int at, const int *children, int n)
{
    int best = -1;
    bool best_among = false;

    for (int i = 0; i < p->ask->n_services; i++) {
        if (!is_below(p, i, at))
            continue;
        int parts = p->services[i].parts;
        int least = best < 0 ? INT_MAX : p->services[best].parts;
        bool among = is_among(p, i, children, n);
        if (parts < least || (parts == least && among && !best_among)) {
            best = i;
            best_among = among;
        }
    }
    assert(best >= 0);
    return best;
}

static int join(struct planter *p, int at, const int *children, int n)
{
    int level = 0;
    int parent = add_node(p, choose_parent(p, at, children, n), 0);

    for (int i = 0; i < n; i++) {
        struct trib_tree_node *child = &p->tree.nodes[children[i]];
        child->parent = parent;
        level = child->level > level ? child->level : level;
    }
    p->tree.nodes[parent].level = level + 1;
    p->tree.nodes[parent].children = n;
    return parent;
}

/* Groups of at most fan_in, as even as can be, become a node each, until one is left.
 */
static int reduce(struct planter *p, int at, int n)
{
    while (n > 1) {
        int groups = (n + p->ask->fan_in - 1) / p->ask->fan_in;
        int begin = 0;
        for (int g = 0; g < groups; g++) {
            int end = begin + n / groups + (g < n % groups);
            p->tops[g] = end - begin == 1 ? p->tops[begin]
                                          : join(p, at, p->tops + begin, end - begin);
            begin = end;
        }
        n = groups;
    }
    return p->tops[0];
}

static void push(struct planter *p, int at, int node)
{
    p->next[node] = p->first[at];
    p->first[at] = node;
}

/* From the last switch on, so that those below are done before; then what the roots of
 * the racks have becomes one. */
static void add_parents(struct planter *p)
{
    const struct trib_racks *racks = p->ask->racks;

    for (int step = 0; step <= racks->n_switches; step++) {
        int at =
            step < racks->n_switches ? racks->n_switches - 1 - step : racks->n_switches;
        int n = 0;
        for (int node = p->first[at]; node >= 0; node = p->next[node])
            p->tops[n++] = node;
        if (n == 0)
            continue;
        int top = reduce(p, at, n);
        int parent = at < racks->n_switches ? racks->switches[at].parent : -1;
        if (at < racks->n_switches)
            push(p, parent < 0 ? racks->n_switches : parent, top);
    }
}

/* --- the whole --- */

static trib_status_t find_services(struct planter *p, struct trib_error *err)
{
    for (int i = 0; i < p->ask->n_services; i++) {
        struct service *s = &p->services[i];
        *s = (struct service){.leaf = -1};
        s->rack = trib_racks_find(p->ask->racks, p->ask->services[i]);
        if (s->rack < 0)
            return trib_fail(err, TRIB_ERR_INVALID,
                             "the service on %.80s is in no rack: name its host in the "
                             "file of racks",
                             p->ask->services[i]);
    }
    return TRIB_OK;
}

/* Each leaf is on top where its service is, until it is joined. */
static void plant(struct planter *p)
{
    int n_switches = p->ask->racks->n_switches;

    for (int i = 0; i <= n_switches; i++)
        p->first[i] = -1;
    add_leaves(p);
    for (int i = p->tree.n - 1; i >= 0; i--)
        push(p, p->services[p->tree.nodes[i].service].rack, i);
    add_parents(p);
    assert(p->tree.nodes[p->tree.n - 1].parent == -1);
}

static bool make_room(struct planter *p)
{
    size_t switches = (size_t)p->ask->racks->n_switches;
    size_t services = (size_t)p->ask->n_services;

    p->services = calloc(services, sizeof(*p->services));
    p->first = calloc(switches + 1, sizeof(*p->first));
    p->next = calloc(2 * services, sizeof(*p->next));
    p->tops = calloc(services, sizeof(*p->tops));
    p->tree.nodes = calloc(2 * services, sizeof(*p->tree.nodes));
    p->tree.of_rack = calloc(switches, sizeof(*p->tree.of_rack));
    return p->services && p->first && p->next && p->tops && p->tree.nodes &&
           p->tree.of_rack;
}

trib_status_t trib_tree_make(const struct trib_tree_ask *ask, struct trib_error *err,
                             struct trib_tree *out)
{
    struct planter p = {.ask = ask};

    if (ask->n_services < 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a tree of services needs at least one");
    if (ask->fan_in < 2)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a fan-in of %d joins nothing: it must be 2 at least",
                         ask->fan_in);
    trib_status_t status =
        make_room(&p)
            ? find_services(&p, err)
            : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a tree of %d services",
                        ask->n_services);
    if (status == TRIB_OK) {
        plant(&p);
        *out = p.tree;
    } else {
        trib_tree_free(&p.tree);
    }
    free(p.services);
    free(p.first);
    free(p.next);
    free(p.tops);
    return status;
}

void trib_tree_free(struct trib_tree *tree)
{
    free(tree->nodes);
    free(tree->of_rack);
    *tree = (struct trib_tree){0};
}
