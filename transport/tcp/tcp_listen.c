/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: connections made by peers, and the frame that accepts or refuses them.
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/time.h"
#include "transport/tcp/tcp.h"

enum {
    VERSION_KNOWN = 8, /* bytes of a hello; the rest may be shorter in other versions */
    DISMISS_MS = 100, /* for proofs in flight when this rank closes */
};

/* A new connection; tcp.lock is held. */
static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    struct tcp *tcp = owner;
    struct tcp_pending_conn *c = calloc(1, sizeof(*c));

    assert(fd >= 0 && tcp->listener.fd >= 0);
    if (!c) {
        close(fd);
        return NULL;
    }
    trib_net_accepted(&tcp->listener, fd, ip);
    trib_pending_expect(&c->base, &c->hello, sizeof(c->hello));
    return &c->base;
}

static void watch(void *owner, int fd, bool on)
{
    struct tcp *tcp = owner;
    const bool is_listener = fd == tcp->listener.fd;

    if (on) {
        trib_tcp_watch_fd(tcp, fd);
        if (!is_listener)
            trib_tcp_watch_proof(tcp, fd, -1);
    } else {
        trib_tcp_unwatch_fd(tcp, fd);
        if (!is_listener)
            trib_tcp_unwatch_proof(tcp, fd);
    }
}

/* Check the parts of a hello that depend on no peer's state. */
static enum tcp_refusal check_hello(const struct tcp *tcp, const struct tcp_hello *h)
{
    if (h->version != TCP_VERSION)
        return TCP_OTHER_VERSION;
    if (h->key != tcp->local.key)
        return TCP_OTHER_JOB;
    if (h->size != tcp->size || h->rank < 0 || h->rank >= tcp->size ||
        h->rank == tcp->self)
        return TCP_OTHER_RANK;
    const uint32_t differs = (h->flags ^ tcp_flags(tcp)) & ~(uint32_t)TCP_HAS_AES;
    if (differs == TCP_SEALS)
        return TCP_OTHER_SEAL;
    return differs ? TCP_OTHER_FLAGS : TCP_NOT_REFUSED;
}

static enum tcp_refusal check_pending(const struct tcp *tcp,
                                      const struct tcp_pending_conn *c)
{
    enum tcp_refusal reason = check_hello(tcp, &c->hello);

    if (reason != TCP_NOT_REFUSED)
        return reason;
    if (tcp_has_secret(tcp) && c->proof.step != TRIB_PROOF_DONE)
        return TCP_NOT_PROVED;
    const struct tcp_peer *p = &tcp->peers[c->hello.rank];
    if (p->base.state == TRIB_PEER_LOST)
        return TCP_WAS_LOST;
    return p->in.fd >= 0 || p->last ? TCP_TWICE : TCP_NOT_REFUSED;
}

static void refuse(struct tcp *tcp, struct tcp_pending_conn *c, enum tcp_refusal reason)
{
    static const char *const claims[] = {
        [TCP_OTHER_VERSION] = "speaks another version of tcp",
        [TCP_OTHER_JOB] = "is a rank of another job",
        [TCP_OTHER_RANK] = "is a rank of a job of another size",
        [TCP_OTHER_FLAGS] = TRIB_PROOF_ONE_SIDED,
        [TCP_NOT_PROVED] = TRIB_PROOF_UNPROVED,
        [TCP_OTHER_SEAL] =
            "encrypts its traffic, but this rank does not (TRIB_SEAL), or vice versa",
    };

    assert(reason != TCP_NOT_REFUSED && !c->base.refused);
    if (claims[reason])
        trib_acceptor_warn(&tcp->acceptor, &c->base, claims[reason]);
    trib_tcp_send_control(c->base.fd, TCP_REFUSE, reason);
}

/* Allocate the keys of an accepted connection; false: out of memory. */
static bool derive_keys(struct tcp *tcp, const struct tcp_pending_conn *c)
{
    assert(c->hello.rank >= 0 && c->hello.rank < tcp->size);
    if (!trib_tcp_alloc_seals(tcp, c->hello.rank))
        return false;
    trib_tcp_seal_in(tcp, c->hello.rank, &c->proof);
    return true;
}

/* Answer a complete hello, with its proof if required. */
static enum trib_pending_fate answer(struct tcp *tcp, struct tcp_pending_conn *c)
{
    const int rank = c->hello.rank, fd = c->base.fd;
    enum tcp_refusal reason = check_pending(tcp, c);

