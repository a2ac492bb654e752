/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: incoming OOB requests. If librdmacm is not usable at both ends, a rank
 * requests a connection over TCP. The request lists its GIDs; the reply names the best
 * matching pair.
 *
 * This file runs in the manager's thread. The TCP connection stays open: its end means
 * that the process has died. Only a FIN or reset from the peer's kernel counts as an
 * end. RDMA packets may use another path, so a silent TCP connection is ignored.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/verbs/verbs.h"

enum { EVENTS = 16 };

/* Append the addresses of the host to the device's, as far as they fit. The address
 * used for the rendezvous comes first. */
static void add_addresses(struct verbs *v)
{
    struct verbs_ip all[TRIB_NET_OFFERED];
    struct trib_net_list list;

    trib_net_offer(&v->local.ways, "verbs", NULL, &list);
    int n = trib_net_list_get(&list, (uint8_t(*)[16])all, TRIB_NET_OFFERED);

    for (int i = 0; i < n && v->n_ips + v->more_ips < VERBS_ADDRESSES; i++) {
        bool there = false;
        for (int k = 0; k < v->n_ips; k++)
            there |= memcmp(&v->ip[k], &all[i], sizeof(all[i])) == 0;
        if (!there)
            v->ip[v->n_ips + v->more_ips++] = all[i];
    }
}

/* Keep firewalls from forgetting idle connections. The interval is too long to detect a
 * dead peer. */
