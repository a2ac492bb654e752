/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_doctor on one host: its resources and limits.
 */
#include "inspect/doctor/doctor_parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "base/library.h"
#include "base/map_watch.h"
#include "base/meminfo.h"
#include "base/text.h"
#include "topo/machine.h"
#include "topo/rdma.h"
#include "transport/open.h"

#define OK TRIB_VERDICT_OK
#define WARN TRIB_VERDICT_WARN
#define FAIL TRIB_VERDICT_FAIL
#define MIB ((uint64_t)1 << 20)
#define MEMLOCK_MIN (64 * MIB) /* slots of a few peers; below, RDMA fails at once */
#define FILE_MIN (2 * MIB + 4096) /* size that the transport shm requests when opened */
#define SHM_MIN (256 * MIB)
#define MEMORY_MIN (256 * MIB)
#define INITIAL_PID_SPACE \
    "pid:[4026531836]" /* a constant of Linux: not a container */

static void check_version(struct trib_doctor *d)
{
    struct utsname u;

    if (uname(&u) == 0)
        trib_report_say(&d->report, OK, "version", "", "tributary %s, %s %s on %s",
                        trib_version(), u.sysname, u.release, u.machine);
}

/* RDMA ----------------------------------------------------------------------------- */

struct rdma {
    struct trib_doctor *d;
    int active;
};

static const char *cure_of_state(const struct trib_rdma_port *p)
{
    if (strcmp(p->link_layer, "Ethernet") == 0)
        return "bring its network device up (ip link set DEVICE up); check cable and "
               "switch port";
    if (strcmp(p->state, "INIT") == 0)
        return "the link is up but there is no subnet manager: start opensm on a host "
               "of the fabric, or enable a switch's";
    return "check cable and switch port; ibstat shows details";
}

static void check_file(struct trib_doctor *d, const struct trib_rdma_port *p)
{
    if (!p->file_there)
        trib_report_say(
            &d->report, FAIL, "rdma",
            "load the module ib_uverbs; pass its devices to containers "
            "(--device=/dev/infiniband)",
            "%s has no device file%s%s", p->device, p->file[0] ? " " : "", p->file);
    else if (!p->file_open)
        trib_report_say(&d->report, FAIL, "rdma",
                        "allow this user to read and write it (as rdma-core's udev "
                        "rules do)",
                        "%s: no permission to open %s", p->device, p->file);
}

static bool is_iwarp(const struct trib_doctor *d, const struct trib_rdma_port *p)
{
    char path[128], type[32];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", p->device);
    return trib_file_line(d->folder, path, type, sizeof(type)) && type[0] == '4';
}

static void say_iwarp(struct trib_doctor *d, const struct trib_rdma_port *p)
{
    trib_report_say(&d->report, WARN, "rdma",
                    "switch it to RoCE if its driver can, or use TCP",
                    "%s is an iWARP device, which cannot write with an immediate: "
                    "verbs does not use it",
                    p->device);
}

static void check_objects(struct trib_doctor *d)
{
    struct trib_cgroup_rdma limit;

    trib_cgroup_read_rdma(d->folder, &limit);
    if (limit.limits[0])
        trib_report_say(&d->report, WARN, "rdma",
                        "write max to rdma.max of the group, for each device",
                        "the control group of this process limits RDMA objects: %s "
                        "(%s); each rank needs a handle for each device, and objects "
                        "for each peer",
                        limit.limits, limit.file);
}

static void check_roce(struct trib_doctor *d, const struct trib_rdma_port *p)
{
    if (p->gids == 0)
        trib_report_say(&d->report, FAIL, "rdma",
                        "assign its network device an address and bring it up",
                        "%s port %d has no GID: it cannot be addressed", p->device,
                        p->port);
    else if (p->gids_v2 == 0)
        trib_report_say(
            &d->report, WARN, "rdma",
            "assign its network device an IP address, and use RoCE v2",
            "%s port %d has only RoCE v1 GIDs, which cannot be routed", p->device,
            p->port);
    if (p->netdev_mtu && p->active_mtu < 4096)
        trib_report_say(
            &d->report, WARN, "rdma",
            "if all switches on the path allow it: ip link set DEVICE mtu 9000, on all "
            "hosts",
            "%s port %d: frames of %d bytes (MTU of %s) carry RDMA packets of %d "
            "bytes, but 4096 are possible",
            p->device, p->port, p->netdev_mtu, p->netdev, p->active_mtu);
}

