/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutual authentication of a job and an aggregator, bound to the name of the job.
 * docs/security.md says against whom this protects.
 *
 *     job                                    aggregator
 *      HELLO  versions, methods, nonce, job ──▶
 *      ◀── WELCOME  version, method, methods, nonce
 *      AUTH credential ──▶ ◀── AUTH credential          munge alone
 *      AUTH proof ──▶ ◀── AUTH proof                    munge and key
 *
 * A proof covers every byte that went before it, in both directions: so what was
 * replayed or changed on the way, the methods on offer too, is refused. With "none" the
 * WELCOME is the last of it.
 */
#ifndef AGG_PROTOCOL_AUTH_H
#define AGG_PROTOCOL_AUTH_H

#include <stdbool.h>
#include <sys/types.h>

#include "agg/protocol/control.h"

struct trib_auth; /* the keys or the method of one side; constant, hence for any
                   * thread */
struct trib_error;
struct trib_handshake;
struct trib_seal;

/* On the wire; offered as bits 1 << number. */
enum trib_auth_method {
    TRIB_AUTH_NONE = 1,
    TRIB_AUTH_KEY = 2,
    TRIB_AUTH_MUNGE = 3,
};

#define TRIB_AUTH_KEY_FILE_MIN 32 /* bytes */
#define TRIB_AUTH_KEY_FILE_MAX 4096

struct trib_auth_opts {
    /*
     * "auto": munge where munged answers, and key where there is a key file; an
     * aggregator takes either, and munge is preferred. "munge", "key", "none": this one
     * alone.
     */
    const char *method;
    const char *key_file; /* NULL or "": none */
    const char *previous_key_file; /* of an aggregator: accepted from jobs, too, while
                                    * keys are replaced; NULL or "": none */
    const char *munge_socket; /* NULL or "": the usual one */
    /* Munge: the users to trust beside root and the own user. */
    const uid_t *users;
    size_t n_users;
};

/* The peer, once it has proved its identity. */
struct trib_auth_peer {
    enum trib_auth_method method;
    bool has_user; /* munge knows; a key only says that its holder is there */
    bool by_previous_key; /* it has proved the key of previous_key_file */
    uid_t uid;
    gid_t gid;
    /* The user's name on the aggregator's host, "uid N" where that host knows none.
     * Empty without has_user, and on the side of the job, which does not look it up. */
    char user[TRIB_CONTROL_USER_MAX + 1];
    char release[TRIB_CONTROL_LIBRARY_MAX + 1]; /* of the library, as it says */
};

/** trib_auth_name - "munge". */
const char *trib_auth_name(enum trib_auth_method method);

/**
 * trib_auth_open - read the key, ask munged whether it is there.
 *
 * May take 2 s where munged is stopped.
 * errors   TRIB_ERR_CONFIG: nothing to authenticate by, a key file that is missing, too
 *          short or legible for others, a library that is not installed
 */
trib_status_t trib_auth_open(const struct trib_auth_opts *opts, struct trib_error *err,
                             struct trib_auth **out);

/** trib_auth_takes - true if this side can authenticate by the method. */
bool trib_auth_takes(const struct trib_auth *auth, enum trib_auth_method method);

/** trib_auth_repeats_key - true if previous_key_file has the same key as key_file. */
bool trib_auth_repeats_key(const struct trib_auth *auth);

/** trib_auth_free - free it, and forget the key. NULL is allowed. */
void trib_auth_free(struct trib_auth *auth);

struct trib_handshake_opts {
    const struct trib_auth *auth; /* must outlive the handshake */
    enum trib_control_role role;
    const char *job; /* name of the job, for TRIB_CONTROL_JOB */
};

/** trib_handshake_new - errors: TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM.
 */
trib_status_t trib_handshake_new(const struct trib_handshake_opts *opts,
                                 struct trib_error *err, struct trib_handshake **out);

/**
 * trib_handshake_begin - the first frame, which is the job's.
 *
 * out       TRIB_CONTROL_EARLY_BYTES
 */
trib_status_t trib_handshake_begin(struct trib_handshake *hs, struct trib_error *err,
                                   uint8_t *out, size_t *used_out);

/**
 * trib_handshake_take - a frame of the other side.
 *
 * May take 2 s where munged is stopped.
 * reply     TRIB_CONTROL_EARLY_BYTES for what is to be answered, *reply_n of them; 0:
 * nothing returns   TRIB_INPROGRESS; TRIB_OK: the other side is who it says, and once
 * the reply is sent, payloads are sealed; an error: it is not, and the sentence may be
 *           sent to it. Then the handshake takes no other frame
 * errors    TRIB_ERR_CONFIG: methods, keys, users or realms do not fit together
 *           TRIB_ERR_PROTOCOL: what came makes no sense; TRIB_ERR_UNSUPPORTED: versions
 */
trib_status_t trib_handshake_take(struct trib_handshake *hs,
                                  const struct trib_control_frame *frame,
                                  struct trib_error *err, uint8_t *reply,
                                  size_t *reply_n);

/**
 * trib_handshake_asks - will trib_handshake_take ask other programs about the next
 * frame?
 *
 * These are munged and the database of users, which may take seconds. A thread that
 * must not wait has another one make that call (trib_session_question).
 */
bool trib_handshake_asks(const struct trib_handshake *hs);

/** trib_handshake_peer - the peer; valid after TRIB_OK. */
struct trib_auth_peer trib_handshake_peer(const struct trib_handshake *hs);

/** trib_handshake_job - the name of the job, which is proved after TRIB_OK; "" before
 * HELLO. */
const char *trib_handshake_job(const struct trib_handshake *hs);

/** trib_handshake_version - the version of the messages; valid after TRIB_OK. */
uint32_t trib_handshake_version(const struct trib_handshake *hs);

/**
 * trib_handshake_seal - hand out, once and after TRIB_OK, the seal for all payloads
 * from now on.
 *
 * returns   NULL with method "none"; else the caller frees it
 */
struct trib_seal *trib_handshake_seal(struct trib_handshake *hs);

/** trib_handshake_free - free it, and forget its keys. NULL is allowed. */
void trib_handshake_free(struct trib_handshake *hs);

#endif
