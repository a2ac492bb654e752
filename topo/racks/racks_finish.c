/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds the tree from the switches, children and hosts that a format has read.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "topo/racks/racks_reader.h"

/* Indices of raw switches; all arrays share one block. */
struct finish {
    struct trib_racks_reader *r;
    struct trib_racks *out;
    int n; /* switches */
    int *sorted; /* indices sorted by name */
    int *same; /* the first switch of the same name */
    int *child; /* the first child, -1: none; siblings are in name order */
    int *sibling; /* the next sibling */
    int *place; /* position in the tree; -1: not in it (yet) */
    int *order; /* switch at each position */
};

static bool make_room(struct finish *f)
{
    size_t n = (size_t)f->n;
    int *block = malloc((6 * n + 1) * sizeof(*block));

    if (!block)
        return false;
    f->sorted = block;
    f->same = block + n;
    f->child = block + 2 * n;
    f->sibling = block + 3 * n;
    f->place = block + 4 * n;
    f->order = block + 5 * n;
    return true;
}

static struct trib_racks_raw_switch *raw(const struct finish *f, int i)
{
    return &f->r->switches[i];
}

/* --- names --- */

struct name {
    const char *text;
    int index;
};

/* Compare names with numeric order; equal names by index. */
static int name_compare(const void *a, const void *b)
{
    const struct name *x = a;
    const struct name *y = b;
    int names = strverscmp(x->text, y->text);

    return names ? names : x->index - y->index;
}

static trib_status_t sort_names(struct finish *f)
{
    struct name *names = malloc(((size_t)f->n + 1) * sizeof(*names));

    if (!names)
        return TRIB_ERR_NO_MEMORY;
    for (int i = 0; i < f->n; i++)
        names[i] = (struct name){raw(f, i)->name, i};
    qsort(names, (size_t)f->n, sizeof(*names), name_compare);
    for (int i = 0; i < f->n; i++) {
        bool again = i > 0 && strcmp(names[i - 1].text, names[i].text) == 0;
        f->sorted[i] = names[i].index;
        f->same[names[i].index] = again ? f->same[names[i - 1].index] : names[i].index;
    }
    free(names);
    return TRIB_OK;
}

static trib_status_t refuse_twice(const struct finish *f)
{
    for (int i = 0; i < f->n && !f->r->merge; i++)
        if (f->same[i] != i)
            return trib_racks_fail(
                f->r, raw(f, i)->line,
                "switch %s is already on line %d; list all its hosts and "
                "switches on one line",
                raw(f, i)->name, raw(f, f->same[i])->line);
    return TRIB_OK;
}

/* Return the first switch of a name; -1: none. */
static int find_switch(const struct finish *f, const char *name)
{
    int low = 0;
    int high = f->n;

    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strverscmp(name, raw(f, f->sorted[middle])->name);
        if (order == 0)
            return f->same[f->sorted[middle]];
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return -1;
}

static trib_status_t unknown_child(const struct finish *f,
                                   const struct trib_racks_raw_child *child)
{
    const char **names = malloc(((size_t)f->n + 1) * sizeof(*names));
    const char *nearest = NULL;

    if (names) {
        for (int i = 0; i < f->n; i++)
            names[i] = raw(f, i)->name;
        nearest = trib_text_nearest(child->name, names, (size_t)f->n);
    }
    free(names);
    if (nearest)
        return trib_racks_fail(f->r, child->line,
                               "switch %s is not defined; did you mean %s?",
                               child->name, nearest);
    return trib_racks_fail(
        f->r, child->line,
        "switch %s is not defined; add a line with its hosts or switches", child->name);
}

/* --- the tree --- */

/* The first parent given in the file counts. */
static trib_status_t join(struct finish *f)
{
    for (size_t i = 0; i < f->r->n_children; i++) {
        const struct trib_racks_raw_child *c = &f->r->children[i];
        int child = find_switch(f, c->name);
        if (child < 0)
            return unknown_child(f, c);
        if (child == f->same[c->parent])
            return trib_racks_fail(f->r, c->line,
                                   "switch %s is below itself; remove it "
                                   "from the list",
                                   c->name);
        if (raw(f, child)->parent < 0)
            raw(f, child)->parent = c->parent;
    }
    return TRIB_OK;
}

/* List the children of each switch, and the roots. Names are visited in reverse order,
 * each prepended. */
static int list_children(struct finish *f)
{
    int root = -1;

    for (int i = 0; i < f->n; i++)
        f->child[i] = f->place[i] = -1;
    for (int k = f->n - 1; k >= 0; k--) {
        int i = f->sorted[k];
        if (f->same[i] != i)
            continue;
        int parent = raw(f, i)->parent;
        int *first = parent < 0 ? &root : &f->child[f->same[parent]];
        f->sibling[i] = *first;
        *first = i;
    }
    return root;
}

/* Return the first child, else the next sibling of the switch or of its nearest
 * ancestor that has one. */
static int next_of(const struct finish *f, int i)
{
    if (f->child[i] >= 0)
        return f->child[i];
    while (f->sibling[i] < 0) {
        if (raw(f, i)->parent < 0)
            return -1;
        i = f->same[raw(f, i)->parent];
    }
    return f->sibling[i];
}

