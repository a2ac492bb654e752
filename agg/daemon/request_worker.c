/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/request_worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"

enum { STOP_MS = 5000 }; /* longer than a munged query */

struct list {
    struct request_worker_task *first, *last;
};

struct request_worker {
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* wakes the thread; at its end, wakes request_worker_stop */
    struct list queued, finished; /* under mutex, like the fields below */
    bool stop, ended;
};

static void append(struct list *list, struct request_worker_task *task)
{
    assert(!list->first == !list->last);
    task->next = NULL;
    *(list->last ? &list->last->next : &list->first) = task;
    list->last = task;
}

static struct request_worker_task *take_first(struct list *list)
{
    struct request_worker_task *task = list->first;

    if (task)
        list->first = task->next;
    if (!list->first)
        list->last = NULL;
    return task;
}

/* Return the next task; NULL: stop. Called with the mutex held. */
static struct request_worker_task *wait_for_task(struct request_worker *worker)
{
    struct request_worker_task *task = NULL;

    while (!worker->stop && !(task = take_first(&worker->queued)))
        pthread_cond_wait(&worker->wake, &worker->mutex);
    return task;
}

static void *run(void *arg)
{
    struct request_worker *worker = arg;
    const uint64_t one = 1;
    struct request_worker_task *task;

    pthread_mutex_lock(&worker->mutex);
    while ((task = wait_for_task(worker))) {
        pthread_mutex_unlock(&worker->mutex);
        task->worked = !task->until || !trib_deadline_passed(task->until);
        if (task->worked)
            task->work(task);
        pthread_mutex_lock(&worker->mutex);
        append(&worker->finished, task);
        if (!worker->stop) /* else wake_fd may be closed already */
            (void)!write(worker->wake_fd, &one, sizeof(one));
    }
    worker->ended = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

static void dispose(struct request_worker *worker)
{
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}

trib_status_t request_worker_start(int wake_fd, struct trib_error *err,
                                   struct request_worker **out)
{
    struct request_worker *worker = calloc(1, sizeof(*worker));

    *out = NULL;
    if (!worker)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "out of memory for a thread that queries munged");
    worker->wake_fd = wake_fd;
    pthread_mutex_init(&worker->mutex, NULL);
    trib_cond_init(&worker->wake);
    errno = trib_thread_start(&worker->thread, run, worker);
    if (errno) {
        (void)trib_fail(err, TRIB_ERR_SYSTEM,
                        "cannot start a thread that queries munged: %m");
        dispose(worker);
        return TRIB_ERR_SYSTEM;
    }
    *out = worker;
    return TRIB_OK;
}

void request_worker_submit(struct request_worker *worker,
                           struct request_worker_task *task)
{
    assert(task->work && task->done);
    task->worked = false;
    pthread_mutex_lock(&worker->mutex);
    append(&worker->queued, task);
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

bool request_worker_cancel(struct request_worker *worker,
                           struct request_worker_task *task)
{
    struct request_worker_task *before = NULL;

    pthread_mutex_lock(&worker->mutex);
    struct request_worker_task *at = worker->queued.first;
    for (; at && at != task; at = at->next)
        before = at;
    if (at) {
        *(before ? &before->next : &worker->queued.first) = at->next;
        if (worker->queued.last == at)
            worker->queued.last = before;
    }
    pthread_mutex_unlock(&worker->mutex);
    return at;
}

static void finish_all(struct list *list)
{
    struct request_worker_task *task;

    while ((task = take_first(list)))
        task->done(task);
}

void request_worker_poll(struct request_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    struct list finished = worker->finished;
    worker->finished = (struct list){NULL, NULL};
    pthread_mutex_unlock(&worker->mutex);
    finish_all(&finished);
}

/* Return true if the thread ends in time. Uses a monotonic clock. */
static bool wait_for_end(struct request_worker *worker)
{
    const uint64_t until = trib_deadline_ms(STOP_MS);

    pthread_mutex_lock(&worker->mutex);
    while (!worker->ended && trib_cond_wait(&worker->wake, &worker->mutex, until))
        continue;
    const bool ended = worker->ended;
    pthread_mutex_unlock(&worker->mutex);
    return ended;
}

void request_worker_stop(struct request_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->mutex);
    worker->stop = true;
    struct list queued = worker->queued;
    worker->queued = (struct list){NULL, NULL};
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    finish_all(&queued);
    const bool ended = wait_for_end(worker);
    request_worker_poll(worker);
    if (ended) {
        pthread_join(worker->thread, NULL);
        dispose(worker);
    } else {
        pthread_detach(worker->thread);
    }
}
