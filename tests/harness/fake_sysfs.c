/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Linux shows of the fake's devices below /sys and /dev, written to a folder.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/fake_hub.h"

#define CLASS "sys/class/infiniband/%s"

struct tree {
    const char *root;
    int host, device, port;
    const char *name; /* of the device */
    bool failed;
};

static void make_folders(char *path, size_t from)
{
    for (char *slash = path + from; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
}

/* Replace a file by one line. */
static void put(struct tree *t, const char *path, const char *line)
{
    char full[512], next[520];

    snprintf(full, sizeof(full), "%s/%s", t->root, path);
    snprintf(next, sizeof(next), "%s.new", full);
    make_folders(full, strlen(t->root) - 1);
    FILE *file = fopen(next, "w");
    if (!file) {
        t->failed = true;
        return;
    }
    fprintf(file, "%s\n", line);
    t->failed |= fclose(file) != 0 || rename(next, full) != 0;
}

static void put_port(struct tree *t, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put_port(struct tree *t, const char *name, const char *format, ...)
{
    char path[256], line[128];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    snprintf(path, sizeof(path), CLASS "/ports/%d/%s", t->name, t->port, name);
    put(t, path, line);
}

static void put_device(struct tree *t, const char *folder, const char *name,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

static void put_device(struct tree *t, const char *folder, const char *name,
                       const char *format, ...)
{
    char path[256], line[128];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    put(t, path, line);
}

/* Ports ---------------------------------------------------------------------------- */

static const struct {
    uint8_t speed;
    const char *name;
    double gbits;
} speeds[] = {{1, "SDR", 2.5}, {2, "DDR", 5},   {4, "QDR", 10},  {8, "FDR10", 10},
              {16, "FDR", 14}, {32, "EDR", 25}, {64, "HDR", 50}, {128, "NDR", 100}};

static void put_rate(struct tree *t, const struct fake_port_opts *opts)
{
    static const int lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    const int n = opts->active_width <= 16 ? lanes[opts->active_width] : 0;

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        if (speeds[i].speed == opts->active_speed)
            put_port(t, "rate", "%g Gb/sec (%dX %s)", n * speeds[i].gbits, n,
                     speeds[i].name);
}

static void put_gid(struct tree *t, const struct fake_port *port, int i)
{
    const struct ibv_gid_entry *entry = &port->gids[i];
    const uint8_t *raw = entry->gid.raw;
    char name[64], text[48] = "";

    for (int k = 0; k < 16; k += 2)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%02x%02x",
                 k ? ":" : "", raw[k], raw[k + 1]);
    snprintf(name, sizeof(name), "gids/%d", i);
    put_port(t, name, "%s",
             entry->port_num ? text : "0000:0000:0000:0000:0000:0000:0000:0000");
    if (!entry->port_num)
        return;
    snprintf(name, sizeof(name), "gid_attrs/types/%d", i);
    put_port(t, name, "%s",
             entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
    snprintf(name, sizeof(name), "gid_attrs/ndevs/%d", i);
    put_port(t, name, "fab%dp%d", t->device, t->port);
}

static void put_pkeys(struct tree *t, const struct fake_port_opts *opts)
{
    char name[64];

    for (int i = 0; i < FAKE_PKEYS; i++) {
        snprintf(name, sizeof(name), "pkeys/%d", i);
        put_port(t, name, "0x%04x", opts->pkeys[i]);
    }
}

static void put_counters(struct tree *t, const struct fake_port *port)
{
    char name[64];

    for (int i = 0; i < FAKE_COUNTERS; i++) {
        snprintf(name, sizeof(name), "%s/%s",
                 i < FAKE_HW_FIRST ? "counters" : "hw_counters",
                 fake_verbs_counter_name((enum fake_counter)i));
        put_port(t, name, "%llu", (unsigned long long)port->counters[i]);
    }
}

static void write_port(struct tree *t)
{
    const struct fake_port *port = fake_port(t->host, t->device, t->port);
    const bool up = !port->down && !fake_opts.port_down;
    char path[128];

    put_port(t, "state", "%s", up ? "4: ACTIVE" : "1: DOWN");
    put_port(t, "phys_state", "%s", up ? "5: LinkUp" : "3: Disabled");
    put_port(t, "link_layer", "%s", fake_opts.infiniband ? "InfiniBand" : "Ethernet");
    put_port(t, "lid", "0x%x", fake_lid(t->device, t->port));
    put_rate(t, &port->opts);
    for (int i = 0; i < FAKE_GIDS; i++)
        put_gid(t, port, i);
    put_pkeys(t, &port->opts);
    put_counters(t, port);
    snprintf(path, sizeof(path), "sys/kernel/config/rdma_cm/%s/ports/%d", t->name,
             t->port);
    put_device(t, path, "default_roce_tos", "%d", port->opts.roce_tos);
    put_device(t, path, "default_roce_mode", "RoCE v2");
}

/* Devices -------------------------------------------------------------------------- */

static void write_pci(struct tree *t, const struct fake_device_opts *opts)
{
    char folder[128], link[256], target[160];

    snprintf(folder, sizeof(folder), "sys/devices/pci%.7s/%s", opts->pci, opts->pci);
    put_device(t, folder, "numa_node", "%d", opts->numa_node);
    put_device(t, folder, "class", "0x020700");
    if (opts->cpus[0])
        put_device(t, folder, "local_cpulist", "%s", opts->cpus);
    else
        put_device(t, folder, "local_cpulist", "0-%ld",
                   sysconf(_SC_NPROCESSORS_CONF) - 1);
    snprintf(link, sizeof(link), "%s/" CLASS "/device", t->root, t->name);
    snprintf(target, sizeof(target), "../../../../%s", folder);
    t->failed |= symlink(target, link) != 0 && errno != EEXIST;
}

static void write_device(struct tree *t)
{
    const struct fake_device_opts *opts = &fake_device(t->host, t->device)->opts;
    const bool iwarp = fake_opts.iwarp || opts->iwarp;
    char folder[128];

    t->name = opts->name;
    snprintf(folder, sizeof(folder), CLASS, t->name);
    put_device(t, folder, "node_type", "%s", iwarp ? "4: RNIC" : "1: CA");
    put_device(t, folder, "node_guid", "0000:0000:0000:%04x",
               1 + t->device + t->host * FAKE_DEVICES_MAX);
    write_pci(t, opts);
    snprintf(folder, sizeof(folder), "sys/class/infiniband_verbs/uverbs%d", t->device);
    put_device(t, folder, "ibdev", "%s", t->name);
    snprintf(folder, sizeof(folder), "uverbs%d", t->device);
    put_device(t, "dev/infiniband", folder, "%s", "");
    for (t->port = 1; t->port <= fake_opts.ports; t->port++)
        write_port(t);
}

bool fake_verbs_sysfs(const char *root, int host)
{
    struct tree t = {.root = root, .host = host};

    fake_lock();
    for (; t.device < fake_opts.devices; t.device++)
        write_device(&t);
    fake_unlock();
    return !t.failed;
}