static void check_port(void *arg, const struct trib_rdma_port *p)
{
    struct rdma *rdma = arg;
    struct trib_doctor *d = rdma->d;
    char mtu[32] = "";
    bool active = strcmp(p->state, "ACTIVE") == 0;

    rdma->active += active;
    if (p->active_mtu)
        snprintf(mtu, sizeof(mtu), ", active MTU %d", p->active_mtu);
    trib_report_say(
        &d->report, active ? OK : WARN, "rdma", active ? "" : cure_of_state(p),
        "%s port %d: %s, %s%s%s, %s, %d GID%s%s", p->device, p->port, p->link_layer,
        p->state, p->physical[0] ? "/" : "", p->physical,
        p->rate[0] ? p->rate : "rate unknown", p->gids, p->gids == 1 ? "" : "s", mtu);
    const bool iwarp = is_iwarp(d, p);
    if (p->port == 1) {
        check_file(d, p);
        if (iwarp)
            say_iwarp(d, p);
    }
    if (active && !iwarp && strcmp(p->link_layer, "Ethernet") == 0)
        check_roce(d, p);
}

static bool opens(const char *library)
{
    char why[160];

    /* Keep the library open, as its users do: UCX leaks memory when unloaded. */
    return trib_library_open(library, NULL, 0, NULL, why, sizeof(why));
}

static void check_library(struct trib_doctor *d, const char *library,
                          const char *package, bool needed)
{
    char cure[64];

    snprintf(cure, sizeof(cure), "install the package %s", package);
    if (opens(library))
        trib_report_say(&d->report, OK, "library", "", "%s can be loaded", library);
    else if (needed)
        trib_report_say(&d->report, WARN, "library", cure,
                        "%s cannot be loaded, but there are RDMA devices", library);
}

/* The cache is off by default, so a kernel without its events is no fault. */
static void check_cache(struct trib_doctor *d)
{
    const char *why = trib_map_watch_start(NULL);

    if (!why)
        trib_map_watch_stop();
    trib_report_say(&d->report, OK, "rdma", "", "verbs:cache %s%s",
                    why ? "would copy memory of malloc: "
                        : "can register memory of malloc",
                    why ? why : "");
}

static void check_rdma(struct trib_doctor *d)
{
    struct rdma rdma = {.d = d};
    int ports = trib_rdma_each(d->folder, check_port, &rdma);

    if (ports == 0)
        trib_report_say(&d->report, OK, "rdma", "", "no RDMA device on this host");
    else if (rdma.active == 0)
        trib_report_say(&d->report, FAIL, "rdma", "see the lines above",
                        "none of the %d RDMA ports is active", ports);
    if (ports > 0)
        check_objects(d);
    const char *cure = trib_transport_absent("verbs");
    if (cure && ports > 0)
        trib_report_say(
            &d->report, WARN, "rdma", cure,
            "there are RDMA ports, but this build of Tributary lacks verbs");
    if (!cure) {
        check_library(d, "libibverbs.so.1", "libibverbs1", ports > 0);
        check_library(d, "librdmacm.so.1", "librdmacm1", ports > 0);
        if (ports > 0)
            check_cache(d);
    }
    if (!trib_transport_absent("ucx"))
        check_library(d, "libucp.so.0", "libucx0", false);
    check_library(d, "libpmix.so.2", "libpmix2", false);
}

/* Links ---------------------------------------------------------------------------- */

static bool link_line(const char *folder, const char *link, const char *name,
                      char *text, size_t bytes)
{
    char path[320];

    snprintf(path, sizeof(path), "/sys/class/net/%.200s/%s", link, name);
    if (!trib_file_line(folder, path, text, bytes))
        text[0] = '\0';
    return text[0] != '\0';
}

static int is_link(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "lo") != 0;
}

struct links {
    const char *folder;
    void (*fn)(void *arg, const char *name, const char *state, const char *mtu);
    void *arg;
};

static void each_link(const struct links *links)
{
    struct dirent **list = NULL;
    char path[512], state[32], mtu[16];

    snprintf(path, sizeof(path), "%s/sys/class/net", links->folder);
    int n = scandir(path, &list, is_link, alphasort);
    for (int i = 0; i < n; i++) {
        /* Files such as bonding_masters are not links. */
        if (link_line(links->folder, list[i]->d_name, "mtu", mtu, sizeof(mtu))) {
            link_line(links->folder, list[i]->d_name, "operstate", state,
                      sizeof(state));
            links->fn(links->arg, list[i]->d_name, state, mtu);
        }
        free(list[i]);
    }
    free(list);
}

/* Virtual devices do not know their state, so "unknown" counts as up. */
static bool is_up(const char *state)
{
    return strcmp(state, "up") == 0 || strcmp(state, "unknown") == 0;
}

struct link_text {
    char *text;
    size_t bytes;
};

