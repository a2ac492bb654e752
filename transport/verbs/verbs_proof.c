/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: both sides of a connection prove that they have the job's secret, before the
 * listener makes a queue pair ready.
 *
 * librdmacm allows one request and one answer. So the first request is rejected with
 * the listener's nonce and proof, and the second one carries the requester's proof.
 * Each open challenge accepts one request. For OOB requests (verbs_oob_listener.c) all
 * messages use one TCP connection. The listener's last message is authenticated, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "transport/verbs/verbs.h"

#define LABEL "verbs 5"

_Static_assert(VERBS_VERSION == 5, "the label of a proof names the version");

_Static_assert(sizeof(struct verbs_nonces) + sizeof(struct verbs_oob_request) <= 2560,
               "for a MAC");

enum { OPEN_MS = 20000 }; /* for the second request */

static void fill_proof(const struct verbs_hello *hello, int listener,
                       const struct verbs_nonces *nonces, struct trib_proof *out)
{
    *out = (struct trib_proof){
        .label = LABEL, .listener = hello->key, .rank = {hello->rank, listener}};
    memcpy(out->nonce[TRIB_PROOF_CALLER], nonces->caller, TRIB_NONCE_BYTES);
    memcpy(out->nonce[TRIB_PROOF_LISTENER], nonces->listener, TRIB_NONCE_BYTES);
}

/* Compute a MAC over both nonces and `n` bytes, under a label. */
static void mac_of(const struct verbs *v, const char *label,
                   const struct verbs_nonces *nonces, const void *bytes, size_t n,
                   uint8_t out[TRIB_PROOF_BYTES])
{
    uint8_t all[sizeof(*nonces) + sizeof(struct verbs_oob_request)];

    assert(n <= sizeof(struct verbs_oob_request));
    memcpy(all, nonces, sizeof(*nonces));
    memcpy(all + sizeof(*nonces), bytes, n);
    trib_secret_mac(v->secret, label, all, sizeof(*nonces) + n, out);
}

static bool macs_equal(const struct verbs *v, const uint8_t a[TRIB_PROOF_BYTES],
                       const uint8_t *b)
{
    return v->secret->sodium.equal(a, b, TRIB_PROOF_BYTES) == 0;
}

/* The listener --------------------------------------------------------------------- */

bool trib_verbs_challenge(const struct verbs *v, const struct verbs_hello *hello,
                          struct verbs_nonces *nonces, struct verbs_answer *answer)
{
    struct trib_proof about;

    assert(verbs_has_secret(v));
    memcpy(nonces->caller, hello->proof, sizeof(nonces->caller));
    if (!trib_nonce_make(nonces->listener))
        return false;
    fill_proof(hello, v->self, nonces, &about);
    memcpy(answer->nonce, nonces->listener, sizeof(answer->nonce));
    trib_proof_make(v->secret, &about, TRIB_PROOF_LISTENER, answer->proof);
    answer->refusal = VERBS_CHALLENGE;
    return true;
}

/* Replace the oldest challenge. Call with `links` held. */
bool trib_verbs_open_challenge(struct verbs *v, const struct verbs_hello *hello,
                               struct verbs_answer *answer)
{
    const int most = v->size + TRIB_NET_UNAUTHENTICATED;

    assert(verbs_links_held(v) && verbs_has_secret(v));
    if (!v->challenges)
        v->challenges = calloc((size_t)most, sizeof(*v->challenges));
    if (!v->challenges)
        return false;
    struct verbs_cm_challenge *p = &v->challenges[v->next_challenge];
    v->next_challenge = (v->next_challenge + 1) % most;
    *p = (struct verbs_cm_challenge){.rank = hello->rank,
                                     .until = trib_deadline_ms(OPEN_MS)};
    return trib_verbs_challenge(v, hello, &p->nonces, answer);
}

