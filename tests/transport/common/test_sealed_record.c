/* SPDX-License-Identifier: BSD-3-Clause */
/* Records by both ciphers: what was written comes out, and nothing else does. */
#include "tests/harness/tribtest.h"

#include "base/secret.h"
#include "transport/common/sealed_record.h"

#define BYTES ((size_t)65536)

static struct trib_secret secret;
static uint8_t record[BYTES + TRIB_RECORD_MORE], plain[BYTES], out[BYTES];

static int prepare(void **state)
{
    char why[160];

    (void)state;
    secret = (struct trib_secret){.is_set = true, .bytes = {3, 1, 4}};
    if (!trib_secret_arm(&secret, why, sizeof(why)))
        printf("# no libsodium: %s\n", why);
    for (size_t i = 0; i < BYTES; i++)
        plain[i] = (uint8_t)(i * 7 + i / 256);
    return 0;
}

/* Both ends of one direction. */
static void begin(struct trib_records ends[2], uint8_t nonce,
                  enum trib_proof_side writer, bool aes)
{
    struct trib_proof about = {
        .label = "test", .rank = {0, 1}, .nonce = {{nonce}, {9}}};

    memset(ends, 0, 2 * sizeof(*ends));
    for (int i = 0; i < 2; i++)
        trib_record_begin(&ends[i], &secret, &about, writer, aes);
}

static size_t close_record(struct trib_records *s, size_t n)
{
    memcpy(record + sizeof(struct trib_record_head), plain, n);
    assert_int_equal(trib_record_close(s, record, n), n + TRIB_RECORD_MORE);
    return n + TRIB_RECORD_MORE;
}

/* The ciphers that this machine has; false: there is none more. */
static bool next_cipher(bool *aes, int i)
{
    *aes = i == 1;
    return i == 0 || (i == 1 && trib_record_has_aes(&secret));
}

static void need_sodium(void)
{
    if (!secret.is_set)
        tribtest_skip("no libsodium");
}

TEST(test_round_trip)
{
    static const size_t sizes[] = {1, 15, 16, 17, 32, 40, 4096, 65535, BYTES};
    struct trib_records ends[2];
    bool aes;

    need_sodium();
    for (int c = 0; next_cipher(&aes, c); c++) {
        begin(ends, 1, TRIB_PROOF_CALLER, aes);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            memset(out, 0, sizeof(out));
            (void)close_record(&ends[0], sizes[i]);
            assert_true(trib_record_open(&ends[1], record, out));
            assert_memory_equal(out, plain, sizes[i]);
        }
    }
}

/* Two records of the same bytes have nothing in common: their nonces are not the
 * same. */
TEST(test_all_differ)
{
    static uint8_t seen[6][64 + TRIB_RECORD_MORE];
    struct trib_records ends[2];
    bool aes;

    need_sodium();
    for (int c = 0; next_cipher(&aes, c); c++) {
        for (int i = 0; i < 6; i++) { /* three of one key, then other keys */
            if (i == 0 || i > 2)
                begin(ends, i < 5 ? (uint8_t)i : 0,
                      i < 5 ? TRIB_PROOF_CALLER : TRIB_PROOF_LISTENER, aes);
            memcpy(seen[i], record, close_record(&ends[0], 64));
            for (int k = 0; k < i; k++)
                for (int at = 8; at < 64; at += 16)
                    assert_memory_not_equal(seen[i] + at, seen[k] + at, 16);
        }
    }
}

/* Each bit of a record, but for its length, which the reader of the stream goes by. */
TEST(test_each_bit)
{
    struct trib_records ends[2], reader;
    bool aes;

    need_sodium();
    for (int c = 0; next_cipher(&aes, c); c++) {
        begin(ends, 1, TRIB_PROOF_CALLER, aes);
        const size_t bits = 8 * close_record(&ends[0], 40);
        for (size_t bit = 0; bit < bits; bit++) {
            if (bit / 8 >= 4 && bit / 8 < 8)
                continue;
            reader = ends[1];
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(trib_record_open(&reader, record, out));
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        reader = ends[1];
        assert_true(trib_record_open(&reader, record, out));
        assert_false(trib_record_open(&reader, record, out)); /* a second time */
        begin(ends, 1, TRIB_PROOF_LISTENER, aes);
        assert_false(trib_record_open(&ends[1], record, out)); /* in the other
                                                                * direction */
    }
}

/* A shorter length than was written has another tag. */
TEST(test_length)
{
    struct trib_record_head head;
    struct trib_records ends[2];
    bool aes;

    need_sodium();
    for (int c = 0; next_cipher(&aes, c); c++) {
        begin(ends, 1, TRIB_PROOF_CALLER, aes);
        (void)close_record(&ends[0], 64);
        memcpy(&head, record, sizeof(head));
        head.len = 48;
        memcpy(record, &head, sizeof(head));
        assert_false(trib_record_open(&ends[1], record, out));
    }
}

/* Both ends change to the next key at the same record, and numbers restart. */
TEST(test_next_key)
{
    struct trib_records ends[2];
    uint8_t key[TRIB_PROOF_BYTES];
    bool aes;

    need_sodium();
    for (int c = 0; next_cipher(&aes, c); c++) {
        begin(ends, 1, TRIB_PROOF_CALLER, aes);
        memcpy(key, ends[0].key, sizeof(key));
        ends[0].number = ends[1].number = TRIB_RECORDS_PER_KEY - 2;
        for (int i = 0; i < 5; i++) {
            memset(out, 0, 64);
            (void)close_record(&ends[0], 64);
            assert_true(trib_record_open(&ends[1], record, out));
            assert_memory_equal(out, plain, 64);
            assert_int_equal(memcmp(key, ends[0].key, sizeof(key)) == 0, i < 2);
        }
        assert_int_equal(ends[0].number, 3);
        trib_record_wipe(&ends[0]);
        memset(key, 0, sizeof(key));
        assert_memory_equal(ends[0].key, key, sizeof(key));
    }
}

TEST_GROUP(prepare, NULL)
