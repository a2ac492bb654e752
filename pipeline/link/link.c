/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/minmax.h"
#include "base/snapshot.h"
#include "pipeline/link/arena_layout.h"
#include "pipeline/link/grants.h"
#include "pipeline/link/link_words.h"
#include "transport/open.h"

static trib_status_t make_staging(struct trib_arena *a)
{
    if (a->staging)
        return TRIB_OK;
    void *base;
    trib_status_t st = a->transport->ops->alloc(a->transport, staging_bytes(a), &base,
                                                &a->staging_region);
    if (st == TRIB_OK)
        a->staging = base;
    return st;
}

/* Set the memory from which the transport reads this rank's writes. */
static void set_outbox(struct trib_link *l, const struct trib_arena *a,
                       struct trib_outbox outbox)
{
    assert(outbox.region && outbox.base);
    l->outbox = outbox;
    for (int lane = 0; lane < TRIB_LANES; lane++)
        l->send[lane].staging =
            outbox.base + outbox.staging_off + lane_off(a, lane, false);
}

/* Return the offset of this rank's head in the arena of rank `peer`. */
static size_t their_head_off(const struct trib_arena *a, int peer,
                             const struct trib_arena_blob *theirs)
{
    return theirs->per_link ? HEAD_BYTES * place_of(peer, a->self)
                            : block_off(a, peer, a->self);
}

/* Return the size of the part of rank `peer`'s arena that this rank addresses. The part
 * ends with this rank's block, or with the billboard. */
static size_t arena_addressed(const struct trib_arena *a, int peer,
                              const struct trib_arena_blob *theirs)
{
    if (peer == 0 && theirs->on_billboard)
        return billboard_off(a) + trib_billboard_bytes(a->size);
    return their_head_off(a, peer, theirs) +
           (theirs->per_link ? HEAD_BYTES : a->block_bytes);
}

/* Set the addresses within the two heads that the ranks have for each other. */
static void lay_out_heads(struct trib_link *l, const struct trib_arena *a,
                          const struct trib_arena_blob *theirs, uint8_t *remote)
{
    uint8_t *in = a->base + own_head_off(a, l->peer);

    l->head_off = their_head_off(a, l->peer, theirs);
    uint8_t *out = remote ? remote + l->head_off : NULL;
    l->my_credits = ((struct trib_credits *)(in + CREDITS_OFF))->released;
    l->peer_credits =
        out ? ((struct trib_credits *)(out + CREDITS_OFF))->released : NULL;
    l->notice_out = out ? (struct trib_oob_notice *)(out + NOTICE_OFF) : NULL;
    l->slot_advert_out =
        out && a->per_link ? (struct trib_slot_advert *)(out + ADVERT_OFF) : NULL;
    l->mailbox_out = out ? (struct trib_slot_advert *)(out + MAILBOX_OFF) : NULL;
}

/* Counters shared with a peer have a cache line each, like entries. */
static bool is_aligned(const void *shared)
{
    return (uintptr_t)shared % sizeof(struct trib_entry) == 0;
}

trib_status_t trib_link_connect(struct trib_link *l, struct trib_arena *a, int peer,
                                const struct trib_address *address,
                                const struct trib_arena_blob *arena)
{
    if (l->connected)
        return TRIB_OK;
    struct trib_transport *t = a->transport;
    l->peer = peer;
    l->transport = t;
    trib_status_t st = t->ops->connect(t, peer, address);
    if (st != TRIB_OK)
        return st;
    st = trib_transport_import(t, peer, &arena->blob, arena_addressed(a, peer, arena),
                               &l->arena);
    if (st != TRIB_OK)
        return st;
    uint8_t *remote = t->ops->map(t, l->arena, NULL);
    l->mapped = remote != NULL;
    l->reads = l->mapped && t->ops->reads(t, peer);
    if (!is_aligned(remote))
        st = trib_fail(
            t->err, TRIB_ERR_INVALID,
            "rank %d has exported memory that is not aligned to a cache line: it "
            "does not run this library",
            peer);
    else if (!l->mapped && !a->per_link)
        st = make_staging(a);
    if (st != TRIB_OK) {
        t->ops->release(t, l->arena);
        return st;
    }
    if (peer == 0 && arena->on_billboard && remote)
        a->billboard = remote + billboard_off(a);
    l->small = small_bytes(a, l->mapped);
    l->stride = sizeof(struct trib_entry) + l->small;
    assert(l->stride % sizeof(struct trib_entry) == 0);
    l->waits = arena->per_link != 0;
    l->give_back_after =
        a->to_aggregators && !l->mapped ? (a->window + 3) / 4 : (a->window + 1) / 2;
    if (a->raw_window && l->give_back_after > (a->raw_window + 1) / 2)
        l->give_back_after = (a->raw_window + 1) / 2;
    lay_out_heads(l, a, arena, remote);
    if (a->staging)
        set_outbox(l, a,
                   (struct trib_outbox){a->staging_region, a->staging,
                                        block_off(a, a->self, peer) + LANES_OFF,
                                        sources_off(a, peer)});
    l->connected = true;
    return TRIB_OK;
}

