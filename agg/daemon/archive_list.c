/* SPDX-License-Identifier: BSD-3-Clause */
/* List of snapshots: contents, deletions and queries. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agg/daemon/archive_parts.h"
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

/* Delete a file that is not listed; again: a failure was logged before. */
static bool delete_file(struct archive *a, uint64_t number, bool again)
{
    char name[ARCHIVE_NAME_BYTES];

    archive_name_file(name, number, "");
    const bool deleted = unlinkat(a->folder_fd, name, 0) == 0 || errno == ENOENT;
    if (deleted)
        (void)atomic_fetch_add(&a->progress, 1);
    else if (!again)
        trib_log(a->log, TRIB_LOG_WARN, "tribd",
                 "cannot remove %.300s/%s: %m; trying again every %d s; a tribd that "
                 "starts while the file exists will list this snapshot again",
                 a->folder, name, ARCHIVE_RETRY_MS / 1000);
    return deleted;
}

/* Remove an entry. A thread of the archive deletes the file without the mutex, because
 * the disk may be slow. */
static void remove_file(struct archive *a, uint32_t i, uint64_t removal)
{
    const struct archive_file *f = &a->files[i];

    assert(i < a->n && a->n_gone < a->gone_room);
    struct archive_gone *gone = &a->gone[a->n_gone++];
    *gone = (struct archive_gone){
        .number = f->number, .bytes = f->bytes, .removal = removal};
    memcpy(gone->user, f->about.user, sizeof(gone->user));
    a->files[i] = a->files[--a->n];
    pthread_cond_broadcast(&a->wake);
}

/* Do not delete a file, or no longer list it as to be deleted. */
static void keep(struct archive *a, uint64_t number)
{
    for (uint32_t i = a->n_gone; i-- > 0;)
        if (a->gone[i].number == number)
            a->gone[i] = a->gone[--a->n_gone];
}

bool archive_list_written(struct archive *a, struct archive_task *task,
                          const struct trib_snapshot_about *about)
{
    struct archive_file *f = archive_find(a, &task->key);

    f = f ? f : archive_append(a);
    if (!f)
        return false;
    *f = (struct archive_file){task->number, task->n, trib_now_ns(), *about};
    keep(a, task->number); /* it was removed while this task wrote it */
    if (task->removal)
        remove_file(a, (uint32_t)(f - a->files), task->removal);
    return true;
}

/* Return true if a running task writes this file. */
static bool is_written(const struct archive *a, uint64_t number)
{
    for (uint32_t i = 0; i < a->n_threads; i++) {
        const struct archive_task *task = a->threads[i].task;
        if (task && task->admitted && task->number == number)
            return true;
    }
    return false;
}

/* Return the file to delete next; NULL: none. forgotten: only by archive_forget. */
static const struct archive_gone *next_gone(const struct archive *a, bool forgotten)
{
    const uint64_t now_ns = trib_now_ns();

    for (uint32_t i = 0; i < a->n_gone; i++)
        if (!a->gone[i].deleted && (a->gone[i].removal || !forgotten) &&
            now_ns >= a->gone[i].retry_ns && !is_written(a, a->gone[i].number))
            return &a->gone[i];
    return NULL;
}

/* Let the deletions of forgotten files survive a power loss. Return false if there are
 * none, or an attempt failed and is repeated later. */
static bool sync_deletions(struct archive *a)
{
    const uint64_t now_ns = trib_now_ns();
    bool due = false;

    for (uint32_t i = 0; i < a->n_gone; i++)
        due |= a->gone[i].deleted && now_ns >= a->gone[i].retry_ns;
    if (!due)
        return false;
    pthread_mutex_unlock(&a->mutex);
    const bool synced = fsync(a->folder_fd) == 0;
    if (!synced)
        trib_log(a->log, TRIB_LOG_WARN, "tribd",
                 "cannot sync %.300s: %m; trying again every %d s; a power loss may "
                 "restore removed snapshots",
                 a->folder, ARCHIVE_RETRY_MS / 1000);
    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = a->n_gone; i-- > 0;) {
        if (!a->gone[i].deleted)
            continue;
        a->gone[i].retry_ns = trib_deadline_ms(ARCHIVE_RETRY_MS);
        if (synced)
            a->gone[i] = a->gone[--a->n_gone];
    }
    return true;
}

