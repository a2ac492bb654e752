/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small limit of locked memory.
 */
#ifndef TESTS_HARNESS_LIMIT_LOCKED_H
#define TESTS_HARNESS_LIMIT_LOCKED_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Limit this process and its children; root could lock all memory. */
static inline bool limit_locked(size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &head, data) != 0)
        return false;
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    return syscall(SYS_capset, &head, data) == 0 &&
           setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

#endif
