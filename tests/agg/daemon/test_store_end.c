/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a store in tribd, with snapshots. A shutdown writes a snapshot again that
 * an operator has removed, and tries failed ones again; a store that has ended does not
 * bring it back. The ranks of a store that is ended do not wait for the disk, nor do
 * its memory and its files. A store that was kicked, or whose key another store uses,
 * discards its snapshots.
 */
#include "tests/agg/daemon/store_job_rig.h"

static void begin_snapshot(struct rig *rig, struct rank *r)
{
    say_order(r, TRIB_CONTROL_SNAPSHOT_TAKE);
    while (!is_busy(rig))
        usleep(1000);
}

TEST(test_forgotten)
{
    struct rig rig = {.folder = ""};
    struct rank r;
    uint64_t removal;
    char text[100];

    begin_saved(&rig, &r);
    assert_true(archive_forget(rig.archive, "job", text, sizeof(text), &removal));
    assert_int_equal(archive_version(rig.archive, &key), 0);
    shut_down(&rig);
    assert_int_equal(archive_version(rig.archive, &key), 2);
    trib_session_free(r.session);
    end_saved(&rig);
}

static uint64_t failures(const struct rig *rig)
{
    struct trib_snapshots_view view;

    archive_view(rig->archive, &view);
    free(view.rows);
    return view.failures;
}

/* Memory for the copy is missing at first. */
TEST(test_last_snapshot_again)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&rig.quota.most, trib_quota_held_mt(&rig.quota));
    store_job_drain(rig.job);
    store_job_end(rig.job, "a shutdown");
    while (!failures(&rig) && !store_job_reap(rig.job))
        usleep(1000);
    atomic_store(&rig.quota.most, 0);
    ends(&rig, "a shutdown");
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Memory for the list of its vectors is missing: it does not end in silence. */
TEST(test_no_memory_for_last_snapshots)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    make_folder(&rig);
    rig_open(&rig, 1);
    join_and_open(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 1);
    atomic_store(&hurries, true);
    atomic_store(&short_of_memory, true);
    shut_down(&rig);
    atomic_store(&short_of_memory, false);
    atomic_store(&hurries, false);
    trib_session_free(r.session);
    assert_false(rig_close(&rig));
    assert_int_equal(rmdir(rig.folder), 0);
}

/* The copy of another store's snapshot holds the memory for longer than all tries. It
 * is being made or written. */
static void end_after_others(bool copies)
{
    static const uint8_t of_other[TRIB_SNAPSHOT_OWNER_BYTES] = {1};
    const struct archive_key other_key = {of_other, "ana", "x"};
    const struct trib_snapshot_about about = {
        .user = "ana", .job = "other", .owner = {1}};
    struct archive_task other = {.writes = true, .key = other_key, .wake_fd = -1};
    struct trib_store_image image;
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    trib_store_image(rig.job->table, 0, &image);
    other.n = trib_snapshot_bytes(&image);
    other.bytes = malloc(other.n);
    copy_slowly(&image, &about, NULL, other.bytes);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&rig.quota.most, trib_quota_held_mt(&rig.quota));
    atomic_store(&hurries, true);
    atomic_store(&hung, 0);
    atomic_store(&writes_hang, true);
    archive_prepare(rig.archive, &other);
    if (!copies)
        archive_give(rig.archive, &other);
    while (!copies && !atomic_load(&hung))
        usleep(1000);
    store_job_drain(rig.job);
    store_job_end(rig.job, "a shutdown");
    while (failures(&rig) < 2 * LAST_TRIES && !store_job_reap(rig.job))
        usleep(1000);
    const bool over = store_job_reap(rig.job);
    atomic_store(&rig.quota.most, 0);
    atomic_store(&writes_hang, false);
    ends(&rig, "a shutdown");
    atomic_store(&hurries, false);
    assert_false(over);
    assert_int_equal(archive_version(rig.archive, &key), 3);
    if (copies)
        archive_give(rig.archive, &other);
    archive_wait(rig.archive, &other);
    assert_status(other.err.status, TRIB_OK);
    free(other.bytes);
    archive_drop(rig.archive, &other_key);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_last_snapshot_after_others)
{
    end_after_others(false);
    end_after_others(true);
}

static bool becomes_apart(const struct rig *rig)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!archive_is_apart_mt(rig->archive) && !trib_deadline_passed(until))
        usleep(1000);
    return archive_is_apart_mt(rig->archive);
}

