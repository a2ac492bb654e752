/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the machine from Linux's /sys and /proc, for builds without hwloc.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "topo/machine.h"

#define CPUS_MAX 8192
#define SET_BYTES (CPUS_MAX / 8)

/* A set of CPUs for CPU_SET_S. */
union cpus {
    cpu_set_t set;
    unsigned char bytes[SET_BYTES];
};

struct reader {
    const char *root;
    union cpus online;
    union cpus allowed;
    union cpus cores_allowed; /* the first CPU of each allowed core */
    struct trib_machine *out;
};

/* Parse "0-3,8" to a set; false if there is no such file. */
static bool read_set(const struct reader *r, const char *path, union cpus *out)
{
    char text[4096];
    char *p = text;

    memset(out, 0, sizeof(*out));
    if (!trib_file_line(r->root, path, text, sizeof(text)))
        return false;
    while (*p) {
        char *end;
        long first = strtol(p, &end, 10);
        if (end == p)
            break;
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu >= 0 && cpu <= last && cpu < CPUS_MAX; cpu++)
            CPU_SET_S((size_t)cpu, SET_BYTES, &out->set);
        p = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            break;
    }
    return true;
}

static bool has(const union cpus *set, int cpu)
{
    return CPU_ISSET_S((size_t)cpu, SET_BYTES, &set->set) != 0;
}

/* Return the first online CPU of a list; `cpu` itself if there is no list. */
static int first_of(const struct reader *r, int cpu, const char *name)
{
    char path[128];
    union cpus set;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    if (!read_set(r, path, &set))
        return cpu;
    for (int i = 0; i < CPUS_MAX; i++)
        if (has(&set, i) && has(&r->online, i))
            return i;
    return cpu;
}

static size_t parse_kib(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    return (size_t)(*end == 'M' ? value << 20 : *end == 'K' ? value << 10 : value);
}

static void read_cache(struct reader *r, int cpu, int index)
{
    char name[96];
    char path[160];
    char level[16];
    char type[32];
    char size[32];

    snprintf(name, sizeof(name), "/sys/devices/system/cpu/cpu%d/cache/index%d", cpu,
             index);
    snprintf(path, sizeof(path), "%s/level", name);
    if (!trib_file_line(r->root, path, level, sizeof(level)))
        return;
    snprintf(path, sizeof(path), "%s/type", name);
    if (!trib_file_line(r->root, path, type, sizeof(type)) ||
        strcmp(type, "Instruction") == 0)
        return;
    snprintf(path, sizeof(path), "%s/size", name);
    if (!trib_file_line(r->root, path, size, sizeof(size)))
        return;
    size_t *bytes = level[0] == '1'   ? &r->out->l1d_bytes
                    : level[0] == '2' ? &r->out->l2_bytes
                    : level[0] == '3' ? &r->out->l3_bytes
                                      : NULL;
    if (!bytes)
        return;
    if (*bytes == 0)
        *bytes = parse_kib(size);
    snprintf(path, sizeof(path), "cache/index%d/shared_cpu_list", index);
    if (level[0] == '3' && first_of(r, cpu, path) == cpu)
        r->out->l3_count++;
}

static void read_cpu(struct reader *r, int cpu)
{
    struct trib_machine *m = r->out;
    int core = first_of(r, cpu, "topology/thread_siblings_list");

    m->cpus++;
    m->cores += core == cpu;
    m->packages += first_of(r, cpu, "topology/core_siblings_list") == cpu;
    for (int index = 0; index < 5; index++)
        read_cache(r, cpu, index);
    if (!has(&r->allowed, cpu))
        return;
    m->cpus_allowed++;
    m->cores_allowed += !has(&r->cores_allowed, core);
    CPU_SET_S((size_t)core, SET_BYTES, &r->cores_allowed.set);
}

static void read_nodes(struct reader *r)
{
    union cpus nodes;

    if (!read_set(r, "/sys/devices/system/node/online", &nodes))
        r->out->numa_nodes = 1;
    else
        r->out->numa_nodes = CPU_COUNT_S(SET_BYTES, &nodes.set);
}

void trib_machine_read_sysfs(const char *root, struct trib_machine *out)
{
    struct reader r = {.root = root, .out = out};
    char memory[64];

    *out = (struct trib_machine){.source = "sysfs"};
    if (!read_set(&r, "/sys/devices/system/cpu/online", &r.online))
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPUS_MAX; i++)
            CPU_SET_S((size_t)i, SET_BYTES, &r.online.set);
    if (root[0] || sched_getaffinity(0, SET_BYTES, &r.allowed.set))
        r.allowed = r.online;
    for (int cpu = 0; cpu < CPUS_MAX; cpu++)
        if (has(&r.online, cpu))
            read_cpu(&r, cpu);
    if (out->cpus_allowed == 0)
        out->cpus = out->cores = out->cpus_allowed = out->cores_allowed = 1;
    read_nodes(&r);
    if (trib_file_field(root, "/proc/meminfo", "MemTotal", true, memory,
                        sizeof(memory)))
        out->memory_bytes = strtoull(memory, NULL, 10) << 10;
    trib_file_field(root, "/proc/cpuinfo", "model name", true, out->model,
                    sizeof(out->model));
}
