/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload: the reference of the send buffer, then of the receive buffer. Each reference
 * is
 *
 *     | origin 8 | lo 8 | hi 8 | length of blob 2 | mappable 2 | blob, to a
 *     multiple of 8 |
 *
 * If the second length is SAME, the receive buffer is in the region of the send buffer,
 * and the blob is not repeated. If a length is TRIB_REF_ADDRESSED, there is no blob,
 * and origin is an address.
 */
#include "pipeline/link/advert.h"

#include <assert.h>
#include <string.h>

enum {
    SAME = 0xffff,
    HEAD = offsetof(struct trib_ref, blob) + offsetof(struct trib_blob, bytes),
};

/* Return the number of blob bytes that a length field stands for. */
static size_t bytes_of(size_t len)
{
    assert(len <= TRIB_BLOB_MAX || len == TRIB_REF_ADDRESSED);
    return len == TRIB_REF_ADDRESSED ? 0 : len;
}

bool trib_blob_same(const struct trib_blob *a, const struct trib_blob *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

void trib_blob_copy(struct trib_blob *to, const struct trib_blob *from)
{
    memcpy(to, from, offsetof(struct trib_blob, bytes) + bytes_of(from->len));
}

static size_t ref_bytes(size_t len)
{
    return (HEAD + bytes_of(len) + 7) & ~(size_t)7;
}

static bool repeats(const struct trib_advert *advert)
{
    return advert->recv.blob.len && !trib_ref_is_addressed(&advert->recv) &&
           trib_blob_same(&advert->send.blob, &advert->recv.blob);
}

size_t trib_advert_bytes(const struct trib_advert *advert)
{
    return ref_bytes(advert->send.blob.len) +
           ref_bytes(repeats(advert) ? 0 : advert->recv.blob.len);
}

static size_t ref_write(const struct trib_ref *ref, uint8_t *out)
{
    memcpy(out, ref, HEAD + bytes_of(ref->blob.len));
    return ref_bytes(ref->blob.len);
}

void trib_advert_write(const struct trib_advert *advert, uint8_t *out)
{
    assert(trib_advert_bytes(advert) <= TRIB_ADVERT_MAX);
    out += ref_write(&advert->send, out);
    if (!repeats(advert)) {
        (void)ref_write(&advert->recv, out);
        return;
    }
    const struct trib_ref *ref = &advert->recv;
    struct trib_ref head = {.origin = ref->origin, .lo = ref->lo, .hi = ref->hi};
    head.blob.len = SAME;
    head.blob.mappable = ref->blob.mappable;
    memcpy(out, &head, HEAD);
}

/* Read one reference. Return its size, or 0 if the bytes are not a reference. A blob of
 * length SAME or TRIB_REF_ADDRESSED has no bytes. */
static size_t ref_read(const uint8_t *in, size_t bytes, struct trib_ref *out)
{
    if (bytes < HEAD)
        return 0;
    memcpy(out, in, HEAD);
    const bool none = out->blob.len == SAME || trib_ref_is_addressed(out);
    const size_t len = none ? 0 : out->blob.len;
    if (len > TRIB_BLOB_MAX || ref_bytes(len) > bytes)
        return 0;
    memcpy(out->blob.bytes, in + HEAD, len);
    return ref_bytes(len);
}

bool trib_advert_read(const uint8_t *in, size_t bytes, struct trib_advert *out)
{
    size_t first = ref_read(in, bytes, &out->send);

    if (!first || out->send.blob.len == SAME)
        return false;
    size_t second = ref_read(in + first, bytes - first, &out->recv);
    if (!second || first + second != bytes)
        return false;
    if (out->recv.blob.len == SAME && trib_ref_is_addressed(&out->send))
        return false;
    if (out->recv.blob.len == SAME)
        trib_blob_copy(&out->recv.blob, &out->send.blob);
    return true;
}

size_t trib_ref_bytes(const struct trib_ref *ref)
{
    return ref_bytes(ref->blob.len);
}

size_t trib_ref_write(const struct trib_ref *ref, uint8_t *out)
{
    return ref_write(ref, out);
}

bool trib_ref_read(const uint8_t *in, size_t bytes, struct trib_ref *out)
{
    const size_t n = ref_read(in, bytes, out);

    return n && n == bytes && out->blob.len != SAME;
}
