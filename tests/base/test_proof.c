/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/proof.h"

static struct trib_secret secret_of(uint8_t number)
{
    struct trib_secret secret = {.is_set = true, .bytes = {number}};
    char why[160];

    if (!trib_secret_arm(&secret, why, sizeof(why)))
        tribtest_skip(why);
    return secret;
}

static const struct trib_proof about = {.label = "test 1",
                                        .listener = 77,
                                        .rank = {3, 5},
                                        .nonce = {{1, 2, 3}, {4, 5, 6}},
                                        .more = 9,
                                        .request = "hello",
                                        .request_bytes = 5,
                                        .step = TRIB_PROOF_CHALLENGED};

static bool holds(const struct trib_secret *secret, struct trib_proof p,
                  const uint8_t *proof, size_t n)
{
    const bool right = trib_proof_check(secret, &p, proof, n);

    assert_int_equal(p.step, right ? TRIB_PROOF_DONE : TRIB_PROOF_WRONG);
    return right;
}

/* A proof holds for one side of one connection under one secret, and for nothing
 * else. */
TEST(test_proofs)
{
    const struct trib_secret secret = secret_of(1), other = secret_of(2);
    uint8_t proof[TRIB_PROOF_BYTES], listener[TRIB_PROOF_BYTES];

    trib_proof_make(&secret, &about, TRIB_PROOF_CALLER, proof);
    trib_proof_make(&secret, &about, TRIB_PROOF_LISTENER, listener);
    assert_true(holds(&secret, about, proof, sizeof(proof)));
    assert_true(holds(&secret, about, proof, TRIB_PROOF_BYTES_LEAST));
    assert_false(holds(&secret, about, listener, sizeof(listener)));
    assert_false(holds(&other, about, proof, sizeof(proof)));
    for (size_t i = 0; i < sizeof(proof); i++) {
        proof[i] ^= 0x10;
        assert_false(holds(&secret, about, proof, sizeof(proof)));
        proof[i] ^= 0x10;
    }
    for (int change = 0; change < 10; change++) {
        struct trib_proof a = about;
        a.label = change == 0 ? "test 2" : a.label;
        a.listener += change == 1;
        a.rank[0] += change == 2;
        a.rank[1] += change == 3;
        a.nonce[0][15] ^= change == 4;
        a.nonce[1][0] ^= change == 5;
        a.more += change == 6;
        a.request = change == 7 ? "hellp" : a.request;
        a.request_bytes -= change == 8;
        a.request_bytes += change == 9; /* the NUL */
        assert_false(holds(&secret, a, proof, sizeof(proof)));
    }
}

/* Both sides of one connection, up to the listener's challenge. */
struct ends {
    struct trib_proof caller, listener;
    struct trib_challenge challenge;
};

static void begin(struct ends *e, const struct trib_secret *of_listener)
{
    struct trib_proof p = about;
    uint8_t nonce[TRIB_NONCE_BYTES];

    p.step = TRIB_PROOF_NEW;
    memset(p.nonce, 0, sizeof(p.nonce));
    e->caller = e->listener = p;
    assert_true(trib_proof_begin(&e->caller, nonce));
    assert_int_equal(e->caller.step, TRIB_PROOF_BEGUN);
    memcpy(e->listener.nonce[TRIB_PROOF_CALLER], nonce, sizeof(nonce));
    assert_true(trib_proof_challenge(of_listener, &e->listener, &e->challenge));
    assert_int_equal(e->listener.step, TRIB_PROOF_CHALLENGED);
}

