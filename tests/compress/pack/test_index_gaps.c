/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

#include <streamvbyte.h>
#include <sys/mman.h>

#include "compress/pack/index_gaps.h"

enum { M_MAX = 3000 };

static uint32_t positions[M_MAX], out[TRIB_INDEX_GAPS_GROUP];

/* m positions with gaps below `span` */
static size_t spread(size_t m, uint32_t span)
{
    const struct trib_rng rng = {.seed = span};
    uint64_t at = 0;
    for (size_t i = 0; i < m; i++) {
        at += (span ? draw_u32(rng, i) % span : 0) + (i > 0);
        positions[i] = (uint32_t)at;
    }
    return m ? positions[m - 1] + (size_t)1 : 0;
}

static void read_back(struct trib_positions p, size_t m)
{
    size_t done = 0, count;
    p.left = m;
    while ((count = trib_positions_next(&p, out)) > 0) {
        assert_memory_equal(out, positions + done, count * sizeof *out);
        done += count;
    }
    assert_int_equal(done, m);
    assert_true(trib_positions_done(&p));
}

/* Each group is what the library makes of its gaps. */
static void judge(const uint8_t *code, size_t m)
{
    uint32_t gaps[TRIB_INDEX_GAPS_GROUP];
    uint8_t expected[TRIB_INDEX_GAPS_GROUP * 5 + 16];
    for (size_t i = 0, count; i < m; i += count) {
        count = m - i < TRIB_INDEX_GAPS_GROUP ? m - i : TRIB_INDEX_GAPS_GROUP;
        for (size_t j = i; j < i + count; j++)
            gaps[j - i] = positions[j] - (j ? positions[j - 1] + 1 : 0);
        const size_t bytes = streamvbyte_encode(gaps, (uint32_t)count, expected);
        assert_memory_equal(code, expected, bytes);
        code += bytes;
    }
}

static void test_round_trip(void **state)
{
    static const uint32_t spans[] = {0, 2, 300, 70000, 1000000};
    (void)state;
    for (int s = 0; s < 5; s++) {
        for (size_t m = 0; m < M_MAX; m = m < 20 ? m + 1 : m * 3 / 2 + 1) {
            const size_t n = spread(m, spans[s]),
                         bytes = trib_index_gaps_bytes(trib_kernels_get(NULL),
                                                       positions, m);
            uint8_t *code = malloc(bytes);
            assert_int_equal(trib_index_gaps_encode(positions, m, code), bytes);
            judge(code, m);
            read_back((struct trib_positions){.src = code, .len = bytes, .n = n}, m);
            free(code);
            if (n > 1 << 24)
                continue;
            code = malloc((n + 7) / 8);
            trib_bitmap_encode(positions, m, n, code);
            read_back(
                (struct trib_positions){
                    .src = code, .len = (n + 7) / 8, .n = n, .bitmap = true},
                m);
            free(code);
        }
    }
}

/* Four bytes are moved at a time; that must not show at the end of a page. */
static void test_end_of_page(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
    for (size_t m = 1; m < 600; m += 7) {
        const size_t n = spread(m, 300),
                     bytes =
                         trib_index_gaps_bytes(trib_kernels_get(NULL), positions, m);
        trib_index_gaps_encode(positions, m, p + page - bytes);
        read_back(
            (struct trib_positions){.src = p + page - bytes, .len = bytes, .n = n}, m);
    }
    munmap(p, 2 * page);
}

/* drawn in index_gaps.h */
static void test_layout(void **state)
{
    (void)state;
    const uint32_t p[] = {5, 6, 263, 66056, 0x2000000};
    const uint8_t gaps[] = {0x90, 0x03, 5,    0,    0x00, 0x01, 0,
                            1,    1,    0xf7, 0xfd, 0xfe, 0x01};
    uint8_t code[64];
    assert_int_equal(trib_index_gaps_bytes(trib_kernels_get("c"), p, 5), sizeof gaps);
    trib_index_gaps_encode(p, 5, code);
    assert_memory_equal(code, gaps, sizeof gaps);
    const uint32_t q[] = {0, 9, 10};
    const uint8_t bitmap[] = {0x01, 0x06};
    trib_bitmap_encode(q, 3, 11, code);
    assert_memory_equal(code, bitmap, 2);
}

static void expect_wrong(struct trib_positions p)
{
    while (trib_positions_next(&p, out) > 0)
        ;
    assert_false(trib_positions_done(&p));
}

static void test_wrong_bytes(void **state)
{
    (void)state;
    const uint8_t far[] = {0x03, 0xff, 0xff, 0xff, 0xff}; /* one gap of 2^32 - 1 */
    expect_wrong(
        (struct trib_positions){.src = far, .len = 5, .n = 4000000000u, .left = 1});
    expect_wrong(
        (struct trib_positions){.src = far, .len = 4, .n = SIZE_MAX, .left = 1});
    const uint8_t two[] = {0x00, 0, 0, 0};
    expect_wrong((struct trib_positions){.src = two, .len = 3, .n = 1, .left = 2});
    expect_wrong((struct trib_positions){.src = two, .len = 4, .n = 2, .left = 2});
    expect_wrong((struct trib_positions){.src = two, .len = 0, .n = 2, .left = 2});
    const uint8_t bits[] = {0x05, 0x80};
    expect_wrong((struct trib_positions){
        .src = bits, .len = 2, .n = 15, .left = 3, .bitmap = true}); /* beyond n */
    expect_wrong((struct trib_positions){
        .src = bits, .len = 2, .n = 16, .left = 2, .bitmap = true}); /* one too many */
    expect_wrong((struct trib_positions){
        .src = bits, .len = 2, .n = 16, .left = 4, .bitmap = true}); /* one too few */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_end_of_page),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_wrong_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
