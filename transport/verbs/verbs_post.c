/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: posting. A write is posted at once, except a long quiet one: it goes in one
 * list with the next write to the peer, or with the next poll. A list costs the device
 * one doorbell.
 *
 * Completions are in order, so each one covers all requests before it. So only some
 * requests are signalled: each signal_every-th, and of those whose caller wants an
 * event every ASKED_EVERY-th, or each while only a FEW up to the last signalled one are
 * in flight. A poll signals the rest (trib_verbs_cover) if nothing was posted to the
 * peer since the poll before, or if the owner is about to sleep.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/verbs/verbs.h"

/* If the manager is busy with a request, leave the receives to the next poll. Those of
 * an inlet that was replaced since are no longer owed: a new one has all of its own. */
static void refill_links(struct verbs *v)
{
    int kept = 0;

    if (pthread_mutex_trylock(&v->links) != 0)
        return;
    for (int i = 0; i < v->n_owing; i++) {
        struct verbs_peer *p = &v->peers[v->owing[i]];
        if (p->in.qp && p->in.qp->qp_num == p->owed_qp_num &&
            trib_verbs_add_receives(v, p->in.qp, &p->owed) != 0) {
            v->owing[kept++] = v->owing[i];
            continue;
        }
        p->owed = 0;
        p->is_owed = false;
    }
    v->n_owing = kept;
    pthread_mutex_unlock(&v->links);
}

trib_status_t trib_verbs_post_receives(struct verbs *v)
{
    assert(v->owed <= v->receives);
    if (!v->srq) {
        refill_links(v);
        return TRIB_OK;
    }
    errno = trib_verbs_add_receives(v, NULL, &v->owed);
    return errno ? trib_fail(v->err, TRIB_ERR_SYSTEM,
                             "verbs: cannot post receives on %s: %m", v->label)
                 : TRIB_OK;
}

enum {
    ASKED_EVERY = 8,
    FEW = 2, /* requests: a burst of two frames needs no empty write */
};

/* Return the free slots of a send queue. One is reserved for the DISCONNECT. */
static inline uint32_t free_slots(const struct verbs *v, const struct verbs_peer *p)
{
    return v->depth - 1 -
           (atomic_load_explicit(&p->tail, memory_order_relaxed) -
            atomic_load_explicit(&p->head, memory_order_acquire));
}

/* Return true if a list of n requests must end with a signalled one. */
static inline bool must_signal(const struct verbs *v, const struct verbs_peer *p,
                               uint32_t n, uint32_t asked)
{
    const uint32_t head = atomic_load_explicit(&p->head, memory_order_relaxed);
    const bool in_flight = (int32_t)(p->covered - head) > FEW;

    return p->unsignalled + n >= v->signal_every ||
           (asked && (!in_flight || p->uncovered + asked >= ASKED_EVERY));
}

/* Count n requests as posted, the last one signalled or not. */
static inline void count_posted(struct verbs_peer *p, uint32_t n, uint32_t asked,
                                bool signalled)
{
    const uint32_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed) + n;
    const int32_t room = atomic_load_explicit(&p->room, memory_order_relaxed);

    atomic_store_explicit(&p->tail, tail, memory_order_relaxed);
    atomic_store_explicit(&p->room, room - (int32_t)n, memory_order_relaxed);
    if (signalled) {
        p->covered = tail;
        p->unsignalled = p->uncovered = 0;
    } else {
        p->unsignalled += n;
        p->uncovered += asked;
    }
}

/* Post one request without payload. The caller has checked for room. Call with
 * `posting` held. Return an errno on failure. */
static int post_one(struct verbs *v, int peer, struct ibv_send_wr *wr)
{
    struct verbs_peer *p = &v->peers[peer];
    struct ibv_send_wr *bad;

    if (must_signal(v, p, 1, 0))
        wr->send_flags |= IBV_SEND_SIGNALED;
    wr->wr_id = verbs_work_id(VERBS_SENT, peer,
                              atomic_load_explicit(&p->tail, memory_order_relaxed));
    const int error = ibv_post_send(p->qp, wr, &bad);
    if (!error)
        count_posted(p, 1, 0, wr->send_flags & IBV_SEND_SIGNALED);
    return error;
}

