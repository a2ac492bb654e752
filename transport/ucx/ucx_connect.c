/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: connecting. Two ranks first verify over a socket that they belong together, then
 * create UCX endpoints. connect returns when its endpoint is up, or reports which step
 * failed.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/dial.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/ucx/ucx.h"

/* Minimum for the whole handshake: the host may be busy. */
#define CONNECT_MS 8000

trib_status_t trib_ucx_address(struct trib_transport *t, struct trib_address *out)
{
    const struct ucx *u = ucx_of(t);

    trib_ip_endpoint_address(&u->local, u->listener.port, u->log, out);
    return TRIB_OK;
}

trib_status_t trib_ucx_reach(struct trib_transport *t, int peer,
                             const struct trib_address *address)
{
    const struct ucx *u = ucx_of(t);
    const struct trib_peers peers = ucx_peers(u);
    struct trib_ip_address a;

    return trib_ip_endpoint_read(&u->local, &peers, peer, address, &a);
}

/* An outgoing connection during its handshake. */
struct call {
    struct ucx *u;
    int peer;
    struct trib_dialled dialled;
    uint64_t checked_at; /* for trib_peer_liveness_due */
    const struct trib_ip_address *address;
    struct trib_proof proof;
};

/* Return true unless the peer is known to have died, or was stopped for
 * stop_timeout_ms. */
static bool is_alive(void *arg)
{
    struct call *c = arg;
    char why[TRIB_WHY_MAX];

    return !trib_peer_liveness_lost(&c->u->peers[c->peer].base.liveness,
                                    trib_peer_liveness_due(&c->checked_at),
                                    c->u->cfg->stop_timeout_ms, why, sizeof(why));
}

static bool send_hello(const struct ucx *u, struct call *c)
{
    struct ucx_hello hello = {
        .magic = UCX_MAGIC,
        .version = UCX_VERSION,
        .rank = u->self,
        .size = u->size,
        .key = c->address->key,
        .settings = u->settings,
        .release = u->release,
        .name_len = (uint32_t)u->name_len,
        .flags = ucx_flags(u),
    };

    if (!trib_ucx_begin_proof(u, c->peer, &hello, &c->proof))
        return false;
    /* The send buffer of a new socket has room for both. */
    return send(c->dialled.fd, &hello, sizeof(hello), MSG_NOSIGNAL | MSG_MORE) ==
               sizeof(hello) &&
           send(c->dialled.fd, u->name, u->name_len, MSG_NOSIGNAL) ==
               (ssize_t)u->name_len;
}

/* Report why a hello got no answer. */
static trib_status_t unanswered(struct ucx *u, const struct trib_ip_address *a,
                                int error)
{
    if (error == ETIMEDOUT || error == ECANCELED)
        return trib_fail(u->err, TRIB_ERR_PEER_LOST,
                         "process %d does not answer at port %u: is it stopped?",
                         a->pid, a->port);
    if (error == 0 || error == ECONNRESET)
        return trib_fail(u->err, TRIB_ERR_PEER_LOST,
                         "process %d has died, or port %u now belongs to another "
                         "process",
                         a->pid, a->port);
    errno = error;
    return trib_fail(u->err, TRIB_ERR_PEER_LOST, "handshake with process %d failed: %m",
                     a->pid);
}

/* The process that listens at this port is not the peer. */
static trib_status_t fail_wrong_process(struct ucx *u, const struct trib_ip_address *a)
{
    return trib_fail(u->err, TRIB_ERR_PEER_LOST,
                     "the process that answers at port %u is not process %d of this "
                     "job",
                     a->port, a->pid);
}

/* Authenticate both sides by the job's secret. `control` holds the listener's first
 * control message and receives the one after the challenge. */
static trib_status_t answer_challenge(struct ucx *u, struct call *c,
                                      struct ucx_control *control)
{
    struct trib_challenge challenge;
    uint8_t proof[TRIB_PROOF_BYTES];

