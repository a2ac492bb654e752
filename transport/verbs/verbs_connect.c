/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: connecting to peers.
 *
 * The addresses of a peer are tried in turn. Each attempt has its own event channel, so
 * that the calling thread waits only for events of this attempt. A connected id
 * migrates to the manager's channel, which then reports its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"

enum {
    RESOLVE_MS = 2000, /* for a neighbour's link-layer address */
    ANSWER_MS = 8000, /* for the peer's manager: its host may be busy */
    SLACK_MS = 1000,
    AGAIN_MS = 50, /* between requests to a peer that accepts later ones */
};

/* One attempt at one address. */
struct attempt {
    struct verbs *v;
    struct rdma_event_channel *channel;
    struct verbs_link link;
    struct verbs_answer answer;
    int peer;
    struct trib_proof proof; /* TRIB_PROOF_DONE: the peer has proved that it has the
                              * secret; next this rank does, by `response` */
    uint8_t response[TRIB_PROOF_BYTES];
    uint64_t until; /* of all attempts for this peer */
    char at[VERBS_IP_TEXT];
    trib_status_t status;
    bool no_listener; /* the peer's process no longer listens */
    char why[256];
};

static bool fail(struct attempt *a, trib_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct attempt *a, trib_status_t status, const char *format, ...)
{
    va_list args;

    assert(status != TRIB_OK);
    va_start(args, format);
    vsnprintf(a->why, sizeof(a->why), format, args);
    va_end(args);
    a->status = status;
    return false;
}

/* Report the peer's refusal, or the connection manager's reason code. */
static void explain_rejection(struct attempt *a, int reason)
{
    const struct verbs_answer *said = &a->answer;

    if (said->magic == VERBS_MAGIC) {
        bool differs = said->refusal == VERBS_OTHER_VERSION ||
                       said->refusal == VERBS_OTHER_SETTINGS;
        fail(a, differs ? TRIB_ERR_MISMATCH : TRIB_ERR_PEER_LOST, "it refused: %s",
             trib_verbs_refusal_text(said->refusal));
    } else if (reason == 8) { /* invalid service id */
        a->no_listener = true;
        fail(a, TRIB_ERR_PEER_LOST, "no process listens there: it has ended");
    } else {
        fail(a, TRIB_ERR_PEER_LOST, "its host refused: librdmacm reason %d", reason);
    }
}

static void explain_event(struct attempt *a, enum rdma_cm_event_type event, int status)
{
    errno = status < 0 ? -status : status;
    switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
        fail(a, TRIB_ERR_PEER_LOST,
             "no RDMA device of this host reaches it: %m; check ip route get and ip "
             "neigh");
        break;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        fail(a, TRIB_ERR_PEER_LOST,
             "no route: %m; on InfiniBand, is a subnet manager running?");
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        fail(a, TRIB_ERR_PEER_LOST,
             "no answer; with RoCE, UDP port 4791 must be open: try rping");
        break;
    case RDMA_CM_EVENT_REJECTED:
        explain_rejection(a, status);
        break;
    default:
        fail(a, TRIB_ERR_PEER_LOST, "librdmacm reports event %d, status %d", (int)event,
             status);
        break;
    }
}

/* Wait for the next event of this attempt. Fail unless it is `wanted`. */
static bool await_event(struct attempt *a, enum rdma_cm_event_type wanted, int ms)
{
    struct rdma_cm_event *event = NULL;
    int left = trib_deadline_left_ms(a->until);

    ms = left < ms ? left : ms;
    uint64_t until = trib_deadline_ms(ms);
    while (a->v->api.rdma_get_cm_event(a->channel, &event) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return fail(a, TRIB_ERR_SYSTEM, "librdmacm: %m");
        if (!trib_wait_fd(a->channel->fd, POLLIN, until, a->v->idle))
            return fail(a, TRIB_ERR_PEER_LOST,
                        "no answer for %.1f s; with RoCE, UDP port 4791 must be open: "
                        "try rping",
                        (double)ms / 1000);
    }
    const struct rdma_conn_param *said = &event->param.conn;
    memset(&a->answer, 0, sizeof(a->answer));
    if ((event->event == RDMA_CM_EVENT_REJECTED ||
         event->event == RDMA_CM_EVENT_CONNECT_RESPONSE) &&
        said->private_data && said->private_data_len >= sizeof(a->answer))
        memcpy(&a->answer, said->private_data, sizeof(a->answer));
    bool right = event->event == wanted && event->status == 0;
    if (!right)
        explain_event(a, event->event, event->status);
    (void)a->v->api.rdma_ack_cm_event(event);
    return right;
}

