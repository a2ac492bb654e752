/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/proof.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

/* Every part has a fixed offset and length, and the request comes last, so different
 * claims never produce the same bytes. */
struct claim {
    uint8_t nonce[TRIB_PROOF_SIDES][TRIB_NONCE_BYTES];
    uint64_t listener;
    int32_t rank[TRIB_PROOF_SIDES];
    uint32_t more;
    uint32_t side;
};
_Static_assert(sizeof(struct claim) == 56, "no padding");

static bool make_nonce(uint8_t out[TRIB_NONCE_BYTES])
{
    return getrandom(out, TRIB_NONCE_BYTES, 0) == TRIB_NONCE_BYTES;
}

void trib_proof_make(const struct trib_secret *secret, const struct trib_proof *p,
                     enum trib_proof_side side, uint8_t out[TRIB_PROOF_BYTES])
{
    uint8_t all[TRIB_MAC_BYTES_MOST];
    struct claim claim = {
        .listener = p->listener, .more = p->more, .side = (uint32_t)side};

    assert(p->request_bytes <= sizeof(all) - sizeof(claim));
    memcpy(claim.nonce, p->nonce, sizeof(claim.nonce));
    memcpy(claim.rank, p->rank, sizeof(claim.rank));
    memcpy(all, &claim, sizeof(claim));
    if (p->request)
        memcpy(all + sizeof(claim), p->request, p->request_bytes);
    trib_secret_mac(secret, p->label, all, sizeof(claim) + p->request_bytes, out);
}

static bool holds(const struct trib_secret *secret, const struct trib_proof *p,
                  enum trib_proof_side side, const uint8_t *proof, size_t n)
{
    uint8_t right[TRIB_PROOF_BYTES];

    assert(n >= TRIB_PROOF_BYTES_LEAST && n <= TRIB_PROOF_BYTES);
    trib_proof_make(secret, p, side, right);
    return secret->sodium.equal(right, proof, n) == 0;
}

bool trib_proof_begin(struct trib_proof *p, uint8_t nonce_out[TRIB_NONCE_BYTES])
{
    assert(p->step == TRIB_PROOF_NEW);
    if (!make_nonce(p->nonce[TRIB_PROOF_CALLER]))
        return false;
    memcpy(nonce_out, p->nonce[TRIB_PROOF_CALLER], TRIB_NONCE_BYTES);
    p->step = TRIB_PROOF_BEGUN;
    return true;
}

bool trib_proof_challenge(const struct trib_secret *secret, struct trib_proof *p,
                          struct trib_challenge *out)
{
    assert(p->step == TRIB_PROOF_NEW);
    if (!make_nonce(p->nonce[TRIB_PROOF_LISTENER]))
        return false;
    memcpy(out->nonce, p->nonce[TRIB_PROOF_LISTENER], TRIB_NONCE_BYTES);
    trib_proof_make(secret, p, TRIB_PROOF_LISTENER, out->proof);
    p->step = TRIB_PROOF_CHALLENGED;
    return true;
}

bool trib_proof_answer(const struct trib_secret *secret, struct trib_proof *p,
                       const struct trib_challenge *challenge,
                       uint8_t out[TRIB_PROOF_BYTES])
{
    assert(p->step == TRIB_PROOF_BEGUN);
    memcpy(p->nonce[TRIB_PROOF_LISTENER], challenge->nonce, TRIB_NONCE_BYTES);
    const bool right = holds(secret, p, TRIB_PROOF_LISTENER, challenge->proof,
                             sizeof(challenge->proof));
    p->step = right ? TRIB_PROOF_DONE : TRIB_PROOF_WRONG;
    memset(out, 0, TRIB_PROOF_BYTES);
    if (right)
        trib_proof_make(secret, p, TRIB_PROOF_CALLER, out);
    return right;
}

bool trib_proof_check(const struct trib_secret *secret, struct trib_proof *p,
                      const uint8_t *proof, size_t n)
{
    assert(p->step == TRIB_PROOF_CHALLENGED);
    const bool right = holds(secret, p, TRIB_PROOF_CALLER, proof, n);
    p->step = right ? TRIB_PROOF_DONE : TRIB_PROOF_WRONG;
    return right;
}
