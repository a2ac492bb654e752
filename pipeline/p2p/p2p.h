/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between ranks, with tags, independent of the engine's operations and their
 * order.
 *
 * Why a sender cannot exhaust the receiver's memory, and nothing deadlocks: the
 * receiver always empties a mailbox, and keeps messages without a receive. Per peer
 * these are at most TRIB_P2P_EAGER_MOST short messages, because the sender counts the
 * unmatched ones and announces further ones. The receiver also keeps at most
 * TRIB_P2P_ANNOUNCED_MOST heads of announced messages, each of a send that still waits.
 * The elements of those arrive only once they have a destination.
 */
#ifndef PIPELINE_P2P_P2P_H
#define PIPELINE_P2P_P2P_H

#include "pipeline/p2p/matching.h"
#include "pipeline/run/engine_state.h"

enum {
    TRIB_P2P_EAGER_MOST = 32,
    TRIB_P2P_ANNOUNCED_MOST = 65536,
};

/**
 * trib_p2p_open - create the mailbox shared with a peer, if there is none.
 *
 * The link to the peer is connected, unless it is this rank itself.
 * errors   of allocation; the error message is in e->err
 */
trib_status_t trib_p2p_open(struct trib_engine *e, int peer);

/**
 * trib_p2p_start - begin a request whose mailbox is open.
 *
 * r        sends, peer, tag, dtype, count, bytes, run, buffer are set. Its run is
 *          TRIB_RUN_ACTIVE from now on, and TRIB_RUN_DONE with its status at the end
 * owner    r and its buffer belong to the engine until then
 */
void trib_p2p_start(struct trib_engine *e, struct trib_p2p_request *r);

/** trib_p2p_bytes - return the memory of all mailboxes of an engine. */
size_t trib_p2p_bytes(const struct trib_engine *e);

/**
 * trib_p2p_watch - call a function for each message with a tag below 0 that has no
 * receive, present or future; NULL: stop.
 *
 * The function may fail the engine by trib_engine_mark.
 */
void trib_p2p_watch(struct trib_engine *e,
                    void (*fn)(void *arg, int peer, const struct trib_p2p_early *early),
                    void *arg);

#endif
