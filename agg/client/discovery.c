/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for aggregators. Its thread connects, authenticates and asks for
 * admission. No start waits for that, although it may take seconds. The thread keeps an
 * admission for a while, until the ranks are ready to use it. After that it releases
 * the place, and asks again when the ranks need it.
 *
 * The thread owns the search and frees it, so that trib_discovery_close does not wait
 * while the thread is in a slow call.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agg/client/control_link.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    PAUSE_MOST_MS = 60000,
    KEEP_MS = 15000, /* how long an unused place is kept; tribd waits twice as long */
    STEP_MS = 200,
    QUEUE_MS = 1000,
    TAKE_MS = 1000,
};

struct trib_discovery {
    struct trib_control_link_job job;
    uint64_t taken;
    bool check_only;
    int pause_ms;
    _Atomic bool found;

    /* Protected by the mutex: */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool closed;
    bool wanted; /* a thread waits in trib_discovery_take */
    struct trib_control_link *control_link;
};

static void discovery_free(struct trib_discovery *s)
{
    trib_control_link_free(s->control_link);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* Ask all aggregators except those in the bitmap `out`, and add the ones that refuse to
 * `out`. Return the connections if all the others have admitted the job; NULL: none, or
 * another attempt is needed (*again). */
static struct trib_control_link *try_without(const struct trib_discovery *s,
                                             uint64_t *out, bool *again)
{
    struct trib_error err = {0};
    struct trib_control_link *got;

    *again = false;
    if (trib_control_link_create(&s->job, NULL, &err, &got) != TRIB_OK)
        return NULL;
    got->wait_ms = QUEUE_MS;
    for (int i = 0; i < s->job.n; i++)
        if (!(*out >> i & 1) && trib_control_link_connect(got, i, true) != TRIB_OK)
            *out |= UINT64_C(1) << i;
    for (int i = 0; i < got->n && !*again; i++) {
        if (trib_control_link_request(got, i) == TRIB_OK)
            continue;
        *out |= UINT64_C(1) << got->which[i];
        *again = true;
    }
    const bool enough = s->job.tree_bytes ? got->n == s->job.n : got->n > 0;
    if (enough && !*again)
        return got;
    trib_control_link_free(got);
    return NULL;
}

/* An aggregator must know the number of aggregators. If one refuses, all are asked
 * again with the new number. */
static struct trib_control_link *try(const struct trib_discovery *s)
{
    uint64_t out = s->taken;
    bool again = true;
    struct trib_control_link *got = NULL;

    while (again && !got)
        got = try_without(s, &out, &again);
    return got;
}

/* Wait until a thread wants the result or until `moment`. The caller holds the
 * mutex. */
static void pause_until(struct trib_discovery *s, uint64_t moment)
{
    while (!s->closed && !s->wanted && !trib_deadline_passed(moment))
        (void)trib_cond_wait(&s->wake, &s->mutex, moment);
}

/* Keep a place for a while; return false if it was lost. The caller holds the mutex.
 * Reads nothing, because the first messages of the aggregators are for the ranks. */
static bool keep(struct trib_discovery *s)
{
    const uint64_t until = trib_deadline_ms(KEEP_MS);
    bool alive = true;

    while (s->control_link && !s->closed && alive && !trib_deadline_passed(until)) {
        (void)trib_cond_wait(&s->wake, &s->mutex, trib_deadline_ms(STEP_MS));
        alive = !s->control_link || trib_control_link_is_whole(s->control_link);
    }
    struct trib_control_link *rest = s->control_link;
    s->control_link = NULL;
    pthread_mutex_unlock(&s->mutex);
    trib_control_link_free(rest);
    pthread_mutex_lock(&s->mutex);
    return alive;
}

/* Try once. The caller holds the mutex, which is released while trying. */
static void search(struct trib_discovery *s)
{
    assert(!s->control_link);
    pthread_mutex_unlock(&s->mutex);
    struct trib_control_link *got = try(s);
    atomic_store(&s->found, got != NULL);
    if (s->check_only) {
        trib_control_link_free(got);
        got = NULL;
    }
    pthread_mutex_lock(&s->mutex);
    s->control_link = got;
    if (s->wanted) {
        s->wanted = false;
        pthread_cond_broadcast(&s->wake);
    }
    if (got && !keep(s))
        atomic_store(&s->found, false);
}

static void *discovery_main(void *arg)
{
    struct trib_discovery *s = arg;

    pthread_mutex_lock(&s->mutex);
    for (;;) {
        pause_until(s, trib_discovery_found(s) ? UINT64_MAX
                                               : trib_deadline_ms(s->pause_ms));
        if (s->closed)
            break;
        search(s);
        s->pause_ms = s->pause_ms > PAUSE_MOST_MS / 2 ? PAUSE_MOST_MS : 2 * s->pause_ms;
    }
    pthread_mutex_unlock(&s->mutex);
    discovery_free(s);
    return NULL;
}

trib_status_t trib_discovery_open(const struct trib_discovery_opts *opts,
                                  struct trib_discovery **out)
{
    struct trib_discovery *s = calloc(1, sizeof(*s));
    pthread_t thread;

    assert(opts->pause_ms >= 0 && opts->job->n <= TRIB_AGGREGATORS_MAX);
    *out = NULL;
    if (!s)
        return TRIB_ERR_NO_MEMORY;
    s->job = *opts->job;
    s->taken = opts->taken;
    s->check_only = opts->check_only;
    s->pause_ms = opts->pause_ms;
    pthread_mutex_init(&s->mutex, NULL);
    trib_cond_init(&s->wake);
    if (trib_thread_start(&thread, discovery_main, s) != 0) {
        discovery_free(s);
        return TRIB_ERR_SYSTEM;
    }
    pthread_detach(thread);
    *out = s;
    return TRIB_OK;
}

/* Wait one step for the result. The caller holds the mutex, which is released while the
 * idle function runs. */
static void await_result(struct trib_discovery *s, uint64_t until,
                         struct trib_idle *idle)
{
    enum { STEP_NS = 100000 };
    const uint64_t step = trib_now_ns() + STEP_NS;

    assert(s->wanted);
    (void)trib_cond_wait(&s->wake, &s->mutex,
                         trib_idle_is_set(idle) && step < until ? step : until);
    pthread_mutex_unlock(&s->mutex);
    (void)trib_idle_call(idle);
    pthread_mutex_lock(&s->mutex);
}

bool trib_discovery_found(const struct trib_discovery *discovery)
{
    return atomic_load_explicit(&discovery->found, memory_order_relaxed);
}

struct trib_control_link *trib_discovery_take(struct trib_discovery *s,
                                              struct trib_idle *idle)
{
    const uint64_t until = trib_deadline_ms(TAKE_MS);

    pthread_mutex_lock(&s->mutex);
    if (!s->control_link) {
        s->wanted = true;
        pthread_cond_broadcast(&s->wake);
    }
    while (s->wanted && !trib_deadline_passed(until) && !trib_idle_answer(idle))
        await_result(s, until, idle);
    struct trib_control_link *got = s->control_link;
    s->control_link = NULL;
    pthread_mutex_unlock(&s->mutex);
    if (got)
        trib_control_link_set_idle(got, idle);
    return got;
}

void trib_discovery_close(struct trib_discovery *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    struct trib_control_link *rest = s->control_link;
    s->control_link = NULL;
    s->closed = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    trib_control_link_free(rest);
}