    if (control->magic == UCX_MAGIC && control->kind == UCX_REFUSE)
        return TRIB_OK; /* the caller reports why */
    if (control->magic != UCX_MAGIC || control->kind != UCX_CHALLENGE)
        return fail_wrong_process(u, c->address);
    if (!trib_dial_receive(&c->dialled, &challenge, sizeof(challenge)))
        return unanswered(u, c->address, errno);
    bool right = trib_proof_answer(u->secret, &c->proof, &challenge, proof);
    bool sent = trib_dial_send(&c->dialled, proof, sizeof(proof));
    if (!right)
        return trib_fail(
            u->err, TRIB_ERR_PEER_LOST,
            "authentication failed: process %d, or another that answers in its "
            "place, " TRIB_PROOF_OTHER_SECRET,
            c->address->pid);
    u->peers[c->peer].out_key = trib_ucx_message_key(u, &c->proof);
    if (!sent || !trib_dial_receive(&c->dialled, control, sizeof(*control)))
        return unanswered(u, c->address, errno);
    return TRIB_OK;
}

/* Exchange hello and answer. *name_out receives the peer's worker address, to be freed
 * by the caller. */
static trib_status_t handshake(struct ucx *u, struct call *c, void **name_out)
{
    const struct trib_ip_address *a = c->address;
    struct ucx_control control;
    char why[TRIB_WHY_MAX];

    assert(c->dialled.fd >= 0);
    *name_out = NULL;
    if (!send_hello(u, c) || !trib_dial_receive(&c->dialled, &control, sizeof(control)))
        return unanswered(u, a, errno);
    trib_status_t status =
        ucx_has_secret(u) ? answer_challenge(u, c, &control) : TRIB_OK;
    if (status != TRIB_OK)
        return status;
    if (control.magic == UCX_MAGIC && control.kind == UCX_REFUSE) {
        trib_ucx_refusal_text(control.value, why, sizeof(why));
        return trib_fail(u->err, TRIB_ERR_PEER_LOST, "process %d refused rank %d: %s",
                         a->pid, u->self, why);
    }
    if (control.magic != UCX_MAGIC || control.kind != UCX_WELCOME ||
        control.value == 0 || control.value > UCX_NAME_MAX)
        return fail_wrong_process(u, a);
    void *name = trib_ucx_name_room((size_t)control.value);
    if (!name)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (!trib_dial_receive(&c->dialled, name, (size_t)control.value)) {
        free(name);
        return unanswered(u, a, errno);
    }
    *name_out = name;
    return TRIB_OK;
}

static bool has_ended(struct ucx *u, int peer)
{
    pthread_mutex_lock(&u->links);
    bool ended = u->peers[peer].gone || u->peers[peer].got_disconnect;
    pthread_mutex_unlock(&u->links);
    return ended;
}

/* UCX connects with the first message, so flush one. */
static trib_status_t wire_up(struct ucx *u, struct call *c, const void *name)
{
    int peer = c->peer;
    struct ucx_peer *p = &u->peers[peer];
    const char *why = "UCX did not connect to it in time; on both hosts select "
                      "networks that reach the other (UCX_NET_DEVICES), and open UCX's "
                      "ports (UCX_TCP_PORT_RANGE)";

    assert(name);
    pthread_mutex_lock(&u->lock);
    ucs_status_t made = trib_ucx_endpoint(u, peer, name);
    trib_status_t status = made == UCS_OK ? trib_ucx_send_first(u, peer) : TRIB_OK;
    pthread_mutex_unlock(&u->lock);
    if (made != UCS_OK)
        return trib_fail(u->err, TRIB_ERR_PEER_LOST, "process %d: %s", p->base.who.pid,
                         trib_ucx_status_text(&u->api, made));
    /* Flush in slices, to notice if the peer dies. */
    for (bool up = false; status == TRIB_OK && !up;) {
        up = trib_ucx_flush(u, peer, trib_deadline_ms(TRIB_DIAL_ALIVE_MS));
        if (up) {
            trib_ucx_send_control(u, peer, UCX_UP, 0);
            return TRIB_OK;
        }
        if (has_ended(u, peer))
            return trib_fail(u->err, TRIB_ERR_PEER_LOST,
                             "process %d closed its connection", p->base.who.pid);
        pthread_mutex_lock(&u->lock);
        ucs_status_t fault = p->fault;
        pthread_mutex_unlock(&u->lock);
        if (fault == UCS_OK && !trib_idle_call(u->idle) &&
            !trib_deadline_passed(c->dialled.deadline) && is_alive(c))
            continue;
        status =
            trib_fail(u->err, TRIB_ERR_PEER_LOST, "process %d: %s", p->base.who.pid,
                      fault == UCS_OK ? why : trib_ucx_status_text(&u->api, fault));
    }
    return status;
}