    assert(c->base.judged && c->hello.magic == TCP_MAGIC);
    if (reason != TCP_NOT_REFUSED) {
        refuse(tcp, c, reason);
        return TRIB_PENDING_REFUSED;
    }
    const bool keyed = derive_keys(tcp, c);
    if (tcp->peers[rank].base.state == TRIB_PEER_LEFT) {
        /* it must not take this rank for dead */
        trib_tcp_reply(tcp, rank, fd, TCP_DISCONNECT);
        return TRIB_PENDING_CLOSE;
    }
    trib_tcp_unwatch_proof(tcp, fd);
    if (!keyed || !trib_tcp_attach_inlet(tcp, rank, fd))
        return TRIB_PENDING_CLOSE;
    trib_tcp_reply(tcp, rank, fd, TCP_ACCEPT);
    trib_tcp_move(tcp, rank);
    return TRIB_PENDING_TAKEN;
}

/* Check the hello, send the challenge, and check the proof. Runs on the owner's or the
 * heartbeat thread, with tcp.lock held. Steps that need the owner's poll are left to
 * it. */
static bool judge(void *owner, struct trib_pending *p)
{
    struct tcp_pending_conn *c = (struct tcp_pending_conn *)p;
    struct tcp *tcp = owner;

    assert(p->to == (c->proof.step ? c->answer : (uint8_t *)&c->hello));
    if (c->proof.step == TRIB_PROOF_CHALLENGED) {
        if (p->have == sizeof(c->answer))
            (void)trib_proof_check(tcp->secret, &c->proof, c->answer, p->have);
        return p->have == sizeof(c->answer);
    }
    bool ours = p->have < sizeof(c->hello.magic) || c->hello.magic == TCP_MAGIC;
    bool other = p->have >= VERSION_KNOWN && c->hello.version != TCP_VERSION;
    if (ours && !other && p->have < sizeof(c->hello))
        return false;
    if (!ours || !tcp_has_secret(tcp) || check_hello(tcp, &c->hello) != TCP_NOT_REFUSED)
        return true;
    p->ended = !trib_tcp_send_challenge(tcp, c);
    p->spoke = true;
    return p->ended;
}

/* Runs on the owner's thread, and leaves tcp.lock to the others meanwhile. */
static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    struct tcp_pending_conn *c = (struct tcp_pending_conn *)p;
    enum trib_pending_fate fate = TRIB_PENDING_CLOSE;
    struct tcp *tcp = owner;

    pthread_mutex_unlock(&tcp->lock);
    if (why == TRIB_PENDING_JUDGED && c->hello.magic == TCP_MAGIC)
        fate = answer(tcp, c);
    else if (c->proof.step ==
             TRIB_PROOF_NEW) /* else it may be a rank that has died or disconnected */
        trib_acceptor_warn(&tcp->acceptor, p, "did not send a valid hello");
    pthread_mutex_lock(&tcp->lock);
    return fate;
}

static const struct trib_acceptor_ops acceptor_ops = {
    .admit = admit, .judge = judge, .finish = finish, .watch = watch, .free = free};

trib_status_t trib_tcp_listen(struct tcp *tcp, int first_port, int ports)
{
    const struct trib_net_rank rank = {"tcp", tcp->self, tcp->size};
    trib_status_t status =
        trib_net_bind("tcp", SOCK_STREAM, first_port, ports, &tcp->listener, tcp->err);

    if (status != TRIB_OK)
        return status;
    trib_net_fence(&tcp->local.ways.choice, "tcp", tcp->log, &tcp->listener);
    tcp->acceptor.ops = &acceptor_ops;
    tcp->acceptor.owner = tcp;
    tcp->acceptor.log = tcp->log;
    trib_tcp_watch_fd(tcp, tcp->listener.fd);
    return trib_net_acceptor_open(&tcp->acceptor, &rank, &tcp->listener, tcp->err);
}

void trib_tcp_accept(struct tcp *tcp)
{
    pthread_mutex_lock(&tcp->lock);
    trib_acceptor_accept(&tcp->acceptor, tcp->listener.fd);
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_progress_pending(struct tcp *tcp)
{
    pthread_mutex_lock(&tcp->lock);
    trib_acceptor_progress(&tcp->acceptor);
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_progress_listener(struct tcp *tcp)
{
    trib_acceptor_help(&tcp->acceptor, tcp->listener.fd);
    trib_acceptor_read(&tcp->acceptor);
}

void trib_tcp_drain_pending(struct tcp *tcp)
{
    bool busy = true;

    for (uint64_t until = trib_deadline_ms(DISMISS_MS);
         busy && !trib_deadline_passed(until);) {
        pthread_mutex_lock(&tcp->lock);
        trib_acceptor_progress(&tcp->acceptor);
        busy = false;
        for (int i = 0; i < tcp->acceptor.n; i++) {
            const struct trib_pending *p = tcp->acceptor.pending[i];
            busy |= !p->refused && ((const struct tcp_pending_conn *)p)->proof.step;
        }
        pthread_mutex_unlock(&tcp->lock);
        if (busy)
            (void)poll(NULL, 0, 1);
    }
}
