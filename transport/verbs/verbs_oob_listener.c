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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/verbs/verbs.h"

enum {
    REQUEST_MS = 5000, /* for connections that send no request */
    CHECK_MS = 200, /* interval between checks of deadlines */
    EVENTS = 16,
};

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

trib_status_t trib_verbs_oob_listener_open(struct verbs *v, int first_port, int ports)
{
    struct verbs_oob_listener *oob = &v->oob;
    trib_status_t status =
        trib_net_bind("verbs", SOCK_STREAM, first_port, ports, &oob->at, v->err);

    assert(oob->epoll < 0 && !oob->pending);
    if (status != TRIB_OK)
        return status;
    oob->max_pending = v->size + TRIB_NET_UNAUTHENTICATED;
    oob->pending = calloc((size_t)oob->max_pending, sizeof(*oob->pending));
    if (!oob->pending)
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "out of memory");
    oob->epoll = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (oob->epoll < 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: cannot listen: %m");
    trib_net_fence(&v->local.ways.choice, "verbs", v->log, &oob->at);
    add_addresses(v);
    trib_verbs_oob_fd_keep(oob->at.fd); /* accepted sockets inherit the options */
    trib_verbs_watch_fd(v, oob->at.fd);
    return TRIB_OK;
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

    for (; oob->n_pending; oob->n_pending--) {
        close(oob->pending[oob->n_pending - 1]->fd);
        free(oob->pending[oob->n_pending - 1]);
    }
    free(oob->pending);
    oob->pending = NULL;
    if (oob->at.fd >= 0)
        close(oob->at.fd);
    if (oob->epoll >= 0)
        close(oob->epoll);
    oob->at.fd = oob->epoll = -1;
}

/* Remove a pending connection. Close it unless a link has taken it over. */
static void remove_pending(struct verbs *v, int at, bool close_fd)
{
    struct verbs_oob_listener *oob = &v->oob;
    assert(at >= 0 && at < oob->n_pending);
    struct verbs_pending_conn *c = oob->pending[at];
    if (close_fd) {
        trib_verbs_unwatch_fd(v, c->fd);
        (void)shutdown(c->fd, SHUT_WR);
        close(c->fd);
    }
    free(c);
    oob->pending[at] = oob->pending[--oob->n_pending];
}

static void send_reply(const struct verbs *v, const struct verbs_pending_conn *c,
                       struct verbs_oob_reply *reply)
{
    int fd = c->fd;

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
    link->path = (struct verbs_path){
        .way = pair.way,
        .own = own.gid[pair.own],
        .peer = request->table.gid[pair.peer],
        .lid = request->table.lid,
        .global = pair.global,
        .mtu = pair.mtu,
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
    return true;
}

static void warn_of_rank(struct verbs *v, const struct verbs_pending_conn *c,
                         const struct verbs_hello *hello, unsigned refusal)
{
    char what[120];

    snprintf(what, sizeof(what),
             "requested a connection as rank %d (process %d): reason %u", hello->rank,
             hello->pid, refusal);
    trib_unauthenticated_warn(&v->unauthenticated, v->log, "verbs", c->ip,
                              v->oob.at.port, what);
}

/* Handle a complete request. Return true if the connection became the peer's inlet.
 * Call with `links` held. */
static bool accept_request(struct verbs *v, struct verbs_pending_conn *c,
                           const struct verbs_oob_request *request,
                           struct verbs_link *trash)
{
    struct verbs_link link = {.by_oob = true, .oob_fd = c->fd};
    struct verbs_oob_reply reply = {0};
    enum verbs_refusal verdict;
    struct verbs_peer *p = trib_verbs_check_hello(v, &request->hello, true, &verdict);

