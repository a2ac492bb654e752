/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of point-to-point messages.
 */
#ifndef COMM_KINDS_PLAN_MESSAGE_H
#define COMM_KINDS_PLAN_MESSAGE_H

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "pipeline/p2p/p2p.h"

struct trib_plan_message {
    struct trib_plan_ops ops; /* of a collective's plan, with a few rows replaced */
    struct trib_p2p_request request;
    struct trib_plan *next; /* in the list of idle plans, kept for reuse */
    struct trib_request *handle; /* of trib_isend or trib_irecv; or NULL */
};

/* The kind has only a name: its plans have their own table of operations. */
extern const struct trib_plan_kind trib_plan_message_kind;

/** trib_plan_message_of - return the data of a message's plan, else NULL. */
static inline struct trib_plan_message *trib_plan_message_of(
    const struct trib_plan *plan)
{
    return plan->kind == &trib_plan_message_kind ? plan->of_kind : NULL;
}

/* The arguments of a call. */
struct trib_message_args {
    const char *call; /* its name, for error messages */
    bool sends;
    const void *buffer; /* read-only if sent */
    size_t count;
    trib_dtype_t dtype;
    int peer;
    int tag;
};

/**
 * trib_plan_message_take - return a new or idle plan for a single message.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY; the message is in
 *          comm
 */
trib_status_t trib_plan_message_take(struct trib_comm *comm,
                                     const struct trib_message_args *args,
                                     struct trib_plan **plan_out);

/** trib_plan_message_give - keep the plan of a completed message for reuse. */
void trib_plan_message_give(struct trib_plan *plan);

/** trib_plan_message_keep_nothing - make the state rows of a table refuse. */
void trib_plan_message_keep_nothing(struct trib_plan_ops *ops);

/** trib_plan_messages_clear - destroy the idle plans. */
void trib_plan_messages_clear(struct trib_comm *comm);

#endif
