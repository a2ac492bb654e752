/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of an archive, which write and read its files. */
#include "agg/daemon/archive_parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agg/store/store_snapshot.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/quota.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    WRITE_BYTES = 8 << 20, /* maximum bytes per write or read */
    SYNC_BYTES = 64 << 20, /* bytes between two fsyncs, so that progress is visible */
    EXPIRE_MS = 3600000, /* interval of expiry checks while idle */
};

/* Writing -------------------------------------------------------------------------- */

/* Return true unless the directory's name no longer refers to it. If the name cannot be
 * examined, return true. */
static bool is_attached(const struct archive *a, struct trib_error *err)
{
    struct stat opened, named;

    const bool found = stat(a->folder, &named) == 0;
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return true;
    if (found && fstat(a->folder_fd, &opened) == 0 && opened.st_dev == named.st_dev &&
        opened.st_ino == named.st_ino)
        return true;
    (void)trib_fail(err, TRIB_ERR_SYSTEM,
                    "cannot write snapshots: %.300s is not the directory that tribd "
                    "opened: its file system was unmounted, or another directory has "
                    "its name: mount it again, or restart tribd",
                    a->folder);
    return false;
}

static bool write_all(struct archive *a, int fd, const uint8_t *bytes, uint64_t n)
{
    uint64_t synced = 0;

    assert(bytes && n > 0);
    for (uint64_t at = 0; at < n;) {
        const uint64_t left = n - at;
        const ssize_t done =
            write(fd, bytes + at, left < WRITE_BYTES ? left : WRITE_BYTES);
        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? (uint64_t)done : 0;
        if (at - synced < SYNC_BYTES && at < n)
            continue;
        if (fsync(fd) != 0)
            return false;
        (void)atomic_fetch_add(&a->progress, 1);
        synced = at;
    }
    return true;
}

/* Create the temporary file. A leftover exists if a tribd was killed or could not
 * rename it. */
static int create_part(const struct archive *a, const char *part)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = trib_fd_keep(openat(a->folder_fd, part, flags, 0600));

    if (fd >= 0 || errno != EEXIST || unlinkat(a->folder_fd, part, 0) != 0)
        return fd;
    return trib_fd_keep(openat(a->folder_fd, part, flags, 0600));
}

/* Rename the temporary file over the old one. A file that is not listed is kept. */
static bool place(const struct archive *a, const struct archive_task *task,
                  const char *part, const char *whole)
{
    return task->is_new ? archive_rename(a, part, whole)
                        : renameat(a->folder_fd, part, a->folder_fd, whole) == 0;
}

/*
 * Write a temporary file and rename it over the old one. False: errno or task->err has
 * the reason. *placed_out: renamed, though perhaps not durable.
 */
static bool replace(struct archive *a, struct archive_task *task, const char *part,
                    const char *whole, bool *placed_out)
{
    const int fd = create_part(a, part);

    *placed_out = false;
    if (fd < 0)
        return false;
    *placed_out = write_all(a, fd, task->bytes, task->n) &&
                  is_attached(a, &task->err) && place(a, task, part, whole);
    const int why = errno;
    close(fd);
    if (*placed_out)
        return fsync(a->folder_fd) == 0;
    (void)unlinkat(a->folder_fd, part, 0);
    errno = why;
    return false;
}

/* List the written file. An unlisted file must not stay: the next snapshot of its
 * vector would get another number. */
static void note(struct archive *a, struct archive_task *task)
{
    char name[ARCHIVE_NAME_BYTES];
    struct trib_snapshot read;

    if (trib_snapshot_head(task->bytes, task->n, NULL, &read) != TRIB_OK)
        return;
    pthread_mutex_lock(&a->mutex);
    task->noted = archive_list_written(a, task, &read.about);
    pthread_mutex_unlock(&a->mutex);
    if (task->noted)
        return;
    archive_name_file(name, task->number, "");
    (void)unlinkat(a->folder_fd, name, 0);
    (void)trib_fail(&task->err, TRIB_ERR_NO_MEMORY,
                    "removed the snapshot of vector %s: out of memory to list it",
                    task->key.name);
}

