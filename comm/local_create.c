/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_local_create is in this folder because it sets trib_last_error(NULL).
 */
#include "base/error.h"
#include "boot/local_root.h"
#include "comm/communicator.h"

trib_status_t trib_local_create(int ranks, trib_local_t **local_out)
{
    struct trib_error err = {0};
    trib_status_t status = trib_local_make(ranks, local_out, &err);

    if (status != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    return status;
}
