/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of the directory of snapshots: in total and per user, on bytes on disk and on
 * files. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#include "agg/daemon/archive_parts.h"
#include "agg/daemon/quotas.h"
#include "base/minmax.h"

/* Room ----------------------------------------------------------------------------- */

/* Disk usage of the directory. */
struct load {
    uint64_t bytes;
    uint32_t files;
};

/* Add a write that has begun. */
static void add_task(const struct archive *a, const struct archive_task *task,
                     const char *user, struct load *load)
{
    if (task->noted || (user && strcmp(task->key.user, user)))
        return;
    load->bytes += archive_on_disk(a, task->n);
    load->files += !archive_find(a, &task->key);
}

/* Return the load of a user; NULL: of all users. Admitted writes are included, and
 * `task`, which is not admitted yet, or NULL. settled: files to delete are not. */
static struct load load_of(const struct archive *a, const char *user,
                           const struct archive_task *task, bool settled)
{
    struct load load = {user ? 0 : a->other_bytes, user ? 0 : a->n_other};

    for (uint32_t i = 0; i < a->n; i++) {
        if (user && strcmp(a->files[i].about.user, user))
            continue;
        load.bytes += archive_on_disk(a, a->files[i].bytes);
        load.files++;
    }
    for (uint32_t i = 0; i < a->n_gone; i++) {
        if (a->gone[i].deleted || (settled && !a->gone[i].retry_ns) ||
            (user && strcmp(a->gone[i].user, user)))
            continue;
        load.bytes += archive_on_disk(a, a->gone[i].bytes);
        load.files++;
    }
    for (uint32_t i = 0; i < a->n_threads; i++)
        if (a->threads[i].task && a->threads[i].task->admitted)
            add_task(a, a->threads[i].task, user, &load);
    if (task)
        add_task(a, task, user, &load);
    return load;
}

static uint32_t user_files(const struct archive *a, const char *user)
{
    if (a->limits.user_files)
        return a->limits.user_files;
    return quotas_is_unnamed(user) ? a->limits.files : (a->limits.files + 1) / 2;
}

/* The loads include the task. */
static bool fits_disk(const struct archive *a, const struct load *all,
                      const struct load *own)
{
    return all->bytes <= a->limits.disk &&
           (!a->limits.user_disk || own->bytes <= a->limits.user_disk);
}

static bool fits_files(const struct archive *a, const struct archive_task *task,
                       const struct load *all, const struct load *own)
{
    return archive_find(a, &task->key) || (all->files <= a->limits.files &&
                                           own->files <= user_files(a, task->key.user));
}

static bool has_room(const struct archive *a, const struct archive_task *task,
                     bool settled)
{
    const struct load all = load_of(a, NULL, task, settled);
    const struct load own = load_of(a, task->key.user, task, settled);

    return fits_disk(a, &all, &own) && fits_files(a, task, &all, &own);
}

bool archive_awaits_deletions(const struct archive *a, const struct archive_task *task)
{
    assert(!task->admitted);
    return task->writes && archive_has_deletions(a) && !has_room(a, task, false) &&
           has_room(a, task, true);
}

trib_status_t archive_check_room(const struct archive *a, struct archive_task *task)
{
    const struct load all = load_of(a, NULL, task, false);
    const struct load own = load_of(a, task->key.user, task, false);
    const uint64_t bytes = archive_on_disk(a, task->n);

    assert(!task->admitted && own.bytes >= bytes && all.bytes >= own.bytes);
    if (!fits_disk(a, &all, &own))
        return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                         "another snapshot of %" PRIu64 " bytes, in addition to "
                         "%" PRIu64 " (%" PRIu64 " of this user), exceeds tribd's "
                         "settings disk or user_disk: list snapshots with tribctl "
                         "snapshots, remove some with tribctl forget",
                         bytes, all.bytes - bytes, own.bytes - bytes);
    if (!fits_files(a, task, &all, &own))
        return trib_fail(&task->err, TRIB_ERR_NO_RESOURCE,
                         "another snapshot, in addition to %" PRIu32 " (%" PRIu32 " of "
                         "this user), exceeds tribd's settings disk_files or "
                         "user_disk_files: list snapshots with tribctl snapshots, "
                         "remove some with tribctl forget",
                         all.files - 1, own.files - 1);
    return TRIB_OK;
}

/* Settings ------------------------------------------------------------------------- */

/* Half of the free space. Some file systems report more than 2^64 bytes. */
static uint64_t half_free(const struct statvfs *s)
{
    const uint64_t block = s->f_frsize ? s->f_frsize : 1;

    return trib_min((uint64_t)s->f_bavail, UINT64_MAX / block) * block / 2;
}

bool archive_measure(struct archive *a)
{
    struct statvfs s = {0};

    if (!a->measures)
        return false;
    a->measures = false;
    pthread_mutex_unlock(&a->mutex);
    const bool known = fstatvfs(a->folder_fd, &s) == 0;
    pthread_mutex_lock(&a->mutex);
    const struct load load = load_of(a, NULL, NULL, false);
    if (!a->asked.disk && known)
        a->limits.disk = load.bytes + half_free(&s);
    if (!a->asked.files && (known || !a->limits.files)) {
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
    archive_retry_deletions(a); /* the operator may have removed their cause */
    pthread_mutex_unlock(&a->mutex);
}
