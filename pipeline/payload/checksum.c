/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/checksum.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/payload/payload.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/failure.h"

/* Return the place of the checksum. A payload that does not fit the entry leaves the
 * entry's payload unused; one that fits needs no big slot number. */
static uint8_t *place_of(struct trib_entry *entry)
{
    return entry->frame.bytes <= TRIB_ENTRY_PAYLOAD ? (uint8_t *)&entry->place
                                                    : entry->payload;
}

static uint32_t sum_of(const struct trib_engine *e, const struct trib_frame *f,
                       struct trib_bytes b)
{
    return e->kernels->crc32c(e->kernels->crc32c(0, f, sizeof(*f)), b.at, b.n);
}

static void set(struct trib_engine *e, struct trib_entry *entry, struct trib_bytes b)
{
    const uint32_t sum = sum_of(e, &entry->frame, b);

    memcpy(place_of(entry), &sum, sizeof(sum));
}

static struct trib_bytes slot_to_send(struct trib_engine *e, struct trib_link *l,
                                      int lane)
{
    const size_t n = trib_link_entry(l, &e->arena, lane)->frame.bytes;

    return (struct trib_bytes){trib_link_to_send(l, &e->arena, lane, n), n};
}

void trib_checksum_set_slot(struct trib_engine *e, struct trib_link *l, int lane)
{
    set(e, trib_link_entry(l, &e->arena, lane), slot_to_send(e, l, lane));
}

void trib_checksum_set(struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    struct trib_entry *entry = trib_link_entry(l, &e->arena, t->lane);
    const struct trib_payload_ops *ops = trib_payload_of(run, t);
    struct trib_bytes b = {.at = NULL};

    assert(run->desc.check.sum && t->kind == TRIB_TASK_SEND);
    if (ops->sent)
        b = ops->sent(e, run, t, c);
    set(e, entry, b.at ? b : slot_to_send(e, l, t->lane));
}

static struct trib_bytes received_slot(struct trib_engine *e, struct trib_link *l,
                                       int lane)
{
    struct trib_entry *entry = trib_link_peek(l, &e->arena, lane);

    if (entry->frame.bytes > e->arena.slot_bytes)
        return (struct trib_bytes){.at = NULL};
    return (struct trib_bytes){trib_link_received(l, &e->arena, lane, entry),
                               entry->frame.bytes};
}

static struct trib_bytes received(struct trib_engine *e, const struct trib_run *run,
                                  const struct trib_task *t,
                                  const struct trib_contrib *from,
                                  const struct trib_chunk *c)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[from->neighbor];
    struct trib_link *l = &e->links[neighbor->peer];
    struct trib_entry *entry = trib_link_peek(l, &e->arena, from->lane);
    const bool in_slot =
        entry->frame.kind == TRIB_FRAME_DATA || entry->frame.kind == TRIB_FRAME_SUM;
    const struct trib_payload_ops *ops = trib_payload_of(run, t);

    if (in_slot || !ops->received)
        return received_slot(e, l, from->lane);
    return ops->received(e, run, t, from, c);
}

static bool is_wrong(struct trib_engine *e, int peer, struct trib_entry *entry,
                     struct trib_bytes b)
{
    uint32_t said, found;
    char what[160], chunk[32] = "buffers";

    if (!b.at)
        return false;
    memcpy(&said, place_of(entry), sizeof(said));
    found = sum_of(e, &entry->frame, b);
    if (said == found)
        return false;
    if (entry->frame.kind != TRIB_FRAME_ADVERT)
        snprintf(chunk, sizeof(chunk), "chunk %u", entry->frame.chunk);
    snprintf(
        what, sizeof(what),
        "%s, damaged in transit (TRIB_CHECK=sum: CRC-32C sent %08x, received %08x),",
        chunk, said, found);
    trib_engine_protocol(e, peer, what);
    return true;
}

bool trib_checksum_wrong(struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_contrib *from,
                         const struct trib_chunk *c)
{
    const int peer = run->program.neighbors[from->neighbor].peer;

    assert(run->desc.check.sum && t->kind != TRIB_TASK_SEND);
    return is_wrong(e, peer, trib_link_peek(&e->links[peer], &e->arena, from->lane),
                    received(e, run, t, from, c));
}

bool trib_checksum_wrong_slot(struct trib_engine *e, struct trib_link *l, int lane)
{
    return is_wrong(e, l->peer, trib_link_peek(l, &e->arena, lane),
                    received_slot(e, l, lane));
}
