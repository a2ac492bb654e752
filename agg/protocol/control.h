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
 * Numbers are little-endian. One table, agg/protocol/control.def, defines the fields of
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
    TRIB_CONTROL_NO_KIND,
#define KIND(name, from, payload, fits) TRIB_CONTROL_##name,
#include "agg/protocol/control.def"
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

/* Types of fields. */
#define TRIB_CONTROL_OF_U8(name, max) uint32_t name
#define TRIB_CONTROL_OF_U32(name, max) uint32_t name
#define TRIB_CONTROL_OF_U64(name, max) uint64_t name
#define TRIB_CONTROL_OF_NONCE(name, max) uint8_t name[TRIB_CONTROL_NONCE_BYTES]
#define TRIB_CONTROL_OF_JOB(name, max) char name[(max) + 1]
#define TRIB_CONTROL_OF_LINE(name, max) char name[(max) + 1]
#define TRIB_CONTROL_OF_LINES(name, max) char name[(max) + 1]
#define TRIB_CONTROL_OF_REST(name, max) struct trib_control_bytes name

/* clang-format off */
#define MESSAGE(name) struct trib_control_##name {
#define FIELD(type, message, name, min, max) TRIB_CONTROL_OF_##type(name, max);
#define END };
/* clang-format on */
#include "agg/protocol/control.def"

struct trib_control {
    enum trib_control_kind kind;
    union {
#define MESSAGE(name) struct trib_control_##name name;
#define FIELD(type, message, name, min, max)
#define END
#include "agg/protocol/control.def"
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
