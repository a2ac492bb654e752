/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BOOT_LOCAL_ROOT_H
#define BOOT_LOCAL_ROOT_H

#include <tributary/comm.h>

struct trib_error;

/** trib_local_make - trib_local_create, with the error message in err. */
trib_status_t trib_local_make(int ranks, trib_local_t **local_out,
                              struct trib_error *err);

#endif
