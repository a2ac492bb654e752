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

/* Build the statement that both sides prove: hello, nonces, and the listener's
 * flags. */
static void claim(const struct tcp_hello *hello, int listener, uint32_t flags,
                  const uint8_t nonce[TRIB_NONCE_BYTES], struct trib_proof *out)
{
    *out = (struct trib_proof){.label = LABEL,
                               .listener = hello->key,
                               .rank = {hello->rank, listener},
                               .more = hello->flags | flags << 16};
    memcpy(out->nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    memcpy(out->nonce[TRIB_PROOF_LISTENER], nonce, TRIB_NONCE_BYTES);
}

bool trib_tcp_make_hello(struct tcp *tcp, int peer, struct tcp_hello *out)
{
    struct tcp_peer *p = &tcp->peers[peer];

    assert(peer >= 0 && peer < tcp->size && peer != tcp->self);
    *out = (struct tcp_hello){.magic = TCP_MAGIC,
                              .version = TCP_VERSION,
                              .rank = tcp->self,
                              .size = tcp->size,
                              .key = p->key,
                              .flags = tcp_flags(tcp)};
    if (!tcp_has_secret(tcp))
        return true;
    bool made = trib_nonce_make(p->nonce);
    memcpy(out->nonce, p->nonce, sizeof(out->nonce));
    return made;
}

void trib_tcp_pending_claim(const struct tcp *tcp,
                            const struct tcp_pending_conn *pending,
                            struct trib_proof *out)
{
    claim(&pending->hello, tcp->self, tcp_flags(tcp), pending->nonce, out);
}

/* Listening side ------------------------------------------------------------------- */

bool trib_tcp_send_challenge(struct tcp *tcp, struct tcp_pending_conn *pending)
{
    struct tcp_challenge c = {.head = {.magic = TCP_MAGIC,
                                       .kind = TCP_CHALLENGE,
                                       .imm = tcp_flags(tcp),
                                       .off = TCP_VERSION}};
    struct trib_proof about;

    assert(tcp_has_secret(tcp) && !pending->challenged);
    if (!trib_nonce_make(pending->nonce))
        return false;
    memcpy(c.nonce, pending->nonce, sizeof(c.nonce));
    trib_tcp_pending_claim(tcp, pending, &about);
    trib_proof_make(tcp->secret, &about, TRIB_PROOF_LISTENER, c.proof);
    /* A new connection has room for it. */
    if (send(pending->fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(c))
        return false;
    pending->challenged = true;
    pending->have = 0;
    /* The peer answers at its next poll, which may be as late as timeout_ms allows. */
    uint64_t until = trib_limit_deadline(tcp->cfg->timeout_ms);
    pending->until = until > pending->until ? until : pending->until;
    return true;
}

bool trib_tcp_pending_proved(struct tcp *tcp, const struct tcp_pending_conn *pending)
{
    struct trib_proof about;

    assert(pending->challenged);
    trib_tcp_pending_claim(tcp, pending, &about);
    return trib_proof_holds(tcp->secret, &about, TRIB_PROOF_CALLER, pending->proof,
                            sizeof(pending->proof));
}

/* Connecting side ------------------------------------------------------------------ */

/* tcp.lock is held. From now on, `own` is no longer read for a proof. */
static void end_proof(struct tcp *tcp, struct tcp_peer *p, enum tcp_proof result)
{
    assert(p->proof == TCP_PROOF_AWAITED);
    trib_tcp_unwatch_proof(tcp, p->own);
    p->proof = result;
}

/* tcp.lock is held. Leave the frame at the front of `own` unread unless it is a
 * challenge. */
static void read_challenge(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_challenge c;
    struct tcp_hello hello = {
        .rank = tcp->self, .key = p->key, .flags = tcp_flags(tcp)};
    struct trib_proof about;
    uint8_t proof[TRIB_PROOF_BYTES];
    ssize_t n = recv(p->own, &c, sizeof(c), MSG_DONTWAIT | MSG_PEEK);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool has_head = n >= (ssize_t)sizeof(c.head);
    bool part =
        n > 0 && (!has_head || (c.head.magic == TCP_MAGIC && n < (ssize_t)sizeof(c) &&
                                c.head.kind == TCP_CHALLENGE));
    if (part && !trib_tcp_is_truncated(p->own, sizeof(c)))
        return; /* the rest is still on its way */
    if (part || !has_head || c.head.magic != TCP_MAGIC ||
        c.head.kind != TCP_CHALLENGE) {
        end_proof(tcp, p, TCP_PROOF_NONE); /* refused, or closed: the owner finds out */
        return;
    }
    (void)!recv(p->own, &c, sizeof(c), MSG_DONTWAIT);
    memcpy(hello.nonce, p->nonce, sizeof(hello.nonce));
    claim(&hello, peer, c.head.imm, c.nonce, &about);
    if (!trib_proof_holds(tcp->secret, &about, TRIB_PROOF_LISTENER, c.proof,
                          sizeof(c.proof))) {
        end_proof(tcp, p, TCP_PROOF_WRONG);
        /* Let a rank with another secret notice it, too: to that rank, zeros are a
         * wrong proof. */
        memset(proof, 0, sizeof(proof));
        (void)!send(p->own, proof, sizeof(proof), MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
    }
    trib_proof_make(tcp->secret, &about, TRIB_PROOF_CALLER, proof);
    trib_tcp_seal_own(tcp, peer, &about);
    end_proof(tcp, p, TCP_PROOF_DONE);
    if (send(p->own, proof, sizeof(proof), MSG_DONTWAIT | MSG_NOSIGNAL) ==
        sizeof(proof))
        p->fd = p->own; /* else the end of the stream shows the failure */
}

void trib_tcp_poll_challenge(struct tcp *tcp, int peer)
{
    pthread_mutex_lock(&tcp->lock);
    if (tcp->peers[peer].proof == TCP_PROOF_AWAITED)
        read_challenge(tcp, peer);
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_await_proof(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];

    assert(p->own >= 0);
    pthread_mutex_lock(&tcp->lock);
    if (tcp_has_secret(tcp)) {
        p->proof = TCP_PROOF_AWAITED;
        trib_tcp_watch_proof(tcp, p->own, peer);
    } else {
        p->fd = p->own;
    }
    pthread_mutex_unlock(&tcp->lock);
}

void trib_tcp_cancel_proof(struct tcp *tcp, struct tcp_peer *p)
{
    pthread_mutex_lock(&tcp->lock);
    if (p->proof == TCP_PROOF_AWAITED)
        end_proof(tcp, p, TCP_PROOF_NONE);
    pthread_mutex_unlock(&tcp->lock);
}

enum tcp_proof trib_tcp_proof_state(struct tcp *tcp, int peer)
{
    pthread_mutex_lock(&tcp->lock);
    enum tcp_proof proof = tcp->peers[peer].proof;
    pthread_mutex_unlock(&tcp->lock);
    return proof;
}
