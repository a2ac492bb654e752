/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deletions of snapshots: the disk hangs while it deletes a file or measures its free
 * space, and other users continue; deleted files count until they are gone, and are
 * deleted although tasks wait; a file cannot be deleted at first; a snapshot is removed
 * while it is written; no store has used snapshots for days.
 */
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "tests/agg/daemon/archive_rig.h"

static _Atomic bool disk_hangs, hangs;
static _Atomic bool writes_hang;
static struct archive *_Atomic observed; /* or NULL */
static _Atomic bool was_queued; /* a task waited when a file was deleted */
static _Atomic bool refuses; /* the disk refuses deletions */
static _Atomic int refused;
static _Atomic bool unsynced; /* a deletion may be undone by a power loss */
static _Atomic bool sync_fails;
static bool is_huge; /* the free space, in bytes, exceeds 64 bits */

static void hang(void)
{
    while (atomic_load(&disk_hangs)) {
        atomic_store(&hangs, true);
        usleep(1000);
    }
}

/* These take the place of functions of the C library. */
int unlinkat(int at, const char *name, int flags)
{
    struct archive *a = atomic_load(&observed);

    hang();
    if (atomic_load(&refuses)) {
        (void)atomic_fetch_add(&refused, 1);
        errno = EACCES;
        return -1;
    }
    if (a) {
        pthread_mutex_lock(&a->mutex);
        atomic_store(&was_queued, a->first != NULL);
        pthread_mutex_unlock(&a->mutex);
    }
    atomic_store(&unsynced, true);
    return (int)syscall(SYS_unlinkat, at, name, flags);
}

int fsync(int fd)
{
    struct stat s;

    while (atomic_load(&writes_hang))
        usleep(1000);
    const bool is_folder = fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
    if (is_folder && atomic_load(&sync_fails)) {
        (void)atomic_fetch_add(&refused, 1);
        errno = EIO;
        return -1;
    }
    const int done = (int)syscall(SYS_fsync, fd);
    if (is_folder && done == 0)
        atomic_store(&unsynced, false);
    return done;
}

int fstatvfs(int fd, struct statvfs *out)
{
    struct statfs s;

    hang();
    *out = (struct statvfs){.f_bsize = 0};
    if (syscall(SYS_fstatfs, fd, &s) != 0)
        return -1;
    out->f_frsize = (unsigned long)s.f_frsize;
    out->f_bavail = s.f_bavail;
    out->f_files = s.f_files;
    out->f_favail = s.f_ffree;
    if (is_huge)
        *out = (struct statvfs){.f_frsize = 4096, .f_bavail = (fsblkcnt_t)1 << 52};
    return 0;
}

struct call {
    struct rig *rig;
    struct archive_key key;
    uint64_t version; /* result of `ask` */
    _Atomic bool done;
};

static void *drop(void *arg)
{
    struct call *call = arg;

    archive_drop(call->rig->archive, &call->key);
    atomic_store(&call->done, true);
    return NULL;
}

static void *ask(void *arg)
{
    struct call *call = arg;

    call->version = archive_version(call->rig->archive, &call->key);
    atomic_store(&call->done, true);
    return NULL;
}

/* Ask for bob's snapshot while `act` hangs at the disk; return true if that waits. */
static bool waits_for(void *(*act)(void *), struct call *acts, struct call *bob)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    pthread_t works, asks;

    atomic_store(&hangs, false);
    atomic_store(&disk_hangs, true);
    assert_int_equal(pthread_create(&works, NULL, act, acts), 0);
    while (!atomic_load(&hangs))
        usleep(1000);
    assert_int_equal(pthread_create(&asks, NULL, ask, bob), 0);
    while (!(atomic_load(&bob->done) && atomic_load(&acts->done)) &&
           !trib_deadline_passed(until))
        usleep(1000);
    const bool waits = !atomic_load(&bob->done) || !atomic_load(&acts->done);
    atomic_store(&disk_hangs, false);
    assert_int_equal(pthread_join(works, NULL), 0);
    assert_int_equal(pthread_join(asks, NULL), 0);
    return waits;
}

