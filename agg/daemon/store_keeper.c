/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/store_keeper.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agg/daemon/archive.h"
#include "agg/store/store_snapshot.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/quota.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    LOOKS = 64, /* vectors checked per step */
    RETRY_MS = 5000, /* after a periodic snapshot failed */
    PAUSE_MS = 100, /* minimum interval of a vector's periodic snapshots; also PAUSES
                     * times the last duration */
    PAUSES = 3,
    LAST_PAUSE_MS = 800, /* between tries of a last snapshot */
    LAST_TRIES = 8, /* within about 6 s */
};

/* Snapshot state of one vector. */
struct kept {
    uint64_t changes; /* of the vector, at its newest snapshot */
    uint64_t version;
    uint64_t taken_ns;
    uint64_t retry_ns; /* earliest periodic snapshot, after a failure or a pause */
};

struct store_keeper {
    const struct store_job_opts *opts;
    struct trib_store_table *table;
    const struct store_end *end; /* of the store */
    struct trib_metrics_writer *writer; /* or NULL */
    int wake_fd;
    pthread_mutex_t mutex; /* guards all fields below, except a running task */
    pthread_t copier;
    bool copies; /* `copier` must be joined */
    struct archive_task task;
    char name[TRIB_SNAPSHOT_TEXT_BYTES]; /* of its vector, which may be freed first */
    struct trib_snapshot read;
    bool busy;
    bool last; /* the last snapshots are written */
    bool abandoned; /* no rank waits for the current restore any longer */
    struct trib_control_store_snapshot what; /* current order */
    uint32_t rank; /* whose order it is; opts->ranks: a periodic snapshot */
    bool ordered; /* the latest task was an order: a periodic snapshot is next */
    struct store_order *orders; /* [opts->ranks] that wait; number 0: none */
    uint64_t n_orders;
    uint64_t changes; /* of the vector when copied; set by the copier */
    struct kept *kept; /* [n] */
    uint32_t n;
    uint32_t at; /* first vector to check in the next step */
};

trib_status_t store_keeper_create(const struct store_job_opts *opts,
                                  struct trib_store_table *table,
                                  const struct store_end *end,
                                  struct trib_metrics_writer *writer, int wake_fd,
                                  struct store_keeper **out)
{
    struct store_keeper *keeper = calloc(1, sizeof(*keeper));

    *out = keeper;
    if (!keeper)
        return TRIB_ERR_NO_MEMORY;
    keeper->opts = opts;
    keeper->table = table;
    keeper->end = end;
    keeper->writer = writer;
    keeper->wake_fd = wake_fd;
    keeper->orders = calloc(opts->ranks, sizeof(*keeper->orders));
    if (!keeper->orders ||
        (opts->archive && !archive_use(opts->archive, opts->about.owner, true))) {
        free(keeper->orders);
        free(keeper);
        *out = NULL;
        return TRIB_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&keeper->mutex, NULL);
    return TRIB_OK;
}

void store_keeper_detach(struct store_keeper *keeper)
{
    if (keeper->copies)
        pthread_join(keeper->copier, NULL);
    keeper->copies = false;
}

/* Free the buffer of a finished task. */
static void drop(struct store_keeper *keeper)
{
    struct archive_task *task = &keeper->task;

    assert(keeper->busy);
    store_keeper_detach(keeper);
    if (task->bytes)
        trib_quota_give_mt(keeper->opts->quota, task->n);
    free(task->bytes);
    task->bytes = NULL;
    keeper->busy = false;
}

void store_keeper_free(struct store_keeper *keeper)
{
    if (!keeper)
        return;
    if (keeper->busy) {
        archive_wait(keeper->opts->archive, &keeper->task);
        drop(keeper);
    }
    if (keeper->opts->archive)
        (void)archive_use(keeper->opts->archive, keeper->opts->about.owner, false);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper->orders);
    free(keeper->kept);
    free(keeper);
}

static bool is_idle(const struct store_keeper *keeper)
{
    return keeper->opts->archive && !keeper->busy;
}

