/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cryptography on which authentication rests. It is libsodium's, opened at run time
 * (agg/protocol/crypt.c); without it there is agg/protocol/crypt_absent.c, where
 * opening fails.
 *
 *     transcript   BLAKE2b over all frames of a handshake so far
 *     keys         of one connection: from a secret and a transcript, by BLAKE2b; one
 * for each role and purpose proof        HMAC-SHA512-256 of a transcript under the key
 * of its role seal         XChaCha20-Poly1305 as a stream: a message that is changed,
 * left out, repeated, out of order or of the other direction is not opened
 */
#ifndef AGG_PROTOCOL_CRYPT_H
#define AGG_PROTOCOL_CRYPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_crypt; /* the library; constant once it is open, hence for any thread */
struct trib_transcript;
struct trib_seal;

#define TRIB_CRYPT_DIGEST_BYTES 32
#define TRIB_CRYPT_KEY_BYTES 32
#define TRIB_CRYPT_SHARED_BYTES 64
#define TRIB_CRYPT_PROOF_BYTES 32
#define TRIB_SEAL_BYTES 17 /* bytes by which a sealed message is longer */
#define TRIB_SEAL_HEADER_BYTES 24

/* A pair of keys for one connection, from which both sides come to the same secret. */
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
 * trib_crypt_open - open the library.
 *
 * errors   TRIB_ERR_CONFIG: it is missing; the sentence names the package
 */
trib_status_t trib_crypt_open(struct trib_error *err, struct trib_crypt **out);
void trib_crypt_free(struct trib_crypt *crypt);

/** trib_crypt_wipe - overwrite a secret, whatever the compiler thinks of it. */
void trib_crypt_wipe(const struct trib_crypt *crypt, void *secret, size_t bytes);

/** trib_crypt_equal - compare in a time that says nothing about the contents. */
bool trib_crypt_equal(const struct trib_crypt *crypt, const void *a, const void *b,
                      size_t bytes);

/** trib_crypt_digest - digest bytes under a label, which keeps uses apart. */
void trib_crypt_digest(const struct trib_crypt *crypt, const char *label,
                       const void *bytes, size_t n,
                       uint8_t out[TRIB_CRYPT_DIGEST_BYTES]);

/** trib_transcript_new - NULL: out of memory. */
struct trib_transcript *trib_transcript_new(const struct trib_crypt *crypt,
                                            const char *label);
void trib_transcript_add(struct trib_transcript *transcript, const void *bytes,
                         size_t n);
/** trib_transcript_digest - digest what was added so far; more may be added. */
void trib_transcript_digest(const struct trib_transcript *transcript,
                            uint8_t out[TRIB_CRYPT_DIGEST_BYTES]);
void trib_transcript_free(struct trib_transcript *transcript);

void trib_crypt_pair_make(const struct trib_crypt *crypt, struct trib_crypt_pair *out);

/**
 * trib_crypt_share - the secret of this side's pair and the other's public key
 * (X25519).
 *
 * side      of this end
 * returns   false: that is no public key
 */
bool trib_crypt_share(const struct trib_crypt *crypt,
                      const struct trib_crypt_pair *pair, int side,
                      const uint8_t other[TRIB_CRYPT_KEY_BYTES],
                      uint8_t out[TRIB_CRYPT_SHARED_BYTES]);

/**
 * trib_crypt_keys - the keys of a connection.
 *
 * secret   16 to 64 bytes
 */
void trib_crypt_keys(const struct trib_crypt *crypt, const uint8_t *secret, size_t n,
                     const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                     struct trib_crypt_keys *out);

/** trib_crypt_prove - prove, by a transcript and `more`, that this side has the
 * keys. */
void trib_crypt_prove(const struct trib_crypt *crypt,
                      const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t digest[TRIB_CRYPT_DIGEST_BYTES],
                      const uint8_t more[TRIB_SEAL_HEADER_BYTES],
                      uint8_t out[TRIB_CRYPT_PROOF_BYTES]);

/** trib_seal_new - NULL: out of memory. */
struct trib_seal *trib_seal_new(const struct trib_crypt *crypt);
void trib_seal_free(struct trib_seal *seal);

/** trib_seal_begin - the stream that this side writes; the other reads by its header.
 */
void trib_seal_begin(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                     uint8_t header_out[TRIB_SEAL_HEADER_BYTES]);
void trib_seal_follow(struct trib_seal *seal, const uint8_t key[TRIB_CRYPT_KEY_BYTES],
                      const uint8_t header[TRIB_SEAL_HEADER_BYTES]);

/* One message: its head, which stays legible, and its payload. */
struct trib_seal_message {
    const uint8_t *head;
    size_t head_bytes;
    const uint8_t *payload;
    size_t n;
};

/** trib_seal_close - write n + TRIB_SEAL_BYTES to `out`, which is not the payload. */
void trib_seal_close(struct trib_seal *seal, const struct trib_seal_message *message,
                     uint8_t *out);

/**
 * trib_seal_open - read the next message of the other side.
 *
 * out       n - TRIB_SEAL_BYTES, not the payload
 * returns   false: it is not the next message as the other side wrote it
 */
bool trib_seal_open(struct trib_seal *seal, const struct trib_seal_message *message,
                    uint8_t *out);

#endif
