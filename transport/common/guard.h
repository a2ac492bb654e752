/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a transport trusts other processes on its host.
 *
 * The ranks of one job trust each other: they run as one user, open each other's memory
 * by /proc/PID/fd and write to it by process_vm_writev. A job and an aggregator do not:
 * the aggregator serves many users, and runs as its own user. A transport between them
 * has a guard. With a guard
 *
 *     - process_vm_* is not used, and no memory outside a shared segment is imported
 *     - a PID named by the other side never makes this process open files of /proc/PID
 *     - segments come as descriptors over a local socket (transport/common/handout.h),
 *       and the kernel names the owner of the socket (SO_PEERCRED): the process of that
 *       address and, at an aggregator, a process of the job's one user
 *     - a descriptor is mapped only if it is a memfd that cannot be shrunk
 */
#ifndef TRANSPORT_COMMON_GUARD_H
#define TRANSPORT_COMMON_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TRIB_GUARD_ANYBODY INT64_C(-1)

struct trib_guard {
    bool serves; /* this side is an aggregator: its ranks are not trusted */
    int ranks; /* peers 0 … ranks - 1 are ranks of the job, the others aggregators */
    /* serves: comma-separated names of allowed backends; NULL: all */
    const char *transports;
    /* serves: the job's user. TRIB_GUARD_ANYBODY: not known yet; set to the owner of a
     * rank's first socket. */
    _Atomic int64_t user;
};

/** trib_guard_bars - return true if this peer is not trusted; a NULL guard trusts all
 * peers. */
bool trib_guard_bars(const struct trib_guard *guard, int peer);

/** trib_guard_takes - return true if the guard allows this backend; a NULL guard allows
 * all. */
bool trib_guard_takes(const struct trib_guard *guard, const char *name);

/** trib_guard_lists - return true if `name` is in a comma-separated list of names. */
bool trib_guard_lists(const char *list, const char *name);

/**
 * trib_guard_is_user - return true if `uid` is the job's user. Requires an aggregator's
 * guard.
 *
 * If the user is not known yet, the first uid passed becomes the job's user. Any
 * thread.
 */
bool trib_guard_is_user(struct trib_guard *guard, uid_t uid);

#endif