static struct archive_key key_of(const struct store_keeper *keeper, uint32_t vector)
{
    return (struct archive_key){keeper->opts->about.owner, keeper->opts->about.user,
                                trib_store_name(keeper->table, vector)};
}

/* Grow `kept` to all vectors; false: out of memory. */
static bool grow(struct store_keeper *keeper)
{
    const uint32_t n = trib_store_table_size(keeper->table);

    if (n <= keeper->n)
        return true;
    struct kept *more = realloc(keeper->kept, n * sizeof(*more));
    if (!more)
        return false;
    memset(more + keeper->n, 0, (n - keeper->n) * sizeof(*more));
    keeper->kept = more;
    keeper->n = n;
    return true;
}

void store_keeper_found(struct store_keeper *keeper, uint32_t vector)
{
    const struct archive_key key = key_of(keeper, vector);

    if (keeper->opts->archive)
        trib_store_set_saved(keeper->table, vector,
                             archive_version(keeper->opts->archive, &key));
}

/* Allocate the buffer for a copy. */
static trib_status_t make_room(struct store_keeper *keeper, uint32_t vector,
                               struct trib_error *err)
{
    struct trib_store_image image;

    trib_store_image(keeper->table, vector, &image);
    return archive_make_room(&keeper->task, trib_snapshot_bytes(&image),
                             "a copy for a snapshot", err);
}

/* Copy the vector and queue it for the archive, unless the store was ended: the copy
 * would overwrite the snapshot of a store that has replaced this one, or restore one
 * that an operator has removed. */
static void *copy(void *arg)
{
    struct store_keeper *keeper = arg;
    const struct trib_store_table *table = keeper->table;
    const uint32_t vector = keeper->what.vector;
    struct trib_snapshot_about about = keeper->opts->about;
    struct trib_store_image image;
    struct trib_store_walk walk;

    assert(keeper->busy && keeper->task.bytes);
    about.taken_s = time(NULL);
    archive_apart_mt(keeper->opts->archive, 1);
    trib_store_walk_begin(table, vector, NULL, &walk);
    trib_store_image(table, vector, &image);
    keeper->changes = trib_store_changes(table, vector);
    trib_snapshot_copy(&image, &about, &walk, keeper->task.bytes);
    trib_store_walk_end(&walk);
    archive_apart_mt(keeper->opts->archive, -1);
    if (atomic_load(&keeper->end->discards))
        archive_discard(keeper->opts->archive, &keeper->task);
    else
        archive_give(keeper->opts->archive, &keeper->task);
    return NULL;
}

/* Start a copier thread; if that fails, copy in the calling thread. */
static void begin_copy(struct store_keeper *keeper)
{
    keeper->copies = !trib_thread_start(&keeper->copier, copy, keeper);
    if (!keeper->copies)
        (void)copy(keeper);
}

/* Begin an order of a rank; opts->ranks: a snapshot that no rank has ordered. */
static trib_status_t begin(struct store_keeper *keeper, uint32_t rank,
                           const struct trib_control_store_snapshot *what,
                           struct trib_error *err)
{
    struct archive_task *task = &keeper->task;

    assert(!keeper->busy);
    memset(task, 0, sizeof(*task));
    task->writes = what->order == TRIB_CONTROL_SNAPSHOT_TAKE;
    task->key = key_of(keeper, what->vector);
    snprintf(keeper->name, sizeof(keeper->name), "%s", task->key.name);
    task->key.name = keeper->name;
    task->last = keeper->last;
    task->job = keeper->opts->about.job;
    task->ended = &keeper->end->ended;
    task->quota = keeper->opts->quota;
    task->wake_fd = keeper->wake_fd;
    task->snapshot = &keeper->read;
    const trib_status_t st =
        task->writes ? make_room(keeper, what->vector, err) : TRIB_OK;
    if (st != TRIB_OK) {
        archive_failed_mt(keeper->opts->archive);
        return st;
    }
    keeper->what = *what;
    keeper->rank = rank;
    keeper->ordered = rank < keeper->opts->ranks;
    keeper->changes = trib_store_changes(keeper->table, what->vector);
    keeper->busy = true;
    keeper->abandoned = false;
    if (task->writes) {
        archive_prepare(keeper->opts->archive, task);
        begin_copy(keeper);
    } else {
        archive_give(keeper->opts->archive, task);
    }
    return TRIB_OK;
}

