/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a transport trusts the other processes of its host.
 *
 * The ranks of one job trust each other: they are one user's, open each other's memory
 * by /proc/PID/fd and write to it by process_vm_writev. A job and an aggregator do not:
 * the aggregator serves many users, and runs as a user of its own. A transport between
 * them has a guard. Over it
 *
 *     - nothing is reached by process_vm_*, and no memory is imported that lies outside
 *       of a shared segment
 *     - no file of /proc/PID is opened because the other side has named PID
 *     - segments come as descriptors over a socket of this host
 *       (transport/common/handout.h), whose owner the kernel names (SO_PEERCRED): the
 *       process whose address it is and, at an aggregator, a process of the one user
 *       who is the job's
 *     - a descriptor is mapped only if it is a memfd that nobody can make shorter
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
    bool serves; /* this side is an aggregator: its ranks are strangers */
    int ranks; /* peers 0 … ranks - 1 are ranks of the job, those behind are
                * aggregators */
    /* serves: the names of backends that may be used, with commas between them; NULL:
     * all */
    const char *transports;
    /* serves: the job's user. TRIB_GUARD_ANYBODY: not known yet; the owner of the first
     * socket of a rank becomes it. */
    _Atomic int64_t user;
};

/** trib_guard_bars - true if this peer is not to be trusted; a NULL guard bars
 * nobody. */
bool trib_guard_bars(const struct trib_guard *guard, int peer);

/** trib_guard_takes - true if the guard lets a backend of this name be used; NULL: it
 * does. */
bool trib_guard_takes(const struct trib_guard *guard, const char *name);

/** trib_guard_lists - true if `name` is in a list of names with commas between them. */
bool trib_guard_lists(const char *list, const char *name);

/**
 * trib_guard_is_user - true if processes of `uid` are the job's, of an aggregator's
 * guard.
 *
 * The first uid that is asked for becomes the job's user where none is known. Any
 * thread.
 */
bool trib_guard_is_user(struct trib_guard *guard, uid_t uid);

#endif
