/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: both ends of a control socket prove that they have the job's secret, before UCX
 * sees the peer's worker address.
 *
 * Connections that UCX makes from these addresses prove nothing. A message is accepted
 * only if it carries the key of the two ranks, which is derived from their proofs.
 */
#include <string.h>
#include <sys/socket.h>

#include "transport/ucx/ucx.h"

#define LABEL "ucx 3"

_Static_assert(UCX_VERSION == 3, "the label of a proof names the version");

static void claim(const struct ucx_hello *hello, int listener,
                  const uint8_t nonce[TRIB_NONCE_BYTES], struct trib_proof *out)
{
    *out = (struct trib_proof){.label = LABEL,
                               .listener = hello->key,
                               .rank = {hello->rank, listener},
                               .more = hello->flags};
    memcpy(out->nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    memcpy(out->nonce[TRIB_PROOF_LISTENER], nonce, TRIB_NONCE_BYTES);
}

/* The key is secret: it cannot be derived from the nonces seen on the socket. */
static uint64_t key_of(const struct ucx *u, const struct trib_proof *about)
{
    uint8_t mac[TRIB_PROOF_BYTES];
    struct trib_proof messages = *about;
    uint64_t key;

    messages.label = LABEL " messages";
    trib_proof_make(u->secret, &messages, TRIB_PROOF_CALLER, mac);
    memcpy(&key, mac, sizeof(key));
    return key;
}

uint64_t trib_ucx_pending_key(struct ucx *u, const struct ucx_pending_conn *g)
{
    struct trib_proof about;

    claim(&g->hello, u->self, g->nonce, &about);
    return ucx_has_secret(u) ? key_of(u, &about) : u->local.key;
}

bool trib_ucx_challenge(struct ucx *u, struct ucx_pending_conn *g)
{
    struct ucx_challenge c = {.control = {.magic = UCX_MAGIC, .kind = UCX_CHALLENGE}};
    struct trib_proof about;

    assert(ucx_has_secret(u) && !g->proves);
    if (!trib_nonce_make(g->nonce))
        return false;
    memcpy(c.nonce, g->nonce, sizeof(c.nonce));
    claim(&g->hello, u->self, g->nonce, &about);
    trib_proof_make(u->secret, &about, TRIB_PROOF_LISTENER, c.proof);
    /* The send buffer of a new socket has room for it. */
    g->proves = send(g->fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(c);
    return g->proves;
}

bool trib_ucx_pending_proved(struct ucx *u, const struct ucx_pending_conn *g)
{
    struct trib_proof about;

    assert(ucx_has_secret(u) && g->proves);
    claim(&g->hello, u->self, g->nonce, &about);
    return trib_proof_holds(u->secret, &about, TRIB_PROOF_CALLER, g->proof,
                            sizeof(g->proof));
}

bool trib_ucx_answer_challenge(struct ucx *u, int peer, const struct ucx_hello *hello,
                               const struct ucx_challenge *c,
                               uint8_t proof[TRIB_PROOF_BYTES])
{
    struct trib_proof about;

    assert(ucx_has_secret(u));
    claim(hello, peer, c->nonce, &about);
    if (!trib_proof_holds(u->secret, &about, TRIB_PROOF_LISTENER, c->proof,
                          sizeof(c->proof)))
        return false;
    trib_proof_make(u->secret, &about, TRIB_PROOF_CALLER, proof);
    u->peers[peer].out_key = key_of(u, &about);
    return true;
}