struct store_order store_keeper_give(struct store_keeper *keeper, uint32_t rank,
                                     const struct trib_control_store_snapshot *what)
{
    const uint64_t one = 1;

    assert(rank < keeper->opts->ranks);
    pthread_mutex_lock(&keeper->mutex);
    const struct store_order order = {
        ++keeper->n_orders, trib_store_changes(keeper->table, what->vector), *what};
    keeper->orders[rank] = order;
    pthread_mutex_unlock(&keeper->mutex);
    (void)!write(keeper->wake_fd, &one, sizeof(one));
    return order;
}

bool store_keeper_answers(const struct store_kept *kept,
                          const struct store_order *order)
{
    return order->number && order->number <= kept->last_order &&
           order->what.vector == kept->what.vector &&
           order->what.order == kept->what.order &&
           (kept->what.order == TRIB_CONTROL_SNAPSHOT_RESTORE ||
            order->changes <= kept->changes);
}

/* Complete a result: the waiting orders that it answers leave the queue. */
static void answer(struct store_keeper *keeper, struct store_kept *kept)
{
    kept->last_order = keeper->n_orders;
    for (uint32_t r = 0; r < keeper->opts->ranks; r++)
        if (store_keeper_answers(kept, &keeper->orders[r]))
            keeper->orders[r].number = 0;
}

void store_keeper_withdraw(struct store_keeper *keeper, uint32_t rank)
{
    assert(rank < keeper->opts->ranks);
    pthread_mutex_lock(&keeper->mutex);
    keeper->orders[rank].number = 0;
    if (keeper->rank == rank && keeper->what.order == TRIB_CONTROL_SNAPSHOT_RESTORE)
        keeper->abandoned = keeper->busy;
    pthread_mutex_unlock(&keeper->mutex);
}

static void log_failure(const struct store_keeper *keeper, const struct trib_error *err)
{
    trib_log(keeper->opts->log, TRIB_LOG_WARN, "tribd", "store %s: %s",
             keeper->opts->about.job, trib_error_text(err));
}

static void end_write(struct store_keeper *keeper, uint64_t now_ns)
{
    const uint32_t vector = keeper->what.vector;
    struct trib_metrics_writer *w = keeper->writer;
    struct trib_snapshot read;

    assert(keeper->task.bytes);
    if (keeper->task.err.status ||
        trib_snapshot_head(keeper->task.bytes, keeper->task.n, NULL, &read) != TRIB_OK)
        return;
    trib_store_set_saved(keeper->table, vector, read.about.version + 1);
    if (w)
        trib_metrics_count(w, TRIB_JOB_COUNTS_SNAPSHOTS, 1);
    if (w)
        trib_metrics_count(w, TRIB_JOB_COUNTS_SNAPSHOT_BYTES, keeper->task.n);
    if (!grow(keeper))
        return;
    keeper->kept[vector] =
        (struct kept){.changes = keeper->changes,
                      .version = read.about.version,
                      .taken_ns = now_ns,
                      .retry_ns = now_ns + trib_max((uint64_t)PAUSE_MS * 1000000,
                                                    PAUSES * keeper->task.took_ns)};
}

/* Copies without the mutex, for which other threads may wait: the task is busy, and the
 * tick may pause this thread. */
static void end_read(struct store_keeper *keeper, const struct trib_store_tick *tick)
{
    const uint32_t vector = keeper->what.vector;
    const struct trib_snapshot *read = &keeper->read;
    struct trib_metrics_writer *w = keeper->writer;

    if (keeper->task.err.status)
        return;
    /* A push that overtakes the restore is a change since the snapshot. */
    const uint64_t changes = trib_store_changes(keeper->table, vector) + 1;
    pthread_mutex_unlock(&keeper->mutex);
    const trib_status_t st =
        trib_store_put(keeper->table, vector, &read->image, tick, &keeper->task.err);
    pthread_mutex_lock(&keeper->mutex);
    if (st != TRIB_OK)
        return;
    trib_store_set_saved(keeper->table, vector, read->about.version + 1);
    if (w)
        trib_metrics_count(w, TRIB_JOB_COUNTS_RESTORES, 1);
    if (grow(keeper)) {
        keeper->kept[vector].changes = changes;
        keeper->kept[vector].version = read->about.version;
    }
}

