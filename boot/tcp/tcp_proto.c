/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp/tcp_proto.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static const uint8_t magic[4] = {'T', 'r', 'i', 'b'};

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static void put_u32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* Copy a text field of `n` untrusted bytes, perhaps unterminated. */
static void get_text(const uint8_t *p, size_t n, char *out, size_t out_bytes)
{
    size_t len = 0;

    while (len < n && len + 1 < out_bytes && p[len]) {
        bool printable = (p[len] >= 0x20 && p[len] < 0x7f) || p[len] >= 0x80;
        out[len] = printable ? (char)p[len] : '?';
        len++;
    }
    out[len] = '\0';
}

static void put_text(uint8_t *p, size_t n, const char *text)
{
    size_t len = strnlen(text, n - 1);

    memcpy(p, text, len);
    memset(p + len, 0, n - len);
}

static bool get_natural(const uint8_t *p, int *out)
{
    uint32_t value = get_u32(p);

    *out = (int)value;
    return value <= INT_MAX;
}

/* Check the payload length against the kind of the frame. */
static bool length_fits(uint8_t kind, uint32_t length, size_t result_max)
{
    switch (kind) {
    case TRIB_TCP_HELLO:
    case TRIB_TCP_WELCOME:
        return length == TRIB_TCP_HELLO_BYTES;
    case TRIB_TCP_GATHER:
        return length >= TRIB_BOOT_PHASE_MAX && length <= TRIB_TCP_GATHER_BYTES;
    case TRIB_TCP_RESULT:
        return length <= result_max && result_max > 0;
    case TRIB_TCP_FAIL:
        return length >= 4 && length < 4 + TRIB_TCP_TEXT_BYTES;
    case TRIB_TCP_TICK:
        return length == 0;
    case TRIB_TCP_CHALLENGE:
        return length == TRIB_TCP_CHALLENGE_BYTES;
    case TRIB_TCP_PROOF:
        return length == TRIB_PROOF_BYTES;
    default:
        return false;
    }
}

trib_status_t trib_tcp_parse(const uint8_t *bytes, size_t n, size_t result_max,
                             struct trib_tcp_frame *out, size_t *used_out)
{
    /* Reject foreign bytes at the first mismatch, without waiting for a whole head. */
    if (n && memcmp(bytes, magic, n < sizeof(magic) ? n : sizeof(magic)))
        return TRIB_ERR_PROTOCOL;
    if (n > 4 && bytes[4] != TRIB_TCP_VERSION)
        return TRIB_ERR_UNSUPPORTED;
    if (n < TRIB_TCP_HEAD_BYTES)
        return TRIB_INPROGRESS;
    if (bytes[6] || bytes[7])
        return TRIB_ERR_PROTOCOL;
    uint32_t length = get_u32(bytes + 12);
    if (!length_fits(bytes[5], length, result_max))
        return TRIB_ERR_PROTOCOL;
    if (n - TRIB_TCP_HEAD_BYTES < length)
        return TRIB_INPROGRESS;
    out->kind = (enum trib_tcp_kind)bytes[5];
    out->exchange = get_u32(bytes + 8);
    out->length = length;
    out->payload = bytes + TRIB_TCP_HEAD_BYTES;
    *used_out = TRIB_TCP_HEAD_BYTES + (size_t)length;
    return TRIB_OK;
}

trib_status_t trib_tcp_parse_hello(const struct trib_tcp_frame *frame,
                                   struct trib_tcp_hello *out)
{
    const uint8_t *p = frame->payload;

    if (frame->kind != TRIB_TCP_HELLO && frame->kind != TRIB_TCP_WELCOME)
        return TRIB_ERR_PROTOCOL;
    assert(frame->length == TRIB_TCP_HELLO_BYTES);
    if (!get_natural(p, &out->size) || !get_natural(p + 4, &out->who.rank) ||
        !get_natural(p + 8, &out->who.pid))
        return TRIB_ERR_PROTOCOL;
    get_text(p + 12, TRIB_HOST_BYTES, out->who.host, sizeof(out->who.host));
    p += 12 + TRIB_HOST_BYTES;
    get_text(p, TRIB_TCP_LIBRARY_BYTES, out->library, sizeof(out->library));
    p += TRIB_TCP_LIBRARY_BYTES;
    if (get_u32(p) > 1)
        return TRIB_ERR_PROTOCOL;
    out->has_secret = get_u32(p) == 1;
    memcpy(out->nonce, p + 4, sizeof(out->nonce));
    return TRIB_OK;
}

trib_status_t trib_tcp_parse_challenge(const struct trib_tcp_frame *frame,
                                       struct trib_challenge *out)
{
    if (frame->kind != TRIB_TCP_CHALLENGE)
        return TRIB_ERR_PROTOCOL;
    assert(frame->length == TRIB_TCP_CHALLENGE_BYTES);
    memcpy(out, frame->payload, sizeof(*out));
    return TRIB_OK;
}

trib_status_t trib_tcp_parse_gather(const struct trib_tcp_frame *frame,
                                    struct trib_tcp_gather *out)
{
    if (frame->kind != TRIB_TCP_GATHER)
        return TRIB_ERR_PROTOCOL;
    assert(frame->length >= TRIB_BOOT_PHASE_MAX);
    get_text(frame->payload, TRIB_BOOT_PHASE_MAX, out->phase, sizeof(out->phase));
    out->bytes = frame->length - TRIB_BOOT_PHASE_MAX;
    out->blob = frame->payload + TRIB_BOOT_PHASE_MAX;
    return TRIB_OK;
}

