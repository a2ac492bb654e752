/* SPDX-License-Identifier: BSD-3-Clause */
/* A root whose text the program distributes to its ranks: trib_root_create_at. */
#ifndef BOOT_ROOT_PLACE_H
#define BOOT_ROOT_PLACE_H

#include <tributary/comm.h>

struct trib_error;
struct trib_secret;

/**
 * trib_root_make - trib_root_create_at, with the error message in err.
 *
 * secret   secret to include, unless not set; NULL: generate one
 */
trib_status_t trib_root_make(const char *bind, const struct trib_secret *secret,
                             struct trib_error *err, trib_root_t **root_out);

#endif
