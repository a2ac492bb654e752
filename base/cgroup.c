/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

#define NO_LIMIT UINT64_MAX
/* Version 1 encodes "no limit" as a number above this. */
#define HUGE_LIMIT (UINT64_C(1) << 62)

/* Location of this process's group in the file system, for one controller. */
struct place {
    const char *root; /* directory given by the caller */
    bool second; /* version 2 */
    size_t mount_len; /* length of the mounted part of `path`; groups above it are
                       * not visible */
    char path[PATH_MAX];
};

typedef void (*visit_fn)(void *out, const struct place *at);

/* Finding the group --------------------------------------------------------------- */

/* Return true if `name` is an item of a list such as "cpu,cpuacct". */
static bool has_word(const char *list, const char *name)
{
    const size_t len = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && strchr(",\n", at[len]))
            return true;
    }
    return false;
}

/* Find this process's group path in lines such as "4:memory:/a/b"; controller NULL:
 * version 2. */
static bool find_group(const char *root, const char *controller, char path[PATH_MAX])
{
    char line[PATH_MAX + 256];
    bool found = false;
    FILE *file = trib_file_open(root, "/proc/self/cgroup");

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *names = strchr(line, ':');
        char *at = names ? strchr(names + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        if (controller ? !has_word(names + 1, controller) : strcmp(line, "0:") != 0)
            continue;
        at[strcspn(at, "\n")] = '\0';
        snprintf(path, PATH_MAX, "%.4000s", at);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

/* Decode blanks, which /proc/self/mountinfo encodes as "\040". */
static void unescape(char *text)
{
    char *to = text;

    for (const char *at = text; *at; to++) {
        unsigned byte;
        if (*at == '\\' && sscanf(at + 1, "%3o", &byte) == 1) {
            *to = (char)byte;
            at += 4;
        } else {
            *to = *at++;
        }
    }
    *to = '\0';
}

struct mount {
    char top[PATH_MAX]; /* the mounted group */
    char where[PATH_MAX];
};

/* Parse "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". */
static bool parse_mount(const char *line, const char *controller, struct mount *out)
{
    const char *dash = strstr(line, " - ");
    char type[32] = "", options[512] = "";

    if (!dash || sscanf(line, "%*s %*s %*s %4095s %4095s", out->top, out->where) != 2 ||
        sscanf(dash, " - %31s %*s %511s", type, options) < 1)
        return false;
    unescape(out->top);
    unescape(out->where);
    return controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                      : strcmp(type, "cgroup2") == 0;
}

/* Return the part of a group's path below the mounted group; NULL: not below it. */
static const char *below(const char *group, const char *top)
{
    const size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);

    if (strncmp(group, top, len) != 0 || (group[len] && group[len] != '/'))
        return NULL;
    return strcmp(group + len, "/") == 0 ? "" : group + len;
}

/*
 * A cgroup namespace shows paths relative to its own root, or "/..", while the mount of
 * an older container shows host paths. If group and mount do not match, the mount is
 * the process's own group.
 */
static bool put_place(const struct mount *mount, const char *group, struct place *out)
{
    const char *rest = strncmp(group, "/..", 3) == 0 ? NULL : below(group, mount->top);
    const int n =
        snprintf(out->path, sizeof(out->path), "%s%s", mount->where, rest ? rest : "");

    out->mount_len = strlen(mount->where);
    return n > 0 && (size_t)n < sizeof(out->path);
}

static bool find_place(const char *root, const char *controller, struct place *out)
{
    struct mount *mount = calloc(1, sizeof(*mount));
    char *line = NULL, group[PATH_MAX] = "/";
    size_t room = 0;
    bool found = false;
    FILE *file = trib_file_open(root, "/proc/self/mountinfo");

    *out = (struct place){.root = root, .second = !controller};
    bool known = find_group(root, controller, group) || !controller;
    while (known && mount && file && !found && getline(&line, &room, file) > 0)
        found = parse_mount(line, controller, mount) && put_place(mount, group, out);
    if (!file && mount && !controller) { /* a copy of /sys without /proc */
        snprintf(mount->top, sizeof(mount->top), "/");
        snprintf(mount->where, sizeof(mount->where), "/sys/fs/cgroup");
        found = put_place(mount, group, out);
    }
    if (file)
        fclose(file);
    free(line);
    free(mount);
    return found;
}

/* Call visit for the group and all its mounted ancestors. */
static void visit_upwards(const char *root, const char *controller, visit_fn visit,
                          void *out)
{
    struct place *at = malloc(sizeof(*at));
    bool more = at && find_place(root, controller, at);

    while (more) {
        visit(out, at);
        char *slash = strrchr(at->path, '/');
        more = slash && (size_t)(slash - at->path) >= at->mount_len;
        if (more)
            *slash = '\0';
    }
    free(at);
}

/* Reading files ------------------------------------------------------------------- */

static bool read_line(const struct place *at, const char *name, char *text,
                      size_t bytes)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", at->path, name);

    return n > 0 && (size_t)n < sizeof(path) &&
           trib_file_line(at->root, path, text, bytes);
}

