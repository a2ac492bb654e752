/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "munge": munged certifies the user of each side, in a credential with the payload
 *
 *     | "tribauth" | role 1 | digest of the transcript 32 | public key 32 |
 *
 * Every member of the MUNGE realm can read a credential. So it holds no secret, only a
 * public key created for this connection. The shared secret is derived from both key
 * pairs: a forwarded or replayed credential is useless without the private key.
 *
 * munged may be stopped, and libmunge would block: a detached thread makes the calls.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/protocol/auth_methods.h"
#include "base/error.h"
#include "build-config.h"

#if HAVE_MUNGE

#include <munge.h>
#include <pwd.h>

#include "base/library.h"
#include "base/time.h"
#include "base/wait.h"

#define LIBRARY "libmunge.so.2"
#define MUNGED_MS 2000 /* timeout of a call, which usually takes 1 ms */
#define SOCKET_BYTES 108
#define USER_BYTES 16384 /* buffer for a user's passwd entry */
#define MAGIC "tribauth"
#define MAGIC_BYTES 8
#define PAYLOAD_BYTES (MAGIC_BYTES + 1 + TRIB_CRYPT_DIGEST_BYTES + TRIB_CRYPT_KEY_BYTES)

#define MUNGE_CALLS(X) \
    X(munge_encode) \
    X(munge_decode) \
    X(munge_ctx_create) \
    X(munge_ctx_destroy) \
    X(munge_ctx_set) \
    X(munge_strerror)

struct trib_munge {
#define MEMBER(call) __typeof__(&call) call;
    MUNGE_CALLS(MEMBER)
#undef MEMBER
    char socket[SOCKET_BYTES]; /* "": the default socket */
};

/* A request to munged. It holds no secret, so it may be leaked after a timeout. */
struct question {
    struct trib_munge munge;
    bool decode;
    char credential[TRIB_CONTROL_AUTH_MAX + 1];
    uint8_t payload[PAYLOAD_BYTES];
    int payload_n;
    uid_t uid;
    gid_t gid;
    munge_err_t error;
};

static bool open_library(struct trib_munge *munge, char *why, size_t bytes)
{
    static const struct trib_symbol symbols[] = {
#define ROW(call) {.name = #call, .at = offsetof(struct trib_munge, call)},
        MUNGE_CALLS(ROW)
#undef ROW
    };

    return trib_library_open(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
                             munge, why, bytes);
}

static void encode(struct question *q, munge_ctx_t ctx)
{
    char *credential = NULL;

    q->error = q->munge.munge_encode(&credential, ctx, q->payload, q->payload_n);
    if (q->error == EMUNGE_SUCCESS &&
        (size_t)snprintf(q->credential, sizeof(q->credential), "%s", credential) >=
            sizeof(q->credential))
        q->error = EMUNGE_OVERFLOW;
    free(credential);
}

static void decode(struct question *q, munge_ctx_t ctx)
{
    void *payload = NULL;
    int n = 0;

    q->error =
        q->munge.munge_decode(q->credential, ctx, &payload, &n, &q->uid, &q->gid);
    if (q->error == EMUNGE_SUCCESS && n == PAYLOAD_BYTES)
        memcpy(q->payload, payload, PAYLOAD_BYTES);
    q->payload_n = n;
    free(payload);
}

static void question_ask(void *arg)
{
    struct question *q = arg;
    munge_ctx_t ctx = q->munge.munge_ctx_create();

    q->error = ctx ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
    if (ctx && q->munge.socket[0])
        q->error = q->munge.munge_ctx_set(ctx, MUNGE_OPT_SOCKET, q->munge.socket);
    if (q->error == EMUNGE_SUCCESS && q->decode)
        decode(q, ctx);
    else if (q->error == EMUNGE_SUCCESS)
        encode(q, ctx);
    if (ctx)
        q->munge.munge_ctx_destroy(ctx);
}

static void question_free(void *arg)
{
    free(arg);
}

static struct question *question_new(const struct trib_munge *munge)
{
    struct question *q = calloc(1, sizeof(*q));

    if (q)
        q->munge = *munge;
    return q;
}

static const char *place_of(const struct trib_munge *munge)
{
    return munge->socket[0] ? munge->socket : "its default socket";
}

static trib_status_t no_answer(const struct trib_munge *munge, const char *why,
                               struct trib_error *err)
{
    return trib_fail(
        err, TRIB_ERR_UNSUPPORTED,
        "munged does not answer on %s (%s): start it (systemctl start munge)",
        place_of(munge), why);
}

