/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for services. Its thread connects, proves who it is and asks for room; all
 * of that may take seconds, which no start waits for. What it has got it keeps for a
 * while, until the ranks are at a place where they can go there; after that it gives
 * the room back, and asks anew when they come.
 *
 * The thread frees it all, so that who closes it need not wait: it may be in a call
 * that does not return soon.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/time.h"
#include "base/wait.h"
#include "offload/control_link.h"

enum {
    PAUSE_MOST_MS = 60000,
    KEEP_MS = 15000, /* room that nobody uses yet; a node waits for twice as long */
    STEP_MS = 200,
    QUEUE_MS = 1000,
    TAKE_MS = 1000,
};

struct trib_scout {
    struct trib_sponsor_job job;
    uint64_t taken;
    bool look_only;
    int pause_ms;
    _Atomic bool found;

    /* under the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool closed;
    bool wanted; /* somebody waits in trib_scout_take */
    struct trib_sponsor *sponsor;
};

static void scout_free(struct trib_scout *s)
{
    trib_sponsor_free(s->sponsor);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* Those that would have the job, but for `out`, where a refusal is noted; NULL:
 * none. */
static struct trib_sponsor *try_without(const struct trib_scout *s, uint64_t *out,
                                        bool *again)
{
    struct trib_error err = {0};
    struct trib_sponsor *got;

    *again = false;
    if (trib_sponsor_new(&s->job, NULL, &err, &got) != TRIB_OK)
        return NULL;
    got->wait_ms = QUEUE_MS;
    for (int i = 0; i < s->job.n; i++)
        if (!(*out >> i & 1) && trib_sponsor_reach(got, i, true) != TRIB_OK)
            *out |= UINT64_C(1) << i;
    for (int i = 0; i < got->n && !*again; i++) {
        if (trib_sponsor_ask(got, i) == TRIB_OK)
            continue;
        *out |= UINT64_C(1) << got->which[i];
        *again = true;
    }
    const bool enough = s->job.tree_bytes ? got->n == s->job.n : got->n > 0;
    if (enough && !*again)
        return got;
    trib_sponsor_free(got);
    return NULL;
}

/* Each has been told how many they are: where one refuses, all are asked again. */
static struct trib_sponsor *try(const struct trib_scout *s)
{
    uint64_t out = s->taken;
    bool again = true;
    struct trib_sponsor *got = NULL;

    while (again && !got)
        got = try_without(s, &out, &again);
    return got;
}

/* With the mutex; until something is wanted, or the moment. */
static void pause_until(struct trib_scout *s, uint64_t moment)
{
    while (!s->closed && !s->wanted && !trib_deadline_passed(moment))
        (void)trib_cond_wait(&s->wake, &s->mutex, moment);
}

/*
 * With the mutex: what was admitted is kept, for a while; false: it is lost. Nothing is
 * read, for what nodes say first is for the ranks.
 */
static bool keep(struct trib_scout *s)
{
    const uint64_t until = trib_deadline_ms(KEEP_MS);
    bool alive = true;

    while (s->sponsor && !s->closed && alive && !trib_deadline_passed(until)) {
        (void)trib_cond_wait(&s->wake, &s->mutex, trib_deadline_ms(STEP_MS));
        alive = !s->sponsor || trib_sponsor_whole(s->sponsor);
    }
    struct trib_sponsor *rest = s->sponsor;
    s->sponsor = NULL;
    pthread_mutex_unlock(&s->mutex);
    trib_sponsor_free(rest);
    pthread_mutex_lock(&s->mutex);
    return alive;
}

/* With the mutex: one try. */
static void search(struct trib_scout *s)
{
    pthread_mutex_unlock(&s->mutex);
    struct trib_sponsor *got = try(s);
    atomic_store(&s->found, got != NULL);
    if (s->look_only) {
        trib_sponsor_free(got);
        got = NULL;
    }
    pthread_mutex_lock(&s->mutex);
    s->sponsor = got;
    if (s->wanted) {
        s->wanted = false;
        pthread_cond_broadcast(&s->wake);
    }
    if (got && !keep(s))
        atomic_store(&s->found, false);
}

static void *scout_main(void *arg)
{
    struct trib_scout *s = arg;

    pthread_mutex_lock(&s->mutex);
    for (;;) {
        pause_until(s,
                    trib_scout_found(s) ? UINT64_MAX : trib_deadline_ms(s->pause_ms));
        if (s->closed)
            break;
        search(s);
        s->pause_ms = s->pause_ms > PAUSE_MOST_MS / 2 ? PAUSE_MOST_MS : 2 * s->pause_ms;
    }
    pthread_mutex_unlock(&s->mutex);
    scout_free(s);
    return NULL;
}

trib_status_t trib_scout_open(const struct trib_scout_opts *opts,
                              struct trib_scout **out)
{
    struct trib_scout *s = calloc(1, sizeof(*s));
    pthread_t thread;

    *out = NULL;
    if (!s)
        return TRIB_ERR_NO_MEMORY;
    s->job = *opts->job;
    s->taken = opts->taken;
    s->look_only = opts->look_only;
    s->pause_ms = opts->pause_ms;
    pthread_mutex_init(&s->mutex, NULL);
    trib_cond_init(&s->wake);
    if (trib_thread_start(&thread, scout_main, s) != 0) {
        scout_free(s);
        return TRIB_ERR_SYSTEM;
    }
    pthread_detach(thread);
    *out = s;
    return TRIB_OK;
}

bool trib_scout_found(const struct trib_scout *scout)
{
    return atomic_load_explicit(&scout->found, memory_order_relaxed);
}

struct trib_sponsor *trib_scout_take(struct trib_scout *s)
{
    const uint64_t until = trib_deadline_ms(TAKE_MS);

    pthread_mutex_lock(&s->mutex);
    if (!s->sponsor) {
        s->wanted = true;
        pthread_cond_broadcast(&s->wake);
    }
    while (s->wanted && !trib_deadline_passed(until))
        (void)trib_cond_wait(&s->wake, &s->mutex, until);
    struct trib_sponsor *got = s->sponsor;
    s->sponsor = NULL;
    pthread_mutex_unlock(&s->mutex);
    return got;
}

void trib_scout_close(struct trib_scout *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    struct trib_sponsor *rest = s->sponsor;
    s->sponsor = NULL;
    s->closed = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    trib_sponsor_free(rest);
}