/* Call with `links` held. */
bool trib_verbs_close_challenge(struct verbs *v, const struct verbs_hello *hello,
                                struct verbs_nonces *nonces_out)
{
    assert(verbs_links_held(v));
    for (int i = 0; v->challenges && i < v->size + TRIB_NET_UNAUTHENTICATED; i++) {
        struct verbs_cm_challenge *p = &v->challenges[i];
        struct trib_proof about;
        if (!p->until || p->rank != hello->rank || trib_deadline_passed(p->until))
            continue;
        fill_proof(hello, v->self, &p->nonces, &about);
        if (!trib_proof_holds(v->secret, &about, TRIB_PROOF_CALLER, hello->proof,
                              sizeof(hello->proof)))
            continue;
        *nonces_out = p->nonces;
        *p = (struct verbs_cm_challenge){.until = 0};
        return true;
    }
    return false;
}

bool trib_verbs_oob_request_proved(const struct verbs *v,
                                   const struct verbs_nonces *nonces,
                                   const struct verbs_oob_request *request,
                                   const uint8_t *proof)
{
    uint8_t right[TRIB_PROOF_BYTES];

    mac_of(v, LABEL " call", nonces, request, trib_verbs_oob_request_bytes(request),
           right);
    return macs_equal(v, right, proof);
}

/* Authenticate an answer, or a reply that begins with one. The MAC covers all other
 * bytes. */
void trib_verbs_seal_answer(const struct verbs *v, const struct verbs_nonces *nonces,
                            struct verbs_answer *answer, size_t bytes)
{
    assert(verbs_has_secret(v));
    memcpy(answer->nonce, nonces->listener, sizeof(answer->nonce));
    memset(answer->proof, 0, sizeof(answer->proof));
    uint8_t mac[TRIB_PROOF_BYTES];
    mac_of(v, LABEL " reply", nonces, answer, bytes, mac);
    memcpy(answer->proof, mac, sizeof(mac));
}

/* The connecting side -------------------------------------------------------------- */

bool trib_verbs_begin_hello(const struct verbs *v, struct verbs_hello *hello,
                            struct verbs_nonces *nonces)
{
    memset(nonces, 0, sizeof(*nonces));
    hello->step = VERBS_ASKS;
    if (!verbs_has_secret(v))
        return true;
    hello->step = VERBS_BEGINS;
    if (!trib_nonce_make(nonces->caller))
        return false;
    memcpy(hello->proof, nonces->caller, sizeof(nonces->caller));
    return true;
}

bool trib_verbs_check_challenge(const struct verbs *v, int peer,
                                const struct verbs_hello *hello,
                                const struct verbs_answer *answer,
                                struct verbs_nonces *nonces)
{
    struct trib_proof about;

    assert(verbs_has_secret(v));
    memcpy(nonces->listener, answer->nonce, sizeof(nonces->listener));
    fill_proof(hello, peer, nonces, &about);
    return trib_proof_holds(v->secret, &about, TRIB_PROOF_LISTENER, answer->proof,
                            sizeof(answer->proof));
}

void trib_verbs_prove_request(const struct verbs *v, int peer,
                              const struct verbs_nonces *nonces,
                              struct verbs_hello *hello)
{
    uint8_t proof[TRIB_PROOF_BYTES];
    struct trib_proof about;

    fill_proof(hello, peer, nonces, &about);
    trib_proof_make(v->secret, &about, TRIB_PROOF_CALLER, proof);
    hello->step = VERBS_PROVES;
    memcpy(hello->proof, proof, sizeof(hello->proof));
}

void trib_verbs_prove_oob_request(const struct verbs *v,
                                  const struct verbs_nonces *nonces,
                                  const struct verbs_oob_request *request,
                                  uint8_t proof[TRIB_PROOF_BYTES])
{
    mac_of(v, LABEL " call", nonces, request, trib_verbs_oob_request_bytes(request),
           proof);
}

bool trib_verbs_check_answer(const struct verbs *v, const struct verbs_nonces *nonces,
                             const struct verbs_answer *answer, size_t bytes)
{
    union {
        struct verbs_oob_reply reply;
        struct verbs_answer answer;
    } copy;
    uint8_t proof[TRIB_PROOF_BYTES];

    if (!verbs_has_secret(v))
        return true;
    assert(bytes <= sizeof(copy));
    memcpy(&copy, answer, bytes);
    memcpy(proof, answer->proof, sizeof(proof));
    trib_verbs_seal_answer(v, nonces, &copy.answer, bytes);
    return macs_equal(v, copy.answer.proof, proof);
}
