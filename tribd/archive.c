/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/archive_parts.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agg/store/store_snapshot.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/quota.h"
#include "base/text.h"
#include "base/wait.h"


enum {
    WRITE_BYTES = 8 << 20, /* most bytes of one write */
};

/* Writing -------------------------------------------------------------------------- */

/* The number of the file that is replaced, or of a new one. */
static trib_status_t choose_number(struct archive *a, struct archive_task *task,
                                   uint64_t *out)
{
    pthread_mutex_lock(&a->mutex);
    const struct archive_file *f = archive_find(a, &task->key);
    const trib_status_t st = archive_check_room(a, task->key.user, task->n, &task->err);
    *out = f ? f->number : a->last_number + 1;
    if (st == TRIB_OK && !f)
        a->last_number++;
    pthread_mutex_unlock(&a->mutex);
    return st;
}

static bool write_all(int fd, const uint8_t *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        const uint64_t left = n - at;
        const ssize_t done =
            write(fd, bytes + at, left < WRITE_BYTES ? left : WRITE_BYTES);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? (uint64_t)done : 0;
    }
    return fsync(fd) == 0;
}

/* Writes beside the old file, and puts the new one in its place. */
static bool replace(const struct archive *a, const struct archive_task *task,
                    const char *part, const char *whole)
{
    const int fd = trib_fd_keep(
        openat(a->folder_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));

    if (fd < 0)
        return false;
    const bool well = write_all(fd, task->bytes, task->n) &&
                      renameat(a->folder_fd, part, a->folder_fd, whole) == 0;
    const int why = errno;
    close(fd);
    if (well)
        return fsync(a->folder_fd) == 0;
    (void)unlinkat(a->folder_fd, part, 0);
    errno = why;
    return false;
}

/* Notes the file that has been written. */
static void note(struct archive *a, const struct archive_task *task, uint64_t number)
{
    struct trib_snapshot read;

    if (trib_snapshot_head(task->bytes, task->n, NULL, &read) != TRIB_OK)
        return;
    pthread_mutex_lock(&a->mutex);
    struct archive_file *f = archive_find(a, &task->key);
    f = f ? f : archive_append(a);
    if (f)
        *f = (struct archive_file){number, task->n, read.about};
    pthread_mutex_unlock(&a->mutex);
}

static void write_task(struct archive *a, struct archive_task *task)
{
    char part[ARCHIVE_NAME_BYTES], whole[ARCHIVE_NAME_BYTES];
    uint64_t number;

    if (choose_number(a, task, &number) != TRIB_OK)
        return;
    archive_name_file(part, number, ARCHIVE_PART);
    archive_name_file(whole, number, "");
    trib_snapshot_seal(task->bytes, task->n);
    if (replace(a, task, part, whole))
        note(a, task, number);
    else
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM,
                        "the snapshot of vector %s cannot be written to %.300s: %m; "
                        "the one before, if any, is as it was",
                        task->key.name, a->folder);
}

/* Reading -------------------------------------------------------------------------- */

static bool read_all(int fd, uint8_t *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        const ssize_t done = pread(fd, bytes + at, n - at, (off_t)at);
        if (done == 0)
            errno = EIO; /* it has become shorter */
        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
        at += done > 0 ? (uint64_t)done : 0;
    }
    return true;
}

static trib_status_t take_memory(struct archive_task *task, uint64_t n)
{
    if (task->quota && trib_quota_take_mt(task->quota, n))
        return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                         "vector %s: %" PRIu64
                         " bytes to restore it are more memory than the job, its user "
                         "or the service has left",
                         task->key.name, n);
    task->bytes = malloc(n);
    if (task->bytes) {
        task->n = n;
        return TRIB_OK;
    }
    if (task->quota)
        trib_quota_give_mt(task->quota, n);
    return trib_fail(&task->err, TRIB_ERR_NO_MEMORY,
                     "the host has no memory for %" PRIu64 " bytes", n);
}

