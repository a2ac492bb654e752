/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of inner transports, and the end of heartbeats that no inner transport
 * needs. */
#include "base/error.h"
#include "transport/auto/auto_peer.h"
#include "transport/common/heartbeat.h"

void trib_auto_close_heartbeat(struct auto_transport *c)
{
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t && !c->inners[i].row->maps)
            return;
    }
    trib_heartbeat_close(c->heartbeat);
    c->heartbeat = NULL;
}

trib_status_t trib_auto_pass_error(struct auto_transport *c, trib_status_t status)
{
    if (status < 0 && status != TRIB_ERR_NO_RESOURCE)
        trib_fail(c->err, status, "%s", trib_error_text(&c->inner_err));
    trib_error_clear(&c->inner_err);
    return status;
}