/* An operator waits for forgotten files. A file that cannot be deleted still counts. */
bool archive_delete_one(struct archive *a)
{
    const struct archive_gone *next = next_gone(a, true);

    if (!next && sync_deletions(a))
        return true;
    if (!next && !(next = next_gone(a, false)))
        return false;
    const struct archive_gone file = *next;
    pthread_mutex_unlock(&a->mutex);
    const bool deleted = delete_file(a, file.number, file.failed);
    pthread_mutex_lock(&a->mutex);
    if (deleted && !file.removal)
        keep(a, file.number);
    for (uint32_t i = 0; i < a->n_gone; i++) { /* its index may have changed */
        struct archive_gone *gone = &a->gone[i];
        if (gone->number != file.number)
            continue;
        gone->deleted = deleted;
        gone->failed |= !deleted;
        gone->retry_ns = deleted ? 0 : trib_deadline_ms(ARCHIVE_RETRY_MS);
    }
    return true;
}

bool archive_has_deletions(const struct archive *a)
{
    for (uint32_t i = 0; i < a->n_gone; i++)
        if (!a->gone[i].retry_ns)
            return true;
    return false;
}

void archive_retry_deletions(struct archive *a)
{
    for (uint32_t i = 0; i < a->n_gone; i++)
        a->gone[i].retry_ns = 0;
    pthread_cond_broadcast(&a->wake);
}

uint64_t archive_on_disk(const struct archive *a, uint64_t bytes)
{
    assert(a->block);
    return trib_max((bytes + a->block - 1) / a->block, 1) * a->block;
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
        if (f->about.lasting ||
            now_ns - f->unused_ns <= (uint64_t)ARCHIVE_ORPHAN_S * 1000000000 ||
            is_used(a, f))
            continue;
        trib_log(
            a->log, TRIB_LOG_INFO, "tribd",
            "removed the snapshot of job %s, vector %s: no store has used it for %d "
            "days",
            f->about.job, f->about.name, ARCHIVE_ORPHAN_S / 86400);
        remove_file(a, i, 0);
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

uint64_t archive_progress_mt(const struct archive *a)
{
    return atomic_load(&a->progress);
}

void archive_apart_mt(struct archive *a, int change)
{
    assert(change == 1 || change == -1);
    (void)atomic_fetch_add(&a->apart, change);
}

bool archive_is_apart_mt(const struct archive *a)
{
    return atomic_load(&a->apart) && !atomic_load(&a->at_disk);
}

bool archive_is_writing(struct archive *a, bool queued)
{
    pthread_mutex_lock(&a->mutex);
    bool writing = queued && a->first;
    for (uint32_t i = 0; i < a->n_threads; i++)
        writing |= a->threads[i].task && a->threads[i].task->admitted;
    pthread_mutex_unlock(&a->mutex);
    return writing;
}

void archive_lost_mt(struct archive *a)
{
    atomic_store(&a->lost, true);
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
            remove_file(a, i, 0);
    pthread_mutex_unlock(&a->mutex);
}

/* "JOB" or "USER/JOB", and the name of a vector; "": all vectors. */
struct choice {
    char job[2 * TRIB_SNAPSHOT_TEXT_BYTES];
    const char *vector;
    bool of_user; /* USER/JOB */
};

static bool is_chosen(const char *user, const char *job, const char *vector,
                      const struct choice *choice)
{
    const size_t n = strlen(user);
    const char *chosen = choice->job;

    if (choice->vector[0] && strcmp(vector, choice->vector))
        return false;
    if (!choice->of_user)
        return strcmp(job, chosen) == 0;
    return strncmp(user, chosen, n) == 0 && chosen[n] == '/' &&
           strcmp(job, chosen + n + 1) == 0;
}

static bool is_chosen_file(const struct archive_file *f, const struct choice *choice)
{
    return is_chosen(f->about.user, f->about.job, f->about.name, choice);
}

/* Return true for a chosen write of a store that has ended, unless an earlier command
 * removes it already. */
static bool is_chosen_task(const struct archive_task *task, const struct choice *choice)
{
    return task && task->writes && task->job && !task->removal && task->ended &&
           atomic_load(task->ended) &&
           is_chosen(task->key.user, task->job, task->key.name, choice);
}

/* Users of chosen snapshots: one, and another one; NULL: none. */
struct users {
    const char *one, *other;
};

static void add_user(struct users *users, const char *user)
{
    if (!users->one)
        users->one = user;
    else if (strcmp(users->one, user))
        users->other = user;
}

/* Return the users of all chosen snapshots. */
static struct users users_of(const struct archive *a, const struct choice *choice)
{
    struct users users = {NULL, NULL};

    for (uint32_t i = 0; i < a->n; i++)
        if (is_chosen_file(&a->files[i], choice))
            add_user(&users, a->files[i].about.user);
    for (uint32_t i = 0; i < a->n_threads; i++)
        if (is_chosen_task(a->threads[i].task, choice))
            add_user(&users, a->threads[i].task->key.user);
    for (const struct archive_task *t = a->first; t; t = t->next)
        if (is_chosen_task(t, choice))
            add_user(&users, t->key.user);
    return users;
}

/* Return true if the choice has snapshots of several users: any user may give a job the
 * name of another user's job. */
static bool is_ambiguous(const struct archive *a, const struct choice *choice,
                         char *say, size_t bytes)
{
    const struct users users = users_of(a, choice);

    if (users.other)
        snprintf(say, bytes,
                 "%.64s has snapshots of several users, such as %.64s and %.64s: "
                 "write USER/JOB",
                 choice->job, users.one, users.other);
    return users.other;
}

/* Any user may also name a job like USER/JOB, so it only counts as a job's name if that
 * user has no such job. */
static bool is_of_user(const struct archive *a, const struct choice *choice)
{
    struct choice all = *choice;

    all.vector = "";
    all.of_user = true;
    return users_of(a, &all).one;
}

bool archive_is_deleted(struct archive *a, uint64_t removal)
{
    bool deleted = true;

    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = 0; i < a->n_gone; i++)
        deleted &= a->gone[i].removal != removal;
    for (uint32_t i = 0; i < a->n_threads; i++)
        deleted &= !a->threads[i].task || a->threads[i].task->removal != removal;
    for (const struct archive_task *t = a->first; t; t = t->next)
        deleted &= t->removal != removal;
    pthread_mutex_unlock(&a->mutex);
    return deleted;
}