static void say_failed(const struct archive *a, struct archive_task *task, bool placed)
{
    if (placed)
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM,
                        "the snapshot of vector %s is in %.300s, but cannot sync the "
                        "directory: %m; a power loss may restore the previous "
                        "snapshot, if any",
                        task->key.name, a->folder);
    else
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM,
                        "cannot write the snapshot of vector %s to %.300s: %m; the "
                        "previous one, if any, is unchanged",
                        task->key.name, a->folder);
}

/* Take a new number; false: there is none, and task->err has the reason. */
static bool take_number(struct archive *a, struct archive_task *task)
{
    if (a->last_number < ARCHIVE_NUMBER_MAX) {
        task->number = ++a->last_number;
        task->is_new = true;
        return true;
    }
    char name[ARCHIVE_NAME_BYTES];
    archive_name_file(name, a->last_number, "");
    return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                     "no snapshot can follow %.300s/%s, which has the highest "
                     "number: rename that file, and restart tribd",
                     a->folder, name) == TRIB_OK;
}

/* Return the name of the file to write. Numbers of files that are not listed are left
 * out: an operator has copied such a file into the folder, or the file system did not
 * list it at the start. */
static bool name_file(struct archive *a, struct archive_task *task,
                      char out[ARCHIVE_NAME_BYTES])
{
    bool well = true;

    archive_name_file(out, task->number, "");
    while (well && task->is_new && archive_exists(a, out)) {
        trib_log(
            a->log, TRIB_LOG_WARN, "tribd",
            "%.300s/%s exists, but was not there when tribd started: restart tribd "
            "to use this snapshot",
            a->folder, out);
        pthread_mutex_lock(&a->mutex);
        well = take_number(a, task);
        pthread_mutex_unlock(&a->mutex);
        archive_name_file(out, task->number, "");
    }
    return well;
}

/* Return true if the disk is full, perhaps by temporary files of other writes. */
static bool may_fit_alone(const struct archive_task *task)
{
    return task->last && !task->alone && !task->err.status &&
           (errno == ENOSPC || errno == EDQUOT);
}

/* Takes seconds for tens of GiB, in which the disk does not hang. */
static void seal(struct archive *a, const struct archive_task *task)
{
    archive_apart_mt(a, 1);
    (void)atomic_fetch_sub(&a->at_disk, 1);
    trib_snapshot_seal(task->bytes, task->n);
    (void)atomic_fetch_add(&a->at_disk, 1);
    archive_apart_mt(a, -1);
}

static void write_task(struct archive *a, struct archive_task *task)
{
    char part[ARCHIVE_NAME_BYTES], whole[ARCHIVE_NAME_BYTES];
    bool placed;

    assert(task->writes && task->bytes);
    if (!task->admitted || !is_attached(a, &task->err) || !name_file(a, task, whole))
        return;
    archive_name_file(part, task->number, ARCHIVE_PART);
    trib_snapshot_set_number(task->bytes, task->number);
    seal(a, task);
    const bool well = replace(a, task, part, whole, &placed);
    task->again = !well && !placed && may_fit_alone(task);
    if (!well && !task->again && !task->err.status)
        say_failed(a, task, placed);
    if (placed)
        note(a, task);
}

/* Reading -------------------------------------------------------------------------- */

static bool read_all(struct archive *a, int fd, uint8_t *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        const uint64_t left = n - at;
        const ssize_t done =
            pread(fd, bytes + at, left < WRITE_BYTES ? left : WRITE_BYTES, (off_t)at);
        if (done == 0)
            errno = EIO; /* the file was truncated */
        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
        at += done > 0 ? (uint64_t)done : 0;
        (void)atomic_fetch_add(&a->progress, 1);
    }
    return true;
}

