/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * The immediate bits of a transport write: what it was, and for frames which lane.
 * Credits and notices are memory writes that need no reaction, but an event, so that a
 * sleeping peer wakes.
 */
enum {
    IMM_FRAME = 1,
    IMM_CREDITS = 2,
    IMM_NOTICE = 3,
};

/* What a write was whose end is told. */
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

static size_t full_stride(const struct trib_arena *a)
{
    return sizeof(struct trib_cell) + a->slot_bytes;
}

static size_t lane_bytes(const struct trib_arena *a)
{
    return full_stride(a) * a->slots;
}

#define CREDITS_OFF 0
#define NOTICE_OFF sizeof(struct trib_credits)
#define LANES_OFF (NOTICE_OFF + sizeof(struct trib_notice))

static size_t lane_off(const struct trib_arena *a, int lane)
{
    return LANES_OFF + (size_t)lane * lane_bytes(a);
}

static void size_up(struct trib_arena *a)
{
    a->slots = 1;
    while (a->slots < a->window)
        a->slots *= 2;
    a->slot_bytes = round_up(a->slot_bytes, 64);
    a->block_bytes = round_up(lane_off(a, TRIB_LANES), 4096);
}

/* Of rank `peer` in what rank `self` has: the own place is left out. */
static size_t block_off(const struct trib_arena *a, int self, int peer)
{
    return a->block_bytes * (size_t)(peer - (peer > self));
}

static size_t blocks_bytes(const struct trib_arena *a)
{
    return a->block_bytes * (size_t)(a->size > 1 ? a->size - 1 : 1);
}

trib_status_t trib_arena_create(struct trib_arena *a)
{
    size_up(a);
    void *base;
    trib_status_t st =
        a->transport->ops->alloc(a->transport, blocks_bytes(a), &base, &a->region);
    a->base = st == TRIB_OK ? base : NULL;
    return st;
}

void trib_arena_destroy(struct trib_arena *a)
{
    if (a->staging)
        a->transport->ops->dereg(a->transport, a->staging_region);
    if (a->base)
        a->transport->ops->dereg(a->transport, a->region);
    a->staging = NULL;
    a->base = NULL;
}

/*
 * What is written to a peer beside frames. A transport may read a source until the write
 * is done, so each lies still that long: a credit has the entry of its position, which
 * comes round when the peer has sent a window more and so has seen this credit; a notice
 * of waiting is made when the last one is done; that of a failure is sent once.
 * _Atomic credits[TRIB_LANES][slots] follow.
 */
struct sources {
    struct trib_notice waiting;
    struct trib_notice failed;
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

size_t trib_arena_bytes(const struct trib_arena *a)
{
    return a->edge_bytes;
}

/* The places fit: S (64 + bytes) >= S (64 + bytes / 2) + 2 bytes for S >= 4. */
static size_t small_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = a->slot_bytes / 128 * 64;

    if (!mapped || a->slots < 4 || !small)
        return a->slot_bytes;
    return small < TRIB_SMALL_BYTES ? small : TRIB_SMALL_BYTES;
}

static size_t edge_bytes(const struct trib_arena *a, bool mapped)
{
    size_t small = small_bytes(a, mapped);
    size_t places = small < a->slot_bytes ? TRIB_PLACES * a->slot_bytes : 0;
    size_t slots = (sizeof(struct trib_cell) + small) * a->slots;

    if (!mapped)
        return 2 * a->block_bytes + sources_bytes(a);
    return round_up(LANES_OFF + TRIB_LANES * (slots + places), 4096);
}

