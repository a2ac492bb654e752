/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the control connection between rank 0 of a job and an aggregator, or
 * between any rank and its store. Pure functions on bytes: no sockets, no clock, no
 * memory.
 *
 *      0       4         5      6     8        12
 *     +-------+---------+------+-----+--------+---------
 *     | magic | framing | kind |  0  | length | payload
 *     +-------+---------+------+-----+--------+---------
 *
 * Numbers are little-endian. One table in agg/protocol/control.c defines the fields of
 * each payload and their limits, for both writing and reading: no message can be
 * written that the reader refuses. After authentication, payloads are sealed
 * (agg/protocol/crypt.h), which adds TRIB_CONTROL_SEAL_BYTES. The seal authenticates
 * the head too, but does not encrypt it.
 */
#ifndef AGG_PROTOCOL_CONTROL_H
#define AGG_PROTOCOL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#define TRIB_CONTROL_FRAMING 1
/* Versions of the messages; HELLO and WELCOME negotiate one. */
#define TRIB_CONTROL_VERSION_MIN 4
#define TRIB_CONTROL_VERSION_MAX 4
#define TRIB_CONTROL_HEAD_BYTES 12
#define TRIB_CONTROL_SEAL_BYTES 17
#define TRIB_CONTROL_NONCE_BYTES 32

/* Maximum lengths of texts, without the NUL, which is not sent. */
#define TRIB_CONTROL_JOB_MAX 64
#define TRIB_CONTROL_USER_MAX 64
#define TRIB_CONTROL_LIBRARY_MAX 24
#define TRIB_CONTROL_TEXT_MAX 512
#define TRIB_CONTROL_PLAN_MAX 1024
#define TRIB_CONTROL_SETTINGS_MAX 1024
#define TRIB_CONTROL_TREE_MAX 16384 /* an encoded tree, see agg/client/agg_tree.h */

#define TRIB_CONTROL_AUTH_MAX 1024 /* bytes of a credential */
#define TRIB_CONTROL_RANKS_MAX 65536
#define TRIB_CONTROL_AGGREGATORS_MAX 1024
#define TRIB_CONTROL_BLOB_MAX 2560
#define TRIB_CONTROL_BLOBS_BYTES 32768 /* per message; larger exchanges are split */
#define TRIB_CONTROL_STORE_BYTES 32768 /* bytes of elements per message */
#define TRIB_CONTROL_RULE_MAX 160
#define TRIB_CONTROL_CODEC_MAX 160
#define TRIB_CONTROL_UNBOUNDED UINT32_MAX
#define TRIB_CONTROL_WAIT_MAX 86400000 /* ms */
#define TRIB_CONTROL_COUNT_MAX (UINT64_C(1) << 48) /* elements of a vector */
/* Maximum number of pushes to a vector, hence its highest version. The sum of two such
 * numbers does not wrap. */
#define TRIB_CONTROL_PUSHES_MAX ((uint64_t)INT64_MAX)

/* Longest frame of any kind, and longest frame before authentication. */
#define TRIB_CONTROL_FRAME_BYTES \
    (TRIB_CONTROL_HEAD_BYTES + 29 + TRIB_CONTROL_STORE_BYTES + TRIB_CONTROL_SEAL_BYTES)
#define TRIB_CONTROL_EARLY_BYTES (TRIB_CONTROL_HEAD_BYTES + 1 + TRIB_CONTROL_AUTH_MAX)

