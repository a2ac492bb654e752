/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from one rank to another, with tags: what an engine does beside its
 * operations, in whose order they have no place.
 *
 * Why a sender cannot fill the receiver's memory, and nothing stands still: the
 * receiver always takes what is in a mailbox, and keeps what has no receive yet. That
 * is at most TRIB_P2P_EAGER_MOST short messages of a peer, as the sender counts those
 * that have found their receive, and announces further ones; and the heads of at most
 * TRIB_P2P_ANNOUNCED_MOST announced ones, each of which is a send that still waits. The
 * elements of those come when they have a place to go.
 */
#ifndef PIPELINE_P2P_P2P_H
#define PIPELINE_P2P_P2P_H

#include "pipeline/engine/engine_state.h"
#include "pipeline/p2p/matching.h"

enum {
    TRIB_P2P_EAGER_MOST = 32,
    TRIB_P2P_ANNOUNCED_MOST = 65536,
};

/**
 * trib_p2p_open - make the mailbox that is shared with a peer, if there is none.
 *
 * The link to it is connected, if it is not this rank itself.
 * errors   of allocating; the sentence is in e->err
 */
trib_status_t trib_p2p_open(struct trib_engine *e, int peer);

/**
 * trib_p2p_start - begin a request, whose mailbox is open.
 *
 * r        sends, peer, tag, dtype, count, bytes, run, buffer are set. Its run is
 *          TRIB_RUN_ACTIVE from now on, and TRIB_RUN_DONE with its status in the end
 * owner    r and its buffer belong to the engine until then
 */
void trib_p2p_start(struct trib_engine *e, struct trib_p2p_request *r);

/** trib_p2p_bytes - the memory of all mailboxes of an engine. */
size_t trib_p2p_bytes(const struct trib_engine *e);

/**
 * trib_p2p_watch - have a function called for each message with a tag below 0 that has
 * no receive: those that are there now, and each that comes; NULL: no function.
 *
 * It may fail the engine, by trib_engine_mark.
 */
void trib_p2p_watch(struct trib_engine *e,
                    void (*fn)(void *arg, int peer, const struct trib_p2p_early *early),
                    void *arg);

#endif
