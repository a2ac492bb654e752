/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits that control groups set this process: memory and processor time.
 *
 * Containers, Slurm and systemd set these limits; /proc/meminfo and the number of
 * processors do not show them. Both versions of control groups are read, also where
 * some controllers are of version 1 and others of version 2. A group is limited by all
 * groups above it, too, as far as they are mounted here: a container sees its own
 * alone.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_CGROUP_FILE_BYTES 512

/* Bytes; of the group on the way to the root that has least memory left. */
struct trib_cgroup_memory {
    bool limited; /* false: what follows is not set */
    uint64_t limit;
    uint64_t left; /* file pages that the kernel can take back count as free */
    uint64_t swap_left; /* beside `left`, if the host has swap; UINT64_MAX: no limit */
    char file[TRIB_CGROUP_FILE_BYTES]; /* file that sets the limit, as this process sees
                                        * it */
};

/* Processor time; of the group on the way to the root that gives least. */
struct trib_cgroup_cpu {
    double cpus; /* mean number of processors, such as 1.5; 0: no quota */
    uint64_t group; /* the same for processes that share this quota */
    char file[TRIB_CGROUP_FILE_BYTES];
};

/**
 * trib_cgroup_read_memory - read the memory that is left now.
 *
 * root     "", or the folder in which /proc and /sys are looked for
 * thread   any; takes some 50 us
 */
void trib_cgroup_read_memory(const char *root, struct trib_cgroup_memory *out);

/** trib_cgroup_read_cpu - read the quota of processor time; root as above. */
void trib_cgroup_read_cpu(const char *root, struct trib_cgroup_cpu *out);

#endif