enum trib_control_kind {
    TRIB_CONTROL_HELLO = 1, /* first message, from the job */
    TRIB_CONTROL_WELCOME, /* aggregator: chosen version and method */
    TRIB_CONTROL_AUTH, /* a step of the method */
    TRIB_CONTROL_JOIN, /* request admission; one of three answers: */
    TRIB_CONTROL_ADMITTED,
    TRIB_CONTROL_QUEUED, /* wait for a later answer */
    TRIB_CONTROL_REFUSED,
    TRIB_CONTROL_BLOBS, /* connection blobs of ranks and aggregators */
    TRIB_CONTROL_PLAN,
    TRIB_CONTROL_PLAN_OK,
    TRIB_CONTROL_PLAN_REFUSED,
    TRIB_CONTROL_DRAIN, /* the aggregator will end: disconnect */
    TRIB_CONTROL_GOODBYE, /* the sender's last message */
    TRIB_CONTROL_ALIVE, /* the sender is alive */
    TRIB_CONTROL_ERROR, /* the sender's last message, with the reason */
    TRIB_CONTROL_STORE_JOIN, /* a rank joins the store of its job */
    TRIB_CONTROL_STORE_JOINED,
    TRIB_CONTROL_STORE_OPEN, /* open a vector, or create it */
    TRIB_CONTROL_STORE_VECTOR, /* its number */
    TRIB_CONTROL_STORE_PUSH, /* elements of a push, in order */
    TRIB_CONTROL_STORE_PULL,
    TRIB_CONTROL_STORE_DATA, /* elements of an answer */
    TRIB_CONTROL_STORE_DONE, /* push applied, or answer complete */
    TRIB_CONTROL_STORE_REFUSED, /* negative answer to any store request */
    TRIB_CONTROL_STORE_INDEX, /* indices of the next push or pull */
    TRIB_CONTROL_STORE_CODEC, /* the next push or pull is encoded */
    TRIB_CONTROL_STORE_SNAPSHOT, /* save a vector to disk, or restore it */
    TRIB_CONTROL_KINDS,
};

/* Sender of a message. */
enum trib_control_role {
    TRIB_CONTROL_JOB = 1,
    TRIB_CONTROL_AGGREGATOR = 2,
};

enum trib_control_step {
    TRIB_CONTROL_CREDENTIAL = 1,
    TRIB_CONTROL_PROOF,
};

/* Purpose of the elements that a rank sends. */
enum trib_control_push {
    TRIB_CONTROL_PUSH = 1,
    TRIB_CONTROL_PUSH_GIVE, /* the rank wants the elements that the rule returns */
    TRIB_CONTROL_PUSH_SET, /* set initial elements, bypassing the rule */
    TRIB_CONTROL_PUSH_RESTORE, /* replace the vector by a rank's copy of version
                                * `number` - 1; push numbers restart */
};

/* Direction of a snapshot. */
enum trib_control_snapshot {
    TRIB_CONTROL_SNAPSHOT_TAKE = 1,
    TRIB_CONTROL_SNAPSHOT_RESTORE,
};

/* Bytes stored elsewhere; in a received message, within its frame. */
struct trib_control_bytes {
    const uint8_t *at;
    uint32_t n;
};

struct trib_control_hello {
    uint32_t version_min;
    uint32_t version_max;
    uint32_t methods; /* bit mask of offered methods */
    uint8_t nonce[TRIB_CONTROL_NONCE_BYTES];
    char job[TRIB_CONTROL_JOB_MAX + 1];
    char library[TRIB_CONTROL_LIBRARY_MAX + 1]; /* version of the library */
};

struct trib_control_welcome {
    uint32_t version;
    uint32_t method; /* number of the chosen method */
    uint32_t methods; /* bit mask of accepted methods */
    uint8_t nonce[TRIB_CONTROL_NONCE_BYTES];
    char library[TRIB_CONTROL_LIBRARY_MAX + 1];
};

struct trib_control_auth {
    uint32_t step;
    struct trib_control_bytes data;
};

struct trib_control_join {
    char job[TRIB_CONTROL_JOB_MAX + 1]; /* name of the job, as in HELLO */
    char user[TRIB_CONTROL_USER_MAX + 1]; /* for display only */
    uint32_t ranks;
    uint32_t aggregators;
    uint32_t aggregator; /* index of the receiver */
    uint32_t weight;
    uint32_t slots;
    uint64_t bytes; /* requested memory */
    uint32_t deadline_ms; /* maximum wait in the queue */
    char settings[TRIB_CONTROL_SETTINGS_MAX + 1];
    struct trib_control_bytes tree; /* tree of aggregators; empty: each serves all ranks
                                     * alike */
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
    uint32_t first; /* index of the first blob in this message */
    uint32_t count;
    uint32_t each; /* bytes of one blob */
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
    uint8_t token[TRIB_CONTROL_NONCE_BYTES]; /* known only to the ranks of the job */
    uint32_t ranks;
    uint32_t rank;
    uint32_t again; /* 1: the store must exist; 0: it must not */
    uint8_t owner[TRIB_CONTROL_NONCE_BYTES]; /* the key to its snapshots */
    uint32_t lasting; /* 1: later runs know the key */
    uint64_t every_pushes; /* snapshot after N pushes to a vector; 0: none */
    uint32_t every_ms; /* and after this time, if changed; 0: none */
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
    uint64_t number; /* sequence number of this rank's pushes */
    uint64_t rate; /* bits of a float64; 0: the rule's default */
    uint64_t offset; /* offset of `data` in bytes */
    struct trib_control_bytes data;
};

