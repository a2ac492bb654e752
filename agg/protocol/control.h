/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the control connection, between rank 0 of a job and an aggregator, or
 * any rank and its store. Pure functions on bytes: no sockets, no clock, no memory.
 *
 *      0       4         5      6     8        12
 *     +-------+---------+------+-----+--------+---------
 *     | magic | framing | kind |  0  | length | payload
 *     +-------+---------+------+-----+--------+---------
 *
 * Numbers are little-endian. What a payload holds, and within which limits, is a table
 * in agg/protocol/control.c, by which messages are both written and read: no message
 * can be written that is refused when read. Once both sides are authenticated, payloads
 * are sealed (agg/protocol/crypt.h), which makes each TRIB_CONTROL_SEAL_BYTES longer;
 * the head is sealed with its payload, but stays legible.
 */
#ifndef AGG_PROTOCOL_CONTROL_H
#define AGG_PROTOCOL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#define TRIB_CONTROL_FRAMING 1
/* The version of the messages; HELLO and WELCOME agree on one. */
#define TRIB_CONTROL_VERSION_MIN 2
#define TRIB_CONTROL_VERSION_MAX 4
#define TRIB_CONTROL_VERSION_STORE 3 /* the first one that has stores */
#define TRIB_CONTROL_VERSION_ALIVE 4 /* the first one whose ranks say ALIVE to a store
                                      * also while they make no call */
#define TRIB_CONTROL_HEAD_BYTES 12
#define TRIB_CONTROL_SEAL_BYTES 17
#define TRIB_CONTROL_NONCE_BYTES 32

/* The lengths of texts, without the zero that is not sent. */
#define TRIB_CONTROL_JOB_MAX 64
#define TRIB_CONTROL_USER_MAX 64
#define TRIB_CONTROL_LIBRARY_MAX 24
#define TRIB_CONTROL_TEXT_MAX 512
#define TRIB_CONTROL_PLAN_MAX 1024
#define TRIB_CONTROL_SETTINGS_MAX 1024
#define TRIB_CONTROL_TREE_MAX 16384 /* bytes of offload/agg_tree.h */

#define TRIB_CONTROL_AUTH_MAX 1024 /* bytes of a credential */
#define TRIB_CONTROL_RANKS_MAX 65536
#define TRIB_CONTROL_AGGREGATORS_MAX 1024
#define TRIB_CONTROL_BLOB_MAX 2560
#define TRIB_CONTROL_BLOBS_BYTES 32768 /* bytes of one message; more go in several */
#define TRIB_CONTROL_STORE_BYTES 32768 /* bytes of elements in one message */
#define TRIB_CONTROL_RULE_MAX 160
#define TRIB_CONTROL_CODEC_MAX 160
#define TRIB_CONTROL_UNBOUNDED UINT32_MAX
#define TRIB_CONTROL_WAIT_MAX 86400000 /* ms */
#define TRIB_CONTROL_COUNT_MAX (UINT64_C(1) << 48) /* elements of a vector */
/* The most pushes that a vector takes, so its highest version. The limit keeps sums of
 * two such numbers from wrapping. */
#define TRIB_CONTROL_PUSHES_MAX ((uint64_t)INT64_MAX)

/* The longest frames: of any kind, and before both sides are authenticated. */
#define TRIB_CONTROL_FRAME_BYTES \
    (TRIB_CONTROL_HEAD_BYTES + 29 + TRIB_CONTROL_STORE_BYTES + TRIB_CONTROL_SEAL_BYTES)
#define TRIB_CONTROL_EARLY_BYTES (TRIB_CONTROL_HEAD_BYTES + 1 + TRIB_CONTROL_AUTH_MAX)

