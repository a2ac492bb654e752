/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/meminfo.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"

#define ASK_FROM ((size_t)64 << 20)

/* Read the KiB of a line such as "MemAvailable: 123 kB". */
static bool read_kib(const char *root, const char *name, uint64_t *out)
{
    char text[64], *end;

    if (!trib_file_field(root, "/proc/meminfo", name, true, text, sizeof(text)))
        return false;
    *out = strtoull(text, &end, 10);
    return end != text;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void trib_meminfo_read(const char *root, struct trib_meminfo *out)
{
    uint64_t kib = 0, swap_kib = 0;

    *out = (struct trib_meminfo){.known = read_kib(root, "MemAvailable", &kib)};
    if (!read_kib(root, "SwapFree", &swap_kib))
        swap_kib = 0;
    out->host = (kib + swap_kib) * 1024;
    trib_cgroup_read_memory(root, &out->group);
    const uint64_t swap = swap_kib * 1024;
    out->group_left = plus(out->group.left,
                           swap < out->group.swap_left ? swap : out->group.swap_left);
}

bool trib_meminfo_of_group(const struct trib_meminfo *m)
{
    return m->group.limited && (!m->known || m->group_left < m->host);
}

bool trib_meminfo_free(const char *root, uint64_t *bytes_out)
{
    struct trib_meminfo m;

    trib_meminfo_read(root, &m);
    *bytes_out = trib_meminfo_of_group(&m) ? m.group_left : m.host;
    return m.known || m.group.limited;
}

trib_status_t trib_meminfo_check(size_t bytes, struct trib_error *err)
{
    const double gib = 1 << 30;
    struct trib_meminfo m;

    if (bytes < ASK_FROM)
        return TRIB_OK;
    trib_meminfo_read("", &m);
    if (trib_meminfo_of_group(&m) && bytes > m.group_left)
        return trib_fail(
            err, TRIB_ERR_NO_MEMORY,
            "cannot allocate %.1f GiB: the control group of this process may have "
            "%.1f GiB (%s) and has %.1f GiB left: ask for less, or raise the limit "
            "(docker --memory, Slurm --mem, MemoryMax= of systemd)",
            (double)bytes / gib, (double)m.group.limit / gib, m.group.file,
            (double)m.group_left / gib);
    if (!m.known || bytes <= m.host)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY,
                     "cannot allocate %.1f GiB: this host has %.1f GiB of memory free; "
                     "ask for less, or end what holds it",
                     (double)bytes / gib, (double)m.host / gib);
}
