/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of snapshots: tribd is killed before and after each of its system calls,
 * and during a write; the disk refuses each call; damaged and foreign files; quotas.
 */
#include <malloc.h>

#include "tests/agg/daemon/archive_rig.h"

/* Killed at any call, tribd leaves the previous or the new snapshot complete. */
TEST(test_killed)
{
    for (enum fault how = KILLED_BEFORE; how <= KILLED_BEHIND; how++) {
        bool ended = false, was_new = false;
        int call = 0;
        for (; !ended; call++) {
            struct rig rig;
            int status = 0;
            rig_open(&rig);
            assert_status(check_again(&rig, 0, 0), TRIB_OK);
            set(&rig, 1);
            save(&rig, "ana");
            assert_status(rig.task.err.status, TRIB_OK);
            archive_close(rig.archive);
            rig.archive = NULL;
            fflush(NULL);
            const pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                fault = how;
                calls_left = call;
                if (check_again(&rig, 0, 0) != TRIB_OK)
                    _exit(9);
                set(&rig, 2);
                save(&rig, "ana");
                _exit(rig.task.err.status != TRIB_OK);
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            ended = WIFEXITED(status);
            assert_true(!ended || WEXITSTATUS(status) == 0);
            assert_status(check_again(&rig, 0, 0), TRIB_OK);
            assert_int_equal(files(&rig), 1);
            const uint64_t version = load(&rig, "ana");
            assert_true(version == 2 || (version == 1 && !was_new && !ended));
            was_new = version == 2;
            rig_close(&rig);
            assert_true(call < CALLS_MOST + 8);
        }
        assert_true(was_new && call > 8); /* 5 writes, fsync, rename, fsync */
    }
}

/* A disk that refuses any call leaves the previous snapshot or, if only the folder
 * could not be synchronised, the new one; the message says which. The next snapshot
 * succeeds, and the vector has one file. */
static void refuse_each(bool has_before)
{
    bool well = false;
    int refused = 0, placed = 0;

    for (int call = 0; !well; call++) {
        struct rig rig;
        rig_open(&rig);
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        set(&rig, 1);
        if (has_before)
            save(&rig, "ana");
        set(&rig, 2);
        fault = REFUSED;
        calls_left = call;
        save(&rig, "ana");
        fault = NONE;
        well = rig.task.err.status == TRIB_OK;
        assert_true(well || (rig.task.err.status == TRIB_ERR_SYSTEM &&
                             strstr(rig.task.err.text, "No space left")));
        refused += !well;
        const bool old = strstr(rig.task.err.text, "is unchanged");
        const uint64_t version = old ? (has_before ? 1 : UINT64_MAX) : 2;
        placed += !well && !old;
        assert_int_equal(load(&rig, "ana"), version);
        assert_int_equal(files(&rig), has_before || !old);
        set(&rig, 3);
        save(&rig, "ana");
        assert_status(rig.task.err.status, TRIB_OK);
        assert_int_equal(files(&rig), 1);
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        assert_int_equal(load(&rig, "ana"), 3);
        rig_close(&rig);
    }
    assert_true(refused > 6);
    assert_int_equal(placed, 1);
}

TEST(test_refused)
{
    refuse_each(true);
    refuse_each(false);
}

/* Two files of a vector, as an earlier release could leave them: the one with the
 * highest version is used, in this start and later ones. */
TEST(test_twice)
{
    static const char *const names[] = {"0000000000000000.snapshot",
                                        "0000000000000009.snapshot"};
    const char *saved = "0000000000000001.snapshot";

    for (int i = 0; i < 2; i++) {
        struct trib_snapshots_view view;
        struct rig rig;
        rig_open(&rig);
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        set(&rig, 3);
        save(&rig, "ana");
        const int at = rig.archive->folder_fd;
        assert_int_equal(linkat(at, saved, at, names[i], 0), 0);
        set(&rig, 4);
        save(&rig, "ana");
        save(&rig, "bob");
        assert_int_equal(files(&rig), 3);
        for (int starts = 0; starts < 2; starts++) {
            assert_status(check_again(&rig, 0, 0), TRIB_OK);
            archive_view(rig.archive, &view);
            assert_int_equal(view.n, 2);
            free(view.rows);
            assert_int_equal(load(&rig, "ana"), 4);
            assert_int_equal(load(&rig, "bob"), 4);
        }
        const struct archive_key key = {rig.owner, "ana", NULL};
        archive_drop(rig.archive, &key);
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        assert_int_equal(load(&rig, "ana"), UINT64_MAX);
        rig_close(&rig);
    }
}

