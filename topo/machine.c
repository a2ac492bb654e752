/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/machine.h"

#include <stdio.h>
#include <string.h>

#include "build-config.h"
#include "topo/hwloc_open.h"

#if HAVE_HWLOC
#include <hwloc.h>

static int count(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);

    return n > 0 ? n : 0;
}

/* Return the size of the first cache of a type; 0: none. */
static size_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);

    return cache && cache->attr ? (size_t)cache->attr->cache.size : 0;
}

/* Read the CPUs to which this process is bound; on another machine all are allowed. */
static void read_allowed(hwloc_topology_t topology, struct trib_machine *out)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    out->cores_allowed = out->cores;
    out->cpus_allowed = out->cpus;
    if (!set || !hwloc_topology_is_thissystem(topology) ||
        hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS)) {
        hwloc_bitmap_free(set);
        return;
    }
    out->cores_allowed = 0;
    out->cpus_allowed = 0;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, object)))
        out->cpus_allowed += hwloc_bitmap_intersects(object->cpuset, set) != 0;
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, object)))
        out->cores_allowed += hwloc_bitmap_intersects(object->cpuset, set) != 0;
    hwloc_bitmap_free(set);
}

void trib_hwloc_machine(hwloc_topology_t topology, struct trib_machine *out)
{
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model =
        package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    *out = (struct trib_machine){.source = "hwloc"};
    out->packages = count(topology, HWLOC_OBJ_PACKAGE);
    out->numa_nodes = count(topology, HWLOC_OBJ_NUMANODE);
    out->cores = count(topology, HWLOC_OBJ_CORE);
    out->cpus = count(topology, HWLOC_OBJ_PU);
    if (out->cores == 0)
        out->cores = out->cpus; /* in some containers the kernel shows no cores */
    out->l1d_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
    out->l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
    out->l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
    out->l3_count = count(topology, HWLOC_OBJ_L3CACHE);
    out->memory_bytes = root->total_memory;
    snprintf(out->model, sizeof(out->model), "%s", model ? model : "");
    read_allowed(topology, out);
    if (out->cores_allowed == 0)
        out->cores_allowed = out->cpus_allowed;
}

/*
 * Read network cards with hwloc's Linux backend only. libpciaccess would first load the
 * names of all known devices and keep them; the libraries of graphics cards would
 * initialise the cards.
 */
static void enable_devices(hwloc_topology_t topology)
{
    static const char *const unwanted[] = {"pci",  "cuda",      "nvml", "opencl",
                                           "rsmi", "levelzero", "gl"};

    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
        hwloc_topology_set_components(
            topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
}

static int describe(hwloc_topology_t topology, const struct trib_hwloc_source *source)
{
    if (source->devices)
        enable_devices(topology);
    if (source->xml && hwloc_topology_set_xml(topology, source->xml))
        return -1;
    return hwloc_topology_load(topology);
}

trib_status_t trib_hwloc_open(const struct trib_hwloc_source *source,
                              struct hwloc_topology **out)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology))
        return TRIB_ERR_NO_MEMORY;
    if (describe(topology, source) || count(topology, HWLOC_OBJ_PU) == 0) {
        hwloc_topology_destroy(topology);
        return TRIB_ERR_INVALID;
    }
    *out = topology;
    return TRIB_OK;
}

static trib_status_t read_hwloc(struct trib_machine *out)
{
    static const struct trib_hwloc_source here = {0};
    struct hwloc_topology *topology;
    trib_status_t status = trib_hwloc_open(&here, &topology);

    if (status != TRIB_OK)
        return status;
    trib_hwloc_machine(topology, out);
    hwloc_topology_destroy(topology);
    return TRIB_OK;
}

#else

trib_status_t trib_hwloc_open(const struct trib_hwloc_source *source,
                              struct hwloc_topology **out)
{
    (void)source;
    (void)out;
    return TRIB_ERR_UNSUPPORTED;
}

void trib_hwloc_machine(struct hwloc_topology *topology, struct trib_machine *out)
{
    (void)topology;
    (void)out;
}

static trib_status_t read_hwloc(struct trib_machine *out)
{
    (void)out;
    return TRIB_ERR_UNSUPPORTED;
}

#endif

void trib_machine_read(struct trib_machine *out)
{
    if (read_hwloc(out) != TRIB_OK)
        trib_machine_read_sysfs("", out);
}

/* List ----------------------------------------------------------------------------- */

static void give(trib_item_fn fn, void *arg, const char *name, const char *value,
                 const char *unit, const char *detail)
{
    struct trib_item item = {.name = name,
                             .value = value,
                             .detail = detail,
                             .origin = "",
                             .unit = unit,
                             .fault = ""};

    fn(arg, &item);
}

static void give_count(trib_item_fn fn, void *arg, const char *name, int value,
                       const char *detail)
{
    char text[16];

    if (value <= 0)
        return;
    snprintf(text, sizeof(text), "%d", value);
    give(fn, arg, name, text, "", detail);
}

static void give_bytes(trib_item_fn fn, void *arg, const char *name, uint64_t bytes,
                       const char *detail)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    char text[32];
    int unit = 0;

    if (bytes == 0)
        return;
    /* Exact, or with at least two digits: 1 MiB, 512 KiB, 31 GiB. */
    while (unit < 3 && (bytes % 1024 == 0 || bytes >= 10 * 1024)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    give(fn, arg, name, text, units[unit], detail);
}

void trib_machine_list(const struct trib_machine *machine, trib_item_fn fn, void *arg)
{
    char detail[48];

    if (machine->model[0])
        give(fn, arg, "cpu", machine->model, "", "model of the first package");
    give_count(fn, arg, "packages", machine->packages, "");
    give_count(fn, arg, "numa nodes", machine->numa_nodes, "");
    snprintf(detail, sizeof(detail), "%d available to this process",
             machine->cores_allowed);
    give_count(fn, arg, "cores", machine->cores, detail);
    snprintf(detail, sizeof(detail), "%d available to this process",
             machine->cpus_allowed);
    give_count(fn, arg, "hardware threads", machine->cpus, detail);
    give_bytes(fn, arg, "L1 data cache", machine->l1d_bytes, "per core");
    give_bytes(fn, arg, "L2 cache", machine->l2_bytes, "per core or group of cores");
    snprintf(detail, sizeof(detail), "one of %d", machine->l3_count);
    give_bytes(fn, arg, "L3 cache", machine->l3_bytes, detail);
    give_bytes(fn, arg, "memory", machine->memory_bytes, "");
    give(fn, arg, "source", machine->source, "", "origin of these values");
}
