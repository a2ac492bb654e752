/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/crypt.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"

#define LIBRARY "libsodium.so.23"

#define STREAM(name) crypto_secretstream_xchacha20poly1305_##name
#define STREAM_STATE crypto_secretstream_xchacha20poly1305_state

#define MUST_EQUAL(a, b) _Static_assert((a) == (b), "must match agg/protocol/crypt.h")

MUST_EQUAL(TRIB_SEAL_BYTES, STREAM(ABYTES));
MUST_EQUAL(TRIB_SEAL_HEADER_BYTES, STREAM(HEADERBYTES));
MUST_EQUAL(TRIB_CRYPT_KEY_BYTES, STREAM(KEYBYTES));
MUST_EQUAL(TRIB_CRYPT_KEY_BYTES, crypto_kdf_KEYBYTES);
MUST_EQUAL(TRIB_CRYPT_KEY_BYTES, crypto_auth_KEYBYTES);
MUST_EQUAL(TRIB_CRYPT_PROOF_BYTES, crypto_auth_BYTES);
MUST_EQUAL(TRIB_CRYPT_KEY_BYTES, crypto_kx_PUBLICKEYBYTES);
MUST_EQUAL(TRIB_CRYPT_KEY_BYTES, crypto_kx_SECRETKEYBYTES);
MUST_EQUAL(TRIB_CRYPT_SHARED_BYTES, 2 * crypto_kx_SESSIONKEYBYTES);
_Static_assert(TRIB_CRYPT_SHARED_BYTES <= crypto_generichash_KEYBYTES_MAX,
               "a shared secret must fit a hash key");

#define SODIUM_CALLS(X) \
    X(sodium_init) \
    X(sodium_memzero) \
    X(sodium_memcmp) \
    X(crypto_generichash) \
    X(crypto_generichash_init) \
    X(crypto_generichash_update) \
    X(crypto_generichash_final) \
    X(crypto_kx_keypair) \
    X(crypto_kx_client_session_keys) \
    X(crypto_kx_server_session_keys) \
    X(crypto_kdf_derive_from_key) \
    X(crypto_auth) \
    X(crypto_secretstream_xchacha20poly1305_init_push) \
    X(crypto_secretstream_xchacha20poly1305_push) \
    X(crypto_secretstream_xchacha20poly1305_init_pull) \
    X(crypto_secretstream_xchacha20poly1305_pull)

struct trib_crypt {
#define MEMBER(call) __typeof__(&call) call;
    SODIUM_CALLS(MEMBER)
#undef MEMBER
};

struct trib_transcript {
    crypto_generichash_state state; /* first: needs 64-byte alignment */
    const struct trib_crypt *crypt;
};

struct trib_seal {
    const struct trib_crypt *crypt;
    STREAM_STATE out;
    STREAM_STATE in;
};

trib_status_t trib_crypt_open(struct trib_error *err, struct trib_crypt **out)
{
    static const struct trib_symbol symbols[] = {
#define ROW(call) {.name = #call, .at = offsetof(struct trib_crypt, call)},
        SODIUM_CALLS(ROW)
#undef ROW
    };
    char why[160];
    struct trib_crypt *crypt = calloc(1, sizeof(*crypt));

    if (!crypt)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    if (!trib_library_open(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
                           crypt, why, sizeof(why))) {
        free(crypt);
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "authentication needs libsodium (%s): install libsodium23",
                         why);
    }
    if (crypt->sodium_init() < 0) {
        free(crypt);
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "libsodium cannot be used on this host: no source of random "
                         "numbers");
    }
    *out = crypt;
    return TRIB_OK;
}

void trib_crypt_free(struct trib_crypt *crypt)
{
    free(crypt);
}

void trib_crypt_wipe(const struct trib_crypt *crypt, void *secret, size_t bytes)
{
    crypt->sodium_memzero(secret, bytes);
}

bool trib_crypt_equal(const struct trib_crypt *crypt, const void *a, const void *b,
                      size_t bytes)
{
    return crypt->sodium_memcmp(a, b, bytes) == 0;
}

/* Hashes --------------------------------------------------------------------------- */

/* The NUL of a label is hashed too, so that no label is a prefix of another. */
struct trib_transcript *trib_transcript_new(const struct trib_crypt *crypt,
                                            const char *label)
{
    _Static_assert(sizeof(struct trib_transcript) % _Alignof(struct trib_transcript) ==
                       0,
                   "required by aligned_alloc");
    struct trib_transcript *t =
        aligned_alloc(_Alignof(struct trib_transcript), sizeof(*t));

    if (!t)
        return NULL;
    t->crypt = crypt;
    crypt->crypto_generichash_init(&t->state, NULL, 0, TRIB_CRYPT_DIGEST_BYTES);
    trib_transcript_add(t, label, strlen(label) + 1);
    return t;
}

void trib_transcript_add(struct trib_transcript *transcript, const void *bytes,
                         size_t n)
{
    transcript->crypt->crypto_generichash_update(&transcript->state, bytes, n);
}

void trib_transcript_digest(const struct trib_transcript *transcript,
                            uint8_t out[TRIB_CRYPT_DIGEST_BYTES])
{
    crypto_generichash_state copy = transcript->state;

    transcript->crypt->crypto_generichash_final(&copy, out, TRIB_CRYPT_DIGEST_BYTES);
}

