/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of ADVERT: decoding returns the encoded values and reads no other bytes.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/link/advert.h"

static void fill(struct trib_ref *ref, uint16_t len, uint8_t seed)
{
    *ref = (struct trib_ref){.origin = -seed, .lo = seed, .hi = (uint64_t)seed << 40};
    ref->blob.len = len;
    ref->blob.mappable = seed & 1;
    for (int i = 0; i < len; i++)
        ref->blob.bytes[i] = (uint8_t)(seed + i);
}

static void assert_same_ref(const struct trib_ref *a, const struct trib_ref *b)
{
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->lo, b->lo);
    assert_int_equal(a->hi, b->hi);
    assert_int_equal(a->blob.mappable, b->blob.mappable);
    assert_true(trib_blob_same(&a->blob, &b->blob));
}

/* Encode and decode in a buffer of the exact size, so that a sanitizer detects
 * overruns. */
static size_t there_and_back(const struct trib_advert *advert)
{
    size_t bytes = trib_advert_bytes(advert);
    uint8_t *wire = calloc(1, bytes);
    struct trib_advert back;

    assert_non_null(wire);
    assert_true(bytes <= TRIB_ADVERT_MAX);
    trib_advert_write(advert, wire);
    assert_true(trib_advert_read(wire, bytes, &back));
    assert_same_ref(&advert->send, &back.send);
    assert_same_ref(&advert->recv, &back.recv);
    for (size_t less = 0; less < bytes; less++)
        assert_false(trib_advert_read(wire, less, &back));
    free(wire);
    return bytes;
}

TEST(test_round_trip)
{
    static const uint16_t lens[] = {
        0, 1, 3, 4, 5, 56, 72, TRIB_BLOB_MAX - 1, TRIB_BLOB_MAX};
    struct trib_advert advert;

    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
        for (size_t j = 0; j < sizeof(lens) / sizeof(*lens); j++) {
            fill(&advert.send, lens[i], 5);
            fill(&advert.recv, lens[j], 100);
            (void)there_and_back(&advert);
        }
    }
}

/* In place, the region is named once. */
TEST(test_same_region)
{
    struct trib_advert advert;

    fill(&advert.send, 72, 7);
    fill(&advert.recv, 72, 9);
    assert_int_equal(there_and_back(&advert), 2 * 104);
    advert.recv.blob = advert.send.blob;
    assert_int_equal(there_and_back(&advert), 104 + 32);
    advert.recv.blob.bytes[71]++;
    assert_int_equal(there_and_back(&advert), 2 * 104);
}

TEST(test_refuses)
{
    uint8_t wire[TRIB_ADVERT_MAX + 8] = {0};
    struct trib_advert advert, out;
    const size_t len_at = offsetof(struct trib_ref, blob.len);

    fill(&advert.send, 72, 7);
    fill(&advert.recv, 8, 9);
    size_t bytes = trib_advert_bytes(&advert);
    for (unsigned len = 0; len <= UINT16_MAX; len++) {
        uint16_t said = (uint16_t)len;
        trib_advert_write(&advert, wire);
        memcpy(wire + len_at, &said, sizeof(said));
        assert_int_equal(trib_advert_read(wire, bytes, &out), len >= 69 && len <= 76);
        trib_advert_write(&advert, wire);
        memcpy(wire + 104 + len_at, &said, sizeof(said));
        assert_int_equal(trib_advert_read(wire, bytes, &out), len >= 5 && len <= 12);
    }
    trib_advert_write(&advert, wire);
    assert_false(trib_advert_read(wire, bytes + 8, &out));
}

/* One reference alone. */
TEST(test_one)
{
    uint8_t wire[TRIB_ADVERT_MAX + 8] = {0};
    struct trib_ref ref, out;

    fill(&ref, 72, 7);
    const size_t bytes = trib_ref_write(&ref, wire);
    assert_int_equal(bytes, trib_ref_bytes(&ref));
    assert_true(trib_ref_read(wire, bytes, &out));
    assert_true(out.origin == ref.origin && out.lo == ref.lo && out.hi == ref.hi);
    assert_true(trib_blob_same(&out.blob, &ref.blob));
    assert_false(trib_ref_read(wire, bytes - 1, &out));
    assert_false(trib_ref_read(wire, bytes + 8, &out));
    ref.blob.len = UINT16_MAX;
    memcpy(wire, &ref, offsetof(struct trib_ref, blob.bytes));
    assert_false(trib_ref_read(wire, offsetof(struct trib_ref, blob.bytes), &out));
}