static void set_recv(struct trib_link *l, const struct trib_arena *a, uint8_t *lanes)
{
    for (int lane = 0; lane < TRIB_LANES; lane++)
        l->recv[lane].slots = lanes + lane_off(a, lane, l->mapped);
}

/* Set the peer's slots, after which this rank may send. */
static void set_send(struct trib_link *l, const struct trib_arena *a,
                     struct trib_remote *slots, size_t off)
{
    uint8_t *lanes =
        l->mapped ? a->transport->ops->map(a->transport, slots, NULL) : NULL;

    l->slots = slots;
    l->slots_off = off;
    for (int lane = 0; lanes && lane < TRIB_LANES; lane++)
        l->send[lane].remote = lanes + off + lane_off(a, lane, true);
    l->window[TRIB_LANE_DOWN] = a->window;
    l->window[TRIB_LANE_UP] =
        a->to_aggregators && !l->mapped ? (5 * a->window + 7) / 8 : a->window;
}

/* Allocate the slots of one link, followed by the source memory of this rank's
 * writes. */
static trib_status_t make_edge(struct trib_link *l, struct trib_arena *a)
{
    size_t lanes = both_lanes_bytes(a, l->mapped);
    void *base;
    trib_status_t st = a->transport->ops->alloc(a->transport, link_bytes(a, l->mapped),
                                                &base, &a->link_regions[l->peer]);

    assert(a->per_link);
    if (st != TRIB_OK) {
        a->link_regions[l->peer] = NULL;
        return st;
    }
    set_recv(l, a, base);
    if (!l->mapped)
        set_outbox(
            l, a,
            (struct trib_outbox){a->link_regions[l->peer], base, lanes, 2 * lanes});
    l->advert_unsent = true;
    return TRIB_OK;
}

trib_status_t trib_link_open(struct trib_link *l, struct trib_arena *a)
{
    trib_status_t st = TRIB_OK;

    assert(l->connected);
    if (l->opened)
        return TRIB_OK;
    if (!a->per_link)
        set_recv(l, a, a->base + block_off(a, a->self, l->peer) + LANES_OFF);
    else if (!a->link_regions[l->peer])
        st = make_edge(l, a);
    if (st == TRIB_OK)
        st = trib_link_advertise(l, a);
    if (st != TRIB_OK)
        return st;
    if (!l->waits)
        set_send(l, a, l->arena, l->head_off + LANES_OFF);
    a->awaited += l->waits;
    a->link_bytes += link_bytes(a, l->mapped);
    l->opened = true;
    return TRIB_OK;
}

void trib_link_close(struct trib_link *l, struct trib_arena *a)
{
    if (!l->connected)
        return;
    struct trib_transport *t = a->transport;
    trib_grants_drop(a, l, l->peer);
    trib_link_drop_imports(l);
    assert(!l->n_imports);
    if (l->slots && l->slots != l->arena)
        t->ops->release(t, l->slots);
    if (l->peer == 0)
        a->billboard = NULL;
    t->ops->release(t, l->arena);
    t->ops->disconnect(t, l->peer);
    if (l->opened) {
        a->awaited -= !l->slots;
        a->link_bytes -= link_bytes(a, l->mapped);
    }
    memset(l, 0, sizeof(*l));
}

