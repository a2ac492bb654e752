/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/pull.h"

#include <assert.h>
#include <stdlib.h>

#include "pipeline/run/run_buffers.h"

/* Bytes of a message to read before other messages get their turn. */
enum { PIECE = 1 << 20 };

bool trib_pull_expose(const struct trib_engine *e, const struct trib_p2p_pair *p,
                      const struct trib_p2p_request *r, struct trib_ref *out)
{
    assert(r->sends && r->bytes);
    return !trib_p2p_of(e)->checks &&
           trib_engine_expose(e, p->box.link, r->buffer, r->bytes, out) &&
           trib_ref_bytes(out) <= p->box.slot_bytes;
}

trib_status_t trib_pull_place(const struct trib_message *m, const uint8_t *payload,
                              struct trib_ref **out)
{
    struct trib_ref ref;
    size_t bytes;

    if (!trib_ref_read(payload, m->bytes, &ref) || !ref.blob.len || ref.lo != 0 ||
        !trib_message_bytes(m->count, m->dtype, &bytes) || ref.hi != bytes)
        return TRIB_ERR_PROTOCOL;
    struct trib_ref *place = malloc(m->bytes); /* shorter than a struct trib_ref */
    if (!place)
        return TRIB_ERR_NO_MEMORY;
    (void)trib_ref_write(&ref, (uint8_t *)place);
    *out = place;
    return TRIB_OK;
}

trib_status_t trib_pull(struct trib_engine *e, struct trib_p2p_pair *p,
                        struct trib_p2p_request *r)
{
    const size_t left = r->bytes - r->moved, n = left < PIECE ? left : PIECE;

    assert(!r->sends && r->place && left);
    const trib_status_t st =
        trib_engine_fetch(e, p->box.link, r->place, r->moved,
                          (struct trib_piece){r->buffer + r->moved, n});
    if (st == TRIB_ERR_UNSUPPORTED) {
        r->moved = 0;
        return st;
    }
    if (st != TRIB_OK)
        return st;
    e->stats.received_bytes += n;
    e->stats.received_dense_bytes += n;
    r->moved += n;
    return r->moved < r->bytes ? TRIB_INPROGRESS : TRIB_OK;
}
