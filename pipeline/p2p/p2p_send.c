/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing entries, and the end of a request. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/p2p/direct_write.h"
#include "pipeline/p2p/p2p.h"
#include "pipeline/p2p/pull.h"

void trib_p2p_finish(struct trib_engine *e, struct trib_p2p_request *r,
                     trib_status_t st)
{
    assert(e->p2p->active > 0);
    e->p2p->active--;
    trib_direct_end(e, r, false);
    if (r->then) {
        r->then(e, r, st);
        return;
    }
    r->run->now.status = st;
    atomic_store_explicit(&r->run->now.state, TRIB_RUN_DONE, memory_order_release);
}

void trib_p2p_copy(struct trib_engine *e, void *to, const void *from, size_t bytes)
{
    if (bytes)
        memmove(to, from, bytes);
    e->stats.copied_bytes += bytes;
}

/* Fill the next entry with a head and a payload, and send it. */
static void put(struct trib_engine *e, struct trib_p2p_pair *p,
                const struct trib_message *head, const uint8_t *payload)
{
    uint8_t *to;
    struct trib_message *entry = trib_mailbox_next(&p->box, head->bytes, &to);

    /* Field by field: a wider load would wait for the stores that made the head. */
    entry->magic = TRIB_MESSAGE_MAGIC;
    entry->kind = head->kind;
    entry->dtype = head->dtype;
    entry->tag = head->tag;
    entry->send_id = head->send_id;
    entry->recv_id = head->recv_id;
    entry->count = head->count;
    entry->bytes = head->bytes;
    trib_p2p_copy(e, to, payload, head->bytes);
    entry->check =
        trib_p2p_of(e)->checks ? trib_message_sum(e->kernels->crc32c, entry, to) : 0;
    e->stats.messages++;
    e->stats.wire_bytes += sizeof(*entry) + head->bytes;
    (void)trib_mailbox_post(&p->box);
}

void trib_p2p_count(struct trib_engine *e, size_t bytes)
{
    e->stats.payload_bytes += bytes;
    e->stats.dense_bytes += bytes;
}

/* All elements of a send are in entries: finish it, or wait for its writes. */
static void all_sent(struct trib_engine *e, struct trib_p2p_pair *p,
                     struct trib_p2p_request *r)
{
    r->last_entry = p->box.sent + p->box.unposted;
    if (p->box.link->mapped)
        trib_p2p_finish(e, r, TRIB_OK);
    else
        trib_p2p_append(&p->flying, r);
}

/* Announce a long message, and the location of its elements if the peer can read
 * them. */
static void put_announce(struct trib_engine *e, struct trib_p2p_pair *p,
                         struct trib_p2p_request *r, struct trib_message *m)
{
    _Alignas(8) uint8_t place[TRIB_MESSAGE_PLACE + 8];
    struct trib_ref ref;

    r->exposed = r->bytes && trib_pull_expose(e, p, r, &ref);
    if (r->exposed)
        m->bytes = (uint32_t)trib_ref_write(&ref, place);
    put(e, p, m, place);
    trib_p2p_append(&p->announced, r);
}

/* Send or announce the oldest send; an eager one is then complete. */
static bool put_fresh(struct trib_engine *e, struct trib_p2p_pair *p)
{
    const struct trib_p2p_request *first = p->fresh.head;
    const bool eager = first && first->bytes <= TRIB_MESSAGE_EAGER &&
                       first->bytes <= p->box.slot_bytes &&
                       trib_mailbox_takes_eager(&p->box, TRIB_P2P_EAGER_MOST);

    if (!first || (!eager && p->announced.n >= TRIB_P2P_ANNOUNCED_MOST))
        return false;
    struct trib_p2p_request *r = trib_p2p_pop(&p->fresh);
    struct trib_message m = {.kind =
                                 eager ? TRIB_MESSAGE_IS_EAGER : TRIB_MESSAGE_ANNOUNCE,
                             .dtype = (uint8_t)r->dtype,
                             .tag = r->tag,
                             .send_id = r->id,
                             .count = r->count,
                             .bytes = eager ? (uint32_t)r->bytes : 0};
    if (!eager) {
        put_announce(e, p, r, &m);
        return true;
    }
    p->box.sent_eager++;
    put(e, p, &m, r->buffer);
    trib_p2p_count(e, r->bytes);
    all_sent(e, p, r);
    return true;
}