/* Close the endpoint of a failed connection; UCX would keep trying to connect it. */
static void undo_connect(struct ucx *u, int peer)
{
    struct ucx_peer *p = &u->peers[peer];

    pthread_mutex_lock(&u->links);
    trib_ucx_close_fd(u, &p->out);
    bool has_other = p->in >= 0 && !p->gone;
    pthread_mutex_unlock(&u->links);
    pthread_mutex_lock(&u->lock);
    if (!has_other || p->fault != UCS_OK)
        trib_ucx_endpoint_close(u, peer);
    pthread_mutex_unlock(&u->lock);
}

static trib_status_t connect_peer(struct ucx *u, struct call *c)
{
    struct ucx_peer *p = &u->peers[c->peer];
    void *name;
    trib_status_t status = handshake(u, c, &name);

    if (status != TRIB_OK) {
        close(c->dialled.fd);
        return status;
    }
    pthread_mutex_lock(&u->links);
    p->out = c->dialled.fd;
    trib_ucx_watch_fd(u, p->out, c->peer, true);
    pthread_mutex_unlock(&u->links);
    status = wire_up(u, c, name);
    free(name);
    if (status != TRIB_OK)
        undo_connect(u, c->peer);
    return status;
}

trib_status_t trib_ucx_connect(struct trib_transport *t, int peer,
                               const struct trib_address *address)
{
    struct ucx *u = ucx_of(t);
    const struct trib_peers peers = ucx_peers(u);
    struct trib_ip_address a;
    struct trib_net_found found;
    trib_status_t status = trib_ip_endpoint_read(&u->local, &peers, peer, address, &a);

    if (status != TRIB_OK || u->peers[peer].base.state == TRIB_PEER_CONNECTED)
        return status;
    struct ucx_peer *p = &u->peers[peer];
    int fd;
    status = trib_ip_endpoint_connect(&u->local, &a, u->err, &fd, &found);
    if (status != TRIB_OK)
        return status;
    p->key = p->out_key = a.key;
    const struct trib_ip_identity who = trib_ip_identity_of(&a);
    trib_ip_endpoint_watch(&u->local, peer, &who, found.ip, &p->base);
    const int stop_ms = u->cfg->stop_timeout_ms;
    struct call call = {
        .u = u,
        .peer = peer,
        .dialled = {.fd = fd,
                    .deadline = trib_limit_deadline(
                        stop_ms && stop_ms < CONNECT_MS ? CONNECT_MS : stop_ms),
                    .idle = u->idle,
                    .is_alive = is_alive,
                    .arg = &call},
        .checked_at = trib_now_ns(),
        .address = &a};
    status = connect_peer(u, &call);
    if (status != TRIB_OK) {
        trib_peer_liveness_end(&p->base.liveness);
        return status;
    }
    p->base.state = TRIB_PEER_CONNECTED;
    return TRIB_OK;
}
