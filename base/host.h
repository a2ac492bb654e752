/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name of this host.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <limits.h>
#include <stdbool.h>

/* Length of a host name plus the NUL: Linux allows 64 characters. */
#define TRIB_HOST_BYTES (HOST_NAME_MAX + 1)

/** trib_host_name - read the name of this host; false and "" if unknown. */
bool trib_host_name(char name[TRIB_HOST_BYTES]);

#endif
