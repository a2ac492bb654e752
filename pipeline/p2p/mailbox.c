/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/mailbox.h"

#include <assert.h>
#include <string.h>

/* The token of writes with a completion event. */
enum {
    TOKEN_ENTRY = TRIB_LINK_MESSAGE_TOKEN,
};

#define SLOTS_OFF sizeof(struct trib_mailbox_credits)

/* Credits over writes: the immediate has the lower bits of both numbers. */
#define COUNT_BITS 12
#define COUNT_MASK ((UINT32_C(1) << COUNT_BITS) - 1)
_Static_assert(TRIB_MAILBOX_SLOTS <= (1 << COUNT_BITS) - 1,
               "the lower bits say how many were added");

static size_t stride(const struct trib_mailbox *m)
{
    return sizeof(struct trib_message) + m->slot_bytes;
}

static size_t slot_off(const struct trib_mailbox *m, uint32_t position)
{
    assert((m->slots & (m->slots - 1)) == 0);
    return SLOTS_OFF + (position & (m->slots - 1)) * stride(m);
}

/* Return the size of the part that the peer addresses. The sources of this rank's own
 * writes follow it. */
static size_t addressed(const struct trib_mailbox *m)
{
    return SLOTS_OFF + m->slots * stride(m);
}

static size_t advert_source(const struct trib_mailbox *m)
{
    return addressed(m) + m->slots * stride(m);
}

size_t trib_mailbox_bytes(const struct trib_mailbox *m)
{
    assert(m->link && m->slots);
    return m->link->mapped ? addressed(m)
                           : advert_source(m) + sizeof(struct trib_slot_advert);
}

trib_status_t trib_mailbox_open(struct trib_mailbox *m, struct trib_link *l,
                                const struct trib_arena *a)
{
    const size_t most = a->slot_bytes;
    void *base;

    assert(l->connected && !m->region);
    m->link = l;
    m->arena = a;
    m->slots = a->slots < TRIB_MAILBOX_SLOTS ? a->slots : TRIB_MAILBOX_SLOTS;
    m->slot_bytes = most < TRIB_MAILBOX_SLOT_BYTES ? most : TRIB_MAILBOX_SLOT_BYTES;
    const trib_status_t st = l->transport->ops->alloc(
        l->transport, trib_mailbox_bytes(m), &base, &m->region);
    if (st != TRIB_OK) {
        m->region = NULL;
        return st;
    }
    m->base = base;
    m->advert_unsent = true;
    return TRIB_OK;
}

void trib_mailbox_close(struct trib_mailbox *m)
{
    struct trib_transport *t = m->link ? m->link->transport : NULL;

    if (m->remote)
        t->ops->release(t, m->remote);
    if (m->region)
        t->ops->dereg(t, m->region);
    m->remote = NULL;
    m->region = NULL;
}

trib_status_t trib_mailbox_join(struct trib_mailbox *m)
{
    struct trib_link *l = m->link;

    assert(m->region);
    if (m->advert_unsent) {
        struct trib_slot_advert *source =
            l->mapped ? NULL : (struct trib_slot_advert *)(m->base + advert_source(m));
        const trib_status_t st =
            trib_link_advertise_mailbox(l, m->region, source, advert_source(m));
        if (st != TRIB_OK && st != TRIB_ERR_NO_RESOURCE)
            return st;
        m->advert_unsent = st != TRIB_OK;
    }
    if (m->remote)
        return m->advert_unsent ? TRIB_INPROGRESS : TRIB_OK;
    const trib_status_t st =
        trib_link_take_mailbox(l, m->arena, addressed(m), &m->remote);
    if (st != TRIB_OK) {
        m->remote = NULL;
        return st;
    }
    if (l->mapped)
        m->remote_base = l->transport->ops->map(l->transport, m->remote, NULL);
    return m->advert_unsent ? TRIB_INPROGRESS : TRIB_OK;
}

static const struct trib_mailbox_credits *credits(const struct trib_mailbox *m)
{
    return (const struct trib_mailbox_credits *)m->base;
}

/* With load/store reach the peer occasionally stores credits into a line that this rank
 * then has to fetch. Read it only when the known credits do not suffice. Over writes,
 * credits arrive as events (take_credits). */
bool trib_mailbox_has_room(struct trib_mailbox *m)
{
    if (!m->remote || m->unposted)
        return false;
    if (m->remote_base && m->sent - m->released_seen >= m->slots)
        m->released_seen =
            atomic_load_explicit(&credits(m)->released, memory_order_acquire);
    return m->sent - m->released_seen < m->slots;
}

bool trib_mailbox_takes_eager(struct trib_mailbox *m, uint32_t most)
{
    assert(most <= COUNT_MASK);
    if (m->remote_base && m->sent_eager - m->consumed_seen >= most)
        m->consumed_seen =
            atomic_load_explicit(&credits(m)->consumed, memory_order_acquire);
    return m->sent_eager - m->consumed_seen < most;
}

/* Return the next entry to send: in the peer's memory, or in the copy that is the
 * source of the write. */
static struct trib_message *entry_out(const struct trib_mailbox *m)
{
    uint8_t *slots =
        m->remote_base ? m->remote_base : m->base + addressed(m) - SLOTS_OFF;