/* Keep n tokens of the list; `first` is the position of its first request. */
static inline void keep_tokens(struct verbs *v, uint32_t first, uint32_t n)
{
    struct verbs_send_list *l = &v->list;
    struct verbs_peer *p = l->to;

    for (const struct verbs_asked *a = l->asked; n > 0; a++, n--)
        p->asked[p->asked_tail++ & (2 * v->depth - 1)] =
            (struct verbs_asked){.token = a->token, .position = first + a->position};
    v->uncovered |= p->uncovered > 0;
    if (p->is_asking)
        return;
    p->is_asking = true;
    v->asking[v->n_asking++] = l->peer;
}

/* The device has refused the list from `bad` on. */
static trib_status_t lose_rest(struct verbs *v, const struct ibv_send_wr *bad,
                               int error)
{
    const struct verbs_send_list *l = &v->list;
    struct verbs_peer *p = l->to;
    const uint32_t first = atomic_load_explicit(&p->tail, memory_order_relaxed);
    uint32_t posted = 0, asked = 0;

    while (posted < l->n && bad != &l->of[posted].wr)
        posted++;
    while (asked < l->n_asked && l->asked[asked].position < posted)
        asked++;
    count_posted(p, posted, asked, false);
    keep_tokens(v, first, asked);
    errno = error;
    trib_verbs_lose_peer(v, l->peer, "a write to process %d cannot be posted: %m",
                         p->base.who.pid);
    return TRIB_ERR_PEER_LOST;
}

/* Post the list. On failure the peer is lost. Call with `posting` held. */
__attribute__((always_inline)) static inline trib_status_t post_list(struct verbs *v)
{
    struct verbs_send_list *l = &v->list;
    struct verbs_peer *p = l->to;
    const uint32_t first = atomic_load_explicit(&p->tail, memory_order_relaxed);
    struct ibv_send_wr *last = &l->next[-1].wr, *bad = &l->of[0].wr;
    trib_status_t status = TRIB_OK;

    assert(p->qp);
    for (uint32_t i = 0; i < l->n; i++)
        l->of[i].wr.wr_id = verbs_work_id(VERBS_SENT, l->peer, first + i);
    const bool signal = must_signal(v, p, l->n, l->n_asked);
    if (signal)
        last->send_flags |= IBV_SEND_SIGNALED;
    last->next = NULL;
    const int error = ibv_post_send(p->qp, &l->of[0].wr, &bad);
    last->next = &l->next->wr;
    if (error) {
        status = lose_rest(v, bad, error);
    } else {
        count_posted(p, l->n, l->n_asked, signal);
        if (l->n_asked)
            keep_tokens(v, first, l->n_asked);
    }
    verbs_list_clear(l);
    return status;
}

/* Not inline: it would make the path of quiet writes longer. */
__attribute__((noinline)) static trib_status_t lock_and_post(struct verbs *v)
{
    trib_spin_lock(&v->posting);
    const trib_status_t status = post_list(v);
    trib_spin_unlock(&v->posting);
    return status;
}

void trib_verbs_flush(struct verbs *v)
{
    if (v->list.n)
        (void)lock_and_post(v);
}

void trib_verbs_list_init(struct verbs *v)
{
    struct verbs_send_list *l = &v->list;

    l->to = v->peers;
    for (uint32_t i = 0; i < VERBS_SEND_LIST; i++) {
        l->of[i].wr.next = &(&l->of[i] + 1)->wr;
        l->of[i].wr.sg_list = &l->of[i].sge;
    }
    verbs_list_clear(l);
}

/* Send a control message to the peer's transport, without payload. Call with `posting`
 * held. */
static void post_control(struct verbs *v, int peer, enum verbs_control kind)
{
    struct ibv_send_wr wr = {
        .opcode = kind ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
        .send_flags = kind ? IBV_SEND_SIGNALED : 0,
        .imm_data = htonl((uint32_t)kind << VERBS_CONTROL_SHIFT),
    };

    (void)post_one(v, peer, &wr);
}

/* Add `len` bytes of a write from offset `from` to the list. The last part carries the
 * event. The caller has checked for room. */
