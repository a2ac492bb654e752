/* SPDX-License-Identifier: BSD-3-Clause */
/* List of snapshots: contents, limits and queries. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agg/daemon/archive_parts.h"
#include "agg/daemon/quotas.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/text.h"
#include "base/time.h"

void archive_name_file(char out[ARCHIVE_NAME_BYTES], uint64_t number, const char *more)
{
    snprintf(out, ARCHIVE_NAME_BYTES, "%016" PRIx64 ARCHIVE_SUFFIX "%s", number, more);
}

/* Under the mutex ------------------------------------------------------------------ */

bool archive_is_of(const struct archive_file *f, const struct archive_key *key)
{
    return memcmp(f->about.owner, key->owner, TRIB_SNAPSHOT_OWNER_BYTES) == 0 &&
           strcmp(f->about.user, key->user) == 0 &&
           (!key->name || strcmp(f->about.name, key->name) == 0);
}

struct archive_file *archive_find(const struct archive *a,
                                  const struct archive_key *key)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (archive_is_of(&a->files[i], key))
            return &a->files[i];
    return NULL;
}

/* Reserve an entry of `gone` for each file, so that no removal can fail. */
static bool reserve_gone(struct archive *a)
{
    const uint32_t room = a->gone_room ? 2 * a->gone_room : 16;

    assert(a->n + a->n_gone <= a->gone_room);
    if (a->n + a->n_gone < a->gone_room)
        return true;
    struct archive_gone *more = realloc(a->gone, room * sizeof(*more));
    if (!more)
        return false;
    a->gone = more;
    a->gone_room = room;
    return true;
}

struct archive_file *archive_append(struct archive *a)
{
    const uint32_t room = a->room ? 2 * a->room : 16;

    assert(a->n <= a->room);
    if (!reserve_gone(a))
        return NULL;
    if (a->n == a->room) {
        struct archive_file *more = realloc(a->files, room * sizeof(*more));
        if (!more)
            return NULL;
        a->files = more;
        a->room = room;
    }
    a->files[a->n] = (struct archive_file){0};
    return &a->files[a->n++];
}

/* Delete a file that is not listed. A file that cannot be deleted still counts. */
static bool delete_file(const struct archive *a, uint64_t number)
{
    char name[ARCHIVE_NAME_BYTES];

    archive_name_file(name, number, "");
    if (unlinkat(a->folder_fd, name, 0) == 0 || errno == ENOENT)
        return true;
    trib_log(a->log, TRIB_LOG_WARN, "tribd",
             "cannot remove %.300s/%s: %m; remove it, or tribd will list this "
             "snapshot again after a restart",
             a->folder, name);
    return false;
}

static void count_left(struct archive *a, uint64_t bytes)
{
    a->n_other++;
    a->other_bytes += archive_on_disk(a, bytes);
}

/* Remove an entry. A thread of the archive deletes the file without the mutex, because
 * the disk may be slow. */
static void remove_file(struct archive *a, uint32_t i)
{
    const struct archive_file *f = &a->files[i];

    assert(i < a->n && a->n_gone < a->gone_room);
    struct archive_gone *gone = &a->gone[a->n_gone++];
    *gone = (struct archive_gone){.number = f->number, .bytes = f->bytes};
    memcpy(gone->user, f->about.user, sizeof(gone->user));
    a->files[i] = a->files[--a->n];
    pthread_cond_broadcast(&a->wake);
}

void archive_keep(struct archive *a, uint64_t number)
{
    for (uint32_t i = a->n_gone; i-- > 0;)
        if (a->gone[i].number == number)
            a->gone[i] = a->gone[--a->n_gone];
}

/* Return true if a running task writes this file. */
static bool is_written(const struct archive *a, uint64_t number)
{
    for (uint32_t i = 0; i < a->n_threads; i++) {
        const struct archive_task *task = a->threads[i].task;
        if (task && task->writes && task->number == number)
            return true;
    }
    return false;
}

bool archive_delete_one(struct archive *a)
{
    uint32_t i = 0;

    while (i < a->n_gone && is_written(a, a->gone[i].number))
        i++;
    if (a->deletes || i == a->n_gone)
        return false;
    a->deletes = true;
    const struct archive_gone file = a->gone[i];
    pthread_mutex_unlock(&a->mutex);
    const bool deleted = delete_file(a, file.number);
    pthread_mutex_lock(&a->mutex);
    a->deletes = false;
    archive_keep(a, file.number); /* its index may have changed */
    if (!deleted)
        count_left(a, file.bytes);
    pthread_cond_broadcast(&a->wake);
    return true;
}

uint64_t archive_on_disk(const struct archive *a, uint64_t bytes)
{
    assert(a->block);
    return trib_max((bytes + a->block - 1) / a->block, 1) * a->block;
}

