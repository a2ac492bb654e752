/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx: closing an endpoint. After that UCX touches no memory for the peer. */
#include "base/log.h"
#include "base/time.h"
#include "transport/ucx/ucx.h"

enum { CLOSE_MS = 1000 }; /* for UCX to release an endpoint */

/* Progress until the request and all pending ones complete. Return false at the
 * deadline. */
static bool wait_request(struct ucx *u, ucs_status_ptr_t request,
                         const uint32_t *pending, uint64_t until)
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

/* After return UCX neither reads sources nor writes targets for this peer. Call with
 * `lock` held. */
void trib_ucx_endpoint_close(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];
    const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};

    assert(ucx_lock_held(u));
    if (!p->ep)
        return;
    ucs_status_ptr_t request = u->api.ucp_ep_close_nbx(p->ep, &force);
    if (!wait_request(u, request, &p->pending, trib_deadline_ms(CLOSE_MS)))
        trib_log(u->log, TRIB_LOG_WARN, "ucx",
                 "UCX still holds %u request%s of lost rank %d", p->pending,
                 p->pending == 1 ? "" : "s", peer);
    p->ep = NULL;
}
