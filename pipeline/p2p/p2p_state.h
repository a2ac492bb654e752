/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an engine's messages: a pair for each peer, in whose queues its requests
 * are.
 */
#ifndef PIPELINE_P2P_P2P_STATE_H
#define PIPELINE_P2P_P2P_STATE_H

#include "pipeline/engine/engine_state.h"
#include "pipeline/p2p/mailbox.h"
#include "pipeline/p2p/matching.h"

/* Messages with one peer. Each request is in one of the queues. */
struct trib_p2p_pair {
    int peer;
    bool self; /* this rank itself: without mailbox */
    bool joined; /* both adverts have come */
    struct trib_mailbox box;
    struct trib_p2p_queue fresh; /* sends of which the peer knows nothing */
    struct trib_p2p_queue announced; /* sends that wait for their receive */
    struct trib_p2p_queue streaming; /* sends whose elements go out, by turns */
    struct trib_p2p_queue flying; /* sends whose entries the transport may read */
    struct trib_p2p_queue posted; /* receives that wait for their message */
    struct trib_p2p_queue granting; /* receives of which the sender is to be told */
    struct trib_p2p_queue receiving; /* receives whose elements come */
    struct trib_p2p_queue pulling; /* receives that read them out of the sender's
                                    * memory */
    struct trib_p2p_queue taken; /* receives that have, of which it is to be told */
    struct trib_p2p_earlies early;
    struct trib_p2p_pair *next;
};

struct trib_p2p {
    struct trib_engine_p2p base;
    bool checks; /* entries have checksums */
    void (*watch)(void *arg, int peer, const struct trib_p2p_early *early); /* or
                                                                             * NULL */
    void *watch_arg;
    uint32_t last_id;
    struct trib_p2p_pair *list;
    struct trib_p2p_pair *of[]; /* [size] or NULL */
};

static inline struct trib_p2p *trib_p2p_of(const struct trib_engine *e)
{
    return (struct trib_p2p *)e->p2p;
}

/* For the table of the engine: engine_p2p.h. */
bool trib_p2p_progress(struct trib_engine *e);
bool trib_p2p_take_event(struct trib_engine *e, const struct trib_event *event);
void trib_p2p_end(struct trib_engine *e);

#endif