void trib_transcript_free(struct trib_transcript *transcript)
{
    free(transcript);
}

void trib_crypt_digest(const struct trib_crypt *crypt, const char *label,
                       const void *bytes, size_t n,
                       uint8_t out[TRIB_CRYPT_DIGEST_BYTES])
{
    crypto_generichash_state state;

    crypt->crypto_generichash_init(&state, NULL, 0, TRIB_CRYPT_DIGEST_BYTES);
    crypt->crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    crypt->crypto_generichash_update(&state, bytes, n);
    crypt->crypto_generichash_final(&state, out, TRIB_CRYPT_DIGEST_BYTES);
    crypt->sodium_memzero(&state, sizeof(state));
}

/* Keys ----------------------------------------------------------------------------- */

void trib_crypt_pair_make(const struct trib_crypt *crypt, struct trib_crypt_pair *out)
{
    crypt->crypto_kx_keypair(out->public_key, out->secret_key);
}

/* Side 0 writes its receive key first, side 1 its send key. These two keys are equal,
 * and so are the other two: both sides get the same bytes. */
bool trib_crypt_share(const struct trib_crypt *crypt,
                      const struct trib_crypt_pair *pair, int side,
                      const uint8_t other[TRIB_CRYPT_KEY_BYTES],
                      uint8_t out[TRIB_CRYPT_SHARED_BYTES])
{
    uint8_t *first = out;
    uint8_t *second = out + crypto_kx_SESSIONKEYBYTES;

    assert(side == 0 || side == 1);
    if (side == 0)
        return crypt->crypto_kx_client_session_keys(first, second, pair->public_key,
                                                    pair->secret_key, other) == 0;
    return crypt->crypto_kx_server_session_keys(second, first, pair->public_key,
                                                pair->secret_key, other) == 0;
}

void trib_crypt_keys(const struct trib_crypt *crypt, const uint8_t *secret, size_t n,
                     const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                     struct trib_crypt_keys *out)
{
    static const char context[crypto_kdf_CONTEXTBYTES] = {'t', 'r', 'i', 'b',
                                                          'c', 't', 'r', 'l'};
    uint8_t root[crypto_kdf_KEYBYTES];

    assert(n >= crypto_generichash_KEYBYTES_MIN &&
           n <= crypto_generichash_KEYBYTES_MAX);
    crypt->crypto_generichash(root, sizeof(root), digest, TRIB_CRYPT_DIGEST_BYTES,
                              secret, n);
    for (uint64_t side = 0; side < 2; side++) {
        crypt->crypto_kdf_derive_from_key(out->proof[side], TRIB_CRYPT_KEY_BYTES,
                                          1 + side, context, root);
        crypt->crypto_kdf_derive_from_key(out->stream[side], TRIB_CRYPT_KEY_BYTES,
                                          3 + side, context, root);
    }
    crypt->sodium_memzero(root, sizeof(root));
}

void trib_crypt_prove(const struct trib_crypt *crypt,
                      const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                      const uint8_t more[TRIB_SEAL_HEADER_BYTES],
                      uint8_t out[TRIB_CRYPT_PROOF_BYTES])
{
    uint8_t both[TRIB_CRYPT_DIGEST_BYTES + TRIB_SEAL_HEADER_BYTES];

    memcpy(both, digest, TRIB_CRYPT_DIGEST_BYTES);
    memcpy(both + TRIB_CRYPT_DIGEST_BYTES, more, TRIB_SEAL_HEADER_BYTES);
    crypt->crypto_auth(out, both, sizeof(both), key);
}

/* Seals ---------------------------------------------------------------------------- */

struct trib_seal *trib_seal_new(const struct trib_crypt *crypt)
{
    struct trib_seal *seal = calloc(1, sizeof(*seal));

    if (seal)
        seal->crypt = crypt;
    return seal;
}

void trib_seal_free(struct trib_seal *seal)
{
    if (!seal)
        return;
    seal->crypt->sodium_memzero(&seal->out, sizeof(seal->out));
    seal->crypt->sodium_memzero(&seal->in, sizeof(seal->in));
    free(seal);
}

void trib_seal_begin(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                     uint8_t header_out[TRIB_SEAL_HEADER_BYTES])
{
    seal->crypt->STREAM(init_push)(&seal->out, header_out, key);
}

void trib_seal_follow(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t header[TRIB_SEAL_HEADER_BYTES])
{
    seal->crypt->STREAM(init_pull)(&seal->in, header, key);
}

void trib_seal_close(struct trib_seal *seal, const struct trib_seal_message *message,
                     uint8_t *out)
{
    seal->crypt->STREAM(push)(&seal->out, out, NULL, message->payload, message->n,
                              message->head, message->head_bytes, STREAM(TAG_MESSAGE));
}

bool trib_seal_open(struct trib_seal *seal, const struct trib_seal_message *message,
                    uint8_t *out)
{
    unsigned char tag;

    return seal->crypt->STREAM(pull)(&seal->in, out, NULL, &tag, message->payload,
                                     message->n, message->head,
                                     message->head_bytes) == 0 &&
           tag == STREAM(TAG_MESSAGE);
}
