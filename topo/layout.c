/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "topo/groups.h"
#include "topo/layout_hwloc.h"
#include "topo/rdma.h"

/* --- distances --- */

enum trib_distance trib_layout_distance(const struct trib_layout *layout, int core,
                                        int nic)
{
    const struct trib_layout_core *c = &layout->cores[core];
    const struct trib_layout_nic *n = &layout->nics[nic];

    if (n->package >= 0 && n->package != c->package)
        return TRIB_DISTANCE_MACHINE; /* even if they share a NUMA node */
    if (n->numa >= 0 && n->numa == c->numa)
        return TRIB_DISTANCE_NUMA;
    return n->package >= 0 ? TRIB_DISTANCE_PACKAGE : TRIB_DISTANCE_MACHINE;
}

static enum trib_distance least_distance(const struct trib_layout *layout, int core)
{
    enum trib_distance least = TRIB_DISTANCE_MACHINE;

    for (int nic = 0; nic < layout->n_nics; nic++) {
        enum trib_distance d = trib_layout_distance(layout, core, nic);
        least = d < least ? d : least;
    }
    return least;
}

/* Return true if two cores have the same set of nearest devices. */
static bool same_choice(const struct trib_layout *layout, int a, int b)
{
    enum trib_distance least = least_distance(layout, a);

    if (least_distance(layout, b) != least)
        return false;
    for (int nic = 0; nic < layout->n_nics; nic++)
        if ((trib_layout_distance(layout, a, nic) == least) !=
            (trib_layout_distance(layout, b, nic) == least))
            return false;
    return true;
}

/* Return the k-th nearest device, or the number of nearest devices if k is -1. */
static int nearest(const struct trib_layout *layout, int core, int k)
{
    enum trib_distance least = least_distance(layout, core);
    int n = 0;

    for (int nic = 0; nic < layout->n_nics; nic++) {
        if (trib_layout_distance(layout, core, nic) != least)
            continue;
        if (n++ == k)
            return nic;
    }
    return n;
}

int trib_layout_nic(const struct trib_layout *layout, int core)
{
    int sharers = 0;
    int index = 0;

    if (layout->n_nics == 0)
        return -1;
    for (int i = 0; i < layout->n_cores; i++) {
        bool same = same_choice(layout, core, i);
        sharers += same;
        index += same && i < core;
    }
    long choices = nearest(layout, core, -1);
    return nearest(layout, core, (int)(index * choices / sharers));
}

void trib_layout_place(const struct trib_layout *layout, int core,
                       struct trib_rank_place *out)
{
    const struct trib_layout_core *c = &layout->cores[core];
    int nic = trib_layout_nic(layout, core);

    memset(out, 0, sizeof(*out)); /* ranks send it: no uninitialised bytes */
    snprintf(out->host, sizeof(out->host), "%s", layout->host);
    snprintf(out->nic, sizeof(out->nic), "%s", nic < 0 ? "" : layout->nics[nic].name);
    out->package = c->package;
    out->numa = c->numa;
    out->l3 = c->l3;
}

void trib_layout_bound(const struct trib_layout *layout, const cpu_set_t *cpus,
                       struct trib_rank_place *out)
{
    bool any = false;

    memset(out, 0, sizeof(*out));
    snprintf(out->host, sizeof(out->host), "%s", layout->host);
    out->package = out->numa = out->l3 = -1;
    for (int i = 0; i < layout->n_cores; i++) {
        const struct trib_layout_core *c = &layout->cores[i];
        if (c->cpu < 0 || c->cpu >= CPU_SETSIZE || !CPU_ISSET(c->cpu, cpus))
            continue;
        if (!any)
            trib_layout_place(layout, i, out);
        any = true;
        out->package = out->package == c->package ? c->package : -1;
        out->numa = out->numa == c->numa ? c->numa : -1;
        out->l3 = out->l3 == c->l3 ? c->l3 : -1;
    }
    if (out->package < 0)
        memset(out->nic, 0, sizeof(out->nic));
}