/* Reads a file whole, and checks it. */
static void read_file(const struct archive *a, struct archive_task *task, int fd,
                      const char *name)
{
    struct trib_error fault = {0};
    struct stat s;

    if (fd < 0 || fstat(fd, &s) != 0) {
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM, "%.300s/%s: %m", a->folder, name);
        return;
    }
    if (take_memory(task, (uint64_t)s.st_size + 1) != TRIB_OK)
        return;
    if (!read_all(fd, task->bytes, task->n - 1))
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM, "%.300s/%s: %m", a->folder, name);
    else if (trib_snapshot_read(task->bytes, task->n - 1, &fault, task->snapshot))
        (void)trib_fail(&task->err, TRIB_ERR_MISMATCH,
                        "the snapshot of vector %s, %.200s/%s, is not used: %s; "
                        "restore a rank's copy, or put a good file there",
                        task->key.name, a->folder, name, trib_error_text(&fault));
    else if (!archive_is_of(&(struct archive_file){.about = task->snapshot->about},
                            &task->key))
        (void)trib_fail(&task->err, TRIB_ERR_MISMATCH,
                        "the snapshot of vector %s, %.200s/%s, is now of another one",
                        task->key.name, a->folder, name);
}

static void read_task(struct archive *a, struct archive_task *task)
{
    char name[ARCHIVE_NAME_BYTES] = "";

    pthread_mutex_lock(&a->mutex);
    const struct archive_file *f = archive_find(a, &task->key);
    if (f)
        archive_name_file(name, f->number, "");
    pthread_mutex_unlock(&a->mutex);
    if (!name[0]) {
        (void)trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                        "there is no snapshot of vector %s with this key and user in "
                        "%.300s: restore a rank's copy",
                        task->key.name, a->folder);
        return;
    }
    const int fd =
        trib_fd_keep(openat(a->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    read_file(a, task, fd, name);
    if (fd >= 0)
        close(fd);
}

/* The thread ----------------------------------------------------------------------- */

static struct archive_task *wait_for_task(struct archive *a)
{
    while (!a->first && !a->stop)
        pthread_cond_wait(&a->wake, &a->mutex);
    struct archive_task *task = a->first;
    if (!task)
        return NULL;
    a->first = task->next;
    if (!a->first)
        a->last = NULL;
    return task;
}

static void *run(void *arg)
{
    struct archive *a = arg;
    const uint64_t one = 1;
    struct archive_task *task;

    trib_thread_give_way();
    pthread_mutex_lock(&a->mutex);
    while ((task = wait_for_task(a))) {
        pthread_mutex_unlock(&a->mutex);
        if (task->writes)
            write_task(a, task);
        else
            read_task(a, task);
        pthread_mutex_lock(&a->mutex);
        archive_expire(a);
        task->done = true;
        (void)!write(task->wake_fd, &one, sizeof(one));
        pthread_cond_broadcast(&a->ended);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

void archive_give(struct archive *a, struct archive_task *task)
{
    pthread_mutex_lock(&a->mutex);
    trib_error_clear(&task->err);
    task->done = false;
    task->next = NULL;
    *(a->last ? &a->last->next : &a->first) = task;
    a->last = task;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->mutex);
}

bool archive_is_done(struct archive *a, const struct archive_task *task)
{
    pthread_mutex_lock(&a->mutex);
    const bool done = task->done;
    pthread_mutex_unlock(&a->mutex);
    return done;
}

void archive_wait(struct archive *a, const struct archive_task *task)
{
    pthread_mutex_lock(&a->mutex);
    while (!task->done)
        pthread_cond_wait(&a->ended, &a->mutex);
    pthread_mutex_unlock(&a->mutex);
}

/* Opening -------------------------------------------------------------------------- */

/* Takes one file of the folder into the list; one that is no good is named. */
static void look_at(struct archive *a, const char *name)
{
    uint8_t head[TRIB_SNAPSHOT_HEAD_BYTES] = {0};
    struct trib_error fault = {0};
    struct trib_snapshot read;
    char *end, plain[ARCHIVE_NAME_BYTES];
    struct stat s;

    const uint64_t number = strtoull(name, &end, 16);
    archive_name_file(plain, number, "");
    const int fd =
        trib_fd_keep(openat(a->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const bool opened = fd >= 0 && fstat(fd, &s) == 0;
    const uint64_t bytes = opened ? (uint64_t)s.st_size : 0;
    if (opened && pread(fd, head, sizeof(head), 0) < 0)
        (void)trib_fail(&fault, TRIB_ERR_SYSTEM, "it cannot be read: %m");
    else if (!opened)
        (void)trib_fail(&fault, TRIB_ERR_SYSTEM, "it cannot be opened: %m");
    else if (strcmp(plain, name))
        (void)trib_fail(&fault, TRIB_ERR_MISMATCH, "it has no name of a snapshot");
    else
        (void)trib_snapshot_head(head, bytes, &fault, &read);
    if (fd >= 0)
        close(fd);
    a->last_number = number > a->last_number ? number : a->last_number;
    struct archive_file *f = fault.status ? NULL : archive_append(a);
    if (f)
        *f = (struct archive_file){number, bytes, read.about};
    else
        a->other_bytes += bytes;
    if (fault.status)
        trib_log(a->log, TRIB_LOG_WARN, "tribd",
                 "%.300s/%s is not used: %s; remove it, or put a good one there",
                 a->folder, name, trib_error_text(&fault));
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

/* Of a tribd that was killed, files that were not complete are removed. */
static trib_status_t look_around(struct archive *a, struct trib_error *err)
{
    const int fd = trib_fd_keep(dup(a->folder_fd));
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return trib_fail(err, TRIB_ERR_CONFIG, "snapshots: %.300s: %m", a->folder);
    for (struct dirent *e; (e = readdir(dir));) {
        if (ends_with(e->d_name, ARCHIVE_SUFFIX ARCHIVE_PART))
            (void)unlinkat(a->folder_fd, e->d_name, 0);
        else if (ends_with(e->d_name, ARCHIVE_SUFFIX))
            look_at(a, e->d_name);
    }
    closedir(dir);
    return TRIB_OK;
}

static void dispose(struct archive *a)
{
    if (a->folder_fd >= 0)
        close(a->folder_fd);
    pthread_cond_destroy(&a->ended);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->mutex);
    free(a->users);
    free(a->files);
    free(a);
}

trib_status_t archive_open(const char *folder, uint64_t disk, uint64_t user_disk,
                           const struct trib_log *log, struct trib_error *err,
                           struct archive **out)
{
    struct archive *a = calloc(1, sizeof(*a));

    *out = NULL;
    if (!a)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for snapshots");
    a->log = log;
    snprintf(a->folder, sizeof(a->folder), "%s", folder);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->wake, NULL);
    pthread_cond_init(&a->ended, NULL);
    a->folder_fd = trib_fd_keep(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    trib_status_t st = TRIB_OK;
    if (a->folder_fd >= 0 && flock(a->folder_fd, LOCK_EX | LOCK_NB) != 0)
        st = trib_fail(err, TRIB_ERR_CONFIG,
                       "snapshots: another tribd uses %.300s: give each its own folder",
                       folder);
    else if (a->folder_fd < 0 || faccessat(a->folder_fd, ".", R_OK | W_OK | X_OK, 0))
        st = trib_fail(err, TRIB_ERR_CONFIG,
                       "snapshots: %.300s: %m; make that folder, which tribd alone "
                       "may read and write",
                       folder);
    if (st == TRIB_OK)
        st = look_around(a, err);
    if (st == TRIB_OK) {
        archive_expire(a);
        archive_limit(a, disk, user_disk);
        errno = trib_thread_start(&a->thread, run, a);
        if (errno)
            st = trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
    }
    if (st != TRIB_OK) {
        dispose(a);
        return st;
    }
    *out = a;
    return TRIB_OK;
}

void archive_close(struct archive *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->mutex);
    a->stop = true;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    assert(!a->first);
    dispose(a);
}