static trib_status_t write_advert(struct trib_link *l, size_t from)
{
    const struct trib_write w = {.local = l->outbox.region,
                                 .local_off = from,
                                 .remote = l->arena,
                                 .remote_off = l->head_off + ADVERT_OFF,
                                 .len = sizeof(struct trib_slot_advert),
                                 .imm = trib_link_imm(LINK_IMM_ADVERT, 0)};

    return l->transport->ops->write(l->transport, l->peer, &w);
}

trib_status_t trib_link_advertise(struct trib_link *l, const struct trib_arena *a)
{
    if (!l->advert_unsent)
        return TRIB_OK;
    size_t from = l->outbox.sources_off + offsetof(struct sources, slot_advert);
    struct trib_slot_advert *g =
        l->mapped ? l->slot_advert_out
                  : (struct trib_slot_advert *)(l->outbox.base + from);
    trib_status_t st = l->transport->ops->export_region(
        l->transport, a->link_regions[l->peer], &g->blob);

    if (st != TRIB_OK)
        return st;
    atomic_store_explicit(&g->ready, 1, memory_order_release);
    if (l->mapped)
        l->transport->ops->wake(l->transport, l->peer);
    else
        st = write_advert(l, from);
    l->advert_unsent = st == TRIB_ERR_NO_RESOURCE;
    /* An event reports the loss of the peer. */
    return l->advert_unsent || st == TRIB_ERR_PEER_LOST ? TRIB_OK : st;
}

trib_status_t trib_link_advertise_mailbox(struct trib_link *l,
                                          const struct trib_region *region,
                                          struct trib_slot_advert *source,
                                          size_t source_off)
{
    const struct trib_transport_ops *ops = l->transport->ops;
    struct trib_slot_advert *g = l->mapped ? l->mailbox_out : source;
    trib_status_t st = ops->export_region(l->transport, region, &g->blob);

    if (st != TRIB_OK)
        return st;
    atomic_store_explicit(&g->ready, 1, memory_order_release);
    if (l->mapped) {
        ops->wake(l->transport, l->peer);
        return TRIB_OK;
    }
    struct trib_write w = {.local = region,
                           .local_off = source_off,
                           .remote = l->arena,
                           .remote_off = l->head_off + MAILBOX_OFF,
                           .len = sizeof(*g),
                           .imm = trib_link_imm(LINK_IMM_MAILBOX, 0)};
    st = ops->write(l->transport, l->peer, &w);
    return st == TRIB_ERR_PEER_LOST ? TRIB_OK : st; /* an event reports the loss */
}

/* Import the region of an advert that has arrived; mapped memory must begin on a cache
 * line. */
static trib_status_t import_advert(struct trib_link *l,
                                   const struct trib_slot_advert *g, size_t least,
                                   struct trib_remote **out)
{
    const struct trib_transport_ops *ops = l->transport->ops;
    struct trib_blob blob;

    trib_snapshot(&blob, &g->blob, sizeof(blob)); /* the peer may still write to it */
    trib_status_t st = trib_transport_import(l->transport, l->peer, &blob, least, out);
    if (st != TRIB_OK)
        return st == TRIB_ERR_PEER_LOST ? TRIB_INPROGRESS : st;
    const void *memory = ops->map(l->transport, *out, NULL);
    if ((l->mapped && !memory) || !is_aligned(memory)) {
        ops->release(l->transport, *out);
        return TRIB_ERR_PROTOCOL;
    }
    return TRIB_OK;
}

/* Return true if the peer's advert has arrived; reported: an event reported it. */
static bool is_ready(const struct trib_link *l, const struct trib_slot_advert *g,
                     bool reported)
{
    return !l->lost &&
           (l->mapped ? atomic_load_explicit(&g->ready, memory_order_acquire)
                      : reported);
}

