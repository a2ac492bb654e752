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

static struct trib_proof proof_of(const struct ucx_hello *hello, int listener)
{
    struct trib_proof proof = {.label = LABEL,
                               .listener = hello->key,
                               .rank = {hello->rank, listener},
                               .more = hello->flags};

    memcpy(proof.nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    return proof;
}

/* The key is secret: it cannot be derived from the nonces seen on the socket. */
uint64_t trib_ucx_message_key(const struct ucx *u, const struct trib_proof *proof)
{
    uint8_t mac[TRIB_PROOF_BYTES];
    struct trib_proof messages = *proof;
    uint64_t key;

    assert(proof->step == TRIB_PROOF_DONE);
    messages.label = LABEL " messages";
    trib_proof_make(u->secret, &messages, TRIB_PROOF_CALLER, mac);
    memcpy(&key, mac, sizeof(key));
    return key;
}

bool trib_ucx_challenge(struct ucx *u, struct ucx_pending_conn *g)
{
    struct ucx_challenge c = {.control = {.magic = UCX_MAGIC, .kind = UCX_CHALLENGE}};

    assert(ucx_has_secret(u) && g->proof.step == TRIB_PROOF_NEW);
    assert(g->hello.key == u->local.key); /* check_hello() */
    g->proof = proof_of(&g->hello, u->self);
    /* The send buffer of a new socket has room for it. */
    return trib_proof_challenge(u->secret, &g->proof, &c.challenge) &&
           send(g->base.fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(c);
}

bool trib_ucx_begin_proof(const struct ucx *u, int peer, struct ucx_hello *hello,
                          struct trib_proof *proof)
{
    assert(peer >= 0 && peer < u->size && peer != u->self);
    *proof = proof_of(hello, peer);
    return !ucx_has_secret(u) || trib_proof_begin(proof, hello->nonce);
}