/* Other stores, and the control thread of tribd, do not wait for it. */
TEST(test_hung_deletion)
{
    struct rig rig;
    struct call ana = {&rig, {rig.owner, "ana", "x"}, 0, false};
    struct call bob = {&rig, {rig.owner, "bob", "x"}, 0, false};

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    save(&rig, "bob");
    assert_false(waits_for(drop, &ana, &bob));
    assert_int_equal(bob.version, 2);
    assert_int_equal(files(&rig), 1);
    rig_close(&rig);
}

static void *reload(void *arg)
{
    struct call *call = arg;

    limit(call->rig, (struct archive_limits){.user_disk = 1});
    atomic_store(&call->done, true);
    return NULL;
}

/* Nor does SIGHUP wait for a disk that hangs. */
TEST(test_hung_measurement)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct rig rig;
    struct call hup = {.rig = &rig};
    struct call bob = {&rig, {rig.owner, "bob", "x"}, 0, false};
    uint32_t files = 7;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    limit(&rig, (struct archive_limits){.disk = 1 << 20, .files = files});
    assert_false(waits_for(reload, &hup, &bob));
    while (files == 7) {
        assert_false(trib_deadline_passed(until));
        usleep(1000);
        pthread_mutex_lock(&rig.archive->mutex);
        files = rig.archive->limits.files;
        pthread_mutex_unlock(&rig.archive->mutex);
    }
    rig_close(&rig);
}

/* Nor do many of them stop all threads. */
TEST(test_hung_measurements)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    limit(&rig, (struct archive_limits){.disk = 1 << 30, .files = 7});
    atomic_store(&disk_hangs, true);
    for (int i = 0; i < 2 * ARCHIVE_THREADS; i++) {
        limit(&rig, (struct archive_limits){.disk = 0});
        usleep(20000);
    }
    make_write(&rig, &rig.task, rig.owner, "bob");
    archive_give(rig.archive, &rig.task);
    const bool well = completes(rig.archive, &rig.task);
    atomic_store(&disk_hangs, false);
    archive_wait(rig.archive, &rig.task);
    free(rig.task.bytes);
    assert_true(well);
    assert_status(rig.task.err.status, TRIB_OK);
    rig_close(&rig);
}

TEST(test_huge_disk)
{
    struct rig rig;

    is_huge = true;
    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    is_huge = false;
    assert_status(rig.task.err.status, TRIB_OK);
    rig_close(&rig);
}

/* Tasks of a user that wait for the deletion of the user's files leave the threads to
 * other users. */
TEST(test_hung_deletion_of_a_full_user)
{
    enum { TASKS = ARCHIVE_THREADS };
    uint8_t owners[TASKS][TRIB_SNAPSHOT_OWNER_BYTES] = {{0}};
    struct archive_task tasks[TASKS];
    struct rig rig;
    int well = 0;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const struct archive_key ana = {rig.owner, "ana", "x"};
    save(&rig, "ana");
    limit(&rig, (struct archive_limits){
                    .disk = 1 << 30, .user_disk = one_on_disk(&rig), .files = 99});
    atomic_store(&hangs, false);
    atomic_store(&disk_hangs, true);
    archive_drop(rig.archive, &ana);
    while (!atomic_load(&hangs))
        usleep(1000);
    for (int i = 0; i < TASKS; i++) {
        owners[i][0] = (uint8_t)i;
        make_write(&rig, &tasks[i], owners[i], "ana");
        archive_give(rig.archive, &tasks[i]);
    }
    usleep(100000);
    make_write(&rig, &rig.task, rig.owner, "bob");
    archive_give(rig.archive, &rig.task);
    const bool bob = completes(rig.archive, &rig.task);
    atomic_store(&disk_hangs, false);
    archive_wait(rig.archive, &rig.task);
    free(rig.task.bytes);
    for (int i = 0; i < TASKS; i++) {
        archive_wait(rig.archive, &tasks[i]);
        well += tasks[i].err.status == TRIB_OK;
        free(tasks[i].bytes);
    }
    assert_true(bob);
    assert_int_equal(well, 1);
    rig_close(&rig);
}

