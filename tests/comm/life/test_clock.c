/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "comm/life/clock.h"

enum { ROUNDS = 16, WAY_NS = 50000 };

/* Play barriers through rank 0: a message takes WAY_NS in each direction; ahead: of the
 * other rank's clock. */
static void play(int64_t ahead, struct trib_clock_round *ours,
                 struct trib_clock_round *first)
{
    uint64_t now = (uint64_t)1 << 40; /* by the clock of rank 0 */

    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t late = i % 2 ? 4 * WAY_NS : 0;
        first[i].came_ns = now + late;
        ours[i].came_ns = now + WAY_NS / 2;
        first[i].left_ns = late ? first[i].came_ns : ours[i].came_ns + WAY_NS;
        ours[i].left_ns = first[i].left_ns + WAY_NS + (i == 5 ? 0 : 7000);
        now = ours[i].left_ns + 1000;
        ours[i].came_ns += (uint64_t)ahead;
        ours[i].left_ns += (uint64_t)ahead;
    }
}

TEST(test_offsets)
{
    static const int64_t offsets[] = {1000000000000, -3000000000, 60000, -60000};
    struct trib_clock_round ours[ROUNDS], first[ROUNDS];

    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        play(offsets[i], ours, first);
        const struct trib_clock c = trib_clock_between(ours, first, ROUNDS);
        assert_true(c.known);
        assert_int_equal(c.within_ns, WAY_NS);
        assert_in_range(c.ahead_ns - offsets[i] + 1000, 0, 2000);
    }
}

/* If the bounds allow it, a single clock is the most likely explanation. */
TEST(test_one_clock)
{
    struct trib_clock_round ours[ROUNDS], first[ROUNDS];

    for (int64_t ahead = -WAY_NS; ahead <= WAY_NS; ahead += WAY_NS / 2) {
        play(ahead, ours, first);
        const struct trib_clock c = trib_clock_between(ours, first, ROUNDS);
        assert_int_equal(c.ahead_ns, 0);
        assert_int_equal(c.within_ns, WAY_NS + (ahead < 0 ? -ahead : ahead));
    }
}
