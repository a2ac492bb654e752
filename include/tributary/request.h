/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-shot non-blocking calls: trib_allreduce and its like, which return before they
 * are done. Each has a request, which is tested, waited for and freed.
 *
 * They count among the operations of the communicator as blocking calls and starts of
 * plans do: all ranks make them in the same order, and they run in that order. Requests
 * may be tested, waited for and freed in any. Their plans are kept for the next call of
 * the same collective, count, dtype, op and root. A vector that is summed again and
 * again is better off with a plan of its own.
 *
 * The ranks sum by themselves, also where there is a service.
 */
#ifndef TRIBUTARY_REQUEST_H
#define TRIBUTARY_REQUEST_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_request trib_request_t;

/**
 * trib_iallreduce and its like - begin what the call without the i does.
 *
 * request_out  NULL after an error
 * owner    the buffers belong to the library until the request is done; the caller
 *          frees the request by trib_request_free before trib_free_comm
 * thread   the communicator's; progress as that of plans (TRIB_PROGRESS)
 * errors   those of trib_allreduce; what another rank has wrong is told by
 *          trib_request_test and trib_request_wait
 */
TRIB_API trib_status_t trib_iallreduce(trib_comm_t *comm, const void *send, void *recv,
                                       size_t count, trib_dtype_t dtype, trib_op_t op,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_ireduce(trib_comm_t *comm, const void *send, void *recv,
                                    size_t count, trib_dtype_t dtype, trib_op_t op,
                                    int root, trib_request_t **request_out);
TRIB_API trib_status_t trib_ibroadcast(trib_comm_t *comm, void *buffer, size_t count,
                                       trib_dtype_t dtype, int root,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_iallgather(trib_comm_t *comm, const void *send, void *recv,
                                       size_t count, trib_dtype_t dtype,
                                       trib_request_t **request_out);
TRIB_API trib_status_t trib_ireduce_scatter(trib_comm_t *comm, const void *send,
                                            void *recv, size_t count,
                                            trib_dtype_t dtype, trib_op_t op,
                                            trib_request_t **request_out);
TRIB_API trib_status_t trib_ibarrier(trib_comm_t *comm, trib_request_t **request_out);

/**
 * trib_request_test - TRIB_OK when done, TRIB_INPROGRESS when not yet.
 *
 * errors   TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT: how it ended
 */
TRIB_API trib_status_t trib_request_test(trib_request_t *request);

/**
 * trib_request_wait - block until done; drives the work itself.
 *
 * errors   as trib_request_test
 */
TRIB_API trib_status_t trib_request_wait(trib_request_t *request);

/**
 * trib_request_free - give it back, once it is done.
 *
 * request  NULL is allowed
 * errors   TRIB_ERR_BUSY: it is not done, and lasts
 */
TRIB_API trib_status_t trib_request_free(trib_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
