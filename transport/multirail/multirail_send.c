/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: writes, and the log of writes that may have to be repeated.
 *
 * A write is released (WRITE_DONE) once it and all earlier ones are known to be at the
 * target. A repetition begins at the first event that the receiver lacks, so it never
 * includes a released write.
 *
 * Each write with an event is signalled, and every UNSIGNALLED-th quiet one. A quiet
 * write uses the rail of the next event. So all but the last few writes are followed by
 * a signalled one on the same rail, and a full log always drains. On a single rail
 * every UNSIGNALLED-th write of any kind is enough.
 */
#include "transport/multirail/multirail.h"

#define UNSIGNALLED 8u

static uint64_t token_of(const struct multirail_peer *p, uint64_t at)
{
    return (uint64_t)p->epoch << MULTIRAIL_EPOCH_SHIFT | at;
}

/* Post an entry on the rail of the next event. Return TRIB_ERR_NO_RESOURCE also if the
 * rail has just ended, which poll will report. */
static trib_status_t post(struct multirail *r, int peer, struct multirail_entry *e,
                          uint64_t at)
{
    struct multirail_peer *p = &r->peers[peer];
    int k = multirail_next(&p->out);
    struct multirail_rail *rail = &p->rails[k];
    struct trib_transport *inner = r->inner[rail->inner];
    const struct multirail_region *local = (const struct multirail_region *)e->w.local;
    const struct multirail_remote *remote =
        (const struct multirail_remote *)e->w.remote;
    struct trib_write w = e->w;

    if (w.len) {
        w.local = local->inner[rail->inner];
        w.remote = remote->rail[k];
        if (!w.remote)
            return TRIB_ERR_NO_RESOURCE;
    }
    w.signal =
        e->w.signal || (!w.quiet && p->n > 1) || rail->unsignalled + 1 >= UNSIGNALLED;
    w.token = token_of(p, at);
    trib_status_t status = inner->ops->write(inner, peer, &w);
    if (status == TRIB_ERR_PEER_LOST) {
        trib_error_clear(&r->inner_err[rail->inner]);
        return TRIB_ERR_NO_RESOURCE;
    }
    if (status != TRIB_OK)
        return trib_multirail_take_error(r, rail->inner, status);
    rail->unsignalled = w.signal ? 0 : rail->unsignalled + 1;
    if (w.signal)
        rail->last = at + 1;
    e->rail = (uint8_t)k;
    if (!w.quiet)
        trib_multirail_advance(&p->out, w.len);
    return TRIB_OK;
}

trib_status_t trib_multirail_write(struct trib_transport *t, int peer,
                                   const struct trib_write *write)
{
    struct multirail *r = multirail_of(t);

    assert(peer >= 0 && peer < r->size);
    struct multirail_peer *p = &r->peers[peer];
    const struct multirail_remote *remote =
        (const struct multirail_remote *)write->remote;
    if (p->state != TRIB_PEER_CONNECTED && p->state != TRIB_PEER_DRAINING)
        return p->state == TRIB_PEER_UNKNOWN ? TRIB_ERR_INVALID : TRIB_ERR_PEER_LOST;
    if (write->len && (!write->local || !remote || remote->peer != peer))
        return trib_fail(r->err, TRIB_ERR_INVALID,
                         "a write to peer %d without a region here and one of its own",
                         peer);
    if (write->imm == TRIB_IMM_OWN && !write->quiet)
        return trib_fail(r->err, TRIB_ERR_INVALID,
                         "the immediate %#x is reserved for the transport", write->imm);
    if (p->state == TRIB_PEER_DRAINING || p->flow != MULTIRAIL_FLOWING ||
        p->tail - p->head >= MULTIRAIL_LOG)
        return TRIB_ERR_NO_RESOURCE;
    struct multirail_entry *e = &p->log[p->tail % MULTIRAIL_LOG];
    e->w = *write;
    e->event = p->events;
    e->spoilt = false;
    trib_status_t status = post(r, peer, e, p->tail);
    if (status != TRIB_OK)
        return status;
    p->tail++;
    p->events += !write->quiet;
    return TRIB_OK;
}

/* Without `confirms` no write is repeated, so the log's sources are not read again. */
bool trib_multirail_detach(struct trib_transport *t, int peer)
{
    struct multirail *r = multirail_of(t);
    const struct multirail_peer *p = &r->peers[peer];
    bool all = !r->confirms;

    assert(peer >= 0 && peer < r->size);
    for (int k = 0; !r->confirms && k < p->n; k++) {
        struct trib_transport *inner = r->inner[p->rails[k].inner];
        all &= inner->ops->detach(inner, peer);
    }
    return all;
}

static bool is_done(const struct multirail_peer *p, uint64_t at)
{
    return at < p->confirmed || p->rails[p->log[at % MULTIRAIL_LOG].rail].done > at;
}

int trib_multirail_reap(struct multirail *r, int peer, struct trib_event *events,
                        int max)
{
    struct multirail_peer *p = &r->peers[peer];
    int n = 0;

    for (; p->head != p->tail && is_done(p, p->head); p->head++) {
        const struct multirail_entry *e = &p->log[p->head % MULTIRAIL_LOG];
        if (e->w.signal && n == max)
            break;
        if (e->w.signal)
            events[n++] = (struct trib_event){
                .kind = TRIB_EVENT_WRITE_DONE, .peer = peer, .token = e->w.token};
        if (!e->w.quiet)
            p->released = e->event + 1;
    }
    return n;
}

bool trib_multirail_repost(struct multirail *r, int peer)
{
    struct multirail_peer *p = &r->peers[peer];

    assert(p->flow == MULTIRAIL_REPEATING);
    for (; p->repeat_at != p->tail; p->repeat_at++) {
        struct multirail_entry *e = &p->log[p->repeat_at % MULTIRAIL_LOG];
        if (e->spoilt) {
            trib_multirail_fail_peer(
                r, peer,
                "a rail was lost, and the memory of a write in flight on it is no "
                "longer registered");
            return false;
        }
        trib_status_t status = post(r, peer, e, p->repeat_at);
        if (status == TRIB_ERR_NO_RESOURCE)
            return false;
        if (status != TRIB_OK) {
            trib_multirail_fail_peer(r, peer, trib_error_text(r->err));
            return false;
        }
    }
    return true;
}

trib_status_t trib_multirail_send_msg(struct multirail *r, int peer, int k,
                                      struct multirail_msg msg)
{
    struct multirail_rail *rail = &r->peers[peer].rails[k];
    struct trib_transport *inner = r->inner[rail->inner];
    const size_t own =
        MULTIRAIL_BOARDS_AT + (size_t)(r->size + peer) * sizeof(struct multirail_board);
    const size_t peers =
        MULTIRAIL_BOARDS_AT + (size_t)r->self * sizeof(struct multirail_board);
    struct trib_write w = {
        .local = r->board->inner[rail->inner],
        .local_off = msg.spare ? MULTIRAIL_SPARE : own + msg.off,
        .remote = rail->board,
        .remote_off = msg.spare ? 0 : peers + msg.off,
        .len = msg.len,
        .imm = TRIB_IMM_OWN,
        .quiet = msg.quiet,
        .signal = msg.probe,
        .token = MULTIRAIL_PROBE,
    };

    assert(peer >= 0 && peer < r->size && k >= 0 && k < MULTIRAIL_MAX);
    return inner->ops->write(inner, peer, &w);
}