/* A file that cannot be deleted counts, but no snapshot waits for it. It is deleted
 * once the disk permits that, at the latest after SIGHUP. */
TEST(test_failed_deletion)
{
    struct trib_snapshots_view view;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const struct archive_key ana = {rig.owner, "ana", "x"};
    save(&rig, "ana");
    const uint64_t one = one_on_disk(&rig);
    const struct archive_limits limits = {.disk = one, .files = 9};
    limit(&rig, limits);
    atomic_store(&refuses, true);
    archive_drop(rig.archive, &ana);
    while (!atomic_load(&refused))
        usleep(1000);
    save(&rig, "bob");
    assert_status(rig.task.err.status, TRIB_ERR_NO_RESOURCE);
    archive_view(rig.archive, &view);
    assert_int_equal(view.bytes, one);
    free(view.rows);
    atomic_store(&refuses, false);
    limit(&rig, limits);
    save(&rig, "bob");
    assert_status(rig.task.err.status, TRIB_OK);
    assert_int_equal(files(&rig), 1);
    const struct archive_key bob = {rig.owner, "bob", "x"};
    atomic_store(&refuses, true);
    archive_drop(rig.archive, &bob);
    archive_close(rig.archive); /* ends nevertheless */
    rig.archive = NULL;
    atomic_store(&refuses, false);
    rig_close(&rig);
}

/* Wait until a removal is complete; false: it takes too long. */
static bool is_forgotten(const struct rig *rig, uint64_t removal)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!archive_is_deleted(rig->archive, removal) && !trib_deadline_passed(until))
        usleep(1000);
    return archive_is_deleted(rig->archive, removal);
}

/* The answer to an operator is true even after a power loss. */
TEST(test_forgotten_for_good)
{
    const struct archive_limits limits = {.disk = 1 << 30, .files = 9};
    struct trib_snapshots_view view;
    struct rig rig;
    uint64_t removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    assert_true(archive_forget(rig.archive, "job", say, sizeof(say), &removal));
    assert_true(is_forgotten(&rig, removal));
    assert_false(atomic_load(&unsynced));
    save(&rig, "ana");
    atomic_store(&refused, 0);
    atomic_store(&sync_fails, true);
    assert_true(archive_forget(rig.archive, "job", say, sizeof(say), &removal));
    while (!atomic_load(&refused))
        usleep(1000);
    usleep(100000);
    assert_int_equal(atomic_load(&refused), 1); /* it is not tried again at once */
    assert_false(archive_is_deleted(rig.archive, removal));
    archive_view(rig.archive, &view);
    free(view.rows);
    assert_int_equal(view.bytes, 0);
    atomic_store(&sync_fails, false);
    limit(&rig, limits);
    assert_true(is_forgotten(&rig, removal));
    assert_int_equal(files(&rig), 0);
    rig_close(&rig);
}

/* A forgotten snapshot that cannot be deleted does not take the place of a later one,
 * although that has a lower version. A file that an operator has copied into the folder
 * does, if it has a higher version. */