/* --- without hwloc --- */

/* Return the part of core i of n, in `parts` equal parts; -1: no parts. */
static int part_of(int i, int n, int parts)
{
    return parts > 0 ? (int)((long)i * parts / n) : -1;
}

static void add_port(void *arg, const struct trib_rdma_port *port)
{
    struct trib_layout *l = arg;

    if (port->port != 1 || !l->nics)
        return;
    struct trib_layout_nic *nic = &l->nics[l->n_nics++];
    snprintf(nic->name, sizeof(nic->name), "%.31s", port->device);
    snprintf(nic->netdev, sizeof(nic->netdev), "%.15s", port->netdev);
    nic->rdma = true;
    nic->package = nic->numa = -1;
}

static void ignore_port(void *arg, const struct trib_rdma_port *port)
{
    (void)arg;
    (void)port;
}

static trib_status_t read_sysfs(struct trib_layout *l)
{
    trib_machine_read_sysfs("", &l->machine);
    const struct trib_machine *m = &l->machine;
    int ports = trib_rdma_each("", ignore_port, NULL);

    l->n_cores = m->cores;
    l->n_numa = m->numa_nodes;
    l->cores = calloc((size_t)l->n_cores, sizeof(*l->cores));
    l->numa = calloc((size_t)l->n_numa + 1, sizeof(*l->numa));
    l->nics = calloc((size_t)ports + 1, sizeof(*l->nics));
    if (!l->cores || !l->numa || !l->nics)
        return TRIB_ERR_NO_MEMORY;
    for (int i = 0; i < l->n_cores; i++)
        l->cores[i] = (struct trib_layout_core){
            .cpu = i,
            .package = part_of(i, m->cores, m->packages),
            .numa = part_of(i, m->cores, m->numa_nodes),
            .l3 = part_of(i, m->cores, m->l3_count),
        };
    for (int i = 0; i < l->n_numa; i++)
        l->numa[i] = (struct trib_layout_numa){
            .package = part_of(i, l->n_numa, m->packages),
            .memory_bytes = m->memory_bytes / (uint64_t)l->n_numa,
        };
    trib_rdma_each("", add_port, l);
    return TRIB_OK;
}

/* --- read a layout --- */

static int nic_compare(const void *a, const void *b)
{
    const struct trib_layout_nic *x = a;
    const struct trib_layout_nic *y = b;

    return strverscmp(x->name, y->name);
}

static trib_status_t explain(trib_status_t status, const char *xml,
                             struct trib_error *err)
{
    const char *file = xml ? xml : "this machine";

    if (status == TRIB_ERR_UNSUPPORTED)
        return trib_fail(err, status,
                         "%s cannot be read: this library is built without hwloc",
                         file);
    if (status == TRIB_ERR_NO_MEMORY)
        return trib_fail(err, status, "no memory for the layout of %s", file);
    return trib_fail(err, status,
                     "%s does not describe a machine: create it with lstopo FILE.xml",
                     file);
}

trib_status_t trib_layout_read(const char *xml, struct trib_error *err,
                               struct trib_layout *out)
{
    struct trib_layout layout = {0};

    if (xml && access(xml, R_OK))
        return trib_fail(err, TRIB_ERR_INVALID, "%s cannot be read: %m", xml);
    trib_status_t status = trib_layout_read_hwloc(xml, &layout);
    if (!xml && status != TRIB_OK) {
        trib_layout_free(&layout);
        status = read_sysfs(&layout);
    }
    if (status != TRIB_OK) {
        trib_layout_free(&layout);
        return explain(status, xml, err);
    }
    if (!layout.host[0] && (xml || !trib_host_name(layout.host)))
        snprintf(layout.host, sizeof(layout.host), "host");
    qsort(layout.nics, (size_t)layout.n_nics, sizeof(*layout.nics), nic_compare);
    *out = layout;
    return TRIB_OK;
}