/* Accept the statuses of a boot failure; map all others to the general one. */
static trib_status_t get_status(const uint8_t *p)
{
    static const trib_status_t known[] = {
        TRIB_ERR_PEER_LOST, TRIB_ERR_MISMATCH, TRIB_ERR_PROTOCOL, TRIB_ERR_CONFIG,
        TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM,   TRIB_ERR_ABORTED,
    };
    uint32_t code = get_u32(p);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (code == (uint32_t)known[i])
            return known[i];
    return TRIB_ERR_BOOT;
}

trib_status_t trib_tcp_parse_fail(const struct trib_tcp_frame *frame,
                                  struct trib_tcp_failure *out)
{
    if (frame->kind != TRIB_TCP_FAIL)
        return TRIB_ERR_PROTOCOL;
    assert(frame->length >= 4);
    out->status = get_status(frame->payload);
    get_text(frame->payload + 4, frame->length - 4, out->text, sizeof(out->text));
    return TRIB_OK;
}

size_t trib_tcp_put_head(uint8_t *out, enum trib_tcp_kind kind, uint32_t exchange,
                         size_t length)
{
    assert(length <= UINT32_MAX);
    memcpy(out, magic, sizeof(magic));
    out[4] = TRIB_TCP_VERSION;
    out[5] = (uint8_t)kind;
    out[6] = out[7] = 0;
    put_u32(out + 8, exchange);
    put_u32(out + 12, (uint32_t)length);
    return TRIB_TCP_HEAD_BYTES;
}

size_t trib_tcp_put_hello(uint8_t out[TRIB_TCP_SMALL_BYTES], enum trib_tcp_kind kind,
                          const struct trib_tcp_hello *hello)
{
    uint8_t *p = out + trib_tcp_put_head(out, kind, 0, TRIB_TCP_HELLO_BYTES);

    put_u32(p, (uint32_t)hello->size);
    put_u32(p + 4, (uint32_t)hello->who.rank);
    put_u32(p + 8, (uint32_t)hello->who.pid);
    put_text(p + 12, TRIB_HOST_BYTES, hello->who.host);
    p += 12 + TRIB_HOST_BYTES;
    put_text(p, TRIB_TCP_LIBRARY_BYTES, hello->library);
    p += TRIB_TCP_LIBRARY_BYTES;
    put_u32(p, hello->has_secret);
    memcpy(p + 4, hello->nonce, sizeof(hello->nonce));
    return TRIB_TCP_HEAD_BYTES + TRIB_TCP_HELLO_BYTES;
}

size_t trib_tcp_put_challenge(uint8_t out[TRIB_TCP_SMALL_BYTES],
                              const struct trib_challenge *challenge)
{
    uint8_t *p =
        out + trib_tcp_put_head(out, TRIB_TCP_CHALLENGE, 0, TRIB_TCP_CHALLENGE_BYTES);

    memcpy(p, challenge, sizeof(*challenge));
    return TRIB_TCP_HEAD_BYTES + TRIB_TCP_CHALLENGE_BYTES;
}

size_t trib_tcp_put_proof(uint8_t out[TRIB_TCP_SMALL_BYTES],
                          const uint8_t proof[TRIB_PROOF_BYTES])
{
    uint8_t *p = out + trib_tcp_put_head(out, TRIB_TCP_PROOF, 0, TRIB_PROOF_BYTES);

    memcpy(p, proof, TRIB_PROOF_BYTES);
    return TRIB_TCP_HEAD_BYTES + TRIB_PROOF_BYTES;
}

struct trib_proof trib_tcp_proof(const struct trib_tcp_hello *hello)
{
    struct trib_proof proof = {
        .label = "boot 4", .rank = {hello->who.rank, 0}, .more = (uint32_t)hello->size};

    _Static_assert(TRIB_TCP_VERSION == 4, "the label names the version");
    memcpy(proof.nonce[TRIB_PROOF_CALLER], hello->nonce, TRIB_NONCE_BYTES);
    return proof;
}

size_t trib_tcp_put_gather(uint8_t out[TRIB_TCP_SMALL_BYTES], uint32_t exchange,
                           const struct trib_tcp_gather *gather)
{
    size_t length = TRIB_BOOT_PHASE_MAX + gather->bytes;
    uint8_t *p = out + trib_tcp_put_head(out, TRIB_TCP_GATHER, exchange, length);

    assert(gather->bytes <= TRIB_BOOT_BLOB_MAX);
    put_text(p, TRIB_BOOT_PHASE_MAX, gather->phase);
    if (gather->bytes)
        memcpy(p + TRIB_BOOT_PHASE_MAX, gather->blob, gather->bytes);
    return TRIB_TCP_HEAD_BYTES + length;
}

size_t trib_tcp_put_fail(uint8_t out[TRIB_TCP_SMALL_BYTES],
                         const struct trib_tcp_failure *failure)
{
    size_t text = strnlen(failure->text, TRIB_TCP_TEXT_BYTES - 1);
    uint8_t *p = out + trib_tcp_put_head(out, TRIB_TCP_FAIL, 0, 4 + text);

    put_u32(p, (uint32_t)(int32_t)failure->status);
    memcpy(p + 4, failure->text, text);
    return TRIB_TCP_HEAD_BYTES + 4 + text;
}
