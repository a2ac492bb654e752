/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A method of authentication is a row of functions. Only agg/protocol/auth*.c and
 * agg/protocol/handshake.c include this header.
 */
#ifndef AGG_PROTOCOL_AUTH_METHODS_H
#define AGG_PROTOCOL_AUTH_METHODS_H

#include "agg/protocol/auth.h"
#include "agg/protocol/crypt.h"

struct trib_auth_method_ops;
struct trib_munge;

struct trib_auth {
    unsigned offer; /* bits of enum trib_auth_method */
    struct trib_crypt *crypt; /* NULL: "none" */
    uint8_t key[TRIB_CRYPT_KEY_BYTES];
    uint8_t previous_key[TRIB_CRYPT_KEY_BYTES]; /* jobs may still have it */
    bool has_previous;
    struct trib_munge *munge;
    uid_t *users;
    size_t n_users;
};

struct trib_auth_credential {
    uint8_t bytes[TRIB_CONTROL_AUTH_MAX];
    uint32_t n;
};

/* The progress of a handshake. */
enum trib_handshake_state {
    TRIB_HANDSHAKE_NEW, /* the job: HELLO is to be sent */
    TRIB_HANDSHAKE_HELLO, /* the aggregator waits for HELLO */
    TRIB_HANDSHAKE_WELCOME, /* the job waits for WELCOME */
    TRIB_HANDSHAKE_CREDENTIAL, /* waits for the other's credential */
    TRIB_HANDSHAKE_PROOF, /* waits for the other's proof */
    TRIB_HANDSHAKE_DONE,
    TRIB_HANDSHAKE_FAILED,
};

struct trib_handshake {
    const struct trib_auth *auth;
    enum trib_control_role role;
    enum trib_handshake_state state;
    const struct trib_auth_method_ops *method; /* NULL: not chosen yet */
    struct trib_auth_peer peer;
    uint32_t version; /* of the messages; 0: not chosen yet */
    char job[TRIB_CONTROL_JOB_MAX + 1];
    uint8_t nonce[TRIB_CONTROL_NONCE_BYTES];
    struct trib_transcript *transcript; /* NULL: without libsodium, hence "none" */
    struct trib_crypt_pair pair; /* munge: the key pair of this side */
    uint8_t other_key[TRIB_CRYPT_KEY_BYTES]; /* munge: the other side's public key */
    uint8_t secret[TRIB_CRYPT_SHARED_BYTES]; /* secret that both sides have */
    size_t secret_n;
    struct trib_crypt_keys keys;
    struct trib_seal *seal;
};

struct trib_auth_method_ops {
    const char *name;
    enum trib_auth_method number;
    bool proves; /* has a secret in the end; else there is nothing to prove */
    /*
     * Make ready what opts say. TRIB_ERR_UNSUPPORTED: it is not there, which "auto"
     * passes over; other errors are mistakes.
     */
    trib_status_t (*open)(struct trib_auth *auth, const struct trib_auth_opts *opts,
                          struct trib_error *err);
    void (*close)(struct trib_auth *auth);
    /* The own credential, and judging the other's; NULL: without. */
    trib_status_t (*give)(struct trib_handshake *hs, struct trib_error *err,
                          struct trib_auth_credential *out);
    trib_status_t (*take)(struct trib_handshake *hs, struct trib_error *err,
                          const struct trib_control_bytes *data);
    /* Set what both sides know, once the credentials are exchanged; false: there is
     * none. */
    bool (*secret)(struct trib_handshake *hs);
};

extern const struct trib_auth_method_ops trib_auth_munge;
extern const struct trib_auth_method_ops trib_auth_key;
extern const struct trib_auth_method_ops trib_auth_none;

/* The methods, in the order of preference. */
#define TRIB_AUTH_METHODS 3
extern const struct trib_auth_method_ops *const trib_auth_methods[TRIB_AUTH_METHODS];

/** trib_auth_offered - "munge, key". */
const char *trib_auth_offered(unsigned offer, char *text, size_t bytes);

/** trib_handshake_side - 0 of the job, 1 of the aggregator. */
static inline int trib_handshake_side(const struct trib_handshake *hs)
{
    return hs->role == TRIB_CONTROL_JOB ? 0 : 1;
}

#endif
