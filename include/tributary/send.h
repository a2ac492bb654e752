/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagged messages from one rank to another.
 *
 *     if (rank == 0)
 *         trib_send(comm, x, n, TRIB_F32, 1, tag);
 *     else if (rank == 1)
 *         trib_recv(comm, y, n, TRIB_F32, 0, tag);
 *
 * Messages with the same sender, receiver and tag match receives in the order of their
 * starts. A receive names its sender and tag; wildcards are not supported. Count and
 * dtype must be the same at both ends. Otherwise the communicator fails with
 * TRIB_ERR_MISMATCH, whose message gives the count and dtype of both ends. Messages are
 * not ordered with collectives: a rank may start them before, between and during
 * collectives.
 *
 * A message of up to TRIB_SEND_SHORT bytes is done at the sender once it is handed to
 * the transport, even without a matching receive; a receiver buffers up to 32 of them
 * per sender. All other messages wait at the sender for a matching receive. If two
 * ranks both send before they receive, neither may block in trib_send. The first
 * message between two ranks waits until each has created a plan or made a call that
 * names the other.
 *
 * A message that waits longer than TRIB_TIMEOUT_MS without any other progress fails.
 * Ranks exchange messages directly, even if tribd is configured.
 */
#ifndef TRIBUTARY_SEND_H
#define TRIBUTARY_SEND_H

#include <tributary/coll.h>
#include <tributary/request.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_SEND_SHORT 4096 /* bytes */

/**
 * trib_plan_send, trib_plan_recv - create a plan for messages to or from one rank.
 *
 * Local: no rank waits for another. Each start sends or receives one message. These
 * functions also apply: trib_plan_start, trib_plan_test, trib_plan_wait,
 * trib_plan_explain, trib_plan_free, and trib_plan_start_with, which accepts the buffer
 * of a send only as send and the buffer of a receive only as recv.
 * buffer   [count]; NULL: only trib_plan_start_with starts the plan
 * to, from a rank, which may be this one
 * tag      0 or more
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; the
 *          buffer belongs to the library while the plan runs
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW: the arguments; TRIB_ERR_NO_MEMORY;
 *          errors of connecting to the rank. *plan_out is then NULL. trib_plan_wait and
 *          trib_plan_test: TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_plan_send(trib_comm_t *comm, const void *buffer,
                                      size_t count, trib_dtype_t dtype, int to, int tag,
                                      trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_recv(trib_comm_t *comm, void *buffer, size_t count,
                                      trib_dtype_t dtype, int from, int tag,
                                      trib_plan_t **plan_out);

/**
 * trib_send, trib_recv - send or receive one message and block until it is done.
 *
 * buffer   [count]; may be NULL if count is 0
 * thread   the communicator's; drives the transfer itself
 * errors   as trib_plan_send and trib_plan_wait
 */
TRIB_API trib_status_t trib_send(trib_comm_t *comm, const void *buffer, size_t count,
                                 trib_dtype_t dtype, int to, int tag);
TRIB_API trib_status_t trib_recv(trib_comm_t *comm, void *buffer, size_t count,
                                 trib_dtype_t dtype, int from, int tag);

/**
 * trib_isend, trib_irecv - start to send or receive one message.
 *
 * request_out  NULL after an error
 * owner    the buffer belongs to the library until the request is done; the caller
 *          frees the request with trib_request_free before trib_free_comm
 * thread   the communicator's; progress as for plans (TRIB_PROGRESS)
 * errors   as trib_plan_send; trib_request_test and trib_request_wait: as
 *          trib_plan_wait
 */
TRIB_API trib_status_t trib_isend(trib_comm_t *comm, const void *buffer, size_t count,
                                  trib_dtype_t dtype, int to, int tag,
                                  trib_request_t **request_out);
TRIB_API trib_status_t trib_irecv(trib_comm_t *comm, void *buffer, size_t count,
                                  trib_dtype_t dtype, int from, int tag,
                                  trib_request_t **request_out);

#ifdef __cplusplus
}
#endif

#endif