size_t trib_edge_bytes(uint32_t window, size_t chunk, bool mapped)
{
    struct trib_arena a = {.window = window, .slot_bytes = chunk};

    size_up(&a);
    return edge_bytes(&a, mapped);
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

/* Both directions use the same offsets: block `self` in the peer's arena is mine. */
static void lay_out(struct trib_link *l, const struct trib_arena *a, uint8_t *remote)
{
    uint8_t *in = a->base + block_off(a, a->self, l->peer);
    size_t out = block_off(a, l->peer, a->self);
    uint8_t *staging = a->staging ? a->staging + block_off(a, a->self, l->peer) : NULL;

    for (int lane = 0; lane < TRIB_LANES; lane++) {
        l->recv[lane].slots = in + lane_off(a, lane);
        l->send[lane].remote = remote ? remote + out + lane_off(a, lane) : NULL;
        l->send[lane].staging = staging ? staging + lane_off(a, lane) : NULL;
    }
    l->my_credits = ((struct trib_credits *)(in + CREDITS_OFF))->released;
    l->peer_credits =
        remote ? ((struct trib_credits *)(remote + out + CREDITS_OFF))->released : NULL;
    l->notice_out = remote ? (struct trib_notice *)(remote + out + NOTICE_OFF) : NULL;
}

trib_status_t trib_link_connect(struct trib_link *l, struct trib_arena *a, int peer,
                                const struct trib_address *address,
                                const struct trib_blob *blob)
{
    if (l->connected)
        return TRIB_OK;
    struct trib_transport *t = a->transport;
    l->peer = peer;
    l->transport = t;
    trib_status_t st = t->ops->connect(t, peer, address);
    if (st != TRIB_OK)
        return st;
    st = t->ops->import_region(t, peer, blob, &l->arena);
    if (st != TRIB_OK)
        return st;
    uint8_t *remote = t->ops->map(t, l->arena, NULL);
    if (!remote)
        st = make_staging(a);
    if (st != TRIB_OK) {
        t->ops->release(t, l->arena);
        return st;
    }
    l->mapped = remote != NULL;
    l->small = small_bytes(a, l->mapped);
    l->stride = sizeof(struct trib_cell) + l->small;
    lay_out(l, a, remote);
    l->connected = true;
    a->edge_bytes += edge_bytes(a, l->mapped);
    return TRIB_OK;
}

static struct trib_import **bucket_of(struct trib_link *l, const struct trib_blob *blob)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < blob->len; i++)
        hash = (hash ^ blob->bytes[i]) * 16777619u;
    return &l->imports[(hash ^ hash >> 16) & (TRIB_IMPORT_BUCKETS - 1)];
}

static void import_drop(struct trib_link *l, struct trib_import **at)
{
    struct trib_import *im = *at;

    *at = im->next;
    l->transport->ops->release(l->transport, im->remote);
    free(im);
    l->n_imports--;
}

/*
 * Make room for one more: drop what the peer has freed, and of a full cache the one that
 * was not used for longest. The newest stays: an operation looks two up, one after the
 * other.
 */
static void imports_trim(struct trib_link *l)
{
    const struct trib_transport_ops *ops = l->transport->ops;
    struct trib_import **oldest = NULL;

    for (int i = 0; i < TRIB_IMPORT_BUCKETS; i++) {
        for (struct trib_import **at = &l->imports[i]; *at;) {
            if ((*at)->used != l->clock && ops->stale(l->transport, (*at)->remote)) {
                import_drop(l, at);
                continue;
            }
            if (!oldest || (*at)->used < (*oldest)->used)
                oldest = at;
            at = &(*at)->next;
        }
    }
    if (l->n_imports >= TRIB_IMPORTS)
        import_drop(l, oldest);
}

void trib_link_close(struct trib_link *l, struct trib_arena *a)
{
    if (!l->connected)
        return;
    struct trib_transport *t = a->transport;
    for (int i = 0; i < TRIB_IMPORT_BUCKETS; i++)
        while (l->imports[i])
            import_drop(l, &l->imports[i]);
    t->ops->release(t, l->arena);
    t->ops->disconnect(t, l->peer);
    a->edge_bytes -= edge_bytes(a, l->mapped);
    memset(l, 0, sizeof(*l));
}

