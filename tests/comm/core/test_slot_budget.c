/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "comm/core/slot_budget.h"
#include "pipeline/link/link.h"

static const struct trib_slot_budget asked = {8, 65536};

static bool same(struct trib_slot_budget a, struct trib_slot_budget b)
{
    return a.window == b.window && a.chunk == b.chunk;
}

TEST(test_enough)
{
    assert_true(same(trib_slot_budget_fit(asked, SIZE_MAX, 64), asked));
    assert_true(same(trib_slot_budget_fit(asked, (size_t)8 << 20, 2), asked));
    for (int size = 2; size <= 64; size++)
        assert_true(same(
            trib_slot_budget_fit(asked, 2 * trib_arena_pinned(8, 65536, size), size),
            asked));
}

/* The rest is never smaller than the share taken, as long as there is more than one
 * slot. */
TEST(test_little)
{
    for (size_t room = 65536; room < (size_t)64 << 20; room += room / 3) {
        for (int size = 2; size <= 64; size++) {
            struct trib_slot_budget w = trib_slot_budget_fit(asked, room, size);
            size_t taken = trib_arena_pinned(w.window, w.chunk, size);
            assert_in_range(w.window, 1, 8);
            assert_in_range(w.chunk, 4096, 65536);
            assert_int_equal(w.chunk % 64, 0);
            if (!same(w, asked))
                assert_true(taken <= room);
            if (!same(w, asked) && w.window > 1)
                assert_true(taken <= room / 2);
        }
    }
}

/* First the number of slots, then their size, then the last slot but one. */
TEST(test_order)
{
    struct trib_slot_budget w =
        trib_slot_budget_fit(asked, 2 * trib_arena_pinned(8, 65536, 4) - 2, 4);
    assert_int_equal(w.window, 4);
    assert_int_equal(w.chunk, 65536);
    w = trib_slot_budget_fit(asked, 2 * trib_arena_pinned(2, 65536, 4) - 2, 4);
    assert_int_equal(w.window, 2);
    assert_int_equal(w.chunk, 32768);
    w = trib_slot_budget_fit(asked, 2 * trib_arena_pinned(2, 4096, 4) - 2, 4);
    assert_int_equal(w.window, 1);
    assert_int_equal(w.chunk, 4096);
    w = trib_slot_budget_fit((struct trib_slot_budget){4, 5000}, 65536, 2);
    assert_in_range(w.chunk, 4096, 5000);
}

/* Even the smallest does not fit: the registration will report the error. */
TEST(test_none)
{
    assert_true(same(trib_slot_budget_fit(asked, 0, 2), asked));
    assert_true(
        same(trib_slot_budget_fit(asked, trib_arena_pinned(1, 4096, 4) - 1, 4), asked));
}

/* The window grows with the round trip, up to the encoded chunks that the link carries
 * in that time; chunks do not grow. Memory limits the window if a rank may have many
 * edges. */
TEST(test_far)
{
    static const uint32_t windows[][2] = {{0, 8},     {499, 8},     {500, 8},
                                          {2000, 32}, {10000, 256}, {UINT32_MAX, 256}};

    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        const struct trib_slot_budget w = trib_slot_budget_far(asked, windows[i][0], 2);
        assert_int_equal(w.window, windows[i][1]);
        assert_int_equal(w.chunk, asked.chunk);
    }
    for (int size = 2; size <= 4096; size *= 2) {
        const struct trib_slot_budget w = trib_slot_budget_far(asked, 40000, size);
        assert_in_range(w.window, asked.window, 256);
        if (!same(w, asked))
            assert_true(trib_link_bytes(w.window, w.chunk, false) <=
                        TRIB_FAR_SLOTS_MAX / (size_t)(size - 1));
    }
    assert_true(same(trib_slot_budget_far(asked, 40000, 4096), asked));
}

/* With links to all others, up to 1023 of them, a rank registers at most the limit. Up
 * to 62 ranks keep their slots. */
TEST(test_many)
{
    static const struct trib_slot_budget usual = {8, 262144};
    static const struct {
        int size;
        uint32_t window;
        size_t chunk;
    } cases[] = {{1, 8, 262144},   {2, 8, 262144},   {62, 8, 262144}, {128, 8, 122880},
                 {512, 2, 122880}, {1024, 2, 61440}, {4096, 2, 61440}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct trib_slot_budget w = trib_slot_budget_many(usual, cases[i].size);
        if (w.window != cases[i].window || w.chunk != cases[i].chunk)
            fail_msg("%d ranks: %u slots of %zu", cases[i].size, w.window, w.chunk);
    }
    for (int size = 2; size <= 1024; size++) {
        const struct trib_slot_budget w = trib_slot_budget_many(usual, size);
        assert_true((size_t)(size - 1) * trib_link_bytes(w.window, w.chunk, false) <=
                    TRIB_MANY_SLOTS_MAX);
        assert_true(same(trib_slot_budget_many(w, size), w));
    }
    assert_true(same(trib_slot_budget_many((struct trib_slot_budget){1, 4096}, 65536),
                     (struct trib_slot_budget){1, 4096}));
}
