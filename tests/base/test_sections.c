/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "base/sections.h"

enum { HEAD = TRIB_SECTIONS_HEAD_BYTES, SECTION = 24, FIRST = 5, BYTES = 152 };

static const struct trib_sections_kind kind = {"TESTKIND", 3, "a test"};

/* Write sections "first" of 5 bytes, "none" of 0, "pair" of 8 and "pair" of 3. */
static size_t write_all(void *out, size_t room, trib_status_t expected)
{
    struct trib_sections_writer w = trib_sections_begin(out, room);
    struct trib_error err = {0};

    (void)trib_sections_add(&w, "first", "abcde", FIRST);
    (void)trib_sections_add(&w, "none", NULL, 0);
    void *at = trib_sections_add(&w, "pair", NULL, 8);
    if (at)
        memcpy(at, "12345678", 8);
    (void)trib_sections_add(&w, "pair", "xyz", 3);
    assert_status(trib_sections_finish(&w, &kind, &err), expected);
    return w.bytes;
}

/* Read all sections from a copy that ASan sees the end of. */
static trib_status_t read_all(const void *saved, size_t n, struct trib_error *err)
{
    uint8_t *copy = malloc(n + !n);
    struct trib_section s;
    struct trib_sections r;
    char first[FIRST];

    assert_non_null(copy);
    memcpy(copy, saved, n);
    trib_error_clear(err);
    trib_status_t st = trib_sections_open(&kind, copy, n, err, &r);
    if (st == TRIB_OK)
        st = trib_sections_copy(&r, "first", first, sizeof(first), err);
    if (st == TRIB_OK)
        st = trib_sections_next(&r, "none", err, &s);
    for (int i = 0; i < 2 && st == TRIB_OK; i++)
        st = trib_sections_next(&r, "pair", err, &s);
    if (st == TRIB_OK)
        st = trib_sections_close(&r, err);
    free(copy);
    return st;
}

static void refused(const void *saved, size_t n, const char *words)
{
    struct trib_error err = {0};

    assert_status(read_all(saved, n, &err), TRIB_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

TEST(test_reads_what_was_written)
{
    uint8_t saved[BYTES];
    struct trib_error err = {0};

    assert_int_equal(write_all(NULL, 0, TRIB_OK), BYTES);
    assert_int_equal(write_all(saved, BYTES - 1, TRIB_ERR_OVERFLOW), BYTES);
    assert_int_equal(write_all(saved, BYTES, TRIB_OK), BYTES);
    assert_status(read_all(saved, BYTES, &err), TRIB_OK);
    const struct trib_section s = trib_sections_find(saved, BYTES, "pair");
    assert_int_equal(s.bytes, 8);
    assert_memory_equal(s.data, "12345678", 8);
    assert_non_null(trib_sections_find(saved, BYTES, "none").data);
    assert_null(trib_sections_find(saved, BYTES, "pai").data);
}

TEST(test_refuses_each_truncation)
{
    uint8_t saved[BYTES];

    (void)write_all(saved, BYTES, TRIB_OK);
    for (size_t n = 0; n < BYTES; n++) {
        refused(saved, n, n < HEAD ? "are not the state of a test" : "truncated");
        if (n < HEAD)
            continue;
        uint8_t cut[BYTES];
        memcpy(cut, saved, n);
        trib_sections_seal(cut, n);
        refused(cut, n, "the state");
    }
    refused("", 0, "are not");
    struct trib_error err = {0};
    struct trib_sections r;
    assert_status(trib_sections_open(&kind, NULL, 9, &err, &r), TRIB_ERR_INVALID);
}

TEST(test_refuses_each_changed_byte)
{
    uint8_t saved[BYTES];

    (void)write_all(saved, BYTES, TRIB_OK);
    for (size_t at = 0; at < BYTES; at++) {
        saved[at] ^= 0x10;
        refused(saved, BYTES, "");
        saved[at] ^= 0x10;
    }
    saved[8]++;
    refused(saved, BYTES, "has version 4, but this library reads version 3");
}

/* Lengths of each section, also beyond 4 GiB, after a valid checksum. */
TEST(test_refuses_each_length)
{
    static const uint64_t lengths[] = {1,
                                       4,
                                       16,
                                       BYTES,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       UINT64_C(5) << 30,
                                       INT64_MAX,
                                       UINT64_MAX - 7,
                                       UINT64_MAX};
    static const size_t heads[] = {HEAD, HEAD + SECTION + 8, HEAD + 2 * SECTION + 8,
                                   HEAD + 3 * SECTION + 16};
    uint8_t saved[BYTES];

    (void)write_all(saved, BYTES, TRIB_OK);
    for (size_t h = 0; h < 4; h++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            struct trib_error err = {0};
            uint8_t bad[BYTES];
            memcpy(bad, saved, BYTES);
            memcpy(bad + heads[h] + 16, &lengths[i], 8);
            trib_sections_seal(bad, BYTES);
            const trib_status_t st = read_all(bad, BYTES, &err);
            /* The reader of a kind must reject a wrong length with the same padding. */
            assert_true(st == TRIB_ERR_INVALID || (h >= 2 && lengths[i] <= 4));
        }
}

static void renamed(size_t at, const char *name, const char *words)
{
    uint8_t saved[BYTES];

    (void)write_all(saved, BYTES, TRIB_OK);
    memset(saved + at, 0, TRIB_SECTION_NAME_BYTES);
    memcpy(saved + at, name, strlen(name));
    trib_sections_seal(saved, BYTES);
    refused(saved, BYTES, words);
}

TEST(test_refuses_other_sections)
{
    uint8_t longer[BYTES + SECTION] = {0};

    renamed(HEAD, "second", "has section \"second\" instead of \"first\"");
    renamed(HEAD + SECTION + 8, "first", "has section \"first\" instead of \"none\"");
    renamed(HEAD, "sixteen letters!", "has section \"sixteen letters!\" instead");
    renamed(HEAD, "\n\x7f", "has section \"\\x0a\\x7f\" instead");
    (void)write_all(longer, sizeof(longer), TRIB_OK);
    memcpy(longer + BYTES, "more", 4);
    trib_sections_seal(longer, sizeof(longer));
    refused(longer, sizeof(longer), "has section \"more\", which is unknown here");
    (void)write_all(longer, sizeof(longer), TRIB_OK);
    trib_sections_seal(longer, BYTES - SECTION - 8);
    refused(longer, BYTES - SECTION - 8, "has no section \"pair\"");
}
