/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of snapshots: what there is, within which limits, and who asks for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "tribd/archive_parts.h"

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

struct archive_file *archive_append(struct archive *a)
{
    const uint32_t room = a->room ? 2 * a->room : 16;

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

static void remove_file(struct archive *a, uint32_t i)
{
    char name[ARCHIVE_NAME_BYTES];

    archive_name_file(name, a->files[i].number, "");
    (void)unlinkat(a->folder_fd, name, 0);
    a->files[i] = a->files[--a->n];
}

trib_status_t archive_check_room(const struct archive *a, const char *user, uint64_t n,
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

static bool is_used(const struct archive *a, const struct archive_file *f)
{
    for (uint32_t i = 0; i < a->n_users; i++)
        if (memcmp(a->users[i], f->about.owner, sizeof(a->users[i])) == 0)
            return true;
    return false;
}

void archive_expire(struct archive *a)
{
    const int64_t now_s = time(NULL);

    for (uint32_t i = a->n; i-- > 0;) {
        const struct archive_file *f = &a->files[i];
        if (f->about.lasting || now_s - f->about.taken_s <= ARCHIVE_ORPHAN_S ||
            is_used(a, f))
            continue;
        trib_log(
            a->log, TRIB_LOG_INFO, "tribd",
            "the snapshot of job %s, vector %s, is removed: its run ended days ago, "
            "and no other has its key",
            f->about.job, f->about.name);
        remove_file(a, i);
    }
}

/* Stores --------------------------------------------------------------------------- */

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
        memcpy(a->users[i], a->users[--a->n_users], sizeof(a->users[i]));
    }
    pthread_mutex_unlock(&a->mutex);
    return well;
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
    const struct archive_file *f = archive_find(a, key);
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
