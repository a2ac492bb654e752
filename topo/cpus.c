/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/cpus.h"

#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"

#define MILLI_MAX 1e9

void trib_cpus_self(struct trib_cpus *out)
{
    struct trib_cgroup_cpu quota;

    memset(out, 0, sizeof(*out));
    if (sched_getaffinity(0, sizeof(out->set), &out->set))
        CPU_ZERO(&out->set);
    trib_cgroup_read_cpu("", &quota);
    if (quota.cpus <= 0 || quota.cpus * 1000 > MILLI_MAX)
        return;
    out->quota_group = quota.group;
    out->quota_milli = quota.cpus < 0.001 ? 1 : (uint32_t)(quota.cpus * 1000);
}

static bool has_group(const struct trib_cpus_sum *sum, uint64_t group)
{
    for (int i = 0; i < sum->n_groups; i++)
        if (sum->group[i] == group)
            return true;
    return false;
}

void trib_cpus_add(struct trib_cpus_sum *sum, const struct trib_cpus *one)
{
    CPU_OR(&sum->set, &sum->set, &one->set);
    sum->processes++;
    if (one->quota_milli && has_group(sum, one->quota_group))
        return;
    if (!one->quota_milli || sum->n_groups == TRIB_CPUS_GROUPS) {
        sum->unlimited = true;
        return;
    }
    sum->group[sum->n_groups++] = one->quota_group;
    sum->milli += one->quota_milli;
}

int trib_cpus_count(const struct trib_cpus_sum *sum)
{
    const int cpus = CPU_COUNT(&sum->set);

    if (sum->unlimited || sum->n_groups == 0 || sum->milli / 1000 >= (uint64_t)cpus)
        return cpus;
    return sum->milli < 1000 ? 1 : (int)(sum->milli / 1000);
}

uint32_t trib_cpus_quota(const struct trib_cpus *one, int sharers)
{
    const uint32_t each = one->quota_milli / 1000 / (uint32_t)sharers;

    if (one->quota_milli == 0)
        return 0;
    return each > 1 ? each : 1;
}

int trib_cpus_usable(void)
{
    struct trib_cpus_sum sum = {.processes = 0};
    struct trib_cpus self;

    trib_cpus_self(&self);
    trib_cpus_add(&sum, &self);
    const int n = trib_cpus_count(&sum);
    const long online = n > 0 ? n : sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
