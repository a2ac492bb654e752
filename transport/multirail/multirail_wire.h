/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between ranks over several rails; see docs/wire-format.md.
 */
#ifndef TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H
#define TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

#define MULTIRAIL_MAX 4
#define MULTIRAIL_MAGIC UINT32_C(0x52627254) /* "TrbR"; changes with what is below */

/*
 * An address: this, then for each rail a record with the inner address, then for each a
 * record with the board's inner blob. A blob: the magic, then a record for each rail.
 */
struct multirail_address {
    uint32_t magic;
    uint32_t n;
    uint64_t net[MULTIRAIL_MAX];
};
static_assert(sizeof(struct multirail_address) == 40, "no padding");

/* In front of the bytes; zeros at their end are left out. */
struct multirail_record {
    uint8_t len_low, len_high; /* with the zeros */
    uint8_t sent_low, sent_high;
};
static_assert(sizeof(struct multirail_record) == 4, "no padding");

struct multirail_cell {
    uint32_t magic; /* 0: not written yet */
    uint32_t dead; /* answer: the rails that are given up */
    uint64_t got; /* answer: events of the reader that have come without a gap */
    uint32_t n, rail; /* hello */
    uint64_t unused;
};
static_assert(sizeof(struct multirail_cell) == 32, "no padding");

/*
 * The memory into which one peer writes. Each cell is written at most once, except for
 * the spare one, which nobody reads.
 */
struct multirail_board {
    struct multirail_cell hello[MULTIRAIL_MAX]; /* of the reader's inner transport */
    struct multirail_cell answer[MULTIRAIL_MAX - 1]; /* to the loss of 1, 2, … rails */
    struct multirail_cell spare;
};
static_assert(sizeof(struct multirail_board) == 256, "no padding");

/*
 * Words of rails are writes with the event TRIB_IMM_OWN. How long they are says what
 * they are: up to MULTIRAIL_MARKS bytes it is a mark, the length being the set of rails
 * that its sender has given up; MULTIRAIL_ANSWER and the number of lost rails is an
 * answer.
 */
#define MULTIRAIL_MARKS ((1u << MULTIRAIL_MAX) - 1)
#define MULTIRAIL_ANSWER 24u
static_assert(MULTIRAIL_ANSWER > MULTIRAIL_MARKS &&
                  MULTIRAIL_ANSWER + MULTIRAIL_MAX <= sizeof(struct multirail_cell),
              "words can be told by their length");

/** trib_multirail_nth - what a rank with one device needs of an address or a blob of
 * one with several: the nth record; 0: there is none. Other bytes come back as they
 * are, as the 0th. Zeros at the end of the record go to `room`. */
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