/* A folder that its name no longer refers to gets no snapshot, neither before a write
 * nor during one. Once the name refers to it again, it gets the next snapshot. */
TEST(test_moved)
{
    struct trib_snapshots_view view;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    folder = rig.folder;
    set(&rig, 1);
    save(&rig, "ana");
    set(&rig, 2);
    for (int written = 0; written < 2; written++) {
        if (written) {
            fault = MOVED;
            calls_left = 2;
        } else {
            move_folder(false);
        }
        save(&rig, "ana");
        fault = NONE;
        assert_status(rig.task.err.status, TRIB_ERR_SYSTEM);
        assert_non_null(strstr(rig.task.err.text, "unmounted"));
        assert_int_equal(files(&rig), 0);
        archive_view(rig.archive, &view);
        assert_int_equal(view.failures, written + 1);
        free(view.rows);
        move_folder(true);
        assert_int_equal(load(&rig, "ana"), 1);
    }
    save(&rig, "ana");
    assert_status(rig.task.err.status, TRIB_OK);
    assert_int_equal(files(&rig), 1);
    rig_close(&rig);
}

enum { SAY = 200 };

static bool forget(const struct rig *rig, const char *what, char say[SAY])
{
    uint64_t removal;

    return archive_forget(rig->archive, what, say, SAY, &removal);
}

/* Another user, key or vector finds no snapshot; a second tribd cannot open the
 * folder. */
TEST(test_owners)
{
    struct archive *second;
    struct trib_error err = {0};
    struct trib_snapshots_view view;
    char say[SAY], text[300] = "lost";
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const struct archive_limits none = {0};
    assert_status(archive_open(rig.folder, &none, &rig.log, &err, &second),
                  TRIB_ERR_CONFIG);
    assert_non_null(strstr(err.text, "another tribd"));
    set(&rig, 5);
    save(&rig, "ana");
    assert_int_equal(load(&rig, "bob"), UINT64_MAX);
    assert_status(rig.task.err.status, TRIB_ERR_NO_RESOURCE);
    rig.owner[31] = 8;
    assert_int_equal(load(&rig, "ana"), UINT64_MAX);
    save(&rig, "ana");
    assert_int_equal(files(&rig), 2);
    rig.owner[31] = 7;
    const struct archive_key key = {rig.owner, "ana", NULL};
    archive_describe(rig.archive, &key, text, sizeof(text));
    assert_string_equal(text, "lost; its snapshots: x version 5");
    archive_view(rig.archive, &view);
    assert_int_equal(view.n, 2);
    assert_string_equal(view.rows[1].name, "x");
    free(view.rows);
    archive_drop(rig.archive, &key);
    assert_int_equal(load(&rig, "ana"), UINT64_MAX);
    assert_int_equal(files(&rig), 1);
    assert_false(forget(&rig, "job y", say));
    assert_false(forget(&rig, "jo", say));
    assert_true(forget(&rig, "job", say));
    assert_int_equal(files(&rig), 0);
    rig_close(&rig);
}

/* Two users have jobs of one name. The operator removes the snapshots of one. */
TEST(test_forget_one_user)
{
    char say[SAY];
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    save(&rig, "bob");
    assert_false(forget(&rig, "job", say));
    assert_string_equal(say, "job has snapshots of several users, such as ana and bob: "
                             "write USER/JOB");
    assert_false(forget(&rig, "an/job", say));
    assert_false(forget(&rig, "bob/job y", say));
    assert_int_equal(files(&rig), 2);
    assert_true(forget(&rig, "bob/job x", say));
    assert_int_equal(load(&rig, "bob"), UINT64_MAX);
    assert_int_equal(load(&rig, "ana"), 0);
    assert_true(forget(&rig, "job x", say));
    assert_int_equal(files(&rig), 0);
    rig_close(&rig);
}

