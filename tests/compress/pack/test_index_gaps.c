/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

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

static void read_back(const uint8_t *code, size_t len, size_t n, size_t m, bool bitmap)
{
    struct trib_positions p = {.n = n, .left = m};
    size_t done = 0, count;
    assert_true(trib_positions_open(&p, code, len, bitmap));
    while ((count = trib_positions_next(&p, out)) > 0) {
        assert_memory_equal(out, positions + done, count * sizeof *out);
        done += count;
    }
    assert_int_equal(done, m);
    assert_true(trib_positions_done(&p));
}

static unsigned bit_of(const uint8_t *bytes, size_t i)
{
    return bytes[i / 8] >> i % 8 & 1u;
}

/* Reads the layout of index_gaps.h bit by bit. */
static void judge(const uint8_t *code, size_t bytes, size_t m)
{
    const size_t low = code[0];
    const uint8_t *high = code + 1 + (m * low + 7) / 8;
    size_t at = 0;
    for (size_t i = 0; i < m; i++) {
        uint64_t gap = 0;
        for (; !bit_of(high, at); at++)
            gap++;
        at++;
        for (size_t b = low; b-- > 0;)
            gap = 2 * gap + bit_of(code + 1, i * low + b);
        assert_int_equal(gap, positions[i] - (i ? positions[i - 1] + 1 : 0));
    }
    assert_int_equal(high + (at + 7) / 8 - code, bytes);
    for (; at % 8; at++)
        assert_int_equal(bit_of(high, at), 0);
}

TEST(test_round_trip)
{
    static const uint32_t spans[] = {0, 2, 300, 70000, 1000000};
    for (int s = 0; s < 5; s++) {
        for (size_t m = 0; m < M_MAX; m = m < 20 ? m + 1 : m * 3 / 2 + 1) {
            const size_t n = spread(m, spans[s]);
            const struct trib_index_gaps g = trib_index_gaps_measure(positions, m);
            uint8_t *code = malloc(g.bytes + 1);
            assert_int_equal(trib_index_gaps_encode(positions, m, g.low_bits, code),
                             g.bytes);
            if (m)
                judge(code, g.bytes, m);
            read_back(code, g.bytes, n, m, false);
            free(code);
            if (n > 1 << 24)
                continue;
            code = malloc((n + 7) / 8);
            trib_bitmap_encode(positions, m, n, code);
            read_back(code, (n + 7) / 8, n, m, true);
            free(code);
        }
    }
}

/* Any parameter is read back, not only the best. */
TEST(test_any_parameter)
{
    static uint8_t code[1 << 20];
    for (unsigned low = 0; low <= 31; low++) {
        const size_t m = 300, n = spread(m, 9000);
        read_back(code, trib_index_gaps_encode(positions, m, low, code), n, m, false);
    }
}

/* Bytes are moved eight at a time; that must not show at the end of a page. */
TEST(test_end_of_page)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
    for (size_t m = 1; m < 600; m += 7) {
        const size_t n = spread(m, 300);
        const struct trib_index_gaps g = trib_index_gaps_measure(positions, m);
        trib_index_gaps_encode(positions, m, g.low_bits, p + page - g.bytes);
        read_back(p + page - g.bytes, g.bytes, n, m, false);
    }
    munmap(p, 2 * page);
}

/* Where each element is chosen with the same probability, gaps take hardly more than
 * the entropy of the choice. */
TEST(test_near_the_entropy)
{
    static const double ratios[] = {0.0001, 0.001, 0.0035, 0.01, 0.02, 0.05, 0.1, 0.2};
    const struct trib_rng rng = {.seed = 7};
    for (size_t k = 0; k < sizeof ratios / sizeof *ratios; k++) {
        const double p = ratios[k];
        const double entropy = (-p * log2(p) - (1 - p) * log2(1 - p)) / p;
        double at = -1;
        for (size_t i = 0; i < M_MAX; i++) {
            const double u = ((double)draw_u32(rng, i) + 0.5) * 0x1p-32;
            at += 1 + floor(log(u) / log(1 - p));
            positions[i] = (uint32_t)at;
        }
        const double bits =
            8.0 * (double)trib_index_gaps_measure(positions, M_MAX).bytes / M_MAX;
        if (!(bits > 0.95 * entropy && bits < 1.06 * entropy))
            fail_msg("ratio %g: %.3f bits an index, entropy %.3f", p, bits, entropy);
    }
}

/* drawn in index_gaps.h */
TEST(test_layout)
{
    /* gaps 5, 0, 256, 12: low bits 000101 000000 000000 001100, above them 0 0 4 0 */
    const uint32_t p[] = {5, 6, 263, 276};
    const uint8_t gaps[] = {6, 0x05, 0x00, 0x30, 0xc3};
    uint8_t code[64];
    const struct trib_index_gaps g = trib_index_gaps_measure(p, 4);
    assert_int_equal(g.low_bits, 6);
    assert_int_equal(g.bytes, sizeof gaps);
    trib_index_gaps_encode(p, 4, g.low_bits, code);
    assert_memory_equal(code, gaps, sizeof gaps);
    const uint32_t q[] = {0, 9, 10};
    const uint8_t bitmap[] = {0x01, 0x06};
    trib_bitmap_encode(q, 3, 11, code);
    assert_memory_equal(code, bitmap, 2);
}

static void expect_wrong(const uint8_t *code, size_t len, size_t n, size_t left,
                         bool bitmap)
{
    struct trib_positions p = {.n = n, .left = left};
    uint8_t *copy = malloc(len + 1);
    memcpy(copy, code, len);
    if (trib_positions_open(&p, copy, len, bitmap)) {
        while (trib_positions_next(&p, out) > 0)
            ;
        assert_false(trib_positions_done(&p));
    }
    free(copy);
}

TEST(test_wrong_bytes)
{
    const uint8_t far[] = {31, 0xff, 0xff, 0xff, 0x7f, 0x02}; /* 2^32 - 1 */
    expect_wrong(far, 6, 4000000000u, 1, false);
    expect_wrong(far, 5, SIZE_MAX, 1, false);
    const uint8_t wide[] = {32, 0, 0, 0, 0, 1};
    expect_wrong(wide, 6, SIZE_MAX, 1, false);
    const uint8_t two[] = {0, 0x03, 0, 0};
    expect_wrong(two, 2, 1, 2, false); /* beyond n */
    expect_wrong(two, 3, 2, 2, false); /* a byte too many */
    expect_wrong(two, 1, 2, 2, false);
    expect_wrong(two, 0, 2, 2, false);
    expect_wrong(two, 2, 2, 1, false); /* one too many */
    expect_wrong(two, 2, 3, 3, false); /* one too few */
    const uint8_t far_away[] = {31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    expect_wrong(far_away, sizeof far_away, UINT32_MAX, 1, false);
    const uint8_t unused[] = {3, 0x0b, 1};
    expect_wrong(unused, 3, 20, 1, false);
    const uint8_t bits[] = {0x05, 0x80};
    expect_wrong(bits, 2, 15, 3, true); /* beyond n */
    expect_wrong(bits, 2, 16, 2, true); /* one too many */
    expect_wrong(bits, 2, 16, 4, true); /* one too few */
}