static bool resolve(struct attempt *a, const struct verbs_ip *ip, uint16_t port)
{
    struct verbs *v = a->v;
    struct sockaddr_storage address;

    verbs_ip_socket(ip, port, &address);
    if (!trib_verbs_set_class(v, a->link.id))
        return fail(a, TRIB_ERR_SYSTEM, "rdma_set_option: %m");
    if (v->api.rdma_resolve_addr(a->link.id, NULL, (struct sockaddr *)&address,
                                 RESOLVE_MS) != 0)
        return fail(a, TRIB_ERR_PEER_LOST,
                    "no RDMA device of this host reaches it: %m; check ip route get");
    if (!await_event(a, RDMA_CM_EVENT_ADDR_RESOLVED, RESOLVE_MS + SLACK_MS))
        return false;
    if (!trib_verbs_is_own(v, a->link.id)) {
        struct verbs_port way = {.number = v->one_port ? a->link.id->port_num : 0};
        char text[VERBS_PORT_TEXT];
        snprintf(way.device, sizeof(way.device), "%s", a->link.id->verbs->device->name);
        return fail(a, TRIB_ERR_PEER_LOST,
                    "the route uses %s, but this rank uses %s; select a device with "
                    "verbs:device=NAME",
                    trib_verbs_port_text(&way, text), v->label);
    }
    if (v->api.rdma_resolve_route(a->link.id, RESOLVE_MS) != 0)
        return fail(a, TRIB_ERR_PEER_LOST, "no route: %m");
    return await_event(a, RDMA_CM_EVENT_ROUTE_RESOLVED, RESOLVE_MS + SLACK_MS);
}

/* Fill in the first request, or the second one with the proof. Return false if there
 * are no random bytes. */
static bool fill_hello(struct attempt *a, struct verbs_hello *hello)
{
    if (a->proof.step != TRIB_PROOF_DONE)
        return trib_verbs_begin_hello(a->v, a->peer, hello, &a->proof);
    hello->step = VERBS_PROVES;
    memcpy(hello->proof, a->response, sizeof(hello->proof));
    return true;
}

static bool handshake(struct attempt *a, const struct verbs_address *address)
{
    assert(a->link.id);
    struct verbs *v = a->v;
    const uint8_t mtu = trib_verbs_port_mtu(v);
    struct verbs_hello hello = {
        .magic = VERBS_MAGIC,
        .version = VERBS_VERSION,
        .sizes = verbs_sizes(mtu, verbs_out_shift(v, address)),
        .caps = trib_verbs_caps(v),
        .rank = v->self,
        .pid = v->local.me.pid,
        .key = address->key,
        .settings = v->settings,
    };
    if (!fill_hello(a, &hello))
        return fail(a, TRIB_ERR_SYSTEM, "getrandom: %m");
    if (!trib_verbs_manager_shares(v, a->link.id, address->pkey, a->why,
                                   sizeof(a->why))) {
        a->status = TRIB_ERR_PEER_LOST;
        return false;
    }
    int error = trib_verbs_link_make(v, &a->link, a->link.id->context, true);

    if (error) {
        errno = error;
        return fail(a, TRIB_ERR_NO_RESOURCE,
                    "cannot create a queue pair of %u requests on %s: %m%s", v->depth,
                    v->label, trib_verbs_errno_cure(error));
    }
    struct rdma_conn_param param =
        trib_verbs_conn_param(v, &a->link, &hello, sizeof(hello));
    if (v->api.rdma_connect(a->link.id, &param) != 0)
        return fail(a, TRIB_ERR_SYSTEM, "rdma_connect: %m");
    if (!await_event(a, RDMA_CM_EVENT_CONNECT_RESPONSE, ANSWER_MS))
        return false;
    if (a->answer.magic != VERBS_MAGIC || a->answer.key != address->key ||
        a->answer.version != VERBS_VERSION || !verbs_is_mtu(a->answer.mtu) ||
        (verbs_has_secret(v) && a->proof.step != TRIB_PROOF_DONE) ||
        !trib_verbs_check_answer(v, &a->proof, &a->answer, sizeof(a->answer)))
        return fail(a, TRIB_ERR_PEER_LOST,
                    "the process that answers there is not the peer");
    a->link.mtu = a->answer.mtu < mtu ? a->answer.mtu : mtu;
    error = trib_verbs_link_ready(v, &a->link);
    if (error) {
        errno = error;
        return fail(a, TRIB_ERR_SYSTEM, "cannot make the queue pair ready: %m");
    }
    if (v->api.rdma_establish(a->link.id) != 0)
        return fail(a, TRIB_ERR_SYSTEM, "rdma_establish: %m");
    return true;
}

