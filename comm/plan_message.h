/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of messages: what they have beside other plans.
 */
#ifndef COMM_PLAN_MESSAGE_H
#define COMM_PLAN_MESSAGE_H

#include "comm/communicator.h"
#include "pipeline/p2p/p2p.h"

struct trib_plan_message {
    struct trib_plan_ops ops; /* those of other plans, but for a few */
    struct trib_p2p_request request;
    struct trib_plan *next; /* of the idle ones, which calls to come take */
    struct trib_request *handle; /* by which trib_isend and trib_irecv give it out, or
                                  * NULL */
};

/* The arguments of a call. */
struct trib_message_args {
    const char *call; /* its name, for sentences */
    bool sends;
    const void *buffer; /* not written to if it is sent */
    size_t count;
    trib_dtype_t dtype;
    int peer;
    int tag;
};

/**
 * trib_plan_message_take - a plan for a single message, new or idle.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY; the sentence is in
 *          comm
 */
trib_status_t trib_plan_message_take(struct trib_comm *comm,
                                     const struct trib_message_args *args,
                                     struct trib_plan **plan_out);

/** trib_plan_message_give - keep the plan of a message that is done for calls to
 * come. */
void trib_plan_message_give(struct trib_plan *plan);

/** trib_plan_message_keep_nothing - fill the rows of what a plan keeps between starts,
 * which then refuse. */
void trib_plan_message_keep_nothing(struct trib_plan_ops *ops);

/** trib_plan_messages_clear - destroy the plans that are kept. */
void trib_plan_messages_clear(struct trib_comm *comm);

#endif
