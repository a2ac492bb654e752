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
#include "comm/sorted_pairs.h"
#include "offload/control_link.h"

struct trib_store {
    struct trib_comm *comm; /* of trib_store_open; for calls that all ranks make */
    int rank, ranks;
    struct trib_idle idle; /* as the communicator's, for the thread of a call */
    struct trib_log log;
    const struct trib_kernels *kernels;
    uint64_t seed; /* setting seed */
    struct trib_control_link_job job;
    struct trib_control_link *link; /* session i is with address i of the job */
    uint8_t token[TRIB_CONTROL_NONCE_BYTES];
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES]; /* the key to its snapshots */
    bool lasting; /* later runs have that key, too */
    uint64_t every_pushes; /* of snapshots */
    uint32_t every_ms;
    uint32_t remade[TRIB_AGGREGATORS_MAX]; /* times that the store was made anew in a
                                            * shard, the same on all ranks */
    struct trib_vector *vectors;
    uint32_t bound; /* of pulls, as in STORE_PULL */
    uint32_t wait_ms; /* longest wait of the request under way, beside timeout_ms */
    struct trib_error err; /* of the last failed call */
};

/* The codec of a vector's pushes, or of its pulls; the newest one is kept. */
struct trib_vector_coder {
    char usual[TRIB_CONTROL_CODEC_MAX + 1]; /* for calls that name none; "": none */
    char text[TRIB_CONTROL_CODEC_MAX + 1]; /* of `codec` as it was given */
    struct trib_codec *codec;
    bool feeds_back;
    struct trib_words *words; /* for `words_count` elements */
    size_t words_count;
};

struct trib_vector {
    struct trib_vector *next_vector; /* of the store */
    struct trib_store *store;
    int shard;
    uint32_t number; /* of the vector there */
    size_t count;
    trib_dtype_t dtype;
    uint64_t seen; /* newest version of which an answer has told */
    uint64_t pushed; /* pushes of this rank that are known to be applied */
    uint64_t saved; /* version of the newest snapshot known, plus 1; 0: none is */
    bool lost; /* its shard was made anew without it; the same on all ranks */
    char rule[TRIB_CONTROL_RULE_MAX + 1];
    char name[TRIB_CONTROL_JOB_MAX + 1];
    struct trib_sorted_pairs pairs; /* of the newest sparse push */
    struct trib_vector_coder push, pull;
    float *residual; /* [count] what codecs have held back; NULL: nothing yet */
    float *next; /* [count] the same behind the push under way */
    float *stage; /* [count] narrow floats as float32 */
    uint8_t *words; /* [words_room] the newest push as code words */
    size_t words_room;
};

/* A push or a pull. */
struct trib_store_request {
    struct trib_vector *vector;
    uint32_t purpose; /* of a push, enum trib_control_push; 0: a pull */
    uint32_t order; /* enum trib_control_snapshot; 0: none, and not a pull */
    uint64_t number; /* of a push */
    uint64_t rate; /* of a push: the bits of a float64 */
    const uint8_t *data; /* of a push */
    size_t data_bytes;
    const uint64_t *indices; /* [n_indices]; NULL: of no single elements */
    size_t n_indices;
    const char *codec; /* canonical text; NULL: elements are not encoded */
    uint8_t *out; /* of an answer with elements */
    size_t out_bytes;
    struct trib_words *words; /* NULL: the answer is not encoded */
    float *decoded; /* with `words`: takes its place */
    size_t first, count; /* of a pull */
    uint64_t at_least;
    uint32_t bound, wait_ms;
    uint64_t version; /* the answer */
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

/** trib_store_shard_remake - connect to one of them, and join the store that rank 0
 * makes there anew: rank 0 first. Errors: as trib_store_shard_again. */
trib_status_t trib_store_shard_remake(struct trib_store *store, int shard);

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

/* Sparse requests: store_sparse.c -------------------------------------------------- */

/** trib_vector_sort - make the pairs of a push its data, by rising index, each once;
 * errors: TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY, with the sentence in the store. */
trib_status_t trib_vector_sort(struct trib_store_request *r,
                               const struct trib_pairs_input *given);

/** trib_vector_spread - values of the sorted indices to the places of those that were
 * given. */
void trib_vector_spread(const struct trib_store_request *r,
                        const struct trib_pairs_input *given, const uint8_t *sorted,
                        void *out);

/** trib_vector_check_indices - errors: TRIB_ERR_INVALID: one is too large. */
trib_status_t trib_vector_check_indices(const struct trib_vector *v,
                                        const uint64_t *indices, size_t count);

/* Codecs: store_coded.c ------------------------------------------------------------ */

/** trib_vector_codecs - take the codecs for calls that name none; errors: as
 * trib_store_create. */
trib_status_t trib_vector_codecs(struct trib_vector *v, const trib_vector_desc_t *d);

/**
 * trib_vector_encode - make the code words of `data` the data of a push.
 *
 * text     NULL: the vector's usual one. Nothing changes if it is of no codec
 * errors   TRIB_ERR_CODEC, TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY, with the sentence
 *          in the store
 */
trib_status_t trib_vector_encode(struct trib_store_request *r, const char *text);

/** trib_vector_encoded - the push is applied: what was held back counts from now on. */
void trib_vector_encoded(struct trib_vector *v);

/** trib_vector_expect - prepare for the code words that answer a pull; text and errors
 * as trib_vector_encode. */
trib_status_t trib_vector_expect(struct trib_store_request *r, const char *text);

/** trib_vector_narrow - the answer is decoded: write it as the vector's dtype. */
void trib_vector_narrow(const struct trib_store_request *r);

/** trib_vector_free - free it; NULL is allowed. */
void trib_vector_free(struct trib_vector *v);

/* Calls: store_calls.c ------------------------------------------------------------- */

/**
 * trib_vector_open - find or make the vector in its shard; errors: as
 * trib_store_create.
 */
trib_status_t trib_vector_open(struct trib_vector *vector);

/** trib_vector_set - give a vector its first elements; errors: as trib_store_push. */
trib_status_t trib_vector_set(struct trib_vector *vector, const void *data);

/** trib_vector_replace - give a vector a rank's copy, which has this version; errors:
 * as trib_store_push. */
trib_status_t trib_vector_replace(struct trib_vector *vector, const void *data,
                                  uint64_t version);

/** trib_vector_snapshot - have a snapshot taken or restored; errors: as
 * trib_store_snapshot. */
trib_status_t trib_vector_snapshot(struct trib_vector *vector,
                                   enum trib_control_snapshot order,
                                   uint64_t *version_out);

/** trib_store_agree - give all ranks the worst status of any rank. */
trib_status_t trib_store_agree(struct trib_store *store, trib_status_t own);

#endif
