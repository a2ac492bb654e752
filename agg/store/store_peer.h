/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protocol state of a store towards one joined rank: messages in, messages out, no
 * socket.
 *
 *     rank                                  store
 *      STORE_OPEN ─────────────────────────▶ find or create the vector
 *                 ◀──────────────── STORE_VECTOR
 *      STORE_PUSH, STORE_PUSH, … ──────────▶ collect; apply after the last message
 *                 ◀─ STORE_DATA, … (PUSH_GIVE), STORE_DONE
 *      STORE_PULL ─────────────────────────▶ may wait for a version or lagging ranks;
 *                                            then copy one version
 *                 ◀─ STORE_DATA, …, STORE_DONE
 *      STORE_SNAPSHOT ─────────────────────▶ write to disk, or read, asynchronously
 *                 ◀──────────────── STORE_DONE
 *
 * STORE_INDEX, … or STORE_CODEC before a push or pull select its elements or its codec
 * (store_form.h); they are not answered themselves.
 *
 * STORE_REFUSED may answer any request; a push only after all of it was received. A
 * rank has one request in flight.
 */
#ifndef AGG_STORE_STORE_PEER_H
#define AGG_STORE_STORE_PEER_H

#include "agg/store/store_table.h"

struct trib_store_peer;

/* Counts of one peer. */
struct trib_store_counts {
    uint64_t vectors; /* vectors created for it */
    uint64_t changes; /* pushes, and copies that set or replaced a vector */
    uint64_t pushes;
    uint64_t pulls;
    uint64_t received; /* bytes of elements */
    uint64_t sent;
};

struct trib_store_peer_opts {
    struct trib_store_table *table;
    uint32_t rank;
    struct trib_quota *quota; /* charged for the memory of a push or answer */
    const struct trib_store_tick *tick; /* as for trib_store_table_push; or NULL */
    bool keeps; /* false: snapshots are refused */
    void (*made)(void *arg, uint32_t vector); /* called for each created vector */
    void *made_arg;
};

/** trib_store_peer_create - create the state of a rank; everything in opts must outlive
 * it. Errors: TRIB_ERR_NO_MEMORY. */
trib_status_t trib_store_peer_create(const struct trib_store_peer_opts *opts,
                                     struct trib_store_peer **out);

/** trib_store_peer_free - free it and discard an incomplete push; NULL is allowed. */
void trib_store_peer_free(struct trib_store_peer *peer);

/**
 * trib_store_peer_take - process a message of the rank.
 *
 * m        any message that trib_control_get accepts
 * errors   TRIB_ERR_PROTOCOL: unexpected message; close the connection
 */
trib_status_t trib_store_peer_take(struct trib_store_peer *peer,
                                   const struct trib_control *m,
                                   struct trib_error *err);

/** trib_store_peer_wake - check whether a waiting pull can proceed: call it after a
 * vector has changed, after a rank has left, and when due. */
void trib_store_peer_wake(struct trib_store_peer *peer, uint64_t now_ns);

/** trib_store_peer_due - return the latest time for trib_store_peer_wake; 0: now;
 * UINT64_MAX: no pull waits. */
uint64_t trib_store_peer_due(const struct trib_store_peer *peer);

/** trib_store_peer_next - return the next message to send; false: none. Its memory is
 * valid until trib_store_peer_sent. */
bool trib_store_peer_next(const struct trib_store_peer *peer, struct trib_control *out);

/** trib_store_peer_sent - mark the next message as sent. */
void trib_store_peer_sent(struct trib_store_peer *peer);

/** trib_store_peer_wants - return true if the rank waits for a snapshot or a restore.
 */
bool trib_store_peer_wants(const struct trib_store_peer *peer,
                           struct trib_control_store_snapshot *out);

/**
 * trib_store_peer_kept - answer a snapshot order, if the rank waits for it.
 *
 * changes  trib_store_changes of the vector at the snapshot: the rank does not wait for
 *          a snapshot older than its order
 * err      status 0: success
 */
void trib_store_peer_kept(struct trib_store_peer *peer,
                          const struct trib_control_store_snapshot *what,
                          uint64_t changes, const struct trib_error *err);

/** trib_store_peer_counts - return all counts so far. */
struct trib_store_counts trib_store_peer_counts(const struct trib_store_peer *peer);

#endif
