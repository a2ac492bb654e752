/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the state of a peer. All other files change it through these functions.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "transport/verbs/verbs.h"

trib_status_t trib_verbs_no_device(struct verbs *v)
{
    if (trib_verbs_present())
        return trib_fail(
            v->err, TRIB_ERR_UNSUPPORTED,
            "verbs: /sys/class/infiniband has devices, but libibverbs finds none; load "
            "ib_uverbs, pass /dev/infiniband to containers, allow this user to read "
            "and write it, and install ibverbs-providers");
    return trib_fail(
        v->err, TRIB_ERR_UNSUPPORTED,
        "verbs: this host has no RDMA device; load the adapter's driver and ib_uverbs, "
        "install ibverbs-providers, or create a software device: rdma link add rxe0 "
        "type rxe netdev eth0 (ibv_devices lists devices)");
}

trib_status_t trib_verbs_forked(struct verbs *v)
{
    return trib_fail(
        v->err, TRIB_ERR_INVALID,
        "verbs: process %d is a forked child and cannot use the connections of process "
        "%d; call trib_init in the child",
        getpid(), v->local.me.pid);
}

void trib_verbs_device_end_text(const struct verbs *v, char why[TRIB_WHY_MAX])
{
    assert(verbs_device_end(v));
    snprintf(why, TRIB_WHY_MAX, "this host's RDMA device %s %s", v->device,
             verbs_device_end(v));
}

void trib_verbs_peer_route(struct trib_transport *t, int peer, struct trib_route *out)
{
    struct verbs *v = verbs_of(t);
    const struct verbs_peer *p = &v->peers[peer];

    assert(peer >= 0 && peer < v->size);
    out->name = t->ops->name;
    out->mbps = v->mbps;
    if (p->base.state == TRIB_PEER_CONNECTED)
        snprintf(out->why, sizeof(out->why), "%s", p->by);
    else if (*v->no_rdmacm)
        snprintf(out->why, sizeof(out->why), "asked for by name; by GIDs: %.100s",
                 v->no_rdmacm);
    else
        snprintf(out->why, sizeof(out->why), "asked for by name");
}

void trib_verbs_watch_fd(struct verbs *v, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    assert(v->oob.epoll >= 0 && fd >= 0);
    (void)epoll_ctl(v->oob.epoll, EPOLL_CTL_ADD, fd, &e);
}

void trib_verbs_unwatch_fd(struct verbs *v, int fd)
{
    assert(fd >= 0);
    (void)epoll_ctl(v->oob.epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Call with `links` held. */
void trib_verbs_wake_owner(struct verbs *v)
{
    uint64_t one = 1;

    assert(verbs_links_held(v));
    atomic_store_explicit(&v->async_events, true, memory_order_release);
    if (write(v->wakeup_fd, &one, sizeof(one)) < 0)
        return; /* already signalled */
}

/* Return the peer of an acceptable request, or NULL and the verdict. Call with `links`
 * held. */
struct verbs_peer *trib_verbs_check_hello(struct verbs *v,
                                          const struct verbs_hello *hello,
                                          bool own_port, enum verbs_refusal *verdict)
{
    struct verbs_peer *peer = NULL;

    assert(verbs_links_held(v));
    if (hello->magic == VERBS_MAGIC && hello->rank >= 0 && hello->rank < v->size &&
        hello->rank != v->self)
        peer = &v->peers[hello->rank];
    if (!peer || hello->key != v->local.key)
        *verdict = VERBS_STRANGER;
    else if (hello->version != VERBS_VERSION ||
             verbs_hello_piece_shift(hello) > VERBS_PIECE_SHIFT_MAX ||
             !verbs_is_mtu(verbs_hello_mtu(hello)) || hello->caps & ~VERBS_CAPS)
        *verdict = VERBS_OTHER_VERSION;
    else if (verbs_device_end(v))
        *verdict = VERBS_NO_DEVICE;
    else if ((hello->step != VERBS_ASKS) != verbs_has_secret(v))
        *verdict = VERBS_OTHER_SECRET;
    else if (hello->settings != v->settings)
        *verdict = VERBS_OTHER_SETTINGS;
    else if (!own_port)
        *verdict = VERBS_OTHER_DEVICE;
    else if (peer->closed)
        *verdict = peer->barred || !v->reconnects ? VERBS_GONE : VERBS_LEFT;
    else if (peer->in.qp && peer->in_established)
        *verdict = VERBS_TWICE;
    else
        *verdict = VERBS_WELCOME;
    return *verdict == VERBS_WELCOME || *verdict == VERBS_TWICE ? peer : NULL;
}

bool trib_verbs_supersede(struct verbs *v, struct verbs_peer *p,
                          const struct verbs_hello *hello)
{
    assert(verbs_links_held(v) && p->in.qp);
    if (hello->pid != p->in_pid)
        return false;
    p->gone = true;
    trib_verbs_wake_owner(v);
    return true;
}

void trib_verbs_lose_peer(struct verbs *v, int peer, const char *format, ...)
{
    struct verbs_peer *p = &v->peers[peer];
    va_list args;

    assert(peer >= 0 && peer < v->size);
    if (p->base.state != TRIB_PEER_CONNECTED &&
        !(p->base.state == TRIB_PEER_DRAINING &&
          (p->got_disconnect || p->unclear != VERBS_CLEAR)))
        return;
    p->unclear = VERBS_CLEAR;
    if (p->base.state == TRIB_PEER_CONNECTED) {
        p->question = 0;
        trib_peer_drain(&p->base, &v->n_losing);
    }
    va_start(args, format);
    vsnprintf(p->base.why, sizeof(p->base.why),
              p->got_disconnect ? "process %d has left" : format, args);
    va_end(args);
}

void trib_verbs_forget_requests(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];
    const uint32_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);

    assert(!p->qp);
    atomic_store_explicit(&p->head, tail, memory_order_release);
    p->done = p->covered = tail;
    p->asked_head = p->asked_tail;
    p->unsignalled = p->uncovered = 0;
    atomic_store_explicit(&p->room, 0, memory_order_relaxed);
    if (v->list.to == p)
        verbs_list_clear(&v->list);
}