TEST(test_same_secret)
{
    const struct trib_secret secret = secret_of(1);
    uint8_t answer[TRIB_PROOF_BYTES], keys[2][TRIB_PROOF_BYTES];
    struct ends e;

    begin(&e, &secret);
    assert_true(trib_proof_answer(&secret, &e.caller, &e.challenge, answer));
    assert_true(trib_proof_check(&secret, &e.listener, answer, sizeof(answer)));
    assert_int_equal(e.caller.step, TRIB_PROOF_DONE);
    assert_int_equal(e.listener.step, TRIB_PROOF_DONE);
    /* Both derive the same keys. */
    e.caller.label = e.listener.label = "test 1 key";
    trib_proof_make(&secret, &e.caller, TRIB_PROOF_CALLER, keys[0]);
    trib_proof_make(&secret, &e.listener, TRIB_PROOF_CALLER, keys[1]);
    assert_memory_equal(keys[0], keys[1], TRIB_PROOF_BYTES);
    assert_memory_not_equal(keys[0], answer, TRIB_PROOF_BYTES);
}

/* The caller reveals no proof to a listener without the secret. */
TEST(test_other_secret)
{
    const struct trib_secret secret = secret_of(1), other = secret_of(2);
    uint8_t answer[TRIB_PROOF_BYTES], zeros[TRIB_PROOF_BYTES] = {0};
    struct ends e;

    begin(&e, &other);
    assert_false(trib_proof_answer(&secret, &e.caller, &e.challenge, answer));
    assert_int_equal(e.caller.step, TRIB_PROOF_WRONG);
    assert_memory_equal(answer, zeros, sizeof(zeros));
    assert_false(trib_proof_check(&other, &e.listener, answer, sizeof(answer)));
    assert_int_equal(e.listener.step, TRIB_PROOF_WRONG);
}

/* A challenge and an answer of one connection are worthless on another one. */
TEST(test_replayed)
{
    const struct trib_secret secret = secret_of(1);
    uint8_t answer[TRIB_PROOF_BYTES];
    struct ends first, second;

    begin(&first, &secret);
    begin(&second, &secret);
    assert_memory_not_equal(&first.challenge, &second.challenge,
                            sizeof(first.challenge));
    assert_true(trib_proof_answer(&secret, &first.caller, &first.challenge, answer));
    assert_false(trib_proof_check(&secret, &second.listener, answer, sizeof(answer)));
    assert_false(trib_proof_answer(&secret, &second.caller, &first.challenge, answer));
}

/* A peer without the secret returns the proof that it received, or takes it from a
 * second connection in the other direction. */
TEST(test_reflected)
{
    const struct trib_secret secret = secret_of(1);
    uint8_t answer[TRIB_PROOF_BYTES];
    struct trib_challenge challenge;
    struct ends e;

    begin(&e, &secret);
    assert_false(trib_proof_check(&secret, &e.listener, e.challenge.proof,
                                  sizeof(e.challenge.proof)));
    /* The victim calls; the attacker calls back with the victim's nonce, and passes the
     * victim's own challenge on. */
    struct trib_proof back = {.label = about.label, .listener = 78, .rank = {5, 3}};
    begin(&e, &secret);
    memcpy(back.nonce[TRIB_PROOF_CALLER], e.caller.nonce[TRIB_PROOF_CALLER],
           TRIB_NONCE_BYTES);
    assert_true(trib_proof_challenge(&secret, &back, &challenge));
    assert_false(trib_proof_answer(&secret, &e.caller, &challenge, answer));
}

/* Shorter and longer requests, one a prefix of the other, and a request that continues
 * the fixed part. */
TEST(test_request_lengths)
{
    const struct trib_secret secret = secret_of(1);
    uint8_t request[TRIB_MAC_BYTES_MOST] = {0}, proofs[3][TRIB_PROOF_BYTES];
    const size_t lengths[] = {0, 1, 2400};
    struct trib_proof p = about;

    p.request = request;
    for (int i = 0; i < 3; i++) {
        p.request_bytes = lengths[i];
        trib_proof_make(&secret, &p, TRIB_PROOF_CALLER, proofs[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_memory_not_equal(proofs[i], proofs[(i + 1) % 3], TRIB_PROOF_BYTES);
}
