/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * n ranks as threads or as forked processes, with a common area through which they meet
 * while what they test is not yet, or no longer, able to.
 *
 * Nothing here waits without a deadline: a rank that hangs is killed (process) or ends
 * the test binary (thread).
 */
#ifndef TESTS_HARNESS_SPAWN_H
#define TESTS_HARNESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWN_RANKS_MAX 64
#define SPAWN_BLOB_MAX 2560

struct spawn_area;

/* One rank's view. */
struct spawn {
    int rank;
    int size;
    bool threads;
    void *arg;
    uint64_t deadline; /* base/time.h */
    uint32_t phase; /* barriers passed */
    int failures; /* of spawn_check */
    struct spawn_area *area;
};

/* The end of a rank. */
struct spawn_result {
    int failures; /* checks that failed */
    int signal; /* that ended the process; 0: it returned */
    bool timed_out;
};

struct spawn_opts {
    int size;
    bool threads;
    int timeout_ms; /* times tribtest_slowness */
    void (*fn)(struct spawn *s);
    void *arg;
};

/**
 * spawn_run - run fn on all ranks.
 *
 * results  one for each rank; may be NULL
 * returns  how many ranks failed a check, timed out, or died of a signal
 */
int spawn_run(const struct spawn_opts *opts, struct spawn_result *results);

/** spawn_barrier - false when a rank failed or does not come before the deadline. */
bool spawn_barrier(struct spawn *s);

/** spawn_meet - once in a run: wait until n ranks are here, such as the survivors. */
bool spawn_meet(struct spawn *s, int n);

/** spawn_allgather - as boot's: `bytes` from each rank, size * bytes to all. */
bool spawn_allgather(struct spawn *s, const void *in, size_t bytes, void *out);

/** spawn_tell - how far this rank has come: a number that grows, 0 at first. */
void spawn_tell(struct spawn *s, uint32_t number);

/** spawn_await - until a rank has told `number` or more; false as spawn_barrier. */
bool spawn_await(struct spawn *s, int rank, uint32_t number);

/** spawn_signal - send a signal to another rank's process. */
void spawn_signal(const struct spawn *s, int rank, int number);

/** spawn_pid - the process of a rank. */
pid_t spawn_pid(const struct spawn *s, int rank);

/** spawn_expired - is the deadline over? For loops in tests. */
bool spawn_expired(const struct spawn *s);

/** spawn_check - count a failure and say where; returns ok. */
bool spawn_check(struct spawn *s, bool ok, const char *file, int line,
                 const char *text);

#define SPAWN_CHECK(s, condition) \
    spawn_check((s), (condition), __FILE__, __LINE__, #condition)

#endif
