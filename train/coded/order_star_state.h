/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of order_star.h: messages of a pair, and the state of both ends. */
#ifndef TRAIN_CODED_ORDER_STAR_STATE_H
#define TRAIN_CODED_ORDER_STAR_STATE_H

#include <tributary/request.h>

#include "train/coded/order_star.h"

/* The abort reason for the pair of a late rank after the last call; not a failure. */
#define ORDERS_END "no further orders follow"

enum trib_order_kind { ORDER = 1, SKIP, END };
enum { TAG_HEAD, TAG_BODY, TAG_ANSWER };

/* Short enough for an eager send, which completes before the receiver polls. */
struct trib_order_head {
    uint64_t number; /* of its call; SKIP: the last call without an order */
    uint64_t bytes; /* of the body */
    int32_t kind;
    int32_t status; /* of END */
    char why[200];
};

/* An order, shared by all ranks that received it. */
struct trib_order_body {
    size_t users, bytes;
    char data[];
};

/* The state of another rank, on rank 0. */
struct trib_order_peer {
    trib_comm_t *pair;
    struct trib_order_head head;
    struct trib_order_body *body;
    trib_request_t *head_sent, *body_sent, *answered;
    void *answer;
    size_t room; /* bytes of answer */
    uint64_t asked; /* number of its order */
    bool busy, lost, ended;
};

struct trib_order_star {
    int rank, ranks;
    uint64_t number; /* number of calls of this rank */
    /* [ranks]; on other ranks only the entry of the local pair is used */
    struct trib_order_peer *peers;
    trib_comm_t *none;

    /* On rank 0. */
    struct trib_order_body *body;
    const size_t *answers;
    int lost;
    bool failed; /* a call has failed, and no call follows */
    uint64_t late;
    struct trib_error first_loss;

    /* On the other ranks. */
    trib_comm_t *pair;
    /* of the order taken last, or of the pending one */
    struct trib_order_head head;
    bool pending;
    uint64_t skip; /* calls up to this number have no order */
    bool ended;
    trib_status_t end_status;
    char why[300];
    void *order, *answer;
    size_t order_room, answer_room;
    trib_request_t *sent;
};

/** trib_order_star_await_end - on a rank other than 0 after its last call: wait until
 * rank 0 has made its last call. */
void trib_order_star_await_end(struct trib_order_star *star);

#endif
