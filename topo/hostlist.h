/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names as Slurm lists them: "n[01-16,20],login" and "r[1-2]n[1-18]".
 */
#ifndef TOPO_HOSTLIST_H
#define TOPO_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/host.h"

#define TRIB_HOSTNAME_BYTES TRIB_HOST_BYTES

typedef void (*trib_hostlist_fn)(void *arg, const char *name);

/**
 * trib_hostlist_each - call fn for each name of a list, in its order.
 *
 * Numbers keep the width of the first one of their range: "[08-11]" is 08, 09, 10, 11.
 *
 * max      names: fn is never called more often
 * returns  NULL, or what is wrong with the list, in words that follow "the list"; fn
 * has then had the names before that
 */
const char *trib_hostlist_each(const char *list, size_t max, trib_hostlist_fn fn,
                               void *arg);

/** trib_hostname_ok - no space, no separator, nothing but ASCII that prints; fits. */
bool trib_hostname_ok(const char *name);

#endif