struct trib_control_store_pull {
    uint32_t vector;
    uint64_t first; /* first element */
    uint64_t count; /* 0: query the version only */
    uint64_t at_least; /* wait for this version */
    uint32_t bound; /* wait for lagging ranks; TRIB_CONTROL_UNBOUNDED: do not wait */
    uint32_t wait_ms; /* maximum wait */
};

struct trib_control_store_data {
    uint32_t vector;
    uint64_t offset; /* offset in the answer, in bytes */
    struct trib_control_bytes data;
};

/* STORE_VECTOR, STORE_DONE */
struct trib_control_store_state {
    uint32_t vector;
    uint64_t version; /* number of applied pushes */
    uint64_t saved; /* version of its newest snapshot, plus 1; 0: none */
    uint64_t pushes; /* number of the receiving rank's last push */
};

struct trib_control_store_refused {
    uint32_t status; /* a trib_status_t, negated */
    char text[TRIB_CONTROL_TEXT_MAX + 1];
};

struct trib_control_store_index {
    uint32_t vector;
    uint64_t count; /* total number of indices */
    uint64_t offset; /* offset of `data` in bytes */
    struct trib_control_bytes data; /* whole indices of trib_control_index_bytes */
};

struct trib_control_store_codec {
    uint32_t vector;
    uint64_t bytes; /* bytes of an encoded push (vector_words.h); 0: a pull */
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
    const uint8_t *head; /* points into the parsed bytes */
    const uint8_t *payload;
};

/** trib_control_index_bytes - return the bytes of an index into a vector of `count`
 * elements. */
static inline size_t trib_control_index_bytes(uint64_t count)
{
    return count > UINT64_C(1) << 32 ? 8 : 4;
}

/** trib_control_name - return the name of a kind, such as "JOIN". */
const char *trib_control_name(enum trib_control_kind kind);

/**
 * trib_control_job_fits - return true for a valid job name.
 *
 * Valid are 1 to 64 letters, digits and . _ : - + @ / % = , so that no context needs
 * quotes.
 */
bool trib_control_job_fits(const char *name);

/**
 * trib_control_parse - parse the first frame in `bytes`.
 *
 * seal      bytes that sealing adds to payloads: 0 or TRIB_CONTROL_SEAL_BYTES
 * from      the sender's role; kinds that this role may not send are refused
 * returns   TRIB_INPROGRESS: more bytes are needed; TRIB_ERR_UNSUPPORTED: our protocol
 *           with another framing; TRIB_ERR_PROTOCOL: anything else. The length is
 *           checked against the kind as soon as the head is complete
 */
trib_status_t trib_control_parse(const uint8_t *bytes, size_t n, uint32_t seal,
                                 enum trib_control_role from,
                                 struct trib_control_frame *out);

/** trib_control_frame_bytes - return the bytes of head and payload. */
static inline size_t trib_control_frame_bytes(const struct trib_control_frame *frame)
{
    return TRIB_CONTROL_HEAD_BYTES + (size_t)frame->length;
}

/**
 * trib_control_get - decode a payload, which must be unsealed.
 *
 * n         bytes of the payload; less than frame->length if it was sealed
 * errors    TRIB_ERR_PROTOCOL: a number out of range, a text too long or with
 *           unprintable characters, missing or surplus bytes
 */
trib_status_t trib_control_get(enum trib_control_kind kind, const uint8_t *payload,
                               size_t n, struct trib_control *out);

/**
 * trib_control_put - encode a whole frame.
 *
 * Unprintable characters become '?', except in names.
 *
 * bytes     size of `out`; TRIB_CONTROL_FRAME_BYTES suffice for every message
 * errors    TRIB_ERR_INVALID: a number or name that trib_control_get would refuse;
 *           TRIB_ERR_OVERFLOW: `out` is too small
 */
trib_status_t trib_control_put(const struct trib_control *message, uint8_t *out,
                               size_t bytes, size_t *used_out);

/** trib_control_seal_head - add the seal's bytes to the length in the head. */
void trib_control_seal_head(uint8_t head[TRIB_CONTROL_HEAD_BYTES]);

#endif