static inline void add_part(struct verbs *v, const struct trib_write *w, size_t from,
                            size_t len)
{
    const struct verbs_region *local = (const struct verbs_region *)w->local;
    const struct verbs_remote *remote = (const struct verbs_remote *)w->remote;
    struct verbs_send_list *l = &v->list;
    struct verbs_request *r = l->next;
    const bool last = from + len == w->len;

    if (last && w->signal)
        l->asked[l->n_asked++] =
            (struct verbs_asked){.token = w->token, .position = l->n};
    l->n++;
    l->next = r + 1;
    r->wr.opcode = last && !w->quiet ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    r->wr.imm_data = htonl(w->imm);
    r->wr.num_sge = len > 0;
    r->wr.send_flags = 0;
    if (!len)
        return;
    r->sge.lkey = local->lkey;
    if (len <= verbs_inline(v)) { /* libibverbs copies when it posts */
        r->sge.addr = (uintptr_t)local->ptr + w->local_off + from;
        r->wr.send_flags = IBV_SEND_INLINE;
    } else {
        r->sge.addr = local->iova + w->local_off + from;
    }
    r->sge.length = (uint32_t)len;
    r->wr.wr.rdma.remote_addr = remote->address + w->remote_off + from;
    r->wr.wr.rdma.rkey = remote->rkey;
}

/* Add a message with the number of pieces that precede the next write to the list. */
static void add_pieces(struct verbs_send_list *l, uint32_t pieces)
{
    struct ibv_send_wr *wr = &l->next->wr;

    l->n++;
    l->next++;
    wr->opcode = IBV_WR_SEND_WITH_IMM;
    wr->imm_data = htonl((uint32_t)VERBS_PIECES << VERBS_CONTROL_SHIFT | pieces);
    wr->num_sge = 0;
    wr->send_flags = 0;
}

/* Add a write of one message to the list, and post it unless the list waits for the
 * next write. Short quiet writes do not wait: they are no payload of an entry. */
static inline trib_status_t add_write(struct verbs *v, const struct trib_write *w)
{
    add_part(v, w, 0, w->len);
    return w->quiet && w->len > verbs_inline(v) && v->list.n < VERBS_SEND_LIST
               ? TRIB_OK
               : lock_and_post(v);
}

static trib_status_t check_bounds(struct verbs *v, int peer, const struct trib_write *w)
{
    const struct verbs_region *local = (const struct verbs_region *)w->local;
    const struct verbs_remote *remote = (const struct verbs_remote *)w->remote;

    if (!local || !remote)
        return trib_peer_check_bounds(w, peer, NULL, v->err);
    const struct trib_write_bounds bounds = {remote->peer, local->len, remote->len};
    return trib_peer_check_bounds(w, peer, &bounds, v->err);
}

/* Call with `posting` held. */
static trib_status_t post_parts(struct verbs *v, const struct trib_write *w,
                                size_t piece, size_t pieces)
{
    struct verbs_send_list *l = &v->list;
    trib_status_t status = TRIB_OK;

    if (!w->quiet)
        add_pieces(l, (uint32_t)pieces);
    for (size_t i = 0; i <= pieces && status == TRIB_OK; i++) {
        add_part(v, w, i * piece, i < pieces ? piece : w->len - i * piece);
        if (l->n == VERBS_SEND_LIST || i == pieces)
            status = post_list(v);
    }
    return status;
}

/* Post a write that is longer than a message of the two devices. */
static trib_status_t write_in_pieces(struct verbs *v, const struct trib_write *w)
{
    const struct verbs_peer *p = v->list.to;
    const size_t pieces = (w->len - 1) / p->piece; /* before the last part */
    const size_t needed = pieces + 1 + !w->quiet;
    trib_status_t status = TRIB_ERR_NO_RESOURCE;

    if (needed > v->depth / 2)
        return trib_fail(
            v->err, TRIB_ERR_RANGE,
            "a write of %zu bytes is too long for %s: raise verbs:depth=%u", w->len,
            v->label, v->depth);
    trib_spin_lock(&v->posting);
    if (p->qp && free_slots(v, p) >= needed)
        status = post_parts(v, w, p->piece, pieces);
    trib_spin_unlock(&v->posting);
    return status;
}

/* Point the list to a peer. Return false if its send queue is full. */
static bool begin_list(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    trib_verbs_flush(v);
    v->list.to = p;
    v->list.peer = peer;
    trib_spin_lock(&v->posting);
    const uint32_t room = p->qp ? free_slots(v, p) : 0;
    atomic_store_explicit(&p->room, (int32_t)room, memory_order_relaxed);
    trib_spin_unlock(&v->posting);
    return room > 0;
}

/* A write that is not as simple as can_add() requires. */
__attribute__((noinline)) static trib_status_t check_and_write(
    struct verbs *v, int peer, const struct trib_write *w)
{
    assert(peer >= 0 && peer < v->size);
    trib_status_t status = trib_peer_check_write(v->peers[peer].base.state);

