/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: outgoing OOB requests, for pairs of ranks without librdmacm at both ends. The
 * result is a link like one made by librdmacm, with a path that tells how to reach the
 * peer.
 *
 * TCP may get through where RDMA does not, or use another path. So a connection counts
 * as established only after the peer's device has acknowledged an empty write.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/dial.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/verbs/verbs.h"

enum {
    DIAL_MS = 2000, /* for one address of a peer */
    REPLY_MS = 8000, /* for the peer's manager: its host may be busy */
    PROBE_MS = 5000, /* for an empty write and its acknowledgement */
};

/* One request to one peer. */
struct oob_attempt {
    struct verbs *v;
    struct verbs_link link;
    struct verbs_oob_request request;
    struct verbs_oob_reply reply;
    struct trib_proof proof;
    int peer;
    uint64_t until;
    char *why;
    size_t bytes;
};

static trib_status_t fail(struct oob_attempt *d, trib_status_t status,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static trib_status_t fail(struct oob_attempt *d, trib_status_t status,
                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->why, d->bytes, format, args);
    va_end(args);
    return status;
}

/* Return the deadline of a step: `ms` from now and not after `until`, but at least
 * DIAL_MS from now. */
static uint64_t step_deadline(uint64_t until, int ms)
{
    int left = trib_deadline_left_ms(until);

    assert(ms > 0);
    left = left > DIAL_MS ? left : DIAL_MS;
    return trib_deadline_ms(left < ms ? left : ms);
}

static int open_oob_socket(struct verbs *v, const struct verbs_address *a,
                           struct trib_net_found *out)
{
    struct trib_net_list list = {0};

    for (int i = 0; i < a->n + a->more && i < VERBS_ADDRESSES; i++)
        (void)trib_net_list_put(&list, a->ip[i].bytes);
    return trib_ip_endpoint_reach(&v->local, &list, a->oob_port, a->boot, a->net, out);
}

static trib_status_t report_refusal(struct oob_attempt *d)
{
    const struct verbs_answer *said = &d->reply.answer;
    bool differs =
        said->refusal == VERBS_OTHER_VERSION || said->refusal == VERBS_OTHER_SETTINGS;

    if (said->refusal == VERBS_NO_WAY)
        return fail(
            d, TRIB_ERR_PEER_LOST, "no pair of GIDs: %s",
            trib_verbs_way_text(trib_verbs_way_back((enum verbs_way)d->reply.way)));
    return fail(d, differs ? TRIB_ERR_MISMATCH : TRIB_ERR_PEER_LOST, "it refused: %s",
                trib_verbs_refusal_text((enum verbs_refusal)said->refusal));
}

/* Send `n` bytes and receive the reply. */
static trib_status_t send_request(struct oob_attempt *d, const void *bytes, size_t n)
{
    const struct trib_dialled peer = {.fd = d->link.oob_fd,
                                      .deadline = step_deadline(d->until, REPLY_MS),
                                      .idle = d->v->idle};
    int wait_ms = trib_deadline_left_ms(peer.deadline);

    if (!trib_dial_send(&peer, bytes, n))
        return fail(d, TRIB_ERR_PEER_LOST, "its listener cannot be reached: %m");
    if (!trib_dial_receive(&peer, &d->reply, sizeof(d->reply))) {
        if (errno == ETIMEDOUT)
            return fail(d, TRIB_ERR_PEER_LOST,
                        "no answer for %.1f s: is the process stopped?", wait_ms / 1e3);
        return fail(d, TRIB_ERR_PEER_LOST,
                    "it closed the connection%s%s: does a rank listen there?",
                    errno ? ": " : "", errno ? strerror(errno) : "");
    }
    if (d->reply.answer.magic != VERBS_MAGIC)
        return fail(d, TRIB_ERR_PEER_LOST,
                    "the process that answers there is not a rank");
    return TRIB_OK;
}

/* Answer the challenge, which is the reply to the request unless it is a refusal. */
static trib_status_t answer_challenge(struct oob_attempt *d)
{
    uint8_t proof[TRIB_PROOF_BYTES];

    if (d->reply.answer.refusal != VERBS_CHALLENGE)
        return d->reply.answer.refusal == VERBS_WELCOME
                   ? fail(d, TRIB_ERR_PEER_LOST,
                          "authentication failed: it does not prove that it belongs to "
                          "this job")
                   : report_refusal(d);
    if (!trib_proof_answer(d->v->secret, &d->proof, &d->reply.answer.challenge,
                           proof)) {
        (void)!send(d->link.oob_fd, proof, sizeof(proof), MSG_NOSIGNAL);
        return fail(d, TRIB_ERR_PEER_LOST,
                    "authentication failed: the peer " TRIB_PROOF_OTHER_SECRET);
    }
    return send_request(d, proof, sizeof(proof));
}

