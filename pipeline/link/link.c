/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/snapshot.h"

/*
 * The immediate bits of a transport write: what it was, and for frames which lane.
 * Credits and notices are memory writes that need no reaction, but an event, so that a
 * sleeping peer wakes.
 */
enum {
    IMM_FRAME = TRIB_LINK_FRAME,
    IMM_CREDITS = 2,
    IMM_NOTICE = 3,
    IMM_GRANT = 4,
};

/* Tokens of writes whose end is told. */
enum {
    TOKEN_NOTICE,
    TOKEN_CARRY,
};

static uint32_t imm(uint32_t kind, int lane)
{
    return kind << 24 | (uint32_t)lane;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

#define CREDITS_OFF 0
#define NOTICE_OFF sizeof(struct trib_credits)
#define GRANT_OFF (NOTICE_OFF + sizeof(struct trib_notice))
#define LANES_OFF (GRANT_OFF + sizeof(struct trib_grant))
#define HEAD_BYTES LANES_OFF /* of a block without lanes */

/* The places fit: S (64 + bytes) >= S (64 + bytes / 2) + 2 bytes for S >= 4. */
static size_t small_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = a->slot_bytes / 128 * 64;

    if (!mapped || a->slots < 4 || !small)
        return a->slot_bytes;
    return small < TRIB_SMALL_BYTES ? small : TRIB_SMALL_BYTES;
}

/* Bytes of all lanes of one direction; mapped: with load/store reach. */
static size_t both_lanes_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = small_bytes(a, mapped);
    size_t places = small < a->slot_bytes ? TRIB_PLACES * a->slot_bytes : 0;

    return TRIB_LANES * ((sizeof(struct trib_cell) + small) * a->slots + places);
}

/* From the first slot of the first lane. */
static size_t lane_off(const struct trib_arena *a, int lane, bool mapped)
{
    return (size_t)lane * (both_lanes_bytes(a, mapped) / TRIB_LANES);
}

static void size_up(struct trib_arena *a)
{
    a->slots = 1;
    while (a->slots < a->window)
        a->slots *= 2;
    a->slot_bytes = round_up(a->slot_bytes, 64);
    a->block_bytes = round_up(LANES_OFF + both_lanes_bytes(a, false), 4096);
}

/* The index of rank `peer` among the peers of rank `self`, which leaves itself out. */
static size_t place_of(int self, int peer)
{
    return (size_t)(peer - (peer > self));
}

static size_t block_off(const struct trib_arena *a, int self, int peer)
{
    return a->block_bytes * place_of(self, peer);
}

static size_t others(int size)
{
    return (size_t)(size > 1 ? size - 1 : 1);
}

static size_t blocks_bytes(const struct trib_arena *a)
{
    return a->block_bytes * others(a->size);
}

/* Offset of the block that rank `peer` writes, in the arena of this rank. */
static size_t own_head_off(const struct trib_arena *a, int peer)
{
    return a->per_edge ? HEAD_BYTES * place_of(a->self, peer)
                       : block_off(a, a->self, peer);
}

/* Behind the heads: the notice of a failure to peers whose links were never open. */
static size_t farewell_off(int size)
{
    return HEAD_BYTES * others(size);
}

size_t trib_arena_heads(int size)
{
    return round_up(farewell_off(size) + sizeof(struct trib_notice), 4096);
}

trib_status_t trib_arena_export(const struct trib_arena *a, struct trib_arena_blob *out)
{
    out->per_edge = a->per_edge;
    return a->transport->ops->export_region(a->transport, a->region, &out->blob);
}

trib_status_t trib_arena_create(struct trib_arena *a)
{
    size_up(a);
    void *base;
    if (a->per_edge) {
        a->edges = calloc((size_t)a->size, sizeof(*a->edges));
        if (!a->edges)
            return TRIB_ERR_NO_MEMORY;
    }
    trib_status_t st = a->transport->ops->alloc(
        a->transport, a->per_edge ? trib_arena_heads(a->size) : blocks_bytes(a), &base,
        &a->region);
    a->base = st == TRIB_OK ? base : NULL;
    if (st != TRIB_OK) {
        free(a->edges);
        a->edges = NULL;
    }
    return st;
}

