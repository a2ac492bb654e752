/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of pairs: together they hold all pairs in order; lists fit; none exceeds its
 * share by much.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/run/pair_regions.h"
#include "tests/comm/oracle.h"

enum { CELL = 100, PAIRS = 1000, PIECE = 30000, MOST = 400000 };

static const struct trib_regions_rule rule = {CELL, PAIRS, PIECE};

/* Where the pairs are. */
enum support {
    EVERYWHERE,
    NOWHERE,
    ONE_CELL,
    FIRST_TENTH,
    ALL,
    ENDS,
    EACH_THIRD_CELL, /* is full, the others are not */
    SUPPORTS
};

static bool has(enum support s, size_t i, size_t length)
{
    switch (s) {
    case EVERYWHERE:
        return oracle_mix(i) % 10 == 0;
    case ONE_CELL:
        return i / CELL == 7;
    case FIRST_TENTH:
        return i < length / 10 || oracle_mix(i) % 500 == 0;
    case ALL:
        return true;
    case ENDS:
        return i == 0 || i == length - 1;
    case EACH_THIRD_CELL:
        return i / CELL % 3 == 2 || i % 4 == 0;
    default:
        return false;
    }
}

/* The pairs of `ranks` ranks that give the same indices. */
static uint64_t count(struct trib_pair_regions *r, enum support s, size_t length,
                      uint32_t ranks)
{
    static uint64_t indices[MOST];
    uint64_t total = 0;
    size_t n = 0;

    assert_true(length <= MOST);
    for (size_t i = 0; i < length; i++)
        if (has(s, i, length))
            indices[n++] = i;
    trib_pair_regions_count(r, &rule, indices, n);
    for (size_t c = 0; c < r->n_cells; c++) {
        r->counts[c] *= ranks;
        total += r->counts[c];
    }
    assert_int_equal(total, n * ranks);
    return total;
}

static uint64_t pairs_in(const struct trib_pair_regions *r,
                         const struct trib_region *region)
{
    const size_t end = region->first + region->n;
    uint64_t sum = 0;

    for (size_t c = region->first / CELL; region->n && c * CELL < end; c++)
        sum += r->counts[c];
    return sum;
}

static void check(const struct trib_pair_regions *r, size_t length, size_t round,
                  uint64_t total)
{
    uint64_t found = 0, owners[16] = {0};
    size_t before = 0, used = 0;

    assert_true(r->n > 0 && r->n % round == 0);
    for (size_t i = 0; i < r->n; i++) {
        const struct trib_region *region = &r->at[i];
        const uint64_t pairs = pairs_in(r, region);
        assert_true(region->first >= before && region->n <= PIECE);
        before = region->first + region->n;
        assert_true(before <= length);
        assert_true(region->n <= CELL || pairs <= PAIRS);
        owners[i % round] += pairs;
        found += pairs;
        used += pairs > 0;
    }
    assert_int_equal(found, total);
    assert_true(used <= 4 * total / PAIRS + length / PIECE + 2 * round);
    for (size_t o = 0; o < round; o++)
        assert_true(owners[o] <= total / round + total / (round * 2) + 2 * PAIRS);
}

TEST(test_cut)
{
    static const size_t lengths[] = {1, 99, 100, 101, 12345, MOST};

    for (int k = 0; k < SUPPORTS * 6 * 4; k++) {
        const enum support s = k % SUPPORTS;
        const size_t length = lengths[k / SUPPORTS % 6],
                     round = 1 + (size_t)k / SUPPORTS / 6 * 4;
        struct trib_pair_regions r;

        if (s == ONE_CELL && length < 8 * CELL)
            continue;
        assert_true(trib_pair_regions_open(&r, &rule, length));
        for (uint32_t ranks = 1; ranks <= 9; ranks += 4) { /* starts */
            const uint64_t total = count(&r, s, length, ranks);
            assert_true(trib_pair_regions_cut(&r, &rule, length, round));
            check(&r, length, round, total);
        }
        trib_pair_regions_close(&r);
    }
}