static void append_link(void *arg, const char *name, const char *state, const char *mtu)
{
    struct link_text *t = arg;
    size_t n = strlen(t->text);

    if (is_up(state) && n + strlen(name) + strlen(mtu) + 4 < t->bytes)
        snprintf(t->text + n, t->bytes - n, "%s%s %s", n ? ", " : "", name, mtu);
}

void trib_doctor_links(const char *folder, char *text, size_t bytes)
{
    struct link_text t = {text, bytes};

    text[0] = '\0';
    each_link(&(struct links){folder, append_link, &t});
}

static void check_links(struct trib_doctor *d)
{
    char up[256];

    trib_doctor_links(d->folder, up, sizeof(up));
    if (up[0])
        trib_report_say(&d->report, OK, "links", "", "up, with their MTU: %s", up);
    else
        trib_report_say(&d->report, WARN, "links",
                        "bring one up (ip link set NAME up) and assign it an address",
                        "no network link is up: other hosts are unreachable");
}

/* Limits --------------------------------------------------------------------------- */

/* Read a soft limit of this process from /proc/self/limits; UINT64_MAX: no limit. */
static bool read_limit(const struct trib_doctor *d, const char *name, uint64_t *out)
{
    char text[128];

    if (!trib_file_field(d->folder, "/proc/self/limits", name, false, text,
                         sizeof(text)))
        return false;
    *out = strncmp(text, "unlimited", 9) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
    return true;
}

static void count_port(void *arg, const struct trib_rdma_port *p)
{
    (void)p;
    ++*(int *)arg;
}

static void check_memlock(struct trib_doctor *d)
{
    static const char cure[] = "ulimit -l unlimited before the ranks start; "
                               "LimitMEMLOCK=infinity if systemd starts them, "
                               "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf";
    uint64_t limit = 0;
    int ports = 0;

    if (!read_limit(d, "Max locked memory", &limit))
        return;
    trib_rdma_each(d->folder, count_port, &ports);
    if (limit == UINT64_MAX)
        trib_report_say(&d->report, OK, "memlock", "", "unlimited");
    else if (ports == 0)
        trib_report_say(&d->report, OK, "memlock", "",
                        "%llu KiB may be locked; nothing is locked without RDMA",
                        (unsigned long long)limit >> 10);
    else
        trib_report_say(&d->report, limit < MEMLOCK_MIN ? FAIL : WARN, "memlock", cure,
                        "%llu KiB may be locked, but RDMA locks all buffers that it "
                        "sends and receives",
                        (unsigned long long)limit >> 10);
}

static void check_open_files(struct trib_doctor *d)
{
    uint64_t limit = 0, need = 64 + 4 * (uint64_t)d->size;

    if (!read_limit(d, "Max open files", &limit))
        return;
    if (limit < need)
        trib_report_say(&d->report, FAIL, "open files",
                        "raise it before the ranks start: ulimit -n 65536",
                        "%llu files may be open, %d rank%s may need %llu",
                        (unsigned long long)limit, d->size, d->size == 1 ? "" : "s",
                        (unsigned long long)need);
    else if (limit == UINT64_MAX)
        trib_report_say(&d->report, OK, "open files", "", "unlimited");
    else
        trib_report_say(&d->report, OK, "open files", "", "%llu",
                        (unsigned long long)limit);
}

/* Memory shared by ranks of one host is a file to the kernel, though unnamed. */
static void check_file_size(struct trib_doctor *d)
{
    static const char cure[] =
        "ulimit -f unlimited before the ranks start; LimitFSIZE=infinity if systemd "
        "starts them";
    uint64_t limit = 0;

    if (!read_limit(d, "Max file size", &limit))
        return;
    if (limit == UINT64_MAX)
        trib_report_say(&d->report, OK, "file size", "", "unlimited");
    else if (limit < FILE_MIN)
        trib_report_say(
            &d->report, WARN, "file size", cure,
            "files are limited to %llu KiB, too little for memory shared by ranks of "
            "one host: they use tcp instead, and trib-run may fail to start them",
            (unsigned long long)limit >> 10);
    else
        trib_report_say(
            &d->report, OK, "file size", "",
            "%llu KiB: larger trib_alloc memory is not shared with ranks of this host",
            (unsigned long long)limit >> 10);
}