void trib_arena_destroy(struct trib_arena *a)
{
    for (int p = 0; a->edges && p < a->size; p++)
        if (a->edges[p])
            a->transport->ops->dereg(a->transport, a->edges[p]);
    free(a->edges);
    a->edges = NULL;
    if (a->staging)
        a->transport->ops->dereg(a->transport, a->staging_region);
    if (a->base)
        a->transport->ops->dereg(a->transport, a->region);
    a->staging = NULL;
    a->base = NULL;
}

/*
 * Sources of writes to a peer beside frames. A transport may read a source until the
 * write is done, so each lies still that long: a credit has the entry of its position,
 * which comes round when the peer has sent a window more and so has seen this credit; a
 * notice of waiting is made when the last one is done; that of a failure and the grant
 * are sent once. _Atomic credits[TRIB_LANES][slots] follow.
 */
struct sources {
    struct trib_notice waiting;
    struct trib_notice failed;
    struct trib_grant grant;
};

static size_t sources_bytes(const struct trib_arena *a)
{
    return round_up(sizeof(struct sources) +
                        TRIB_LANES * a->slots * sizeof(_Atomic uint32_t), 64);
}

static size_t sources_off(const struct trib_arena *a, int peer)
{
    return blocks_bytes(a) + sources_bytes(a) * (size_t)peer;
}

/* The cells of all peers, as they lie in the arena, then the sources for each peer. */
static size_t staging_bytes(const struct trib_arena *a)
{
    return sources_off(a, a->size);
}

size_t trib_arena_pinned(uint32_t window, size_t chunk, int size)
{
    struct trib_arena a = {.window = window, .slot_bytes = chunk, .size = size};

    size_up(&a);
    return blocks_bytes(&a) + round_up(staging_bytes(&a), 4096);
}

/* Bytes of one link: its slots, and without load/store reach a copy of the peer's, and
 * sources. */
static size_t edge_bytes(const struct trib_arena *a, bool mapped)
{
    size_t lanes = both_lanes_bytes(a, mapped);

    return round_up(mapped ? LANES_OFF + lanes : 2 * lanes + sources_bytes(a), 4096);
}

size_t trib_edge_bytes(uint32_t window, size_t chunk, bool mapped)
{
    struct trib_arena a = {.window = window, .slot_bytes = chunk};

    size_up(&a);
    return edge_bytes(&a, mapped);
}

size_t trib_arena_bytes(const struct trib_arena *a)
{
    if (a->per_edge)
        return trib_arena_heads(a->size) + a->edge_bytes;
    return a->staging ? blocks_bytes(a) + round_up(staging_bytes(a), 4096)
                      : a->edge_bytes;
}

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

/* Sets the memory from which the transport reads this rank's writes. */
static void set_outbox(struct trib_link *l, const struct trib_arena *a,
                       struct trib_outbox outbox)
{
    l->outbox = outbox;
    for (int lane = 0; lane < TRIB_LANES; lane++)
        l->send[lane].staging =
            outbox.base + outbox.staging_off + lane_off(a, lane, false);
}

/* Offset of this rank's head in the arena of rank `peer`. */
static size_t their_head_off(const struct trib_arena *a, int peer,
                             const struct trib_arena_blob *theirs)
{
    return theirs->per_edge ? HEAD_BYTES * place_of(peer, a->self)
                            : block_off(a, peer, a->self);
}

/* So much of the arena of rank `peer` this rank addresses: its own block is the end of
 * it. */
static size_t arena_addressed(const struct trib_arena *a, int peer,
                              const struct trib_arena_blob *theirs)
{
    return their_head_off(a, peer, theirs) +
           (theirs->per_edge ? HEAD_BYTES : a->block_bytes);
}

/* The head of the block that each has for the other. */
static void lay_out_heads(struct trib_link *l, const struct trib_arena *a,
                          const struct trib_arena_blob *theirs, uint8_t *remote)
{
    uint8_t *in = a->base + own_head_off(a, l->peer);

    l->head_off = their_head_off(a, l->peer, theirs);
    uint8_t *out = remote ? remote + l->head_off : NULL;
    l->my_credits = ((struct trib_credits *)(in + CREDITS_OFF))->released;
    l->peer_credits =
        out ? ((struct trib_credits *)(out + CREDITS_OFF))->released : NULL;
    l->notice_out = out ? (struct trib_notice *)(out + NOTICE_OFF) : NULL;
    l->grant_out = out && a->per_edge ? (struct trib_grant *)(out + GRANT_OFF) : NULL;
}

