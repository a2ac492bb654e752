/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: posting. Each write is posted at once. The contract has no flush, so a write
 * held back to share a doorbell would wait until the next poll.
 *
 * Completions are in order, so each one covers all requests before it. Only every
 * signal_every-th request is signalled, and those whose caller wants an event.
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

/* Return the free slots of a send queue. One is reserved for the DISCONNECT. */
static uint32_t free_slots(const struct verbs *v, const struct verbs_peer *p)
{
    return v->depth - 1 -
           (p->tail - atomic_load_explicit(&p->head, memory_order_acquire));
}

/* Post a request. The caller has checked for room. Call with `posting` held. */
static int post(struct verbs *v, int peer, struct ibv_send_wr *wr,
                struct verbs_send_wr send_wr, bool last)
{
    struct verbs_peer *p = &v->peers[peer];
    struct ibv_send_wr *bad;

    if (send_wr.asked || (last && p->unsignalled + 1 >= v->signal_every))
        wr->send_flags |= IBV_SEND_SIGNALED;
    wr->wr_id = verbs_work_id(VERBS_SENT, peer, p->tail);
    p->send_wrs[p->tail % v->depth] = send_wr;
    int error = ibv_post_send(p->qp, wr, &bad);
    if (error)
        return error;
    p->tail++;
    p->unsignalled = wr->send_flags & IBV_SEND_SIGNALED ? 0 : p->unsignalled + 1;
    return 0;
}

/* Send a control message to the peer's transport, without payload. */
static int post_control(struct verbs *v, int peer, enum verbs_control kind,
                        uint32_t value, bool asked)
{
    struct ibv_send_wr wr = {
        .opcode = kind ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
        .imm_data = htonl((uint32_t)kind << VERBS_CONTROL_SHIFT | value),
    };

    return post(v, peer, &wr, (struct verbs_send_wr){.asked = asked}, true);
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

/* Post `len` bytes of a write from offset `from`. The last part carries the event. */
static int post_part(struct verbs *v, int peer, const struct trib_write *w, size_t from,
                     size_t len)
{
    const struct verbs_region *local = (const struct verbs_region *)w->local;
    const struct verbs_remote *remote = (const struct verbs_remote *)w->remote;
    bool last = from + len == w->len;
    struct ibv_sge sge = {.length = (uint32_t)len};
    struct ibv_send_wr wr = {
        .opcode = last && !w->quiet ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .imm_data = htonl(w->imm),
    };

    if (len) {
        const bool copied = len <= v->inline_bytes; /* copied by libibverbs during the
                                                     * call */
        sge.addr = (copied ? (uintptr_t)local->ptr : local->iova) + w->local_off + from;
        sge.lkey = local->mr->lkey;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.send_flags = copied ? IBV_SEND_INLINE : 0;
        wr.wr.rdma.remote_addr = remote->address + w->remote_off + from;
        wr.wr.rdma.rkey = remote->rkey;
    }
    return post(v, peer, &wr,
                (struct verbs_send_wr){.token = w->token, .asked = last && w->signal},
                last);
}

/* Call with `posting` held. */
static trib_status_t post_write(struct verbs *v, int peer, const struct trib_write *w)
{
    struct verbs_peer *p = &v->peers[peer];
    size_t piece = (size_t)1 << p->out_shift;
    size_t pieces =
        w->len ? (w->len - 1) >> p->out_shift : 0; /* before the last part */
    size_t needed = pieces + 1 + (pieces && !w->quiet);
    int error = 0;

    if (needed > v->depth / 2)
        return trib_fail(
            v->err, TRIB_ERR_RANGE,
            "a write of %zu bytes is too long for %s: raise verbs:depth=%u", w->len,
            v->label, v->depth);
    if (!p->qp || free_slots(v, p) < needed)
        return TRIB_ERR_NO_RESOURCE;
    if (pieces && !w->quiet)
        error = post_control(v, peer, VERBS_PIECES, (uint32_t)pieces, false);
    for (size_t i = 0; i <= pieces && !error; i++)
        error =
            post_part(v, peer, w, i * piece, i < pieces ? piece : w->len - i * piece);
    if (!error)
        return TRIB_OK;
    errno = error;
    trib_verbs_lose_peer(v, peer, "a write to process %d cannot be posted: %m",
                         p->base.who.pid);
    return TRIB_ERR_PEER_LOST;
}

trib_status_t trib_verbs_write(struct trib_transport *t, int peer,
                               const struct trib_write *write)
{
    struct verbs *v = verbs_of(t);

    assert(peer >= 0 && peer < v->size);
    const struct verbs_peer *p = &v->peers[peer];
    trib_status_t status = trib_peer_check_write(p->base.state);
    if (status == TRIB_OK && write->len)
        status = check_bounds(v, peer, write);
    if (status != TRIB_OK)
        return status;
    pthread_mutex_lock(&v->posting);
    status = post_write(v, peer, write);
    pthread_mutex_unlock(&v->posting);
    return status;
}

/* If the send queue is full, its requests wake the peer. */
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
    pthread_mutex_lock(&v->posting);
    if (p->qp && free_slots(v, p) > 0)
        (void)post_control(v, peer, 0, 0, false);
    pthread_mutex_unlock(&v->posting);
}

/* Post an empty write. It consumes no receive at the peer: only the peer's device
 * responds. */
bool trib_verbs_post_probe(struct verbs *v, int peer)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    assert(peer >= 0 && peer < v->size && v->peers[peer].qp);
    pthread_mutex_lock(&v->posting);
    int error = post(v, peer, &wr, (struct verbs_send_wr){.asked = true}, true);
    pthread_mutex_unlock(&v->posting);
    errno = error;
    if (error)
        trib_verbs_lose_peer(v, peer, "an empty write cannot be posted: %m");
    return error == 0;
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
    pthread_mutex_lock(&v->links);
    if (p->in.qp && ibv_post_send(p->in.qp, &wr, &bad) == 0)
        p->disconnect_pending = true;
    pthread_mutex_unlock(&v->links);
    pthread_mutex_lock(&v->posting);
    if (p->qp)
        (void)post_control(v, peer, word, 0, true);
    pthread_mutex_unlock(&v->posting);
}
