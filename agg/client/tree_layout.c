/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes the tree of aggregators above the ranks from TRIB_SERVICE and TRIB_RACKS. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_tree.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sockets.h"
#include "topo/racks/agg_groups.h"

enum { NAMES_MOST = 65536 };

struct name {
    char host[TRIB_HOSTNAME_BYTES];
    int group;
};

struct text {
    struct trib_error *err;
    trib_status_t status;
    char copy[TRIB_CONFIG_TEXT_BYTES]; /* writable copy of the setting */
    int aggregators;
    char addresses[TRIB_AGGREGATORS_MAX][TRIB_CONFIG_TEXT_BYTES];
    int group_of[TRIB_AGGREGATORS_MAX]; /* group of each aggregator; -1: the root */
    int groups;
    const char *names[TRIB_AGGREGATORS_MAX]; /* names in each group */
    int leader[TRIB_AGGREGATORS_MAX]; /* first aggregator of each group */
    int group; /* group being parsed */
    struct name *hosts;
    int n_hosts;
    struct trib_places places;
};

static void wrong(struct text *t, trib_status_t st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Record the first error only. */
static void wrong(struct text *t, trib_status_t st, const char *fmt, ...)
{
    char why[400];
    va_list args;

    if (t->status != TRIB_OK)
        return;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    t->status = trib_fail(t->err, st, "TRIB_SERVICE: %s", why);
}

/* Addresses ------------------------------------------------------------------------ */

static int find_aggregator(const struct text *t, const char *address)
{
    for (int i = 0; i < t->aggregators; i++)
        if (strcmp(t->addresses[i], address) == 0)
            return i;
    return -1;
}

/* The same address may occur twice in a group: that tribd then sums with two
 * threads. */
static void add_address(void *arg, const char *address)
{
    struct text *t = arg;
    struct trib_tcp_root at;
    const int twin = find_aggregator(t, address);

    if (!trib_tcp_root_parse(address, &at))
        wrong(t, TRIB_ERR_CONFIG, "\"%.80s\" is not host:port", address);
    else if (t->aggregators == TRIB_AGGREGATORS_MAX)
        wrong(t, TRIB_ERR_CONFIG,
              "more than 64 aggregators; %.80s is the first one too many", address);
    else if (twin >= 0 && t->group_of[twin] != t->group)
        wrong(t, TRIB_ERR_CONFIG, "%.80s is in two groups", address);
    if (t->status != TRIB_OK)
        return;
    assert(t->aggregators < TRIB_AGGREGATORS_MAX);
    t->group_of[t->aggregators] = t->group;
    snprintf(t->addresses[t->aggregators++], TRIB_CONFIG_TEXT_BYTES, "%s", address);
}

/* Find the comma or the end after an item, which may contain brackets. */
static char *end_of_item(char *p)
{
    for (int inside = 0; *p && (inside || *p != ','); p++)
        inside = *p == '[' || (inside && *p != ']');
    return p;
}

static void read_addresses(struct text *t, char *list)
{
    bool more = true;

    while (more && t->status == TRIB_OK) {
        char *end = end_of_item(list);
        more = *end != '\0';
        *end = '\0';
        /* [::1]:4700 is an address, not a list */
        const char *why =
            list[0] == '['
                ? NULL
                : trib_hostlist_each(list, TRIB_AGGREGATORS_MAX + 1, add_address, t);
        if (list[0] == '[')
            add_address(t, list);
        if (why)
            wrong(t, TRIB_ERR_CONFIG, "\"%.80s\" %s", list, why);
        list = end + 1;
    }
}

static void read_groups(struct text *t)
{
    char *group = t->copy;

    for (char *next = group; next && t->status == TRIB_OK; group = next) {
        next = strchr(group, '+');
        if (next)
            *next++ = '\0';
        char *names = strchr(group, '=');
        t->group = -1;
        if (names) {
            *names++ = '\0';
            if (t->groups == TRIB_AGGREGATORS_MAX) {
                wrong(t, TRIB_ERR_CONFIG, "more than 64 groups");
                return;
            }
            t->group = t->groups++;
            t->leader[t->group] = t->aggregators;
            t->names[t->group] = names;
        }
        read_addresses(t, group);
    }
}

/* Names ---------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->host, ((const struct name *)b)->host);
}

static void add_below(struct text *t, const char *address)
{
    const int child = find_aggregator(t, address),
              group = child < 0 ? -1 : t->group_of[child];

    if (child < 0) {
        wrong(t, TRIB_ERR_CONFIG,
              "%.80s is a child of %.80s, but it is not a listed aggregator", address,
              t->addresses[t->leader[t->group]]);
    } else if (group < 0) {
        wrong(t, TRIB_ERR_CONFIG,
              "%.80s has no hosts to sum for: write %.80s=host1,host2", address,
              address);
    } else if (t->places.above[group] >= 0 && t->places.above[group] != t->group) {
        wrong(t, TRIB_ERR_CONFIG, "%.80s is a child of %.80s and of another group",
              address, t->addresses[t->leader[t->group]]);
    } else {
        t->places.above[group] = t->group;
    }
}

static void add_name(void *arg, const char *name)
{
    struct text *t = arg;

    if (strchr(name, ':')) {
        add_below(t, name);
        return;
    }
    if (t->n_hosts % 256 == 0) {
        struct name *more =
            realloc(t->hosts, ((size_t)t->n_hosts + 256) * sizeof(*more));
        if (!more) {
            wrong(t, TRIB_ERR_NO_MEMORY, "no memory for %.80s", name);
            return;
        }
        t->hosts = more;
    }
    struct name *n = &t->hosts[t->n_hosts++];
    snprintf(n->host, sizeof(n->host), "%s", name);
    n->group = t->group;
}

static void check_circles(struct text *t)
{
    for (int u = 0; u < t->groups; u++) {
        int steps = 0;
        for (int v = u; v >= 0 && steps <= t->groups; v = t->places.above[v])
            steps++;
        if (steps > t->groups)
            wrong(t, TRIB_ERR_CONFIG, "%.80s is its own ancestor",
                  t->addresses[t->leader[u]]);
    }
}

static void read_names(struct text *t)
{
    for (t->group = 0; t->group < t->groups && t->status == TRIB_OK; t->group++) {
        const char *why =
            trib_hostlist_each(t->names[t->group], NAMES_MOST, add_name, t);
        if (why)
            wrong(t, TRIB_ERR_CONFIG, "the list \"%.80s\" %s", t->names[t->group], why);
    }
    check_circles(t);
    if (t->n_hosts > 0)
        qsort(t->hosts, (size_t)t->n_hosts, sizeof(*t->hosts), compare_names);
    for (int i = 1; i < t->n_hosts; i++)
        if (t->hosts[i].group != t->hosts[i - 1].group &&
            strcmp(t->hosts[i].host, t->hosts[i - 1].host) == 0)
            wrong(t, TRIB_ERR_CONFIG,
                  "host %.80s is in two groups: in the one of %.80s and in another",
                  t->hosts[i].host, t->addresses[t->leader[t->hosts[i].group]]);
}

/* Find the group of a host by its name, or else by the part before the first dot. */
static int group_of_host(const struct text *t, const char *host)
{
    struct name key;
    const struct name *found = NULL;

    for (int cut = 0; cut < 2 && !found && t->n_hosts > 0; cut++) {
        snprintf(key.host, sizeof(key.host), "%.*s",
                 (int)(cut ? strcspn(host, ".") : sizeof(key.host) - 1), host);
        found = bsearch(&key, t->hosts, (size_t)t->n_hosts, sizeof(key), compare_names);
    }
    return found ? found->group : -1;
}

/* Laying out ----------------------------------------------------------------------- */

static void place_by_names(struct text *t, const char *const *hosts, int ranks,
                           const struct trib_log *log)
{
    bool any = false;

    if (trib_places_make(t->groups, t->aggregators, ranks, &t->places) != TRIB_OK) {
        wrong(t, TRIB_ERR_NO_MEMORY, "no memory for a tree");
        return;
    }
    read_names(t);
    memcpy(t->places.of_aggregator, t->group_of, (size_t)t->aggregators * sizeof(int));
    for (int r = 0; t->status == TRIB_OK && r < ranks; r++) {
        t->places.of_rank[r] = group_of_host(t, hosts[r]);
        any |= t->places.of_rank[r] >= 0;
    }
    if (t->status == TRIB_OK && !any)
        trib_log(log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "no rank runs on a host named in TRIB_SERVICE; rank 0 runs on %.64s",
                 hosts[0]);
}

static void place_by_racks(struct text *t, const char *file, const char *const *hosts,
                           int ranks, const struct trib_log *log)
{
    const char *aggregators[TRIB_AGGREGATORS_MAX];
    struct trib_tcp_root at[TRIB_AGGREGATORS_MAX];
    struct trib_racks *racks;
    bool any = false;

    t->status = trib_racks_read(file, NULL, t->err, &racks);
    if (t->status != TRIB_OK)
        return;
    for (int i = 0; i < t->aggregators; i++) {
        (void)trib_tcp_root_parse(t->addresses[i], &at[i]);
        aggregators[i] = at[i].host;
    }
    t->status = trib_places_of_racks(racks, aggregators, t->aggregators, hosts, ranks,
                                     &t->places);
    for (int i = 0; t->status == TRIB_OK && i < t->aggregators; i++)
        any |= t->places.of_aggregator[i] >= 0;
    if (t->status == TRIB_OK && !any)
        trib_log(log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "no aggregator is in a rack of %.200s: in TRIB_SERVICE, use the host "
                 "names of this file, not addresses",
                 file);
    trib_racks_free(racks);
}

/* Renumber the aggregators that take part, and build the tree if there are several
 * groups. */
static trib_status_t take_groups(const struct text *t, struct trib_agg_groups *u,
                                 struct trib_tree_layout *out)
{
    int number[TRIB_AGGREGATORS_MAX];

    for (int i = 0; i < t->aggregators; i++)
        number[i] = -1;
    for (int k = 0; k < u->first[u->n]; k++)
        number[u->aggregators[k]] = 0;
    for (int i = 0; i < t->aggregators; i++) {
        if (number[i] < 0)
            continue;
        number[i] = out->n;
        memcpy(out->addresses[out->n++], t->addresses[i], sizeof(t->addresses[i]));
    }
    for (int k = 0; k < u->first[u->n]; k++)
        u->aggregators[k] = number[u->aggregators[k]];
    if (u->n == 1)
        return TRIB_OK;
    const struct trib_agg_tree tree = {.groups = u->n,
                                       .parent = u->parent,
                                       .first = u->first,
                                       .aggregators = u->aggregators,
                                       .leaf_of = u->of_rank};
    out->tree = trib_agg_tree_copy(&tree, t->places.ranks);
    return out->tree ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

/* Log each aggregator of the tree, with its ranks and the group above it. */
static void log_tree(const struct trib_tree_layout *l, int ranks,
                     const struct trib_log *log)
{
    const struct trib_agg_tree *tree = l->tree;

    for (int u = 0; tree && u < tree->groups; u++) {
        char above[32] = "root";
        int n = 0;
        for (int r = 0; r < ranks; r++)
            n += tree->leaf_of[r] == u;
        if (u)
            snprintf(above, sizeof(above), "sends to group %d", tree->parent[u]);
        for (int i = tree->first[u]; i < tree->first[u + 1]; i++)
            trib_log(log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                     "group %d: %s, for %d rank%s; %s", u,
                     l->addresses[tree->aggregators[i]], n, n == 1 ? "" : "s", above);
    }
}

trib_status_t trib_tree_layout_make(const struct trib_config *cfg,
                                    const char *const *hosts, int ranks,
                                    const struct trib_log *log, struct trib_error *err,
                                    struct trib_tree_layout *out)
{
    struct text *t = calloc(1, sizeof(*t));
    struct trib_agg_groups groups = {0};

    assert(ranks > 0);
    out->n = 0;
    out->tree = NULL;
    if (!t)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for aggregators");
    t->err = err;
    snprintf(t->copy, sizeof(t->copy), "%s", cfg->service);
    read_groups(t);
    if (t->status == TRIB_OK && t->groups > 0)
        place_by_names(t, hosts, ranks, log);
    else if (t->status == TRIB_OK && cfg->racks[0])
        place_by_racks(t, cfg->racks, hosts, ranks, log);
    else if (t->status == TRIB_OK)
        t->status = trib_places_make(0, t->aggregators, ranks, &t->places);
    if (t->status == TRIB_OK)
        t->status = trib_agg_groups_make(&t->places, err, &groups);
    if (t->status == TRIB_OK)
        t->status = take_groups(t, &groups, out);
    if (t->status == TRIB_OK)
        log_tree(out, ranks, log);
    const trib_status_t st = t->status;
    trib_agg_groups_free(&groups);
    trib_places_free(&t->places);
    free(t->hosts);
    free(t);
    return st == TRIB_ERR_INVALID ? TRIB_ERR_CONFIG : st;
}

void trib_tree_layout_free(struct trib_tree_layout *layout)
{
    free(layout->tree);
    layout->tree = NULL;
    layout->n = 0;
}
