/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a store and its vectors, on the side of a rank.
 *
 * A rank has a session with each tribd of TRIB_SERVICE, called a shard. A vector is in
 * one shard, selected by a digest of its name, or is split into parts in different
 * shards (store_parts.c). All ranks know a secret token that identifies their store.
 */
#ifndef AGG_STORE_CLIENT_RANK_STORE_H
#define AGG_STORE_CLIENT_RANK_STORE_H

#include <pthread.h>
#include <sys/types.h>

#include <tributary.h>

#include "agg/client/control_link.h"
#include "base/idle_function.h"
#include "comm/kinds/sorted_pairs.h"

enum { TRIB_STORE_TRIES = 8 }; /* sessions per request, and connections per session */

/* Thread of store_alive.c. */
struct trib_store_alive {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all sessions */
    pthread_cond_t wake;
    pid_t pid; /* process that has the thread; 0: none */
    bool stop;
};

struct trib_store {
    struct trib_comm *comm; /* of trib_store_open, for collective calls */
    int rank, ranks;
    struct trib_idle idle; /* as the communicator's, for the calling thread */
    struct trib_log log;
    const struct trib_kernels *kernels;
    uint64_t seed; /* setting seed */
    struct trib_control_link_job job;
    struct trib_control_link *link; /* session i connects to address i of the job */
    struct trib_store_alive alive;
    uint8_t token[TRIB_CONTROL_NONCE_BYTES];
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES]; /* the key to its snapshots */
    bool lasting; /* later runs know the key too */
    uint64_t every_pushes; /* snapshot intervals */
    uint32_t every_ms;
    uint32_t remade[TRIB_AGGREGATORS_MAX]; /* times recreated; equal on all ranks */
    bool denied; /* the latest join reached a tribd that no longer has the store */
    struct trib_vector *vectors;
    uint32_t bound; /* staleness bound of pulls, as in STORE_PULL */
    trib_store_stats_t stats;
    struct trib_error err; /* error of the last failed call */
};

/* Codec of a vector's pushes or pulls; the latest one is cached. */
struct trib_vector_coder {
    char usual[TRIB_CONTROL_CODEC_MAX + 1]; /* default codec; "": none */
    char text[TRIB_CONTROL_CODEC_MAX + 1]; /* source text of `codec` */
    struct trib_codec *codec;
    bool feeds_back;
};

/* Encoder or decoder of a part, for `count` elements. */
struct trib_part_words {
    struct trib_words *words; /* or NULL */
    size_t count;
};

/* Stages of a request to one part. */
enum trib_part_stage {
    TRIB_PART_FORM, /* send indices or a codec */
    TRIB_PART_BODY, /* send the push, pull or order */
    TRIB_PART_ANSWER, /* receive the answer */
    TRIB_PART_DONE, /* answer received, or this part is not asked */
};

/* One part's share of a request. */
struct trib_part_request {
    enum trib_part_stage stage;
    const uint8_t *data; /* of a push */
    size_t data_bytes;
    const uint64_t *indices; /* [n_indices], sent minus first_index; NULL: not sparse */
    size_t n_indices;
    size_t first_index;
    uint8_t *out; /* receives the elements of an answer */
    size_t out_bytes;
    struct trib_words *words; /* NULL: the answer is not encoded */
    float *decoded; /* with `words`: receives the answer instead of `out` */
    size_t first, count; /* range of a pull, within the part */
    size_t sent; /* bytes sent in this stage */
    size_t heard; /* bytes of the answer received */
    trib_status_t decoding; /* with `words`: result of trib_words_take */
    int tries; /* sessions used so far */
    uint64_t until; /* without progress until then, the shard is lost */
    bool asked;
    uint64_t version; /* of the answer */
};

/* A range of a vector in one shard. */
struct trib_vector_part {
    int shard;
    uint32_t number; /* of the vector in the shard */
    size_t first, count; /* elements of the vector */
    uint64_t seen; /* newest version in an answer */
    uint64_t pushed; /* number of this rank's last push known to be applied */
    uint64_t saved; /* version of the newest known snapshot, plus 1; 0: none */
    bool lost; /* its shard was recreated without it; equal on all ranks */
    struct trib_part_words push, pull;
    size_t coded_at, coded_bytes; /* of the latest push, in the vector's `words` */
    struct trib_part_request request;
};

