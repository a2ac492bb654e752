/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a store and of its vectors, on the side of a rank.
 *
 * A rank has a session with each tribd that TRIB_SERVICE names, a shard; a vector is in
 * one of them, by a digest of its name. All ranks know the token by which they find
 * their store there, and so does nobody else.
 */
#ifndef STORE_RANK_STORE_H
#define STORE_RANK_STORE_H

#include <tributary.h>

#include "base/idle_function.h"
#include "offload/control_link.h"

struct trib_store {
    struct trib_comm *comm; /* of trib_store_open; for calls that all ranks make */
    int rank, ranks;
    struct trib_idle idle; /* as the communicator's, for the thread of a call */
    struct trib_log log;
    struct trib_control_link_job job;
    struct trib_control_link *link; /* session i is with address i of the job */
    uint8_t token[TRIB_CONTROL_NONCE_BYTES];
    struct trib_vector *vectors;
    uint32_t bound; /* of pulls, as in STORE_PULL */
    uint32_t wait_ms; /* longest wait of the request under way, beside timeout_ms */
    struct trib_error err; /* of the last failed call */
};

struct trib_vector {
    struct trib_vector *next; /* of the store */
    struct trib_store *store;
    int shard;
    uint32_t number; /* of the vector there */
    size_t count;
    trib_dtype_t dtype;
    uint64_t seen; /* newest version of which an answer has told */
    uint64_t pushed; /* pushes of this rank that are known to be applied */
    char name[TRIB_CONTROL_JOB_MAX + 1];
};

/** trib_store_fail - note the sentence of a failed call; returns status. */
trib_status_t trib_store_fail(struct trib_store *store, trib_status_t status,
                              const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The sessions: store_shards.c ----------------------------------------------------- */

/**
 * trib_store_shards_open - connect to all of them, and join the store.
 *
 * again    false: this is rank 0, which makes the store
 * errors   as trib_store_open, with the sentence in store->err
 */
trib_status_t trib_store_shards_open(struct trib_store *store, bool again);

/** trib_store_shard_again - connect to one of them anew, after its session has ended;
 * errors: TRIB_ERR_PEER_LOST and others, with the sentence in store->err. */
trib_status_t trib_store_shard_again(struct trib_store *store, int shard);

/** trib_store_send - one message; an error ends the session, and `store` has the
 * sentence. */
trib_status_t trib_store_send(struct trib_store *store, int shard,
                              const struct trib_control *m);

/**
 * trib_store_hear - the next message, of this kind or the other one.
 *
 * out      valid until the next call on the shard
 * errors   the status of a STORE_REFUSED, after which the session goes on; all else has
 *          ended it: trib_store_shard_is_lost
 */
trib_status_t trib_store_hear(struct trib_store *store, int shard,
                              enum trib_control_kind kind, enum trib_control_kind other,
                              struct trib_control *out);

/** trib_store_shard_is_lost - true if its session has ended. */
bool trib_store_shard_is_lost(const struct trib_store *store, int shard);

/* Calls: store_calls.c ------------------------------------------------------------- */

/**
 * trib_vector_open - find or make the vector in its shard; errors: as
 * trib_store_create.
 */
trib_status_t trib_vector_open(struct trib_vector *vector, const char *rule);

/** trib_vector_set - give a vector its first elements; errors: as trib_store_push. */
trib_status_t trib_vector_set(struct trib_vector *vector, const void *data);

#endif