/* Counters that are shared with a peer lie in one line each, as cells do. */
static bool is_aligned(const void *shared)
{
    return (uintptr_t)shared % sizeof(struct trib_cell) == 0;
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
    if (!is_aligned(remote))
        st = trib_fail(
            t->err, TRIB_ERR_INVALID,
            "rank %d has exported memory whose first byte is in the middle of a "
            "cache line: what it sent is not of this library",
            peer);
    else if (!l->mapped && !a->per_edge)
        st = make_staging(a);
    if (st != TRIB_OK) {
        t->ops->release(t, l->arena);
        return st;
    }
    l->small = small_bytes(a, l->mapped);
    l->stride = sizeof(struct trib_cell) + l->small;
    l->waits = arena->per_edge != 0;
    l->give_back_after =
        a->to_services && !l->mapped ? (a->window + 3) / 4 : (a->window + 1) / 2;
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

/* From now on this rank may send. */
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
        a->to_services && !l->mapped ? (5 * a->window + 7) / 8 : a->window;
}

/* The slots of one edge, and behind them what this rank writes over it. */
static trib_status_t make_edge(struct trib_link *l, struct trib_arena *a)
{
    size_t lanes = both_lanes_bytes(a, l->mapped);
    void *base;
    trib_status_t st = a->transport->ops->alloc(a->transport, edge_bytes(a, l->mapped),
                                                &base, &a->edges[l->peer]);

    if (st != TRIB_OK) {
        a->edges[l->peer] = NULL;
        return st;
    }
    set_recv(l, a, base);
    if (!l->mapped)
        set_outbox(l, a,
                   (struct trib_outbox){a->edges[l->peer], base, lanes, 2 * lanes});
    l->ungranted = true;
    return TRIB_OK;
}

trib_status_t trib_link_open(struct trib_link *l, struct trib_arena *a)
{
    trib_status_t st = TRIB_OK;

    if (l->opened)
        return TRIB_OK;
    if (!a->per_edge)
        set_recv(l, a, a->base + block_off(a, a->self, l->peer) + LANES_OFF);
    else if (!a->edges[l->peer])
        st = make_edge(l, a);
    if (st == TRIB_OK)
        st = trib_link_grant(l, a);
    if (st != TRIB_OK)
        return st;
    if (!l->waits)
        set_send(l, a, l->arena, l->head_off + LANES_OFF);
    a->awaited += l->waits;
    a->edge_bytes += edge_bytes(a, l->mapped);
    l->opened = true;
    return TRIB_OK;
}

void trib_link_close(struct trib_link *l, struct trib_arena *a)
{
    if (!l->connected)
        return;
    struct trib_transport *t = a->transport;
    trib_link_drop_imports(l);
    if (l->slots && l->slots != l->arena)
        t->ops->release(t, l->slots);
    t->ops->release(t, l->arena);
    t->ops->disconnect(t, l->peer);
    if (l->opened) {
        a->awaited -= !l->slots;
        a->edge_bytes -= edge_bytes(a, l->mapped);
    }
    memset(l, 0, sizeof(*l));
}

/* From offset `from` of the source to the head of the block that the peer keeps for
 * this rank. */
static trib_status_t write_head(struct trib_link *l, size_t from, size_t to, size_t len,
                                uint32_t bits)
{
    struct trib_write w = {
        .local = l->outbox.region,
        .local_off = from,
        .remote = l->arena,
        .remote_off = l->head_off + to,
        .len = len,
        .imm = bits,
        .signal = bits == imm(IMM_NOTICE, 0),
        .token = TOKEN_NOTICE,
    };
    return l->transport->ops->write(l->transport, l->peer, &w);
}

trib_status_t trib_link_grant(struct trib_link *l, const struct trib_arena *a)
{
    if (!l->ungranted)
        return TRIB_OK;
    size_t from = l->outbox.sources_off + offsetof(struct sources, grant);
    struct trib_grant *g =
        l->mapped ? l->grant_out : (struct trib_grant *)(l->outbox.base + from);
    trib_status_t st =
        l->transport->ops->export_region(l->transport, a->edges[l->peer], &g->blob);

    if (st != TRIB_OK)
        return st;
    atomic_store_explicit(&g->ready, 1, memory_order_release);
    if (l->mapped)
        l->transport->ops->wake(l->transport, l->peer);
    else
        st = write_head(l, from, GRANT_OFF, sizeof(*g), imm(IMM_GRANT, 0));
    l->ungranted = st == TRIB_ERR_NO_RESOURCE;
    /* An event tells of a lost peer. */
    return l->ungranted || st == TRIB_ERR_PEER_LOST ? TRIB_OK : st;
}

