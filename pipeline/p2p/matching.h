/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of requests and of messages without a receive, in the order of their starts. A
 * message matches the oldest receive with its tag, and a receive the oldest such
 * message.
 */
#ifndef PIPELINE_P2P_MATCHING_H
#define PIPELINE_P2P_MATCHING_H

#include "pipeline/link/registered.h"
#include "pipeline/p2p/message.h"
#include "pipeline/run/run.h"

/* One message, on the side of its sender or its receiver. */
struct trib_p2p_request {
    bool sends;
    int peer;
    int tag;
    trib_dtype_t dtype;
    size_t count; /* elements */
    size_t bytes;
    struct trib_run *run; /* now.state and now.status report progress to the owner */
    /* Called at the end instead, with the lock held; may start other requests. NULL:
     * run is set. */
    void (*then)(struct trib_engine *e, struct trib_p2p_request *r, trib_status_t st);
    void *owner;
    uint8_t *buffer; /* read only, for a send */
    size_t moved; /* bytes */
    uint32_t id; /* this rank's number */
    uint32_t peer_id; /* the peer's number, once received */
    uint32_t last_entry; /* a send: number of its last entry */
    bool exposed; /* a send: the location of its elements was sent to the peer */
    struct trib_ref *place; /* the peer's location of the elements; or NULL */
    bool lands; /* a receive: the peer may write to its memory */
    uint32_t n_direct; /* a send: writes from its memory in flight */
    struct trib_hold hold; /* of the memory that is written or read directly */
    struct trib_p2p_request *next;
};

/** trib_p2p_say - describe a request, such as "send of 3 f32 with tag 7 to rank 1". */
void trib_p2p_say(const struct trib_p2p_request *r, char *text, size_t bytes);

/** trib_p2p_say_misfit - write the error message for a receive on a rank whose peer
 * sends other elements. */
void trib_p2p_say_misfit(const struct trib_p2p_request *r, int rank, unsigned dtype,
                         uint64_t count, char *text, size_t bytes);

/* A queue; empty if zero. */
struct trib_p2p_queue {
    struct trib_p2p_request *head, *tail;
    uint32_t n;
};

void trib_p2p_append(struct trib_p2p_queue *q, struct trib_p2p_request *r);

/** trib_p2p_pop - remove and return the oldest request; NULL: empty. */
struct trib_p2p_request *trib_p2p_pop(struct trib_p2p_queue *q);

/** trib_p2p_take_tag - remove and return the oldest request with a tag; NULL: none. */
struct trib_p2p_request *trib_p2p_take_tag(struct trib_p2p_queue *q, int tag);

/** trib_p2p_take_id - remove and return the request with this rank's number; NULL:
 * none. */
struct trib_p2p_request *trib_p2p_take_id(struct trib_p2p_queue *q, uint32_t id);

/* A message that arrived before its receive was posted. */
struct trib_p2p_early {
    int tag;
    unsigned dtype;
    uint64_t count;
    uint32_t send_id;
    bool eager; /* its elements are in payload; else only the sender has them */
    struct trib_p2p_request *local; /* this rank's own send to itself; or NULL */
    struct trib_ref *place; /* location of its elements; or NULL */
    struct trib_p2p_early *next;
    uint8_t payload[];
};

struct trib_p2p_earlies {
    struct trib_p2p_early *head, *tail;
    uint32_t n, n_eager;
};

/** trib_p2p_keep - keep a message; payload has its elements if it is eager. Return NULL
 * if out of memory. */
struct trib_p2p_early *trib_p2p_keep(struct trib_p2p_earlies *k,
                                     const struct trib_message *m,
                                     const uint8_t *payload);

/** trib_p2p_take_early - remove the oldest message with a tag; the caller drops it. */
struct trib_p2p_early *trib_p2p_take_early(struct trib_p2p_earlies *k, int tag);

/** trib_p2p_drop_early - free a removed message, or NULL. */
void trib_p2p_drop_early(struct trib_p2p_early *early);

void trib_p2p_drop_earlies(struct trib_p2p_earlies *k);

#endif
