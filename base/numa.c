/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/numa.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

#define NODES "/sys/devices/system/node"

enum { CPUS_MAX = 8192, NODES_MAX = 1024 };

/* A set of CPUs for CPU_SET_S. */
union cpus {
    cpu_set_t set;
    unsigned char bytes[CPUS_MAX / 8];
};

/* Read the next number of a list such as "0-3,8". `last` is the end of its range. */
static bool next_number(const char **text, long *number, long *last)
{
    char *end;

    if (*number < *last) {
        ++*number;
        return true;
    }
    *number = strtol(*text, &end, 10);
    if (end == *text || *number < 0)
        return false;
    *last = *end == '-' ? strtol(end + 1, &end, 10) : *number;
    *text = *end == ',' ? end + 1 : end;
    return *number < CPUS_MAX && *last < CPUS_MAX;
}

/* Count the allowed CPUs of a node. */
static int count_cpus(const char *root, long node, const union cpus *allowed)
{
    char path[96], line[4096];
    const char *text = line;
    long cpu = 0, last = 0;
    int n = 0;

    snprintf(path, sizeof(path), NODES "/node%ld/cpulist", node);
    if (!trib_file_line(root, path, line, sizeof(line)))
        return 0;
    while (next_number(&text, &cpu, &last))
        n += !allowed || CPU_ISSET_S((size_t)cpu, sizeof(*allowed), &allowed->set);
    return n;
}

/* Return the distance between two nodes. The columns of the table are the online
 * nodes. */
static long between(const char *root, long from, int column)
{
    char path[96], line[4096];
    char *at = line;
    long distance = 0;

    snprintf(path, sizeof(path), NODES "/node%ld/distance", from);
    if (!trib_file_line(root, path, line, sizeof(line)))
        return 0;
    for (int i = 0; i <= column; i++) {
        char *end;
        distance = strtol(at, &end, 10);
        if (end == at || distance < 0 || distance > UCHAR_MAX)
            return 0;
        at = end;
    }
    return distance;
}

/* Return the position of a node in the list of online nodes, or -1. */
static int column_of(const char *online, int node)
{
    long number = 0, last = 0;

    for (int i = 0; i < NODES_MAX && next_number(&online, &number, &last); i++) {
        if (number == node)
            return i;
    }
    return -1;
}

int trib_numa_distance(const char *root, int node)
{
    char online[4096];
    const char *text = online;
    long number = 0, last = 0, sum = 0, cpus = 0;
    union cpus allowed;

    if (node < 0 || !trib_file_line(root, NODES "/online", online, sizeof(online)))
        return 0;
    const bool known =
        !root[0] && sched_getaffinity(0, sizeof(allowed), &allowed.set) == 0;
    const int column = column_of(online, node);
    for (int i = 0; column >= 0 && i < NODES_MAX; i++) {
        if (!next_number(&text, &number, &last))
            break;
        const int n = count_cpus(root, number, known ? &allowed : NULL);
        const long distance = n ? between(root, number, column) : 0;
        if (n && !distance)
            return 0;
        sum += n * distance;
        cpus += n;
    }
    return cpus ? (int)(10 * sum / cpus) : 0;
}

int trib_numa_node(const char *root, const char *folder)
{
    char path[PATH_MAX], text[24];
    char *end;
    int n = snprintf(path, sizeof(path), "%s/device/numa_node", folder);

    if (n < 0 || (size_t)n >= sizeof(path) ||
        !trib_file_line(root, path, text, sizeof(text)))
        return -1;
    const long node = strtol(text, &end, 10);
    return end == text || node < 0 || node >= NODES_MAX ? -1 : (int)node;
}
