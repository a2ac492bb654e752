/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/sealed_record.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

#define LABEL "seal 1"

enum { NONCE_BYTES = 24 }; /* XChaCha20 uses all bytes, AES256-GCM the first 12 */

bool trib_record_has_aes(const struct trib_secret *secret)
{
    const struct trib_sodium *sodium = &secret->sodium;

    return secret->is_set && sodium->aes_available() &&
           sodium->aes_state_bytes() <= TRIB_RECORD_STATE;
}

trib_status_t trib_record_check(const struct trib_secret *secret,
                                struct trib_error *err)
{
    struct trib_sodium sodium;
    char why[160];

    if (secret && secret->is_set)
        return TRIB_OK;
    if (!trib_sodium_open(&sodium, why, sizeof(why)))
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "TRIB_SEAL=1 needs libsodium on all hosts: %s; install libsodium23 and a "
            "Tributary built with it, or unset TRIB_SEAL",
            why);
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "TRIB_SEAL=1 needs a secret, but this job has none: start it with trib-run, or "
        "set the same TRIB_KEY on all ranks (openssl rand -hex 32)");
}

static void prepare(struct trib_records *s)
{
    assert(s->sodium);
    s->number = 0;
    if (s->is_aes)
        (void)s->sodium->aes_prepare(s->aes, s->key);
}

void trib_record_begin(struct trib_records *s, const struct trib_secret *secret,
                       const struct trib_proof *about, enum trib_proof_side writer,
                       bool aes)
{
    struct trib_proof claim = *about;

    assert(secret->is_set);
    claim.label = LABEL;
    s->sodium = &secret->sodium;
    s->is_aes = aes;
    trib_proof_make(secret, &claim, writer, s->key);
    prepare(s);
}

void trib_record_wipe(struct trib_records *s)
{
    if (!s->sodium)
        return;
    s->sodium->wipe(s->key, sizeof(s->key));
    s->sodium->wipe(s->aes, sizeof(s->aes));
    s->sodium = NULL;
}

/* Both sides count records, so both switch keys at the same record. */
static void renew_key(struct trib_records *s)
{
    static const unsigned char label[] = "seal 1 next key";
    uint8_t key[TRIB_PROOF_BYTES];

    (void)s->sodium->auth(key, label, sizeof(label), s->key);
    memcpy(s->key, key, sizeof(key));
    s->sodium->wipe(key, sizeof(key));
    prepare(s);
}

static void take_nonce(struct trib_records *s, uint8_t nonce[NONCE_BYTES])
{
    if (s->number == TRIB_RECORDS_PER_KEY)
        renew_key(s);
    memset(nonce, 0, NONCE_BYTES);
    memcpy(nonce, &s->number, sizeof(s->number));
    s->number++;
}

size_t trib_record_close(struct trib_records *s, uint8_t *record, size_t n)
{
    const struct trib_record_head head = {.magic = TRIB_RECORD_MAGIC,
                                          .len = (uint32_t)n};
    uint8_t nonce[NONCE_BYTES], *bytes = record + sizeof(head);

    assert(s->sodium && n > 0 && n <= UINT32_MAX);
    take_nonce(s, nonce);
    memcpy(record, &head, sizeof(head));
    if (s->is_aes)
        (void)s->sodium->aes_seal(bytes, bytes + n, NULL, bytes, n, record,
                                  sizeof(head), NULL, nonce, s->aes);
    else
        (void)s->sodium->xchacha_seal(bytes, bytes + n, NULL, bytes, n, record,
                                      sizeof(head), NULL, nonce, s->key);
    return n + TRIB_RECORD_MORE;
}

bool trib_record_open(struct trib_records *s, const uint8_t *record, uint8_t *out)
{
    struct trib_record_head head;
    uint8_t nonce[NONCE_BYTES];
    const uint8_t *bytes = record + sizeof(head);

    memcpy(&head, record, sizeof(head));
    assert(s->sodium);
    take_nonce(s, nonce);
    if (s->is_aes)
        return s->sodium->aes_open(out, NULL, bytes, head.len, bytes + head.len, record,
                                   sizeof(head), nonce, s->aes) == 0;
    return s->sodium->xchacha_open(out, NULL, bytes, head.len, bytes + head.len, record,
                                   sizeof(head), nonce, s->key) == 0;
}
