/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/bind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Cores that this process may use, with their hardware threads. */
struct cores {
    cpu_set_t allowed;
    int core
        [CPU_SETSIZE]; /* index of a hardware thread's core, from 0; -1: not allowed */
    int n;
};

/* Return the lowest hardware thread of the core that contains `cpu`. */
static int first_of_core(int cpu)
{
    char path[96];
    int first = cpu;

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (!file)
        return cpu;
    if (fscanf(file, "%d", &first) != 1)
        first = cpu;
    fclose(file);
    return first;
}

static bool read_cores(struct cores *cores)
{
    int firsts[CPU_SETSIZE];

    cores->n = 0;
    if (sched_getaffinity(0, sizeof(cores->allowed), &cores->allowed) != 0)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int at = 0;
        cores->core[cpu] = -1;
        if (!CPU_ISSET(cpu, &cores->allowed))
            continue;
        const int first = first_of_core(cpu);
        while (at < cores->n && firsts[at] != first)
            at++;
        if (at == cores->n)
            firsts[cores->n++] = first;
        cores->core[cpu] = at;
    }
    return cores->n > 0;
}

int tool_cores(void)
{
    struct cores cores;

    return read_cores(&cores) ? cores.n : 0;
}

static bool shares(enum tool_bind how, int ranks, int cores)
{
    return how == TOOL_BIND_AUTO && ranks > 1 && ranks <= cores;
}

int tool_bind_rank(enum tool_bind how, int rank, int ranks)
{
    struct cores cores;
    cpu_set_t set;

    if (how == TOOL_BIND_NONE || (how == TOOL_BIND_AUTO && ranks < 2))
        return 0;
    if (!read_cores(&cores))
        return errno;
    int from = rank % cores.n, to = from + 1; /* TOOL_BIND_CORE */
    if (how == TOOL_BIND_AUTO) {
        if (!shares(how, ranks, cores.n))
            return 0;
        from = (int)((long)rank * cores.n / ranks);
        to = (int)((rank + 1L) * cores.n / ranks);
    }
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (cores.core[cpu] >= from && cores.core[cpu] < to)
            CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : errno;
}

void tool_bind_say(const char *tool, enum tool_bind how, int ranks)
{
    static bool said; /* once per program */
    const bool wanted = how == TOOL_BIND_AUTO && !said && isatty(STDERR_FILENO);
    const int cores = wanted ? tool_cores() : 0;

    said = said || cores > 0;
    if (cores > 0 && shares(how, ranks, cores))
        fprintf(stderr,
                "%s: binding each of %d ranks to %s%d of %d cores (disable with --bind "
                "none)\n",
                tool, ranks, cores % ranks ? "at least " : "", cores / ranks, cores);
    else if (cores > 0 && ranks > cores)
        fprintf(stderr, "%s: %d ranks share %d core%s\n", tool, ranks, cores,
                cores == 1 ? "" : "s");
}