/* Finish the current task if it is done. */
static bool end(struct store_keeper *keeper, const struct trib_store_tick *tick,
                struct store_kept *out)
{
    struct archive_task *task = &keeper->task;
    const uint64_t now_ns = trib_now_ns();

    if (!keeper->busy || !archive_is_done(keeper->opts->archive, task))
        return false;
    if (keeper->abandoned) {
        drop(keeper);
        return false;
    }
    if (task->writes)
        end_write(keeper, now_ns);
    else
        end_read(keeper, tick);
    if (task->err.status)
        log_failure(keeper, &task->err);
    if (task->err.status && grow(keeper))
        keeper->kept[keeper->what.vector].retry_ns =
            now_ns + (uint64_t)RETRY_MS * 1000000;
    *out = (struct store_kept){
        .what = keeper->what, .changes = keeper->changes, .err = task->err};
    answer(keeper, out);
    drop(keeper);
    return true;
}

/* Return true if the vector has changed since its snapshot. Its initial elements do not
 * replace a snapshot of an earlier run, which the ranks may restore next. */
static bool has_changed(const struct store_keeper *keeper, uint32_t vector)
{
    const struct kept *k = &keeper->kept[vector];

    assert(vector < keeper->n);
    if (!k->taken_ns && trib_store_saved(keeper->table, vector) &&
        trib_store_version(keeper->table, vector) == 0)
        return false;
    return trib_store_changes(keeper->table, vector) != k->changes;
}

/* Return true if an operator has removed the snapshot of a changed vector. */
static bool is_forgotten(const struct store_keeper *keeper, uint32_t vector)
{
    const struct archive_key key = key_of(keeper, vector);

    return keeper->kept[vector].changes &&
           !archive_version(keeper->opts->archive, &key);
}

static bool is_due(const struct store_keeper *keeper, uint32_t vector, uint64_t now_ns)
{
    const struct store_job_opts *o = keeper->opts;
    const struct kept *k = &keeper->kept[vector];
    const uint64_t version = trib_store_version(keeper->table, vector);

    if (!has_changed(keeper, vector) || now_ns < k->retry_ns)
        return false;
    /* A copy may have undone pushes that the snapshot has. */
    return (o->every_pushes &&
            (version < k->version || version - k->version >= o->every_pushes)) ||
           (o->every_ms && now_ns >= k->taken_ns + o->every_ms * 1000000);
}

/* Begin the oldest order of a rank; true: it failed, and `out` has the reason. */
static bool begin_order(struct store_keeper *keeper, struct store_kept *out)
{
    const uint32_t ranks = keeper->opts->ranks;
    struct store_order *oldest = NULL;

    for (struct store_order *o = keeper->orders; o < keeper->orders + ranks; o++)
        if (o->number && (!oldest || o->number < oldest->number))
            oldest = o;
    if (!oldest)
        return false;
    const uint32_t rank = (uint32_t)(oldest - keeper->orders);
    oldest->number = 0;
    *out = (struct store_kept){.what = oldest->what, .changes = oldest->changes};
    if (begin(keeper, rank, &out->what, &out->err) == TRIB_OK)
        return false;
    answer(keeper, out);
    return true;
}

/* Begin a periodic snapshot that is due. */
static void begin_due(struct store_keeper *keeper)
{
    const uint64_t now_ns = trib_now_ns();
    struct trib_control_store_snapshot what = {.order = TRIB_CONTROL_SNAPSHOT_TAKE};
    const uint32_t n = trib_store_table_size(keeper->table);
    const bool by_itself = keeper->opts->every_ms || keeper->opts->every_pushes;
    struct trib_error err = {0};

    if (!by_itself || !grow(keeper))
        return;
    for (uint32_t i = 0; i < n && i < LOOKS && !keeper->busy; i++) {
        what.vector = keeper->at++ % n;
        if (!is_due(keeper, what.vector, now_ns) ||
            begin(keeper, keeper->opts->ranks, &what, &err) == TRIB_OK)
            continue;
        log_failure(keeper, &err);
        trib_error_clear(&err);
        keeper->kept[what.vector].retry_ns = now_ns + (uint64_t)RETRY_MS * 1000000;
    }
}

