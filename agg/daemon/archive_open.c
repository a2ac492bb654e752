/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the directory of snapshots and its files, which no other user may be able to
 * change. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agg/daemon/archive_parts.h"
#include "agg/store/store_snapshot.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    ASIDE_MOST = 100, /* files set aside with one number */
    STOP_TICK_MS = 100, /* interval of checks of the progress of ending threads */
    STOP_SAY_MS = 2000, /* time without progress before a warning */
};

/* Files ---------------------------------------------------------------------------- */

/* Read the head of a file with a snapshot name. */
static void read_head(const struct archive *a, const char *name, uint64_t *bytes_out,
                      struct trib_error *fault, struct trib_snapshot *out)
{
    uint8_t head[TRIB_SNAPSHOT_HEAD_BYTES] = {0};
    const int fd = archive_open_file(a, name, fault, bytes_out);

    if (fd < 0)
        return;
    if (pread(fd, head, sizeof(head), 0) < 0)
        (void)trib_fail(fault, TRIB_ERR_SYSTEM, "cannot read it: %m");
    else
        (void)trib_snapshot_head(head, *bytes_out, fault, out);
    close(fd);
}

/* Add one file to the list; log it if it is invalid. */
static void check_file(struct archive *a, const char *name)
{
    struct trib_error fault = {0};
    struct trib_snapshot read;
    char *end, plain[ARCHIVE_NAME_BYTES];
    uint64_t bytes = 0;

    const uint64_t number = strtoull(name, &end, 16);
    archive_name_file(plain, number, "");
    const bool named = strcmp(plain, name) == 0 && number <= ARCHIVE_NUMBER_MAX;
    if (named)
        read_head(a, name, &bytes, &fault, &read);
    else
        (void)trib_fail(&fault, TRIB_ERR_MISMATCH, "it has no valid snapshot name");
    if (named && number > a->last_number)
        a->last_number = number;
    struct archive_file *f = fault.status ? NULL : archive_append(a);
    if (f)
        *f = (struct archive_file){number, bytes, trib_now_ns(), read.about};
    a->n_other += !f;
    a->other_bytes += f ? 0 : archive_on_disk(a, bytes);
    if (fault.status)
        trib_log(a->log, TRIB_LOG_WARN, "tribd",
                 "ignoring %.300s/%s: %s; remove it, or replace it by a valid file",
                 a->folder, name, trib_error_text(&fault));
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

/* Do not give its number to another file: an operator may rename it back. */
static void skip_number(struct archive *a, const char *name)
{
    static const char older[] = ARCHIVE_SUFFIX ARCHIVE_OLDER;
    char *end;
    const uint64_t number = strtoull(name, &end, 16);

    if (strncmp(end, older, sizeof(older) - 1) == 0 && number > a->last_number &&
        number < ARCHIVE_NUMBER_MAX)
        a->last_number = number;
}

/* Scan the directory. Remove temporary files of a killed tribd. A file that is not seen
 * would be overwritten by a new one with its number. */
static trib_status_t read_files(struct archive *a, struct trib_error *err)
{
    const int fd = trib_fd_keep(dup(a->folder_fd));
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return trib_fail(err, TRIB_ERR_CONFIG, "snapshots: %.300s: %m", a->folder);
    while (errno = 0, (e = readdir(dir))) {
        if (ends_with(e->d_name, ARCHIVE_SUFFIX ARCHIVE_PART))
            (void)unlinkat(a->folder_fd, e->d_name, 0);
        else if (ends_with(e->d_name, ARCHIVE_SUFFIX))
            check_file(a, e->d_name);
        else
            skip_number(a, e->d_name);
    }
    const trib_status_t st =
        errno ? trib_fail(err, TRIB_ERR_CONFIG,
                          "snapshots: cannot list the files of %.300s: %m; check its "
                          "file system",
                          a->folder)
              : TRIB_OK;
    closedir(dir);
    return st;
}

/* Vectors with two files ----------------------------------------------------------- */

/* Return true if this folder gave the file its number. Of these the highest is newest:
 * a vector gets a new number only if its earlier files were removed, though perhaps not
 * deleted, or could not be read. An operator may copy others into the folder. */
static bool is_numbered(const struct archive_file *f)
{
    return f->number > 0 && f->about.number == f->number;
}

/* Order by vector; numbered files first, newest first. */
static int compare_files(const void *left, const void *right)
{
    const struct archive_file *x = left, *y = right;
    int order = memcmp(x->about.owner, y->about.owner, TRIB_SNAPSHOT_OWNER_BYTES);

    order = order ? order : strcmp(x->about.user, y->about.user);
    order = order ? order : strcmp(x->about.name, y->about.name);
    if (order)
        return order;
    if (is_numbered(x) != is_numbered(y))
        return is_numbered(x) ? -1 : 1;
    if (!is_numbered(x) && x->about.version != y->about.version)
        return x->about.version < y->about.version ? 1 : -1;
    return x->number < y->number ? 1 : -1;
}

/* Rename a file to "<name>.older", or, if files were set aside with its number before,
 * to "<name>.older.1" and so on. */
static bool rename_aside(const struct archive *a, uint64_t number,
                         char aside[ARCHIVE_NAME_BYTES])
{
    char name[ARCHIVE_NAME_BYTES], more[ARCHIVE_NAME_BYTES] = ARCHIVE_OLDER;
    bool done = false;

    archive_name_file(name, number, "");
    for (int i = 1; !done && i <= ASIDE_MOST; i++) {
        archive_name_file(aside, number, more);
        done = archive_rename(a, name, aside);
        if (!done && errno != EEXIST)
            return false;
        snprintf(more, sizeof(more), "%s.%d", ARCHIVE_OLDER, i);
    }
    return done;
}

/* Rename a file so that later starts ignore it: they would use it if the newer one was
 * removed. */
static void set_aside(struct archive *a, const struct archive_file *f, uint64_t newer)
{
    char aside[ARCHIVE_NAME_BYTES];

    if (!rename_aside(a, f->number, aside)) {
        archive_name_file(aside, f->number, "");
        a->n_other++;
        a->other_bytes += archive_on_disk(a, f->bytes);
    }
    trib_log(a->log, TRIB_LOG_WARN, "tribd",
             "ignoring %.300s/%s: it has version %" PRIu64 " of vector %s of job %s, "
             "another file has version %" PRIu64 "; remove it when no longer needed",
             a->folder, aside, f->about.version, f->about.name, f->about.job, newer);
}

/* Return true if a file is newer than the newest one before it in the order. */
static bool is_newer(const struct archive_file *f, const struct archive_file *newest)
{
    return !is_numbered(f) && f->about.version > newest->about.version;
}

/* If a vector has several files, keep the newest one. If one of them was not numbered
 * here, the version decides. */
static void keep_newest(struct archive *a)
{
    uint32_t n = 0;

    if (a->n)
        qsort(a->files, a->n, sizeof(*a->files), compare_files);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct archive_file f = a->files[i];
        struct archive_file *last = n ? &a->files[n - 1] : NULL;
        if (!last || !archive_is_of(&f, &(struct archive_key){last->about.owner,
                                                              last->about.user,
                                                              last->about.name})) {
            a->files[n++] = f;
        } else if (is_newer(&f, last)) {
            set_aside(a, last, f.about.version);
            *last = f;
        } else {
            set_aside(a, &f, last->about.version);
        }
    }
    a->n = n;
}