static trib_status_t walk(struct finish *f, int root)
{
    int n = 0;

    for (int i = root; i >= 0; i = next_of(f, i)) {
        f->place[i] = n;
        f->order[n++] = i;
    }
    for (int i = 0; i < f->n; i++)
        if (f->same[i] == i && f->place[i] < 0)
            return trib_racks_fail(
                f->r, raw(f, i)->line,
                "switch %s is in a cycle of switches; remove it from one of "
                "them",
                raw(f, i)->name);
    f->out->n_switches = n;
    return TRIB_OK;
}

static trib_status_t plant(struct finish *f)
{
    struct trib_racks *out = f->out;
    size_t n = (size_t)out->n_switches;

    out->switches = calloc(n + 1, sizeof(*out->switches));
    if (!out->switches)
        return TRIB_ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const struct trib_racks_raw_switch *from = raw(f, f->order[i]);
        struct trib_racks_switch *to = &out->switches[i];
        memcpy(to->name, from->name, sizeof(to->name));
        to->Gbps = from->Gbps;
        to->parent = from->parent < 0 ? -1 : f->place[f->same[from->parent]];
        to->depth = to->parent < 0 ? 0 : out->switches[to->parent].depth + 1;
        assert(to->parent < (int)i);
    }
    return TRIB_OK;
}

/* --- hosts --- */

static int host_compare(const void *a, const void *b)
{
    const struct trib_racks_raw_host *x = a;
    const struct trib_racks_raw_host *y = b;
    int names = strverscmp(x->name, y->name);

    return names ? names : x->line - y->line;
}

static trib_status_t seat_host(struct finish *f, const struct trib_racks_raw_host *from)
{
    struct trib_racks *out = f->out;
    int rack = f->place[f->same[from->rack]];
    const struct trib_racks_host *last =
        out->n_hosts > 0 ? &out->hosts[out->n_hosts - 1] : NULL;

    if (last && strcmp(last->name, from->name) == 0) {
        if (last->rack == rack)
            return TRIB_OK;
        return trib_racks_fail(
            f->r, from->line,
            "host %s is on %s, but line %d has it on %s; keep only one", from->name,
            out->switches[rack].name, (from - 1)->line, out->switches[last->rack].name);
    }
    struct trib_racks_host *to = &out->hosts[out->n_hosts++];
    memcpy(to->name, from->name, sizeof(to->name));
    to->rack = rack;
    to->Gbps = from->Gbps;
    out->switches[rack].hosts++;
    return TRIB_OK;
}

static trib_status_t seat_hosts(struct finish *f)
{
    size_t n = f->r->n_hosts;
    trib_status_t status = TRIB_OK;

    if (n == 0)
        return trib_racks_fail(f->r, 0,
                               "no host is on any switch; write lines such as "
                               "\"rack1: host1 host2\"");
    f->out->hosts = calloc(n, sizeof(*f->out->hosts));
    if (!f->out->hosts)
        return TRIB_ERR_NO_MEMORY;
    qsort(f->r->hosts, n, sizeof(*f->r->hosts), host_compare);
    for (size_t i = 0; i < n && status == TRIB_OK; i++)
        status = seat_host(f, &f->r->hosts[i]);
    return status;
}

/* Omit switches without a host below. Parents come first, so in reverse order each
 * switch is complete when it is added to its parent. */
static trib_status_t prune(struct trib_racks *out)
{
    int n = out->n_switches;
    /* host count, later the new index */
    int *below = calloc((size_t)n + 1, sizeof(*below));
    int kept = 0;

    if (!below)
        return TRIB_ERR_NO_MEMORY;
    for (int i = n - 1; i >= 0; i--) {
        below[i] += out->switches[i].hosts;
        if (out->switches[i].parent >= 0)
            below[out->switches[i].parent] += below[i];
    }
    for (int i = 0; i < n; i++) {
        if (below[i] == 0)
            continue;
        out->switches[kept] = out->switches[i];
        int *parent = &out->switches[kept].parent;
        *parent = *parent < 0 ? -1 : below[*parent];
        below[i] = kept++;
    }
    for (int i = 0; i < out->n_hosts; i++)
        out->hosts[i].rack = below[out->hosts[i].rack];
    out->n_switches = kept;
    free(below);
    return TRIB_OK;
}

trib_status_t trib_racks_finish(struct trib_racks_reader *reader,
                                struct trib_racks *out)
{
    struct finish f = {.r = reader, .out = out, .n = (int)reader->n_switches};
    trib_status_t status = TRIB_ERR_NO_MEMORY;

    if (reader->no_memory || !make_room(&f))
        return status;
    status = sort_names(&f);
    if (status == TRIB_OK)
        status = refuse_twice(&f);
    if (status == TRIB_OK)
        status = join(&f);
    if (status == TRIB_OK)
        status = walk(&f, list_children(&f));
    if (status == TRIB_OK)
        status = plant(&f);
    if (status == TRIB_OK)
        status = seat_hosts(&f);
    if (status == TRIB_OK)
        status = prune(out);
    free(f.sorted);
    return status;
}
