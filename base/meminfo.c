/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/meminfo.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"

#define ASK_FROM ((size_t)64 << 20)

/* KiB of a line such as "MemAvailable:  123 kB". */
static bool read_kib(const char *root, const char *name, uint64_t *out)
{
    char text[64], *end;

    if (!trib_file_field(root, "/proc/meminfo", name, true, text, sizeof(text)))
        return false;
    *out = strtoull(text, &end, 10);
    return end != text;
}

bool trib_meminfo_free(const char *root, uint64_t *bytes_out)
{
    uint64_t kib, swap;

    if (!read_kib(root, "MemAvailable", &kib))
        return false;
    if (read_kib(root, "SwapFree", &swap))
        kib += swap;
    *bytes_out = kib * 1024;
    return true;
}

trib_status_t trib_meminfo_check(size_t bytes, struct trib_error *err)
{
    const double gib = 1 << 30;
    uint64_t has;

    if (bytes < ASK_FROM || !trib_meminfo_free("", &has) || bytes <= has)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY,
                     "cannot allocate %.1f GiB: this host has %.1f GiB of memory free; "
                     "ask for less, or end what holds it",
                     (double)bytes / gib, (double)has / gib);
}
