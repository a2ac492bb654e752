/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/layout_hwloc.h"

#include "build-config.h"

#if HAVE_HWLOC
#include <assert.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/hwloc_open.h"

/* Return the number of the object of a type that contains an object, or equals it; -1:
 * none. */
static int number_of(hwloc_topology_t topology, hwloc_obj_t object,
                     hwloc_obj_type_t type)
{
    hwloc_obj_t each = NULL;

    while ((each = hwloc_get_next_obj_by_type(topology, type, each)))
        if (hwloc_bitmap_isincluded(object->cpuset, each->cpuset))
            return (int)each->logical_index;
    return -1;
}

/* Return the first NUMA node of a core, which may have several. */
static int first_numa(hwloc_topology_t topology, hwloc_obj_t core)
{
    hwloc_obj_t node = NULL;

    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isset(core->nodeset, node->os_index))
            return (int)node->logical_index;
    return -1;
}

static void read_core(hwloc_topology_t topology, hwloc_obj_t core,
                      struct trib_layout_core *out)
{
    *out = (struct trib_layout_core){
        .cpu = hwloc_bitmap_first(core->cpuset),
        .package = number_of(topology, core, HWLOC_OBJ_PACKAGE),
        .numa = first_numa(topology, core),
        .l3 = number_of(topology, core, HWLOC_OBJ_L3CACHE),
    };
}

/* In some containers the kernel shows hardware threads but no cores. */
static hwloc_obj_type_t core_type(hwloc_topology_t topology)
{
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE
                                                                  : HWLOC_OBJ_PU;
}

static bool read_cores(hwloc_topology_t topology, struct trib_layout *l)
{
    hwloc_obj_type_t type = core_type(topology);
    int n = hwloc_get_nbobjs_by_type(topology, type);

    assert(n > 0); /* checked by trib_hwloc_open */
    l->cores = calloc((size_t)n, sizeof(*l->cores));
    if (!l->cores)
        return false;
    for (l->n_cores = 0; l->n_cores < n; l->n_cores++)
        read_core(topology, hwloc_get_obj_by_type(topology, type, (unsigned)l->n_cores),
                  &l->cores[l->n_cores]);
    return true;
}

static bool read_numa(hwloc_topology_t topology, struct trib_layout *l)
{
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

    l->numa = calloc(n > 0 ? (size_t)n : 1, sizeof(*l->numa));
    if (!l->numa)
        return false;
    for (; l->n_numa < n; l->n_numa++) {
        hwloc_obj_t node =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)l->n_numa);
        l->numa[l->n_numa] = (struct trib_layout_numa){
            .package = number_of(topology, node, HWLOC_OBJ_PACKAGE),
            .memory_bytes = node->attr->numanode.local_memory,
        };
    }
    return true;
}

/* --- devices --- */

static bool is_kind(hwloc_obj_t device, hwloc_obj_osdev_type_t kind)
{
    return device->attr->osdev.type == kind && device->name && device->parent &&
           (kind != HWLOC_OBJ_OSDEV_NETWORK ||
            device->parent->type == HWLOC_OBJ_PCI_DEVICE);
}

static int count_kind(hwloc_topology_t topology, hwloc_obj_osdev_type_t kind)
{
    hwloc_obj_t device = NULL;
    int n = 0;

    while ((device = hwloc_get_next_osdev(topology, device)))
        n += is_kind(device, kind);
    return n;
}

/* Return the network device of the same card. */
static const char *netdev_of(hwloc_obj_t device)
{
    for (hwloc_obj_t o = device->parent->io_first_child; o; o = o->next_sibling)
        if (o->type == HWLOC_OBJ_OS_DEVICE && is_kind(o, HWLOC_OBJ_OSDEV_NETWORK))
            return o->name;
    return "";
}

static void read_nic(hwloc_topology_t topology, hwloc_obj_t device,
                     struct trib_layout_nic *out)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);

    out->rdma = is_kind(device, HWLOC_OBJ_OSDEV_OPENFABRICS);
    snprintf(out->name, sizeof(out->name), "%.31s", device->name);
    snprintf(out->netdev, sizeof(out->netdev), "%.15s",
             out->rdma ? netdev_of(device) : "");
    out->package = number_of(topology, near, HWLOC_OBJ_PACKAGE);
    out->numa = number_of(topology, near, HWLOC_OBJ_NUMANODE);
}

static bool read_nics(hwloc_topology_t topology, struct trib_layout *l)
{
    hwloc_obj_osdev_type_t kind = HWLOC_OBJ_OSDEV_OPENFABRICS;
    int n = count_kind(topology, kind);
    hwloc_obj_t device = NULL;

    if (n == 0) {
        kind = HWLOC_OBJ_OSDEV_NETWORK;
        n = count_kind(topology, kind);
    }
    l->nics = calloc((size_t)n + 1, sizeof(*l->nics));
    if (!l->nics)
        return false;
    while ((device = hwloc_get_next_osdev(topology, device)))
        if (is_kind(device, kind))
            read_nic(topology, device, &l->nics[l->n_nics++]);
    assert(l->n_nics == n);
    return true;
}

trib_status_t trib_layout_read_hwloc(const char *xml, struct trib_layout *out)
{
    const struct trib_hwloc_source source = {.xml = xml, .devices = true};
    struct hwloc_topology *topology;
    trib_status_t status = trib_hwloc_open(&source, &topology);

    if (status != TRIB_OK)
        return status;
    const char *host =
        hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "HostName");
    if (xml && host)
        snprintf(out->host, sizeof(out->host), "%.64s", host);
    trib_hwloc_machine(topology, &out->machine);
    bool room = read_cores(topology, out) && read_numa(topology, out) &&
                read_nics(topology, out);
    hwloc_topology_destroy(topology);
    return room ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

#else

trib_status_t trib_layout_read_hwloc(const char *xml, struct trib_layout *out)
{
    (void)xml;
    (void)out;
    return TRIB_ERR_UNSUPPORTED;
}

#endif
