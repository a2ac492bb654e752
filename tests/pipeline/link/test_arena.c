/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of an arena: it has the computed size and consists of adjacent blocks. */
#include "tests/pipeline/link/link_pair.h"

#include "pipeline/link/arena_layout.h"

TEST(test_bytes_of_blocks)
{
    struct pair *p;

    for (int t = 0; t < 2; t++) {
        p = open_pair(transports[t], 4);
        size_t block = 64 + 256 + 256 + TRIB_LANES * 4 * (64 + SLOT);
        size_t pages = (block + 4095) / 4096 * 4096;
        size_t few =
            64 + 256 + 256 +
            TRIB_LANES * (4 * (64 + p->end[0].link.small) + TRIB_BIG_SLOTS * SLOT);
        size_t staging = pages + 2 * (3 * 256 + (TRIB_LANES * 4 * 4 + 63) / 64 * 64);
        assert_int_equal(trib_arena_bytes(&p->end[0].arena),
                         t ? pages + (staging + 4095) / 4096 * 4096
                           : (few + 4095) / 4096 * 4096);
        close_pair(p);
    }
}

/* Blocks of one arena overlap neither each other nor the memory after them. */
TEST(test_blocks_lie_apart)
{
    for (int size = 2; size <= 9; size++) {
        for (int self = 0; self < size; self++) {
            struct trib_arena a = {
                .self = self, .size = size, .window = 3, .slot_bytes = 1000};
            size_t end = 0, heads = 0;
            size_up(&a);
            assert_int_equal(a.slots, 4); /* a power of two */
            for (int peer = 0; peer < size; peer++) {
                if (peer == self)
                    continue;
                assert_int_equal(own_head_off(&a, peer), end);
                end += a.block_bytes;
                a.per_link = true;
                assert_int_equal(own_head_off(&a, peer), heads);
                heads += HEAD_BYTES;
                a.per_link = false;
            }
            assert_int_equal(end, blocks_bytes(&a));
            assert_int_equal(heads, abort_notice_off(size));
            assert_true(trib_arena_heads(size) >=
                        heads + sizeof(struct trib_oob_notice));
            assert_int_equal(trib_arena_pinned(3, 1000, size),
                             end + round_up(staging_bytes(&a), 4096));
        }
    }
}

/* A lane has room for its entries, small payloads and big slots, with load/store reach
 * never more than without. */
TEST(test_lanes_fit)
{
    for (uint32_t window = 1; window <= 64; window *= 2) {
        for (size_t slot = 8; slot <= 1 << 20; slot = slot * 3 + 5) {
            struct trib_arena a = {.size = 2, .window = window, .slot_bytes = slot};
            size_up(&a);
            size_t lane = lane_off(&a, 1, true) - lane_off(&a, 0, true);
            size_t small = small_bytes(&a, true);
            size_t big = small < a.slot_bytes ? TRIB_BIG_SLOTS * a.slot_bytes : 0;
            assert_int_equal(lane, a.slots * (sizeof(struct trib_entry) + small) + big);
            assert_true(both_lanes_bytes(&a, true) <= both_lanes_bytes(&a, false));
            assert_int_equal(small_bytes(&a, false), a.slot_bytes);
        }
    }
}

static trib_status_t refuse(struct trib_transport *t, size_t bytes, void **base,
                            struct trib_region **out)
{
    (void)t, (void)bytes, (void)base, (void)out;
    return TRIB_ERR_NO_MEMORY;
}

/* An arena whose allocation fails frees everything, and destroying it is safe. */
TEST(test_no_memory)
{
    const struct trib_transport_ops ops = {.alloc = refuse};
    struct trib_transport transport = {.ops = &ops};

    for (int per_link = 0; per_link < 2; per_link++) {
        struct trib_arena a = {.transport = &transport,
                               .size = 2,
                               .window = 4,
                               .slot_bytes = 64,
                               .per_link = per_link};
        assert_status(trib_arena_create(&a), TRIB_ERR_NO_MEMORY);
        assert_null(a.base);
        assert_null(a.link_regions);
        trib_arena_destroy(&a);
    }
}