struct trib_vector {
    struct trib_vector *next_vector; /* list of the store */
    struct trib_store *store;
    int n_parts;
    size_t count;
    trib_dtype_t dtype;
    char rule[TRIB_CONTROL_RULE_MAX + 1];
    char name[TRIB_CONTROL_JOB_MAX + 1];
    struct trib_sorted_pairs pairs; /* of the latest sparse push */
    struct trib_vector_coder push, pull;
    float *residual; /* [count] error feedback of codecs; NULL: none yet */
    float *next; /* [count] the same after the current push */
    float *stage; /* [count] narrow floats, as float32 */
    uint8_t *words; /* [words_room] latest push, encoded */
    size_t words_room;
    struct trib_vector_part parts[]; /* [n_parts], contiguous */
};

/* A push, a pull or a snapshot order. */
struct trib_store_request {
    struct trib_vector *vector;
    const struct trib_vector_part *only; /* NULL: all parts */
    uint32_t purpose; /* of a push: enum trib_control_push; 0: a pull */
    uint32_t order; /* enum trib_control_snapshot; 0: none. Then not a pull */
    uint64_t number; /* of a push */
    uint64_t rate; /* of a push: bits of a float64 */
    const uint8_t *data; /* of a push */
    const uint64_t *indices; /* [n_indices], ascending for a push; NULL: not sparse */
    size_t n_indices;
    const char *codec; /* canonical text; NULL: not encoded */
    uint8_t *out; /* receives the elements of an answer; NULL: none */
    float *decoded; /* of a pull with `codec`: used instead of `out` */
    size_t first, count; /* of a pull */
    uint64_t at_least;
    uint32_t bound;
    uint32_t wait_ms; /* remaining wait of a pull; of a snapshot order: for the disk */
    uint64_t wait_until; /* end of wait_ms, set when the request starts */
    uint64_t version; /* result: lowest version of the parts asked */
    trib_status_t status; /* of the first part that failed, with its message: */
    struct trib_error err;
};