TEST(test_forgotten_but_not_deleted)
{
    struct rig rig;
    uint64_t removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 40);
    save(&rig, "ana");
    const int at = rig.archive->folder_fd;
    assert_int_equal(
        linkat(at, "0000000000000001.snapshot", at, "0000000000000007.copy", 0), 0);
    atomic_store(&refused, 0);
    atomic_store(&refuses, true);
    assert_true(archive_forget(rig.archive, "job", say, sizeof(say), &removal));
    while (!atomic_load(&refused))
        usleep(1000);
    for (uint64_t version = 5; version < 7; version++) {
        set(&rig, version);
        save(&rig, "ana");
    }
    archive_close(rig.archive);
    rig.archive = NULL;
    atomic_store(&refuses, false);
    for (int starts = 0; starts < 2; starts++) {
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        assert_int_equal(load(&rig, "ana"), 6);
    }
    const int folder_fd = rig.archive->folder_fd;
    assert_int_equal(renameat(folder_fd, "0000000000000007.copy", folder_fd,
                              "0000000000000007.snapshot"),
                     0);
    for (int starts = 0; starts < 2; starts++) {
        assert_status(check_again(&rig, 0, 0), TRIB_OK);
        assert_int_equal(load(&rig, "ana"), 40);
        set(&rig, 41);
    }
    save(&rig, "ana");
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "ana"), 41);
    rig_close(&rig);
}

/* A file that cannot be deleted concerns only the removal that it belongs to. */
TEST(test_forget_beside_another)
{
    struct rig rig;
    uint64_t stays, removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    save(&rig, "bob");
    atomic_store(&refused, 0);
    atomic_store(&refuses, true);
    assert_true(archive_forget(rig.archive, "ana/job", say, sizeof(say), &stays));
    while (!atomic_load(&refused))
        usleep(1000);
    atomic_store(&refuses, false);
    assert_true(archive_forget(rig.archive, "bob/job", say, sizeof(say), &removal));
    assert_true(is_forgotten(&rig, removal));
    assert_false(archive_is_deleted(rig.archive, stays));
    rig_close(&rig);
}

/* A file counts until it is deleted, so the disk never has more than its limit. */
TEST(test_deletions_count)
{
    struct rig rig;
    struct trib_snapshots_view view;
    uint64_t removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    const uint64_t one = one_on_disk(&rig);
    limit(&rig, (struct archive_limits){.disk = one, .files = 9});
    atomic_store(&hangs, false);
    atomic_store(&disk_hangs, true);
    assert_true(archive_forget(rig.archive, "job", say, sizeof(say), &removal));
    while (!atomic_load(&hangs))
        usleep(1000);
    const bool deleted = archive_is_deleted(rig.archive, removal);
    archive_view(rig.archive, &view);
    free(view.rows);
    make_write(&rig, &rig.task, rig.owner, "bob");
    archive_give(rig.archive, &rig.task);
    usleep(100000);
    const bool early = archive_is_done(rig.archive, &rig.task);
    atomic_store(&disk_hangs, false);
    archive_wait(rig.archive, &rig.task);
    free(rig.task.bytes);
    assert_false(early);
    assert_false(deleted);
    assert_true(is_forgotten(&rig, removal));
    assert_status(rig.task.err.status, TRIB_OK);
    assert_int_equal(view.bytes, one);
    assert_int_equal(files(&rig), 1);
    rig_close(&rig);
}

/* Stores without a pause between their snapshots do not keep removed files. */
TEST(test_deletions_beside_tasks)
{
    enum { TASKS = 64 };
    static struct archive_task tasks[TASKS];
    static uint8_t owners[TASKS][TRIB_SNAPSHOT_OWNER_BYTES];
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    const struct archive_key ana = {rig.owner, "ana", "x"};
    set(&rig, 1);
    save(&rig, "ana");
    for (int i = 0; i < TASKS; i++) {
        owners[i][0] = (uint8_t)i;
        make_write(&rig, &tasks[i], owners[i], "bob");
    }
    atomic_store(&observed, rig.archive);
    atomic_store(&writes_hang, true);
    for (int i = 0; i < TASKS; i++)
        archive_give(rig.archive, &tasks[i]);
    archive_drop(rig.archive, &ana);
    atomic_store(&writes_hang, false);
    for (int i = 0; i < TASKS; i++) {
        archive_wait(rig.archive, &tasks[i]);
        assert_status(tasks[i].err.status, TRIB_OK);
        free(tasks[i].bytes);
    }
    assert_int_equal(files(&rig), TASKS);
    atomic_store(&observed, NULL);
    assert_true(atomic_load(&was_queued));
    rig_close(&rig);
}