trib_status_t trib_link_take_grant(struct trib_link *l, struct trib_arena *a)
{
    const struct trib_transport_ops *ops = l->transport->ops;
    const struct trib_grant *g =
        (struct trib_grant *)(a->base + own_head_off(a, l->peer) + GRANT_OFF);
    struct trib_remote *slots;
    struct trib_blob blob;

    if (l->slots)
        return TRIB_OK;
    if (l->lost || !(l->mapped ? atomic_load_explicit(&g->ready, memory_order_acquire)
                               : (uint32_t)l->granted))
        return TRIB_INPROGRESS;
    trib_snapshot(&blob, &g->blob, sizeof(blob)); /* a peer may go on writing */
    trib_status_t st = trib_transport_import(l->transport, l->peer, &blob,
                                             both_lanes_bytes(a, l->mapped), &slots);
    if (st != TRIB_OK)
        return st == TRIB_ERR_PEER_LOST ? TRIB_INPROGRESS : st;
    const void *lanes = ops->map(l->transport, slots, NULL);
    if ((l->mapped && !lanes) || !is_aligned(lanes)) {
        ops->release(l->transport, slots);
        return TRIB_ERR_PROTOCOL;
    }
    set_send(l, a, slots, 0);
    a->awaited--;
    return TRIB_OK;
}

/* Writes arrive in order: the payload is there before its cell. Memory of the caller is
 * in use until the write is done; a place in staging until the cell's credit is back.
 * `slot` is from the first slot of all lanes. */
static trib_status_t post_carry(struct trib_link *l, int lane, size_t slot)
{
    struct trib_carry *c = &l->carry[lane];
    size_t payload = slot + sizeof(struct trib_cell);
    struct trib_write w = {
        .local = c->from ? c->from : l->outbox.region,
        .local_off = c->from ? c->from_off : l->outbox.staging_off + payload,
        .remote = c->to ? c->to : l->slots,
        .remote_off = c->to ? c->to_off : l->slots_off + payload,
        .len = c->len,
        .quiet = true,
        .signal = c->from != NULL,
        .token = TOKEN_CARRY,
    };
    trib_status_t st = l->transport->ops->write(l->transport, l->peer, &w);

    if (st != TRIB_OK)
        return st;
    l->carrying += w.signal;
    l->send[lane].carried = true;
    c->len = 0;
    return TRIB_OK;
}

trib_status_t trib_link_post(struct trib_link *l, const struct trib_arena *a, int lane)
{
    struct trib_send_lane *s = &l->send[lane];
    struct trib_cell *c = trib_link_cell(l, a, lane);
    size_t len = sizeof(*c);
    size_t off = lane_off(a, lane, false) + trib_slot_off(l, a, s->next);

    s->filled = true;
    if (l->carry[lane].len) {
        trib_status_t st = post_carry(l, lane, off);
        if (st != TRIB_OK)
            return st;
    }
    if (c->frame.bytes > TRIB_CELL_PAYLOAD && !s->carried)
        len += c->frame.bytes;
    atomic_store_explicit(&c->position, s->next + 1, memory_order_relaxed);
    struct trib_write w = {
        .local = l->outbox.region,
        .local_off = l->outbox.staging_off + off,
        .remote = l->slots,
        .remote_off = l->slots_off + off,
        .len = len,
        .imm = imm(IMM_FRAME, lane),
    };
    trib_status_t st = l->transport->ops->write(l->transport, l->peer, &w);
    if (st != TRIB_OK)
        return st;
    s->filled = s->carried = false;
    s->next++;
    return TRIB_OK;
}