enum trib_control_kind {
    TRIB_CONTROL_HELLO = 1, /* the job begins */
    TRIB_CONTROL_WELCOME, /* the aggregator chooses version and method */
    TRIB_CONTROL_AUTH, /* a step of the method */
    TRIB_CONTROL_JOIN, /* the job asks for admission; then one of three comes: */
    TRIB_CONTROL_ADMITTED,
    TRIB_CONTROL_QUEUED, /* wait, another answer will come */
    TRIB_CONTROL_REFUSED,
    TRIB_CONTROL_BLOBS, /* blobs of the wireup between ranks and aggregators */
    TRIB_CONTROL_PLAN,
    TRIB_CONTROL_PLAN_OK,
    TRIB_CONTROL_PLAN_REFUSED,
    TRIB_CONTROL_DRAIN, /* the aggregator is about to end: leave it */
    TRIB_CONTROL_GOODBYE, /* nothing comes after it */
    TRIB_CONTROL_ALIVE, /* the sender is not stopped */
    TRIB_CONTROL_ERROR, /* nothing comes after it, and this is why */
    TRIB_CONTROL_STORE_JOIN, /* a rank asks for the store of its job */
    TRIB_CONTROL_STORE_JOINED,
    TRIB_CONTROL_STORE_OPEN, /* a vector, which is made if there is none */
    TRIB_CONTROL_STORE_VECTOR, /* its number */
    TRIB_CONTROL_STORE_PUSH, /* elements of a push, which come in their order */
    TRIB_CONTROL_STORE_PULL,
    TRIB_CONTROL_STORE_DATA, /* elements of an answer */
    TRIB_CONTROL_STORE_DONE, /* a push is applied, or an answer is complete */
    TRIB_CONTROL_STORE_REFUSED, /* the answer to any of these is no */
    TRIB_CONTROL_STORE_INDEX, /* the next push or pull is of these elements */
    TRIB_CONTROL_STORE_CODEC, /* the next push or pull is encoded */
    TRIB_CONTROL_STORE_SNAPSHOT, /* a vector goes to disk, or comes from there */
    TRIB_CONTROL_KINDS,
};

/* The sender of a message. */
enum trib_control_role {
    TRIB_CONTROL_JOB = 1,
    TRIB_CONTROL_AGGREGATOR = 2,
};

enum trib_control_step {
    TRIB_CONTROL_CREDENTIAL = 1,
    TRIB_CONTROL_PROOF,
};

/* The purpose of elements that a rank sends. */
enum trib_control_push {
    TRIB_CONTROL_PUSH = 1,
    TRIB_CONTROL_PUSH_GIVE, /* the rank wants what the rule gives back */
    TRIB_CONTROL_PUSH_SET, /* the first elements of the vector, by no rule */
    TRIB_CONTROL_PUSH_RESTORE, /* a rank's copy instead of the vector; `number` less 1
                                * is its version, and no push has a number yet */
};

/* The way of a snapshot. */
enum trib_control_snapshot {
    TRIB_CONTROL_SNAPSHOT_TAKE = 1,
    TRIB_CONTROL_SNAPSHOT_RESTORE,
};

/* Bytes that lie elsewhere; of a message that was read, in its frame. */
struct trib_control_bytes {
    const uint8_t *at;
    uint32_t n;
};

struct trib_control_hello {
    uint32_t version_min;
    uint32_t version_max;
    uint32_t methods; /* a bit for each that the job offers */
    uint8_t nonce[TRIB_CONTROL_NONCE_BYTES];
    char job[TRIB_CONTROL_JOB_MAX + 1];
    char library[TRIB_CONTROL_LIBRARY_MAX + 1]; /* version of the library */
};

struct trib_control_welcome {
    uint32_t version;
    uint32_t method; /* number of the one that is chosen */
    uint32_t methods; /* a bit for each that the aggregator takes */
    uint8_t nonce[TRIB_CONTROL_NONCE_BYTES];
    char library[TRIB_CONTROL_LIBRARY_MAX + 1];
};

struct trib_control_auth {
    uint32_t step;
    struct trib_control_bytes data;
};

