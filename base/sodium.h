/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libsodium functions used by transports and boot, opened at run time like those of
 * the service in agg/protocol/crypt.c. Opening fails with a reason if the build lacks
 * libsodium's headers or the host lacks the library.
 */
#ifndef BASE_SODIUM_H
#define BASE_SODIUM_H

#include <stdbool.h>
#include <stddef.h>

/* Table of functions; zero-initialised: not opened. Constant once open, so any thread
 * may use it. */
struct trib_sodium {
    int (*init)(void);
    int (*auth)(unsigned char *out, const unsigned char *in, unsigned long long n,
                const unsigned char *key);
    int (*equal)(const void *a, const void *b, size_t n);
    void (*wipe)(void *bytes, size_t n);
    int (*xchacha_seal)(unsigned char *out, unsigned char *tag,
                        unsigned long long *tag_bytes, const unsigned char *in,
                        unsigned long long n, const unsigned char *more,
                        unsigned long long n_more, const unsigned char *none,
                        const unsigned char *nonce, const unsigned char *key);
    int (*xchacha_open)(unsigned char *out, unsigned char *none,
                        const unsigned char *in, unsigned long long n,
                        const unsigned char *tag, const unsigned char *more,
                        unsigned long long n_more, const unsigned char *nonce,
                        const unsigned char *key);
    int (*aes_available)(void);
    size_t (*aes_state_bytes)(void);
    int (*aes_prepare)(void *state, const unsigned char *key);
    int (*aes_seal)(unsigned char *out, unsigned char *tag,
                    unsigned long long *tag_bytes, const unsigned char *in,
                    unsigned long long n, const unsigned char *more,
                    unsigned long long n_more, const unsigned char *none,
                    const unsigned char *nonce, const void *state);
    int (*aes_open)(unsigned char *out, unsigned char *none, const unsigned char *in,
                    unsigned long long n, const unsigned char *tag,
                    const unsigned char *more, unsigned long long n_more,
                    const unsigned char *nonce, const void *state);
};

/**
 * trib_sodium_open - open the library.
 *
 * why      receives the cause of a failure: a clause such as "libsodium.so.23: cannot
 *          open …"
 * returns  false: *out is zero
 */
bool trib_sodium_open(struct trib_sodium *out, char *why, size_t bytes);

#endif