/* Nor does a user whose job has a name like USER/JOB keep the operator from that. */
TEST(test_forget_one_user_by_name)
{
    char say[SAY];
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    rig.job = "bob/job";
    save(&rig, "ana");
    rig.job = NULL;
    save(&rig, "bob");
    assert_false(forget(&rig, "bob/job y", say));
    assert_true(forget(&rig, "bob/job", say));
    assert_string_equal(say, "1 snapshot removed");
    assert_int_equal(load(&rig, "bob"), UINT64_MAX);
    assert_int_equal(load(&rig, "ana"), 0);
    assert_true(forget(&rig, "ana/bob/job", say));
    assert_int_equal(files(&rig), 0);
    rig_close(&rig);
}

/* Sizes are rounded up to whole blocks of the disk. */
TEST(test_quotas)
{
    const uint64_t bytes = TRIB_SNAPSHOT_HEAD_BYTES + 16 + 2 * 8 * COUNT;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const uint64_t block = rig.archive->block;
    const uint64_t one = (bytes + block - 1) / block * block;
    assert_true(one > bytes);
    limit(&rig, (struct archive_limits){.disk = 3 * one, .user_disk = 2 * one});
    set(&rig, 1);
    save(&rig, "ana");
    save(&rig, "ana"); /* the old one and the new one */
    assert_status(rig.task.err.status, TRIB_OK);
    save(&rig, "bob");
    save(&rig, "cat");
    assert_status(rig.task.err.status, TRIB_OK);
    save(&rig, "dan"); /* one over the total limit */
    assert_status(rig.task.err.status, TRIB_ERR_NO_RESOURCE);
    limit(&rig, (struct archive_limits){.disk = 9 * one, .user_disk = 2 * one - 1});
    save(&rig, "dan");
    assert_status(rig.task.err.status, TRIB_OK);
    save(&rig, "ana"); /* in addition to her own */
    assert_status(rig.task.err.status, TRIB_ERR_NO_RESOURCE);
    assert_non_null(strstr(rig.task.err.text, "tribctl snapshots"));
    assert_int_equal(load(&rig, "ana"), 1);
    rig_close(&rig);
}

/* A shutdown does not take a disk for hung while files are refused, read or deleted. */
TEST(test_progress)
{
    struct rig rig;

    rig_open(&rig);
    const struct archive_key key = {rig.owner, "bob", "x"};
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "bob");
    const uint64_t written = archive_progress_mt(rig.archive);
    fault = REFUSED;
    calls_left = 0;
    save(&rig, "bob");
    fault = NONE;
    assert_status(rig.task.err.status, TRIB_ERR_SYSTEM);
    assert_true(archive_progress_mt(rig.archive) > written);
    assert_int_equal(load(&rig, "bob"), 1);
    const uint64_t read = archive_progress_mt(rig.archive);
    archive_drop(rig.archive, &key);
    assert_true(archive_stop(rig.archive, 0));
    assert_true(written > 0);
    assert_true(read > written);
    assert_true(archive_progress_mt(rig.archive) > read);
    rig_close(&rig);
}

static void count_line(void *arg, trib_log_level_t level, const char *line)
{
    int *lines = arg;

    *lines += level == TRIB_LOG_WARN && strstr(line, "cannot stop yet");
}

/* archive_stop returns after its limit, with a warning before; the threads end when the
 * disk responds. */
TEST(test_stop_while_the_disk_hangs)
{
    struct rig rig;
    int lines = 0;

    rig_open(&rig);
    trib_log_init(&rig.log, TRIB_LOG_WARN, count_line, &lines);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    assert_true(archive_stop(rig.archive, 1));
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    atomic_store(&stats, 0);
    atomic_store(&stats_hang, 1);
    make_write(&rig, &rig.task, rig.owner, "bob");
    archive_give(rig.archive, &rig.task);
    const bool ended = archive_stop(rig.archive, 2500);
    atomic_store(&stats_hang, 0);
    assert_false(ended);
    assert_int_equal(lines, 1);
    assert_true(archive_stop(rig.archive, 0));
    free(rig.task.bytes);
    assert_status(rig.task.err.status, TRIB_OK);
    rig_close(&rig);
}