trib_status_t trib_link_take_mailbox(struct trib_link *l, const struct trib_arena *a,
                                     size_t least, struct trib_remote **out)
{
    const struct trib_slot_advert *g =
        (struct trib_slot_advert *)(a->base + own_head_off(a, l->peer) + MAILBOX_OFF);

    assert(l->connected);
    if (!is_ready(l, g, l->mailbox_advertised))
        return TRIB_INPROGRESS;
    return import_advert(l, g, least, out);
}

trib_status_t trib_link_take_advert(struct trib_link *l, struct trib_arena *a)
{
    const struct trib_slot_advert *g =
        (struct trib_slot_advert *)(a->base + own_head_off(a, l->peer) + ADVERT_OFF);
    struct trib_remote *slots;

    if (l->slots)
        return TRIB_OK;
    if (!is_ready(l, g, l->advertised))
        return TRIB_INPROGRESS;
    trib_status_t st = import_advert(l, g, both_lanes_bytes(a, l->mapped), &slots);
    if (st != TRIB_OK)
        return st;
    set_send(l, a, slots, 0);
    a->awaited--;
    return TRIB_OK;
}

/* Post the payload before its entry: writes arrive in order. The caller's memory is in
 * use until the write completes, a slot of staging until the credit of its entry
 * returns. `slot` is an offset from the first slot of all lanes. */
static trib_status_t post_zcopy(struct trib_link *l, int lane, size_t slot)
{
    struct trib_zcopy *c = &l->zcopy[lane];
    size_t payload = slot + sizeof(struct trib_entry);
    struct trib_write w = {
        .local = c->from ? c->from : l->outbox.region,
        .local_off = c->from ? c->from_off : l->outbox.staging_off + payload,
        .remote = c->to ? c->to : l->slots,
        .remote_off = c->to ? c->to_off : l->slots_off + payload,
        .len = c->len,
        .quiet = true,
        .signal = c->from != NULL,
        .token = LINK_TOKEN_ZCOPY,
    };
    assert(c->len && !l->send[lane].zcopied);
    trib_status_t st = l->transport->ops->write(l->transport, l->peer, &w);

    if (st != TRIB_OK)
        return st;
    l->n_zcopies += w.signal;
    l->send[lane].zcopied = true;
    c->len = 0;
    return TRIB_OK;
}

/* Return true if the next entry of a lane may be posted; if not, ask once. */
static bool may_post(struct trib_link *l, const struct trib_arena *a, int lane,
                     size_t bytes)
{
    struct trib_send_lane *s = &l->send[lane];

    if (s->grant == TRIB_GRANT_GIVEN ||
        (s->grant == TRIB_GRANT_NONE && bytes <= a->grants.free_bytes[lane]))
        return true;
    if (s->grant == TRIB_GRANT_ASKED)
        return false;
    const uint32_t units = (uint32_t)((bytes + LINK_ASK_UNIT - 1) / LINK_ASK_UNIT);
    const struct trib_write w = {
        .imm = trib_link_imm(LINK_IMM_ASK, units << 1 | (uint32_t)lane)};
    if (l->transport->ops->write(l->transport, l->peer, &w) == TRIB_OK)
        s->grant = TRIB_GRANT_ASKED;
    return false;
}

trib_status_t trib_link_post(struct trib_link *l, const struct trib_arena *a, int lane)
{
    struct trib_send_lane *s = &l->send[lane];
    struct trib_entry *c = trib_link_entry(l, a, lane);
    size_t len = sizeof(*c);
    size_t off = lane_off(a, lane, false) + trib_slot_off(l, a, s->next);

    assert(c->frame.bytes <= a->slot_bytes);
    s->filled = true;
    if (!may_post(l, a, lane, trib_max(c->frame.bytes, l->zcopy[lane].len)))
        return TRIB_ERR_NO_RESOURCE;
    if (l->zcopy[lane].len) {
        trib_status_t st = post_zcopy(l, lane, off);
        if (st != TRIB_OK)
            return st;
    }
    if (c->frame.bytes > TRIB_ENTRY_PAYLOAD && !s->zcopied)
        len += c->frame.bytes;
    atomic_store_explicit(&c->position, s->next + 1, memory_order_relaxed);
    struct trib_write w = {
        .local = l->outbox.region,
        .local_off = l->outbox.staging_off + off,
        .remote = l->slots,
        .remote_off = l->slots_off + off,
        .len = len,
        .imm = trib_link_imm(LINK_IMM_FRAME, lane),
    };
    trib_status_t st = l->transport->ops->write(l->transport, l->peer, &w);
    if (st != TRIB_OK)
        return st;
    s->filled = s->zcopied = false;
    s->grant = TRIB_GRANT_NONE;
    s->next++;
    return TRIB_OK;
}