/* The directory -------------------------------------------------------------------- */

/* Check the descriptor, not the name, as for the key file. */
static trib_status_t check_folder(struct archive *a, struct trib_error *err)
{
    struct stat s;

    if (fstat(a->folder_fd, &s) != 0)
        return trib_fail(err, TRIB_ERR_CONFIG, "snapshots: %.300s: %m", a->folder);
    if (s.st_uid != geteuid() && s.st_uid != 0)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "snapshots: %.300s is owned by user %u, but must be owned by "
                         "this process's user %u or by root, so that no other user can "
                         "change its contents",
                         a->folder, (unsigned)s.st_uid, (unsigned)geteuid());
    if (s.st_mode & 022)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "snapshots: %.300s has mode %04o: only its owner may write "
                         "there (chmod 700 %.300s)",
                         a->folder, (unsigned)(s.st_mode & 07777), a->folder);
    if (flock(a->folder_fd, LOCK_EX | LOCK_NB) != 0)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "snapshots: another tribd uses %.300s: use separate "
                         "directories",
                         a->folder);
    return TRIB_OK;
}

static trib_status_t open_folder(struct archive *a, struct trib_error *err)
{
    struct statvfs s;

    a->folder_fd = trib_fd_keep(open(a->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (a->folder_fd < 0 || faccessat(a->folder_fd, ".", R_OK | W_OK | X_OK, 0))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "snapshots: %.300s: %m; create the directory, readable and "
                         "writable only by tribd",
                         a->folder);
    a->block = fstatvfs(a->folder_fd, &s) == 0 && s.f_frsize ? s.f_frsize : 4096;
    assert(a->folder_fd >= 0 && a->block > 0);
    trib_status_t st = check_folder(a, err);
    if (st == TRIB_OK)
        st = read_files(a, err);
    if (st == TRIB_OK)
        keep_newest(a);
    return st;
}

/* Life ----------------------------------------------------------------------------- */

/* Wait until all threads have ended; false: no progress for stall_ms. */
static bool await_threads(struct archive *a, int stall_ms)
{
    uint64_t progress = atomic_load(&a->progress);
    int stalled_ms = 0; /* counted in ticks: this process may be stopped */

    while (a->n_running > 0 && (!stall_ms || stalled_ms < stall_ms)) {
        if (!trib_cond_wait(&a->ended, &a->mutex, trib_deadline_ms(STOP_TICK_MS)) &&
            (stalled_ms += STOP_TICK_MS) == STOP_SAY_MS)
            trib_log(a->log, TRIB_LOG_WARN, "tribd",
                     "cannot stop yet: files wait to be deleted, but %.300s has not "
                     "responded for %d s",
                     a->folder, STOP_SAY_MS / 1000);
        if (progress != atomic_load(&a->progress))
            stalled_ms = 0;
        progress = atomic_load(&a->progress);
    }
    return a->n_running == 0;
}

bool archive_stop(struct archive *a, int stall_ms)
{
    pthread_mutex_lock(&a->mutex);
    a->stop = true;
    archive_retry_deletions(a);
    const bool ended = await_threads(a, stall_ms);
    const uint32_t n = ended ? a->n_threads : 0;
    if (ended)
        a->n_threads = 0;
    pthread_mutex_unlock(&a->mutex);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(a->threads[i].thread, NULL);
    return ended;
}

/* Start the threads; one is enough to serve. */
static trib_status_t start_threads(struct archive *a, struct trib_error *err)
{
    int why = 0;

    pthread_mutex_lock(&a->mutex); /* protects n_threads from threads already running */
    while (a->n_threads < ARCHIVE_THREADS && !why) {
        struct archive_thread *t = &a->threads[a->n_threads];
        t->archive = a;
        why = trib_thread_start(&t->thread, archive_serve, t);
        a->n_threads += !why;
        a->n_running += !why;
    }
    pthread_mutex_unlock(&a->mutex);
    errno = why;
    return a->n_threads ? TRIB_OK
                        : trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
}

static void dispose(struct archive *a)
{
    if (a->folder_fd >= 0)
        close(a->folder_fd);
    pthread_cond_destroy(&a->ended);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->mutex);
    free(a->users);
    free(a->gone);
    free(a->files);
    free(a);
}

