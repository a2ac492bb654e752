/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of a fabric's switches, and the switch of each host.
 */
#include "topo/racks/racks_fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

struct label {
    char text[TRIB_HOSTNAME_BYTES];
    int index;
};

static int label_compare(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->text, ((const struct label *)b)->text);
}

/* A managed switch is described as "MF0;NAME:MODEL/U1"; the chips of a large one share
 * NAME. */
static void short_name(const char *description, char out[TRIB_HOSTNAME_BYTES])
{
    const char *first = strchr(description, ';');
    const char *end = first ? strchr(first, ':') : NULL;

    if (end && end > first + 1)
        snprintf(out, TRIB_HOSTNAME_BYTES, "%.*s", (int)(end - first - 1), first + 1);
    else
        snprintf(out, TRIB_HOSTNAME_BYTES, "%s", description);
}

static bool is_twice(const struct label *sorted, size_t n, size_t i)
{
    return (i > 0 && label_compare(&sorted[i - 1], &sorted[i]) == 0) ||
           (i + 1 < n && label_compare(&sorted[i], &sorted[i + 1]) == 0);
}

/* Use the labels that no other switch has. */
static void take_unique(struct trib_fabric *f, struct label *labels, bool *named)
{
    size_t n = f->n_switches;

    qsort(labels, n, sizeof(*labels), label_compare);
    for (size_t i = 0; i < n; i++) {
        int k = labels[i].index;
        if (named[k] || is_twice(labels, n, i))
            continue;
        memcpy(f->switches[k].name, labels[i].text, sizeof(f->switches[k].name));
        named[k] = true;
    }
}

/* Name switches by id if their name is not unique: those without a label yet, and those
 * whose short name equals another's long one. */
static void take_ids(struct trib_fabric *f, struct label *labels)
{
    size_t n = f->n_switches;

    for (size_t i = 0; i < n; i++) {
        labels[i].index = (int)i;
        memcpy(labels[i].text, f->switches[i].name, sizeof(labels[i].text));
    }
    qsort(labels, n, sizeof(*labels), label_compare);
    for (size_t i = 0; i < n; i++) {
        struct trib_fabric_switch *s = &f->switches[labels[i].index];
        if (is_twice(labels, n, i))
            memcpy(s->name, s->id, sizeof(s->id));
    }
}

trib_status_t trib_fabric_names(struct trib_fabric *f)
{
    size_t n = f->n_switches;
    struct label *shorts = calloc(n, sizeof(*shorts));
    struct label *longs = calloc(n, sizeof(*longs));
    bool *named = calloc(n, sizeof(*named));
    bool room = shorts && longs && named;

    for (size_t i = 0; room && i < n; i++) {
        shorts[i].index = longs[i].index = (int)i;
        short_name(f->switches[i].name, shorts[i].text);
        memcpy(longs[i].text, f->switches[i].name, sizeof(longs[i].text));
    }
    if (room) {
        take_unique(f, shorts, named);
        take_unique(f, longs, named);
        take_ids(f, longs);
    }
    free(shorts);
    free(longs);
    free(named);
    return room ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

/* --- hosts --- */

/* Sort by host, then by switch, then by device. */
static int link_compare(const void *a, const void *b)
{
    const struct trib_fabric_host *x = a;
    const struct trib_fabric_host *y = b;
    int order = strcmp(x->name, y->name);

    if (!order)
        order = (x->from > y->from) - (x->from < y->from);
    if (!order)
        order = strverscmp(x->device, y->device);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Add up the links from `first` that join the same host and switch, to `best`; return
 * the next index. */
static size_t add_up(const struct trib_fabric *f, size_t first,
                     struct trib_fabric_host *best)
{
    size_t i = first;

    *best = f->hosts[first];
    while (++i < f->n_hosts && strcmp(f->hosts[i].name, best->name) == 0 &&
           f->hosts[i].from == best->from)
        best->Gbps += f->hosts[i].Gbps;
    return i;
}

/* With equal bandwidth the first device decides, so that hosts with a switch per device
 * all choose the same switch. */
static bool better(const struct trib_fabric *f, const struct trib_fabric_host *a,
                   const struct trib_fabric_host *b)
{
    int devices = strverscmp(a->device, b->device);

    if (a->Gbps > b->Gbps || a->Gbps < b->Gbps)
        return a->Gbps > b->Gbps;
    if (devices)
        return devices < 0;
    return strverscmp(f->switches[a->from].name, f->switches[b->from].name) < 0;
}

trib_status_t trib_fabric_seat(struct trib_fabric *f)
{
    struct trib_racks_reader *r = f->r;

    qsort(f->hosts, f->n_hosts, sizeof(*f->hosts), link_compare);
    for (size_t i = 0; i < f->n_hosts && !r->no_memory;) {
        struct trib_fabric_host best, other;
        i = add_up(f, i, &best);
        while (i < f->n_hosts && strcmp(f->hosts[i].name, best.name) == 0) {
            i = add_up(f, i, &other);
            if (better(f, &other, &best))
                best = other;
        }
        r->number = best.line;
        trib_racks_add_host(r, best.name, best.from);
        if (!r->no_memory)
            r->hosts[r->n_hosts - 1].Gbps = best.Gbps;
    }
    return r->no_memory ? TRIB_ERR_NO_MEMORY : TRIB_OK;
}
