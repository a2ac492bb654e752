/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a store and of its vectors, on the side of a rank.
 *
 * A rank has a session with each tribd that TRIB_SERVICE names, a shard. A vector is in
 * one of them, by a digest of its name, or is cut into parts, each in another shard
 * (store_parts.c). All ranks know the token by which they find their store there, and
 * so does nobody else.
 */
#ifndef STORE_RANK_STORE_H
#define STORE_RANK_STORE_H

#include <pthread.h>
#include <sys/types.h>

#include <tributary.h>

#include "base/idle_function.h"
#include "comm/sorted_pairs.h"
#include "offload/control_link.h"

/* The thread of store_alive.c. */
struct trib_store_alive {
    pthread_t thread;
    pthread_mutex_t lock; /* of all sessions */
    pthread_cond_t wake;
    pid_t pid; /* the process that has the thread; 0: none */
    bool stop;
};

struct trib_store {
    struct trib_comm *comm; /* of trib_store_open; for calls that all ranks make */
    int rank, ranks;
    struct trib_idle idle; /* as the communicator's, for the thread of a call */
    struct trib_log log;
    const struct trib_kernels *kernels;
    uint64_t seed; /* setting seed */
    struct trib_control_link_job job;
    struct trib_control_link *link; /* session i is with address i of the job */
    struct trib_store_alive alive;
    uint8_t token[TRIB_CONTROL_NONCE_BYTES];
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES]; /* the key to its snapshots */
    bool lasting; /* later runs have that key, too */
    uint64_t every_pushes; /* of snapshots */
    uint32_t every_ms;
    uint32_t remade[TRIB_AGGREGATORS_MAX]; /* times that the store was made anew in a
                                            * shard, the same on all ranks */
    struct trib_vector *vectors;
    uint32_t bound; /* of pulls, as in STORE_PULL */
    trib_store_stats_t stats;
    struct trib_error err; /* of the last failed call */
};

/* The codec of a vector's pushes, or of its pulls; the newest one is kept. */
struct trib_vector_coder {
    char usual[TRIB_CONTROL_CODEC_MAX + 1]; /* for calls that name none; "": none */
    char text[TRIB_CONTROL_CODEC_MAX + 1]; /* of `codec` as it was given */
    struct trib_codec *codec;
    bool feeds_back;
};

/* The code words of a part, for `count` elements. */
struct trib_part_words {
    struct trib_words *words; /* or NULL */
    size_t count;
};

/* The steps of a request to one part. */
enum trib_part_stage {
    TRIB_PART_FORM, /* indices or a codec are to go */
    TRIB_PART_BODY, /* the push, the pull or the order is to go */
    TRIB_PART_ANSWER, /* the answer is to come */
    TRIB_PART_DONE, /* it has come, or nothing is asked of this part */
};

/* The share of a request that one part has. */
struct trib_part_request {
    enum trib_part_stage stage;
    const uint8_t *data; /* of a push */
    size_t data_bytes;
    const uint64_t *indices; /* [n_indices] from `first_index` on; NULL: of no single
                              * elements */
    size_t n_indices;
    size_t first_index;
    uint8_t *out; /* of an answer with elements */
    size_t out_bytes;
    struct trib_words *words; /* NULL: the answer is not encoded */
    float *decoded; /* with `words`: takes its place */
    size_t first, count; /* of a pull, in the part */
    size_t sent; /* bytes of the stage that have gone */
    size_t heard; /* bytes of the answer that have come */
    trib_status_t decoding; /* with `words`: what trib_words_take said */
    int tries; /* sessions over which it has been made */
    uint64_t until; /* the shard is lost if nothing has come or gone by then */
    bool asked;
    uint64_t version; /* of the answer */
};

/* A range of a vector that one shard holds. */
struct trib_vector_part {
    int shard;
    uint32_t number; /* of the vector there */
    size_t first, count; /* elements of the vector */
    uint64_t seen; /* newest version of which an answer has told */
    uint64_t pushed; /* number of this rank's last push that is known to be applied */
    uint64_t saved; /* version of the newest snapshot known, plus 1; 0: none is */
    bool lost; /* its shard was made anew without it; the same on all ranks */
    struct trib_part_words push, pull;
    size_t coded_at, coded_bytes; /* of the newest push, in `words` of the vector */
    struct trib_part_request request;
};

struct trib_vector {
    struct trib_vector *next_vector; /* of the store */
    struct trib_store *store;
    int n_parts;
    size_t count;
    trib_dtype_t dtype;
    char rule[TRIB_CONTROL_RULE_MAX + 1];
    char name[TRIB_CONTROL_JOB_MAX + 1];
    struct trib_sorted_pairs pairs; /* of the newest sparse push */
    struct trib_vector_coder push, pull;
    float *residual; /* [count] what codecs have held back; NULL: nothing yet */
    float *next; /* [count] the same behind the push under way */
    float *stage; /* [count] narrow floats as float32 */
    uint8_t *words; /* [words_room] the newest push as code words */
    size_t words_room;
    struct trib_vector_part parts[]; /* [n_parts], which follow each other */
};

/* A push or a pull. */
struct trib_store_request {
    struct trib_vector *vector;
    const struct trib_vector_part *only; /* NULL: all parts are asked */
    uint32_t purpose; /* of a push, enum trib_control_push; 0: a pull */
    uint32_t order; /* enum trib_control_snapshot; 0: none, and not a pull */
    uint64_t number; /* of a push */
    uint64_t rate; /* of a push: the bits of a float64 */
    const uint8_t *data; /* of a push */
    const uint64_t *indices; /* [n_indices], of a push rising; NULL: of no single
                              * elements */
    size_t n_indices;
    const char *codec; /* canonical text; NULL: elements are not encoded */
    uint8_t *out; /* of an answer with elements; NULL: it has none */
    float *decoded; /* of a pull with `codec`: takes the place of `out` */
    size_t first, count; /* of a pull */
    uint64_t at_least;
    uint32_t bound, wait_ms;
    uint64_t version; /* the answer: the lowest of the parts that were asked */
    trib_status_t status; /* of the first part that failed; its sentence: */
    struct trib_error err;
};