/* Disk usage of the directory. */
struct load {
    uint64_t bytes;
    uint32_t files;
};

/* Return the load of a user; NULL: of all users. Running writes and files to delete are
 * included. */
static struct load load_of(const struct archive *a, const char *user)
{
    struct load load = {user ? 0 : a->other_bytes, user ? 0 : a->n_other};

    for (uint32_t i = 0; i < a->n; i++) {
        if (user && strcmp(a->files[i].about.user, user))
            continue;
        load.bytes += archive_on_disk(a, a->files[i].bytes);
        load.files++;
    }
    for (uint32_t i = 0; i < a->n_gone; i++) {
        if (user && strcmp(a->gone[i].user, user))
            continue;
        load.bytes += archive_on_disk(a, a->gone[i].bytes);
        load.files++;
    }
    for (uint32_t i = 0; i < a->n_threads; i++) {
        const struct archive_task *task = a->threads[i].task;
        if (!task || !task->writes || task->noted ||
            (user && strcmp(task->key.user, user)))
            continue;
        load.bytes += archive_on_disk(a, task->n);
        load.files += !archive_find(a, &task->key);
    }
    return load;
}

static uint32_t user_files(const struct archive *a, const char *user)
{
    if (a->limits.user_files)
        return a->limits.user_files;
    return quotas_is_unnamed(user) ? a->limits.files : (a->limits.files + 1) / 2;
}

/* Check the limits. The task is running, so both loads include it. */
trib_status_t archive_check_room(const struct archive *a, struct archive_task *task)
{
    const struct load all = load_of(a, NULL), own = load_of(a, task->key.user);
    const struct archive_limits *most = &a->limits;
    const uint64_t bytes = archive_on_disk(a, task->n);

    assert(own.bytes >= bytes && all.bytes >= own.bytes);
    if (all.bytes > most->disk || (most->user_disk && own.bytes > most->user_disk))
        return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                         "another snapshot of %" PRIu64 " bytes, in addition to "
                         "%" PRIu64 " (%" PRIu64 " of this user), exceeds tribd's "
                         "settings disk or user_disk: list snapshots with tribctl "
                         "snapshots, remove some with tribctl forget",
                         bytes, all.bytes - bytes, own.bytes - bytes);
    if (!archive_find(a, &task->key) &&
        (all.files > most->files || own.files > user_files(a, task->key.user)))
        return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                         "another snapshot, in addition to %" PRIu32 " (%" PRIu32 " of "
                         "this user), exceeds tribd's settings disk_files or "
                         "user_disk_files: list snapshots with tribctl snapshots, "
                         "remove some with tribctl forget",
                         all.files - 1, own.files - 1);
    return TRIB_OK;
}

static bool is_used(const struct archive *a, const struct archive_file *f)
{
    for (uint32_t i = 0; i < a->n_users; i++)
        if (memcmp(a->users[i], f->about.owner, sizeof(a->users[i])) == 0)
            return true;
    return false;
}

void archive_expire(struct archive *a)
{
    const uint64_t now_ns = trib_now_ns();

    for (uint32_t i = a->n; i-- > 0;) {
        const struct archive_file *f = &a->files[i];
        if (f->about.lasting || is_used(a, f) ||
            now_ns - f->unused_ns <= (uint64_t)ARCHIVE_ORPHAN_S * 1000000000)
            continue;
        trib_log(
            a->log, TRIB_LOG_INFO, "tribd",
            "removed the snapshot of job %s, vector %s: no store has used it for %d "
            "days",
            f->about.job, f->about.name, ARCHIVE_ORPHAN_S / 86400);
        remove_file(a, i);
    }
}

/* Stores --------------------------------------------------------------------------- */

static void begin_unused(struct archive *a, const uint8_t *owner)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (memcmp(a->files[i].about.owner, owner, TRIB_SNAPSHOT_OWNER_BYTES) == 0)
            a->files[i].unused_ns = trib_now_ns();
}

bool archive_use(struct archive *a, const uint8_t *owner, bool uses)
{
    bool well = true;

    pthread_mutex_lock(&a->mutex);
    uint32_t i = 0;
    while (i < a->n_users && memcmp(a->users[i], owner, sizeof(a->users[i])))
        i++;
    if (uses) {
        uint8_t(*more)[TRIB_SNAPSHOT_OWNER_BYTES] =
            realloc(a->users, (a->n_users + 1) * sizeof(*more));
        well = more;
        if (more) {
            a->users = more;
            memcpy(a->users[a->n_users++], owner, sizeof(*more));
        }
    } else if (i < a->n_users) {
        memmove(a->users[i], a->users[--a->n_users], sizeof(a->users[i]));
        begin_unused(a, owner);
    }
    pthread_mutex_unlock(&a->mutex);
    return well;
}

