/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agg/protocol/auth_methods.h"
#include "base/error.h"
#include "base/release.h"

#define LABEL "tributary control handshake 1"
#define PROOF_BYTES (TRIB_CRYPT_PROOF_BYTES + TRIB_SEAL_HEADER_BYTES)

/* Working state of one call of trib_handshake_take. */
struct turn {
    struct trib_handshake *hs;
    const struct trib_control_frame *frame;
    struct trib_control message;
    struct trib_error *err;
    uint8_t *reply;
    size_t *reply_n;
};

static const char *self(const struct trib_handshake *hs)
{
    return hs->role == TRIB_CONTROL_JOB ? "job" : "aggregator";
}

static const char *other(const struct trib_handshake *hs)
{
    return hs->role == TRIB_CONTROL_JOB ? "aggregator" : "job";
}

/* Add a frame to the transcript. Both sides add all frames before the proofs, in the
 * same order. */
static void note(struct trib_handshake *hs, const uint8_t *frame, size_t n)
{
    if (hs->transcript)
        trib_transcript_add(hs->transcript, frame, n);
}

static trib_status_t put(struct trib_handshake *hs, const struct trib_control *message,
                         uint8_t *out, size_t *n_out)
{
    trib_status_t status =
        trib_control_put(message, out, TRIB_CONTROL_EARLY_BYTES, n_out);

    assert(status == TRIB_OK); /* all fields are generated locally */
    bool proof =
        message->kind == TRIB_CONTROL_AUTH && message->auth.step == TRIB_CONTROL_PROOF;
    if (status == TRIB_OK && !proof)
        note(hs, out, *n_out);
    return status;
}

/* Credentials and proofs ----------------------------------------------------------- */

static trib_status_t give_credential(struct turn *t)
{
    struct trib_auth_credential credential;
    struct trib_control m = {.kind = TRIB_CONTROL_AUTH,
                             .auth = {.step = TRIB_CONTROL_CREDENTIAL}};
    trib_status_t status = t->hs->method->give(t->hs, t->err, &credential);

    if (status != TRIB_OK)
        return status;
    m.auth.data = (struct trib_control_bytes){credential.bytes, credential.n};
    return put(t->hs, &m, t->reply, t->reply_n);
}

/* Derive the keys after all their inputs are in the transcript. */
static trib_status_t make_keys(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    uint8_t digest[TRIB_CRYPT_DIGEST_BYTES];

    assert(!hs->seal && hs->transcript);
    if (!hs->method->secret(hs))
        return trib_fail(t->err, TRIB_ERR_PROTOCOL, "the %s sent an invalid key",
                         other(hs));
    hs->seal = trib_seal_new(hs->auth->crypt);
    if (!hs->seal)
        return trib_fail(t->err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    trib_transcript_digest(hs->transcript, digest);
    trib_crypt_keys(hs->auth->crypt, hs->secret, hs->secret_n, digest, &hs->keys);
    return TRIB_OK;
}

static trib_status_t give_proof(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    int side = trib_handshake_side(hs);
    uint8_t proof[PROOF_BYTES];
    uint8_t *header = proof + TRIB_CRYPT_PROOF_BYTES;
    uint8_t digest[TRIB_CRYPT_DIGEST_BYTES];
    struct trib_control m = {.kind = TRIB_CONTROL_AUTH,
                             .auth = {TRIB_CONTROL_PROOF, {proof, sizeof(proof)}}};

    assert(hs->seal);
    trib_seal_begin(hs->seal, hs->keys.stream[side], header);
    trib_transcript_digest(hs->transcript, digest);
    trib_crypt_prove(hs->auth->crypt, hs->keys.proof[side], digest, header, proof);
    return put(hs, &m, t->reply, t->reply_n);
}

static trib_status_t wrong_proof(const struct trib_handshake *hs,
                                 struct trib_error *err)
{
    if (hs->method->number == TRIB_AUTH_KEY)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "the keys of the %s and the %s differ, or a message was "
                         "modified: use the same key file on both sides (tribd reads "
                         "a changed file at SIGHUP)",
                         other(hs), self(hs));
    return trib_fail(err, TRIB_ERR_CONFIG,
                     "invalid proof of the %s: a message was modified or replayed",
                     other(hs));
}

static bool proof_fits(const struct trib_handshake *hs,
                       const struct trib_control_bytes *data)
{
    uint8_t expected[TRIB_CRYPT_PROOF_BYTES];
    uint8_t digest[TRIB_CRYPT_DIGEST_BYTES];

    assert(data->n == PROOF_BYTES);
    trib_transcript_digest(hs->transcript, digest);
    trib_crypt_prove(hs->auth->crypt, hs->keys.proof[1 - trib_handshake_side(hs)],
                     digest, data->at + TRIB_CRYPT_PROOF_BYTES, expected);
    const bool fits =
        trib_crypt_equal(hs->auth->crypt, expected, data->at, sizeof(expected));
    trib_crypt_wipe(hs->auth->crypt, expected, sizeof(expected));
    return fits;
}

