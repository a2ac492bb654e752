/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: both ends of a connection prove that they have the job's secret, before any
 * other data is accepted. Until then, writes wait in the queue.
 *
 * The connecting side sends its nonce with the hello. The listener answers with its own
 * nonce and its proof; then the connecting side sends its proof. The heartbeat threads
 * do all of this, too: a rank's writes reach a peer even if neither polls for a while.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/time.h"
#include "transport/tcp/tcp.h"

#define LABEL "tcp 7"

_Static_assert(TCP_VERSION == 7, "the label of a proof names the version");

/* Set what both sides prove. The listener's flags are in the upper half of `more`. */
static struct trib_proof proof_of(const struct tcp_hello *hello, int listener)
{
    struct trib_proof proof = {.label = LABEL,
                               .listener = hello->key,
                               .rank = {hello->rank, listener},
                               .more = hello->flags};

    memcpy(proof.nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    return proof;
}

bool trib_tcp_make_hello(const struct tcp *tcp, int peer, struct tcp_hello *out,
                         struct trib_proof *proof)
{
    assert(peer >= 0 && peer < tcp->size && peer != tcp->self);
    *out = (struct tcp_hello){.magic = TCP_MAGIC,
                              .version = TCP_VERSION,
                              .rank = tcp->self,
                              .size = tcp->size,
                              .key = tcp->peers[peer].key,
                              .flags = tcp_flags(tcp)};
    *proof = proof_of(out, peer);
    return !tcp_has_secret(tcp) || trib_proof_begin(proof, out->nonce);
}

bool trib_tcp_send_challenge(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    struct tcp_challenge c = {.head = {.magic = TCP_MAGIC,
                                       .kind = TCP_CHALLENGE,
                                       .imm = tcp_flags(tcp),
                                       .off = TCP_VERSION}};

    assert(tcp_has_secret(tcp) && pending->proof.step == TRIB_PROOF_NEW);
    assert(pending->hello.key == tcp->local.key); /* check_hello() */
    pending->proof = proof_of(&pending->hello, tcp->self);
    pending->proof.more |= c.head.imm << 16;
    trib_pending_expect(&pending->base, pending->answer, sizeof(pending->answer));
    /* The send buffer of a new connection has room for it. */
    if (!trib_proof_challenge(tcp->secret, &pending->proof, &c.challenge) ||
        send(pending->base.fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(c))
        return false;
    /* The peer answers at its next poll, which may be as late as timeout_ms allows. */
    uint64_t until = trib_limit_deadline(tcp->cfg->timeout_ms);
    if (until > pending->base.until)
        pending->base.until = until;
    return true;
}
/* Connecting side ------------------------------------------------------------------ */

/* tcp.lock is held. From now on, `own` is no longer read for a proof. */
static void end_proof(struct tcp *tcp, struct tcp_peer *p, enum trib_proof_step result)
{
    assert(p->own >= 0 && result != TRIB_PROOF_BEGUN);
    trib_tcp_unwatch_proof(tcp, p->own);
    p->proof.step = result;
}

/* tcp.lock is held. Leave the frame at the front of `own` unread unless it is a
 * challenge. */
static void read_challenge(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_challenge c;
    uint8_t answer[TRIB_PROOF_BYTES];
    ssize_t n = recv(p->own, &c, sizeof(c), MSG_DONTWAIT | MSG_PEEK);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool has_head = n >= (ssize_t)sizeof(c.head);
    bool part =
        n > 0 && (!has_head || (c.head.magic == TCP_MAGIC && n < (ssize_t)sizeof(c) &&
                                c.head.kind == TCP_CHALLENGE));
    if (part && !trib_net_is_truncated(p->own, sizeof(c)))
        return; /* the rest is still on its way */
    if (part || !has_head || c.head.magic != TCP_MAGIC ||
        c.head.kind != TCP_CHALLENGE) {
        end_proof(tcp, p, TRIB_PROOF_NEW); /* refused, or closed: the owner finds out */
        return;
    }
    (void)!recv(p->own, &c, sizeof(c), MSG_DONTWAIT);
    p->proof.more |= c.head.imm << 16;
    const bool right = trib_proof_answer(tcp->secret, &p->proof, &c.challenge, answer);
    end_proof(tcp, p, p->proof.step);
    if (right)
        trib_tcp_seal_own(tcp, peer, &p->proof);
    if (send(p->own, answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) ==
            sizeof(answer) &&
        right)
        p->fd = p->own; /* else the end of the stream shows the failure */
}

void trib_tcp_poll_challenge(struct tcp *tcp, int peer)
{
    pthread_mutex_lock(&tcp->lock);
    if (tcp->peers[peer].proof.step == TRIB_PROOF_BEGUN)
        read_challenge(tcp, peer);
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_await_proof(struct tcp *tcp, int peer, const struct trib_proof *proof)
{
    struct tcp_peer *p = &tcp->peers[peer];

    assert(p->own >= 0);
    pthread_mutex_lock(&tcp->lock);
    p->proof = *proof;
    if (tcp_has_secret(tcp))
        trib_tcp_watch_proof(tcp, p->own, peer);
    else
        p->fd = p->own;
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_cancel_proof(struct tcp *tcp, struct tcp_peer *p)
{
    pthread_mutex_lock(&tcp->lock);
    if (p->proof.step == TRIB_PROOF_BEGUN)
        end_proof(tcp, p, TRIB_PROOF_NEW);
    pthread_mutex_unlock(&tcp->lock);
}

enum trib_proof_step trib_tcp_proof_state(struct tcp *tcp, int peer)
{
    pthread_mutex_lock(&tcp->lock);
    enum trib_proof_step step = tcp->peers[peer].proof.step;
    pthread_mutex_unlock(&tcp->lock);
    return step;
}