/* Try one address. Release all resources of the attempt, except a connected link. */
static bool try_address(struct attempt *a, struct verbs_peer *p,
                        const struct verbs_address *address, const struct verbs_ip *ip)
{
    struct verbs *v = a->v;
    bool connected = false;

    a->channel = v->api.rdma_create_event_channel();
    if (!a->channel)
        return fail(a, TRIB_ERR_SYSTEM, "cannot create an event channel: %m");
    if (fcntl(a->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
        v->api.rdma_create_id(a->channel, &a->link.id, p, RDMA_PS_TCP) != 0)
        fail(a, TRIB_ERR_SYSTEM, "cannot create an id: %m");
    else
        connected = resolve(a, ip, address->port) && handshake(a, address);
    if (connected) {
        /* Events of the id may arrive as soon as it has migrated: the manager must find
         * it. */
        pthread_mutex_lock(&v->links);
        connected = v->api.rdma_migrate_id(a->link.id, v->events) == 0 ||
                    fail(a, TRIB_ERR_SYSTEM, "rdma_migrate_id: %m");
        if (connected) {
            p->out = a->link;
            p->where = *ip;
            trib_verbs_route_put(
                v, p->out.qp->qp_num,
                (struct verbs_route){.peer = (int)(p - v->peers), .outlet = true});
        }
        pthread_mutex_unlock(&v->links);
    }
    if (!connected)
        trib_verbs_link_drop(v, &a->link);
    v->api.rdma_destroy_event_channel(a->channel);
    return connected;
}

/* Send a request. If it is answered by a challenge, send a second one with the
 * proof. */
static bool try_with_proof(struct attempt *a, const struct verbs_address *address,
                           const struct verbs_ip *ip)
{
    struct verbs *v = a->v;
    struct verbs_peer *p = &v->peers[a->peer];

    a->proof.step = TRIB_PROOF_NEW;
    if (try_address(a, p, address, ip))
        return true;
    if (!verbs_has_secret(v) || a->answer.magic != VERBS_MAGIC ||
        a->answer.key != address->key || a->answer.refusal != VERBS_CHALLENGE)
        return false;
    if (!trib_proof_answer(v->secret, &a->proof, &a->answer.challenge, a->response)) {
        memset(&a->answer, 0, sizeof(a->answer));
        return fail(a, TRIB_ERR_PEER_LOST,
                    "authentication failed: the peer " TRIB_PROOF_OTHER_SECRET);
    }
    return try_address(a, p, address, ip);
}

/* Connect through librdmacm. Return true if connected, or if the peer itself
 * refused. */
static bool connect_by_rdmacm(struct attempt *a, int peer,
                              const struct verbs_address *address)
{
    struct verbs *v = a->v;

    a->peer = peer;
    snprintf(a->at, sizeof(a->at), "any address");
    snprintf(a->why, sizeof(a->why), "this host has each of its addresses, too");
    a->status = TRIB_ERR_PEER_LOST;
    for (uint16_t i = 0; i < address->n; i++) {
        if (trib_verbs_leads_back(v, address, &address->ip[i]))
            continue;
        verbs_ip_text(&address->ip[i], a->at);
        if (try_with_proof(a, address, &address->ip[i])) {
            a->status = TRIB_OK;
            return true;
        }
        if (a->answer.magic == VERBS_MAGIC && a->answer.key == address->key)
            return true;
        if (trib_deadline_passed(a->until))
            break;
    }
    return false;
}

/* Return true if both sides support OOB requests. Otherwise `why` receives the
 * reason. */
static bool may_use_oob(const struct verbs *v, const struct verbs_address *a, char *why,
                        size_t bytes)
{
    if (v->connect == VERBS_BY_RDMACM)
        snprintf(why, bytes, "disabled by verbs:connect=rdmacm");
    else if (v->oob.at.fd < 0)
        snprintf(why, bytes, "this rank has no GIDs to offer");
    else if (!a->oob_port)
        snprintf(why, bytes,
                 "the peer accepts no requests over TCP: does it use "
                 "verbs:connect=rdmacm?");
    else if (a->layer && v->layer && a->layer != v->layer)
        snprintf(why, bytes, "%s", trib_verbs_way_text(VERBS_NO_COMMON_LAYER));
    else
        return true;
    return false;
}

/* Connect out of band, by GIDs. */
static void connect_by_oob(struct attempt *a, int peer,
                           const struct verbs_address *address)
{
    a->status = TRIB_ERR_PEER_LOST;
    if (!may_use_oob(a->v, address, a->why, sizeof(a->why)))
        return;
    errno = 0;
    a->status = trib_verbs_oob_connect(a->v, peer, address, a->until, a->why,
                                       sizeof(a->why), &a->answer);
    a->no_listener = a->status != TRIB_OK && errno == ECONNREFUSED;
    verbs_ip_text(&a->v->peers[peer].where, a->at);
}

/* Explain a failure. Return its status. */
static trib_status_t explain_failure(const struct verbs *v, int peer,
                                     const struct verbs_address *address,
                                     const struct attempt *by_manager,
                                     const struct attempt *by_oob,
                                     char text[VERBS_FAILURE_TEXT])
{
    const struct attempt *last = *by_oob->why ? by_oob : by_manager;
    const struct attempt *tried = *by_oob->at || !*by_manager->at ? by_oob : by_manager;
    bool both = *by_oob->why && *by_manager->why;

    snprintf(text, VERBS_FAILURE_TEXT,
             "rank %d (process %d) cannot reach rank %d (process %d) over verbs at "
             "%s port %u: %s%s%s",
             v->self, v->local.me.pid, peer, address->pid,
             *tried->at ? tried->at : "any address",
             tried == by_oob ? address->oob_port : address->port,
             both ? by_manager->why : "", both ? "; by GIDs: " : "", last->why);
    return last->status;
}

trib_status_t trib_verbs_check_address(struct verbs *v, int peer,
                                       const struct trib_address *blob,
                                       struct verbs_choice *out)
{
    const struct trib_peers peers = verbs_peers(v);
    trib_status_t status = trib_peer_check_connect(&peers, peer);

    if (status != TRIB_OK || v->peers[peer].base.state == TRIB_PEER_CONNECTED)
        return status;
    if (!verbs_is_ours(v))
        return trib_verbs_forked(v);
    if (verbs_device_end(v)) {
        char why[TRIB_WHY_MAX];
        trib_verbs_device_end_text(v, why);
        return trib_fail(v->err, TRIB_ERR_PEER_LOST, "%s", why);
    }
    trib_verbs_choices(v, blob, out);
    if (out->n == 0)
        return trib_fail(v->err, TRIB_ERR_INVALID, "peer %d: not an address of verbs",
                         peer);
    return TRIB_OK;
}

trib_status_t trib_verbs_reach(struct trib_transport *t, int peer,
                               const struct trib_address *address)
{
    struct verbs_choice choice;

    return trib_verbs_check_address(verbs_of(t), peer, address, &choice);
}

void trib_verbs_set_connected(struct verbs *v, int peer, const struct verbs_address *a)
{
    struct verbs_peer *p = &v->peers[peer];
    const struct trib_ip_identity who = {
        .who = {.pid = a->pid, .start = a->start, .space = a->space, .boot = a->boot},
        .heartbeat_port = a->heartbeat_port,
        .heartbeat_key = a->heartbeat_key,
    };

    assert(p->out.qp && p->base.state == TRIB_PEER_UNKNOWN);
    p->key = a->key;
    trib_ip_endpoint_watch(&v->local, peer, &who, p->where.bytes, &p->base);
    trib_log(v->log, TRIB_LOG_DEBUG, "verbs",
             "rank %d to rank %d: messages of up to %lu bytes; its port has %sshared "
             "receive queues",
             v->self, peer, 1ul << verbs_out_shift(v, a),
             a->caps & VERBS_HAS_SRQ ? "" : "no ");
    trib_spin_lock(&v->posting);
    p->qp = p->out.qp;
    p->piece = (size_t)1 << verbs_out_shift(v, a);
    trib_spin_unlock(&v->posting);
    p->base.state = TRIB_PEER_CONNECTED;
}

/* Try librdmacm first, because it queries the network. Then try GIDs. Return true if
 * the peer has an outlet. */
static bool make_outlet(int peer, const struct verbs_address *a,
                        struct attempt *by_manager, struct attempt *by_gids)
{
    struct verbs *v = by_manager->v;
    const bool manager = v->listener && (a->n || !a->oob_port);
    bool again = !manager;

    if (manager)
        again = !connect_by_rdmacm(by_manager, peer, a) && v->connect == VERBS_BY_BEST;
    if (manager && by_manager->status == TRIB_OK) {
        snprintf(v->peers[peer].by, sizeof(v->peers[peer].by), "librdmacm, %s",
                 by_manager->at);
        return true;
    }
    if (again)
        connect_by_oob(by_gids, peer, a);
    return again && by_gids->status == TRIB_OK;
}

/* Return true if the peer's process has refused for this reason. VERBS_TWICE: it still
 * has the connection that this rank has lost. */
static bool is_refused(const struct attempt *a, const struct verbs_address *address,
                       enum verbs_refusal why)
{
    return a->answer.magic == VERBS_MAGIC && a->answer.key == address->key &&
           a->answer.refusal == why;
}

/* Make the first outlet to a peer. A peer that has lost its own connection to this rank
 * refuses until it tries again itself: wait for that. */
static bool make_first_outlet(struct verbs *v, int peer, const struct verbs_address *a,
                              uint64_t until, struct attempt *by_manager,
                              struct attempt *by_gids)
{
    for (;;) {
        *by_manager = *by_gids = (struct attempt){.v = v, .until = until};
        if (make_outlet(peer, a, by_manager, by_gids))
            return true;
        if ((!is_refused(by_manager, a, VERBS_LEFT) &&
             !is_refused(by_gids, a, VERBS_LEFT)) ||
            trib_deadline_left_ms(until) < AGAIN_MS ||
            !trib_idle_sleep(v->idle, AGAIN_MS * UINT64_C(1000000)))
            return false;
    }
}

/* Return the reason if the peer will never accept a request, or VERBS_WELCOME. */
static enum verbs_refusal refuses_for_good(const struct attempt *manager,
                                           const struct attempt *gids,
                                           const struct verbs_address *address)
{
    static const enum verbs_refusal reasons[] = {VERBS_NO_DEVICE, VERBS_GONE};

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (is_refused(manager, address, reasons[i]) ||
            is_refused(gids, address, reasons[i]))
            return reasons[i];
    }
    return VERBS_WELCOME;
}

