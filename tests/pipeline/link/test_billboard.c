/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The billboard: one block of shared memory for all ranks; their entries never overlap.
 */
#include "tests/pipeline/link/link_pair.h"

#include "pipeline/link/arena_layout.h"

/* Entries are consecutive in the billboard, each on its own cache lines. */
TEST(test_entries_lie_apart)
{
    static uint8_t memory[65536];

    for (int size = 2; size <= 70; size += 17) {
        struct trib_arena a = {.size = size, .billboard = memory};
        uint8_t *end = memory + trib_billboard_entries(size);
        assert_true((uint8_t *)trib_billboard_sleeper(&a, size - 1) < end);
        for (int rank = 0; rank < size; rank++) {
            for (uint32_t turn = 6; turn < 8; turn++) {
                struct trib_entry *entry = trib_billboard_entry(&a, rank, turn);
                assert_ptr_equal(entry, end);
                assert_ptr_equal(entry, trib_billboard_entry(&a, rank, turn + 2));
                assert_int_equal((size_t)(end - memory) % 64, 0);
                end = trib_billboard_payload(entry, TRIB_BILLBOARD_PAYLOAD) +
                      TRIB_BILLBOARD_PAYLOAD;
                assert_true(trib_billboard_payload(entry, TRIB_ENTRY_PAYLOAD) +
                                TRIB_ENTRY_PAYLOAD <=
                            (uint8_t *)&entry->place);
            }
        }
        assert_in_range(end - memory, 1, trib_billboard_bytes(size));
        assert_int_equal(trib_billboard_bytes(size) % 4096, 0);
    }
}

/* Connect two ends that both announce that they can use the billboard. */
static void connect_both(struct pair *p, const char *transport)
{
    assert_ok(trib_config_load(&p->cfg, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i];
        open_end(p, i, transport, 4, false);
        trib_arena_destroy(&e->arena);
        e->arena.on_billboard = true;
        assert_ok(trib_arena_create(&e->arena));
        assert_ok(trib_arena_export(&e->arena, &e->blob));
        assert_true(e->blob.on_billboard);
    }
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i], *o = &p->end[1 - i];
        assert_int_equal(e->arena.billboard != NULL, i == 0);
        assert_ok(trib_link_connect(&e->link, &e->arena, 1 - i, &o->address, &o->blob));
    }
}

TEST(test_one_memory)
{
    struct pair *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    connect_both(p, "shm");
    const struct trib_arena *a = &p->end[0].arena, *b = &p->end[1].arena;
    assert_int_equal(trib_arena_bytes(a), trib_billboard_bytes(2));
    assert_int_equal(trib_arena_bytes(b), 0);
    assert_ptr_equal(a->billboard, a->base + blocks_bytes(a));
    for (uint32_t turn = 1; turn < 4; turn++) {
        for (int i = 0; i < 2; i++) {
            const struct trib_arena *mine = i ? b : a, *other = i ? a : b;
            struct trib_entry *in = trib_billboard_entry(mine, i, turn);
            const struct trib_entry *out = trib_billboard_entry(other, i, turn);
            assert_false(trib_billboard_is_filled(out, turn));
            memset(trib_billboard_payload(in, TRIB_BILLBOARD_PAYLOAD), (int)turn,
                   TRIB_BILLBOARD_PAYLOAD);
            trib_billboard_publish(in, turn, turn + 7);
            assert_true(trib_billboard_is_filled(out, turn));
            assert_false(trib_billboard_is_filled(out, turn + 2));
            assert_int_equal(trib_billboard_core(out), turn + 7);
            assert_memory_equal((const uint8_t *)(out + 1), in + 1,
                                TRIB_BILLBOARD_PAYLOAD);
            trib_billboard_set_asleep(mine, turn == 2);
            assert_int_equal(atomic_load(trib_billboard_sleeper(other, i)), turn == 2);
        }
    }
    close_pair(p);
}

/* A rank that cannot map the arena of rank 0 has no billboard. After links are closed
 * only rank 0 has one. */
TEST(test_who_maps_it)
{
    for (int k = 0; k < 2; k++) {
        struct pair *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        connect_both(p, transports[k]);
        assert_int_equal(p->end[1].arena.billboard != NULL, k == 0);
        trib_link_close(&p->end[1].link, &p->end[1].arena);
        trib_link_close(&p->end[0].link, &p->end[0].arena);
        assert_null(p->end[1].arena.billboard);
        assert_non_null(p->end[0].arena.billboard);
        close_pair(p);
    }
}