static trib_status_t exchange(struct oob_attempt *d)
{
    trib_status_t status =
        send_request(d, &d->request, trib_verbs_oob_request_bytes(&d->request));

    if (status == TRIB_OK && verbs_has_secret(d->v))
        status = answer_challenge(d);
    if (status != TRIB_OK)
        return status;
    if (d->reply.answer.refusal != VERBS_WELCOME)
        return report_refusal(d);
    if (d->reply.answer.key != d->request.hello.key ||
        d->reply.answer.version != VERBS_VERSION ||
        !trib_verbs_check_answer(d->v, &d->proof, &d->reply.answer, sizeof(d->reply)))
        return fail(d, TRIB_ERR_PEER_LOST,
                    "the process that answers there is not the peer");
    return TRIB_OK;
}

static trib_status_t apply_reply(struct oob_attempt *d)
{
    const struct verbs_oob_reply *r = &d->reply;
    const struct verbs_gid_table *own = &d->request.table;
    struct verbs_path *path = &d->link.path;
    bool with_gids = own->n > 0 && r->position < own->n;

    if (r->mtu < 1 || r->mtu > own->mtu || (r->global && !with_gids) ||
        r->has_class > 1)
        return fail(d, TRIB_ERR_PEER_LOST, "its reply is invalid");
    path->way = (enum verbs_way)r->way;
    if (with_gids)
        path->own = own->gid[r->position];
    path->peer.type = path->own.type;
    memcpy(path->peer.bytes, r->gid, sizeof(path->peer.bytes));
    path->lid = r->lid;
    path->global = r->global != 0;
    path->mtu = r->mtu;
    path->traffic_class = trib_verbs_common_class(d->v, r->has_class, r->traffic_class);
    path->qp_num = r->qp_num & 0xffffff;
    path->peer_psn = r->psn & 0xffffff;
    int error = trib_verbs_link_ready(d->v, &d->link);
    if (!error)
        return TRIB_OK;
    errno = error;
    return fail(
        d, TRIB_ERR_PEER_LOST,
        "cannot make the queue pair ready: %m; check ip route get and ip neigh for the "
        "address of the GID");
}

/* Fill in the request and create its queue pair. */
static trib_status_t prepare_request(struct oob_attempt *d, struct verbs_peer *p,
                                     const struct verbs_address *a)
{
    struct verbs *v = d->v;
    int error =
        trib_verbs_gid_table_read(v, v->context, v->port_num, &d->request.table);

    errno = error;
    if (error)
        return fail(d, TRIB_ERR_SYSTEM, "the GIDs of %s cannot be read: %m", v->label);
    if (getrandom(&d->link.path.own_psn, sizeof(uint32_t), 0) != sizeof(uint32_t))
        return fail(d, TRIB_ERR_SYSTEM, "getrandom: %m");
    d->link.path.own_psn &= 0xffffff;
    d->link.path.pkey = d->request.pkey = v->pkey;
    d->request.has_class = v->has_class;
    d->request.traffic_class = v->traffic_class;
    error = trib_verbs_link_make(v, &d->link, p, true);
    errno = error;
    if (error)
        return fail(d, TRIB_ERR_NO_RESOURCE,
                    "cannot create a queue pair of %u requests on %s: %m%s", v->depth,
                    v->label, trib_verbs_errno_cure(error));
    d->request.hello = (struct verbs_hello){
        .magic = VERBS_MAGIC,
        .version = VERBS_VERSION,
        .sizes = verbs_sizes(d->request.table.mtu, verbs_out_shift(v, a)),
        .caps = trib_verbs_caps(v),
        .rank = v->self,
        .pid = v->local.me.pid,
        .key = a->key,
        .settings = v->settings,
    };
    if (!trib_verbs_begin_hello(v, d->peer, &d->request.hello, &d->proof))
        return fail(d, TRIB_ERR_SYSTEM, "getrandom: %m");
    d->proof.request = &d->request;
    d->proof.request_bytes = trib_verbs_oob_request_bytes(&d->request);
    d->request.qp_num = d->link.qp->qp_num;
    d->request.psn = d->link.path.own_psn;
    return TRIB_OK;
}

/* Return true if this process lacks a descriptor or memory. */
static bool is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

trib_status_t trib_verbs_oob_connect(struct verbs *v, int peer,
                                     const struct verbs_address *a, uint64_t until,
                                     char *why, size_t bytes,
                                     struct verbs_answer *answer_out)
{
    struct oob_attempt d = {.v = v,
                            .peer = peer,
                            .link.by_oob = true,
                            .until = until,
                            .why = why,
                            .bytes = bytes};
    struct verbs_peer *p = &v->peers[peer];
    struct trib_net_found found;