/* Notify the sender that this rank has read a message from its memory. */
static bool put_taken(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = trib_p2p_pop(&p->taken);

    if (!r)
        return false;
    const struct trib_message m = {.kind = TRIB_MESSAGE_TAKEN,
                                   .dtype = (uint8_t)r->dtype,
                                   .tag = r->tag,
                                   .send_id = r->peer_id};
    put(e, p, &m, NULL);
    trib_p2p_finish(e, r, TRIB_OK);
    return true;
}

static bool put_grant(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = trib_p2p_pop(&p->granting);

    if (!r)
        return false;
    _Alignas(8) uint8_t place[TRIB_MESSAGE_PLACE + 8];
    struct trib_ref ref;
    struct trib_message m = {.kind = TRIB_MESSAGE_GRANT,
                             .dtype = (uint8_t)r->dtype,
                             .tag = r->tag,
                             .send_id = r->peer_id,
                             .recv_id = r->id};
    if (trib_direct_offer(e, p, r, &ref)) {
        m.count = r->count;
        m.bytes = (uint32_t)trib_ref_write(&ref, place);
    }
    put(e, p, &m, place);
    if (r->bytes)
        trib_p2p_append(&p->receiving, r);
    else
        trib_p2p_finish(e, r, TRIB_OK);
    return true;
}

/* Send a part of a message: write it into the receiver's memory, or copy it. */
static bool put_data(struct trib_engine *e, struct trib_p2p_pair *p)
{
    struct trib_p2p_request *r = trib_p2p_pop(&p->streaming);
    size_t n = 0;

    if (!r)
        return false;
    const trib_status_t st =
        r->place ? trib_direct_write(e, p, r, &n) : TRIB_ERR_UNSUPPORTED;
    if (st != TRIB_OK && st != TRIB_ERR_UNSUPPORTED) {
        trib_p2p_append(&p->streaming, r);
        return false;
    }
    const bool copies = st != TRIB_OK;
    const size_t left = r->bytes - r->moved;
    if (copies)
        n = left < p->box.slot_bytes ? left : p->box.slot_bytes;
    const struct trib_message m = {.kind = TRIB_MESSAGE_DATA,
                                   .dtype = (uint8_t)r->dtype,
                                   .tag = r->tag,
                                   .recv_id = r->peer_id,
                                   .count = r->moved + (copies ? 0 : n),
                                   .bytes = copies ? (uint32_t)n : 0};
    assert(n > 0);
    put(e, p, &m, r->buffer + r->moved);
    trib_p2p_count(e, n);
    e->stats.wire_bytes += copies ? 0 : n;
    r->moved += n;
    if (r->moved == r->bytes)
        all_sent(e, p, r);
    else
        trib_p2p_append(&p->streaming, r);
    return true;
}

static bool has_to_push(const struct trib_p2p_pair *p)
{
    return p->fresh.head || p->taken.head || p->granting.head || p->streaming.head ||
           p->flying.head || p->box.unposted;
}

bool trib_p2p_push(struct trib_engine *e, struct trib_p2p_pair *p)
{
    bool moved = false;

    if (!has_to_push(p))
        return false;
    if (p->box.unposted && trib_mailbox_post(&p->box) != TRIB_OK)
        return false;
    while (trib_mailbox_has_room(&p->box) &&
           (put_taken(e, p) || put_grant(e, p) || put_fresh(e, p) || put_data(e, p)))
        moved = true;
    while (p->flying.head && !p->flying.head->n_direct &&
           (int32_t)(p->box.written - p->flying.head->last_entry) >= 0) {
        trib_p2p_finish(e, trib_p2p_pop(&p->flying), TRIB_OK);
        moved = true;
    }
    return moved;
}