/* Remove a file that will be written; return 1, or 0 if it replaces a chosen file,
 * which is counted with the list. */
static uint32_t forget_task(const struct archive *a, struct archive_task *task,
                            const struct choice *choice, uint64_t removal)
{
    if (!is_chosen_task(task, choice))
        return 0;
    task->removal = removal;
    const struct archive_file *f = archive_find(a, &task->key);
    return !f || !is_chosen_file(f, choice);
}

static uint32_t forget_tasks(const struct archive *a, const struct choice *choice,
                             uint64_t removal)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < a->n_threads; i++)
        n += forget_task(a, a->threads[i].task, choice, removal);
    for (struct archive_task *t = a->first; t; t = t->next)
        n += forget_task(a, t, choice, removal);
    return n;
}

bool archive_forget(struct archive *a, const char *what, char *say, size_t bytes,
                    uint64_t *removal_out)
{
    const size_t n = strcspn(what, " ");
    struct choice choice = {.vector = what + n + strspn(what + n, " ")};
    uint32_t removed;

    snprintf(choice.job, sizeof(choice.job), "%.*s", (int)n, what);
    pthread_mutex_lock(&a->mutex);
    choice.of_user = is_of_user(a, &choice);
    const bool several = is_ambiguous(a, &choice, say, bytes);
    const uint64_t removal = a->n_removals + 1;
    removed = several ? 0 : forget_tasks(a, &choice, removal);
    for (uint32_t i = several ? 0 : a->n; i-- > 0;) {
        if (!is_chosen_file(&a->files[i], &choice))
            continue;
        remove_file(a, i, removal);
        removed++;
    }
    *removal_out = removed ? removal : 0;
    a->n_removals = removal;
    pthread_mutex_unlock(&a->mutex);
    if (removed)
        snprintf(say, bytes, "%" PRIu32 " snapshot%s removed", removed,
                 removed == 1 ? "" : "s");
    else if (!several)
        snprintf(say, bytes, "no snapshot of job %.64s%s%.64s", choice.job,
                 choice.vector[0] ? ", vector " : "", choice.vector);
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
        out->bytes += a->gone[i].deleted ? 0 : archive_on_disk(a, a->gone[i].bytes);
    pthread_mutex_unlock(&a->mutex);
}
