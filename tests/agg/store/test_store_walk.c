/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that push to one vector, read it and copy it at once: each sees whole pushes
 * only, those that its version counts.
 */
#include "agg/store/store_walk.h"

#include <stdatomic.h>

#include "agg/store/store_snapshot.h"
#include "base/error.h"
#include "tests/harness/tribtest.h"

enum { RANKS = 3, COUNT = 3 * TRIB_STORE_STRIPE + 17, PUSHES = 40, PAIRS = 1001 };

struct rig {
    struct trib_store_table *table;
    uint32_t vector;
    _Atomic uint32_t pushing;
};

struct pusher {
    struct rig *rig;
    uint32_t rank;
};

/* Push ones, and every second time request the vector after the push. */
static void *push(void *arg)
{
    const struct pusher *p = arg;
    float *x = malloc(COUNT * sizeof(*x));

    for (uint64_t n = 1; n <= PUSHES; n++) {
        struct trib_store_table_push one = {
            .rank = p->rank, .number = n, .data = x, .gives = n % 2};
        for (int i = 0; i < COUNT; i++)
            x[i] = 1;
        assert_ok(
            trib_store_table_push(p->rig->table, p->rig->vector, &one, NULL, NULL));
        for (int i = 0; one.gives && i < COUNT; i++)
            assert_true(x[i] == (float)one.version);
    }
    free(x);
    (void)atomic_fetch_sub(&p->rig->pushing, 1);
    return NULL;
}

static void check(const float *x, size_t n, uint64_t version)
{
    for (size_t i = 0; i < n; i++)
        assert_true(x[i] == (float)version);
}

/* Copy the content of a snapshot. */
static void copy(const struct rig *rig, uint8_t *room)
{
    struct trib_snapshot_about about = {.user = "u", .job = "j", .name = "v"};
    struct trib_store_image image;
    struct trib_store_walk walk;
    struct trib_snapshot read;
    uint64_t sum = 0;

    trib_store_walk_begin(rig->table, rig->vector, NULL, &walk);
    trib_store_image(rig->table, rig->vector, &image);
    const uint64_t bytes = trib_snapshot_bytes(&image);
    trib_snapshot_copy(&image, &about, &walk, room);
    trib_store_walk_end(&walk);
    trib_snapshot_seal(room, bytes);
    assert_ok(trib_snapshot_read(room, bytes, NULL, &read));
    for (int r = 0; r < RANKS; r++)
        sum += ((const uint64_t *)read.image.clock)[r];
    assert_int_equal(sum, read.about.version);
    check(read.image.value, COUNT, read.about.version);
}

static void *check_at_once(void *arg)
{
    struct rig *rig = arg;
    uint8_t *room = malloc(2 * COUNT * sizeof(float));
    float *x = malloc(COUNT * sizeof(*x));
    uint32_t indices[PAIRS];
    uint64_t last = 0;

    const struct trib_store_range range = {rig->vector, 5, COUNT - 9, NULL};
    const struct trib_store_range pairs = {rig->vector, 0, PAIRS,
                                           (const uint8_t *)indices};
    for (uint32_t i = 0; i < PAIRS; i++)
        indices[i] = i * 7919 % COUNT;
    while (atomic_load(&rig->pushing)) {
        const uint64_t version = trib_store_read(rig->table, &range, NULL, x);
        check(x, COUNT - 9, version);
        const uint64_t picked = trib_store_read(rig->table, &pairs, NULL, x);
        check(x, PAIRS, picked);
        copy(rig, room);
        assert_true(version >= last && picked >= version);
        last = picked;
    }
    free(room);
    free(x);
    return NULL;
}

TEST(test_at_once)
{
    const struct trib_store_spec spec = {"v", TRIB_F32, COUNT, "sum"};
    struct rig rig = {.pushing = RANKS};
    struct pusher pushers[RANKS];
    struct trib_store_found found;
    pthread_t threads[RANKS + 2];

    assert_ok(trib_store_table_create(RANKS, NULL, &rig.table));
    assert_ok(trib_store_table_open(rig.table, &spec, NULL, &found));
    rig.vector = found.vector;
    for (uint32_t r = 0; r < RANKS; r++) {
        pushers[r] = (struct pusher){&rig, r};
        assert_int_equal(pthread_create(&threads[r], NULL, push, &pushers[r]), 0);
    }
    for (int i = RANKS; i < RANKS + 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_at_once, &rig), 0);
    for (int i = 0; i < RANKS + 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(trib_store_version(rig.table, 0), RANKS * PUSHES);
    trib_store_table_destroy(rig.table);
}
