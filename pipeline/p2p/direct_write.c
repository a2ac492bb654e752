/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/direct_write.h"

#include <assert.h>
#include <stdlib.h>

#include "pipeline/run/run_buffers.h"

enum {
    DIRECT_MIN = 131072, /* bytes: registering less costs as much as copying */
    PART = 65536, /* with an entry each, which the receiver credits: other messages to
                   * it do not wait for long */
};

/* Tokens of these writes: this one plus the number of the request. */
#define TOKEN_FIRST (TRIB_LINK_MESSAGE_TOKEN + UINT64_C(1))

bool trib_direct_offer(struct trib_engine *e, const struct trib_p2p_pair *p,
                       struct trib_p2p_request *r, struct trib_ref *out)
{
    assert(!r->sends && !r->lands);
    r->lands = r->bytes >= DIRECT_MIN && !p->box.link->mapped &&
               !trib_p2p_of(e)->checks &&
               trib_memory_hold(&e->memories, r->buffer, r->bytes, out, &r->hold) &&
               out->blob.len && trib_ref_bytes(out) <= p->box.slot_bytes;
    if (!r->lands)
        trib_direct_end(e, r, false);
    return r->lands;
}

void trib_direct_begin(struct trib_engine *e, struct trib_p2p_request *r)
{
    assert(r->sends && r->place);
    if (!trib_memory_hold(&e->memories, r->buffer, r->bytes, NULL, &r->hold))
        trib_direct_end(e, r, false);
}

trib_status_t trib_direct_write(struct trib_engine *e, struct trib_p2p_pair *p,
                                struct trib_p2p_request *r, size_t *n_out)
{
    const struct trib_view view = trib_engine_view(e, p->box.link, r->place);
    const size_t left = r->bytes - r->moved;
    struct trib_transport *t = p->box.link->transport;
    const struct trib_write w = {.local = r->hold.place.region,
                                 .local_off = (size_t)r->hold.place.origin + r->moved,
                                 .remote = view.remote,
                                 .remote_off = (size_t)view.origin + r->moved,
                                 .len = left < PART ? left : PART,
                                 .quiet = true,
                                 .signal = true,
                                 .token = TOKEN_FIRST + r->id};

    assert(left > 0);
    if (e->failed)
        return (trib_status_t)e->failed;
    const trib_status_t st =
        view.remote ? t->ops->write(t, p->peer, &w) : TRIB_ERR_UNSUPPORTED;
    if (st != TRIB_OK && st != TRIB_ERR_NO_RESOURCE && st != TRIB_ERR_PEER_LOST) {
        trib_error_clear(e->err);
        return TRIB_ERR_UNSUPPORTED;
    }
    p->box.link->n_direct += st == TRIB_OK;
    r->n_direct += st == TRIB_OK;
    *n_out = w.len;
    return st;
}

static bool counts(struct trib_p2p_queue *q, uint32_t id)
{
    for (struct trib_p2p_request *r = q->head; r; r = r->next)
        if (r->id == id && r->n_direct) {
            r->n_direct--;
            return true;
        }
    return false;
}

bool trib_direct_written(struct trib_p2p_pair *p, uint64_t token)
{
    const uint32_t id = (uint32_t)(token - TOKEN_FIRST);

    if (token < TOKEN_FIRST)
        return false;
    p->box.link->n_direct -= p->box.link->n_direct > 0;
    if (!counts(&p->streaming, id)) /* after a failure there may be none */
        (void)counts(&p->flying, id);
    return true;
}

void trib_direct_end(struct trib_engine *e, struct trib_p2p_request *r, bool broken)
{
    trib_memory_let_go(&e->memories, &r->hold, broken);
    r->lands = false;
    free(r->place);
    r->place = NULL;
}
