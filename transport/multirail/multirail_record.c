/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: the records of addresses and blobs. Those of one rank differ in few bytes, so
 * each holds only what differs from the one before it.
 */
#include <assert.h>
#include <string.h>

#include "transport/multirail/multirail_wire.h"

enum {
    RUN_MAX = UINT8_MAX, /* bytes that one head of a run counts */
    GAP_MAX = 2, /* so many equal bytes cost no more in a run than a new head */
};

/* Return the byte that a record has at `i` if it does not say otherwise. */
static uint8_t byte_before(struct multirail_bytes before, size_t i)
{
    return i < before.len ? before.at[i] : 0;
}

static size_t count_same(struct multirail_bytes what, struct multirail_bytes before,
                         size_t from, size_t most)
{
    size_t n = 0;

    while (n < most && from + n < what.len &&
           what.at[from + n] == byte_before(before, from + n))
        n++;
    return n;
}

/* Count the bytes up to the next gap that is worth a head. */
static size_t count_fresh(struct multirail_bytes what, struct multirail_bytes before,
                          size_t from)
{
    size_t n = 0;

    while (n < RUN_MAX && from + n < what.len) {
        const size_t same = count_same(what, before, from + n, GAP_MAX + 1);
        if (same > GAP_MAX || from + n + same == what.len)
            return n;
        n += same + 1;
    }
    return n < RUN_MAX ? n : RUN_MAX;
}

bool trib_multirail_put(uint8_t *bytes, size_t room, size_t *at,
                        struct multirail_bytes what, struct multirail_bytes before)
{
    struct multirail_record record;
    const size_t head = *at;
    size_t to = head + sizeof(record), i = 0;

    assert(what.len <= UINT16_MAX && head <= room);
    while (i < what.len) {
        const size_t same = count_same(what, before, i, RUN_MAX);
        const size_t fresh = count_fresh(what, before, i + same);
        if (i + same == what.len)
            break;
        if (to + 2 + fresh > room)
            return false;
        bytes[to] = (uint8_t)same;
        bytes[to + 1] = (uint8_t)fresh;
        memcpy(bytes + to + 2, what.at + i + same, fresh);
        to += 2 + fresh;
        i += same + fresh;
    }
    if (to > room)
        return false;
    const size_t sent = to - head - sizeof(record);
    record =
        (struct multirail_record){(uint8_t)(what.len & 0xff), (uint8_t)(what.len >> 8),
                                  (uint8_t)(sent & 0xff), (uint8_t)(sent >> 8)};
    memcpy(bytes + head, &record, sizeof(record));
    *at = to;
    return true;
}

/* Change the bytes that the runs list. Return false if they reach beyond `len`. */
static bool apply_runs(const uint8_t *runs, size_t bytes, uint8_t *room, size_t len)
{
    size_t to = 0;

    for (size_t at = 0; at < bytes;) {
        if (bytes - at < 2)
            return false;
        const size_t same = runs[at], fresh = runs[at + 1];
        at += 2;
        if (fresh > bytes - at || to + same + fresh > len)
            return false;
        memcpy(room + to + same, runs + at, fresh);
        at += fresh;
        to += same + fresh;
    }
    return true;
}

uint16_t trib_multirail_get(struct multirail_bytes from, size_t *at, uint8_t *room,
                            size_t room_bytes, size_t before)
{
    struct multirail_record record;

    assert(before <= room_bytes);
    if (*at > from.len || from.len - *at < sizeof(record))
        return 0;
    memcpy(&record, from.at + *at, sizeof(record));
    const size_t len = record.len_low | (size_t)record.len_high << 8;
    const size_t sent = record.sent_low | (size_t)record.sent_high << 8;
    const size_t first = *at + sizeof(record);
    if (len > room_bytes || sent > from.len - first)
        return 0;
    if (len > before)
        memset(room + before, 0, len - before);
    if (!apply_runs(from.at + first, sent, room, len))
        return 0;
    *at = first + sent;
    return (uint16_t)len;
}

uint16_t trib_multirail_nth(struct multirail_bytes from, size_t head, int nth,
                            uint8_t *room, size_t room_bytes)
{
    uint32_t magic = 0;
    uint16_t len = 0;

    if (from.len >= sizeof(magic))
        memcpy(&magic, from.at, sizeof(magic));
    if (magic != MULTIRAIL_MAGIC) {
        if (from.len > room_bytes || nth > 0)
            return 0;
        memcpy(room, from.at, from.len);
        return (uint16_t)from.len;
    }
    for (int i = 0; i <= nth; i++) {
        len = trib_multirail_get(from, &head, room, room_bytes, len);
        if (!len)
            return 0;
    }
    return len;
}
