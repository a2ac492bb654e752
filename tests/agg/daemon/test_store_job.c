/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store in tribd. A store whose first rank joins without memory ends unless the rank
 * returns. A store that has ended takes no rank. A rank's copy that replaces a vector
 * ends the pulls that wait for its version.
 *
 * A restore whose rank was lost does not undo the pushes that follow. A push that
 * overtakes a restore is saved by a shutdown. A copy that undoes pushes replaces the
 * snapshot that has them. Ranks take turns at snapshots.
 */
#include "tests/agg/daemon/store_job_rig.h"

static void join_without_memory(const struct rig *rig)
{
    struct rank r;

    atomic_store(&short_of_memory, true);
    join(rig, 0, &r);
    assert_status(trib_session_take_wait(r.session, trib_deadline_ms(LONG_MS), &r.m),
                  TRIB_ERR_ABORTED);
    assert_non_null(strstr(trib_error_text(&r.err), "out of memory"));
    trib_session_free(r.session);
    atomic_store(&short_of_memory, false);
}

TEST(test_first_rank_without_memory)
{
    struct rig rig = {.folder = ""};

    atomic_store(&keep_ms, SOON_MS);
    rig_open(&rig, 2);
    join_without_memory(&rig);
    ends(&rig, "its ranks are lost");
    rig_close(&rig);
}

TEST(test_it_comes_back)
{
    struct rank r;
    struct rig rig = {.folder = ""};

    atomic_store(&keep_ms, LONG_MS);
    rig_open(&rig, 2);
    join_without_memory(&rig);
    join(&rig, 0, &r);
    hear(&r, TRIB_CONTROL_STORE_JOINED);
    leave(&r);
    ends(&rig, "its ranks have left");
    rig_close(&rig);
}

/* It may wait for the disk after its end: such a rank would get no answer. */
TEST(test_return_to_an_ended_store)
{
    struct rank r;
    struct rig rig = {.folder = ""};

    rig_open(&rig, 2);
    join(&rig, 0, &r);
    hear(&r, TRIB_CONTROL_STORE_JOINED);
    leave(&r);
    ends(&rig, "its ranks have left");
    join_for(&rig, 1, &r, TRIB_ERR_PEER_LOST);
    trib_session_free(r.session);
    assert_true(store_job_is_deserted(rig.job));
    rig_close(&rig);
}

TEST(test_a_copy_ends_pulls)
{
    static const int32_t copy = 7;
    struct rank waits, restores;
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {"x", TRIB_I32, 1, "sum"}};
    struct rig rig = {.folder = ""};

    rig_open(&rig, 2);
    join(&rig, 0, &restores);
    join(&rig, 1, &waits);
    hear(&restores, TRIB_CONTROL_STORE_JOINED);
    hear(&waits, TRIB_CONTROL_STORE_JOINED);
    say(&restores, m);
    hear(&restores, TRIB_CONTROL_STORE_VECTOR);
    say(&waits,
        (struct trib_control){.kind = TRIB_CONTROL_STORE_PULL,
                              .store_pull = {.at_least = 5,
                                             .bound = TRIB_CONTROL_UNBOUNDED,
                                             .wait_ms = TRIB_CONTROL_WAIT_MAX}});
    while (!atomic_load(&rig.job->threads[0].waits))
        usleep(1000);
    say(&restores,
        (struct trib_control){.kind = TRIB_CONTROL_STORE_PUSH,
                              .store_push = {.purpose = TRIB_CONTROL_PUSH_RESTORE,
                                             .number = 6,
                                             .data = {(const uint8_t *)&copy, 4}}});
    hear(&restores, TRIB_CONTROL_STORE_DONE);
    hear(&waits, TRIB_CONTROL_STORE_DONE);
    assert_int_equal(waits.m.store_state.version, 5);
    leave(&restores);
    leave(&waits);
    ends(&rig, "its ranks have left");
    rig_close(&rig);
}

/* The disk hangs until the rank has given up, and has continued from its own copy. */
TEST(test_restore_without_rank)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&disk_hangs, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    while (!is_busy(&rig))
        usleep(1000);
    trib_session_free(r.session);
    join_and_open(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&disk_hangs, false);
    while (is_busy(&rig))
        usleep(1000);
    say_push(&r, TRIB_CONTROL_PUSH, 3);
    assert_int_equal(r.m.store_state.version, 3);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    hear(&r, TRIB_CONTROL_STORE_DONE);
    assert_int_equal(r.m.store_state.version, 1);
    shut_down(&rig);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_push_overtakes_restore)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&overtakes, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    hear(&r, TRIB_CONTROL_STORE_DONE);
    atomic_store(&overtakes, false);
    shut_down(&rig);
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_copy_undoes_pushes)
{
    struct rig rig = {.every_pushes = 3};
    struct rank r;

    begin_saved(&rig, &r);
    for (uint64_t n = 2; n <= 4; n++)
        say_push(&r, TRIB_CONTROL_PUSH, n);
    await_version(&rig, 4);
    say_push(&r, TRIB_CONTROL_PUSH_RESTORE, 2 + 1); /* of version 2 */
    await_version(&rig, 2);
    shut_down(&rig);
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Each rank has its own vector. The others order again at once. */
TEST(test_turns)
{
    struct trib_control open = {.kind = TRIB_CONTROL_STORE_OPEN,
                                .store_open = {"x", TRIB_I32, 1, "sum"}};
    struct trib_control order = {.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                 .store_snapshot.order = TRIB_CONTROL_SNAPSHOT_TAKE};
    struct rig rig = {.folder = ""};
    struct rank ranks[3];
    trib_status_t st = TRIB_INPROGRESS;

    make_folder(&rig);
    rig_open(&rig, 3);
    for (uint32_t r = 0; r < 3; r++) {
        join(&rig, r, &ranks[r]);
        hear(&ranks[r], TRIB_CONTROL_STORE_JOINED);
        open.store_open.name[0] = (char)('x' + r);
        say(&ranks[r], open);
        hear(&ranks[r], TRIB_CONTROL_STORE_VECTOR);
        order.store_snapshot.vector = r;
        say(&ranks[r], order);
    }
    for (int n = 0; n < TURNS_MOST && st == TRIB_INPROGRESS; n++) {
        order.store_snapshot.vector = (uint32_t)n % 2;
        hear(&ranks[n % 2], TRIB_CONTROL_STORE_DONE);
        say(&ranks[n % 2], order);
        st = trib_session_step(ranks[2].session, &ranks[2].m);
    }
    assert_status(st, TRIB_OK);
    for (int r = 0; r < 3; r++)
        trib_session_free(ranks[r].session);
    end_saved(&rig);
}