    assert(verbs_links_held(v));
    reply.answer.refusal = (uint8_t)verdict;
    if (!p || !make_inlet(v, p, request, &link, &reply)) {
        if (reply.answer.refusal != VERBS_LEFT)
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
    /* The peer's writes may arrive before our reply. */
    atomic_store_explicit(&p->piece_shift, request->hello.piece_shift,
                          memory_order_relaxed);
    trib_verbs_route_put(v, link.qp->qp_num,
                         (struct verbs_route){.peer = request->hello.rank});
    send_reply(v, c, &reply);
    return true;
}

/* Send the challenge for a complete request. Return false if the request is refused. */
static bool send_challenge(struct verbs *v, struct verbs_pending_conn *c,
                           const struct verbs_oob_request *request)
{
    struct verbs_oob_reply reply = {0};
    enum verbs_refusal verdict;

    assert(verbs_has_secret(v) && c->proof.step == TRIB_PROOF_NEW);
    pthread_mutex_lock(&v->links);
    bool fits = trib_verbs_check_hello(v, &request->hello, true, &verdict) != NULL;
    pthread_mutex_unlock(&v->links);
    reply.answer.refusal = (uint8_t)verdict;
    fits = fits && trib_verbs_challenge(v, &request->hello, c->bytes, c->have,
                                        &c->proof, &reply.answer);
    if (!fits && verdict != VERBS_LEFT)
        warn_of_rank(v, c, &request->hello, reply.answer.refusal);
    c->have = 0;
    send_reply(v, c, &reply);
    return fits;
}

static void refuse_pending(struct verbs *v, struct verbs_pending_conn *c,
                           enum verbs_parsed parsed)
{
    struct verbs_oob_reply reply = {0};

