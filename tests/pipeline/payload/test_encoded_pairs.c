/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded pairs: any number of pairs of chunks of many sizes round-trips in the
 * shortest form; no input makes the reader exceed its memory.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/payload/encoded_pairs.h"

enum { MOST = 70000, ELEMENT_MOST = 8 };

struct memory {
    uint32_t given[MOST], got[MOST];
    uint8_t values[MOST * ELEMENT_MOST];
    uint8_t word[MOST * (ELEMENT_MOST + 4) + 64];
};

static uint64_t state_of_noise = 1;

static uint64_t noise(void)
{
    state_of_noise = state_of_noise * 6364136223846793005u + 1442695040888963407u;
    return state_of_noise >> 24;
}

/* Chooses `pairs` of n positions. */
static void choose(struct memory *m, size_t pairs, size_t n)
{
    size_t left = pairs;

    for (size_t i = 0, k = 0; i < n && left; i++)
        if (noise() % (n - i) < left) {
            m->given[k++] = (uint32_t)i;
            left--;
        }
    for (size_t i = 0; i < pairs * ELEMENT_MOST; i++)
        m->values[i] = (uint8_t)noise();
}

static void round_trip(struct memory *m, size_t pairs, size_t n, size_t element)
{
    const struct trib_pairs p = {pairs, m->given, m->values};
    struct trib_pairs out;

    choose(m, pairs, n);
    const size_t bytes = trib_encoded_pairs_length(&p, n, element);
    assert_true(bytes <= trib_encoded_pairs_bytes(pairs, n, element));
    assert_true(bytes <= trib_encoded_pairs_bound(n, element));
    assert_true(bytes <= sizeof(m->word) - 1);
    m->word[bytes] = 0xa5;
    trib_encoded_pairs_write(&p, n, element, m->word);
    assert_int_equal(m->word[bytes], 0xa5);
    assert_true(trib_encoded_pairs_read(m->word, bytes, n, element, m->got, &out));
    assert_int_equal(out.n, pairs);
    assert_memory_equal(m->got, m->given, pairs * sizeof(*m->got));
    if (pairs)
        assert_memory_equal(out.values, m->values, pairs * element);
}

TEST(test_round_trips)
{
    static const size_t sizes[] = {1,  2,    7,     8,     63,    64,
                                   65, 1000, 65535, 65536, 65537, MOST};
    static const size_t elements[] = {1, 2, 4, 8};
    struct memory *m = malloc(sizeof(*m));

    assert_non_null(m);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        const size_t n = sizes[s];
        const size_t pairs[] = {0, 1, n / 100, n / 16, n / 16 + 1, n / 2, n - 1, n};
        for (size_t k = 0; k < sizeof(pairs) / sizeof(*pairs); k++)
            if (pairs[k] <= n)
                round_trip(m, pairs[k], n, elements[(s + k) % 4]);
    }
    free(m);
}

/* Nothing for no pairs; a list, then a bitmap, then values alone. */
TEST(test_lengths)
{
    assert_int_equal(trib_encoded_pairs_bytes(0, 1000, 4), 0);
    assert_int_equal(trib_encoded_pairs_bytes(1, 1000, 4), 8 + 8 + 4);
    assert_int_equal(trib_encoded_pairs_bytes(4, 65536, 4), 8 + 8 + 16);
    assert_int_equal(trib_encoded_pairs_bytes(4, 65537, 4), 8 + 16 + 16);
    assert_int_equal(trib_encoded_pairs_bytes(4096, 65536, 4), 8 + 8192 + 16384);
    assert_int_equal(trib_encoded_pairs_bytes(4095, 65536, 4), 8 + 8192 + 16380);
    assert_int_equal(trib_encoded_pairs_bytes(65536, 65536, 4), 8 + 65536 * 4);
}

/* Positions of a long chunk are distances, or a u32 list where many distances are far.
 * Inconsistent headers are rejected. */
