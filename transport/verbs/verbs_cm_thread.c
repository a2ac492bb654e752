/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the manager, a thread that answers connection requests. It also records for
 * the owner which connections have ended.
 *
 * An event is handled under `links` and acknowledged afterwards, so the objects it
 * refers to still exist. Objects to be destroyed are kept until the event is
 * acknowledged.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"

enum { BACKLOG = 1024 };

static int accept_request(struct verbs *v, struct verbs_peer *p,
                          struct verbs_link *link, const struct verbs_hello *hello,
                          const struct trib_proof *proof)
{
    struct verbs_answer answer = {
        .magic = VERBS_MAGIC,
        .version = VERBS_VERSION,
        .mtu = trib_verbs_port_mtu(v),
        .key = v->local.key,
    };

    assert(link->id && !link->qp);
    link->id->context = p;
    link->mtu =
        verbs_hello_mtu(hello) < answer.mtu ? verbs_hello_mtu(hello) : answer.mtu;
    int error = trib_verbs_link_make(v, link, p, false);
    if (!error)
        error = trib_verbs_link_ready(v, link);
    if (error)
        return error;
    /* The peer's writes may arrive before it receives our answer. */
    atomic_store_explicit(&p->piece_shift, verbs_hello_piece_shift(hello),
                          memory_order_relaxed);
    trib_verbs_route_put(v, link->qp->qp_num,
                         (struct verbs_route){.peer = hello->rank});
    if (verbs_has_secret(v))
        trib_verbs_seal_answer(v, proof, &answer, sizeof(answer));
    struct rdma_conn_param param =
        trib_verbs_conn_param(v, link, &answer, sizeof(answer));
    if (v->api.rdma_accept(link->id, &param) == 0)
        return 0;
    error = errno;
    trib_verbs_route_remove(v, link->qp->qp_num);
    return error;
}

/* Get the address of the other end. Return false if it is unknown. */
static bool peer_address(const struct rdma_cm_id *id, uint8_t ip[16])
{
    const struct sockaddr *at = &id->route.addr.dst_addr;

    if (at->sa_family != AF_INET && at->sa_family != AF_INET6)
        return false;
    trib_net_ip(at, ip);
    return true;
}

static void warn_refused(struct verbs *v, struct rdma_cm_id *id, enum verbs_refusal why,
                         const struct verbs_hello *hello)
{
    uint8_t ip[16];
    char what[160];

    if (!verbs_is_foreign(why)) {
        trib_verbs_log_refusal(v, hello, why);
        return;
    }
    trib_verbs_describe_refusal(hello, why, what, sizeof(what));
    trib_unauthenticated_warn(&v->unauthenticated, v->log, "verbs",
                              peer_address(id, ip) ? ip : NULL, v->port,
                              why == VERBS_NOT_PROVED ? TRIB_PROOF_UNPROVED : what);
}

static void reject(struct verbs *v, struct rdma_cm_id *id, enum verbs_refusal why,
                   const struct verbs_hello *hello, bool superseded)
{
    struct verbs_answer answer = {.magic = VERBS_MAGIC,
                                  .version = VERBS_VERSION,
                                  .refusal = (uint8_t)why,
                                  .key = v->local.key};

    assert(why != VERBS_WELCOME);
    if (why == VERBS_CHALLENGE && !trib_verbs_open_challenge(v, hello, &answer))
        answer.refusal = VERBS_NO_ROOM;
    else if (why != VERBS_CHALLENGE && !verbs_is_quiet(why) && !superseded)
        warn_refused(v, id, why, hello);
    (void)v->api.rdma_reject(id, &answer, sizeof(answer));
}

/* If the job has a secret, answer the first request with a challenge and accept the
 * second one by its proof. */
static enum verbs_refusal check_proof(struct verbs *v, const struct verbs_hello *hello,
                                      struct trib_proof *proof_out)
{
    if (!verbs_has_secret(v))
        return VERBS_WELCOME;
    if (hello->step == VERBS_BEGINS)
        return VERBS_CHALLENGE;
    return trib_verbs_close_challenge(v, hello, proof_out) ? VERBS_WELCOME
                                                           : VERBS_NOT_PROVED;
}

/* Handle a connection request. *trash receives a connection to be destroyed once the
 * event is acknowledged. */
static void handle_request(struct verbs *v, const struct rdma_cm_event *event,
                           struct verbs_link *trash)
{
    const struct rdma_conn_param *said = &event->param.conn;
    struct verbs_link link = {.id = event->id};
    struct verbs_hello hello = {0};
    struct trib_proof proof;
    enum verbs_refusal verdict;
    bool superseded = false;

    if (said->private_data && said->private_data_len >= sizeof(hello))
        memcpy(&hello, said->private_data, sizeof(hello));
    struct verbs_peer *p =
        trib_verbs_check_hello(v, &hello, trib_verbs_is_own(v, event->id), &verdict);

    const enum verbs_refusal proved = p ? check_proof(v, &hello, &proof) : verdict;

    if (p && proved != VERBS_WELCOME)
        verdict = proved;
    else if (verdict == VERBS_TWICE)
        superseded = trib_verbs_supersede(v, p, &hello);
    if (verdict == VERBS_WELCOME) {
        int error = accept_request(v, p, &link, &hello, &proof);
        if (error == 0) {
            /* The peer has abandoned an earlier attempt; its end was not reported
             * yet. */
            if (p->in.qp)
                trib_verbs_route_remove(v, p->in.qp->qp_num);
            *trash = p->in;
            p->in = link;
            p->in_established = false;
            p->in_pid = hello.pid;
            return;
        }
        errno = error;
        trib_log(v->log, TRIB_LOG_WARN, "verbs",
                 "cannot create a queue pair for the writes of rank %d: %m",
                 hello.rank);
        verdict = VERBS_NO_ROOM;
    }
    reject(v, link.id, verdict, &hello, superseded);
    *trash = link;
}

