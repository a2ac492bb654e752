/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table of functions of an authentication method. Only agg/protocol/auth*.c and
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
    struct trib_crypt *crypt; /* NULL: only "none" is open */
    uint8_t key[TRIB_CRYPT_KEY_BYTES];
    uint8_t previous_key[TRIB_CRYPT_KEY_BYTES]; /* jobs may still use it */
    bool has_previous;
    struct trib_munge *munge;
    uid_t *users;
    size_t n_users;
};

struct trib_auth_credential {
    uint8_t bytes[TRIB_CONTROL_AUTH_MAX];
    uint32_t n;
};

/* State of a handshake. */
enum trib_handshake_state {
    TRIB_HANDSHAKE_NEW, /* job: HELLO not sent yet */
    TRIB_HANDSHAKE_HELLO, /* aggregator: waits for HELLO */
    TRIB_HANDSHAKE_WELCOME, /* job: waits for WELCOME */
    TRIB_HANDSHAKE_CREDENTIAL, /* waits for the peer's credential */
    TRIB_HANDSHAKE_PROOF, /* waits for the peer's proof */
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
    struct trib_transcript *transcript; /* NULL: no libsodium, only "none" */
    struct trib_crypt_pair pair; /* munge: local key pair */
    uint8_t other_key[TRIB_CRYPT_KEY_BYTES]; /* munge: the peer's public key */
    uint8_t secret[TRIB_CRYPT_SHARED_BYTES]; /* shared by both sides */
    size_t secret_n;
    struct trib_crypt_keys keys;
    struct trib_seal *seal;
};

struct trib_auth_method_ops {
    const char *name;
    enum trib_auth_method number;
    bool proves; /* yields a secret; otherwise there is nothing to prove */
    /*
     * Set up the method from opts; NULL: nothing to set up. TRIB_ERR_UNSUPPORTED: not
     * available, skipped by "auto"; other errors are configuration errors.
     */
    trib_status_t (*open)(struct trib_auth *auth, const struct trib_auth_opts *opts,
                          struct trib_error *err);
    void (*close)(struct trib_auth *auth); /* or NULL */
    /* Produce the local credential and judge the peer's; NULL: the method has none. */
    trib_status_t (*give)(struct trib_handshake *hs, struct trib_error *err,
                          struct trib_auth_credential *out);
    trib_status_t (*take)(struct trib_handshake *hs, struct trib_error *err,
                          const struct trib_control_bytes *data);
    /* Set the shared secret after the credentials are exchanged; false: failed. NULL:
     * the method proves nothing, or is not available. */
    bool (*secret)(struct trib_handshake *hs);
};

extern const struct trib_auth_method_ops trib_auth_munge;
extern const struct trib_auth_method_ops trib_auth_key;
extern const struct trib_auth_method_ops trib_auth_none;

/* Methods in order of preference. */
#define TRIB_AUTH_METHODS 3
extern const struct trib_auth_method_ops *const trib_auth_methods[TRIB_AUTH_METHODS];

/** trib_auth_offered - format offered methods, such as "munge, key". */
const char *trib_auth_offered(unsigned offer, char *text, size_t bytes);

/** trib_handshake_side - return 0 for the job, 1 for the aggregator. */
static inline int trib_handshake_side(const struct trib_handshake *hs)
{
    return hs->role == TRIB_CONTROL_JOB ? 0 : 1;
}

#endif
