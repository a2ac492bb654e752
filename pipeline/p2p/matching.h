/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and what has come before its receive, in the order of their starts. A
 * message of a tag is for the oldest receive of that tag, and the other way round.
 */
#ifndef PIPELINE_P2P_MATCHING_H
#define PIPELINE_P2P_MATCHING_H

#include "pipeline/engine/run.h"
#include "pipeline/p2p/message.h"

/* One message, as its sender or its receiver has it. */
struct trib_p2p_request {
    bool sends;
    int peer;
    int tag;
    trib_dtype_t dtype;
    size_t count; /* elements */
    size_t bytes;
    struct trib_run *run; /* now.state and now.status tell the owner how it stands */
    /* Called at its end instead, with the lock; may start others. NULL: there is
     * run. */
    void (*then)(struct trib_engine *e, struct trib_p2p_request *r, trib_status_t st);
    void *owner;
    uint8_t *buffer; /* of a send only read */
    size_t moved; /* bytes */
    uint32_t id; /* this rank's number */
    uint32_t peer_id; /* the peer's number, once it has told */
    uint32_t last_entry; /* a send: number of its last entry */
    bool exposed; /* a send: the peer was told where its elements are */
    struct trib_ref *place; /* a receive: where they are; or NULL */
    struct trib_p2p_request *next;
};

/** trib_p2p_say - what a request is, such as "send of 3 f32 with tag 7 to rank 1". */
void trib_p2p_say(const struct trib_p2p_request *r, char *text, size_t bytes);

/** trib_p2p_say_misfit - the sentence of a receive, on a rank, for which a peer sends
 * other elements. */
void trib_p2p_say_misfit(const struct trib_p2p_request *r, int rank, unsigned dtype,
                         uint64_t count, char *text, size_t bytes);

/* A queue. Zero is empty. */
struct trib_p2p_queue {
    struct trib_p2p_request *head, *tail;
    uint32_t n;
};

void trib_p2p_append(struct trib_p2p_queue *q, struct trib_p2p_request *r);

/** trib_p2p_pop - take the oldest out; NULL: there is none. */
struct trib_p2p_request *trib_p2p_pop(struct trib_p2p_queue *q);

/** trib_p2p_take_tag - take the oldest of a tag out; NULL: there is none. */
struct trib_p2p_request *trib_p2p_take_tag(struct trib_p2p_queue *q, int tag);

/** trib_p2p_take_id - take the one of this rank's number out; NULL: there is none. */
struct trib_p2p_request *trib_p2p_take_id(struct trib_p2p_queue *q, uint32_t id);

/* A message that came before its receive. */
struct trib_p2p_early {
    int tag;
    unsigned dtype;
    uint64_t count;
    uint32_t send_id;
    bool eager; /* its elements are here; else only their sender has them */
    struct trib_p2p_request *local; /* this rank's own send, to itself; or NULL */
    struct trib_ref *place; /* where its elements are; or NULL */
    struct trib_p2p_early *next;
    uint8_t payload[];
};

struct trib_p2p_earlies {
    struct trib_p2p_early *head, *tail;
    uint32_t n, n_eager;
};

/** trib_p2p_keep - keep a message; payload as long as its elements if it is eager.
 * returns  NULL: out of memory */
struct trib_p2p_early *trib_p2p_keep(struct trib_p2p_earlies *k,
                                     const struct trib_message *m,
                                     const uint8_t *payload);

/** trib_p2p_take_early - take the oldest of a tag out; the caller drops it. */
struct trib_p2p_early *trib_p2p_take_early(struct trib_p2p_earlies *k, int tag);

/** trib_p2p_drop_early - free one that was taken out, or NULL. */
void trib_p2p_drop_early(struct trib_p2p_early *early);

void trib_p2p_drop_earlies(struct trib_p2p_earlies *k);

#endif