/* Derive the keys again from the previous key, which a job may still use while keys are
 * replaced. Proofs are not in the transcript, so it has not changed since make_keys. */
static bool take_previous_key(struct trib_handshake *hs)
{
    uint8_t digest[TRIB_CRYPT_DIGEST_BYTES];

    if (hs->role != TRIB_CONTROL_AGGREGATOR || hs->method->number != TRIB_AUTH_KEY ||
        !hs->auth->has_previous)
        return false;
    memcpy(hs->secret, hs->auth->previous_key, sizeof(hs->auth->previous_key));
    trib_transcript_digest(hs->transcript, digest);
    trib_crypt_keys(hs->auth->crypt, hs->secret, hs->secret_n, digest, &hs->keys);
    return true;
}

static trib_status_t check_proof(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    const int side = 1 - trib_handshake_side(hs);
    const struct trib_control_bytes *data = &t->message.auth.data;

    if (t->message.auth.step != TRIB_CONTROL_PROOF || data->n != PROOF_BYTES)
        return trib_fail(t->err, TRIB_ERR_PROTOCOL,
                         "the %s sent no proof when one was expected", other(hs));
    bool fits = proof_fits(hs, data);
    if (!fits && take_previous_key(hs))
        fits = hs->peer.by_previous_key = proof_fits(hs, data);
    if (!fits)
        return wrong_proof(hs, t->err);
    trib_seal_follow(hs->seal, hs->keys.stream[side],
                     data->at + TRIB_CRYPT_PROOF_BYTES);
    return TRIB_OK;
}

/* Frames of the job ---------------------------------------------------------------- */

static trib_status_t choose_method(struct turn *t, unsigned offer)
{
    unsigned both = offer & t->hs->auth->offer;
    char theirs[96];
    char ours[96];

    assert(!t->hs->method);
    for (size_t i = 0; i < TRIB_AUTH_METHODS && !t->hs->method; i++)
        if (both & 1u << trib_auth_methods[i]->number)
            t->hs->method = trib_auth_methods[i];
    if (t->hs->method)
        return TRIB_OK;
    return trib_fail(
        t->err, TRIB_ERR_CONFIG,
        "no common authentication method: the job supports %s, the aggregator %s; "
        "enable one on both sides (TRIB_SERVICE_AUTH; auth of tribd)",
        trib_auth_offered(offer, theirs, sizeof(theirs)),
        trib_auth_offered(t->hs->auth->offer, ours, sizeof(ours)));
}

static trib_status_t choose_version(struct turn *t, uint32_t *version_out)
{
    const struct trib_control_hello *h = &t->message.hello;

    *version_out = h->version_max < TRIB_CONTROL_VERSION_MAX ? h->version_max
                                                             : TRIB_CONTROL_VERSION_MAX;
    if (*version_out >= h->version_min && *version_out >= TRIB_CONTROL_VERSION_MIN)
        return TRIB_OK;
    return trib_fail(t->err, TRIB_ERR_UNSUPPORTED,
                     "incompatible versions of the control protocol: the job (library "
                     "%s) supports %u to %u, the aggregator (%s) %d to %d: install the "
                     "same release",
                     h->library, (unsigned)h->version_min, (unsigned)h->version_max,
                     trib_release, TRIB_CONTROL_VERSION_MIN, TRIB_CONTROL_VERSION_MAX);
}

static trib_status_t take_hello(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    struct trib_control m = {.kind = TRIB_CONTROL_WELCOME,
                             .welcome = {.methods = hs->auth->offer}};
    snprintf(m.welcome.library, sizeof(m.welcome.library), "%s", trib_release);
    trib_status_t status = choose_version(t, &m.welcome.version);

    if (status == TRIB_OK)
        status = choose_method(t, t->message.hello.methods);
    if (status != TRIB_OK)
        return status;
    hs->version = m.welcome.version;
    memcpy(hs->job, t->message.hello.job, sizeof(hs->job));
    memcpy(hs->peer.release, t->message.hello.library, sizeof(hs->peer.release));
    m.welcome.method = hs->method->number;
    memcpy(m.welcome.nonce, hs->nonce, sizeof(hs->nonce));
    status = put(hs, &m, t->reply, t->reply_n);
    if (status != TRIB_OK)
        return status;
    if (!hs->method->proves) {
        hs->state = TRIB_HANDSHAKE_DONE;
        return TRIB_OK;
    }
    hs->state = hs->method->give ? TRIB_HANDSHAKE_CREDENTIAL : TRIB_HANDSHAKE_PROOF;
    return hs->method->give ? TRIB_OK : make_keys(t);
}

