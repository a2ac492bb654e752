/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation of rendezvous objects. These calls are in comm/ because they set
 * trib_last_error(NULL).
 */
#include "base/error.h"
#include "boot/local_root.h"
#include "boot/root_place.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"

trib_status_t trib_local_create(int ranks, trib_local_t **local_out)
{
    struct trib_error err = {0};
    trib_status_t status = trib_local_make(ranks, local_out, &err);

    if (status != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    return status;
}

trib_status_t trib_root_create_at(const char *bind, trib_root_t **root_out)
{
    struct trib_error err = {0};
    const trib_status_t status = trib_root_make(bind, NULL, &err, root_out);

    if (status != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    return status;
}

trib_status_t trib_root_create(trib_root_t **root_out)
{
    return trib_root_create_at(NULL, root_out);
}
