/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wire format of several rails; see docs/wire-format.md.
 */
#ifndef TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H
#define TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

#define MULTIRAIL_MAX 4
#define MULTIRAIL_MAGIC UINT32_C(0x52627256) /* "VrbR"; changes with the format below */
#define MULTIRAIL_SHARE 4096u /* share of the fastest rail */

/*
 * An address has this header, then for each rail a record with the inner address, then
 * for each rail a record with the inner blob of the board. A blob has the magic, then a
 * record for each rail.
 */
struct multirail_address {
    uint32_t magic;
    uint32_t n;
    uint64_t net[MULTIRAIL_MAX];
    uint32_t speed[MULTIRAIL_MAX]; /* Mbit/s; 0: unknown */
};
static_assert(sizeof(struct multirail_address) == 56, "no padding");

/* Precedes the bytes of a record. Zeros at their end are omitted. */
struct multirail_record {
    uint8_t len_low, len_high; /* length including the zeros */
    uint8_t sent_low, sent_high;
};
static_assert(sizeof(struct multirail_record) == 4, "no padding");

struct multirail_cell {
    uint32_t magic; /* 0: not written yet */
    uint32_t dead; /* answer: the abandoned rails */
    uint64_t got; /* answer: events received without a gap */
    uint32_t generation; /* answer */
    uint16_t n, rail; /* hello */
    uint16_t share[MULTIRAIL_MAX]; /* hello: of rail k, 1 to MULTIRAIL_SHARE */
};
static_assert(sizeof(struct multirail_cell) == 32, "no padding");

/*
 * The memory into which one peer writes. A hello is written once, an answer once in a
 * generation; the writer knows that the reader has read the one before. The spare bytes
 * are never read.
 */
struct multirail_board {
    struct multirail_cell hello[MULTIRAIL_MAX]; /* [inner of the reader] */
    struct multirail_cell answer[MULTIRAIL_MAX]; /* [lost rails] */
    uint8_t spare[160];
};
static_assert(sizeof(struct multirail_board) == 416, "no padding");

/*
 * Control messages of rails are writes with the event TRIB_IMM_OWN. Their length tells
 * the kind:
 *   MULTIRAIL_ANSWER  plus the number of lost rails: an answer
 *   MULTIRAIL_MARK    plus the sender's state, its generation modulo 4 and the set of
 *                     rails that it has abandoned: a mark
 *   MULTIRAIL_READY   plus such a state: the abandoned rails that the sender has
 *                     connected again
 */
#define MULTIRAIL_STATES (4u << MULTIRAIL_MAX)
#define MULTIRAIL_ANSWER 24u
#define MULTIRAIL_MARK 32u
#define MULTIRAIL_READY (MULTIRAIL_MARK + MULTIRAIL_STATES)
static_assert(MULTIRAIL_ANSWER >= offsetof(struct multirail_cell, n) &&
                  MULTIRAIL_ANSWER + MULTIRAIL_MAX <= sizeof(struct multirail_cell) &&
                  MULTIRAIL_READY + MULTIRAIL_STATES <=
                      sizeof(((struct multirail_board *)0)->spare),
              "the length tells the kind of a message");

/** multirail_state - combine a generation and a set of rails. */
static inline uint8_t multirail_state(unsigned generation, unsigned set)
{
    return (uint8_t)((generation % 4) << MULTIRAIL_MAX | set);
}

/** trib_multirail_nth - extract the nth record from an address or blob, for a rank with
 * one device. Bytes without rails are record 0 as a whole. `room` receives the record,
 * with the omitted zeros. Returns its length, or 0 if there is no such record. */
static inline uint16_t trib_multirail_nth(const uint8_t *bytes, uint16_t len,
                                          size_t head, int nth, uint8_t *room,
                                          size_t room_bytes)
{
    struct multirail_record record;
    uint32_t magic = 0;
    uint16_t whole, sent;

    if (len >= sizeof(magic))
        memcpy(&magic, bytes, sizeof(magic));
    if (magic != MULTIRAIL_MAGIC) {
        if (len > room_bytes || nth > 0)
            return 0;
        memcpy(room, bytes, len);
        return len;
    }
    for (size_t at = head;; at += sent, nth--) {
        if (at > len || len - at < sizeof(record))
            return 0;
        memcpy(&record, bytes + at, sizeof(record));
        at += sizeof(record);
        whole = (uint16_t)(record.len_low | record.len_high << 8);
        sent = (uint16_t)(record.sent_low | record.sent_high << 8);
        if (sent > whole || sent > len - at)
            return 0;
        if (nth > 0)
            continue;
        if (whole > room_bytes)
            return 0;
        memset(room, 0, whole);
        memcpy(room, bytes + at, sent);
        return whole;
    }
}

#endif
