/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memlock.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

enum { CAP_IPC_LOCK_BIT = 14 };

/* CAP_IPC_LOCK counts only in the initial user namespace: in another one, e.g. a
 * rootless container, it is shown but has no effect. */
static bool first_user_space(void)
{
    unsigned inside = 1, outside = 1, count = 0;
    FILE *file = fopen("/proc/self/uid_map", "re");

    if (!file)
        return true;
    bool read = fscanf(file, "%u %u %u", &inside, &outside, &count) == 3;
    fclose(file);
    return read && inside == 0 && outside == 0 && count == UINT32_MAX;
}

void trib_memlock_read(struct trib_memlock *out)
{
    unsigned long long effective = 0, kib = 0;
    struct rlimit limit;
    char line[160];

    *out = (struct trib_memlock){.limited = false};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmPin: %llu", &kib) == 1)
            out->used = (size_t)kib * 1024;
        else
            (void)sscanf(line, "CapEff: %llx", &effective);
    }
    if (file)
        fclose(file);
    out->limit = (size_t)limit.rlim_cur;
    out->limited = !(effective >> CAP_IPC_LOCK_BIT & 1) || !first_user_space();
}

size_t trib_memlock_left(const struct trib_memlock *m)
{
    if (!m->limited)
        return SIZE_MAX;
    return m->used < m->limit ? m->limit - m->used : 0;
}
