/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that this process may still take.
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
    bool known; /* `host` is */
    uint64_t host; /* memory that processes of this host may still take, with swap */
    struct trib_cgroup_memory group;
    uint64_t group_left; /* memory that this control group may still take, with swap */
};

/**
 * trib_meminfo_read - read the memory that the kernel can give or get back, for the
 * host and for the control group of this process.
 *
 * root     "", or the folder in which /proc and /sys are looked for
 */
void trib_meminfo_read(const char *root, struct trib_meminfo *out);

/** trib_meminfo_of_group - true if the control group has less left than the host. */
bool trib_meminfo_of_group(const struct trib_meminfo *m);

/**
 * trib_meminfo_free - the smaller of both.
 *
 * returns  false where the kernel says neither
 */
bool trib_meminfo_free(const char *root, uint64_t *bytes_out);

/**
 * trib_meminfo_check - has this process `bytes` free now? Asked from 64 MiB on: it
 * takes some 100 us.
 *
 * The kernel promises memory that it does not have, and ends processes when they touch
 * it.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_OK where the kernel does not say
 */
trib_status_t trib_meminfo_check(size_t bytes, struct trib_error *err);

#endif
