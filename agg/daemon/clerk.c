/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/clerk.h"

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
    struct clerk_task *first, *last;
};

struct clerk {
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t mutex;
    pthread_cond_t wake;          /* wakes the thread; at its end, wakes clerk_stop */
    struct list queued, finished; /* under mutex, like the fields below */
    bool stop, ended;
};

static void append(struct list *list, struct clerk_task *task)
{
    assert(!list->first == !list->last);
    task->next = NULL;
    *(list->last ? &list->last->next : &list->first) = task;
    list->last = task;
}

static struct clerk_task *take_first(struct list *list)
{
    struct clerk_task *task = list->first;

    if (task)
        list->first = task->next;
    if (!list->first)
        list->last = NULL;
    return task;
}

/* Return the next task; NULL: stop. Called with the mutex held. */
static struct clerk_task *wait_for_task(struct clerk *clerk)
{
    struct clerk_task *task = NULL;

    while (!clerk->stop && !(task = take_first(&clerk->queued)))
        pthread_cond_wait(&clerk->wake, &clerk->mutex);
    return task;
}

static void *run(void *arg)
{
    struct clerk *clerk = arg;
    const uint64_t one = 1;
    struct clerk_task *task;

    pthread_mutex_lock(&clerk->mutex);
    while ((task = wait_for_task(clerk))) {
        pthread_mutex_unlock(&clerk->mutex);
        task->worked = !task->until || !trib_deadline_passed(task->until);
        if (task->worked)
            task->work(task);
        pthread_mutex_lock(&clerk->mutex);
        append(&clerk->finished, task);
        if (!clerk->stop) /* else wake_fd may be closed already */
            (void)!write(clerk->wake_fd, &one, sizeof(one));
    }
    clerk->ended = true;
    pthread_cond_signal(&clerk->wake);
    pthread_mutex_unlock(&clerk->mutex);
    return NULL;
}

static void dispose(struct clerk *clerk)
{
    pthread_cond_destroy(&clerk->wake);
    pthread_mutex_destroy(&clerk->mutex);
    free(clerk);
}

trib_status_t clerk_start(int wake_fd, struct trib_error *err, struct clerk **out)
{
    struct clerk *clerk = calloc(1, sizeof(*clerk));

    *out = NULL;
    if (!clerk)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "out of memory for a thread that queries munged");
    clerk->wake_fd = wake_fd;
    pthread_mutex_init(&clerk->mutex, NULL);
    trib_cond_init(&clerk->wake);
    errno = trib_thread_start(&clerk->thread, run, clerk);
    if (errno) {
        (void)trib_fail(err, TRIB_ERR_SYSTEM,
                        "cannot start a thread that queries munged: %m");
        dispose(clerk);
        return TRIB_ERR_SYSTEM;
    }
    *out = clerk;
    return TRIB_OK;
}

void clerk_give(struct clerk *clerk, struct clerk_task *task)
{
    assert(task->work && task->done);
    task->worked = false;
    pthread_mutex_lock(&clerk->mutex);
    append(&clerk->queued, task);
    pthread_cond_signal(&clerk->wake);
    pthread_mutex_unlock(&clerk->mutex);
}

bool clerk_take_back(struct clerk *clerk, struct clerk_task *task)
{
    struct clerk_task *before = NULL;

    pthread_mutex_lock(&clerk->mutex);
    struct clerk_task *at = clerk->queued.first;
    for (; at && at != task; at = at->next)
        before = at;
    if (at) {
        *(before ? &before->next : &clerk->queued.first) = at->next;
        if (clerk->queued.last == at)
            clerk->queued.last = before;
    }
    pthread_mutex_unlock(&clerk->mutex);
    return at;
}

static void finish_all(struct list *list)
{
    struct clerk_task *task;

    while ((task = take_first(list)))
        task->done(task);
}

void clerk_tend(struct clerk *clerk)
{
    pthread_mutex_lock(&clerk->mutex);
    struct list finished = clerk->finished;
    clerk->finished = (struct list){NULL, NULL};
    pthread_mutex_unlock(&clerk->mutex);
    finish_all(&finished);
}

/* Return true if the thread ends in time. Uses a monotonic clock. */
static bool wait_for_end(struct clerk *clerk)
{
    const uint64_t until = trib_deadline_ms(STOP_MS);

    pthread_mutex_lock(&clerk->mutex);
    while (!clerk->ended && trib_cond_wait(&clerk->wake, &clerk->mutex, until))
        continue;
    const bool ended = clerk->ended;
    pthread_mutex_unlock(&clerk->mutex);
    return ended;
}

void clerk_stop(struct clerk *clerk)
{
    if (!clerk)
        return;
    pthread_mutex_lock(&clerk->mutex);
    clerk->stop = true;
    struct list queued = clerk->queued;
    clerk->queued = (struct list){NULL, NULL};
    pthread_cond_signal(&clerk->wake);
    pthread_mutex_unlock(&clerk->mutex);
    finish_all(&queued);
    const bool ended = wait_for_end(clerk);
    clerk_tend(clerk);
    if (ended) {
        pthread_join(clerk->thread, NULL);
        dispose(clerk);
    } else {
        pthread_detach(clerk->thread);
    }
}
