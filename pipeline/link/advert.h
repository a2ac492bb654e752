/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of an ADVERT frame: the sender's buffers of an operation.
 */
#ifndef PIPELINE_LINK_ADVERT_H
#define PIPELINE_LINK_ADVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

/* A buffer of an operation that can be read or written in place. Offsets are in bytes
 * of the whole vector: vector byte v is at region byte origin + v, for lo <= v < hi. */
struct trib_ref {
    int64_t origin;
    uint64_t lo;
    uint64_t hi;
    struct trib_blob blob; /* len 0: the memory cannot be reached */
};

/* Length of a blob that has no bytes, and stands for memory that nobody has registered:
 * vector byte v is at address origin + v of its owner, as long as the operation
 * lasts. */
#define TRIB_REF_ADDRESSED 0xfffe

struct trib_advert {
    struct trib_ref send;
    struct trib_ref recv;
};

/* Bytes of the payload. */
#define TRIB_ADVERT_MAX (2 * sizeof(struct trib_ref))

static inline void trib_ref_none(struct trib_ref *ref)
{
    ref->origin = 0;
    ref->lo = ref->hi = 0;
    ref->blob.len = ref->blob.mappable = 0;
}

/** trib_ref_fits - true if a reference stays inside a region of `len` bytes. Peers may
 * claim anything. */
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

/** trib_ref_address - make the reference of memory that nobody has registered; ptr is
 * where vector byte lo is. */
static inline void trib_ref_address(struct trib_ref *ref, const void *ptr, size_t lo,
                                    size_t hi)
{
    trib_ref_none(ref);
    ref->origin = (int64_t)((uintptr_t)ptr - lo);
    ref->lo = lo;
    ref->hi = hi;
    ref->blob.len = TRIB_REF_ADDRESSED;
}

/** trib_blob_same - true if both name the same region. */
bool trib_blob_same(const struct trib_blob *a, const struct trib_blob *b);

/** trib_blob_copy - copy a blob without the bytes behind its end. */
void trib_blob_copy(struct trib_blob *to, const struct trib_blob *from);

/** trib_advert_bytes - the size of the payload: it has the used bytes of blobs, once if
 * both are the same. */
size_t trib_advert_bytes(const struct trib_advert *advert);

/** trib_advert_write - write the payload to trib_advert_bytes of memory. */
void trib_advert_write(const struct trib_advert *advert, uint8_t *out);

/**
 * trib_advert_read - read the payload that a peer wrote.
 *
 * in       may go on changing: each byte is read once
 * returns  false: `bytes` are no payload of ADVERT. What the refs claim is not looked
 *          at
 */
bool trib_advert_read(const uint8_t *in, size_t bytes, struct trib_advert *out);

/** trib_ref_bytes - the size of one reference in a payload. */
size_t trib_ref_bytes(const struct trib_ref *ref);

/** trib_ref_write - write one reference, and return its size. */
size_t trib_ref_write(const struct trib_ref *ref, uint8_t *out);

/** trib_ref_read - read one that a peer wrote, as trib_advert_read does; false:
 * `bytes` are none. */
bool trib_ref_read(const uint8_t *in, size_t bytes, struct trib_ref *out);

#endif
