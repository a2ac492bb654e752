/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cryptography for authentication, from libsodium, which agg/protocol/crypt.c loads at
 * run time. Builds without it use agg/protocol/crypt_absent.c, where trib_crypt_open
 * fails.
 *
 *     transcript   BLAKE2b over all frames of a handshake so far
 *     keys         of one connection, derived by BLAKE2b from a secret and a
 *                  transcript; one per role and purpose
 *     proof        HMAC-SHA512-256 of a transcript under the key of its role
 *     seal         XChaCha20-Poly1305 as a stream: rejects messages that are modified,
 *                  missing, replayed, reordered or of the other direction
 */
#ifndef AGG_PROTOCOL_CRYPT_H
#define AGG_PROTOCOL_CRYPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_crypt; /* the loaded library; constant, so any thread may use it */
struct trib_transcript;
struct trib_seal;

#define TRIB_CRYPT_DIGEST_BYTES 32
#define TRIB_CRYPT_KEY_BYTES 32
#define TRIB_CRYPT_SHARED_BYTES 64
#define TRIB_CRYPT_PROOF_BYTES 32
#define TRIB_SEAL_BYTES 17 /* bytes added to a sealed message */
#define TRIB_SEAL_HEADER_BYTES 24

/* Key pair of one connection, from which both sides derive the same secret. */
struct trib_crypt_pair {
    uint8_t public_key[TRIB_CRYPT_KEY_BYTES];
    uint8_t secret_key[TRIB_CRYPT_KEY_BYTES];
};

/* Indexed by side: 0 connects, 1 accepts. */
struct trib_crypt_keys {
    uint8_t proof[2][TRIB_CRYPT_KEY_BYTES];
    uint8_t stream[2][TRIB_CRYPT_KEY_BYTES];
};

/**
 * trib_crypt_open - load the library.
 *
 * errors   TRIB_ERR_CONFIG: not installed; the message names the package
 */
trib_status_t trib_crypt_open(struct trib_error *err, struct trib_crypt **out);
void trib_crypt_free(struct trib_crypt *crypt);

/** trib_crypt_wipe - overwrite a secret; the compiler cannot remove this call. */
void trib_crypt_wipe(const struct trib_crypt *crypt, void *secret, size_t bytes);

/** trib_crypt_equal - compare in constant time. */
bool trib_crypt_equal(const struct trib_crypt *crypt, const void *a, const void *b,
                      size_t bytes);

/** trib_crypt_digest - hash bytes under a label, which separates uses. */
void trib_crypt_digest(const struct trib_crypt *crypt, const char *label,
                       const void *bytes, size_t n,
                       uint8_t out[TRIB_CRYPT_DIGEST_BYTES]);

/** trib_transcript_new - create a transcript; NULL: out of memory. */
struct trib_transcript *trib_transcript_new(const struct trib_crypt *crypt,
                                            const char *label);
void trib_transcript_add(struct trib_transcript *transcript, const void *bytes,
                         size_t n);
/** trib_transcript_digest - hash all added bytes; more may be added later. */
void trib_transcript_digest(const struct trib_transcript *transcript,
                            uint8_t out[TRIB_CRYPT_DIGEST_BYTES]);
void trib_transcript_free(struct trib_transcript *transcript);

void trib_crypt_pair_make(const struct trib_crypt *crypt, struct trib_crypt_pair *out);

/**
 * trib_crypt_share - derive the secret from the local pair and the peer's public key
 * (X25519).
 *
 * side      side of this end
 * returns   false: not a valid public key
 */
bool trib_crypt_share(const struct trib_crypt *crypt,
                      const struct trib_crypt_pair *pair, int side,
                      const uint8_t other[TRIB_CRYPT_KEY_BYTES],
                      uint8_t out[TRIB_CRYPT_SHARED_BYTES]);

/**
 * trib_crypt_keys - derive the keys of a connection.
 *
 * secret   16 to 64 bytes
 */
void trib_crypt_keys(const struct trib_crypt *crypt, const uint8_t *secret, size_t n,
                     const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                     struct trib_crypt_keys *out);

/** trib_crypt_prove - prove possession of the key over a transcript and `more`. */
void trib_crypt_prove(const struct trib_crypt *crypt,
                      const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                      const uint8_t more[TRIB_SEAL_HEADER_BYTES],
                      uint8_t out[TRIB_CRYPT_PROOF_BYTES]);

/** trib_seal_new - create a seal; NULL: out of memory. */
struct trib_seal *trib_seal_new(const struct trib_crypt *crypt);
void trib_seal_free(struct trib_seal *seal);

/** trib_seal_begin - start the outgoing stream; the peer needs its header to read it.
 */
void trib_seal_begin(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                     uint8_t header_out[TRIB_SEAL_HEADER_BYTES]);
void trib_seal_follow(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t header[TRIB_SEAL_HEADER_BYTES]);

/* One message. The head is authenticated, and the payload is also encrypted. */
struct trib_seal_message {
    const uint8_t *head;
    size_t head_bytes;
    const uint8_t *payload;
    size_t n;
};

/** trib_seal_close - seal a message into n + TRIB_SEAL_BYTES at `out`, not in place. */
void trib_seal_close(struct trib_seal *seal, const struct trib_seal_message *message,
                     uint8_t *out);

/**
 * trib_seal_open - unseal the peer's next message.
 *
 * out       n - TRIB_SEAL_BYTES, not in place
 * returns   false: not the peer's next message, or modified
 */
bool trib_seal_open(struct trib_seal *seal, const struct trib_seal_message *message,
                    uint8_t *out);

#endif