/* A refused snapshot takes no room from others. */
TEST(test_refused_beside_another)
{
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES] = {1};
    struct archive_task refused, other;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "bob");
    limit(&rig, (struct archive_limits){
                    .disk = 2 * one_on_disk(&rig), .files = 9, .user_files = 1});
    atomic_store(&stats, 0);
    atomic_store(&stats_hang, 1);
    make_write(&rig, &refused, owner, "bob");
    archive_give(rig.archive, &refused);
    while (!atomic_load(&stats) && !archive_is_done(rig.archive, &refused))
        usleep(1000);
    make_write(&rig, &other, owner, "ana");
    archive_give(rig.archive, &other);
    while (!archive_is_done(rig.archive, &other) &&
           !archive_is_done(rig.archive, &refused))
        usleep(1000);
    atomic_store(&stats_hang, 0);
    archive_wait(rig.archive, &refused);
    archive_wait(rig.archive, &other);
    free(refused.bytes);
    free(other.bytes);
    assert_status(refused.err.status, TRIB_ERR_NO_RESOURCE);
    assert_status(other.err.status, TRIB_OK);
    rig_close(&rig);
}

/* The last snapshots of two stores fit one after the other, because each frees the file
 * that it replaces. Both fill the disk at first. */
TEST(test_one_after_the_other)
{
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES] = {1};
    struct archive_task one, other;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    make_write(&rig, &one, rig.owner, "ana");
    make_write(&rig, &other, owner, "bob");
    one.last = other.last = true;
    fault = CROWDED;
    archive_give(rig.archive, &one);
    archive_give(rig.archive, &other);
    archive_wait(rig.archive, &one);
    archive_wait(rig.archive, &other);
    fault = NONE;
    free(one.bytes);
    free(other.bytes);
    assert_false(one.err.status || other.err.status || atomic_load(&met));
    assert_int_equal(archive_progress_mt(rig.archive), 4 + 2); /* answers, syncs */
    rig_close(&rig);
}

/* Save a snapshot of another store of a user. Return true if there was room. */
static bool save_next(struct rig *rig, const char *user)
{
    rig->owner[0]++;
    save(rig, user);
    return rig->task.err.status == TRIB_OK;
}

/* A user may have half of the files, and all clients that authenticate with the key
 * count as one user. */
TEST(test_files)
{
    struct trib_snapshots_view view;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_true(rig.archive->limits.files > 0 &&
                rig.archive->limits.files <= ARCHIVE_FILES_MAX);
    limit(&rig, (struct archive_limits){.disk = 1 << 30, .files = 6});
    for (int i = 0; i < 3; i++)
        assert_true(save_next(&rig, "ana"));
    assert_false(save_next(&rig, "ana"));
    assert_non_null(strstr(rig.task.err.text, "user_disk_files"));
    rig.owner[0]--;
    save(&rig, "ana"); /* an existing snapshot needs no other file */
    assert_status(rig.task.err.status, TRIB_OK);
    for (int i = 0; i < 3; i++)
        assert_true(save_next(&rig, "key"));
    assert_false(save_next(&rig, "bob"));
    limit(&rig, (struct archive_limits){.disk = 1 << 30, .files = 9, .user_files = 1});
    assert_true(save_next(&rig, "bob"));
    assert_false(save_next(&rig, "bob"));
    archive_view(rig.archive, &view);
    assert_int_equal(view.n, 7);
    assert_int_equal(view.n_most, 9);
    assert_int_equal(view.failures, 3);
    assert_true(view.bytes >= 7 * rig.archive->block);
    free(view.rows);
    rig_close(&rig);
}

/* The view describes a bounded number of files. */
TEST(test_rows)
{
    struct trib_snapshots_view view;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    pthread_mutex_lock(&rig.archive->mutex);
    for (int i = 0; i < ARCHIVE_ROWS_MOST + 5; i++)
        archive_append(rig.archive)->number = ARCHIVE_NUMBER_MAX;
    pthread_mutex_unlock(&rig.archive->mutex);
    archive_view(rig.archive, &view);
    assert_int_equal(view.n, ARCHIVE_ROWS_MOST + 5);
    assert_int_equal(view.n_rows, ARCHIVE_ROWS_MOST);
    free(view.rows);
    rig_close(&rig);
}