struct trib_import *trib_link_import(struct trib_link *l, const struct trib_blob *blob,
                                     struct trib_error *err)
{
    if (blob->len == 0 || blob->len > TRIB_BLOB_MAX)
        return NULL;
    struct trib_import **bucket = bucket_of(l, blob);
    for (struct trib_import *im = *bucket; im; im = im->next) {
        if (im->blob.len == blob->len &&
            memcmp(im->blob.bytes, blob->bytes, blob->len) == 0) {
            im->used = ++l->clock;
            return im;
        }
    }
    imports_trim(l);
    struct trib_import *fresh = calloc(1, sizeof(*fresh));
    if (!fresh) {
        trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    const struct trib_transport_ops *ops = l->transport->ops;
    if (ops->import_region(l->transport, l->peer, blob, &fresh->remote) != TRIB_OK) {
        free(fresh);
        return NULL;
    }
    fresh->blob = *blob;
    fresh->base = ops->map(l->transport, fresh->remote, &fresh->len);
    fresh->used = ++l->clock;
    fresh->next = *bucket;
    *bucket = fresh;
    l->n_imports++;
    return fresh;
}

/* From staging + from to offset `to` of the block that the peer keeps for this rank. */
static trib_status_t write_block(struct trib_link *l, const struct trib_arena *a,
                                 size_t from, size_t to, size_t len, uint32_t bits)
{
    struct trib_write w = {
        .local = a->staging_region,
        .local_off = from,
        .remote = l->arena,
        .remote_off = block_off(a, l->peer, a->self) + to,
        .len = len,
        .imm = bits,
        .signal = bits == imm(IMM_NOTICE, 0),
        .token = TOKEN_NOTICE,
    };
    return l->transport->ops->write(l->transport, l->peer, &w);
}

/* Writes arrive in order: the payload is there before its cell. Memory of the caller is in
 * use until the write is done; a place in staging until the cell's credit is back. */
static trib_status_t post_carry(struct trib_link *l, const struct trib_arena *a, int lane,
                                size_t slot)
{
    struct trib_carry *c = &l->carry[lane];
    size_t payload = slot + sizeof(struct trib_cell);
    struct trib_write w = {
        .local = c->from ? c->from : a->staging_region,
        .local_off = c->from ? c->from_off : block_off(a, a->self, l->peer) + payload,
        .remote = c->to ? c->to : l->arena,
        .remote_off = c->to ? c->to_off : block_off(a, l->peer, a->self) + payload,
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
    size_t off = lane_off(a, lane) + trib_slot_off(l, a, s->next);

    s->filled = true;
    if (l->carry[lane].len) {
        trib_status_t st = post_carry(l, a, lane, off);
        if (st != TRIB_OK)
            return st;
    }
    if (c->frame.bytes > TRIB_CELL_PAYLOAD && !s->carried)
        len += c->frame.bytes;
    atomic_store_explicit(&c->position, s->next + 1, memory_order_relaxed);
    size_t from = block_off(a, a->self, l->peer) + off;
    trib_status_t st = write_block(l, a, from, off, len, imm(IMM_FRAME, lane));
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
    size_t from = sources_off(a, l->peer) + sizeof(struct sources) +
                  entry * sizeof(_Atomic uint32_t);
    size_t to = CREDITS_OFF + (size_t)lane * sizeof(_Atomic uint32_t);
    *(uint32_t *)(a->staging + from) = r->next;
    r->owed = write_block(l, a, from, to, sizeof(uint32_t), imm(IMM_CREDITS, lane)) !=
              TRIB_OK;
    if (!r->owed)
        r->returned = r->next;
}

/* What is between the two versions, by words that may be written while they are read:
 * the versions tell afterwards whether they were. */
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

trib_status_t trib_link_notify(struct trib_link *l, const struct trib_arena *a,
                               const struct trib_notice *notice)
{
    struct trib_notice *out = l->notice_out;
    bool failed = notice->kind == TRIB_NOTICE_FAILED;
    size_t from = 0;

    if (!l->connected || l->lost || (l->notice_busy && !failed))
        return TRIB_OK;
    if (!out) {
        from = sources_off(a, l->peer) +
               (failed ? offsetof(struct sources, failed) : 0);
        out = (struct trib_notice *)(a->staging + from);
    }
    uint32_t version = l->notice_version += 2;
    atomic_store_explicit(&out->version, version - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_notice(out, notice);
    atomic_store_explicit(&out->version_end, version, memory_order_release);
    atomic_store_explicit(&out->version, version, memory_order_release);
    if (l->mapped) {
        l->transport->ops->wake(l->transport, l->peer);
        return TRIB_OK;
    }
    trib_status_t st =
        write_block(l, a, from, NOTICE_OFF, sizeof(*out), imm(IMM_NOTICE, 0));
    l->notice_busy = st == TRIB_OK;
    return st;
}

bool trib_link_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                      struct trib_notice *out)
{
    const struct trib_notice *in =
        (struct trib_notice *)(a->base + block_off(a, a->self, peer) + NOTICE_OFF);
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
    if (event->imm >> 24 == IMM_FRAME && lane < TRIB_LANES)
        l->recv[lane].arrived++;
    return event->imm >> 24 != IMM_NOTICE;
}
