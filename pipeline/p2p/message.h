/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries that two ranks write into each other's mailbox: 64 bytes, then an
 * optional payload.
 *
 *   0       2     3     4     8         12        16      24      28      32      60
 *   |magic  |kind |dtype| tag | send_id | recv_id | count | bytes | check |payload|pos|
 *
 * A short message is an EAGER entry with its elements. A long one is announced by
 * ANNOUNCE, which may name the location of its elements. Once a receive is posted, the
 * receiver reads them from there and answers TAKEN. If it cannot, or no location was
 * named, it answers GRANT, and the elements follow as DATA, straight into the
 * receiver's buffer. GRANT may name the location of that buffer: the sender may then
 * write them there in parts. A DATA without payload follows each, whose count is the
 * number of bytes up to its end.
 */
#ifndef PIPELINE_P2P_MESSAGE_H
#define PIPELINE_P2P_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

#include "pipeline/link/advert.h"

#define TRIB_MESSAGE_MAGIC 0x034du /* 'M', version 3 */
#define TRIB_MESSAGE_PAYLOAD 28
#define TRIB_MESSAGE_PLACE sizeof(struct trib_ref) /* maximum bytes of a location */
#define TRIB_MESSAGE_EAGER 4096 /* maximum bytes of a message that is not announced */

enum trib_message_kind {
    TRIB_MESSAGE_IS_EAGER = 1,
    TRIB_MESSAGE_ANNOUNCE,
    TRIB_MESSAGE_GRANT,
    TRIB_MESSAGE_DATA,
    TRIB_MESSAGE_TAKEN,
    TRIB_MESSAGE_KIND_END,
};

/* The sender stores position last, and the receiver reads it first. */
struct trib_message {
    uint16_t magic;
    uint8_t kind;
    uint8_t dtype;
    int32_t tag;
    uint32_t send_id; /* ANNOUNCE, GRANT, TAKEN: the sender's number of the message */
    uint32_t recv_id; /* GRANT, DATA: the receiver's number */
    uint64_t count; /* elements; GRANT: with a location; DATA: bytes of the message
                     * before this part; without a payload, up to its end */
    uint32_t bytes; /* size of the payload; for ANNOUNCE and GRANT a reference
                     * (pipeline/link/advert.h), or 0 */
    uint32_t check; /* CRC-32C of all fields before it and of the payload; 0 without
                     * TRIB_CHECK=sum */
    uint8_t payload[TRIB_MESSAGE_PAYLOAD]; /* a longer payload follows the 64 bytes */
    _Atomic uint32_t position; /* number of the entry in the mailbox, from 1 */
};
_Static_assert(sizeof(struct trib_message) == 64, "an entry is one cache line");

/** trib_message_bytes - compute the bytes of `count` elements; return false if the
 * length or the dtype is invalid. */
static inline bool trib_message_bytes(uint64_t count, unsigned dtype, size_t *out)
{
    const size_t element = trib_dtype_size((trib_dtype_t)dtype);

    return element && !__builtin_mul_overflow(count, element, out) &&
           *out <= SIZE_MAX / 2;
}

/** trib_message_fault - return a noun phrase for the error in a peer's entry, or NULL.
 * slot_bytes is the room for a payload. */
const char *trib_message_fault(const struct trib_message *m, size_t slot_bytes);

/** trib_message_sum - return the checksum of an entry, a CRC-32C. */
uint32_t trib_message_sum(uint32_t (*crc)(uint32_t, const void *, size_t),
                          const struct trib_message *m, const uint8_t *payload);

#endif