trib_status_t archive_make_room(struct archive_task *task, uint64_t n, const char *what,
                                struct trib_error *err)
{
    assert(n > 0 && !task->bytes);
    if (trib_quota_take_mt(task->quota, n))
        return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                         "vector %s: %s needs %" PRIu64
                         " bytes, more than the job, its "
                         "user or the service has left",
                         task->key.name, what, n);
    task->bytes = malloc(n);
    task->n = n;
    if (task->bytes)
        return TRIB_OK;
    trib_quota_give_mt(task->quota, n);
    return trib_fail(err, TRIB_ERR_NO_MEMORY,
                     "vector %s: out of memory on the host for %s", task->key.name,
                     what);
}

/* Read a whole file and validate it. */
static void read_file(struct archive *a, struct archive_task *task, const char *name)
{
    struct trib_error fault = {0};
    uint64_t bytes;
    const int fd = archive_open_file(a, name, &fault, &bytes);

    if (fd < 0) {
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM, "%.300s/%s: %s", a->folder, name,
                        trib_error_text(&fault));
        return;
    }
    if (archive_make_room(task, bytes + 1, "restoring it", &task->err) != TRIB_OK) {
        close(fd);
        return;
    }
    if (!read_all(a, fd, task->bytes, task->n - 1))
        (void)trib_fail(&task->err, TRIB_ERR_SYSTEM, "%.300s/%s: %m", a->folder, name);
    else if (trib_snapshot_read(task->bytes, task->n - 1, &fault, task->snapshot))
        (void)trib_fail(&task->err, TRIB_ERR_MISMATCH,
                        "cannot use the snapshot of vector %s, %.200s/%s: %s; restore "
                        "a rank's copy, or replace the file",
                        task->key.name, a->folder, name, trib_error_text(&fault));
    else if (!archive_is_of(&(struct archive_file){.about = task->snapshot->about},
                            &task->key))
        (void)trib_fail(&task->err, TRIB_ERR_MISMATCH,
                        "the snapshot of vector %s, %.200s/%s, was replaced by one of "
                        "another vector",
                        task->key.name, a->folder, name);
    close(fd);
}

static void read_task(struct archive *a, struct archive_task *task)
{
    char name[ARCHIVE_NAME_BYTES] = "";

    assert(!task->writes && task->snapshot);
    pthread_mutex_lock(&a->mutex);
    const struct archive_file *f = archive_find(a, &task->key);
    if (f)
        archive_name_file(name, f->number, "");
    pthread_mutex_unlock(&a->mutex);
    if (!name[0]) {
        (void)trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                        "no snapshot of vector %s with this key and user in %.300s: "
                        "restore a rank's copy",
                        task->key.name, a->folder);
        return;
    }
    read_file(a, task, name);
}

/* The threads ---------------------------------------------------------------------- */

/* Choose the number of the replaced file, or a new number, if there is room. A thread
 * does not wait for room: a user whose files are being deleted would occupy all. */
static void admit(struct archive *a, struct archive_task *task)
{
    const struct archive_file *f = archive_find(a, &task->key);

    if (archive_check_room(a, task) != TRIB_OK || (!f && !take_number(a, task)))
        return;
    if (f)
        task->number = f->number;
    task->admitted = true;
}

/* Measure the free space, or delete a file; return false if there is nothing to do, or
 * another thread does it: a disk that hangs there must not stop all threads. */
static bool do_chore(struct archive *a)
{
    if (a->chore)
        return false;
    a->chore = true;
    (void)atomic_fetch_add(&a->at_disk, 1);
    const bool did = archive_measure(a) || archive_delete_one(a);
    (void)atomic_fetch_sub(&a->at_disk, 1);
    a->chore = false;
    if (did)
        pthread_cond_broadcast(&a->wake);
    return did;
}

static bool must_stay(const struct archive *a)
{
    return !a->stop || a->first || archive_has_deletions(a);
}

/* Wait for a task. Snapshots expire while idle. A file is deleted before each task:
 * there may always be another one. */
