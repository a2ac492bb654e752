/* SPDX-License-Identifier: BSD-3-Clause */
/* The turns of users and stores at the threads of an archive. Two threads never work on
 * one snapshot. */
#include "agg/daemon/archive_parts.h"
#include "tests/harness/tribtest.h"

/* Tasks in the order of their turns. */
TEST(test_turns)
{
    enum { TASKS = 7 };
    static const struct {
        const char *user;
        uint8_t store;
        uint64_t bytes;
    } given[TASKS] = {{"ana", 1, ARCHIVE_SMALL_BYTES + 1},
                      {"ana", 1, 1},
                      {"ana", 1, 1},
                      {"ana", 2, 1},
                      {"bob", 3, 1},
                      {"ana", 1, ARCHIVE_SMALL_BYTES + 1},
                      {"cat", 4, ARCHIVE_SMALL_BYTES + 1}};
    static const int order[TASKS] = {0, 4, 6, 3, 1, 2, 5};
    uint8_t owners[TASKS][TRIB_SNAPSHOT_OWNER_BYTES] = {{0}};
    struct archive_task tasks[TASKS] = {{0}};
    struct archive a = {.n_threads = 1};

    for (int i = 0; i < TASKS; i++) {
        owners[i][0] = given[i].store;
        tasks[i] = (struct archive_task){.writes = true,
                                         .key = {owners[i], given[i].user, "x"},
                                         .n = given[i].bytes,
                                         .next = i + 1 < TASKS ? &tasks[i + 1] : NULL};
    }
    a.first = &tasks[0];
    a.last = &tasks[TASKS - 1];
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(archive_take_turn(&a) - tasks, order[i]);
    assert_null(archive_take_turn(&a));
    assert_null(a.first);
    assert_null(a.last);
    /* The last of four threads is not available for a second long task of a user. */
    a = (struct archive){.n_threads = 4, .first = &tasks[5], .last = &tasks[5]};
    tasks[0].key.name = "y";
    for (int i = 0; i < 3; i++)
        a.threads[i].task = &tasks[0];
    tasks[5].key.name = "z";
    tasks[5].next = NULL;
    assert_null(archive_take_turn(&a));
    tasks[5].next = &tasks[1];
    a.last = &tasks[1];
    tasks[1].next = NULL;
    assert_ptr_equal(archive_take_turn(&a), &tasks[1]);
    a.threads[2].task = NULL;
    assert_ptr_equal(archive_take_turn(&a), &tasks[5]);
}

/* An older snapshot of a vector is written completely before a newer one. */
TEST(test_one_at_a_time)
{
    const uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES] = {1};
    struct archive_task other = {.writes = true, .key = {owner, "ana", "y"}};
    struct archive_task newer = {
        .writes = true, .key = {owner, "ana", "x"}, .next = &other};
    struct archive_task older = {.writes = true, .key = {owner, "ana", "x"}};
    struct archive a = {.n_threads = 4, .first = &newer, .last = &other};

    a.threads[0].task = &older;
    assert_ptr_equal(archive_take_turn(&a), &other);
    assert_null(archive_take_turn(&a));
    a.stop = true; /* all queued tasks are written in order */
    assert_null(archive_take_turn(&a));
    a.threads[0].task = NULL;
    assert_ptr_equal(archive_take_turn(&a), &newer);
}

/* A short task does not overtake a long task of its snapshot that waits for a second
 * free thread. */
TEST(test_in_order)
{
    const uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES] = {1};
    struct archive_task other = {.writes = true, .key = {owner, "ana", "y"}};
    struct archive_task read = {.key = {owner, "ana", "x"}};
    struct archive_task write = {.writes = true,
                                 .key = {owner, "ana", "x"},
                                 .n = ARCHIVE_SMALL_BYTES + 1,
                                 .next = &read};
    struct archive a = {.n_threads = 2, .first = &write, .last = &read};

    a.threads[0].task = &other;
    assert_null(archive_take_turn(&a));
    a.threads[0].task = NULL;
    assert_ptr_equal(archive_take_turn(&a), &write);
    a.threads[0].task = &write;
    assert_null(archive_take_turn(&a));
    a.threads[0].task = NULL;
    assert_ptr_equal(archive_take_turn(&a), &read);
}