    reply.answer.refusal =
        parsed == VERBS_PARSED_VERSION ? VERBS_OTHER_VERSION : VERBS_NONSENSE;
    if (parsed == VERBS_PARSED_VERSION || parsed == VERBS_PARSED_NONSENSE)
        send_reply(v, c, &reply);
    const bool challenged = c->proof.step != TRIB_PROOF_NEW;
    if (challenged && parsed == VERBS_PARSED_PART)
        return; /* may be a rank that has died or disconnected since */
    trib_unauthenticated_warn(
        &v->unauthenticated, v->log, "verbs", c->ip, v->oob.at.port,
        challenged                        ? TRIB_PROOF_UNPROVED
        : parsed == VERBS_PARSED_VERSION  ? "uses another version of the verbs protocol"
        : parsed == VERBS_PARSED_NONSENSE ? "sent a malformed request"
                                          : "did not send a valid hello");
}

/* Read the next bytes of a request, or of the proof that follows it. */
static ssize_t recv_pending(struct verbs_pending_conn *c)
{
    const bool challenged = c->proof.step != TRIB_PROOF_NEW;
    uint8_t *at = challenged ? c->answer : c->bytes;
    size_t most = challenged ? sizeof(c->answer) : sizeof(c->bytes);
    ssize_t n = recv(c->fd, at + c->have, most - c->have, 0);

    assert(c->have <= most);
    c->have += n > 0 ? (size_t)n : 0;
    return n;
}

/* Check the proof. Return VERBS_PARSED_PART while it is incomplete. */
static enum verbs_parsed check_proof(const struct verbs *v,
                                     struct verbs_pending_conn *c,
                                     struct verbs_oob_request *request)
{
    if (c->have < sizeof(c->answer))
        return VERBS_PARSED_PART;
    (void)trib_verbs_oob_request_parse(c->bytes, c->proof.request_bytes, request);
    return trib_proof_check(v->secret, &c->proof, c->answer, sizeof(c->answer))
               ? VERBS_PARSED_ALL
               : VERBS_PARSED_STRANGER;
}

static void read_pending(struct verbs *v, int at)
{
    struct verbs_pending_conn *c = v->oob.pending[at];
    struct verbs_link trash = {0};
    struct verbs_oob_request request;
    bool taken = false;
    ssize_t n = recv_pending(c);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    const bool challenged = c->proof.step != TRIB_PROOF_NEW;
    enum verbs_parsed parsed =
        challenged ? check_proof(v, c, &request)
                   : trib_verbs_oob_request_parse(c->bytes, c->have, &request);
    if (parsed == VERBS_PARSED_PART && n > 0)
        return;
    if (parsed == VERBS_PARSED_ALL && verbs_has_secret(v) && !challenged) {
        if (!send_challenge(v, c, &request))
            remove_pending(v, at, true);
        return;
    }
    if (parsed == VERBS_PARSED_ALL) {
        pthread_mutex_lock(&v->links);
        taken = accept_request(v, c, &request, &trash);
        pthread_mutex_unlock(&v->links);
    } else {
        refuse_pending(v, c, parsed);
    }
    remove_pending(v, at, !taken);
    trib_verbs_link_drop(v, &trash);
}

/* Finish pending connections with a complete request first. Then evict the one with the
 * earliest deadline. */
static void evict_pending(struct verbs *v)
{
    struct verbs_oob_listener *oob = &v->oob;
    int first = 0;

    for (int i = oob->n_pending - 1; i >= 0 && oob->n_pending == oob->max_pending; i--)
        read_pending(v, i);
    if (oob->n_pending < oob->max_pending)
        return;
    for (int i = 1; i < oob->n_pending; i++) {
        if (oob->pending[i]->until < oob->pending[first]->until)
            first = i;
    }
    refuse_pending(v, oob->pending[first], VERBS_PARSED_STRANGER);
    remove_pending(v, first, true);
}

/* Wait briefly after a failed accept: the listener stays readable. */
static void pause_accept(struct verbs *v, int error)
{
    const struct timespec nap = {0, 10000000};

    if (trib_accept_failed(&v->oob.pause, error)) {
        errno = error;
        trib_log(v->log, TRIB_LOG_WARN, "verbs",
                 "rank %d cannot accept connections from peers: %m (%s)", v->self,
                 trib_accept_cure(error));
    }
    if (trib_accept_paused(&v->oob.pause))
        nanosleep(&nap, NULL);
}

static void accept_pending(struct verbs *v)
{
    struct verbs_oob_listener *oob = &v->oob;
    uint8_t ip[16];

    for (int i = 0; i < oob->max_pending; i++) { /* the rest waits for the next call */
        int fd = trib_net_accept(&oob->at, ip);
        if (fd < 0) {
            pause_accept(v, errno);
            return;
        }
        struct verbs_pending_conn *c = calloc(1, sizeof(*c));
        if (!c) {
            close(fd);
            return;
        }
        evict_pending(v);
        c->fd = fd;
        memcpy(c->ip, ip, sizeof(c->ip));
        c->until = trib_deadline_ms(REQUEST_MS);
        assert(oob->n_pending < oob->max_pending);
        oob->pending[oob->n_pending++] = c;
        trib_verbs_watch_fd(v, fd);
    }
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
    if (n > 0 && n < (ssize_t)sizeof(word))
        return false;
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

static int find_pending(const struct verbs *v, int fd)
{
    for (int i = 0; i < v->oob.n_pending; i++) {
        if (v->oob.pending[i]->fd == fd)
            return i;
    }
    return -1;
}

int trib_verbs_oob_listener_pause_ms(const struct verbs *v)
{
    return v->oob.n_pending ? CHECK_MS : -1;
}

void trib_verbs_oob_listener_poll(struct verbs *v)
{
    struct epoll_event events[EVENTS];
    int n = v->oob.epoll >= 0 ? epoll_wait(v->oob.epoll, events, EVENTS, 0) : 0;

    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        int pending_at = find_pending(v, fd);
        if (fd == v->oob.at.fd)
            accept_pending(v);
        else if (pending_at >= 0)
            read_pending(v, pending_at);
        else
            handle_oob_fd(v, fd);
    }
    for (int i = v->oob.n_pending - 1; i >= 0; i--) {
        if (!trib_deadline_passed(v->oob.pending[i]->until))
            continue;
        refuse_pending(v, v->oob.pending[i], VERBS_PARSED_STRANGER);
        remove_pending(v, i, true);
    }
}