enum verbs_attempt trib_verbs_make_outlet(struct verbs *v, int peer,
                                          const struct verbs_address *a, uint64_t until)
{
    struct attempt manager = {.v = v, .until = until}, gids = {.v = v, .until = until};
    const bool made = make_outlet(peer, a, &manager, &gids);

    if (!made)
        trib_log(v->log, TRIB_LOG_DEBUG, "verbs",
                 "rank %d is not reached again over %s: %s%s%s", peer, v->label,
                 manager.why, *manager.why && *gids.why ? "; by GIDs: " : "", gids.why);
    const enum verbs_refusal never = refuses_for_good(&manager, &gids, a);
    v->peers[peer].never = never ? trib_verbs_refusal_text(never) : NULL;
    return made    ? VERBS_ATTEMPT_CONNECTED
           : never ? VERBS_ATTEMPT_NEVER
           : is_refused(&manager, a, VERBS_TWICE) || is_refused(&gids, a, VERBS_TWICE)
               ? VERBS_ATTEMPT_NOT_YET
           : manager.no_listener || gids.no_listener ? VERBS_ATTEMPT_NO_LISTENER
                                                     : VERBS_ATTEMPT_FAILED;
}

static trib_status_t connect_device(struct verbs *v, int peer,
                                    const struct verbs_address *a, uint64_t until)
{
    struct attempt manager, gids;
    const bool made = make_first_outlet(v, peer, a, until, &manager, &gids);

    if (made)
        trib_verbs_set_connected(v, peer, a);
    if (made && v->peers[peer].out.by_oob)
        gids.status = trib_verbs_probe_path(v, peer, until, gids.why, sizeof(gids.why));
    if (made && gids.status == TRIB_OK)
        return TRIB_OK;
    char text[VERBS_FAILURE_TEXT];
    const trib_status_t status = explain_failure(v, peer, a, &manager, &gids, text);
    return trib_fail(v->err, status, "%s", text);
}

