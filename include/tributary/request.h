/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives: each call returns before its operation is done, with a
 * request to test, wait for and free.
 *
 * The calls are ordered with blocking calls and starts of plans: all ranks make them in
 * the same order, and the operations run in that order. Requests may be tested, waited
 * for and freed in any order. The library caches the plan for the next call with the
 * same collective, count, dtype, op and root. For a vector that is summed repeatedly,
 * create a plan.
 *
 * The ranks do the work themselves, even if a service is configured.
 */
#ifndef TRIBUTARY_REQUEST_H
#define TRIBUTARY_REQUEST_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_request trib_request_t;

/**
 * trib_iallreduce - start a non-blocking collective.
 *
 * request_out  NULL after an error
 * owner    the buffers belong to the library until the request is done; the caller
 *          frees the request with trib_request_free before trib_free_comm
 * thread   the communicator's; progress as for plans (TRIB_PROGRESS)
 * errors   as trib_allreduce; trib_request_test and trib_request_wait report errors
 *          that involve other ranks
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
 * trib_request_test - return TRIB_OK if the request is done, else TRIB_INPROGRESS.
 *
 * errors   TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT: the operation has
 *          failed
 */
TRIB_API trib_status_t trib_request_test(trib_request_t *request);

/**
 * trib_request_wait - block until the request is done.
 *
 * Drives the operation itself.
 * errors   as trib_request_test
 */
TRIB_API trib_status_t trib_request_wait(trib_request_t *request);

/**
 * trib_request_free - free a request that is done.
 *
 * request  NULL is allowed
 * errors   TRIB_ERR_BUSY: the request is not done, and stays valid
 */
TRIB_API trib_status_t trib_request_free(trib_request_t *request);

#ifdef __cplusplus
}
#endif

#endif
