/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of snapshots, a vector for it, and system calls that fail. */
#ifndef TESTS_AGG_DAEMON_ARCHIVE_RIG_H
#define TESTS_AGG_DAEMON_ARCHIVE_RIG_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

/* System calls that change the disk or read the clock are redirected here, under their
 * own names. */
static ssize_t write_at(int fd, const void *bytes, size_t n);
static int fsync_at(int fd);
static int renameat_at(int from, const char *old, int to, const char *name);
static int stat_at(const char *path, struct stat *out);
static uint64_t deadline_at(int ms);

#define write(fd, bytes, n) write_at(fd, bytes, n)
#define fsync(fd) fsync_at(fd)
#define renameat(from, old, to, name) renameat_at(from, old, to, name)
#define stat(path, out) stat_at(path, out)
#define trib_deadline_ms(ms) deadline_at(ms)
#include "agg/daemon/archive.c"
#undef write
#undef fsync
#undef renameat
#undef stat
#undef trib_deadline_ms

#include "base/log.h"
#include "tests/harness/tribtest.h"

enum { COUNT = 3001, CALLS_MOST = 16 };

enum fault {
    NONE,
    KILLED_BEFORE,
    KILLED_AMID,
    KILLED_BEHIND,
    REFUSED,
    MOVED,
    REMOVED,
    CROWDED, /* the disk has room for one temporary file */
};

/* The call that fails, and how. */
static enum fault fault;
static _Atomic int calls_left;
static const char *folder = ""; /* the folder to move away */
static struct archive
    *removed_from; /* REMOVED: the snapshot is removed during the write */
static const struct archive_key *removed_key;
static _Atomic bool hours_fly;
static _Atomic int syncs, syncing; /* CROWDED: the first two meet, and fail */
static _Atomic bool met; /* others did, too */
static _Atomic int stats, stats_hang; /* calls before a write; the first ones hang */

static uint64_t deadline_at(int ms)
{
    return trib_deadline_ms(hours_fly ? 10 : ms);
}

static int entries_left = -1; /* readdir() then fails; -1: it does not */

/* Takes the place of the function of the C library. */
struct dirent *readdir(DIR *dir)
{
    struct dirent *(*real)(DIR *);

    *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (entries_left == 0) {
        errno = EIO;
        return NULL;
    }
    entries_left -= entries_left > 0;
    return real(dir);
}

/* Replace the open folder by another one with the same name, as when a file system is
 * mounted or unmounted there. */
static void move_folder(bool back)
{
    char away[80];

    snprintf(away, sizeof(away), "%s.away", folder);
    if (back)
        assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rename(back ? away : folder, back ? folder : away), 0);
    if (!back)
        assert_int_equal(mkdir(folder, 0700), 0);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    pause();
}

/* Return true if this call must fail. */
static bool strike(void)
{
    if (fault == NONE || calls_left-- != 0)
        return false;
    if (fault == KILLED_BEFORE)
        die();
    if (fault == MOVED)
        move_folder(false);
    errno = ENOSPC;
    return fault == REFUSED;
}

static void struck(void)
{
    if (fault == KILLED_BEHIND && calls_left == -1)
        die();
}

/* An eventfd is not on the disk. */
static ssize_t write_at(int fd, const void *bytes, size_t n)
{
    if (n == sizeof(uint64_t))
        return write(fd, bytes, n);
    const size_t half = n > 5000 ? 5000 : n; /* write a file in several calls */
    if (strike())
        return -1;
    if (fault == KILLED_AMID && calls_left == -1) {
        (void)!write(fd, bytes, half / 2);
        die();
    }
    const ssize_t done = write(fd, bytes, half);
    struck();
    return done;
}

static bool is_crowded(void)
{
    const bool early = atomic_fetch_add(&syncs, 1) < 2;

    while (early && atomic_load(&syncs) < 2)
        usleep(1000);
    if (!early && atomic_fetch_add(&syncing, 1))
        atomic_store(&met, true);
    usleep(20000);
    if (!early)
        (void)atomic_fetch_sub(&syncing, 1);
    errno = ENOSPC;
    return early;
}

static int fsync_at(int fd)
{
    const int done = strike() || (fault == CROWDED && is_crowded()) ? -1 : fsync(fd);

    struck();
    return done;
}

static int renameat_at(int from, const char *old, int to, const char *name)
{
    if (fault == REMOVED)
        archive_drop(removed_from, removed_key);
    const int done = strike() ? -1 : renameat(from, old, to, name);

    struck();
    return done;
}

static int stat_at(const char *path, struct stat *out)
{
    const int i = atomic_fetch_add(&stats, 1);

    while (i < atomic_load(&stats_hang))
        usleep(1000);
    return stat(path, out);
}

/* A folder with an archive, and a vector for it. */
struct rig {
    char folder[64];
    struct trib_log log;
    struct archive *archive;
    struct trib_store_table *table;
    struct trib_snapshot read;
    struct archive_task task;
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
    bool own_run; /* no later store has the key */
    int64_t age_s; /* age of the saved snapshot */
    const char *job; /* of saved snapshots; NULL: "job" */
    struct trib_error err; /* error of check_again */
};

