/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wire format of several rails; see docs/wire-format.md.
 */
#ifndef TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H
#define TRANSPORT_MULTIRAIL_MULTIRAIL_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

#define MULTIRAIL_MAX 8
#define MULTIRAIL_MAGIC UINT32_C(0x53627256) /* "VrbS"; changes with the format below */
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
static_assert(sizeof(struct multirail_address) == 104, "no padding");

/* The rest of TRIB_ADDRESS_MAX is for the other transports of "auto". */
#define MULTIRAIL_ADDRESS_MAX 1320
static_assert(MULTIRAIL_ADDRESS_MAX + 472 <= TRIB_ADDRESS_MAX, "address");

/*
 * Precedes the runs of a record. A run is the number of bytes that are as in the record
 * before (u8), the number of others (u8), and those. The bytes after the last run are
 * as in the record before, too. The first record follows one of zeros; so does the
 * first blob of an address. A record that is longer than the one before has zeros
 * there.
 */
struct multirail_record {
    uint8_t len_low, len_high; /* of the inner address or blob */
    uint8_t sent_low, sent_high; /* bytes of all runs */
};
static_assert(sizeof(struct multirail_record) == 4, "no padding");

/* Written once, before anything else. A rank with one device writes the same into the
 * place of each of the reader's: it does not know yet which of them it has reached. */
struct multirail_hello {
    uint32_t magic; /* 0: not written yet */
    uint16_t n, rail;
    uint16_t share[MULTIRAIL_MAX]; /* of rail k, 1 to MULTIRAIL_SHARE */
};
static_assert(sizeof(struct multirail_hello) == 24, "no padding");

/* Written once in a generation; the writer knows that the reader has read the one
 * before. */
struct multirail_answer {
    uint32_t magic; /* 0: not written yet */
    uint32_t dead; /* the abandoned rails */
    uint64_t got; /* events received without a gap */
    uint32_t generation;
    uint32_t unused[3];
};
static_assert(sizeof(struct multirail_answer) == 32, "no padding");

/* The memory into which one peer writes. */
struct multirail_board {
    struct multirail_hello hello[MULTIRAIL_MAX]; /* [inner of the reader] */
    struct multirail_answer answer[MULTIRAIL_MAX]; /* [lost rails] */
};
static_assert(sizeof(struct multirail_board) == 448, "no padding");

/*
 * Control messages of rails are writes with the event TRIB_IMM_OWN. Their length tells
 * the kind:
 *   MULTIRAIL_ANSWER  plus the number of lost rails: an answer
 *   MULTIRAIL_MARK    plus the sender's state, its generation modulo 4 and the set of
 *                     rails that it has abandoned: a mark
 *   MULTIRAIL_READY   plus such a state: the abandoned rails that the sender has
 *                     connected again
 * Only the bytes of an answer are read. The other messages write to spare bytes, which
 * all peers share.
 */
#define MULTIRAIL_STATES (4u << MULTIRAIL_MAX)
#define MULTIRAIL_ANSWER 24u
#define MULTIRAIL_MARK 64u
#define MULTIRAIL_READY (MULTIRAIL_MARK + MULTIRAIL_STATES)
#define MULTIRAIL_SPARE (MULTIRAIL_READY + MULTIRAIL_STATES)
static_assert(MULTIRAIL_ANSWER >= offsetof(struct multirail_answer, unused) &&
                  MULTIRAIL_ANSWER + MULTIRAIL_MAX <= sizeof(struct multirail_answer) &&
                  sizeof(struct multirail_answer) < MULTIRAIL_MARK,
              "the length tells the kind of a message");

/* The region of a rank's boards: the spare bytes, as many to send from, the boards of
 * its peers, and those that it sends from. */
#define MULTIRAIL_BOARDS_AT (2 * (size_t)MULTIRAIL_SPARE)

static inline size_t multirail_region_bytes(int size)
{
    return MULTIRAIL_BOARDS_AT + 2 * (size_t)size * sizeof(struct multirail_board);
}

/** multirail_state - combine a generation and a set of rails. */
static inline uint16_t multirail_state(unsigned generation, unsigned set)
{
    return (uint16_t)((generation % 4) << MULTIRAIL_MAX | set);
}

/* multirail_record.c */
struct multirail_bytes {
    const uint8_t *at;
    size_t len;
};

/** trib_multirail_put - append a record at *at and advance *at. before: the record
 * before it. Returns false if there is no room. */
bool trib_multirail_put(uint8_t *bytes, size_t room, size_t *at,
                        struct multirail_bytes what, struct multirail_bytes before);

/** trib_multirail_get - read the record at *at and advance *at. `room` has the `before`
 * bytes of the record before and receives this one. Returns its length, or 0 if there
 * is none; `room` may then have changed. */
uint16_t trib_multirail_get(struct multirail_bytes from, size_t *at, uint8_t *room,
                            size_t room_bytes, size_t before);

/** trib_multirail_nth - extract the nth record from an address or blob, for a rank with
 * one device. Bytes without rails are record 0 as a whole. `head`: bytes before the
 * first record. Returns the length of the record, or 0 if there is no such record. */
uint16_t trib_multirail_nth(struct multirail_bytes from, size_t head, int nth,
                            uint8_t *room, size_t room_bytes);

#endif