void trib_verbs_oob_fd_keep(int fd)
{
    int yes = 1, seconds = 60, times = 30;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

/* Close all sockets without sending anything: a forked child calls this, too. */
void trib_verbs_oob_listener_close(struct verbs *v)
{
    struct verbs_oob_listener *oob = &v->oob;

    trib_acceptor_close(&oob->acceptor);
    if (oob->at.fd >= 0)
        close(oob->at.fd);
    if (oob->epoll >= 0)
        close(oob->epoll);
    oob->at.fd = oob->epoll = -1;
}

static void send_reply(const struct verbs *v, const struct verbs_pending_conn *c,
                       struct verbs_oob_reply *reply)
{
    int fd = c->base.fd;

    reply->answer.magic = VERBS_MAGIC;
    reply->answer.version = VERBS_VERSION;
    reply->answer.key = v->local.key;
    if (c->proof.step == TRIB_PROOF_DONE && reply->answer.refusal != VERBS_CHALLENGE)
        trib_verbs_seal_answer(v, &c->proof, &reply->answer, sizeof(*reply));
    /* The send buffer of a new connection has room for it. */
    (void)send(fd, reply, sizeof(*reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static uint32_t random_psn(void)
{
    uint32_t psn = 0;

    (void)!getrandom(&psn, sizeof(psn), 0);
    return psn & 0xffffff;
}

/* Create the inlet for a request. On failure return false; reply->answer has the
 * reason. */
static bool make_inlet(struct verbs *v, struct verbs_peer *p,
                       const struct verbs_oob_request *request, struct verbs_link *link,
                       struct verbs_oob_reply *reply)
{
    struct verbs_gid_table own;
    int error = trib_verbs_gid_table_read(v, v->context, v->port_num, &own);
    struct verbs_pair pair = trib_verbs_pair(&own, &request->table);

    reply->answer.refusal = VERBS_NO_ROOM;
    if (!error && !pair.found) {
        reply->answer.refusal = VERBS_NO_WAY;
        reply->way = (uint8_t)pair.way;
        return false;
    }
    if (!error && !trib_verbs_shares_partition(v, request->pkey)) {
        reply->answer.refusal = VERBS_OTHER_PARTITION;
        return false;
    }
    link->path = (struct verbs_path){
        .way = pair.way,
        .own = own.gid[pair.own],
        .peer = request->table.gid[pair.peer],
        .lid = request->table.lid,
        .global = pair.global,
        .mtu = pair.mtu,
        .traffic_class =
            trib_verbs_common_class(v, request->has_class, request->traffic_class),
        .pkey = request->pkey,
        .qp_num = request->qp_num,
        .own_psn = random_psn(),
        .peer_psn = request->psn,
    };
    if (!error)
        error = trib_verbs_link_make(v, link, p, false);
    if (!error)
        error = trib_verbs_link_ready(v, link);
    if (error) {
        errno = error;
        trib_log(v->log, TRIB_LOG_WARN, "verbs",
                 "cannot create a queue pair for the writes of rank %d: %m",
                 request->hello.rank);
        return false;
    }
    reply->answer.refusal = VERBS_WELCOME;
    reply->qp_num = link->qp->qp_num;
    reply->psn = link->path.own_psn;
    memcpy(reply->gid, link->path.own.bytes, sizeof(reply->gid));
    reply->lid = own.lid;
    reply->way = (uint8_t)pair.way;
    reply->mtu = pair.mtu;
    reply->position = pair.peer;
    reply->global = pair.global;
    reply->has_class = v->has_class;
    reply->traffic_class = v->traffic_class;
    return true;
}

static void warn_of_rank(struct verbs *v, struct verbs_pending_conn *c,
                         const struct verbs_hello *hello, enum verbs_refusal refusal)
{
    char what[160];

    if (!verbs_is_foreign(refusal)) {
        trib_verbs_log_refusal(v, hello, refusal);
        return;
    }
    trib_verbs_describe_refusal(hello, refusal, what, sizeof(what));
    trib_acceptor_warn(&v->oob.acceptor, &c->base, what);
}

/* Handle a complete request. Return true if the connection became the peer's inlet.
 * Call with `links` held. */
static bool accept_request(struct verbs *v, struct verbs_pending_conn *c,
                           const struct verbs_oob_request *request,
                           struct verbs_link *trash)
{
    struct verbs_link link = {.by_oob = true, .oob_fd = c->base.fd};
    struct verbs_oob_reply reply = {0};
    enum verbs_refusal verdict;
    struct verbs_peer *p = trib_verbs_check_hello(v, &request->hello, true, &verdict);
    const bool waits =
        verbs_is_quiet(verdict) ||
        (verdict == VERBS_TWICE && trib_verbs_supersede(v, p, &request->hello));

    assert(verbs_links_held(v));
    reply.answer.refusal = (uint8_t)verdict;
    if (verdict != VERBS_WELCOME || !make_inlet(v, p, request, &link, &reply)) {
        if (!waits)
            warn_of_rank(v, c, &request->hello, reply.answer.refusal);
        send_reply(v, c, &reply);
        *trash = link;
        trash->by_oob = false; /* the socket stays with the pending connection */
        return false;
    }
    /* The peer has abandoned an earlier attempt; its end was not noticed yet. */
    if (p->in.qp)
        trib_verbs_route_remove(v, p->in.qp->qp_num);
    *trash = p->in;
    p->in = link;
    p->in_established = false;
    p->in_pid = request->hello.pid;
    /* The peer's writes may arrive before our reply. */
    atomic_store_explicit(&p->piece_shift, verbs_hello_piece_shift(&request->hello),
                          memory_order_relaxed);
    trib_verbs_route_put(v, link.qp->qp_num,
                         (struct verbs_route){.peer = request->hello.rank});
    send_reply(v, c, &reply);
    return true;
}

/* Send the challenge for a complete request, or refuse the request. */
static void send_challenge(struct verbs *v, struct verbs_pending_conn *c,
                           const struct verbs_oob_request *request)
{
    struct verbs_oob_reply reply = {0};
    enum verbs_refusal verdict;

    assert(verbs_has_secret(v) && c->proof.step == TRIB_PROOF_NEW);
    pthread_mutex_lock(&v->links);
    bool fits = trib_verbs_check_hello(v, &request->hello, true, &verdict) != NULL;
    pthread_mutex_unlock(&v->links);
    reply.answer.refusal = (uint8_t)verdict;
    c->refused =
        !fits || !trib_verbs_challenge(v, &request->hello, c->bytes, c->request_bytes,
                                       &c->proof, &reply.answer);
    if (c->refused && !verbs_is_quiet(verdict))
        warn_of_rank(v, c, &request->hello, reply.answer.refusal);
    send_reply(v, c, &reply);
}

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    struct verbs_pending_conn *c = calloc(1, sizeof(*c));
    struct verbs *v = owner;

    if (!c) {
        close(fd);
        return NULL;
    }
    trib_net_accepted(&v->oob.at, fd, ip);
    trib_pending_expect(&c->base, c->bytes, sizeof(c->bytes));
    return &c->base;
}

/* Check a request, or the proof that follows it. */
static bool judge(void *owner, struct trib_pending *p)
{
    struct verbs_pending_conn *c = (struct verbs_pending_conn *)p;
    struct verbs_oob_request request;
    struct verbs *v = owner;

    assert(!c->refused && p->have <= p->want);
    if (c->proof.step == TRIB_PROOF_CHALLENGED) {
        if (p->have < sizeof(c->answer))
            return false;
        if (!trib_proof_check(v->secret, &c->proof, c->answer, sizeof(c->answer)))
            c->parsed = VERBS_PARSED_STRANGER;
        return true;
    }
    c->parsed = trib_verbs_oob_request_parse(c->bytes, p->have, &request);
    c->request_bytes = p->have;
    if (c->parsed == VERBS_PARSED_ALL && verbs_has_secret(v)) {
        send_challenge(v, c, &request);
        trib_pending_expect(p, c->answer, sizeof(c->answer));
        p->spoke = !c->refused;
        return c->refused;
    }
    return c->parsed != VERBS_PARSED_PART;
}

/* Return true if the connection became the peer's inlet. */
static bool take_over(struct verbs *v, struct verbs_pending_conn *c)
{
    struct verbs_oob_request request;
    struct verbs_link trash = {0};

    assert(c->parsed == VERBS_PARSED_ALL);
    (void)trib_verbs_oob_request_parse(c->bytes, c->request_bytes, &request);
    pthread_mutex_lock(&v->links);
    bool taken = accept_request(v, c, &request, &trash);
    pthread_mutex_unlock(&v->links);
    trib_verbs_link_drop(v, &trash);
    return taken;
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    struct verbs_pending_conn *c = (struct verbs_pending_conn *)p;
    const enum verbs_parsed parsed =
        why == TRIB_PENDING_JUDGED ? c->parsed : VERBS_PARSED_STRANGER;
    const bool nonsense = parsed == VERBS_PARSED_NONSENSE;
    const bool other = parsed == VERBS_PARSED_VERSION;
    const bool challenged = c->proof.step != TRIB_PROOF_NEW;
    struct verbs_oob_reply reply = {.answer.refusal =
                                        other ? VERBS_OTHER_VERSION : VERBS_NONSENSE};
    struct verbs *v = owner;

    assert(!p->slot && !p->refused);
    if (c->refused)
        return TRIB_PENDING_REFUSED;
    if (parsed == VERBS_PARSED_ALL)
        return take_over(v, c) ? TRIB_PENDING_TAKEN : TRIB_PENDING_REFUSED;
    if (nonsense || other)
        send_reply(v, c, &reply);
    if (!challenged || why != TRIB_PENDING_ENDED) /* else it may be a rank that has died
                                                  * or disconnected since */
        trib_acceptor_warn(&v->oob.acceptor, p,
                           challenged ? TRIB_PROOF_UNPROVED
                           : other    ? "uses another version of the verbs protocol"
                           : nonsense ? "sent a malformed request"
                                      : "did not send a valid hello");
    return nonsense || other ? TRIB_PENDING_REFUSED : TRIB_PENDING_CLOSE;
}

static void watch(void *owner, int fd, bool on)
{
    if (on)
        trib_verbs_watch_fd(owner, fd);
    else
        trib_verbs_unwatch_fd(owner, fd);
}

static const struct trib_acceptor_ops acceptor_ops = {
    .admit = admit, .judge = judge, .finish = finish, .watch = watch, .free = free};

trib_status_t trib_verbs_oob_listener_open(struct verbs *v, int first_port, int ports)
{
    const struct trib_net_rank rank = {"verbs", v->self, v->size};
    struct verbs_oob_listener *oob = &v->oob;
    trib_status_t status =
        trib_net_bind("verbs", SOCK_STREAM, first_port, ports, &oob->at, v->err);

    assert(oob->epoll < 0);
    if (status != TRIB_OK)
        return status;
    oob->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (oob->epoll < 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: cannot listen: %m");
    trib_net_fence(&v->local.ways.choice, "verbs", v->log, &oob->at);
    add_addresses(v);
    trib_verbs_oob_fd_keep(oob->at.fd); /* accepted sockets inherit the options */
    trib_verbs_watch_fd(v, oob->at.fd);
    oob->acceptor.ops = &acceptor_ops;
    oob->acceptor.owner = v;
    oob->acceptor.log = v->log;
    return trib_net_acceptor_open(&oob->acceptor, &rank, &oob->at, v->err);
}

/* Read a message or the end of stream from an oob_fd. Return true if the connection
 * has ended. */
static bool read_oob_fd(struct verbs *v, struct verbs_link *link, bool *established)
{
    struct verbs_ready word;
    ssize_t n = recv(link->oob_fd, &word, sizeof(word), MSG_PEEK | MSG_DONTWAIT);

    assert(verbs_links_held(v) && link->by_oob);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0 && errno != ECONNRESET) { /* a network error, not the peer: RDMA packets
                                         * will tell */
        trib_verbs_unwatch_fd(v, link->oob_fd);
        return false;
    }
    if (n < 0)
        return true;
    if (n > 0 && n < (ssize_t)sizeof(word) && !*established)
        return trib_net_is_truncated(link->oob_fd, sizeof(word));
    if (n == 0 || *established || word.magic != VERBS_MAGIC)
        return true;
    (void)!recv(link->oob_fd, &word, sizeof(word), MSG_DONTWAIT);
    *established = true;
    return false;
}

static void handle_oob_fd(struct verbs *v, int fd)
{
    struct verbs_link trash = {0};
    bool whole = true;

    pthread_mutex_lock(&v->links);
    for (int i = 0; i < v->size; i++) {
        struct verbs_peer *p = &v->peers[i];
        bool in = p->in.by_oob && p->in.oob_fd == fd;
        if (!in && !(p->out.by_oob && p->out.oob_fd == fd))
            continue;
        if (read_oob_fd(v, in ? &p->in : &p->out, in ? &p->in_established : &whole)) {
            trib_verbs_unwatch_fd(v, fd);
            trib_verbs_link_ended(v, p, in, &trash);
        }
        break;
    }
    pthread_mutex_unlock(&v->links);
    trib_verbs_link_drop(v, &trash);
}

/* Pending connections with a complete request are finished before others may evict
 * them. */
void trib_verbs_oob_listener_poll(struct verbs *v)
{
    struct epoll_event events[EVENTS];
    int n = v->oob.epoll >= 0 ? epoll_wait(v->oob.epoll, events, EVENTS, 0) : 0;
    bool accepts = v->oob.acceptor.unwatched;

    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == v->oob.at.fd)
            accepts = true;
        else
            handle_oob_fd(v, events[i].data.fd); /* unless it is pending */
    }
    trib_acceptor_progress(&v->oob.acceptor);
    if (!accepts)
        return;
    trib_acceptor_accept(&v->oob.acceptor, v->oob.at.fd);
    trib_acceptor_progress(&v->oob.acceptor);
}
