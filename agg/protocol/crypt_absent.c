/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Substitutes of agg/protocol/crypt.c for a build without libsodium: trib_crypt_open
 * fails, so the other functions are never called.
 */
#include "agg/protocol/crypt.h"

#include <stdlib.h>

#include "base/error.h"

trib_status_t trib_crypt_open(struct trib_error *err, struct trib_crypt **out)
{
    (void)out;
    return trib_fail(err, TRIB_ERR_CONFIG,
                     "authentication needs libsodium, which this build lacks: install "
                     "libsodium-dev and rebuild");
}

void trib_crypt_free(struct trib_crypt *crypt)
{
    (void)crypt;
}

#pragma GCC diagnostic ignored \
    "-Wunused-parameter" /* no function here uses its parameters */

/* clang-format off */
#define NEVER(type, name, ...) type name(__VA_ARGS__) { abort(); }

NEVER(void, trib_crypt_wipe, const struct trib_crypt *c, void *s, size_t n)
NEVER(bool, trib_crypt_equal, const struct trib_crypt *c, const void *a, const void *b,
      size_t n)
NEVER(void, trib_crypt_digest, const struct trib_crypt *c, const char *l, const void *b,
      size_t n, uint8_t out[TRIB_CRYPT_DIGEST_BYTES])
NEVER(struct trib_transcript *, trib_transcript_new, const struct trib_crypt *c,
      const char *l)
NEVER(void, trib_transcript_add, struct trib_transcript *t, const void *b, size_t n)
NEVER(void, trib_transcript_digest, const struct trib_transcript *t,
      uint8_t out[TRIB_CRYPT_DIGEST_BYTES])
NEVER(void, trib_crypt_pair_make, const struct trib_crypt *c,
      struct trib_crypt_pair *out)
NEVER(bool, trib_crypt_share, const struct trib_crypt *c,
      const struct trib_crypt_pair *p, int side,
      const uint8_t other[TRIB_CRYPT_KEY_BYTES], uint8_t out[TRIB_CRYPT_SHARED_BYTES])
NEVER(void, trib_crypt_keys, const struct trib_crypt *c, const uint8_t *s, size_t n,
      const uint8_t d[TRIB_CRYPT_DIGEST_BYTES], struct trib_crypt_keys *out)
NEVER(void, trib_crypt_prove, const struct trib_crypt *c,
      const uint8_t k[TRIB_CRYPT_KEY_BYTES], const uint8_t d[TRIB_CRYPT_DIGEST_BYTES],
      const uint8_t m[TRIB_SEAL_HEADER_BYTES], uint8_t out[TRIB_CRYPT_PROOF_BYTES])
NEVER(struct trib_seal *, trib_seal_new, const struct trib_crypt *c)
NEVER(void, trib_seal_begin, struct trib_seal *s,
      const uint8_t k[TRIB_CRYPT_KEY_BYTES], uint8_t header[TRIB_SEAL_HEADER_BYTES])
NEVER(void, trib_seal_follow, struct trib_seal *s,
      const uint8_t k[TRIB_CRYPT_KEY_BYTES],
      const uint8_t header[TRIB_SEAL_HEADER_BYTES])
NEVER(void, trib_seal_close, struct trib_seal *s, const struct trib_seal_message *m,
      uint8_t *out)
NEVER(bool, trib_seal_open, struct trib_seal *s, const struct trib_seal_message *m,
      uint8_t *out)
/* clang-format on */

/* These two accept NULL, the only value here. */
void trib_transcript_free(struct trib_transcript *transcript)
{
    (void)transcript;
}

void trib_seal_free(struct trib_seal *seal)
{
    (void)seal;
}