static void rig_open(struct rig *rig)
{
    const struct trib_store_spec spec = {"x", TRIB_F64, COUNT, "sgd:rate=1"};
    struct trib_store_found found;

    memset(rig, 0, sizeof(*rig));
    snprintf(rig->folder, sizeof(rig->folder), "/tmp/archive.XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    trib_log_init(&rig->log, TRIB_LOG_ERROR, NULL, NULL);
    assert_status(trib_store_table_create(2, NULL, &rig->table), TRIB_OK);
    assert_status(trib_store_table_open(rig->table, &spec, NULL, &found), TRIB_OK);
    memset(rig->owner, 7, sizeof(rig->owner));
}

static trib_status_t check_again(struct rig *rig, uint64_t disk, uint64_t user_disk)
{
    const struct archive_limits limits = {.disk = disk, .user_disk = user_disk};

    archive_close(rig->archive);
    rig->archive = NULL;
    rig->err = (struct trib_error){0};
    return archive_open(rig->folder, &limits, &rig->log, &rig->err, &rig->archive);
}

static void rig_close(struct rig *rig)
{
    char path[400];
    DIR *dir = opendir(rig->folder);

    archive_close(rig->archive);
    trib_store_table_destroy(rig->table);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/%s", rig->folder, e->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(rig->folder), 0);
}

static inline void limit(struct rig *rig, struct archive_limits limits)
{
    archive_limit(rig->archive, &limits);
}

/* Set all elements of the vector to `version`. */
static void set(struct rig *rig, uint64_t version)
{
    double x[COUNT];

    for (int i = 0; i < COUNT; i++)
        x[i] = (double)version;
    trib_store_replace(rig->table, 0, x, version, NULL);
}

/* Make a task that writes the vector. The caller frees its bytes. */
static void make_write(struct rig *rig, struct archive_task *task, const uint8_t *owner,
                       const char *user)
{
    struct trib_snapshot_about about = {.lasting = !rig->own_run,
                                        .taken_s = time(NULL) - rig->age_s};
    struct trib_store_image image;

    snprintf(about.job, sizeof(about.job), "%s", rig->job ? rig->job : "job");
    snprintf(about.user, sizeof(about.user), "%s", user);
    memcpy(about.owner, owner, sizeof(about.owner));
    trib_store_image(rig->table, 0, &image);
    *task = (struct archive_task){.writes = true,
                                  .key = {owner, user, "x"},
                                  .n = trib_snapshot_bytes(&image),
                                  .wake_fd = -1};
    task->bytes = malloc(task->n);
    trib_snapshot_copy(&image, &about, NULL, task->bytes);
}

/* Let the archive write the vector; the task reports the result. */
static void save(struct rig *rig, const char *user)
{
    make_write(rig, &rig->task, rig->owner, user);
    archive_give(rig->archive, &rig->task);
    archive_wait(rig->archive, &rig->task);
    assert_true(archive_is_done(rig->archive, &rig->task));
    free(rig->task.bytes);
}

/* Return true if the archive completes a task within the patience of the test. */
static inline bool completes(struct archive *archive, const struct archive_task *task)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!archive_is_done(archive, task) && !trib_deadline_passed(until))
        usleep(1000);
    return archive_is_done(archive, task);
}

/* Return the size of a snapshot on the disk. */
static inline uint64_t one_on_disk(const struct rig *rig)
{
    struct trib_store_image image;

    trib_store_image(rig->table, 0, &image);
    return archive_on_disk(rig->archive, trib_snapshot_bytes(&image));
}

/* Return the loaded version, which each element must have. */
static uint64_t load(struct rig *rig, const char *user)
{
    uint64_t version = UINT64_MAX;
    double x[COUNT];

    rig->task = (struct archive_task){
        .key = {rig->owner, user, "x"}, .wake_fd = -1, .snapshot = &rig->read};
    archive_give(rig->archive, &rig->task);
    archive_wait(rig->archive, &rig->task);
    if (!rig->task.err.status) {
        assert_status(trib_store_put(rig->table, 0, &rig->read.image, NULL, NULL),
                      TRIB_OK);
        (void)trib_store_read(rig->table, &(struct trib_store_range){.count = COUNT},
                              NULL, x);
        version = rig->read.about.version;
        for (int i = 0; i < COUNT; i++)
            assert_true(x[i] == (double)version);
        assert_int_equal(archive_version(rig->archive, &rig->task.key), version + 1);
    }
    free(rig->task.bytes);
    return version;
}

/* Wait until all removed files are deleted. */
static void await_deletions(struct archive *archive)
{
    uint32_t left;

    do {
        pthread_mutex_lock(&archive->mutex);
        left = archive->n_gone;
        pthread_mutex_unlock(&archive->mutex);
    } while (left && usleep(1000) == 0);
}

static inline int files(const struct rig *rig)
{
    DIR *dir = opendir(rig->folder);
    int n = 0;

    if (rig->archive)
        await_deletions(rig->archive);
    rewinddir(dir);

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

#endif