void trib_verbs_try_devices(struct verbs *v, int peer,
                            const struct verbs_choice *choice,
                            struct verbs_outcome *out)
{
    const uint64_t end = trib_deadline_ms(v->reach_ms);

    assert(choice->n > 0 && !*out->why);
    for (int i = 0; i < choice->n; i++) {
        const int share_ms = trib_deadline_left_ms(end) / (choice->n - i);
        const uint64_t until = trib_deadline_ms(share_ms);
        struct attempt manager, gids;
        char text[VERBS_FAILURE_TEXT];
        out->at = i;
        out->status = TRIB_OK;
        if (make_first_outlet(v, peer, &choice->address[i], until, &manager, &gids))
            return;
        out->status =
            explain_failure(v, peer, &choice->address[i], &manager, &gids, text);
        if (!*out->why)
            memcpy(out->why, text, sizeof(text));
        if (out->status == TRIB_ERR_MISMATCH)
            return; /* the peer itself refused */
    }
}

/* Try the peer's devices in turn. They share the time limit. */
static trib_status_t connect_any(struct verbs *v, int peer,
                                 const struct verbs_choice *choice)
{
    uint64_t end = trib_deadline_ms(v->reach_ms);
    trib_status_t status = TRIB_ERR_PEER_LOST;

    assert(choice->n > 0);
    for (int i = 0; i < choice->n; i++) {
        int share_ms = trib_deadline_left_ms(end) / (choice->n - i);
        status =
            connect_device(v, peer, &choice->address[i], trib_deadline_ms(share_ms));
        if (status == TRIB_OK) {
            v->peers[peer].device = choice->device[i];
            v->peers[peer].address = choice->address[i];
            if (i > 0)
                trib_error_clear(v->err); /* errors of the devices tried before */
            return TRIB_OK;
        }
        if (status == TRIB_ERR_MISMATCH)
            break; /* the peer itself refused */
    }
    return v->err ? v->err->status : status;
}

trib_status_t trib_verbs_connect(struct trib_transport *t, int peer,
                                 const struct trib_address *address)
{
    struct verbs *v = verbs_of(t);
    struct verbs_choice choice;
    trib_status_t status = trib_verbs_check_address(v, peer, address, &choice);

    if (status != TRIB_OK || v->peers[peer].base.state == TRIB_PEER_CONNECTED)
        return status;
    if (v->peers[peer].outcome && !trib_deadline_passed(v->peers[peer].outcome->until))
        return trib_verbs_take_failure(v, peer);
    trib_verbs_forget_failure(v, peer);
    if (!trib_verbs_make_asked(v, peer))
        return trib_fail(v->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_idle_gate_enter(&v->gate);
    status = connect_any(v, peer, &choice);
    trib_idle_gate_leave(&v->gate);
    return status;
}
