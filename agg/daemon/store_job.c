/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/store_job.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/daemon/archive.h"
#include "agg/daemon/credentials.h"
#include "agg/daemon/store_job_parts.h"
#include "agg/jobs/drr.h"
#include "base/minmax.h"
#include "base/time.h"
#include "base/wait.h"

/* The threads ---------------------------------------------------------------------- */

static bool is_over(struct store_job *job)
{
    bool over;

    pthread_mutex_lock(&job->mutex);
    over = job->ending;
    snprintf(job->why, sizeof(job->why), "%s",
             over          ? job->say
             : job->n_lost ? "its ranks are lost"
                           : "its ranks have left");
    over |= job->empty_ns && !atomic_load(&job->present) &&
            (!job->n_lost ||
             trib_now_ns() - job->empty_ns >= (uint64_t)STORE_JOB_KEEP_MS * 1000000);
    job->closed |= over;
    if (over && !atomic_load(&job->draining))
        atomic_store(&job->end.ended, true);
    pthread_mutex_unlock(&job->mutex);
    return over;
}

/* Drop the snapshots of a run that ended normally: no later run can use them. */
static void drop_snapshots(struct store_job *job, bool ended_well)
{
    const struct archive_key key = {job->opts.about.owner, job->opts.about.user, NULL};

    if (job->opts.archive && !job->opts.about.lasting && ended_well)
        archive_drop(job->opts.archive, &key);
}

static void *serve_more(void *arg)
{
    struct store_thread *t = arg;

    while (!atomic_load(&t->job->stop))
        store_thread_serve(t);
    store_thread_rest(t);
    store_thread_end(t);
    return NULL;
}

static bool has_ended_well(struct store_job *job)
{
    pthread_mutex_lock(&job->mutex);
    const bool well = !job->n_lost && !job->n_here;
    pthread_mutex_unlock(&job->mutex);
    return well;
}