void trib_link_give_back(struct trib_link *l, const struct trib_arena *a, int lane)
{
    struct trib_recv_lane *r = &l->recv[lane];

    if (l->mapped) {
        atomic_store_explicit(&l->peer_credits[lane], r->next, memory_order_release);
        r->returned = r->next;
        return;
    }
    size_t entry = (size_t)lane * a->slots + (r->next & (a->slots - 1));
    size_t from = l->outbox.sources_off + sizeof(struct sources) +
                  entry * sizeof(_Atomic uint32_t);
    size_t to = CREDITS_OFF + (size_t)lane * sizeof(_Atomic uint32_t);
    *(uint32_t *)(l->outbox.base + from) = r->next;
    r->owed =
        write_head(l, from, to, sizeof(uint32_t), imm(IMM_CREDITS, lane)) != TRIB_OK;
    if (!r->owed)
        r->returned = r->next;
}

/* Copies the notice between its two versions, by words that may be written while they
 * are read: the versions tell afterwards whether they were. */
static void copy_notice(struct trib_notice *to, const struct trib_notice *from)
{
    uint32_t *dst = &to->kind;
    const uint32_t *src = &from->kind;
    size_t words = (offsetof(struct trib_notice, version_end) -
                    offsetof(struct trib_notice, kind)) / sizeof(*dst);

    for (size_t i = 0; i < words; i++)
        __atomic_store_n(&dst[i], __atomic_load_n(&src[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}

static void fill_notice(struct trib_notice *out, const struct trib_notice *notice,
                        uint32_t version)
{
    atomic_store_explicit(&out->version, version - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_notice(out, notice);
    atomic_store_explicit(&out->version_end, version, memory_order_release);
    atomic_store_explicit(&out->version, version, memory_order_release);
}

/* One for all peers whose links were not open: it is the first that each gets, and made
 * once, as the transport may read it till the end. */
static void use_farewell(struct trib_link *l, struct trib_arena *a,
                         const struct trib_notice *notice)
{
    size_t off = farewell_off(a->size);

    l->outbox = (struct trib_outbox){.region = a->region, .base = a->base};
    if (!a->farewell)
        fill_notice((struct trib_notice *)(a->base + off), notice, 2);
    a->farewell = true;
}

trib_status_t trib_link_notify(struct trib_link *l, struct trib_arena *a,
                               const struct trib_notice *notice)
{
    bool failed = notice->kind == TRIB_NOTICE_FAILED;
    size_t from = 0;

    if (!l->connected || l->lost || (l->notice_busy && !failed))
        return TRIB_OK;
    if (l->mapped) {
        fill_notice(l->notice_out, notice, l->notice_version += 2);
        l->transport->ops->wake(l->transport, l->peer);
        return TRIB_OK;
    }
    if (!l->opened && a->per_edge && failed) {
        use_farewell(l, a, notice);
        from = farewell_off(a->size);
    } else if (l->outbox.region) {
        from = l->outbox.sources_off + (failed ? offsetof(struct sources, failed) : 0);
        fill_notice((struct trib_notice *)(l->outbox.base + from), notice,
                    l->notice_version += 2);
    } else {
        return TRIB_OK;
    }
    trib_status_t st =
        write_head(l, from, NOTICE_OFF, sizeof(*notice), imm(IMM_NOTICE, 0));
    l->notice_busy = st == TRIB_OK;
    return st;
}

bool trib_link_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                      struct trib_notice *out)
{
    const struct trib_notice *in =
        (struct trib_notice *)(a->base + own_head_off(a, peer) + NOTICE_OFF);
    uint32_t version = atomic_load_explicit(&in->version, memory_order_acquire);

    if (version == l->notice_seen || version % 2 != 0 ||
        atomic_load_explicit(&in->version_end, memory_order_acquire) != version)
        return false;
    copy_notice(out, in);
    out->text[sizeof(out->text) - 1] = 0;
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&in->version, memory_order_relaxed) != version)
        return false;
    l->notice_seen = version;
    return true;
}

bool trib_link_event(struct trib_link *l, const struct trib_event *event)
{
    uint32_t lane = event->imm & 0xffffff;

    if (event->kind == TRIB_EVENT_WRITE_DONE && event->token == TOKEN_CARRY)
        return l->carrying && --l->carrying == 0;
    if (event->kind == TRIB_EVENT_WRITE_DONE) {
        l->notice_busy = false;
        return false;
    }
    if (event->imm >> 24 == IMM_GRANT)
        l->granted = true;
    if (event->imm >> 24 == IMM_FRAME && lane < TRIB_LANES)
        l->recv[lane].arrived++;
    return event->imm >> 24 != IMM_NOTICE;
}