/* Frames of the aggregator --------------------------------------------------------- */

static trib_status_t take_welcome(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    const struct trib_control_welcome *w = &t->message.welcome;
    trib_status_t status;

    if (w->version < TRIB_CONTROL_VERSION_MIN || w->version > TRIB_CONTROL_VERSION_MAX)
        return trib_fail(t->err, TRIB_ERR_UNSUPPORTED,
                         "the aggregator (library %s) chose version %u of the control "
                         "protocol, which the job does not support",
                         w->library, (unsigned)w->version);
    if (!(w->methods & hs->auth->offer & 1u << w->method))
        return trib_fail(t->err, TRIB_ERR_PROTOCOL,
                         "the aggregator chose authentication method %s, which was not "
                         "offered",
                         trib_auth_name((enum trib_auth_method)w->method));
    hs->version = w->version;
    memcpy(hs->peer.release, w->library, sizeof(hs->peer.release));
    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++)
        if (trib_auth_methods[i]->number == w->method)
            hs->method = trib_auth_methods[i];
    if (!hs->method->proves) {
        hs->state = TRIB_HANDSHAKE_DONE;
        return TRIB_OK;
    }
    if (hs->method->give) {
        hs->state = TRIB_HANDSHAKE_CREDENTIAL;
        return give_credential(t);
    }
    hs->state = TRIB_HANDSHAKE_PROOF;
    status = make_keys(t);
    return status == TRIB_OK ? give_proof(t) : status;
}

/* Frames of both ------------------------------------------------------------------- */

/* The aggregator answers with its own credential, the job with its proof. */
static trib_status_t take_credential(struct turn *t)
{
    struct trib_handshake *hs = t->hs;

    assert(hs->method && hs->method->take);
    if (t->message.auth.step != TRIB_CONTROL_CREDENTIAL)
        return trib_fail(t->err, TRIB_ERR_PROTOCOL,
                         "the %s sent no credential when one was expected", other(hs));
    trib_status_t status = hs->method->take(hs, t->err, &t->message.auth.data);
    note(hs, t->frame->head, trib_control_frame_bytes(t->frame));
    if (status == TRIB_OK && hs->role == TRIB_CONTROL_AGGREGATOR)
        status = give_credential(t);
    if (status == TRIB_OK)
        status = make_keys(t);
    if (status == TRIB_OK && hs->role == TRIB_CONTROL_JOB)
        status = give_proof(t);
    hs->state = TRIB_HANDSHAKE_PROOF;
    return status;
}

static trib_status_t take_proof(struct turn *t)
{
    trib_status_t status = check_proof(t);

    if (status == TRIB_OK && t->hs->role == TRIB_CONTROL_AGGREGATOR)
        status = give_proof(t);
    t->hs->state = TRIB_HANDSHAKE_DONE;
    return status;
}

/* Expected message and its handler, by state. */
static const struct {
    enum trib_control_kind due;
    bool noted; /* add to the transcript first; a credential is added afterwards */
    trib_status_t (*take)(struct turn *t);
} steps[] = {
    [TRIB_HANDSHAKE_HELLO] = {TRIB_CONTROL_HELLO, true, take_hello},
    [TRIB_HANDSHAKE_WELCOME] = {TRIB_CONTROL_WELCOME, true, take_welcome},
    [TRIB_HANDSHAKE_CREDENTIAL] = {TRIB_CONTROL_AUTH, false, take_credential},
    [TRIB_HANDSHAKE_PROOF] = {TRIB_CONTROL_AUTH, false, take_proof},
};

static trib_status_t take(struct turn *t)
{
    struct trib_handshake *hs = t->hs;
    const struct trib_control_frame *f = t->frame;

    if (trib_control_get(f->kind, f->payload, f->length, &t->message) != TRIB_OK)
        return trib_fail(t->err, TRIB_ERR_PROTOCOL, "the %s sent an invalid %s message",
                         other(hs), trib_control_name(f->kind));
    if (f->kind == TRIB_CONTROL_ERROR)
        return trib_fail(t->err, TRIB_ERR_CONFIG, "the %s closed the connection: %s",
                         other(hs), t->message.said.text);
    if (f->kind != steps[hs->state].due)
        return trib_fail(
            t->err, TRIB_ERR_PROTOCOL, "the %s sent %s when %s was expected", other(hs),
            trib_control_name(f->kind), trib_control_name(steps[hs->state].due));
    if (steps[hs->state].noted)
        note(hs, f->head, trib_control_frame_bytes(f));
    return steps[hs->state].take(t);
}

