/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: receiving writes. UCX calls trib_ucx_recv_cb for each message: a small one is
 * copied to its target, a large one is fetched directly into it. Fetches complete in
 * any order; the inbox restores the order of each peer's messages. All functions but
 * deliver run in UCX's progress, with `lock` held. All headers and payloads are
 * untrusted input.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ucx/ucx.h"

#define INBOX_FIRST 64u

static struct ucx_arrival *slot(const struct ucx_peer *p, uint64_t number)
{
    return &p->inbox[number & (p->inbox_size - 1)];
}

static bool inbox_grow(struct ucx_peer *p, uint64_t number)
{
    uint32_t size = p->inbox_size ? p->inbox_size : INBOX_FIRST;

    while (number - p->next >= size && size <= UCX_INBOX_MAX)
        size *= 2;
    if (size > UCX_INBOX_MAX)
        return false;
    if (size == p->inbox_size)
        return true;
    struct ucx_arrival *inbox = calloc(size, sizeof(*inbox));
    if (!inbox)
        return false;
    for (uint32_t i = 0; i < p->inbox_size; i++)
        inbox[(p->next + i) & (size - 1)] = *slot(p, p->next + i);
    free(p->inbox);
    p->inbox = inbox;
    p->inbox_size = size;
    return true;
}

static void report_violation(struct ucx *u, struct ucx_peer *p, const char *what)
{
    assert(what);
    if (!p->violation)
        p->violation = what;
    p->expected = false;
    atomic_store_explicit(&u->async_events, true, memory_order_release);
}

static void set_arrived(struct ucx *u, struct ucx_peer *p, struct ucx_arrival *a)
{
    a->here = true;
    p->ready++;
    u->ready++;
}

/* Reuse descriptors through a free list instead of allocating one per message. */
static struct ucx_fetch *get_fetch(struct ucx *u)
{
    struct ucx_fetch *f = u->fetches;

    if (!f)
        return malloc(sizeof(*f));
    u->fetches = f->next;
    return f;
}

static void put_fetch(struct ucx_fetch *f)
{
    f->next = f->ucx->fetches;
    f->ucx->fetches = f;
}

static void handle_fetched(void *request, ucs_status_t status, size_t length,
                           void *user_data)
{
    struct ucx_fetch *f = user_data;
    struct ucx_peer *p = &f->ucx->peers[f->peer];
    struct ucx_arrival *a = slot(p, f->number);

    assert(p->pending > 0);
    p->pending--;
    a->region = 0;
    if (status == UCS_OK && length == a->len)
        set_arrived(f->ucx, p, a);
    else if (p->fault == UCS_OK)
        p->fault = status == UCS_OK ? UCS_ERR_MESSAGE_TRUNCATED : status;
    if (p->fault != UCS_OK)
        atomic_store_explicit(&f->ucx->async_events, true, memory_order_release);
    f->ucx->api.ucp_request_free(request);
    put_fetch(f);
}

/* Fetch a payload that is still in the sender's memory. */
static ucs_status_t fetch(struct ucx *u, const struct ucx_head *h, void *data,
                          uint8_t *to)
{
    struct ucx_peer *p = &u->peers[h->rank];
    struct ucx_fetch *f = get_fetch(u);

    if (!f) {
        report_violation(u, p, "sent more messages than this rank has memory for");
        return UCS_ERR_NO_MEMORY;
    }
    *f = (struct ucx_fetch){.ucx = u, .peer = h->rank, .number = h->number};
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = handle_fetched,
        .user_data = f,
    };
    p->pending++;
    trib_ucx_ask_help(u, 0, true); /* the sender waits for the completion of this
                                    * fetch */
    slot(p, h->number)->region = h->region;
    ucs_status_ptr_t request =
        u->api.ucp_am_recv_data_nbx(u->worker, data, to, (size_t)h->len, &param);
    if (!request) { /* completed immediately, without a callback */
        p->pending--;
        put_fetch(f);
        slot(p, h->number)->region = 0;
        set_arrived(u, p, slot(p, h->number));
    } else if (UCS_PTR_IS_ERR(request)) {
        slot(p, h->number)->region = 0;
        p->pending--;
        put_fetch(f);
        if (p->fault == UCS_OK)
            p->fault = UCS_PTR_STATUS(request);
        atomic_store_explicit(&u->async_events, true, memory_order_release);
    }
    return UCS_INPROGRESS;
}