TEST(test_distances)
{
    enum { N = 1000000 };
    static const uint32_t near_ones[] = {65534, 65535, 65536, 131071, 131072, 131073};
    static const uint32_t far_ones[] = {65535, 131071, 196607, 262143, 999999};
    static const uint32_t both_kinds[] = {0, 99999, 100000, 100001, 100002, 100003};
    const uint8_t values[24] = {1, 2, 3};
    const struct trib_pairs near = {6, near_ones, values}, far = {5, far_ones, values},
                            both = {6, both_kinds, values};
    struct trib_pairs out;
    uint32_t at[8], how;
    uint8_t word[64];

    assert_int_equal(trib_encoded_pairs_length(&near, N, 4), 8 + 16 + 24);
    trib_encoded_pairs_write(&near, N, 4, word);
    assert_true(trib_encoded_pairs_read(word, 48, N, 4, at, &out));
    assert_memory_equal(at, near_ones, sizeof(near_ones));
    assert_memory_equal(out.values, values, sizeof(values));
    assert_false(trib_encoded_pairs_read(word, 48, 131073, 4, at, &out)); /* the last */
    assert_false(trib_encoded_pairs_read(word, 48, 65536, 4, at, &out));
    for (how = 2; how < 9; how++) { /* none is far */
        memcpy(word + 4, &how, sizeof(how));
        assert_false(trib_encoded_pairs_read(word, 48, N, 4, at, &out));
    }
    assert_int_equal(trib_encoded_pairs_length(&both, N, 2), 8 + 16 + 12);
    trib_encoded_pairs_write(&both, N, 2, word);
    assert_true(trib_encoded_pairs_read(word, 36, N, 2, at, &out));
    assert_memory_equal(at, both_kinds, sizeof(both_kinds));
    word[12] = 0xff, word[13] = 0xff, word[14] = 0, word[15] = 0; /* not far */
    assert_false(trib_encoded_pairs_read(word, 36, N, 2, at, &out));
    assert_int_equal(trib_encoded_pairs_length(&far, N, 1), 8 + 24 + 5);
    trib_encoded_pairs_write(&far, N, 1, word);
    assert_true(trib_encoded_pairs_read(word, 37, N, 1, at, &out));
    assert_memory_equal(at, far_ones, sizeof(far_ones));
}

/* Decode from memory that ends with the encoded chunk; if the reader accepts it, all
 * positions are valid. */
static void read_copy(const uint8_t *word, size_t bytes, size_t n, size_t element)
{
    uint8_t *copy = malloc(bytes + !bytes);
    uint32_t *at = malloc(n * sizeof(*at));
    struct trib_pairs out;

    assert_true(copy && at);
    memcpy(copy, word, bytes);
    if (trib_encoded_pairs_read(copy, bytes, n, element, at, &out)) {
        assert_true(out.n <= n);
        assert_true(bytes <= trib_encoded_pairs_bytes(out.n, n, element));
        for (size_t i = 0; i < out.n; i++)
            assert_true(at[i] < n && (!i || at[i] > at[i - 1]));
    }
    free(copy);
    free(at);
}

TEST(test_damaged_words)
{
    static const size_t sizes[] = {9, 64, 300, 65537};
    struct memory *m = malloc(sizeof(*m));

    assert_non_null(m);
    for (int k = 0; k < 4000; k++) {
        const size_t n = sizes[k % 4], pairs = noise() % (n < 40 ? n + 1 : 40);
        const struct trib_pairs p = {pairs, m->given, m->values};
        choose(m, pairs, n);
        const size_t bytes = trib_encoded_pairs_length(&p, n, 4);
        trib_encoded_pairs_write(&p, n, 4, m->word);
        if (bytes && k % 3 == 0)
            m->word[noise() % bytes] ^= (uint8_t)(1u << noise() % 8);
        read_copy(m->word, k % 3 == 1 ? noise() % (bytes + 1) : bytes, n, 4);
    }
    free(m);
}

static bool refuses(const void *word, size_t bytes, size_t n)
{
    uint32_t at[128];
    struct trib_pairs out;

    assert_true(n <= 128);
    return !trib_encoded_pairs_read(word, bytes, n, 4, at, &out);
}

TEST(test_refused_words)
{
    /* Two pairs of 128: u16 positions, 8 bytes for them, 8 of values. */
    struct {
        uint32_t pairs, zero;
        uint16_t at[4];
        uint32_t values[2];
    } w = {2, 0, {3, 5, 0, 0}, {1, 1}};

    assert_false(refuses(&w, sizeof(w), 128));
    assert_true(refuses(&w, sizeof(w) - 1, 128));
    assert_true(refuses(&w, 7, 128));
    w.at[1] = 3;
    assert_true(refuses(&w, sizeof(w), 128)); /* twice */
    w.at[1] = 2;
    assert_true(refuses(&w, sizeof(w), 128)); /* not rising */
    w.at[1] = 128;
    assert_true(refuses(&w, sizeof(w), 128)); /* behind the end */
    w.at[1] = 5;
    w.zero = 1;
    assert_true(refuses(&w, sizeof(w), 128));
    w.zero = 0, w.pairs = 129;
    assert_true(refuses(&w, sizeof(w), 128));
    w.pairs = 0;
    assert_true(refuses(&w, sizeof(w), 128));
}

/* Bitmaps with one bit too many, one too few, and one past the end. */
TEST(test_refused_bitmaps)
{
    uint32_t at[10];
    uint8_t word[8 + 8 + 8 * 4] = {8};
    struct trib_pairs out;

    word[8] = 0xff;
    assert_true(trib_encoded_pairs_read(word, sizeof(word), 10, 4, at, &out));
    word[9] = 1;
    assert_false(trib_encoded_pairs_read(word, sizeof(word), 10, 4, at, &out));
    word[9] = 0, word[8] = 0x7f;
    assert_false(trib_encoded_pairs_read(word, sizeof(word), 10, 4, at, &out));
    word[9] = 4;
    assert_false(trib_encoded_pairs_read(word, sizeof(word), 10, 4, at, &out));
}
