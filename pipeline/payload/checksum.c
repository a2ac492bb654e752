/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/checksum.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/engine/engine_wait.h"
#include "pipeline/payload/payload_agree.h"

/* What a frame stands for. */
struct bytes {
    const uint8_t *at; /* NULL: nothing that can be */
    size_t n;
};

/* Where the sum is: a payload that does not fit the cell leaves its place in the cell free, and
 * one that does has no use for the number of a place. */
static uint8_t *place_of(struct trib_cell *cell)
{
    return cell->frame.bytes <= TRIB_CELL_PAYLOAD ? (uint8_t *)&cell->place : cell->payload;
}

static uint32_t sum_of(const struct trib_engine *e, const struct trib_frame *f, struct bytes b)
{
    return e->kernels->crc32c(e->kernels->crc32c(0, f, sizeof(*f)), b.at, b.n);
}

static void set(struct trib_engine *e, struct trib_cell *cell, struct bytes b)
{
    const uint32_t sum = sum_of(e, &cell->frame, b);

    memcpy(place_of(cell), &sum, sizeof(sum));
}

static struct bytes slot_to_send(struct trib_engine *e, struct trib_link *l, int lane)
{
    const size_t n = trib_link_cell(l, &e->arena, lane)->frame.bytes;

    return (struct bytes){trib_link_to_send(l, &e->arena, lane, n), n};
}

void trib_checksum_set_slot(struct trib_engine *e, struct trib_link *l, int lane)
{
    set(e, trib_link_cell(l, &e->arena, lane), slot_to_send(e, l, lane));
}

void trib_checksum_set(struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_link *l = &e->links[run->program.edges[t->edge].peer];
    struct trib_cell *cell = trib_link_cell(l, &e->arena, t->lane);
    struct bytes b;

    if (trib_share_task(run, t))
        b = slot_to_send(e, l, t->lane);
    else if (!run->desc.codec)
        b = (struct bytes){trib_raw_sent(run, t, c), c->n * run->desc.element};
    else if (cell->frame.kind == TRIB_FRAME_REF)
        b = (struct bytes){run->stores[t->chunk].bytes, run->stores[t->chunk].len};
    else
        b = slot_to_send(e, l, t->lane);
    set(e, cell, b);
}

static struct bytes received_slot(struct trib_engine *e, struct trib_link *l, int lane)
{
    struct trib_cell *cell = trib_link_peek(l, &e->arena, lane);

    if (cell->frame.bytes > e->arena.slot_bytes)
        return (struct bytes){.at = NULL};
    return (struct bytes){trib_link_received(l, &e->arena, lane, cell), cell->frame.bytes};
}

static struct bytes received(struct trib_engine *e, const struct trib_run *run,
                             const struct trib_task *t, const struct trib_member *from,
                             const struct trib_chunk *c)
{
    const struct trib_edge *edge = &run->program.edges[from->edge];
    struct trib_link *l = &e->links[edge->peer];
    struct trib_cell *cell = trib_link_peek(l, &e->arena, from->lane);
    const bool in_slot =
        cell->frame.kind == TRIB_FRAME_DATA || cell->frame.kind == TRIB_FRAME_SUM;
    const bool result = t->kind == TRIB_TASK_COPY_IN;
    struct bytes b = {.at = NULL};
    uint32_t len;

    if (in_slot || trib_share_task(run, t))
        return received_slot(e, l, from->lane);
    if (cell->frame.kind == TRIB_FRAME_PLACED && result && run->desc.zero_copy) {
        b = (struct bytes){trib_run_value(run, c), c->n * run->desc.element};
    } else if (!run->desc.codec) {
        b = (struct bytes){trib_raw_source(e, run, from, cell, c), c->n * run->desc.element};
    } else if (result) {
        b.at = trib_coded_word(e, run, t, c, &len);
        b.n = b.at ? len : 0;
    }
    return b;
}

static bool is_wrong(struct trib_engine *e, int peer, struct trib_cell *cell, struct bytes b)
{
    uint32_t said, found;
    char what[160], chunk[32] = "buffers";

    if (!b.at)
        return false;
    memcpy(&said, place_of(cell), sizeof(said));
    found = sum_of(e, &cell->frame, b);
    if (said == found)
        return false;
    if (cell->frame.kind != TRIB_FRAME_OPEN)
        snprintf(chunk, sizeof(chunk), "chunk %u", cell->frame.chunk);
    snprintf(what, sizeof(what),
             "%s, damaged on its way (TRIB_CHECK=sum: CRC-32C %08x was sent, %08x came),", chunk,
             said, found);
    trib_engine_protocol(e, peer, what);
    return true;
}

bool trib_checksum_wrong(struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_member *from,
                         const struct trib_chunk *c)
{
    const int peer = run->program.edges[from->edge].peer;

    return is_wrong(e, peer, trib_link_peek(&e->links[peer], &e->arena, from->lane),
                    received(e, run, t, from, c));
}

bool trib_checksum_wrong_slot(struct trib_engine *e, struct trib_link *l, int lane)
{
    return is_wrong(e, l->peer, trib_link_peek(l, &e->arena, lane), received_slot(e, l, lane));
}
