/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included by every test: cmocka with its headers in order, a deadline, ranks as
 * processes or threads, and a log that fails the test on an unexpected warning.
 */
#ifndef TESTS_HARNESS_TRIBTEST_H
#define TESTS_HARNESS_TRIBTEST_H

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <tributary/comm.h>

#include "tests/harness/cases.h"

#define TRIBTEST_SKIPPED 77 /* exit status of a skipped test, by automake */
#define TRIBTEST_RANKS_MAX 64

/* Skip the running case, with the reason in the test's log. */
#define tribtest_skip(reason) \
    do { \
        printf("# skipped: %s: %s\n", __func__, reason); \
        skip(); \
    } while (0)

/* Compare statuses by name, so that failures are readable. */
#define assert_status(status, expected) \
    assert_string_equal(trib_status_name(status), trib_status_name(expected))
#define assert_ok(status) assert_status(status, TRIB_OK)

/* A public struct with its size and these fields: sized(trib_desc_t, .count = 8). */
#define sized(type, ...) ((type){.size = sizeof(type), __VA_ARGS__})

/* The parent of a test may ignore SIGCHLD or block signals. Both are
 * inherited and would lose the exit statuses of ranks, so reset them. */
__attribute__((constructor)) static void tribtest_signals(void)
{
    sigset_t none;

    (void)signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Return this build's slowdown relative to a normal one: TRIBTEST_SLOWNESS or 1. */
static inline unsigned tribtest_slowness(void)
{
    const char *text = getenv("TRIBTEST_SLOWNESS");
    long times = text ? strtol(text, NULL, 10) : 1;

    return times < 1 ? 1 : times > 100 ? 100 : (unsigned)times;
}

/* Limit of a wait for a certain event: far longer than it takes on a busy
 * machine. */
static inline int tribtest_patience_ms(void)
{
    return 60000 * (int)tribtest_slowness();
}

/* Back off in iteration `turn` (from 0) of a waiting loop: yield, later sleep. A loop
 * that only yields takes the processors from other tests, and from the threads that it
 * waits for. */
static inline void tribtest_rest(unsigned *turns)
{
    if ((*turns)++ < 200)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = *turns < 2000 ? 50000 : 500000}, NULL);
}

/* SIGALRM ends the process if it hangs. */
static inline void tribtest_deadline(unsigned seconds)
{
    alarm(seconds * tribtest_slowness());
}

/* Log callback for tests that expect no warning; arg: NULL or an int to count them. */
static inline void tribtest_log(void *arg, trib_log_level_t level, const char *line)
{
    fprintf(stderr, "%s\n", line);
    if (level <= TRIB_LOG_WARN && arg)
        ++*(int *)arg;
}

/* Body of a rank; returns 0 on success. Must not use asserts of cmocka. */
typedef int (*tribtest_rank_fn)(int rank, int size, void *arg);

struct tribtest_thread {
    tribtest_rank_fn fn;
    int rank;
    int size;
    void *arg;
    int result;
};

static inline void *tribtest_thread_main(void *arg)
{
    struct tribtest_thread *t = arg;

    t->result = t->fn(t->rank, t->size, t->arg);
    return NULL;
}

/* Run fn in `size` threads; return the number of ranks that did not return 0. */
static inline int tribtest_threads(int size, tribtest_rank_fn fn, void *arg)
{
    struct tribtest_thread threads[TRIBTEST_RANKS_MAX];
    pthread_t ids[TRIBTEST_RANKS_MAX];
    int failed = 0;

    assert_in_range(size, 1, TRIBTEST_RANKS_MAX);
    for (int i = 0; i < size; i++) {
        threads[i] = (struct tribtest_thread){fn, i, size, arg, -1};
        assert_int_equal(
            pthread_create(&ids[i], NULL, tribtest_thread_main, &threads[i]), 0);
    }
    for (int i = 0; i < size; i++) {
        pthread_join(ids[i], NULL);
        failed += threads[i].result != 0;
    }
    return failed;
}

/* Run fn in `size` child processes with a deadline; return the number that failed. */
static inline int tribtest_forks(int size, unsigned seconds, tribtest_rank_fn fn,
                                 void *arg)
{
    pid_t pids[TRIBTEST_RANKS_MAX];
    int failed = 0;

    assert_in_range(size, 1, TRIBTEST_RANKS_MAX);
    fflush(NULL);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            tribtest_deadline(seconds);
            _exit(fn(i, size, arg) ? 1 : 0);
        }
    }
    for (int i = 0; i < size; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        if (status != 0) {
            failed++;
            fprintf(stderr, "rank %d: %s %d\n", i,
                    WIFSIGNALED(status) ? "signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
    return failed;
}

#endif