/* Return NO_LIMIT for "max", its version-1 equivalent and a missing file. */
static uint64_t read_number(const struct place *at, const char *name)
{
    char text[64], *end;

    if (!read_line(at, name, text, sizeof(text)))
        return NO_LIMIT;
    const unsigned long long n = strtoull(text, &end, 10);
    return end == text || n >= HUGE_LIMIT || text[0] == '-' ? NO_LIMIT : n;
}

static uint64_t read_stat(const struct place *at, const char *name)
{
    char path[PATH_MAX], text[64];
    const int n = snprintf(path, sizeof(path), "%s/memory.stat", at->path);

    if (n < 0 || (size_t)n >= sizeof(path) ||
        !trib_file_field(at->root, path, name, false, text, sizeof(text)))
        return 0;
    return strtoull(text, NULL, 10);
}

static void name_file(const struct place *at, const char *name,
                      char file[TRIB_CGROUP_FILE_BYTES])
{
    snprintf(file, TRIB_CGROUP_FILE_BYTES, "%.470s/%s", at->path, name);
}

/* Memory -------------------------------------------------------------------------- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Return the reclaimable file pages of the group and its descendants. */
static uint64_t read_cache(const struct place *at)
{
    return at->second ? read_stat(at, "inactive_file") + read_stat(at, "active_file")
                      : read_stat(at, "total_inactive_file") +
                            read_stat(at, "total_active_file");
}

static uint64_t left_of(uint64_t limit, uint64_t used, uint64_t cache)
{
    return limit == NO_LIMIT ? NO_LIMIT
                             : minus(limit, used == NO_LIMIT ? 0 : minus(used, cache));
}

static uint64_t read_swap_left(const struct place *at, uint64_t left, uint64_t cache)
{
    if (at->second)
        return left_of(read_number(at, "memory.swap.max"),
                       read_number(at, "memory.swap.current"), 0);
    const uint64_t both =
        left_of(read_number(at, "memory.memsw.limit_in_bytes"),
                read_number(at, "memory.memsw.usage_in_bytes"), cache);
    return both == NO_LIMIT || left == NO_LIMIT ? NO_LIMIT : minus(both, left);
}

/* memory.high counts as a limit: the kernel throttles the group there until it
 * stalls. */
