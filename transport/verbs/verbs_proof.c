/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: both sides of a connection prove that they have the job's secret, before the
 * listener makes a queue pair ready.
 *
 * librdmacm allows one request and one answer. So the first request is rejected with
 * the listener's challenge, and the second one carries the requester's proof. Each open
 * challenge accepts one request. For OOB requests (verbs_oob_listener.c) all messages
 * use one TCP connection, and the proofs cover the whole request. The listener's last
 * message is authenticated, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "transport/verbs/verbs.h"

#define LABEL "verbs 6"

_Static_assert(VERBS_VERSION == 6, "the label of a proof names the version");

enum { OPEN_MS = 20000 }; /* for the second request */

static struct trib_proof proof_of(const struct verbs_hello *hello, int listener)
{
    return (struct trib_proof){
        .label = LABEL, .listener = hello->key, .rank = {hello->rank, listener}};
}

/* The listener --------------------------------------------------------------------- */

bool trib_verbs_challenge(const struct verbs *v, const struct verbs_hello *hello,
                          const void *request, size_t bytes, struct trib_proof *proof,
                          struct verbs_answer *answer)
{
    assert(verbs_has_secret(v) && hello->step == VERBS_BEGINS);
    *proof = proof_of(hello, v->self);
    proof->request = request;
    proof->request_bytes = bytes;
    memcpy(proof->nonce[TRIB_PROOF_CALLER], hello->proof, TRIB_NONCE_BYTES);
    answer->refusal = VERBS_CHALLENGE;
    return trib_proof_challenge(v->secret, proof, &answer->challenge);
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
    p->until = trib_deadline_ms(OPEN_MS);
    return trib_verbs_challenge(v, hello, NULL, 0, &p->proof, answer);
}

/* A wrong proof leaves the challenges open: anyone can send one. Call with `links`
 * held. */
bool trib_verbs_close_challenge(struct verbs *v, const struct verbs_hello *hello,
                                struct trib_proof *proof_out)
{
    assert(verbs_links_held(v));
    for (int i = 0; v->challenges && i < v->size + TRIB_NET_UNAUTHENTICATED; i++) {
        struct verbs_cm_challenge *p = &v->challenges[i];
        if (!p->until || p->proof.rank[TRIB_PROOF_CALLER] != hello->rank ||
            trib_deadline_passed(p->until))
            continue;
        *proof_out = p->proof;
        if (!trib_proof_check(v->secret, proof_out, hello->proof, sizeof(hello->proof)))
            continue;
        p->until = 0;
        return true;
    }
    return false;
}

/* The MAC covers all other bytes of the answer. */
static void seal_of(const struct verbs *v, const struct trib_proof *proof,
                    const struct verbs_answer *answer, size_t bytes,
                    uint8_t out[TRIB_PROOF_BYTES])
{
    union {
        struct verbs_oob_reply reply;
        struct verbs_answer answer;
    } copy;
    struct trib_proof seal = *proof;

    assert(verbs_has_secret(v) && bytes <= sizeof(copy));
    assert(proof->step == TRIB_PROOF_DONE);
    memcpy(&copy, answer, bytes);
    memset(copy.answer.challenge.proof, 0, sizeof(copy.answer.challenge.proof));
    seal.label = LABEL " reply";
    seal.request = &copy;
    seal.request_bytes = bytes;
    trib_proof_make(v->secret, &seal, TRIB_PROOF_LISTENER, out);
}

void trib_verbs_seal_answer(const struct verbs *v, const struct trib_proof *proof,
                            struct verbs_answer *answer, size_t bytes)
{
    uint8_t mac[TRIB_PROOF_BYTES];

    memcpy(answer->challenge.nonce, proof->nonce[TRIB_PROOF_LISTENER],
           TRIB_NONCE_BYTES);
    seal_of(v, proof, answer, bytes, mac);
    memcpy(answer->challenge.proof, mac, sizeof(mac));
}

/* The connecting side -------------------------------------------------------------- */

bool trib_verbs_begin_hello(const struct verbs *v, int peer, struct verbs_hello *hello,
                            struct trib_proof *proof)
{
    *proof = proof_of(hello, peer);
    hello->step = verbs_has_secret(v) ? VERBS_BEGINS : VERBS_ASKS;
    return !verbs_has_secret(v) || trib_proof_begin(proof, hello->proof);
}

bool trib_verbs_check_answer(const struct verbs *v, const struct trib_proof *proof,
                             const struct verbs_answer *answer, size_t bytes)
{
    uint8_t mac[TRIB_PROOF_BYTES];

    if (!verbs_has_secret(v))
        return true;
    seal_of(v, proof, answer, bytes, mac);
    return v->secret->sodium.equal(mac, answer->challenge.proof, sizeof(mac)) == 0;
}
