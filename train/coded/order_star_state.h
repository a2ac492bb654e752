/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of order_star.h: what crosses a pair, and what each end of it keeps. */
#ifndef TRAIN_CODED_ORDER_STAR_STATE_H
#define TRAIN_CODED_ORDER_STAR_STATE_H

#include <tributary/request.h>

#include "train/coded/order_star.h"

/* With this, and not by a failure, rank 0 gives up the pair of a rank that is late when
 * the calls are over. */
#define ORDERS_END "there are no more orders"

enum trib_order_kind { ORDER = 1, SKIP, END };
enum { TAG_HEAD, TAG_BODY, TAG_ANSWER };

/* Short enough to be taken before its receiver looks. */
struct trib_order_head {
    uint64_t number; /* of the call that it is for, or up to which all may be skipped */
    uint64_t bytes; /* of the body */
    int32_t kind;
    int32_t status; /* END */
    char why[200];
};

/* An order, which all ranks that were given it share. */
struct trib_order_body {
    size_t users, bytes;
    char data[];
};

/* Another rank, as rank 0 sees it. */
struct trib_order_peer {
    trib_comm_t *pair;
    struct trib_order_head head;
    struct trib_order_body *body;
    trib_request_t *head_sent, *body_sent, *answered;
    void *answer;
    size_t room; /* bytes of answer */
    uint64_t asked; /* the number of its order */
    bool busy, lost, ended;
};

struct trib_order_star {
    int rank, ranks;
    uint64_t number; /* of this rank's calls so far */
    struct trib_order_peer
        *peers; /* [ranks] elsewhere than on rank 0: only the own pair */
    trib_comm_t *none;

    /* Rank 0's. */
    struct trib_order_body *body;
    const size_t *answers;
    int lost;
    bool failed; /* a call has, and there will be no other one */
    uint64_t late;
    struct trib_error first_loss;

    /* The others'. */
    trib_comm_t *pair;
    struct trib_order_head
        head; /* of the order that was taken, or waits for its call */
    bool pending;
    uint64_t skip; /* calls up to this one have no order */
    bool ended;
    trib_status_t end_status;
    char why[300];
    void *order, *answer;
    size_t order_room, answer_room;
    trib_request_t *sent;
};

/** trib_order_star_await_end - a rank that is not rank 0 makes no more calls: wait
 * until rank 0 says the same. */
void trib_order_star_await_end(struct trib_order_star *star);

#endif