trib_status_t archive_open(const char *folder, const struct archive_limits *limits,
                           const struct trib_log *log, struct trib_error *err,
                           struct archive **out)
{
    struct archive *a = calloc(1, sizeof(*a));

    *out = NULL;
    if (!a)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for snapshots");
    a->log = log;
    snprintf(a->folder, sizeof(a->folder), "%s", folder);
    pthread_mutex_init(&a->mutex, NULL);
    trib_cond_init(&a->wake);
    trib_cond_init(&a->ended);
    /* The last line if the disk hangs. */
    trib_log(log, TRIB_LOG_INFO, "tribd", "reading snapshots in %.300s", folder);
    trib_status_t st = open_folder(a, err);
    if (st == TRIB_OK) {
        archive_limit(a, limits);
        pthread_mutex_lock(&a->mutex);
        (void)archive_measure(a);
        pthread_mutex_unlock(&a->mutex);
        st = start_threads(a, err);
    }
    if (st != TRIB_OK) {
        dispose(a);
        return st;
    }
    *out = a;
    return TRIB_OK;
}

bool archive_close(struct archive *a)
{
    if (!a)
        return true;
    (void)archive_stop(a, 0);
    assert(!a->first && !archive_has_deletions(a));
    const bool lost = atomic_load(&a->lost);
    dispose(a);
    return !lost;
}
