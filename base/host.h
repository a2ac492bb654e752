/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name of this host.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <limits.h>
#include <stdbool.h>

/* The length of a host's name with its zero: Linux allows 64 characters. */
#define TRIB_HOST_BYTES (HOST_NAME_MAX + 1)

/** trib_host_name - the name of this host; false and "": it is not known. */
bool trib_host_name(char name[TRIB_HOST_BYTES]);

#endif