trib_status_t trib_handshake_take(struct trib_handshake *hs,
                                  const struct trib_control_frame *frame,
                                  struct trib_error *err, uint8_t *reply,
                                  size_t *reply_n)
{
    struct turn turn = {
        .hs = hs, .frame = frame, .err = err, .reply = reply, .reply_n = reply_n};

    assert(hs->state >= TRIB_HANDSHAKE_HELLO && hs->state <= TRIB_HANDSHAKE_PROOF);
    *reply_n = 0;
    trib_status_t status = take(&turn);
    if (status != TRIB_OK) {
        *reply_n = 0;
        hs->state = TRIB_HANDSHAKE_FAILED;
        return status;
    }
    if (hs->state != TRIB_HANDSHAKE_DONE)
        return TRIB_INPROGRESS;
    hs->peer.method = hs->method->number;
    return TRIB_OK;
}

/* Start and end -------------------------------------------------------------------- */

trib_status_t trib_handshake_begin(struct trib_handshake *hs, struct trib_error *err,
                                   uint8_t *out, size_t *used_out)
{
    struct trib_control m = {.kind = TRIB_CONTROL_HELLO,
                             .hello = {.version_min = TRIB_CONTROL_VERSION_MIN,
                                       .version_max = TRIB_CONTROL_VERSION_MAX,
                                       .methods = hs->auth->offer}};

    (void)err;
    snprintf(m.hello.library, sizeof(m.hello.library), "%s", trib_release);
    assert(hs->state == TRIB_HANDSHAKE_NEW);
    hs->state = TRIB_HANDSHAKE_WELCOME;
    memcpy(m.hello.nonce, hs->nonce, sizeof(hs->nonce));
    memcpy(m.hello.job, hs->job, sizeof(hs->job));
    return put(hs, &m, out, used_out);
}

trib_status_t trib_handshake_new(const struct trib_handshake_opts *opts,
                                 struct trib_error *err, struct trib_handshake **out)
{
    const struct trib_auth *auth = opts->auth;
    bool job = opts->role == TRIB_CONTROL_JOB;

    if (job && !trib_control_job_fits(opts->job))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "invalid job name \"%.64s\": use 1 to %d letters, digits and "
                         "._:-+@/%%=,",
                         opts->job, TRIB_CONTROL_JOB_MAX);
    struct trib_handshake *hs = calloc(1, sizeof(*hs));
    if (!hs)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    hs->auth = auth;
    hs->role = opts->role;
    hs->state = job ? TRIB_HANDSHAKE_NEW : TRIB_HANDSHAKE_HELLO;
    if (job)
        snprintf(hs->job, sizeof(hs->job), "%s", opts->job);
    if (auth->crypt)
        hs->transcript = trib_transcript_new(auth->crypt, LABEL);
    if (auth->crypt && !hs->transcript) {
        trib_handshake_free(hs);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    }
    if (getrandom(hs->nonce, sizeof(hs->nonce), 0) != sizeof(hs->nonce)) {
        trib_handshake_free(hs);
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "cannot get random numbers on this host: %m");
    }
    *out = hs;
    return TRIB_OK;
}

bool trib_handshake_asks(const struct trib_handshake *hs)
{
    return hs->state == TRIB_HANDSHAKE_CREDENTIAL;
}

struct trib_auth_peer trib_handshake_peer(const struct trib_handshake *hs)
{
    return hs->peer;
}

uint32_t trib_handshake_version(const struct trib_handshake *hs)
{
    return hs->version;
}

const char *trib_handshake_job(const struct trib_handshake *hs)
{
    return hs->job;
}

struct trib_seal *trib_handshake_seal(struct trib_handshake *hs)
{
    struct trib_seal *seal = hs->seal;

    assert(hs->state == TRIB_HANDSHAKE_DONE);
    hs->seal = NULL;
    if (hs->auth->crypt) {
        trib_crypt_wipe(hs->auth->crypt, &hs->pair, sizeof(hs->pair));
        trib_crypt_wipe(hs->auth->crypt, hs->secret, sizeof(hs->secret));
        trib_crypt_wipe(hs->auth->crypt, &hs->keys, sizeof(hs->keys));
    }
    return seal;
}

void trib_handshake_free(struct trib_handshake *hs)
{
    if (!hs)
        return;
    const struct trib_crypt *crypt = hs->auth->crypt;
    trib_seal_free(hs->seal);
    trib_transcript_free(hs->transcript);
    if (crypt)
        trib_crypt_wipe(crypt, hs, sizeof(*hs));
    free(hs);
}