/* Questions ------------------------------------------------------------------------ */

bool archive_measure(struct archive *a)
{
    struct statvfs s = {0};

    if (!a->measures)
        return false;
    a->measures = false;
    pthread_mutex_unlock(&a->mutex);
    const bool known = fstatvfs(a->folder_fd, &s) == 0;
    pthread_mutex_lock(&a->mutex);
    const struct load load = load_of(a, NULL);
    if (!a->asked.disk && known)
        a->limits.disk = load.bytes + (uint64_t)s.f_bavail * s.f_frsize / 2;
    if (!a->asked.files) {
        const uint64_t half = load.files + (uint64_t)s.f_favail / 2;
        const bool counts = known && s.f_files; /* some file systems have no inodes */
        a->limits.files =
            counts && half < ARCHIVE_FILES_MAX ? (uint32_t)half : ARCHIVE_FILES_MAX;
    }
    return true;
}

/* The control thread calls it, so a thread of the archive asks the disk, which may
 * hang. Until then, limits that depend on it keep their values. */
void archive_limit(struct archive *a, const struct archive_limits *limits)
{
    pthread_mutex_lock(&a->mutex);
    a->asked = *limits;
    a->measures = !limits->disk || !limits->files;
    if (limits->disk)
        a->limits.disk = limits->disk;
    if (limits->files)
        a->limits.files = limits->files;
    a->limits.user_disk = limits->user_disk;
    a->limits.user_files = limits->user_files;
    pthread_cond_broadcast(&a->wake);
    pthread_mutex_unlock(&a->mutex);
}

uint64_t archive_written_mt(const struct archive *a)
{
    return atomic_load(&a->written);
}

void archive_failed_mt(struct archive *a)
{
    (void)atomic_fetch_add(&a->failures, 1);
}

uint64_t archive_version(struct archive *a, const struct archive_key *key)
{
    pthread_mutex_lock(&a->mutex);
    const struct archive_file *f = archive_find(a, key);
    const uint64_t version = f ? f->about.version + 1 : 0;
    pthread_mutex_unlock(&a->mutex);
    return version;
}

void archive_describe(struct archive *a, const struct archive_key *key, char *text,
                      size_t bytes)
{
    uint32_t n = 0, left_out = 0;

    assert(strlen(text) < bytes);
    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct trib_snapshot_about *about = &a->files[i].about;
        if (!archive_is_of(&a->files[i], key))
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
        if (archive_is_of(&a->files[i], key))
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
                 removed == 1 ? "" : "s");
    else
        snprintf(say, bytes, "no snapshot of job %.64s%s%.64s", what,
                 vector[0] ? ", vector " : "", vector);
    return removed;
}

static void fill_row(const struct archive_file *f, uint64_t age_s,
                     struct trib_snapshot_row *row)
{
    const struct trib_snapshot_about *about = &f->about;

    *row = (struct trib_snapshot_row){
        .version = about->version, .bytes = f->bytes, .age_s = age_s};
    snprintf(row->job, sizeof(row->job), "%.64s", about->job);
    snprintf(row->user, sizeof(row->user), "%.64s", about->user);
    snprintf(row->name, sizeof(row->name), "%.64s", about->name);
}

void archive_view(struct archive *a, struct trib_snapshots_view *out)
{
    const int64_t now_s = time(NULL);

    pthread_mutex_lock(&a->mutex);
    const uint32_t most = (uint32_t)trib_min(a->n, ARCHIVE_ROWS_MOST);
    *out = (struct trib_snapshots_view){.known = true,
                                        .n = a->n,
                                        .bytes = a->other_bytes,
                                        .disk_bytes = a->limits.disk,
                                        .n_most = a->limits.files,
                                        .failures = atomic_load(&a->failures),
                                        .rows = calloc(most + 1, sizeof(*out->rows))};
    for (uint32_t i = 0; i < a->n; i++) {
        const struct archive_file *f = &a->files[i];
        const int64_t behind_s = now_s - f->about.taken_s;
        const uint64_t age_s = behind_s > 0 ? (uint64_t)behind_s : 0;
        out->bytes += archive_on_disk(a, f->bytes);
        out->oldest_s = trib_max(out->oldest_s, age_s);
        if (out->rows && out->n_rows < most)
            fill_row(f, age_s, &out->rows[out->n_rows++]);
    }
    for (uint32_t i = 0; i < a->n_gone; i++)
        out->bytes += archive_on_disk(a, a->gone[i].bytes);
    pthread_mutex_unlock(&a->mutex);
}