/* Invalid files stay, are not listed, and do not affect others. */
TEST(test_spoiled)
{
    static const char *const names[] = {"0000000000000009.snapshot", "a.snapshot",
                                        "0000000000000011.snapshot"};
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const int fd = trib_fd_keep(openat(rig.archive->folder_fd, names[i],
                                           O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        assert_true(fd >= 0);
        assert_true(i == 0 || write(fd, "TribSnap and more", 17) == 17);
        close(fd);
    }
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "ana"), 1);
    set(&rig, 2);
    save(&rig, "bob");
    assert_int_equal(load(&rig, "bob"), 2);
    assert_int_equal(files(&rig), 5);
    rig_close(&rig);
}

/* The thread of a store does not free a large copy, written or not. */
TEST(test_written_copy)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    for (int i = 0; i < 2; i++) {
        fault = i ? REFUSED : NONE;
        calls_left = 0;
        make_write(&rig, &rig.task, rig.owner, "ana");
        archive_give(rig.archive, &rig.task);
        archive_wait(rig.archive, &rig.task);
        fault = NONE;
        assert_int_equal(rig.task.err.status == TRIB_OK, !i);
        assert_true(malloc_usable_size(rig.task.bytes) < rig.task.n / 2);
        free(rig.task.bytes);
    }
    rig_close(&rig);
}

/* A folder that other users can write to is refused. */
TEST(test_folder)
{
    struct rig rig;

    rig_open(&rig);
    for (mode_t more = 020; more; more = more == 020 ? 02 : 0) {
        assert_int_equal(chmod(rig.folder, 0700 | more), 0);
        assert_status(check_again(&rig, 0, 0), TRIB_ERR_CONFIG);
        assert_non_null(strstr(rig.err.text, "chmod 700"));
    }
    assert_int_equal(chmod(rig.folder, 0755), 0);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    if (geteuid() == 0) {
        assert_int_equal(chown(rig.folder, 1, 1), 0);
        assert_status(check_again(&rig, 0, 0), TRIB_ERR_CONFIG);
        assert_non_null(strstr(rig.err.text, "is owned by user 1"));
        assert_int_equal(chown(rig.folder, 0, 0), 0);
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
    }
    rig_close(&rig);
}

/* An entry that is not a regular file neither blocks the start nor receives a
 * snapshot. */
TEST(test_no_files)
{
    struct rig rig;
    struct stat s;
    char target[120];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const int at = rig.archive->folder_fd;
    snprintf(target, sizeof(target), "%s/victim", rig.folder);
    close(trib_fd_keep(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
    assert_int_equal(symlinkat(target, at, "0000000000000001.snapshot.part"), 0);
    assert_int_equal(mkfifoat(at, "0000000000000005.snapshot", 0600), 0);
    assert_int_equal(symlinkat("/dev/zero", at, "0000000000000006.snapshot"), 0);
    assert_int_equal(mkfifoat(at, "ffffffffffffffff.snapshot", 0600), 0);
    save(&rig, "ana");
    assert_status(rig.task.err.status, TRIB_OK);
    assert_int_equal(stat(target, &s), 0);
    assert_int_equal(s.st_size, 0);
    assert_int_equal(fstatat(at, "0000000000000001.snapshot", &s, AT_SYMLINK_NOFOLLOW),
                     0);
    assert_true(S_ISREG(s.st_mode));
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "ana"), 0);
    assert_int_equal(rig.archive->last_number, 6);
    rig_close(&rig);
}

/* A file of another format: the message names the release that must read it. */
TEST(test_other_format)
{
    uint8_t bytes[TRIB_SNAPSHOT_HEAD_BYTES] = "TribSnap\4\3\2\1\2";
    struct trib_snapshot out;
    struct trib_error err = {0};

    assert_status(trib_snapshot_head(bytes, sizeof(bytes), &err, &out),
                  TRIB_ERR_MISMATCH);
    assert_non_null(
        strstr(err.text, "in format 2, but this tribd reads format 1: run"));
    bytes[12] = 1;
    err = (struct trib_error){0};
    assert_status(trib_snapshot_head(bytes, sizeof(bytes), &err, &out),
                  TRIB_ERR_MISMATCH);
    assert_string_equal(err.text, "its head is damaged");
}