void trib_link_give_back(struct trib_link *l, int lane)
{
    struct trib_recv_lane *r = &l->recv[lane];

    assert(l->connected && lane >= 0 && lane < TRIB_LANES);
    if (l->mapped) {
        atomic_store_explicit(&l->peer_credits[lane], r->next, memory_order_release);
        r->returned = r->next;
        return;
    }
    const struct trib_write w = {
        .imm = trib_link_imm(LINK_IMM_CREDITS, r->next << 1 | (uint32_t)lane)};
    r->owed = l->transport->ops->write(l->transport, l->peer, &w) != TRIB_OK;
    if (!r->owed)
        r->returned = r->next;
}

/* Return how many frames a credit event releases beyond the known ones. The immediate
 * has only the lower bits of their number, which suffice because fewer frames are in
 * flight. */
static uint32_t newly_released(const struct trib_link *l, uint32_t imm)
{
    const uint32_t known =
        atomic_load_explicit(&l->my_credits[imm & 1], memory_order_relaxed);

    return ((imm >> 1) - known) & LINK_IMM_COUNT;
}

bool trib_link_credits_fit(const struct trib_link *l, const struct trib_event *event)
{
    if (event->kind != TRIB_EVENT_ARRIVED || event->imm >> 24 != LINK_IMM_CREDITS ||
        !l->connected || l->mapped)
        return true;
    const uint32_t lane = event->imm & 1;
    const uint32_t under_way =
        l->send[lane].next -
        atomic_load_explicit(&l->my_credits[lane], memory_order_relaxed);
    return newly_released(l, event->imm) <= under_way;
}

/* Only this thread stores credits; the metrics of a service read them. */
static void take_credits(struct trib_link *l, uint32_t imm)
{
    _Atomic uint32_t *credits = &l->my_credits[imm & 1];
    const uint32_t known = atomic_load_explicit(credits, memory_order_relaxed);

    atomic_store_explicit(credits, known + newly_released(l, imm),
                          memory_order_release);
}

bool trib_link_event(struct trib_link *l, const struct trib_event *event)
{
    const uint32_t kind = event->imm >> 24, bits = event->imm & LINK_IMM_BITS;

    if (event->kind == TRIB_EVENT_WRITE_DONE && event->token == LINK_TOKEN_ZCOPY)
        return l->n_zcopies && --l->n_zcopies == 0;
    if (event->kind == TRIB_EVENT_WRITE_DONE && event->token == LINK_TOKEN_REPORT) {
        l->report_busy = false;
        return false;
    }
    if (event->kind == TRIB_EVENT_WRITE_DONE) {
        l->notices_busy -= l->notices_busy > 0;
        return false;
    }
    if (kind == LINK_IMM_FRAME && bits < TRIB_LANES)
        l->recv[bits].arrived++;
    else if (kind == LINK_IMM_CREDITS && l->connected && !l->mapped)
        take_credits(l, bits);
    else if (kind == LINK_IMM_ADVERT)
        l->advertised = true;
    else if (kind == LINK_IMM_MAILBOX)
        l->mailbox_advertised = true;
    else if (kind == LINK_IMM_NOTICE)
        l->notice_arrived[TRIB_OOB_NOTICE_LAST_WORDS] = bits;
    else if (kind == LINK_IMM_WAITING)
        l->notice_arrived[TRIB_OOB_NOTICE_OF_WAITING] = bits;
    return kind != LINK_IMM_NOTICE && kind != LINK_IMM_WAITING && kind != LINK_IMM_ASK;
}