/* The library itself uses anonymous memory, which this does not limit. */
static void check_shm(struct trib_doctor *d)
{
    struct statvfs s;
    char path[512];

    snprintf(path, sizeof(path), "%s/dev/shm", d->folder);
    if (statvfs(path, &s) != 0) {
        trib_report_say(&d->report, WARN, "/dev/shm", "mount a tmpfs there",
                        "does not exist: launchers and other libraries may need it");
        return;
    }
    uint64_t bytes = (uint64_t)s.f_blocks * s.f_frsize;
    trib_report_say(
        &d->report, bytes < SHM_MIN ? WARN : OK, "/dev/shm",
        bytes < SHM_MIN
            ? "mount -o remount,size=1g /dev/shm; for a container --shm-size=1g"
            : "",
        "%llu MiB%s", (unsigned long long)(bytes / MIB),
        bytes < SHM_MIN ? ", which other libraries in a rank may soon exceed "
                          "(Tributary does not use it)"
                        : "");
}

/* Environment ---------------------------------------------------------------------- */

static bool exists(const struct trib_doctor *d, const char *path)
{
    char full[512];

    snprintf(full, sizeof(full), "%s%s", d->folder, path);
    return access(full, F_OK) == 0;
}

static void check_container(struct trib_doctor *d)
{
    char path[512], space[64] = "";
    const char *sign = exists(d, "/.dockerenv")           ? "Docker"
                       : exists(d, "/run/.containerenv")  ? "Podman"
                       : exists(d, "/.singularity.d")     ? "Apptainer"
                                                          : NULL;

    snprintf(path, sizeof(path), "%s/proc/self/ns/pid", d->folder);
    ssize_t n = readlink(path, space, sizeof(space) - 1);
    space[n > 0 ? n : 0] = '\0';
    bool own = n > 0 && strcmp(space, INITIAL_PID_SPACE) != 0;
    if (!sign && n <= 0)
        return;
    if (!sign && !own)
        trib_report_say(&d->report, OK, "container", "",
                        "none: the host's namespaces");
    else
        trib_report_say(
            &d->report, OK, "container", "",
            "%s%s: ranks share memory only within the same container",
            sign ? sign : "a separate PID namespace",
            sign && own ? ", with a separate PID namespace" : "");
}

static void check_memory(struct trib_doctor *d)
{
    const double gib = 1 << 30;
    struct trib_meminfo m;

    trib_meminfo_read(d->folder, &m);
    if (m.group.limited)
        trib_report_say(
            &d->report, m.group_left < MEMORY_MIN ? WARN : OK, "memory",
            m.group_left < MEMORY_MIN
                ? "raise the limit: docker --memory, Slurm --mem, MemoryMax= of "
                  "systemd"
                : "",
            "the control group of this process is limited to %.1f GiB (%s), and %.1f "
            "GiB are left",
            (double)m.group.limit / gib, m.group.file, (double)m.group_left / gib);
    if (m.known)
        trib_report_say(&d->report, m.host < MEMORY_MIN ? WARN : OK, "memory",
                        m.host < MEMORY_MIN ? "stop the processes that hold it" : "",
                        "%.1f GiB of the host are free, including swap",
                        (double)m.host / gib);
}

static void check_quota(struct trib_doctor *d)
{
    struct trib_cgroup_cpu quota;

    trib_cgroup_read_cpu(d->folder, &quota);
    if (quota.cpus <= 0)
        return;
    trib_report_say(
        &d->report, WARN, "cpu quota",
        "give the container whole CPUs: --cpuset-cpus instead of --cpus",
        "%.3g CPU%s on average (%s): a rank that exceeds the quota is throttled, and "
        "all others wait for it",
        quota.cpus, quota.cpus == 1 ? "" : "s", quota.file);
}

static void check_binding(struct trib_doctor *d)
{
    struct trib_machine machine;

    if (d->folder[0])
        return; /* a copied tree says nothing about this process */
    trib_machine_read_sysfs("", &machine);
    trib_report_say(
        &d->report, OK, "cpus", "",
        "this process may use %d of %d hardware threads, %d of %d cores",
        machine.cpus_allowed, machine.cpus, machine.cores_allowed, machine.cores);
}

static void check_clock(struct trib_doctor *d)
{
    char source[64];

    if (!trib_file_line(
            d->folder,
            "/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
            sizeof(source)))
        return;
    bool slow = strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
                strcmp(source, "jiffies") == 0 || strncmp(source, "xen", 3) == 0;
    trib_report_say(
        &d->report, slow ? WARN : OK, "clock",
        slow ? "let the kernel use the CPU's clock: boot it with clocksource=tsc "
               "tsc=reliable, unless dmesg gives a reason against it"
             : "",
        "%s%s", source,
        slow ? ": each reading is a slow kernel call or device access" : "");
}

void trib_doctor_host(struct trib_doctor *d)
{
    static void (*const checks[])(struct trib_doctor * d) = {
        check_version,    check_rdma,      check_links, check_memlock,
        check_open_files, check_file_size, check_shm,   check_memory,
        check_container,  check_quota,     check_binding, check_clock,
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        checks[i](d);
}