static bool wait_for_task(struct archive_thread *t)
{
    struct archive *a = t->archive;
    bool did = do_chore(a);

    while (!(t->task = archive_take_turn(a)) && must_stay(a)) {
        const int ms = a->n_gone ? ARCHIVE_RETRY_MS : EXPIRE_MS;
        if (!did && !trib_cond_wait(&a->wake, &a->mutex, trib_deadline_ms(ms)))
            archive_expire(a);
        did = do_chore(a);
    }
    if (t->task && t->task->writes)
        admit(a, t->task);
    return t->task;
}

/* Free all but the head of a written copy here: for tens of GiB this takes seconds, too
 * long for the thread that serves the ranks of the store. */
static void shrink(struct archive_task *task)
{
    uint8_t *head = realloc(task->bytes, TRIB_SNAPSHOT_HEAD_BYTES);

    assert(task->writes && task->n >= TRIB_SNAPSHOT_HEAD_BYTES);
    if (head)
        task->bytes = head;
}

static void work(struct archive *a, struct archive_task *task)
{
    const uint64_t began_ns = trib_now_ns();

    assert(!task->done);
    (void)atomic_fetch_add(&a->at_disk, 1);
    if (task->writes)
        write_task(a, task);
    else
        read_task(a, task);
    (void)atomic_fetch_sub(&a->at_disk, 1);
    (void)atomic_fetch_add(&a->progress, task->admitted); /* also if it was refused */
    if (task->again)
        return;
    if (task->writes && task->err.status)
        archive_failed_mt(a);
    if (task->writes)
        shrink(task);
    task->took_ns = trib_now_ns() - began_ns;
}

/* Its owner may free the task from now on. */
static void complete(struct archive *a, struct archive_task *task)
{
    const uint64_t one = 1;

    task->done = true;
    (void)!write(task->wake_fd, &one, sizeof(one));
    pthread_cond_broadcast(&a->ended);
}

/* Its file is the next one to be written, alone. */
static void requeue(struct archive *a, struct archive_task *task)
{
    assert(task->again && !task->alone);
    task->alone = true;
    task->again = task->admitted = task->is_new = false;
    task->next = a->first;
    a->first = task;
    a->last = a->last ? a->last : task;
}

void *archive_serve(void *arg)
{
    struct archive_thread *t = arg;
    struct archive *a = t->archive;

    trib_thread_give_way();
    pthread_mutex_lock(&a->mutex);
    while (wait_for_task(t)) {
        struct archive_task *task = t->task;
        pthread_mutex_unlock(&a->mutex);
        work(a, task);
        pthread_mutex_lock(&a->mutex);
        archive_expire(a);
        t->task = NULL;
        if (task->again)
            requeue(a, task);
        else
            complete(a, task);
        pthread_cond_broadcast(&a->wake);
    }
    a->n_running--;
    pthread_cond_broadcast(&a->ended);
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

static void enqueue(struct archive *a, struct archive_task *task)
{
    trib_error_clear(&task->err);
    task->done = task->noted = task->admitted = task->is_new = false;
    task->removal = 0;
    task->next = NULL;
    *(a->last ? &a->last->next : &a->first) = task;
    a->last = task;
}

void archive_prepare(struct archive *a, struct archive_task *task)
{
    assert(task->writes);
    pthread_mutex_lock(&a->mutex);
    enqueue(a, task);
    task->prepared = true;
    pthread_mutex_unlock(&a->mutex);
}

void archive_give(struct archive *a, struct archive_task *task)
{
    assert(!task->writes || task->bytes);
    pthread_mutex_lock(&a->mutex);
    if (!task->prepared)
        enqueue(a, task);
    task->prepared = false;
    pthread_cond_broadcast(&a->wake);
    pthread_mutex_unlock(&a->mutex);
}

void archive_discard(struct archive *a, struct archive_task *task)
{
    pthread_mutex_lock(&a->mutex);
    if (task->prepared)
        archive_dequeue(a, task);
    task->prepared = false;
    (void)trib_fail(&task->err, TRIB_ERR_ABORTED,
                    "discarded the snapshot of vector %s: its store was ended",
                    task->key.name);
    complete(a, task);
    pthread_cond_broadcast(&a->wake); /* another task of the snapshot may have waited */
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
