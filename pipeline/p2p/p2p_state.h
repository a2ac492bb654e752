/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an engine's messages: for each peer a pair with the queues of its
 * requests.
 */
#ifndef PIPELINE_P2P_P2P_STATE_H
#define PIPELINE_P2P_P2P_STATE_H

#include "pipeline/p2p/mailbox.h"
#include "pipeline/p2p/matching.h"
#include "pipeline/run/engine_state.h"

/* Messages with one peer. Each request is in one of the queues. */
struct trib_p2p_pair {
    int peer;
    bool self; /* this rank itself: no mailbox */
    bool joined; /* both adverts have arrived */
    struct trib_mailbox box;
    struct trib_p2p_queue fresh; /* sends not yet known to the peer */
    struct trib_p2p_queue announced; /* sends that wait for their receive */
    struct trib_p2p_queue streaming; /* sends in progress, in rotation */
    struct trib_p2p_queue flying; /* sends whose entries the transport may still read */
    struct trib_p2p_queue posted; /* receives that wait for their message */
    struct trib_p2p_queue granting; /* receives whose GRANT is unsent */
    struct trib_p2p_queue receiving; /* receives whose elements are arriving */
    struct trib_p2p_queue pulling; /* receives that read from the sender's memory */
    struct trib_p2p_queue taken; /* receives that have read all, with TAKEN unsent */
    struct trib_p2p_earlies early;
    struct trib_p2p_pair *next;
};

struct trib_p2p {
    struct trib_engine_p2p base;
    bool checks; /* entries have checksums */
    /* Called for messages with a tag below 0 that have no receive; or NULL. */
    void (*watch)(void *arg, int peer, const struct trib_p2p_early *early);
    void *watch_arg;
    uint32_t last_id;
    struct trib_p2p_pair *list;
    struct trib_p2p_pair *of[]; /* [size] or NULL */
};

static inline struct trib_p2p *trib_p2p_of(const struct trib_engine *e)
{
    return (struct trib_p2p *)e->p2p;
}

/* --- pipeline/p2p/p2p_send.c --- */

/** trib_p2p_finish - end a request that is in no queue. */
void trib_p2p_finish(struct trib_engine *e, struct trib_p2p_request *r,
                     trib_status_t st);

void trib_p2p_copy(struct trib_engine *e, void *to, const void *from, size_t bytes);

/** trib_p2p_count - count the elements of sends. */
void trib_p2p_count(struct trib_engine *e, size_t bytes);

/** trib_p2p_push - send as much as there is room for, first the answers that the peer
 * waits for; return true if anything moved. */
bool trib_p2p_push(struct trib_engine *e, struct trib_p2p_pair *p);

/* --- pipeline/p2p/p2p.c --- */

/* Entries of the engine's table: engine_p2p.h. */
bool trib_p2p_progress(struct trib_engine *e);
bool trib_p2p_take_event(struct trib_engine *e, const struct trib_event *event);
void trib_p2p_end(struct trib_engine *e);

#endif