/* A pause between two tries and a copy are not time in which the disk hangs; a write
 * is, also while another store makes a copy. */
TEST(test_apart_from_the_disk)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    const uint64_t held = trib_quota_held_mt(&rig.quota);
    atomic_store(&rig.quota.most, held);
    atomic_store(&copies_hang, true);
    store_job_drain(rig.job);
    store_job_end(rig.job, "a shutdown");
    const bool pauses = becomes_apart(&rig);
    atomic_store(&rig.quota.most, 0);
    while (trib_quota_held_mt(&rig.quota) == held && !store_job_reap(rig.job))
        usleep(1000);
    const bool copies = becomes_apart(&rig);
    atomic_store(&hung, 0);
    atomic_store(&writes_hang, true);
    atomic_store(&copies_hang, false);
    while (!atomic_load(&hung))
        usleep(1000);
    archive_apart_mt(rig.archive, 1);
    const bool writes = !archive_is_apart_mt(rig.archive);
    archive_apart_mt(rig.archive, -1);
    atomic_store(&writes_hang, false);
    ends(&rig, "a shutdown");
    assert_true(pauses && copies && writes);
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_end_while_the_disk_hangs)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&disk_hangs, true);
    begin_snapshot(&rig, &r);
    store_job_end(rig.job, "kicked");
    const trib_status_t st = trib_session_take_wait(r.session, until, &r.m);
    atomic_store(&disk_hangs, false);
    assert_status(st, TRIB_ERR_ABORTED);
    assert_non_null(strstr(trib_error_text(&r.err), "kicked"));
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Its vectors are freed before it waits for the disk, and not by the server thread.
 * From then on it only holds the file of its thread. */
TEST(test_memory_while_the_disk_hangs)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    const uint64_t vectors = trib_quota_held_mt(&rig.quota);
    atomic_store(&disk_hangs, true);
    begin_snapshot(&rig, &r);
    const uint64_t copy = rig.job->keeper->task.n;
    const uint32_t files = store_job_files(rig.job);
    store_job_end(rig.job, "kicked");
    while (trib_quota_held_mt(&rig.quota) > copy && !trib_deadline_passed(until))
        usleep(1000);
    const uint64_t held = trib_quota_held_mt(&rig.quota);
    while (!store_job_is_empty(rig.job) && !trib_deadline_passed(until))
        usleep(1000);
    const bool empty = store_job_is_empty(rig.job);
    const uint32_t open_files = store_job_files(rig.job);
    const bool over = store_job_reap(rig.job);
    atomic_store(&disk_hangs, false);
    assert_true(vectors > 0);
    assert_int_equal(files, 2);
    assert_int_equal(open_files, 1);
    assert_true(empty);
    assert_int_equal(held, copy);
    assert_false(over);
    ends(&rig, "kicked");
    assert_null(rig.job->table);
    assert_int_equal(trib_quota_held_mt(&rig.quota), 0);
    assert_int_equal(archive_version(rig.archive, &key), 2);
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Another store uses the key: this one discards its last snapshot, and one that is
 * being copied. So does a store that was kicked, although the service drains then. */
TEST(test_replaced)
{
    for (int how = 0; how < 4; how++) {
        const bool copies = how & 1, kicked = how & 2;
        struct rig rig = {.folder = ""};
        struct rank r;
        begin_saved(&rig, &r);
        say_push(&r, TRIB_CONTROL_PUSH, 2);
        atomic_store(&copies_hang, copies);
        if (copies)
            begin_snapshot(&rig, &r);
        if (kicked)
            store_job_end(rig.job, "kicked");
        store_job_drain(rig.job);
        if (!kicked)
            store_job_replace(rig.job);
        atomic_store(&copies_hang, false);
        ends(&rig, kicked ? "kicked" : "another run uses its key now");
        assert_int_equal(archive_version(rig.archive, &key), 2);
        trib_session_free(r.session);
        end_saved(&rig);
    }
}

/* A store that was kicked, or has lost its ranks, still writes a snapshot when an
 * operator removes its snapshots: of the same vector, or of its only one. */
