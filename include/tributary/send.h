/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from one rank to another, with tags.
 *
 *     if (rank == 0)
 *         trib_send(comm, x, n, TRIB_F32, 1, tag);
 *     else if (rank == 1)
 *         trib_recv(comm, y, n, TRIB_F32, 0, tag);
 *
 * Of one sender, receiver and tag the first message is for the first receive, the
 * second for the second, and so on, in the order of their starts. A receive names its
 * sender and its tag: there are no wildcards. Count and dtype are the same at both
 * ends; where they are not, the communicator has failed with TRIB_ERR_MISMATCH, which
 * says what each of the two has. Messages have no place in the order of collectives: a
 * rank may start them before, between and after collectives that are under way.
 *
 * A message of up to TRIB_SEND_SHORT bytes is done at its sender once it has been
 * handed over, also where nobody receives it yet: up to 32 such wait at each receiver
 * for each sender. All others wait at the sender until there is a receive for them. So
 * a program in which two ranks both send before they receive is right only if it does
 * not block in trib_send. Before the first message of a pair of ranks both must have
 * made a plan or a call that names the other one; until then sends wait.
 *
 * What waits longer than TRIB_TIMEOUT_MS, while nothing else moves, has failed. All
 * ranks carry messages by themselves, also where there is a tribd.
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
 * trib_plan_send, trib_plan_recv - make a plan that sends to, or receives from, one
 * rank.
 *
 * Local: no rank waits for another. Each start is one message. trib_plan_start,
 * trib_plan_start_with (which takes the buffer of a send as send, that of a receive as
 * recv, and not the other one), trib_plan_test, trib_plan_wait, trib_plan_explain and
 * trib_plan_free are for these plans as well.
 * buffer   [count]; NULL: only trib_plan_start_with starts the plan
 * to, from a rank, also this one
 * tag      0 or more
 * owner    the caller frees *plan_out with trib_plan_free before trib_free_comm; the
 *          buffer belongs to the library while the plan runs
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW: the arguments; TRIB_ERR_NO_MEMORY; what
 *          connecting to the rank gives. *plan_out is then NULL. trib_plan_wait and
 *          trib_plan_test: TRIB_ERR_MISMATCH, TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT
 */
TRIB_API trib_status_t trib_plan_send(trib_comm_t *comm, const void *buffer,
                                      size_t count, trib_dtype_t dtype, int to, int tag,
                                      trib_plan_t **plan_out);
TRIB_API trib_status_t trib_plan_recv(trib_comm_t *comm, void *buffer, size_t count,
                                      trib_dtype_t dtype, int from, int tag,
                                      trib_plan_t **plan_out);

/**
 * trib_send, trib_recv - send or receive one message, and wait until it is done.
 *
 * buffer   [count]; may be NULL where count is 0
 * thread   the communicator's; drives the work itself
 * errors   those of trib_plan_send and trib_plan_wait
 */
TRIB_API trib_status_t trib_send(trib_comm_t *comm, const void *buffer, size_t count,
                                 trib_dtype_t dtype, int to, int tag);
TRIB_API trib_status_t trib_recv(trib_comm_t *comm, void *buffer, size_t count,
                                 trib_dtype_t dtype, int from, int tag);

/**
 * trib_isend, trib_irecv - begin to send or receive one message.
 *
 * request_out  NULL after an error
 * owner    the buffer belongs to the library until the request is done; the caller
 *          frees the request by trib_request_free before trib_free_comm
 * thread   the communicator's; progress as that of plans (TRIB_PROGRESS)
 * errors   those of trib_plan_send; trib_request_test and trib_request_wait: those of
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
