/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/archive.h"

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

#define SUFFIX ".snapshot"
#define PART ".part"

enum {
    NAME_BYTES = 40, /* "0000000000000007.snapshot.part" */
    WRITE_BYTES = 8 << 20, /* most bytes of one write */
};

/* A file that was found whole, or was written here. */
struct file {
    uint64_t number; /* its name */
    uint64_t bytes;
    struct trib_snapshot_about about;
};

struct archive {
    int folder_fd;
    char folder[512];
    const struct trib_log *log;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a task was given */
    pthread_cond_t ended; /* a task is done */

    /* under mutex */
    uint64_t disk, user_disk;
    struct file *files; /* [room] */
    uint32_t n, room;
    uint64_t last_number;
    uint64_t other_bytes; /* of files that are not in the list */
    struct archive_task *first, *last;
    bool stop;
};

static void name_file(char out[NAME_BYTES], uint64_t number, const char *more)
{
    snprintf(out, NAME_BYTES, "%016" PRIx64 SUFFIX "%s", number, more);
}

/* The list, under mutex ------------------------------------------------------------ */

static bool is_of(const struct file *f, const struct archive_key *key)
{
    return memcmp(f->about.owner, key->owner, TRIB_SNAPSHOT_OWNER_BYTES) == 0 &&
           strcmp(f->about.user, key->user) == 0 &&
           (!key->name || strcmp(f->about.name, key->name) == 0);
}

static struct file *find(const struct archive *a, const struct archive_key *key)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (is_of(&a->files[i], key))
            return &a->files[i];
    return NULL;
}

/* A place at the end of the list; NULL: no memory. */
static struct file *append(struct archive *a)
{
    const uint32_t room = a->room ? 2 * a->room : 16;

    if (a->n == a->room) {
        struct file *more = realloc(a->files, room * sizeof(*more));
        if (!more)
            return NULL;
        a->files = more;
        a->room = room;
    }
    a->files[a->n] = (struct file){0};
    return &a->files[a->n++];
}

static void remove_file(struct archive *a, uint32_t i)
{
    char name[NAME_BYTES];

    name_file(name, a->files[i].number, "");
    (void)unlinkat(a->folder_fd, name, 0);
    a->files[i] = a->files[--a->n];
}

/* Writing -------------------------------------------------------------------------- */

static trib_status_t check_room(const struct archive *a, const char *user, uint64_t n,
                                struct trib_error *err)
{
    uint64_t all = a->other_bytes, own = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        all += a->files[i].bytes;
        own += strcmp(a->files[i].about.user, user) ? 0 : a->files[i].bytes;
    }
    if (n <= a->disk && all <= a->disk - n &&
        (!a->user_disk || (n <= a->user_disk && own <= a->user_disk - n)))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_RESOURCE,
                     "a snapshot of %" PRIu64 " bytes beside the %" PRIu64
                     " that there are (%" PRIu64
                     " of this user) is more than tribd's settings disk and user_disk "
                     "allow: tribctl snapshots shows them, tribctl forget removes some",
                     n, all, own);
}

/* The number of the file that is replaced, or of a new one. */
static trib_status_t choose_number(struct archive *a, struct archive_task *task,
                                   uint64_t *out)
{
    pthread_mutex_lock(&a->mutex);
    const struct file *f = find(a, &task->key);
    const trib_status_t st = check_room(a, task->key.user, task->n, &task->err);
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
    struct file *f = find(a, &task->key);
    f = f ? f : append(a);
    if (f)
        *f = (struct file){number, task->n, read.about};
    pthread_mutex_unlock(&a->mutex);
}

static void write_task(struct archive *a, struct archive_task *task)
{
    char part[NAME_BYTES], whole[NAME_BYTES];
    uint64_t number;

    if (choose_number(a, task, &number) != TRIB_OK)
        return;
    name_file(part, number, PART);
    name_file(whole, number, "");
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
    else if (!is_of(&(struct file){.about = task->snapshot->about}, &task->key))
        (void)trib_fail(&task->err, TRIB_ERR_MISMATCH,
                        "the snapshot of vector %s, %.200s/%s, is now of another one",
                        task->key.name, a->folder, name);
}

