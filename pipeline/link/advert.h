/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload of an ADVERT frame: the sender's buffers of an operation.
 */
#ifndef PIPELINE_LINK_ADVERT_H
#define PIPELINE_LINK_ADVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

/* A buffer of an operation that peers can read or write in place. Offsets are bytes of
 * the whole vector: vector byte v is at region byte origin + v, for lo <= v < hi. */
struct trib_ref {
    int64_t origin;
    uint64_t lo;
    uint64_t hi;
    struct trib_blob blob; /* len 0: peers cannot reach the memory */
};

/* Blob length that marks unregistered memory. Such a blob has no bytes: vector byte v
 * is at address origin + v of the owner's process until the operation ends. */
#define TRIB_REF_ADDRESSED 0xfffe

struct trib_advert {
    struct trib_ref send;
    struct trib_ref recv;
};

/* Maximum size of the payload in bytes. */
#define TRIB_ADVERT_MAX (2 * sizeof(struct trib_ref))

static inline void trib_ref_none(struct trib_ref *ref)
{
    ref->origin = 0;
    ref->lo = ref->hi = 0;
    ref->blob.len = ref->blob.mappable = 0;
}

/** trib_ref_fits - return true if the reference stays inside a region of `len` bytes.
 * Check every reference of a peer: the peer may claim anything. */
static inline bool trib_ref_fits(const struct trib_ref *ref, size_t len)
{
    int64_t first, end;

    return ref->lo <= ref->hi &&
           !__builtin_add_overflow(ref->origin, ref->lo, &first) && first >= 0 &&
           !__builtin_add_overflow(ref->origin, ref->hi, &end) && (uint64_t)end <= len;
}

static inline bool trib_ref_is_addressed(const struct trib_ref *ref)
{
    return ref->blob.len == TRIB_REF_ADDRESSED;
}

/** trib_ref_address - make a reference to unregistered memory; ptr is the address of
 * vector byte lo. */
static inline void trib_ref_address(struct trib_ref *ref, const void *ptr, size_t lo,
                                    size_t hi)
{
    trib_ref_none(ref);
    ref->origin = (int64_t)((uintptr_t)ptr - lo);
    ref->lo = lo;
    ref->hi = hi;
    ref->blob.len = TRIB_REF_ADDRESSED;
}

/** trib_blob_same - return true if both blobs name the same region. */
bool trib_blob_same(const struct trib_blob *a, const struct trib_blob *b);

/** trib_blob_copy - copy a blob without the unused bytes after its end. */
void trib_blob_copy(struct trib_blob *to, const struct trib_blob *from);

/** trib_advert_bytes - return the size of the payload. The payload has only the used
 * bytes of the blobs, and one blob if both buffers are in one region. */
size_t trib_advert_bytes(const struct trib_advert *advert);

/** trib_advert_write - write the payload to trib_advert_bytes bytes at `out`. */
void trib_advert_write(const struct trib_advert *advert, uint8_t *out);

/**
 * trib_advert_read - parse the payload that a peer wrote.
 *
 * in       may change during the call: each byte is read once
 * returns  false if `bytes` bytes are not an ADVERT payload. The claims of the
 *          references are not checked
 */
bool trib_advert_read(const uint8_t *in, size_t bytes, struct trib_advert *out);

/** trib_ref_bytes - return the size of one reference in a payload. */
size_t trib_ref_bytes(const struct trib_ref *ref);

/** trib_ref_write - write one reference and return its size. */
size_t trib_ref_write(const struct trib_ref *ref, uint8_t *out);

/** trib_ref_read - parse one reference that a peer wrote, like trib_advert_read; return
 * false if `bytes` bytes are not a reference. */
bool trib_ref_read(const uint8_t *in, size_t bytes, struct trib_ref *out);

#endif