    return (struct trib_message *)(slots + slot_off(m, m->sent));
}

struct trib_message *trib_mailbox_next(struct trib_mailbox *m, size_t bytes,
                                       uint8_t **payload_out)
{
    struct trib_message *entry = entry_out(m);

    assert(trib_mailbox_has_room(m) && bytes <= m->slot_bytes);
    m->bytes = (uint32_t)bytes;
    *payload_out =
        bytes <= TRIB_MESSAGE_PAYLOAD ? entry->payload : (uint8_t *)(entry + 1);
    return entry;
}

trib_status_t trib_mailbox_post(struct trib_mailbox *m)
{
    struct trib_message *entry = entry_out(m);
    struct trib_transport *t = m->link->transport;
    const size_t behind = m->bytes > TRIB_MESSAGE_PAYLOAD ? m->bytes : 0;

    assert(m->remote && m->bytes <= m->slot_bytes);
    if (m->remote_base) {
        m->written = ++m->sent;
        atomic_store_explicit(&entry->position, m->sent, memory_order_release);
        t->ops->wake(t, m->link->peer);
        return TRIB_OK;
    }
    atomic_store_explicit(&entry->position, m->sent + 1, memory_order_relaxed);
    struct trib_write w = {.local = m->region,
                           .local_off = (size_t)((uint8_t *)entry - m->base),
                           .remote = m->remote,
                           .remote_off = slot_off(m, m->sent),
                           .len = sizeof(*entry) + behind,
                           .imm = (uint32_t)TRIB_LINK_MESSAGE << 24,
                           .signal = true,
                           .token = TOKEN_ENTRY};
    const trib_status_t st = t->ops->write(t, m->link->peer, &w);
    m->unposted = st != TRIB_OK;
    m->sent += st == TRIB_OK;
    return st;
}

static const struct trib_message *entry_in(const struct trib_mailbox *m,
                                           uint32_t position)
{
    return (const struct trib_message *)(m->base + slot_off(m, position));
}

const struct trib_message *trib_mailbox_peek(struct trib_mailbox *m,
                                             const uint8_t **payload_out)
{
    const struct trib_message *entry = entry_in(m, m->taken);

    if (m->link->mapped ? atomic_load_explicit(&entry->position,
                                               memory_order_acquire) != m->taken + 1
                        : m->arrived == m->taken)
        return NULL;
    if (!m->has_seen)
        trib_snapshot(&m->seen, entry, offsetof(struct trib_message, position));
    m->has_seen = true;
    *payload_out = m->seen.bytes <= TRIB_MESSAGE_PAYLOAD ? m->seen.payload
                                                         : (const uint8_t *)(entry + 1);
    return &m->seen;
}

void trib_mailbox_release(struct trib_mailbox *m)
{
    assert(m->has_seen);
    m->has_seen = false;
    m->taken++;
}

/* Half a window at a time is enough: a waiting sender has a whole window in flight. */
static bool is_due(const struct trib_mailbox *m)
{
    const uint32_t half = (m->slots + 1) / 2;

    return m->taken - m->returned[0] >= half || m->consumed - m->returned[1] >= half;
}

void trib_mailbox_pay(struct trib_mailbox *m)
{
    struct trib_transport *t = m->link->transport;

    if (!m->remote || !is_due(m))
        return;
    if (m->remote_base) {
        struct trib_mailbox_credits *c = (struct trib_mailbox_credits *)m->remote_base;
        atomic_store_explicit(&c->consumed, m->consumed, memory_order_relaxed);
        atomic_store_explicit(&c->released, m->taken, memory_order_release);
        t->ops->wake(t, m->link->peer);
    } else {
        const struct trib_write w = {.imm = (uint32_t)TRIB_LINK_MESSAGE_CREDITS << 24 |
                                            (m->consumed & COUNT_MASK) << COUNT_BITS |
                                            (m->taken & COUNT_MASK)};
        if (t->ops->write(t, m->link->peer, &w) != TRIB_OK)
            return;
    }
    m->returned[0] = m->taken;
    m->returned[1] = m->consumed;
}

/* Return false if the credits exceed the number of sent entries. */
static bool take_credits(struct trib_mailbox *m, uint32_t imm)
{
    const uint32_t released = (imm - m->released_seen) & COUNT_MASK;
    const uint32_t consumed = ((imm >> COUNT_BITS) - m->consumed_seen) & COUNT_MASK;

    if (released > m->sent - m->released_seen ||
        consumed > m->sent_eager - m->consumed_seen)
        return false;
    m->released_seen += released;
    m->consumed_seen += consumed;
    return true;
}

bool trib_mailbox_event(struct trib_mailbox *m, const struct trib_event *event)
{
    if (event->kind == TRIB_EVENT_WRITE_DONE) {
        m->written++;
        return true;
    }
    if (event->imm >> 24 == TRIB_LINK_MESSAGE_CREDITS)
        return m->remote_base || take_credits(m, event->imm);
    const struct trib_message *entry = entry_in(m, m->arrived);
    if (atomic_load_explicit(&entry->position, memory_order_relaxed) != m->arrived + 1)
        return false;
    m->arrived++;
    return true;
}