static void read_task(struct archive *a, struct archive_task *task)
{
    char name[NAME_BYTES] = "";

    pthread_mutex_lock(&a->mutex);
    const struct file *f = find(a, &task->key);
    if (f)
        name_file(name, f->number, "");
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
        task->done = true;
        (void)!write(task->wake_fd, &one, sizeof(one));
        pthread_cond_broadcast(&a->ended);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

void archive_give(struct archive *a, struct archive_task *task)
{
    trib_error_clear(&task->err);
    task->done = false;
    task->next = NULL;
    pthread_mutex_lock(&a->mutex);
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

/* Questions ------------------------------------------------------------------------ */

void archive_limit(struct archive *a, uint64_t disk, uint64_t user_disk)
{
    struct statvfs s;

    pthread_mutex_lock(&a->mutex);
    uint64_t held = a->other_bytes;
    for (uint32_t i = 0; i < a->n; i++)
        held += a->files[i].bytes;
    if (!disk && fstatvfs(a->folder_fd, &s) == 0)
        disk = held + (uint64_t)s.f_bavail * s.f_frsize / 2;
    a->disk = disk;
    a->user_disk = user_disk;
    pthread_mutex_unlock(&a->mutex);
}

uint64_t archive_version(struct archive *a, const struct archive_key *key)
{
    pthread_mutex_lock(&a->mutex);
    const struct file *f = find(a, key);
    const uint64_t version = f ? f->about.version + 1 : 0;
    pthread_mutex_unlock(&a->mutex);
    return version;
}

void archive_describe(struct archive *a, const struct archive_key *key, char *text,
                      size_t bytes)
{
    uint32_t n = 0, left_out = 0;

    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct trib_snapshot_about *about = &a->files[i].about;
        if (!is_of(&a->files[i], key))
            continue;
        if (strlen(text) + strlen(about->name) + 80 < bytes)
            (void)trib_text_append(text, bytes, "%s%s version %" PRIu64,
                                   n++ ? ", " : "; its snapshots: ", about->name,
                                   about->version);
        else
            left_out++;
    }
    if (left_out)
        (void)trib_text_append(text, bytes, " and %" PRIu32 " more", left_out);
    if (!n)
        (void)trib_text_append(text, bytes, "; it has no snapshots");
    pthread_mutex_unlock(&a->mutex);
}

void archive_drop(struct archive *a, const struct archive_key *key)
{
    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = a->n; i-- > 0;)
        if (is_of(&a->files[i], key))
            remove_file(a, i);
    pthread_mutex_unlock(&a->mutex);
}

bool archive_forget(struct archive *a, const char *what, char *say, size_t bytes)
{
    const size_t n = strcspn(what, " ");
    const char *vector = what + n + strspn(what + n, " ");
    uint32_t removed = 0;

    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = a->n; i-- > 0;) {
        const struct trib_snapshot_about *about = &a->files[i].about;
        if (strlen(about->job) != n || strncmp(about->job, what, n) ||
            (vector[0] && strcmp(about->name, vector)))
            continue;
        remove_file(a, i);
        removed++;
    }
    pthread_mutex_unlock(&a->mutex);
    if (removed)
        snprintf(say, bytes, "%" PRIu32 " snapshot%s removed", removed,
                 removed == 1 ? " is" : "s are");
    else
        snprintf(say, bytes, "there is no snapshot of job %.64s%s%.64s", what,
                 vector[0] ? ", vector " : "", vector);
    return removed;
}

void archive_view(struct archive *a, struct trib_snapshots_view *out)
{
    const int64_t now_s = time(NULL);

    pthread_mutex_lock(&a->mutex);
    *out = (struct trib_snapshots_view){.known = true,
                                        .bytes = a->other_bytes,
                                        .disk_bytes = a->disk,
                                        .rows = calloc(a->n + 1, sizeof(*out->rows))};
    for (uint32_t i = 0; i < a->n; i++) {
        const struct trib_snapshot_about *about = &a->files[i].about;
        const int64_t age = now_s - about->taken_s;
        out->bytes += a->files[i].bytes;
        out->n++;
        if (!out->rows)
            continue;
        struct trib_snapshot_row *row = &out->rows[out->n_rows++];
        *row = (struct trib_snapshot_row){.version = about->version,
                                          .bytes = a->files[i].bytes,
                                          .age_s = age > 0 ? (uint64_t)age : 0};
        snprintf(row->job, sizeof(row->job), "%.64s", about->job);
        snprintf(row->user, sizeof(row->user), "%.64s", about->user);
        snprintf(row->name, sizeof(row->name), "%.64s", about->name);
    }
    pthread_mutex_unlock(&a->mutex);
}

/* Opening -------------------------------------------------------------------------- */

/* Takes one file of the folder into the list; one that is no good is named. */
static void look_at(struct archive *a, const char *name)
{
    uint8_t head[TRIB_SNAPSHOT_HEAD_BYTES] = {0};
    struct trib_error fault = {0};
    struct trib_snapshot read;
    char *end, plain[NAME_BYTES];
    struct stat s;

    const uint64_t number = strtoull(name, &end, 16);
    name_file(plain, number, "");
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
    struct file *f = fault.status ? NULL : append(a);
    if (f)
        *f = (struct file){number, bytes, read.about};
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
        if (ends_with(e->d_name, SUFFIX PART))
            (void)unlinkat(a->folder_fd, e->d_name, 0);
        else if (ends_with(e->d_name, SUFFIX))
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