/* Orders and periodic snapshots take turns. */
static bool step(struct store_keeper *keeper, const struct trib_store_tick *tick,
                 struct store_kept *out)
{
    const bool ordered = keeper->ordered;

    if (end(keeper, tick, out))
        return true;
    if (is_idle(keeper) && ordered)
        begin_due(keeper);
    if (is_idle(keeper) && begin_order(keeper, out))
        return true;
    if (is_idle(keeper) && !ordered)
        begin_due(keeper);
    return false;
}

bool store_keeper_step(struct store_keeper *keeper, const struct trib_store_tick *tick,
                       struct store_kept *out)
{
    pthread_mutex_lock(&keeper->mutex);
    const bool ended = step(keeper, tick, out);
    pthread_mutex_unlock(&keeper->mutex);
    return ended;
}

/* Write all changes since the last snapshots. Return the lowest status: a shortage,
 * which may pass, is the highest error, and BUSY if only memory for copies is short. */
static trib_status_t write_changes(struct store_keeper *keeper)
{
    struct trib_control_store_snapshot what = {.order = TRIB_CONTROL_SNAPSHOT_TAKE};
    const uint32_t n = trib_store_table_size(keeper->table);
    struct store_kept kept = {.err = {0}};
    trib_status_t worst = TRIB_OK;

    if (!grow(keeper))
        return TRIB_ERR_NO_MEMORY;
    for (uint32_t i = 0; i <= n; i++) {
        if (keeper->busy) {
            archive_wait(keeper->opts->archive, &keeper->task);
            trib_error_clear(&kept.err);
            (void)end(keeper, NULL, &kept);
            worst = kept.err.status < worst ? kept.err.status : worst;
        }
        what.vector = i;
        if (i == n || (!has_changed(keeper, i) && !is_forgotten(keeper, i)))
            continue;
        trib_error_clear(&kept.err);
        if (begin(keeper, keeper->opts->ranks, &what, &kept.err) != TRIB_OK)
            log_failure(keeper, &kept.err);
        if (kept.err.status == TRIB_ERR_NO_RESOURCE)
            kept.err.status = TRIB_ERR_BUSY;
        worst = kept.err.status < worst ? kept.err.status : worst;
    }
    return worst;
}

/* Other stores may end now, too, and free memory and files. A shortage counts as a
 * failed try unless another snapshot is being written, which may take long, or is just
 * copied and only memory is short: stores without room make their copies in vain. */
void store_keeper_last(struct store_keeper *keeper)
{
    struct archive *archive = keeper->opts->archive;
    trib_status_t st;

    if (!archive)
        return;
    pthread_mutex_lock(&keeper->mutex); /* no one waits for it, but end() expects it */
    keeper->last = true;
    for (int i = 0; (st = write_changes(keeper)) != TRIB_OK && i < LAST_TRIES - 1;) {
        const uint64_t progress = archive_progress_mt(archive);
        archive_apart_mt(archive, 1);
        nanosleep(&(struct timespec){.tv_nsec = LAST_PAUSE_MS * 1000000L}, NULL);
        archive_apart_mt(archive, -1);
        i += st < TRIB_ERR_NO_RESOURCE ||
             (progress == archive_progress_mt(archive) &&
              !archive_is_writing(archive, st == TRIB_ERR_BUSY));
    }
    pthread_mutex_unlock(&keeper->mutex);
    if (st == TRIB_OK)
        return;
    archive_lost_mt(archive);
    trib_log(keeper->opts->log, TRIB_LOG_ERROR, "tribd",
             "store %s: its last snapshots failed: the pushes since earlier ones are "
             "lost",
             keeper->opts->about.job);
}
