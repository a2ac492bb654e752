/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elias omega codes in a stream of bits.
 */
#include "tests/harness/tribtest.h"

#include "compress/pack/elias_omega.h"

/* Read a number; false: end of the stream, or not below 2^32. */
static bool omega_get(struct trib_bit_reader *r, uint64_t *k_out)
{
    uint64_t w = trib_bits_peek(r);
    size_t used;
    if (!trib_omega_take(&w, &used, k_out))
        return false;
    r->at += used;
    return r->at <= 8 * r->len;
}

TEST(test_known)
{
    static const struct {
        uint64_t k;
        const char *code;
    } rows[] = {{1, "0"},        {2, "100"},          {3, "110"},
                {4, "101000"},   {7, "101110"},       {8, "1110000"},
                {15, "1111110"}, {16, "10100100000"}, {100, "1011011001000"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct trib_omega o = trib_omega_of(rows[i].k);
        char text[65];
        for (int b = 0; b < o.bits; b++)
            text[b] = o.code >> (o.bits - 1 - b) & 1 ? '1' : '0';
        text[o.bits] = '\0';
        assert_string_equal(text, rows[i].code);
    }
    assert_int_equal(trib_omega_of(UINT32_MAX).bits, 43);
}

static bool bit_get(struct trib_bit_reader *r, bool *bit_out)
{
    *bit_out = trib_bits_peek(r) >> 63;
    return ++r->at <= 8 * r->len;
}

static uint64_t number_at(int i)
{
    return i <= 3000 ? (uint64_t)i
                     : (uint64_t)UINT32_MAX - (uint64_t)(i - 3000) * 1000003;
}

enum { NUMBERS = 4000 };

static uint8_t *stream_new(size_t *len_out)
{
    uint8_t *bytes = malloc(NUMBERS * 6);
    struct trib_bit_writer w = {.at = bytes};
    for (int i = 1; i <= NUMBERS; i++) {
        trib_bits_put(&w, trib_omega_of(number_at(i)));
        trib_bits_put(&w, (struct trib_omega){(uint64_t)i & 1, 1});
    }
    *len_out = (size_t)(trib_bits_end(&w) - bytes);
    return realloc(bytes, *len_out);
}

TEST(test_round_trip)
{
    size_t len;
    uint8_t *bytes = stream_new(&len);
    struct trib_bit_reader r = {bytes, len, 0};
    for (int i = 1; i <= NUMBERS; i++) {
        uint64_t k;
        bool bit;
        assert_false(i < NUMBERS && trib_bits_done(&r));
        assert_true(omega_get(&r, &k) && k == number_at(i));
        assert_true(bit_get(&r, &bit) && bit == (i & 1));
    }
    assert_true(trib_bits_done(&r));
    free(bytes);
}

/* Wherever a stream is cut, its reader stops within it. */
TEST(test_cut)
{
    size_t len;
    uint8_t *bytes = stream_new(&len);
    for (size_t cut = 0; cut < len; cut += 97) {
        uint8_t *copy = malloc(cut);
        memcpy(copy, bytes, cut);
        struct trib_bit_reader r = {copy, cut, 0};
        uint64_t k;
        bool bit;
        int i = 1;
        for (; omega_get(&r, &k) && bit_get(&r, &bit); i++)
            assert_true(i < NUMBERS && k == number_at(i));
        free(copy);
    }
    free(bytes);
}

/* Bits that encode no number below 2^32, or follow the last number, are rejected. */
TEST(test_refused)
{
    const uint8_t ones[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                              255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t one[] = {0x80, 0x01}, none[] = {0}, dirty[] = {0x81};
    uint8_t large[8];
    struct trib_bit_reader r = {ones, sizeof ones, 0};
    uint64_t k = 0;
    assert_false(omega_get(&r, &k));
    struct trib_bit_writer w = {.at = large};
    trib_bits_put(&w, trib_omega_of(1ull << 32));
    r = (struct trib_bit_reader){large, (size_t)(trib_bits_end(&w) - large), 0};
    assert_false(omega_get(&r, &k));
    r = (struct trib_bit_reader){one, 2, 0};
    assert_true(omega_get(&r, &k) && k == 2);
    assert_false(trib_bits_done(&r)); /* a byte more, and not zero */
    r.len = 1;
    assert_true(trib_bits_done(&r));
    r = (struct trib_bit_reader){dirty, 1, 0};
    assert_true(omega_get(&r, &k) && k == 2);
    assert_false(trib_bits_done(&r));
    r = (struct trib_bit_reader){none, 0, 0};
    assert_true(trib_bits_done(&r));
    assert_false(omega_get(&r, &k));
}