    assert(peer >= 0 && peer < v->size && !v->peers[peer].out.qp);
    d.link.oob_fd = open_oob_socket(v, a, &found);
    memcpy(p->where.bytes, found.ip, sizeof(p->where.bytes));
    if (d.link.oob_fd < 0)
        return fail(
            &d, is_short(errno) ? TRIB_ERR_SYSTEM : TRIB_ERR_PEER_LOST,
            "%.100s port %u (TCP) cannot be reached: %m%s; is the port open and the "
            "process running? Choose other ports with verbs:port=N,ports=N",
            found.at, a->oob_port, found.cure);
    trib_status_t status = prepare_request(&d, p, a);
    if (status == TRIB_OK)
        status = exchange(&d);
    if (status == TRIB_OK)
        status = apply_reply(&d);
    *answer_out = d.reply.answer;
    if (status != TRIB_OK) {
        trib_verbs_link_drop(v, &d.link);
        return status;
    }
    pthread_mutex_lock(&v->links);
    p->out = d.link;
    trib_verbs_route_put(v, p->out.qp->qp_num,
                         (struct verbs_route){.peer = peer, .outlet = true});
    pthread_mutex_unlock(&v->links);
    return TRIB_OK;
}

/* Drop the outlet and reset the peer to not connected. */
static void reset_outlet(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];
    struct verbs_link link;

    trib_spin_lock(&v->posting);
    p->qp = NULL;
    trib_verbs_forget_requests(v, peer);
    trib_spin_unlock(&v->posting);
    pthread_mutex_lock(&v->links);
    link = p->out;
    memset(&p->out, 0, sizeof(p->out));
    trib_verbs_route_remove(v, link.qp->qp_num);
    pthread_mutex_unlock(&v->links);
    trib_verbs_link_drop(v, &link);
    trib_peer_liveness_end(&p->base.liveness);
    if (p->base.state == TRIB_PEER_DRAINING)
        v->n_losing--;
    p->unclear = VERBS_CLEAR;
    p->base.state = TRIB_PEER_UNKNOWN;
}

static void describe_path(struct verbs_peer *p)
{
    const struct verbs_path *path = &p->out.path;
    char own[VERBS_END_TEXT], peer[VERBS_END_TEXT];

    snprintf(p->by, sizeof(p->by), "%s to %s: %s",
             trib_verbs_gid_text(&path->own, true, own),
             trib_verbs_gid_text(&path->peer, false, peer),
             trib_verbs_way_text(path->way));
}

bool trib_verbs_send_ready(struct verbs *v, int peer)
{
    const struct verbs_ready ready = {.magic = VERBS_MAGIC, .version = VERBS_VERSION};
    struct verbs_peer *p = &v->peers[peer];

    assert(p->out.by_oob && p->out.qp);
    describe_path(p);
    if (send(p->out.oob_fd, &ready, sizeof(ready), MSG_NOSIGNAL) != sizeof(ready))
        return false;
    trib_verbs_oob_fd_keep(p->out.oob_fd);
    trib_verbs_watch_fd(v, p->out.oob_fd);
    trib_log(v->log, TRIB_LOG_DEBUG, "verbs", "rank %d to rank %d by GIDs, MTU %u: %s",
             v->self, peer, 128u << p->out.path.mtu, p->by);
    return true;
}

trib_status_t trib_verbs_probe_path(struct verbs *v, int peer, uint64_t until,
                                    char *why, size_t bytes)
{
    if (trib_verbs_post_probe(v, peer))
        trib_verbs_drain(v, peer, step_deadline(until, PROBE_MS));
    return trib_verbs_judge_probe(v, peer, why, bytes);
}

void trib_verbs_await_probes(struct verbs *v, const int *peers, int n)
{
    trib_verbs_drain_sends(v, peers, n, trib_deadline_ms(PROBE_MS));
}

trib_status_t trib_verbs_judge_probe(struct verbs *v, int peer, char *why, size_t bytes)
{
    struct verbs_peer *p = &v->peers[peer];
    char cause[TRIB_WHY_MAX + 4] = "";

    assert(p->out.by_oob && p->out.qp);
    describe_path(p);
    bool here = p->base.state == TRIB_PEER_CONNECTED && verbs_sends_done(p);
    if (here && trib_verbs_send_ready(v, peer))
        return TRIB_OK;
    if (p->base.state == TRIB_PEER_DRAINING)
        snprintf(cause, sizeof(cause), " (%s)", p->base.why);
    snprintf(
        why, bytes,
        "no RDMA packet gets through from %s%s; %s: try ibv_rc_pingpong with these "
        "GIDs",
        p->by, cause,
        v->layer == VERBS_INFINIBAND
            ? "both ports must be in one partition (verbs:pkey)"
            : "with RoCE, UDP port 4791 must be open");
    reset_outlet(v, peer);
    return TRIB_ERR_PEER_LOST;
}