    if (status == TRIB_OK && w->len)
        status = check_bounds(v, peer, w);
    if (status != TRIB_OK)
        return status;
    if (!begin_list(v, peer))
        return TRIB_ERR_NO_RESOURCE;
    return w->len > v->list.to->piece ? write_in_pieces(v, w) : add_write(v, w);
}

/* Return true for a valid write of one message that has room in the list. A wake leaves
 * the slots of a list free, so `room` can be read without the lock. */
static inline bool can_add(const struct verbs_send_list *l, int peer,
                           const struct trib_write *w)
{
    const struct verbs_region *local = (const struct verbs_region *)w->local;
    const struct verbs_remote *remote = (const struct verbs_remote *)w->remote;
    const struct verbs_peer *p = l->to;

    if (l->peer != peer || p->base.state != TRIB_PEER_CONNECTED ||
        (int32_t)l->n >= atomic_load_explicit(&p->room, memory_order_relaxed))
        return false;
    return !w->len || (w->len <= p->piece && local && remote && remote->peer == peer &&
                       trib_write_fits(w, local->len, remote->len));
}

trib_status_t trib_verbs_write(struct trib_transport *t, int peer,
                               const struct trib_write *write)
{
    struct verbs *v = verbs_of(t);

    return can_add(&v->list, peer, write) ? add_write(v, write)
                                          : check_and_write(v, peer, write);
}

/* If the send queue is full, its requests wake the peer. The slots of the list stay
 * free: the owner has checked for them without the lock. */
void trib_verbs_wake(struct trib_transport *t, int peer)
{
    struct verbs *v = verbs_of(t);
    uint64_t one = 1;

    assert(peer >= 0 && peer < v->size);
    if (peer == v->self) {
        if (write(v->wakeup_fd, &one, sizeof(one)) < 0)
            return; /* already signalled */
        return;
    }
    struct verbs_peer *p = &v->peers[peer];
    trib_spin_lock(&v->posting);
    if (p->qp && free_slots(v, p) > VERBS_SEND_LIST)
        post_control(v, peer, 0);
    trib_spin_unlock(&v->posting);
}

/* Return false and set errno on failure. Call with `posting` held. */
static bool post_empty(struct verbs *v, int peer)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};

    errno = post_one(v, peer, &wr);
    return errno == 0;
}

/* Post an empty write. It consumes no receive at the peer: only the peer's device
 * responds. */
bool trib_verbs_post_probe(struct verbs *v, int peer)
{
    assert(peer >= 0 && peer < v->size && v->peers[peer].qp);
    trib_spin_lock(&v->posting);
    const bool posted = post_empty(v, peer);
    trib_spin_unlock(&v->posting);
    if (!posted)
        trib_verbs_lose_peer(v, peer, "an empty write cannot be posted: %m");
    return posted;
}

/* Return false if a later poll must try again: the send queue has no room, or further
 * posts may follow. */
static bool cover(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];
    const uint32_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
    bool room = true, posted = true;

    if (tail != p->polled_tail && !v->may_sleep) {
        p->polled_tail = tail;
        return false;
    }
    trib_spin_lock(&v->posting);
    if (p->qp && p->uncovered) {
        room = free_slots(v, p) > 0;
        posted = !room || post_empty(v, peer);
    }
    trib_spin_unlock(&v->posting);
    if (!posted)
        trib_verbs_lose_peer(v, peer, "an empty write cannot be posted: %m");
    return room;
}

void trib_verbs_cover(struct verbs *v)
{
    v->uncovered = false;
    for (int i = 0; i < v->n_asking; i++)
        v->uncovered |= !cover(v, v->asking[i]);
}

/* Send on both connections. On the outlet the message follows all writes. */
void trib_verbs_send_last(struct verbs *v, int peer, enum verbs_control word)
{
    struct verbs_peer *p = &v->peers[peer];
    struct ibv_send_wr wr = {
        .wr_id = verbs_work_id(VERBS_SENT_DISCONNECT, peer, 0),
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htonl((uint32_t)word << VERBS_CONTROL_SHIFT),
    };
    struct ibv_send_wr *bad;

    assert(peer >= 0 && peer < v->size);
    trib_verbs_flush(v);
    pthread_mutex_lock(&v->links);
    if (p->in.qp && ibv_post_send(p->in.qp, &wr, &bad) == 0)
        p->disconnect_pending = true;
    pthread_mutex_unlock(&v->links);
    trib_spin_lock(&v->posting);
    if (p->qp)
        post_control(v, peer, word);
    trib_spin_unlock(&v->posting);
}