/* End all threads except the first. */
static void stop_more(struct store_job *job, uint32_t n)
{
    assert(n > 0 && n <= job->n_threads);
    atomic_store(&job->stop, true);
    for (uint32_t i = 1; i < n; i++)
        store_thread_wake(&job->threads[i]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(job->threads[i].thread, NULL);
}

/* First thread, which controls the lifetime of the store. */
static void *serve(void *arg)
{
    struct store_job *job = arg;
    const int fd = job->opts.wake_fd;
    const uint64_t one = 1;

    store_thread_take_joiners(&job->threads[0]);
    while (!is_over(job))
        store_thread_serve(&job->threads[0]);
    store_thread_rest(&job->threads[0]);
    const bool well = has_ended_well(job);
    stop_more(job, job->n_threads);
    store_thread_end(&job->threads[0]); /* the ranks do not wait for the disk */
    /* Ranks may continue later. A store that had ended before the shutdown began writes
     * nothing: an operator may have removed its snapshots since. */
    if (!atomic_load(&job->end.ended) && !well && !atomic_load(&job->end.discards))
        store_keeper_last(job->keeper);
    /* Other stores of the user may need the memory, and the place of this one, while it
     * waits for the disk. To free the memory takes long, so the server thread does not
     * do it. */
    store_keeper_detach(job->keeper);
    trib_store_table_destroy(job->table);
    job->table = NULL;
    atomic_store(&job->emptied, true);
    (void)!write(fd, &one, sizeof(one));
    store_keeper_free(job->keeper);
    job->keeper = NULL;
    drop_snapshots(job, well);
    atomic_store(&job->over, true);
    (void)!write(fd, &one, sizeof(one));
    return NULL;
}

/* Start all threads; if one fails, end the others. */
static int start(struct store_job *job)
{
    uint32_t n = 1;
    int why = 0;

    while (n < job->n_threads && !why) {
        why = trib_thread_start(&job->threads[n].thread, serve_more, &job->threads[n]);
        n += !why;
    }
    if (!why)
        why = trib_thread_start(&job->threads[0].thread, serve, job);
    if (why)
        stop_more(job, n);
    return why;
}

/* Life ----------------------------------------------------------------------------- */

/* Take over a list shared by two threads. */
static struct store_member *take_list(struct store_job *job, struct store_member **list)
{
    pthread_mutex_lock(&job->mutex);
    struct store_member *all = *list;
    *list = NULL;
    pthread_mutex_unlock(&job->mutex);
    return all;
}

static void free_members(struct store_member *gone)
{
    while (gone) {
        struct store_member *m = gone;
        gone = m->next;
        trib_session_free(m->session);
        credentials_release(m->credentials);
        free(m);
    }
}

static void free_all(struct store_job *job)
{
    store_keeper_free(job->keeper);
    trib_store_table_destroy(job->table);
    for (uint32_t i = 0; job->threads && i < job->n_threads; i++)
        store_thread_free(&job->threads[i]);
    pthread_mutex_destroy(&job->mutex);
    free(job->threads);
    free(job->members);
    free(job->presence);
    free(job);
}

static trib_status_t allocate(struct store_job *job, struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    job->members = calloc(job->opts.ranks, sizeof(struct store_member *));
    job->presence = calloc(job->opts.ranks, sizeof(*job->presence));
    job->threads = calloc(job->n_threads, sizeof(*job->threads));
    if (!job->members || !job->presence || !job->threads ||
        trib_store_table_create(job->opts.ranks, job->opts.quota, &job->table) !=
            TRIB_OK)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a store");
    for (uint32_t i = 0; i < job->n_threads && st == TRIB_OK; i++)
        st = store_thread_open(job, i, err);
    return st;
}

trib_status_t store_job_open(const struct store_job_opts *opts, struct trib_error *err,
                             struct store_job **out)
{
    struct store_job *job = calloc(1, sizeof(*job));

    assert(opts->ranks > 0 && opts->turns);
    *out = NULL;
    if (!job)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a store");
    job->opts = *opts;
    job->n_threads = (uint32_t)trib_max(1, trib_min(opts->threads, opts->ranks));
    job->flow.weight = TRIB_DRR_WEIGHT_ONE;
    pthread_mutex_init(&job->mutex, NULL);
    trib_status_t st = allocate(job, err);
    if (st == TRIB_OK &&
        store_keeper_create(&job->opts, job->table, &job->end, job->threads[0].writer,
                            job->threads[0].wake_fd, &job->keeper) != TRIB_OK)
        st = trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a store");
    if (st == TRIB_OK && (errno = start(job)))
        st = trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
    if (st != TRIB_OK) {
        trib_metrics_close_mt(opts->metrics, opts->id);
        free_all(job);
        return st;
    }
    *out = job;
    return TRIB_OK;
}

trib_status_t store_job_add(struct store_job *job, struct trib_session *session,
                            uint32_t rank, struct credentials *credentials)
{
    struct store_member *m = calloc(1, sizeof(*m));
    struct store_thread *t = &job->threads[rank % job->n_threads];

    assert(rank < job->opts.ranks);
    if (!m)
        return TRIB_ERR_NO_MEMORY;
    m->session = session;
    m->credentials = credentials;
    m->rank = rank;
    pthread_mutex_lock(&job->mutex);
    const bool closed = job->closed;
    if (!closed) {
        trib_session_adopt(session, &m->err, STORE_JOB_SILENT_MS);
        (void)atomic_fetch_add(&job->present, 1);
        m->next = t->coming;
        t->coming = m;
    }
    pthread_mutex_unlock(&job->mutex);
    if (closed) {
        free(m);
        return TRIB_ERR_PEER_LOST;
    }
    store_thread_wake(t);
    return TRIB_OK;
}

void store_job_end(struct store_job *job, const char *say)
{
    assert(say);
    pthread_mutex_lock(&job->mutex);
    if (!job->ending)
        snprintf(job->say, sizeof(job->say), "%s", say);
    job->ending = job->closed = true;
    if (!atomic_load(&job->draining)) {
        atomic_store(&job->end.discards, true);
        atomic_store(&job->end.ended, true);
    }
    pthread_mutex_unlock(&job->mutex);
    store_thread_wake(&job->threads[0]);
}

void store_job_replace(struct store_job *job)
{
    atomic_store(&job->end.discards, true);
    store_job_end(job, "another run uses its key now");
}

void store_job_set_weight(struct store_job *job, uint32_t weight)
{
    if (weight)
        atomic_store(&job->flow.weight, weight);
}

void store_job_drain(struct store_job *job)
{
    atomic_store(&job->draining, true);
    for (uint32_t i = 0; i < job->n_threads; i++)
        store_thread_wake(&job->threads[i]);
}

bool store_job_reap(struct store_job *job)
{
    const bool over = atomic_load(&job->over);

    free_members(take_list(job, &job->gone));
    return over;
}

bool store_job_is_empty(const struct store_job *job)
{
    return atomic_load(&job->emptied);
}

uint32_t store_job_files(const struct store_job *job)
{
    if (store_job_is_empty(job))
        return job->n_threads;
    return trib_max(atomic_load(&job->present), job->opts.ranks) + job->n_threads;
}

uint32_t store_job_threads(const struct store_job *job)
{
    return store_job_is_empty(job) ? 1 : job->n_threads;
}

bool store_job_is_deserted(const struct store_job *job)
{
    return atomic_load(&job->present) == 0;
}

const char *store_job_why(const struct store_job *job)
{
    return job->why;
}

void store_job_free(struct store_job *job)
{
    store_job_end(job, "the service is shutting down");
    pthread_join(job->threads[0].thread, NULL);
    assert(job->n_here == 0);
    free_members(take_list(job, &job->gone));
    for (uint32_t i = 0; i < job->n_threads; i++)
        free_members(take_list(job, &job->threads[i].coming));
    trib_metrics_close_mt(job->opts.metrics, job->opts.id);
    free_all(job);
}