struct trib_control_join {
    char job[TRIB_CONTROL_JOB_MAX + 1]; /* name of the job, as in HELLO */
    char user[TRIB_CONTROL_USER_MAX + 1]; /* name for people; nothing depends on it */
    uint32_t ranks;
    uint32_t aggregators;
    uint32_t aggregator; /* index of the receiver among them */
    uint32_t weight;
    uint32_t slots;
    uint64_t bytes; /* memory that is wanted */
    uint32_t deadline_ms; /* time for which the job is willing to wait in the queue */
    char settings[TRIB_CONTROL_SETTINGS_MAX + 1];
    struct trib_control_bytes tree; /* tree of the aggregators above the ranks; none:
                                     * all alike */
};

struct trib_control_admitted {
    uint32_t slots;
    uint64_t bytes;
};

struct trib_control_queued {
    uint32_t position; /* position in the queue, from 1 */
    char text[TRIB_CONTROL_TEXT_MAX + 1];
};

struct trib_control_blobs {
    uint32_t exchange;
    uint32_t total; /* blobs of the exchange */
    uint32_t first; /* number of the first blob in this message */
    uint32_t count;
    uint32_t each; /* bytes of one */
    struct trib_control_bytes data;
};

struct trib_control_plan {
    uint32_t number;
    char text[TRIB_CONTROL_PLAN_MAX + 1];
};

struct trib_control_plan_answer {
    uint32_t number;
    char text[TRIB_CONTROL_TEXT_MAX + 1]; /* "" in PLAN_OK */
};

struct trib_control_store_join {
    uint8_t token[TRIB_CONTROL_NONCE_BYTES]; /* the ranks of the job have it, and nobody
                                              * else */
    uint32_t ranks;
    uint32_t rank;
    uint32_t again; /* 1: the store must be there; 0: it must not */
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES]; /* the key to its snapshots */
    uint32_t lasting; /* 1: later runs have that key, too */
    uint64_t every_pushes; /* a snapshot after so many pushes to a vector; 0: none */
    uint32_t every_ms; /* and after this time, if it has changed; 0: none */
};

struct trib_control_store_open {
    char name[TRIB_CONTROL_JOB_MAX + 1];
    uint32_t dtype;
    uint64_t count;
    char rule[TRIB_CONTROL_RULE_MAX + 1];
};

struct trib_control_store_push {
    uint32_t vector;
    uint32_t purpose; /* enum trib_control_push */
    uint64_t number; /* of this rank's pushes to the vector */
    uint64_t rate; /* bits of a float64; 0: the rule's own */
    uint64_t offset; /* in bytes, of `data` */
    struct trib_control_bytes data;
};

struct trib_control_store_pull {
    uint32_t vector;
    uint64_t first; /* elements */
    uint64_t count; /* 0: the version alone is wanted */
    uint64_t at_least; /* the answer waits for this version */
    uint32_t bound; /* it waits until no rank is behind by more pushes than that;
                     * TRIB_CONTROL_UNBOUNDED: however many */
    uint32_t wait_ms; /* longest wait */
};

struct trib_control_store_data {
    uint32_t vector;
    uint64_t offset; /* in bytes, in the answer */
    struct trib_control_bytes data;
};

/* STORE_VECTOR, STORE_DONE */
struct trib_control_store_state {
    uint32_t vector;
    uint64_t version; /* number of pushes that the vector has taken */
    uint64_t saved; /* version of its newest snapshot, plus 1; 0: there is none */
    uint64_t pushes; /* number of the last push of the rank that is answered */
};

struct trib_control_store_refused {
    uint32_t status; /* a trib_status_t, without its sign */
    char text[TRIB_CONTROL_TEXT_MAX + 1];
};

struct trib_control_store_index {
    uint32_t vector;
    uint64_t count; /* of all indices */
    uint64_t offset; /* in bytes, of `data` */
    struct trib_control_bytes data; /* whole indices of trib_control_index_bytes */
};

struct trib_control_store_codec {
    uint32_t vector;
    uint64_t bytes; /* of a push's code words (compress/vector_words.h); 0: a pull */
    char codec[TRIB_CONTROL_CODEC_MAX + 1];
};