static void visit_memory(void *arg, const struct place *at)
{
    struct trib_cgroup_memory *out = arg;
    const char *name = at->second ? "memory.max" : "memory.limit_in_bytes";
    const uint64_t high = at->second ? read_number(at, "memory.high") : NO_LIMIT;
    uint64_t limit = read_number(at, name);

    if (high < limit) {
        limit = high;
        name = "memory.high";
    }
    const uint64_t cache = read_cache(at);
    const uint64_t used =
        read_number(at, at->second ? "memory.current" : "memory.usage_in_bytes");
    const uint64_t left = left_of(limit, used, cache);
    const uint64_t swap = read_swap_left(at, left, cache);
    if (swap < out->swap_left)
        out->swap_left = swap;
    if (limit == NO_LIMIT || (out->limited && out->left <= left))
        return;
    out->limited = true;
    out->limit = limit;
    out->left = left;
    name_file(at, name, out->file);
}

void trib_cgroup_read_memory(const char *root, struct trib_cgroup_memory *out)
{
    *out = (struct trib_cgroup_memory){.swap_left = NO_LIMIT};
    visit_upwards(root, "memory", visit_memory, out);
    visit_upwards(root, NULL, visit_memory, out);
}

/* CPU quota
 * ------------------------------------------------------------------------- */

/* Parse "150000 100000", quota and period in microseconds; "max 100000": no limit. */
static double read_cpus(const struct place *at)
{
    char text[64];
    double quota, period;

    if (!at->second) {
        const uint64_t us = read_number(at, "cpu.cfs_quota_us");
        const uint64_t of = read_number(at, "cpu.cfs_period_us");
        return us == NO_LIMIT || of == NO_LIMIT || of == 0 ? 0
                                                           : (double)us / (double)of;
    }
    if (!read_line(at, "cpu.max", text, sizeof(text)) ||
        sscanf(text, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return 0;
    return quota / period;
}

static void visit_cpu(void *arg, const struct place *at)
{
    struct trib_cgroup_cpu *out = arg;
    const double cpus = read_cpus(at);
    char full[PATH_MAX];
    struct stat st;

    if (cpus <= 0 || (out->cpus > 0 && out->cpus <= cpus))
        return;
    out->cpus = cpus;
    name_file(at, at->second ? "cpu.max" : "cpu.cfs_quota_us", out->file);
    const int n = snprintf(full, sizeof(full), "%s%s", at->root, at->path);
    if (n > 0 && (size_t)n < sizeof(full) && stat(full, &st) == 0)
        out->group = (uint64_t)st.st_ino << 16 ^ (uint64_t)st.st_dev;
}

void trib_cgroup_read_cpu(const char *root, struct trib_cgroup_cpu *out)
{
    *out = (struct trib_cgroup_cpu){.cpus = 0};
    visit_upwards(root, "cpu", visit_cpu, out);
    visit_upwards(root, NULL, visit_cpu, out);
}

/* RDMA
 * ------------------------------------------------------------------------- */

/* Return true if a line such as "mlx5_0 hca_handle=2 hca_object=max" has a number. */
static bool has_limit(const char *line)
{
    for (const char *at = strchr(line, '='); at; at = strchr(at + 1, '=')) {
        if (strncmp(at, "=max", 4) != 0)
            return true;
    }
    return false;
}

static void visit_rdma(void *arg, const struct place *at)
{
    struct trib_cgroup_rdma *out = arg;
    char path[PATH_MAX], line[160];
    const int n = snprintf(path, sizeof(path), "%s/rdma.max", at->path);
    FILE *file = out->limits[0] || n < 0 || (size_t)n >= sizeof(path)
                     ? NULL
                     : trib_file_open(at->root, path);

    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (has_limit(line))
            trib_text_append(out->limits, sizeof(out->limits), "%s%s",
                             out->limits[0] ? ", " : "", line);
    }
    if (file)
        fclose(file);
    if (file && out->limits[0])
        name_file(at, "rdma.max", out->file);
}

void trib_cgroup_read_rdma(const char *root, struct trib_cgroup_rdma *out)
{
    *out = (struct trib_cgroup_rdma){.limits = ""};
    visit_upwards(root, "rdma", visit_rdma, out);
    visit_upwards(root, NULL, visit_rdma, out);
}