/* Handle the end of a librdmacm connection. */
static void handle_end(struct verbs *v, const struct rdma_cm_event *event,
                       struct verbs_link *trash)
{
    struct verbs_peer *p = event->id->context;

    if (p && (event->id == p->in.id || event->id == p->out.id)) /* otherwise dropped
                                                                 * already */
        trib_verbs_link_ended(v, p, event->id == p->in.id, trash);
}

/*
 * The kernel also reports established connections as unreachable while it does not know
 * the peer's link address, for instance after a cable was pulled. The peer may be back
 * soon; if not, writes to it fail.
 */
static void handle_unreachable(struct verbs *v, const struct rdma_cm_event *event,
                               struct verbs_link *trash)
{
    struct verbs_peer *p = event->id->context;

    if (p && (event->id == p->out.id || (event->id == p->in.id && p->in_established)))
        trib_log(v->log, TRIB_LOG_INFO, "verbs", "rank %d is currently unreachable",
                 (int)(p - v->peers));
    else
        handle_end(v, event, trash);
}

static void handle_cm_event(struct verbs *v, const struct rdma_cm_event *event,
                            struct verbs_link *trash)
{
    struct verbs_peer *p;

    assert(verbs_links_held(v));
    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        handle_request(v, event, trash);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        p = event->id->context;
        if (p && event->id == p->in.id)
            p->in_established = true;
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
        handle_end(v, event, trash);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        handle_unreachable(v, event, trash);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        trib_verbs_end_device(v, "was removed");
        break;
    default: /* timewait exit, address change: no connection ends by them */
        break;
    }
}

static void read_cm_event(struct verbs *v)
{
    struct verbs_link trash = {0};
    struct rdma_cm_event *event;

    if (v->api.rdma_get_cm_event(v->events, &event) != 0)
        return;
    pthread_mutex_lock(&v->links);
    handle_cm_event(v, event, &trash);
    pthread_mutex_unlock(&v->links);
    (void)v->api.rdma_ack_cm_event(event);
    trib_verbs_link_drop(v, &trash);
}

/* Run until `stop` is signalled. A failed descriptor is no longer polled. */
static void *manager_main(void *arg)
{
    struct verbs *v = arg;
    struct pollfd fds[] = {
        {.fd = v->stop, .events = POLLIN},
        {.fd = v->listener ? v->events->fd : -1, .events = POLLIN},
        {.fd = v->oob.epoll, .events = POLLIN},
    };

    while (!fds[0].revents) {
        int n = trib_poll(fds, 3, trib_acceptor_wait_ms(&v->oob.acceptor));
        trib_verbs_oob_listener_poll(v);
        if (n <= 0)
            continue;
        if (fds[1].revents & POLLIN)
            read_cm_event(v);
        if (fds[1].revents & (POLLERR | POLLNVAL)) {
            fds[1].fd = -1;
            pthread_mutex_lock(&v->links);
            trib_verbs_end_device(v, VERBS_DISAPPEARED);
            pthread_mutex_unlock(&v->links);
        }
    }
    return NULL;
}

static int bind_port(struct verbs *v, uint16_t port)
{
    static const struct verbs_ip any_six;
    static const struct verbs_ip any_four = {{[10] = 0xff, 0xff}};
    struct sockaddr_storage address;

    verbs_ip_socket(&any_six, port, &address);
    if (v->api.rdma_bind_addr(v->listener, (struct sockaddr *)&address) == 0)
        return 0;
    if (errno == EADDRINUSE)
        return -1;
    verbs_ip_socket(&any_four, port, &address); /* for a kernel without IPv6 */
    return v->api.rdma_bind_addr(v->listener, (struct sockaddr *)&address);
}

trib_status_t trib_verbs_listen(struct verbs *v, int first_port, int ports)
{
    int bound = -1;

    assert(!v->listener);
    if (*v->no_rdmacm)
        return TRIB_OK;
    if (fcntl(v->events->fd, F_SETFL, O_NONBLOCK) != 0 ||
        v->api.rdma_create_id(v->events, &v->listener, NULL, RDMA_PS_TCP) != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM,
                         "verbs: cannot create a listener: %m");
    for (int i = 0; i < (first_port ? ports : 1) && bound != 0; i++)
        bound = bind_port(v, (uint16_t)(first_port + i));
    if (bound != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM,
                         "verbs: none of the ports %d to %d can be bound: %m (choose "
                         "others with verbs:port=N,ports=N)",
                         first_port, first_port + ports - 1);
    if (v->api.rdma_listen(v->listener, BACKLOG) != 0)
        return trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: cannot listen: %m");
    v->port = ntohs(v->api.rdma_get_src_port(v->listener));
    return TRIB_OK;
}

trib_status_t trib_verbs_manager_start(struct verbs *v)
{
    int error = trib_thread_start(&v->manager, manager_main, v);

    assert(!v->managed);
    v->managed = error == 0;
    errno = error;
    return v->managed
               ? TRIB_OK
               : trib_fail(v->err, TRIB_ERR_SYSTEM, "verbs: cannot start a thread: %m");
}

void trib_verbs_manager_stop(struct verbs *v)
{
    uint64_t one = 1;

    if (v->managed && write(v->stop, &one, sizeof(one)) == sizeof(one))
        pthread_join(v->manager, NULL);
    v->managed = false;
    if (v->listener)
        (void)v->api.rdma_destroy_id(v->listener);
    v->listener = NULL;
}