struct trib_control_store_snapshot {
    uint32_t vector;
    uint32_t order; /* enum trib_control_snapshot */
};

struct trib_control_said {
    char text[TRIB_CONTROL_TEXT_MAX + 1];
};

struct trib_control {
    enum trib_control_kind kind;
    union {
        struct trib_control_hello hello;
        struct trib_control_welcome welcome;
        struct trib_control_auth auth;
        struct trib_control_join join;
        struct trib_control_admitted admitted;
        struct trib_control_queued queued;
        struct trib_control_blobs blobs;
        struct trib_control_plan plan;
        struct trib_control_plan_answer answer; /* PLAN_OK, PLAN_REFUSED */
        struct trib_control_said said; /* REFUSED, GOODBYE, ERROR */
        struct trib_control_store_join store_join;
        struct trib_control_store_open store_open;
        struct trib_control_store_push store_push;
        struct trib_control_store_pull store_pull;
        struct trib_control_store_data store_data;
        struct trib_control_store_state store_state;
        struct trib_control_store_refused store_refused;
        struct trib_control_store_index store_index;
        struct trib_control_store_codec store_codec;
        struct trib_control_store_snapshot store_snapshot;
    };
};

struct trib_control_frame {
    enum trib_control_kind kind;
    uint32_t length; /* length of the payload */
    const uint8_t *head; /* into the bytes that were parsed */
    const uint8_t *payload;
};

/** trib_control_index_bytes - bytes of an index into a vector of so many elements. */
static inline size_t trib_control_index_bytes(uint64_t count)
{
    return count > UINT64_C(1) << 32 ? 8 : 4;
}

/** trib_control_name - "JOIN". */
const char *trib_control_name(enum trib_control_kind kind);

/**
 * trib_control_job_fits - may a job have this name?
 *
 * 1 to 64 letters, digits and . _ : - + @ / % = , so that a name needs no quotes
 * anywhere.
 */
bool trib_control_job_fits(const char *name);

/**
 * trib_control_parse - the first frame in `bytes`.
 *
 * seal      bytes by which payloads are longer: 0, or TRIB_CONTROL_SEAL_BYTES
 * from      who has sent them: a kind that is not for that side to send is refused
 * returns   TRIB_INPROGRESS: more bytes are needed; TRIB_ERR_UNSUPPORTED: ours, but of
 *           another framing; TRIB_ERR_PROTOCOL: anything else. A length is checked
 *           against its kind as soon as the head is there
 */
trib_status_t trib_control_parse(const uint8_t *bytes, size_t n, uint32_t seal,
                                 enum trib_control_role from,
                                 struct trib_control_frame *out);

/** trib_control_frame_bytes - the bytes of head and payload. */
static inline size_t trib_control_frame_bytes(const struct trib_control_frame *frame)
{
    return TRIB_CONTROL_HEAD_BYTES + (size_t)frame->length;
}

/**
 * trib_control_get - read a payload, of which nothing is sealed any more.
 *
 * n         bytes of it, which may differ from frame->length where that was sealed
 * errors    TRIB_ERR_PROTOCOL: a number out of its range, a text that is too long or
 * has characters that do not print, bytes missing or left over
 */
trib_status_t trib_control_get(enum trib_control_kind kind, const uint8_t *payload,
                               size_t n, struct trib_control *out);

/**
 * trib_control_put - write a whole frame.
 *
 * Characters that do not print become '?', but not in names.
 * bytes     of `out`; TRIB_CONTROL_FRAME_BYTES suffice for every message
 * errors    TRIB_ERR_INVALID: a number or a name that trib_control_get would refuse
 *           TRIB_ERR_OVERFLOW: there are too few bytes
 */
trib_status_t trib_control_put(const struct trib_control *message, uint8_t *out,
                               size_t bytes, size_t *used_out);

/** trib_control_seal_head - write the head of a payload that is longer by its seal. */
void trib_control_seal_head(uint8_t head[TRIB_CONTROL_HEAD_BYTES]);

#endif
