/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conversation of a store with one rank that has joined: messages in, messages
 * out, no socket.
 *
 *     rank                                  store
 *      STORE_OPEN ─────────────────────────▶ finds the vector, or makes it
 *                 ◀──────────────── STORE_VECTOR
 *      STORE_PUSH, STORE_PUSH, … ──────────▶ collected; the last one has it applied
 *                 ◀─ STORE_DATA, … (PUSH_GIVE), STORE_DONE
 *      STORE_PULL ─────────────────────────▶ may wait for a version, or for ranks that
 *                                            are behind; then one version is copied
 *                 ◀─ STORE_DATA, …, STORE_DONE
 *      STORE_SNAPSHOT ─────────────────────▶ to disk, or from there, in a while
 *                 ◀──────────────── STORE_DONE
 *
 * STORE_INDEX, … or STORE_CODEC before a push or a pull say which elements it is of, or
 * by which codec they are encoded (store_form.h); they have no answer of their own.
 *
 * STORE_REFUSED may answer any of them, a push once all of it has come. A rank asks one
 * thing at a time.
 */
#ifndef AGG_STORE_STORE_PEER_H
#define AGG_STORE_STORE_PEER_H

#include "agg/store/store_table.h"

struct trib_store_peer;

/* Requests and elements of a peer, for metrics. */
struct trib_store_counts {
    uint64_t vectors; /* that it has had made */
    uint64_t pushes;
    uint64_t pulls;
    uint64_t received; /* bytes of elements */
    uint64_t sent;
};

struct trib_store_peer_opts {
    struct trib_store_table *table;
    uint32_t rank;
    struct trib_quota *quota; /* of the memory in which a push or an answer lies */
    const struct trib_store_tick *tick; /* as of trib_store_table_push; or NULL */
    bool keeps; /* false: snapshots are refused */
    void (*made)(void *arg, uint32_t vector); /* called for each vector that the rank
                                               * has had made; or NULL */
    void *made_arg;
};

/** trib_store_peer_create - all of opts outlives it; errors: TRIB_ERR_NO_MEMORY. */
trib_status_t trib_store_peer_create(const struct trib_store_peer_opts *opts,
                                     struct trib_store_peer **out);

/** trib_store_peer_free - NULL is allowed. A push of which not all has come is
 * forgotten. */
void trib_store_peer_free(struct trib_store_peer *peer);

/**
 * trib_store_peer_take - a message of the rank.
 *
 * m        any one that trib_control_get lets through
 * errors   TRIB_ERR_PROTOCOL with a sentence in err: it was not due, and the connection
 *          is to be ended
 */
trib_status_t trib_store_peer_take(struct trib_store_peer *peer,
                                   const struct trib_control *m,
                                   struct trib_error *err);

/** trib_store_peer_wake - look whether a pull need wait no longer: after a push of
 * anybody, when a rank has left, and when it is due. */
void trib_store_peer_wake(struct trib_store_peer *peer, uint64_t now_ns);

/** trib_store_peer_due - when to call trib_store_peer_wake at the latest; 0: now;
 * UINT64_MAX: nothing waits. */
uint64_t trib_store_peer_due(const struct trib_store_peer *peer);

/** trib_store_peer_next - the message that is to go to the rank next; false: none is.
 * The memory that the message names stays until trib_store_peer_sent. */
bool trib_store_peer_next(const struct trib_store_peer *peer, struct trib_control *out);

/** trib_store_peer_sent - the next message has gone. */
void trib_store_peer_sent(struct trib_store_peer *peer);

/** trib_store_peer_wants - true if the rank waits for a snapshot that is to be taken or
 * restored. */
bool trib_store_peer_wants(const struct trib_store_peer *peer,
                           struct trib_control_store_snapshot *out);

/**
 * trib_store_peer_kept - tell the rank what became of an order, if it waits for that.
 *
 * changes  trib_store_changes of the vector when the snapshot was taken: an older one
 *          than the rank has asked for is not what it waits for
 * err      status 0: it went well
 */
void trib_store_peer_kept(struct trib_store_peer *peer,
                          const struct trib_control_store_snapshot *what,
                          uint64_t changes, const struct trib_error *err);

/** trib_store_peer_counts - all so far. */
struct trib_store_counts trib_store_peer_counts(const struct trib_store_peer *peer);

#endif