/** trib_store_fail - note the sentence of a failed call; returns status. */
trib_status_t trib_store_fail(struct trib_store *store, trib_status_t status,
                              const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The thread that says ALIVE: store_alive.c ---------------------------------------- */

/** trib_store_alive_start - start it, before the first session; errors:
 * TRIB_ERR_SYSTEM, with the sentence in store->err. */
trib_status_t trib_store_alive_start(struct trib_store *store);

/** trib_store_alive_stop - end it, if it was started. */
void trib_store_alive_stop(struct trib_store *store);

/** trib_store_lock, trib_store_unlock - keep the thread from the sessions while a call
 * uses them. A call that holds the lock for long calls trib_store_keep_alive. */
void trib_store_lock(struct trib_store *store);
void trib_store_unlock(struct trib_store *store);

/** trib_store_keep_alive - say ALIVE to each tribd where that is due. */
void trib_store_keep_alive(struct trib_store *store);

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

/** trib_store_shard_again - connect to one of them again, after its session has ended.
 * The caller has the lock, which is free while this connects; errors:
 * TRIB_ERR_PEER_LOST and others, with the sentence in store->err. */
trib_status_t trib_store_shard_again(struct trib_store *store, int shard);

/** trib_store_lost - take over the sentence of a session that has ended; returns the
 * status of the call. */
trib_status_t trib_store_lost(struct trib_store *store, int shard, trib_status_t st);

/** trib_store_send - one message, and all of it is written; an error ends the session,
 * and `store` has the sentence. */
trib_status_t trib_store_send(struct trib_store *store, int shard,
                              const struct trib_control *m);

/**
 * trib_store_sort - look at a message that has come.
 *
 * returns  TRIB_OK: it is of this kind or the other one; TRIB_INPROGRESS: it answers
 *          nothing; the status of a STORE_REFUSED, after which the session goes on; all
 *          else has ended it. The sentence is in store->err
 */
trib_status_t trib_store_sort(struct trib_store *store, int shard,
                              enum trib_control_kind kind, enum trib_control_kind other,
                              const struct trib_control *m);

/**
 * trib_store_hear - wait for a message of this kind; errors: as trib_store_sort.
 *
 * out      valid until the next call on the shard
 */
trib_status_t trib_store_hear(struct trib_store *store, int shard,
                              enum trib_control_kind kind, struct trib_control *out);

/** trib_store_shard_is_lost - true if its session has ended. */
bool trib_store_shard_is_lost(const struct trib_store *store, int shard);

/* Parts: store_parts.c ------------------------------------------------------------- */

/**
 * trib_vector_make - a vector that is cut into parts, the same on all ranks.
 *
 * desc     one that is right
 * returns  NULL: no memory
 */
struct trib_vector *trib_vector_make(struct trib_store *store,
                                     const trib_vector_desc_t *desc);

/** trib_vector_free - free it; NULL is allowed. */
void trib_vector_free(struct trib_vector *v);

/** trib_vector_deal - give each part its share of a request, with the range of its
 * answer. */
void trib_vector_deal(struct trib_store_request *r);

/** trib_vector_state - what is known of all parts: the lowest version, number of pushes
 * and snapshot; a part is lost. */
trib_vector_state_t trib_vector_state(const struct trib_vector *v);

/** trib_part_of - the part that has an element. */
struct trib_vector_part *trib_part_of(struct trib_vector *v, uint64_t index);

/* The exchange: store_exchange.c --------------------------------------------------- */

/**
 * trib_store_exchange - make a request to all parts that have a share of it, at once.
 *
 * A session that ends before the answer is made anew, and the part is asked again.
 * returns  TRIB_OK, or the status of the first part that failed, with its sentence in
 *          the store; no part has a request under way any more
 */
trib_status_t trib_store_exchange(struct trib_store_request *r);

/* Sparse requests: store_sparse.c -------------------------------------------------- */

/** trib_vector_sort - make the pairs of a push its data, by rising index, each once;
 * errors: TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY, with the sentence in the store. */
trib_status_t trib_vector_sort(struct trib_store_request *r,
                               const struct trib_pairs_input *given);

/**
 * trib_vector_pull_each - a pull of single elements from several parts.
 *
 * errors   those of trib_store_pull, with the sentence in the store
 */
trib_status_t trib_vector_pull_each(struct trib_store_request *r);

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

/** trib_vector_codecs_free - free what is for codecs. */
void trib_vector_codecs_free(struct trib_vector *v);

/* Calls: store_calls.c ------------------------------------------------------------- */

/** trib_vector_say_seen - add to the sentence of a vector that is lost what the rank
 * knows of it; returns st. */
trib_status_t trib_vector_say_seen(const struct trib_vector *v, trib_status_t st);

/** trib_vector_request - make a request of all parts; errors: those of
 * trib_store_push and trib_store_pull. */
trib_status_t trib_vector_request(struct trib_store_request *r);

/** trib_part_ask - have an answer of this part alone; errors: as trib_store_wait. */
trib_status_t trib_part_ask(struct trib_vector *v, const struct trib_vector_part *p);

/** trib_vector_open - find or make the vector in its shards; errors: as
 * trib_store_create. */
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
