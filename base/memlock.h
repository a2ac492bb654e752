/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the kernel lets this process pin for devices.
 */
#ifndef BASE_MEMLOCK_H
#define BASE_MEMLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define TRIB_MEMLOCK_CURE \
    "raise the limit of locked memory: ulimit -l unlimited; in a systemd unit " \
    "LimitMEMLOCK=infinity"

/* Bytes of the whole process, shared by all communicators and other libraries. */
struct trib_memlock {
    bool limited;
    size_t limit; /* RLIMIT_MEMLOCK */
    size_t used;  /* pinned now */
};

/** trib_memlock_read - read the current limit and use; thread: any. */
void trib_memlock_read(struct trib_memlock *out);

/** trib_memlock_left - return the bytes that can still be pinned; SIZE_MAX: no
 * limit. */
size_t trib_memlock_left(const struct trib_memlock *m);

#endif
