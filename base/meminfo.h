/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that this process can still allocate.
 */
#ifndef BASE_MEMINFO_H
#define BASE_MEMINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/cgroup.h"

struct trib_error;

/* Bytes. */
struct trib_meminfo {
    bool known; /* `host` is valid */
    uint64_t host; /* available memory of the host, including swap */
    struct trib_cgroup_memory group;
    uint64_t group_left; /* available memory of the cgroup, including swap */
};

/**
 * trib_meminfo_read - read the free and reclaimable memory of the host and of this
 * process's cgroup.
 *
 * root     "", or the directory that contains /proc and /sys
 */
void trib_meminfo_read(const char *root, struct trib_meminfo *out);

/** trib_meminfo_of_group - return true if the cgroup has less left than the host. */
bool trib_meminfo_of_group(const struct trib_meminfo *m);

/**
 * trib_meminfo_free - return the smaller of the two.
 *
 * returns  false if the kernel reports neither
 */
bool trib_meminfo_free(const char *root, uint64_t *bytes_out);

/**
 * trib_meminfo_check - check that `bytes` are available now. Checks only sizes from 64
 * MiB on, as it takes about 100 us.
 *
 * The kernel overcommits memory and kills processes when they touch it.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_OK if the kernel does not report it
 */
trib_status_t trib_meminfo_check(size_t bytes, struct trib_error *err);

#endif
