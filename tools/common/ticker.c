/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/ticker.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/rank_table.h"

enum { PATIENCE = 2 }; /* seconds before the first line */

static struct ticker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool runs, ends, shown;
    char what[160];
    size_t done, of;
    struct timespec began,
        part_began; /* start of the whole command, and of the current set of parts */
    struct timespec part_at; /* when `done` was last set */
} ticker = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct timespec now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts;
}

static double since(const struct timespec *then)
{
    const struct timespec ts = now();

    return (double)(ts.tv_sec - then->tv_sec) +
           1e-9 * (double)(ts.tv_nsec - then->tv_nsec);
}

/* Caller holds the lock. */
static void hide(struct ticker *t)
{
    if (t->shown)
        fputs("\r\033[K", stderr);
    t->shown = false;
}

/* Estimate the remaining seconds from the mean time per finished part. */
static double left(const struct ticker *t)
{
    const double behind = since(&t->part_at), all = since(&t->part_began);
    const double rest =
        (all - behind) / (double)t->done * (double)(t->of - t->done) - behind;

    return rest > 0 ? rest : 0;
}

/* Caller holds the lock. The line is cut at the terminal's width, as a wrapped line
 * could not be cleared. */
static void show(struct ticker *t)
{
    char line[256];
    const int width = tool_terminal_width(STDERR_FILENO);
    int n = snprintf(line, sizeof(line), "%s", t->what);

    if (t->of > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", %zu of %zu", t->done,
                      t->of);
    n += snprintf(line + n, sizeof(line) - (size_t)n, ", %.0f s", since(&t->began));
    if (t->done > 0 && t->of > t->done)
        snprintf(line + n, sizeof(line) - (size_t)n, ", about %.0f s left", left(t));
    fprintf(stderr, "\r\033[K%.*s", width > 1 ? width - 1 : 79, line);
    fflush(stderr);
    t->shown = true;
}

static void *run(void *arg)
{
    struct ticker *t = arg;
    struct timespec next = t->began;

    next.tv_sec += PATIENCE;
    pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        if (pthread_cond_timedwait(&t->changed, &t->lock, &next) == 0)
            continue;
        show(t);
        next = now();
        next.tv_sec++;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void tool_ticker_begin(const char *what)
{
    struct ticker *t = &ticker;
    pthread_condattr_t attr;
    sigset_t all, old;

    if (t->runs || !isatty(STDERR_FILENO))
        return;
    t->ends = t->shown = false;
    t->began = now();
    tool_ticker_say(what);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all); /* signals go to the command's thread */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    t->runs = pthread_create(&t->thread, NULL, run, t) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void tool_ticker_say(const char *what)
{
    struct ticker *t = &ticker;

    pthread_mutex_lock(&t->lock);
    snprintf(t->what, sizeof(t->what), "%s", what);
    t->done = t->of = 0;
    t->part_began = now();
    pthread_mutex_unlock(&t->lock);
}

void tool_ticker_part(size_t done, size_t of)
{
    struct ticker *t = &ticker;

    pthread_mutex_lock(&t->lock);
    t->done = done;
    t->of = of;
    t->part_at = now();
    pthread_mutex_unlock(&t->lock);
}

void tool_ticker_hide(void)
{
    struct ticker *t = &ticker;

    pthread_mutex_lock(&t->lock);
    hide(t);
    pthread_mutex_unlock(&t->lock);
}

void tool_ticker_end(void)
{
    struct ticker *t = &ticker;

    if (!t->runs)
        return;
    pthread_mutex_lock(&t->lock);
    t->ends = true;
    hide(t);
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    t->runs = false;
}