/* Return the peer that a message comes from. Return NULL for a lost peer or an
 * unauthenticated sender. */
static struct ucx_peer *sender(struct ucx *u, const void *header, size_t bytes,
                               struct ucx_head *h)
{
    if (bytes != sizeof(*h))
        return NULL;
    memcpy(h, header, sizeof(*h));
    if (h->rank < 0 || h->rank >= u->size || h->rank == u->self)
        return NULL;
    struct ucx_peer *p = &u->peers[h->rank];
    return p->expected && h->key == p->in_key ? p : NULL;
}

static const char *check_header(struct ucx_peer *p, const struct ucx_head *h,
                                size_t length)
{
    if ((h->kind != UCX_WRITE && h->kind != UCX_QUIET) || h->len != length)
        return "sent an invalid write";
    if (h->number < p->next || !inbox_grow(p, h->number))
        return "sent more messages out of order than this rank can hold";
    return slot(p, h->number)->begun ? "sent a message twice" : NULL;
}

/* Copy a payload to its target. The owner reads credits and notices without `lock`
 * while the helper may write them, so aligned words are stored atomically. */
static void store_payload(uint8_t *to, const uint8_t *from, size_t bytes)
{
    enum { WORDS_MOST = 512 };
    size_t at = 0;

    for (; bytes <= WORDS_MOST && (uintptr_t)to % 8 == 0 && at + 8 <= bytes; at += 8) {
        uint64_t word;
        memcpy(&word, from + at, sizeof(word));
        __atomic_store_n((uint64_t *)(void *)(to + at), word, __ATOMIC_RELEASE);
    }
    if (bytes - at == 4 && (uintptr_t)to % 4 == 0) {
        uint32_t word;
        memcpy(&word, from + at, sizeof(word));
        __atomic_store_n((uint32_t *)(void *)(to + at), word, __ATOMIC_RELEASE);
        return;
    }
    if (bytes > at)
        memcpy(to + at, from + at, bytes - at);
}

ucs_status_t trib_ucx_recv_cb(void *arg, const void *header, size_t header_length,
                              void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    struct ucx *u = arg;
    struct ucx_head h;
    struct ucx_peer *p = sender(u, header, header_length, &h);
    bool far = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;

    if (p && h.kind == UCX_FIRST)
        return UCS_OK;
    const char *wrong = p ? check_header(p, &h, length) : NULL;
    uint8_t *to = p && !wrong && h.len ? trib_ucx_target(u, &h) : NULL;
    if (p && !wrong && h.len && !to)
        wrong = "wrote outside a region";
    if (wrong)
        report_violation(u, p, wrong);
    if (!p || wrong)
        return far ? UCS_ERR_REJECTED : UCS_OK;
    struct ucx_arrival *a = slot(p, h.number);
    *a = (struct ucx_arrival){
        .len = h.len, .imm = h.imm, .begun = true, .quiet = h.kind == UCX_QUIET};
    if (far)
        return fetch(u, &h, data, to);
    if (h.len)
        store_payload(to, data, (size_t)h.len);
    set_arrived(u, p, a);
    return UCS_OK;
}

static int deliver_peer(struct ucx *u, int peer, struct trib_event *events, int max)
{
    struct ucx_peer *p = &u->peers[peer];
    int n = 0;

    while (n < max && p->ready) {
        struct ucx_arrival *a = slot(p, p->next);
        if (!a->here)
            break;
        if (!a->quiet)
            events[n++] = (struct trib_event){
                .kind = TRIB_EVENT_ARRIVED, .peer = peer, .imm = a->imm, .len = a->len};
        *a = (struct ucx_arrival){0};
        p->next++;
        p->ready--;
        u->ready--;
    }
    return n;
}

/* Report messages that are in order, round-robin over peers. Call with `lock` held. */
int trib_ucx_deliver(struct ucx *u, struct trib_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < u->size && n < max && u->ready; i++) {
        u->turn = u->turn + 1 < u->size ? u->turn + 1 : 0;
        n += deliver_peer(u, u->turn, events + n, max - n);
    }
    return n;
}
