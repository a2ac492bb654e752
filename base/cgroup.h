/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory, CPU and RDMA limits set by cgroups.
 *
 * Containers, Slurm and systemd set these limits; /proc/meminfo and the number of CPUs
 * do not show them. Both cgroup versions are read, including hybrid hosts. A group is
 * also limited by its ancestors, as far as they are mounted here: a container sees only
 * its own group.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define TRIB_CGROUP_FILE_BYTES 512

/* Memory in bytes, of the group with least memory left between this one and the
 * root. */
struct trib_cgroup_memory {
    bool limited; /* false: the other fields are not set */
    uint64_t limit;
    uint64_t left; /* reclaimable page cache counts as free */
    uint64_t swap_left; /* in addition to `left`, if the host has swap; UINT64_MAX:
                         * no limit */
    char file[TRIB_CGROUP_FILE_BYTES]; /* file with the limit, as seen by this
                                        * process */
};

/* CPU quota, of the most restrictive group between this one and the root. */
struct trib_cgroup_cpu {
    double cpus; /* mean number of CPUs, such as 1.5; 0: no quota */
    uint64_t group; /* equal for processes that share this quota */
    char file[TRIB_CGROUP_FILE_BYTES];
};

/* Limits of RDMA objects, of the innermost group that has any. */
struct trib_cgroup_rdma {
    char limits[200]; /* "mlx5_0 hca_handle=2 hca_object=max, …"; "": no limit */
    char file[TRIB_CGROUP_FILE_BYTES];
};

/**
 * trib_cgroup_read_memory - read the memory currently left.
 *
 * root     "", or the directory that contains /proc and /sys
 * thread   any; takes about 50 us
 */
void trib_cgroup_read_memory(const char *root, struct trib_cgroup_memory *out);

/** trib_cgroup_read_cpu - read the CPU quota; root as above. */
void trib_cgroup_read_cpu(const char *root, struct trib_cgroup_cpu *out);

/** trib_cgroup_read_rdma - read the limits of RDMA objects; root as above. */
void trib_cgroup_read_rdma(const char *root, struct trib_cgroup_rdma *out);

#endif
