/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host lists in Slurm's notation: "n[01-16,20],login" and "r[1-2]n[1-18]".
 */
#ifndef TOPO_HOSTLIST_H
#define TOPO_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/host.h"

#define TRIB_HOSTNAME_BYTES TRIB_HOST_BYTES

typedef void (*trib_hostlist_fn)(void *arg, const char *name);

/**
 * trib_hostlist_each - call fn for each name of a list, in order.
 *
 * Numbers keep the width of the first one of their range: "[08-11]" is 08, 09, 10, 11.
 * max      most calls of fn
 * returns  NULL, or the error as words that follow "the list"; fn has then been called
 *          for the names before the error
 */
const char *trib_hostlist_each(const char *list, size_t max, trib_hostlist_fn fn,
                               void *arg);

/** trib_hostname_ok - return true for printable ASCII without spaces or separators that
 * fits. */
bool trib_hostname_ok(const char *name);

#endif