/** trib_store_fail - set the message of a failed call; returns status. */
trib_status_t trib_store_fail(struct trib_store *store, trib_status_t status,
                              const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The keep-alive thread: store_alive.c --------------------------------------------- */

/** trib_store_alive_start - start it before the first session; errors: TRIB_ERR_SYSTEM,
 * in store->err. */
trib_status_t trib_store_alive_start(struct trib_store *store);

/** trib_store_alive_runs - return true if this process has it: it is not a forked
 * child. */
bool trib_store_alive_runs(const struct trib_store *store);

/** trib_store_enter - begin a public call: clear the message. TRIB_ERR_INVALID in a
 * forked child: it shares the connections of its parent. */
trib_status_t trib_store_enter(struct trib_store *store);

/** trib_store_alive_stop - end it, if it was started. */
void trib_store_alive_stop(struct trib_store *store);

/** trib_store_lock, trib_store_unlock - exclude the keep-alive thread while a call uses
 * the sessions. A call that holds the lock for long must call trib_store_keep_alive. */
void trib_store_lock(struct trib_store *store);
void trib_store_unlock(struct trib_store *store);

/** trib_store_keep_alive - send ALIVE to each tribd if due. */
void trib_store_keep_alive(struct trib_store *store);

/* The sessions: store_shards.c ----------------------------------------------------- */

/**
 * trib_store_shards_open - connect to all shards and join the store.
 *
 * again    false: rank 0, which creates the store
 * errors   as trib_store_open, in store->err
 */
trib_status_t trib_store_shards_open(struct trib_store *store, bool again);

/** trib_store_shard_remake - connect to one shard and join the store that rank 0
 * recreates there; rank 0 must go first. Errors: as trib_store_shard_again. */
trib_status_t trib_store_shard_remake(struct trib_store *store, int shard);

/** trib_store_shard_again - reconnect to one shard after its session has ended, several
 * times if the new connection is lost, too. The caller holds the lock, which is
 * released during the connect; errors: TRIB_ERR_PEER_LOST and others, in store->err. */
trib_status_t trib_store_shard_again(struct trib_store *store, int shard);

/** trib_store_shards_rejoin - reconnect to shards whose connection was lost, before the
 * store is freed: else this rank would count as lost there, and others would wait. */
void trib_store_shards_rejoin(struct trib_store *store);

/** trib_store_lost - copy the message of an ended session to store->err; returns the
 * status of the call. */
trib_status_t trib_store_lost(struct trib_store *store, int shard, trib_status_t st);

/** trib_store_send - send a message and wait until it is written; an error ends the
 * session and is in store->err. */
trib_status_t trib_store_send(struct trib_store *store, int shard,
                              const struct trib_control *m);

/**
 * trib_store_sort - classify a received message.
 *
 * returns  TRIB_OK: one of the two kinds; TRIB_INPROGRESS: not an answer; the status of
 *          a STORE_REFUSED, after which the session continues; any other error ends the
 *          session. The message is in store->err
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

/** trib_store_shard_is_lost - return true if its session has ended. */
bool trib_store_shard_is_lost(const struct trib_store *store, int shard);

/** trib_store_shard_answers - process the messages that have arrived since the last
 * request; return true if the session is still open. The caller holds the lock. */
bool trib_store_shard_answers(struct trib_store *store, int shard);

/* Parts: store_parts.c ------------------------------------------------------------- */

/**
 * trib_vector_make - allocate a vector and split it into parts, equally on all ranks.
 *
 * desc     must be valid
 * returns  NULL: out of memory
 */
struct trib_vector *trib_vector_make(struct trib_store *store,
                                     const trib_vector_desc_t *desc);

/** trib_vector_free - free it; NULL is allowed. */
void trib_vector_free(struct trib_vector *v);

/** trib_vector_deal - set each part's share of a request, and the range of its
 * answer. */
void trib_vector_deal(struct trib_store_request *r);

/** trib_vector_state - return what is known of all parts: lowest version, number of
 * pushes and snapshot; whether a part is lost. */
trib_vector_state_t trib_vector_state(const struct trib_vector *v);

/** trib_vector_append_seen - append the versions of a lost vector that this rank knows
 * to the message; returns st. */
trib_status_t trib_vector_append_seen(const struct trib_vector *v, trib_status_t st);

/* Requests: store_exchange.c ------------------------------------------------------- */

/**
 * trib_vector_request - make a request to all concerned parts concurrently.
 *
 * If a session ends before the answer, it is reopened and the part is asked again.
 *
 * returns  TRIB_OK, or the status of the first part that failed, with its message in
 *          the store; no part has a pending request any longer
 */
trib_status_t trib_vector_request(struct trib_store_request *r);

/* Sparse requests: store_sparse.c -------------------------------------------------- */

/** trib_vector_sort - sort the pairs of a push by index and merge duplicates; they
 * become its data. Errors: TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY, in the store. */
trib_status_t trib_vector_sort(struct trib_store_request *r,
                               const struct trib_pairs_input *given);

/**
 * trib_vector_pull_each - pull indexed elements from all parts that contain them.
 *
 * errors   as trib_store_pull, in the store
 */
trib_status_t trib_vector_pull_each(struct trib_store_request *r);

/** trib_vector_spread - copy values of the sorted indices to the order of the given
 * indices. */
void trib_vector_spread(const struct trib_store_request *r,
                        const struct trib_pairs_input *given, const uint8_t *sorted,
                        void *out);

/** trib_vector_check_indices - validate indices; TRIB_ERR_INVALID: one is too large. */
trib_status_t trib_vector_check_indices(const struct trib_vector *v,
                                        const uint64_t *indices, size_t count);

/* Codecs: store_coded.c ------------------------------------------------------------ */

/** trib_vector_codecs - set the default codecs; errors: as trib_store_create. */
trib_status_t trib_vector_codecs(struct trib_vector *v, const trib_vector_desc_t *d);

/**
 * trib_vector_encode - encode the data of a push, if a codec is set.
 *
 * text     NULL: the vector's default codec
 * errors   TRIB_ERR_CODEC, TRIB_ERR_UNSUPPORTED, TRIB_ERR_NO_MEMORY, in the store
 */
trib_status_t trib_vector_encode(struct trib_store_request *r, const char *text);

/** trib_vector_encoded - commit the error feedback after the push was applied. */
void trib_vector_encoded(struct trib_vector *v);

/** trib_vector_expect - prepare to decode the answer of a pull; text and errors as
 * trib_vector_encode. */
trib_status_t trib_vector_expect(struct trib_store_request *r, const char *text);

/** trib_vector_narrow - convert a decoded answer to the vector's dtype. */
void trib_vector_narrow(const struct trib_store_request *r);

/** trib_vector_codecs_free - free all codec state. */
void trib_vector_codecs_free(struct trib_vector *v);

/* Calls: store_calls.c ------------------------------------------------------------- */

/** trib_vector_open - find or create the vector in its shards; errors: as
 * trib_store_create. */
trib_status_t trib_vector_open(struct trib_vector *vector);

/* Collective calls: store_open.c --------------------------------------------------- */

/** trib_store_agree - return the worst status of all ranks on every rank. */
trib_status_t trib_store_agree(struct trib_store *store, trib_status_t own);

#endif