/* A snapshot that is removed during a second write stays. */
TEST(test_removed_during_write)
{
    struct rig rig;

    rig_open(&rig);
    const struct archive_key key = {rig.owner, "ana", "x"};
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    removed_from = rig.archive;
    removed_key = &key;
    fault = REMOVED;
    calls_left = -1;
    set(&rig, 2);
    save(&rig, "ana");
    fault = NONE;
    assert_int_equal(files(&rig), 1);
    assert_int_equal(load(&rig, "ana"), 2);
    rig_close(&rig);
}

/* Make the archive believe that it has run for days without a store. */
static void let_days_pass(struct rig *rig)
{
    pthread_mutex_lock(&rig->archive->mutex);
    for (uint32_t i = 0; i < rig->archive->n; i++)
        rig->archive->files[i].unused_ns -= (uint64_t)ARCHIVE_ORPHAN_S * 1000000000;
    pthread_mutex_unlock(&rig->archive->mutex);
}

/* Snapshots of a dead run are deleted once tribd has run for days without a store that
 * has their key; the age by the clock is ignored. */
TEST(test_orphans)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "lasting");
    rig.own_run = true;
    assert_true(archive_use(rig.archive, rig.owner, true));
    rig.age_s = ARCHIVE_ORPHAN_S + 60;
    save(&rig, "old");
    rig.age_s = -ARCHIVE_ORPHAN_S;
    save(&rig, "future");
    let_days_pass(&rig);
    set(&rig, 1);
    assert_int_equal(load(&rig, "old"), 0); /* a store uses them */
    assert_true(archive_use(rig.archive, rig.owner, false));
    assert_int_equal(load(&rig, "old"), 0);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "future"), 0);
    assert_int_equal(files(&rig), 3);
    let_days_pass(&rig);
    save(&rig, "young");
    assert_int_equal(files(&rig), 2);
    assert_int_equal(load(&rig, "old"), UINT64_MAX);
    assert_int_equal(load(&rig, "lasting"), 0);
    assert_int_equal(load(&rig, "young"), 0);
    rig_close(&rig);
}

/* They are deleted without a task, too. */
TEST(test_idle)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "lasting");
    rig.own_run = true;
    save(&rig, "old");
    hours_fly = true;
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(files(&rig), 2);
    let_days_pass(&rig);
    for (int i = 0; i < 1000 && files(&rig) == 2; i++)
        usleep(10000);
    assert_int_equal(files(&rig), 1);
    rig_close(&rig);
    hours_fly = false;
}

/* Two jobs use one key, one after the other. The second has ended while its first
 * snapshot is being written over the snapshot of the first. */
TEST(test_forget_a_job_with_the_key_of_another)
{
    const _Atomic bool ended = true;
    struct rig rig;
    uint64_t removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    make_write(&rig, &rig.task, rig.owner, "ana");
    rig.task.job = "later";
    rig.task.ended = &ended;
    atomic_store(&writes_hang, true);
    archive_give(rig.archive, &rig.task);
    const bool forgot =
        archive_forget(rig.archive, "later", say, sizeof(say), &removal);
    const bool early = archive_is_deleted(rig.archive, removal);
    atomic_store(&writes_hang, false);
    archive_wait(rig.archive, &rig.task);
    free(rig.task.bytes);
    assert_true(forgot);
    assert_string_equal(say, "1 snapshot removed");
    assert_false(early);
    assert_true(is_forgotten(&rig, removal));
    assert_int_equal(files(&rig), 0);
    rig_close(&rig);
}
