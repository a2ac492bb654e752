/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run n ranks as threads or forked processes, with a shared area for barriers and
 * exchanges that do not depend on the code under test.
 *
 * All waits have a deadline: a rank that hangs is killed (process) or ends
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

/* Result of a rank. */
struct spawn_result {
    int failures; /* checks that failed */
    int signal; /* signal that ended the process; 0: it returned */
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
 * results  [size]; may be NULL
 * returns  the number of ranks that failed a check, timed out, or died of a signal
 */
int spawn_run(const struct spawn_opts *opts, struct spawn_result *results);

/** spawn_barrier - wait for all ranks; false: a rank failed or missed the deadline. */
bool spawn_barrier(struct spawn *s);

/** spawn_meet - wait for n ranks, such as the survivors; once per run. */
bool spawn_meet(struct spawn *s, int n);

/** spawn_allgather - gather `bytes` of each rank, size * bytes, on all ranks. */
bool spawn_allgather(struct spawn *s, const void *in, size_t bytes, void *out);

/** spawn_tell - publish this rank's progress: a growing number, 0 at first. */
void spawn_tell(struct spawn *s, uint32_t number);

/** spawn_await - wait for a rank's progress of at least `number`; as spawn_barrier. */
bool spawn_await(struct spawn *s, int rank, uint32_t number);

/** spawn_signal - send a signal to another rank's process. */
void spawn_signal(const struct spawn *s, int rank, int number);

/** spawn_pid - return the process of a rank. */
pid_t spawn_pid(const struct spawn *s, int rank);

/** spawn_expired - return whether the deadline has passed, for loops in tests. */
bool spawn_expired(const struct spawn *s);

/** spawn_check - count and report a failure; return ok. */
bool spawn_check(struct spawn *s, bool ok, const char *file, int line,
                 const char *text);

#define SPAWN_CHECK(s, condition) \
    spawn_check((s), (condition), __FILE__, __LINE__, #condition)

#endif