TEST(test_forgotten_after_the_end)
{
    for (int how = 0; how < 4; how++) {
        const bool lost = how & 1, first = how & 2;
        struct rig rig = {.folder = ""};
        struct rank r;
        uint64_t removal, none;
        char text[100], again[100];
        begin_saved(&rig, &r);
        say_push(&r, TRIB_CONTROL_PUSH, 2);
        if (first)
            archive_drop(rig.archive, &key);
        atomic_store(&hung, 0);
        atomic_store(&writes_hang, true);
        atomic_store(&keep_ms, SOON_MS);
        say_order(&r, TRIB_CONTROL_SNAPSHOT_TAKE);
        while (!atomic_load(&hung))
            usleep(1000);
        assert_false(archive_forget(rig.archive, "jo", text, sizeof(text), &removal));
        if (lost)
            trib_session_free(r.session);
        else
            store_job_end(rig.job, "kicked");
        while (!atomic_load(&rig.job->end.ended))
            usleep(1000);
        assert_false(archive_forget(rig.archive, "jo", text, sizeof(text), &removal));
        const bool forgot =
            archive_forget(rig.archive, "job", text, sizeof(text), &removal);
        const bool twice =
            archive_forget(rig.archive, "job", again, sizeof(again), &none);
        usleep(20000);
        const bool early = archive_is_deleted(rig.archive, removal);
        atomic_store(&writes_hang, false);
        ends(&rig, lost ? "its ranks are lost" : "kicked");
        assert_true(forgot);
        assert_false(twice); /* as for a snapshot that is not deleted yet */
        assert_string_equal(text, "1 snapshot removed");
        assert_false(early);
        await_version(&rig, UINT64_MAX);
        while (!archive_is_deleted(rig.archive, removal))
            usleep(1000);
        if (!lost)
            trib_session_free(r.session);
        end_saved(&rig);
    }
}

/* So does one that still copies the vector: the archive does not have the copy yet. */
TEST(test_forgotten_during_the_copy)
{
    for (int first = 0; first < 2; first++) {
        struct rig rig = {.folder = ""};
        struct rank r;
        uint64_t removal;
        char text[100];
        begin_saved(&rig, &r);
        say_push(&r, TRIB_CONTROL_PUSH, 2);
        if (first)
            archive_drop(rig.archive, &key);
        atomic_store(&copies_hang, true);
        atomic_store(&keep_ms, SOON_MS);
        begin_snapshot(&rig, &r);
        trib_session_free(r.session);
        while (!atomic_load(&rig.job->end.ended))
            usleep(1000);
        const bool forgot =
            archive_forget(rig.archive, "job", text, sizeof(text), &removal);
        const bool early = forgot && archive_is_deleted(rig.archive, removal);
        atomic_store(&copies_hang, false);
        ends(&rig, "its ranks are lost");
        assert_true(forgot);
        assert_string_equal(text, "1 snapshot removed");
        assert_false(early);
        while (!archive_is_deleted(rig.archive, removal))
            usleep(1000);
        assert_int_equal(archive_version(rig.archive, &key), 0);
        end_saved(&rig);
    }
}

/* A store that continues writes its next snapshot, also one that it writes already. */
TEST(test_forgotten_before_the_end)
{
    struct rig rig = {.folder = ""};
    struct rank r;
    uint64_t removal;
    char text[100];

    begin_saved(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&hung, 0);
    atomic_store(&writes_hang, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_TAKE);
    while (!atomic_load(&hung))
        usleep(1000);
    assert_true(archive_forget(rig.archive, "job", text, sizeof(text), &removal));
    atomic_store(&writes_hang, false);
    hear(&r, TRIB_CONTROL_STORE_DONE);
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

/* A store has lost its ranks just before a shutdown. It does not write the snapshots
 * again that an operator has removed in between. */
TEST(test_forgotten_before_a_shutdown)
{
    struct rig rig = {.folder = ""};
    struct rank r;
    uint64_t removal;
    char text[100];

    begin_saved(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&ends_hang, true);
    atomic_store(&keep_ms, SOON_MS);
    trib_session_free(r.session);
    while (!atomic_load(&rig.job->end.ended))
        usleep(1000);
    const bool forgot =
        archive_forget(rig.archive, "job", text, sizeof(text), &removal);
    store_job_drain(rig.job);
    atomic_store(&ends_hang, false);
    ends(&rig, "its ranks are lost");
    assert_true(forgot);
    assert_int_equal(archive_version(rig.archive, &key), 0);
    end_saved(&rig);
}