bool trib_verbs_make_asked(struct verbs *v, int peer)
{
    struct verbs_peer *p = &v->peers[peer];

    assert(peer >= 0 && peer < v->size);
    if (!p->asked)
        p->asked = calloc(2 * v->depth, sizeof(*p->asked));
    return p->asked != NULL;
}

void trib_verbs_forget_failure(struct verbs *v, int peer)
{
    assert(peer >= 0 && peer < v->size);
    free(v->peers[peer].outcome);
    v->peers[peer].outcome = NULL;
}

trib_status_t trib_verbs_take_failure(struct verbs *v, int peer)
{
    const struct verbs_outcome *outcome = v->peers[peer].outcome;
    const trib_status_t status = outcome->status;

    assert(status != TRIB_OK);
    trib_fail(v->err, status, "%s", outcome->why);
    trib_verbs_forget_failure(v, peer);
    return status;
}

void trib_verbs_end_revival(struct verbs *v, int peer)
{
    for (int i = 0; i < VERBS_REVIVALS; i++) {
        struct verbs_revival *a = &v->revivals[i];
        if (!a->running || a->peer != peer)
            continue;
        (void)pthread_join(a->thread, NULL);
        a->running = false;
    }
}

void trib_verbs_report_error(struct verbs *v, int peer, enum ibv_wc_status status,
                             uint32_t vendor)
{
    struct verbs_status_text text = trib_verbs_status_text(status);
    char here[VERBS_END_TEXT], there[VERBS_END_TEXT], why[TRIB_WHY_MAX];

    assert(peer >= 0 && peer < v->size);
    trib_verbs_end_texts(v, peer, here, there);
    trib_verbs_explain_status(v, peer, status, why);
    trib_log(v->log, TRIB_LOG_WARN, "verbs",
             "%s on %s to rank %d (process %d) at %s: %s (status %d, vendor %#x); %s",
             here, v->label, peer, v->peers[peer].base.who.pid, there, why, (int)status,
             vendor, text.advice);
}

/*
 * A dying process loses its memory first. Its device then refuses writes slightly
 * before the end of its connection is reported. A live peer that is at fault answers
 * the question.
 */
void trib_verbs_note_refusal(struct verbs *v, int peer, const struct ibv_wc *wc)
{
    struct verbs_peer *p = &v->peers[peer];

    assert(p->base.state == TRIB_PEER_DRAINING);
    p->status = wc->status;
    p->vendor = wc->vendor_err;
    p->ended = false;
    p->checked_at = 0;
    p->question = trib_peer_liveness_ask(&p->base.liveness);
    p->unclear = VERBS_REFUSED;
}
