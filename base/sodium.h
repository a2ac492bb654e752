/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libsodium that transports and the start of a job need, opened at run
 * time as agg/protocol/crypt.c opens those of the service. A build without libsodium's
 * headers, and a host without the library, have none: then opening fails and says so.
 */
#ifndef BASE_SODIUM_H
#define BASE_SODIUM_H

#include <stdbool.h>
#include <stddef.h>

/* A table of functions; zeroed: not opened. Constant once it is open, hence for any
 * thread. */
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
 * why      receives why it cannot be used: a clause such as "libsodium.so.23: cannot
 *          open …"
 * returns  false: *out is then zero
 */
bool trib_sodium_open(struct trib_sodium *out, char *why, size_t bytes);

#endif
