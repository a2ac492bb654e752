/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an endpoint: after it UCX touches no memory for that peer. */
#include "base/log.h"
#include "base/time.h"
#include "transport/ucx/ucx.h"

enum { CLOSE_MS = 1000 }; /* for UCX to let go of an endpoint */

/* true: the request has come to its end. */
static bool finish(struct ucx *u, ucs_status_ptr_t request, const uint32_t *pending,
                   uint64_t until)
{
    bool real = UCS_PTR_IS_PTR(request), over = false;

    while (!over || (pending && *pending)) {
        over =
            over || !real || u->api.ucp_request_check_status(request) != UCS_INPROGRESS;
        if (over && !(pending && *pending))
            break;
        (void)u->api.ucp_worker_progress(u->worker);
        if (trib_deadline_passed(until))
            break;
    }
    if (real)
        u->api.ucp_request_free(request);
    return over && !(pending && *pending);
}

/* Under `lock`. When it returns UCX reads no source of ours and writes to no target for
 * this peer any more. */
void trib_ucx_endpoint_close(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];
    const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};

    if (!p->ep)
        return;
    ucs_status_ptr_t request = u->api.ucp_ep_close_nbx(p->ep, &force);
    if (!finish(u, request, &p->pending, trib_deadline_ms(CLOSE_MS)))
        trib_log(u->log, TRIB_LOG_WARN, "ucx",
                 "UCX still holds %u request%s of rank %d, which is gone", p->pending,
                 p->pending == 1 ? "" : "s", peer);
    p->ep = NULL;
}
