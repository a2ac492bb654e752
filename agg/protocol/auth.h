/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutual authentication of a job and an aggregator, bound to the name of the job.
 * docs/security.md has the threat model.
 *
 *     job                                    aggregator
 *      HELLO  versions, methods, nonce, job ──▶
 *      ◀── WELCOME  version, method, methods, nonce
 *      AUTH credential ──▶ ◀── AUTH credential          munge only
 *      AUTH proof ──▶ ◀── AUTH proof                    munge and key
 *
 * A proof covers every preceding byte in both directions, including the offered
 * methods, so replayed or modified messages are refused. With "none" the handshake ends
 * with WELCOME.
 */
#ifndef AGG_PROTOCOL_AUTH_H
#define AGG_PROTOCOL_AUTH_H

#include <stdbool.h>
#include <sys/types.h>

#include "agg/protocol/control.h"

struct trib_auth; /* keys and methods of one side; constant, so any thread may use it */
struct trib_error;
struct trib_handshake;
struct trib_seal;

/* Numbers on the wire; offered as bits 1 << number. */
enum trib_auth_method {
    TRIB_AUTH_NONE = 1,
    TRIB_AUTH_KEY = 2,
    TRIB_AUTH_MUNGE = 3,
};

#define TRIB_AUTH_KEY_FILE_MIN 32 /* bytes */
#define TRIB_AUTH_KEY_FILE_MAX 4096

struct trib_auth_opts {
    /*
     * "auto": munge if munged answers, and key if there is a key file; an aggregator
     * accepts either, and munge is preferred. "munge", "key", "none": only that method.
     */
    const char *method;
    const char *key_file; /* NULL or "": none */
    const char *previous_key_file; /* aggregator: also accepted from jobs, while keys
                                    * are replaced; NULL or "": none */
    const char *munge_socket; /* NULL or "": the default socket */
    /* Munge: users to trust in addition to root and the process's own user. */
    const uid_t *users;
    size_t n_users;
};

/* The authenticated peer. */
struct trib_auth_peer {
    enum trib_auth_method method;
    bool has_user; /* by munge; a key only proves its possession */
    bool by_previous_key; /* it proved the key of previous_key_file */
    uid_t uid;
    gid_t gid;
    /* User name on the aggregator's host; "uid N" if unknown there. Empty without
     * has_user, and on the side of the job, which does not look it up. */
    char user[TRIB_CONTROL_USER_MAX + 1];
    char release[TRIB_CONTROL_LIBRARY_MAX + 1]; /* library release, unverified */
};

/** trib_auth_name - return the name of a method, such as "munge". */
const char *trib_auth_name(enum trib_auth_method method);

/**
 * trib_auth_open - read the key and check whether munged answers.
 *
 * May take 2 s if munged is stopped.
 *
 * errors   TRIB_ERR_CONFIG: no method to authenticate by; the key file is missing, too
 *          short or readable by others; a library is not installed
 */
trib_status_t trib_auth_open(const struct trib_auth_opts *opts, struct trib_error *err,
                             struct trib_auth **out);

/** trib_auth_takes - return true if this side can authenticate by the method. */
bool trib_auth_takes(const struct trib_auth *auth, enum trib_auth_method method);

/** trib_auth_repeats_key - return true if previous_key_file has the same key as
 * key_file. */
bool trib_auth_repeats_key(const struct trib_auth *auth);

/** trib_auth_free - free it and wipe the key; NULL is allowed. */
void trib_auth_free(struct trib_auth *auth);

struct trib_handshake_opts {
    const struct trib_auth *auth; /* must outlive the handshake */
    enum trib_control_role role;
    const char *job; /* name of the job, for TRIB_CONTROL_JOB */
};

/** trib_handshake_new - create a handshake; errors: TRIB_ERR_INVALID,
 * TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM. */
trib_status_t trib_handshake_new(const struct trib_handshake_opts *opts,
                                 struct trib_error *err, struct trib_handshake **out);

/**
 * trib_handshake_begin - build the first frame, which the job sends.
 *
 * out       TRIB_CONTROL_EARLY_BYTES
 */
trib_status_t trib_handshake_begin(struct trib_handshake *hs, struct trib_error *err,
                                   uint8_t *out, size_t *used_out);

/**
 * trib_handshake_take - process a frame of the peer.
 *
 * May take 2 s if munged is stopped.
 *
 * reply     [TRIB_CONTROL_EARLY_BYTES]; the caller must send *reply_n bytes of it
 * returns   TRIB_INPROGRESS; TRIB_OK: the peer is authenticated, and payloads after the
 *           reply are sealed; an error: authentication failed, the message may be sent
 *           to the peer, and the handshake accepts no further frame
 * errors    TRIB_ERR_CONFIG: methods, keys, users or realms do not match;
 *           TRIB_ERR_PROTOCOL: malformed frame; TRIB_ERR_UNSUPPORTED: versions
 */
trib_status_t trib_handshake_take(struct trib_handshake *hs,
                                  const struct trib_control_frame *frame,
                                  struct trib_error *err, uint8_t *reply,
                                  size_t *reply_n);

/**
 * trib_handshake_asks - return true if trib_handshake_take will query another program
 * about the next frame.
 *
 * These are munged and the user database, which may take seconds. A thread that must
 * not block lets another thread make the call (trib_session_question).
 */
bool trib_handshake_asks(const struct trib_handshake *hs);

/** trib_handshake_peer - return the peer; valid after TRIB_OK. */
struct trib_auth_peer trib_handshake_peer(const struct trib_handshake *hs);

/** trib_handshake_job - return the name of the job, authenticated after TRIB_OK; ""
 * before HELLO. */
const char *trib_handshake_job(const struct trib_handshake *hs);

/** trib_handshake_version - return the message version; valid after TRIB_OK. */
uint32_t trib_handshake_version(const struct trib_handshake *hs);

/**
 * trib_handshake_seal - return the seal for all later payloads; call it once, after
 * TRIB_OK.
 *
 * returns   NULL with method "none"; otherwise the caller frees the seal
 */
struct trib_seal *trib_handshake_seal(struct trib_handshake *hs);

/** trib_handshake_free - free it and wipe its keys; NULL is allowed. */
void trib_handshake_free(struct trib_handshake *hs);

#endif
