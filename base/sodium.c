/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sodium.h"

#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "build-config.h"

#if HAVE_SODIUM

#define LIBRARY "libsodium.so.23"
#define XCHACHA(call) "crypto_aead_xchacha20poly1305_ietf_" call
#define AES(call) "crypto_aead_aes256gcm_" call

bool trib_sodium_open(struct trib_sodium *out, char *why, size_t bytes)
{
    static const struct trib_symbol symbols[] = {
        {.name = "sodium_init", .at = offsetof(struct trib_sodium, init)},
        {.name = "crypto_auth", .at = offsetof(struct trib_sodium, auth)},
        {.name = "sodium_memcmp", .at = offsetof(struct trib_sodium, equal)},
        {.name = "sodium_memzero", .at = offsetof(struct trib_sodium, wipe)},
        {.name = XCHACHA("encrypt_detached"),
         .at = offsetof(struct trib_sodium, xchacha_seal)},
        {.name = XCHACHA("decrypt_detached"),
         .at = offsetof(struct trib_sodium, xchacha_open)},
        {.name = AES("is_available"),
         .at = offsetof(struct trib_sodium, aes_available)},
        {.name = AES("statebytes"),
         .at = offsetof(struct trib_sodium, aes_state_bytes)},
        {.name = AES("beforenm"), .at = offsetof(struct trib_sodium, aes_prepare)},
        {.name = AES("encrypt_detached_afternm"),
         .at = offsetof(struct trib_sodium, aes_seal)},
        {.name = AES("decrypt_detached_afternm"),
         .at = offsetof(struct trib_sodium, aes_open)},
    };

    if (trib_library_open(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), out,
                          why, bytes) &&
        out->init() >= 0)
        return true;
    if (out->init)
        snprintf(why, bytes, "libsodium finds no source of random numbers");
    memset(out, 0, sizeof(*out));
    return false;
}

#else

bool trib_sodium_open(struct trib_sodium *out, char *why, size_t bytes)
{
    memset(out, 0, sizeof(*out));
    snprintf(why, bytes, "this build is without libsodium");
    return false;
}

#endif
