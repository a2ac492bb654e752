/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/secret.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/config.h"
#include "base/error.h"

/* Length of the zero-padded label that precedes the authenticated data. */
#define LABEL_BYTES 16

_Static_assert(TRIB_PROOF_BYTES == 32, "HMAC-SHA512-256 of libsodium's crypto_auth");
_Static_assert(TRIB_SECRET_BYTES == 32, "the key of libsodium's crypto_auth");

trib_status_t trib_secret_make(struct trib_secret *out, struct trib_error *err)
{
    memset(out, 0, sizeof(*out));
    if (getrandom(out->bytes, sizeof(out->bytes), 0) != (ssize_t)sizeof(out->bytes))
        return trib_fail(err, TRIB_ERR_SYSTEM, "no secret for this job: getrandom: %m");
    out->is_set = true;
    return TRIB_OK;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool trib_secret_parse(const char *text, size_t n, struct trib_secret *out)
{
    memset(out, 0, sizeof(*out));
    if (n != TRIB_SECRET_TEXT - 1)
        return false;
    for (size_t i = 0; i < TRIB_SECRET_BYTES; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            trib_secret_wipe(out);
            return false;
        }
        out->bytes[i] = (uint8_t)(high << 4 | low);
    }
    out->is_set = true;
    return true;
}

void trib_secret_format(const struct trib_secret *secret, char text[TRIB_SECRET_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < TRIB_SECRET_BYTES; i++) {
        text[2 * i] = digits[secret->bytes[i] >> 4];
        text[2 * i + 1] = digits[secret->bytes[i] & 15];
    }
    text[TRIB_SECRET_TEXT - 1] = '\0';
}

trib_status_t trib_secret_given(struct trib_secret *out, struct trib_error *err)
{
    const char *text = trib_config_variable(TRIB_SECRET_VARIABLE);

    memset(out, 0, sizeof(*out));
    if (!text || trib_secret_parse(text, strlen(text), out))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_CONFIG,
                     TRIB_SECRET_VARIABLE
                     " in the environment must be %d hexadecimal digits, "
                     "the same for all ranks: make them with openssl rand -hex %d",
                     TRIB_SECRET_TEXT - 1, TRIB_SECRET_BYTES);
}

bool trib_secret_split(const char *text, char *root, size_t bytes,
                       struct trib_secret *out)
{
    size_t n = strcspn(text, "#");

    memset(out, 0, sizeof(*out));
    snprintf(root, bytes, "%.*s", (int)n, text);
    return !text[n] || trib_secret_parse(text + n + 1, strlen(text + n + 1), out);
}

bool trib_secret_arm(struct trib_secret *secret, char *why, size_t bytes)
{
    if (secret->sodium.auth || trib_sodium_open(&secret->sodium, why, bytes))
        return true;
    trib_secret_wipe(secret);
    return false;
}

/* The compiler may optimise away a memset. */
void trib_secret_wipe(struct trib_secret *secret)
{
    volatile uint8_t *bytes = secret->bytes;

    for (size_t i = 0; i < TRIB_SECRET_BYTES; i++)
        bytes[i] = 0;
    secret->is_set = false;
}

void trib_secret_mac(const struct trib_secret *secret, const char *label,
                     const void *bytes, size_t n, uint8_t out[TRIB_PROOF_BYTES])
{
    uint8_t all[LABEL_BYTES + TRIB_MAC_BYTES_MOST];

    assert(secret->is_set && secret->sodium.auth);
    assert(strlen(label) < LABEL_BYTES && n <= TRIB_MAC_BYTES_MOST);
    memset(all, 0, LABEL_BYTES);
    memcpy(all, label, strlen(label));
    memcpy(all + LABEL_BYTES, bytes, n);
    (void)secret->sodium.auth(out, all, LABEL_BYTES + n, secret->bytes);
}

void trib_secret_derive(const struct trib_secret *from, const char *label,
                        const void *bytes, size_t n, struct trib_secret *out)
{
    uint8_t mac[TRIB_PROOF_BYTES];

    trib_secret_mac(from, label, bytes, n, mac);
    *out = (struct trib_secret){.is_set = true, .sodium = from->sodium};
    memcpy(out->bytes, mac, sizeof(out->bytes));
    from->sodium.wipe(mac, sizeof(mac));
}

void trib_secret_mark(const struct trib_secret *secret, uint8_t out[8])
{
    uint8_t mac[TRIB_PROOF_BYTES] = {0};

    if (secret->is_set)
        trib_secret_mac(secret, "mark", "", 0, mac);
    memcpy(out, mac, 8);
}
