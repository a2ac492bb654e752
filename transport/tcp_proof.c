/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: both ends of a connection prove that they have the secret of the job, before anything
 * else is taken from it. What a rank writes meanwhile waits in its queue.
 *
 * Who connects sends its nonce with the hello; the listener answers with a nonce of its own
 * and its proof; then follows the proof of who connected. Both sides take part in polls: a
 * rank that computes keeps nobody from anything that it could have read before.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/time.h"
#include "transport/tcp.h"

#define LABEL "tcp 5"

_Static_assert(TCP_VERSION == 5, "the label of a proof names the version");

/* What both prove, after that hello and that nonce of the listener. */
static void claim(const struct tcp_hello *hello, int listener,
                  const uint8_t nonce[TRIB_NONCE_BYTES], struct trib_proof *out)
{
    *out = (struct trib_proof){.label = LABEL,
                               .listener = hello->key,
                               .rank = {hello->rank, listener},
                               .more = hello->flags};
    memcpy(out->nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    memcpy(out->nonce[TRIB_PROOF_LISTENER], nonce, TRIB_NONCE_BYTES);
}

bool trib_socket_greeting(struct tcp *tcp, int peer, struct tcp_hello *out)
{
    struct tcp_peer *p = &tcp->peers[peer];

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

/* The listener's side ------------------------------------------------------------------ */

bool trib_socket_challenge(struct tcp *tcp, struct tcp_guest *g)
{
    struct tcp_challenge c = {
        .head = {.magic = TCP_MAGIC, .kind = TCP_CHALLENGE, .off = TCP_VERSION}};
    struct trib_proof about;

    if (!trib_nonce_make(g->nonce))
        return false;
    memcpy(c.nonce, g->nonce, sizeof(c.nonce));
    claim(&g->hello, tcp->self, g->nonce, &about);
    trib_proof_make(tcp->secret, &about, TRIB_PROOF_LISTENER, c.proof);
    /* A new connection has room for it. */
    if (send(g->fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(c))
        return false;
    g->proves = true;
    g->have = 0;
    /* It answers with its next poll, which may be as far away as one of a peer's. */
    uint64_t until = trib_deadline_ms(tcp->cfg->timeout_ms);
    g->until = until > g->until ? until : g->until;
    return true;
}

bool trib_socket_guest_proved(struct tcp *tcp, const struct tcp_guest *g)
{
    struct trib_proof about;

    claim(&g->hello, tcp->self, g->nonce, &about);
    return trib_proof_holds(tcp->secret, &about, TRIB_PROOF_CALLER, g->proof,
                            sizeof(g->proof));
}

/* The side that connects --------------------------------------------------------------- */

/* From now on it writes. */
static void proved(struct tcp *tcp, struct tcp_peer *p)
{
    pthread_mutex_lock(&tcp->lock);
    p->proving = false;
    p->fd = p->own;
    pthread_mutex_unlock(&tcp->lock);
    tcp->n_proving--;
}

void trib_socket_stop_proving(struct tcp *tcp, struct tcp_peer *p)
{
    pthread_mutex_lock(&tcp->lock);
    tcp->n_proving -= p->proving;
    p->proving = false;
    pthread_mutex_unlock(&tcp->lock);
}

void trib_socket_start_proving(struct tcp *tcp, struct tcp_peer *p)
{
    p->proving = true;
    tcp->n_proving++;
}

/* true: what stands there is read, or the peer is going. */
bool trib_socket_take_challenge(struct tcp *tcp, int peer)
{
    struct tcp_peer *p = &tcp->peers[peer];
    struct tcp_challenge c;
    struct tcp_hello hello = {.rank = tcp->self, .key = p->key, .flags = tcp_flags(tcp)};
    struct trib_proof about;
    uint8_t proof[TRIB_PROOF_BYTES];

    if (recv(p->own, &c, sizeof(c), MSG_DONTWAIT | MSG_PEEK) < (ssize_t)sizeof(c))
        return false; /* the rest is on its way */
    (void)!recv(p->own, &c, sizeof(c), MSG_DONTWAIT);
    memcpy(hello.nonce, p->nonce, sizeof(hello.nonce));
    claim(&hello, peer, c.nonce, &about);
    if (!trib_proof_holds(tcp->secret, &about, TRIB_PROOF_LISTENER, c.proof,
                          sizeof(c.proof))) {
        trib_socket_going(tcp, peer,
                          "process %d, or who answers in its place, has not the secret of this "
                          "job: give all ranks the same TRIB_KEY",
                          p->who.pid);
        return true;
    }
    trib_proof_make(tcp->secret, &about, TRIB_PROOF_CALLER, proof);
    if (send(p->own, proof, sizeof(proof), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(proof)) {
        trib_socket_going(tcp, peer, "process %d has died", p->who.pid);
        return true;
    }
    proved(tcp, p);
    (void)trib_socket_flush(tcp, peer);
    return true;
}