/* Ask munged. *q becomes NULL unless munged has answered, even with an error. */
static trib_status_t ask(const struct trib_munge *munge, struct question **q,
                         struct trib_error *err)
{
    struct question *asked = *q;

    *q = NULL;
    if (!asked)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    int error = trib_detached_call(question_ask, question_free, asked,
                                   trib_deadline_ms(MUNGED_MS), NULL);
    if (error == ETIMEDOUT)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "munged does not answer on %s within %d ms: check that it runs and the "
            "host is not overloaded (systemctl status munge)",
            place_of(munge), MUNGED_MS);
    if (error || asked->error == EMUNGE_SOCKET) {
        const char *why = error ? strerror(error) : munge->munge_strerror(asked->error);
        trib_status_t status = no_answer(munge, why, err);
        question_free(asked);
        return status;
    }
    *q = asked;
    return TRIB_OK;
}

/* Credentials ---------------------------------------------------------------------- */

static trib_status_t munge_give(struct trib_handshake *hs, struct trib_error *err,
                                struct trib_auth_credential *out)
{
    const struct trib_munge *munge = hs->auth->munge;
    struct question *q = question_new(munge);

    trib_crypt_pair_make(hs->auth->crypt, &hs->pair);
    if (q) {
        uint8_t *p = q->payload;
        memcpy(p, MAGIC, MAGIC_BYTES);
        p[MAGIC_BYTES] = (uint8_t)hs->role;
        trib_transcript_digest(hs->transcript, p + MAGIC_BYTES + 1);
        memcpy(p + MAGIC_BYTES + 1 + TRIB_CRYPT_DIGEST_BYTES, hs->pair.public_key,
               TRIB_CRYPT_KEY_BYTES);
        q->payload_n = PAYLOAD_BYTES;
    }
    trib_status_t status = ask(munge, &q, err);
    if (status != TRIB_OK)
        return status == TRIB_ERR_UNSUPPORTED ? TRIB_ERR_CONFIG : status;
    if (q->error != EMUNGE_SUCCESS) {
        status =
            trib_fail(err, TRIB_ERR_CONFIG, "munged cannot create a credential: %s",
                      munge->munge_strerror(q->error));
    } else {
        out->n = (uint32_t)strlen(q->credential);
        memcpy(out->bytes, q->credential, out->n);
    }
    question_free(q);
    return status;
}

static const char *other_side(const struct trib_handshake *hs)
{
    return hs->role == TRIB_CONTROL_JOB ? "aggregator" : "job";
}

static trib_status_t refused(const struct trib_handshake *hs, munge_err_t error,
                             struct trib_error *err)
{
    const char *who = other_side(hs);

    if (error == EMUNGE_CRED_REPLAYED)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "the credential of the %s was used before: this is a replay, "
                         "or another member of the MUNGE realm used a copy first",
                         who);
    if (error == EMUNGE_CRED_EXPIRED || error == EMUNGE_CRED_REWOUND)
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "the clocks of this host and of the %s differ by minutes: synchronise them",
            who);
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "munged rejects the credential of the %s (%s): both hosts need the same "
        "munge.key, which munged reads only when it starts",
        who, hs->auth->munge->munge_strerror(error));
}

static bool trusted(const struct trib_auth *auth, uid_t uid)
{
    if (uid == 0 || uid == geteuid())
        return true;
    for (size_t i = 0; i < auth->n_users; i++)
        if (auth->users[i] == uid)
            return true;
    return false;
}

/* Look up a user. The user database may be a remote directory, so this may block. */
static void find_user(uid_t uid, char name[TRIB_CONTROL_USER_MAX + 1])
{
    struct passwd entry, *found = NULL;
    char room[USER_BYTES];

    snprintf(name, TRIB_CONTROL_USER_MAX + 1, "uid %u", (unsigned)uid);
    if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
        snprintf(name, TRIB_CONTROL_USER_MAX + 1, "%s", found->pw_name);
}

static trib_status_t not_a_user(const char *name, struct trib_error *err)
{
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "user %.32s may not use this aggregator: only root, its own user and those in "
        "its setting users may",
        name);
}

static trib_status_t judge(struct trib_handshake *hs, const struct question *q,
                           struct trib_error *err)
{
    const uint8_t *p = q->payload;
    uint8_t digest[TRIB_CRYPT_DIGEST_BYTES];
    int role = TRIB_CONTROL_JOB + TRIB_CONTROL_AGGREGATOR - hs->role;

    trib_transcript_digest(hs->transcript, digest);
    if (q->payload_n != PAYLOAD_BYTES || memcmp(p, MAGIC, MAGIC_BYTES) ||
        p[MAGIC_BYTES] != role ||
        !trib_crypt_equal(hs->auth->crypt, p + MAGIC_BYTES + 1, digest, sizeof(digest)))
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "the credential of the %s belongs to another connection: a message was "
            "modified or replayed",
            other_side(hs));
    if (!trusted(hs->auth, q->uid) && hs->role == TRIB_CONTROL_JOB)
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "the aggregator runs as user %u, which this job does not trust: set "
            "TRIB_SERVICE_USER to this user's name, or run it as root or user %u",
            (unsigned)q->uid, (unsigned)geteuid());
    if (hs->role == TRIB_CONTROL_AGGREGATOR)
        find_user(q->uid, hs->peer.user);
    if (!trusted(hs->auth, q->uid))
        return not_a_user(hs->peer.user, err);
    hs->peer.has_user = true;
    hs->peer.uid = q->uid;
    hs->peer.gid = q->gid;
    memcpy(hs->other_key, p + MAGIC_BYTES + 1 + TRIB_CRYPT_DIGEST_BYTES,
           sizeof(hs->other_key));
    return TRIB_OK;
}

static trib_status_t munge_take(struct trib_handshake *hs, struct trib_error *err,
                                const struct trib_control_bytes *data)
{
    struct question *q = question_new(hs->auth->munge);

    if (memchr(data->at, 0, data->n)) {
        question_free(q);
        return refused(hs, EMUNGE_BAD_CRED, err);
    }
    if (q) {
        q->decode = true;
        memcpy(q->credential, data->at, data->n);
    }
    trib_status_t status = ask(hs->auth->munge, &q, err);
    if (status != TRIB_OK)
        return status == TRIB_ERR_UNSUPPORTED ? TRIB_ERR_CONFIG : status;
    if (q->error != EMUNGE_SUCCESS)
        status = refused(hs, q->error, err);
    else
        status = judge(hs, q, err);
    question_free(q);
    return status;
}

static bool munge_secret(struct trib_handshake *hs)
{
    hs->secret_n = sizeof(hs->secret);
    return trib_crypt_share(hs->auth->crypt, &hs->pair, trib_handshake_side(hs),
                            hs->other_key, hs->secret);
}

/* Availability --------------------------------------------------------------------- */

static trib_status_t try_it(const struct trib_munge *munge, struct trib_error *err)
{
    struct question *q = question_new(munge);
    trib_status_t status = ask(munge, &q, err);

    if (status != TRIB_OK)
        return status;
    if (q->error != EMUNGE_SUCCESS)
        status = trib_fail(err, TRIB_ERR_UNSUPPORTED,
                           "munged on %s cannot create a credential (%s): see its log",
                           place_of(munge), munge->munge_strerror(q->error));
    question_free(q);
    return status;
}

static trib_status_t munge_open(struct trib_auth *auth,
                                const struct trib_auth_opts *opts,
                                struct trib_error *err)
{
    const char *at = opts->munge_socket ? opts->munge_socket : "";
    char why[160];

    if (strlen(at) >= SOCKET_BYTES)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "the socket path of munged, %.120s, is longer than %d bytes",
                         at, SOCKET_BYTES - 1);
    auth->munge = calloc(1, sizeof(*auth->munge));
    if (!auth->munge)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    memcpy(auth->munge->socket, at, strlen(at) + 1);
    if (!open_library(auth->munge, why, sizeof(why)))
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "MUNGE is not installed (%s): install munge and libmunge2",
                         why);
    return try_it(auth->munge, err);
}

static void munge_close(struct trib_auth *auth)
{
    free(auth->munge);
}

#else

static trib_status_t munge_open(struct trib_auth *auth,
                                const struct trib_auth_opts *opts,
                                struct trib_error *err)
{
    (void)auth;
    (void)opts;
    return trib_fail(
        err, TRIB_ERR_UNSUPPORTED,
        "this build has no MUNGE support: install libmunge-dev and rebuild");
}

#endif

const struct trib_auth_method_ops trib_auth_munge = {
    .name = "munge",
    .number = TRIB_AUTH_MUNGE,
    .proves = true,
    .open = munge_open,
#if HAVE_MUNGE
    .close = munge_close,
    .give = munge_give,
    .take = munge_take,
    .secret = munge_secret,
#endif
};
