/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run ranks by trib_init: n processes, or n threads of one process, on any transport,
 * under a watchdog. Ranks report results in memory that they share with the test.
 */
#ifndef TESTS_HARNESS_RANKS_H
#define TESTS_HARNESS_RANKS_H

#include <stdatomic.h>
#include <sys/types.h>

#include <tributary.h>

#include "tests/harness/tribtest.h"

#define RANKS_MAX 16
#define RANKS_TEXT 700
#define RANKS_NEVER INT32_MIN /* status of a rank whose function has not returned */

/* The test's view of a rank, while it runs and after its end. */
struct ranks_slot {
    _Atomic int phase;       /* ranks_phase: free for the test */
    _Atomic uint64_t count;  /* free for the test */
    _Atomic int warnings;    /* log lines of level warn and error */
    int status;              /* what the rank's function returned */
    double begin;            /* seconds, monotonic */
    double end;              /* time of its function's return */
    char text[RANKS_TEXT];   /* reason of a failure, or a message of the rank */
    char warning[RANKS_TEXT]; /* the first log line of that kind */
};

/* A rank, as passed to its function. */
struct ranks_self {
    int rank;
    int size;
    trib_comm_t *comm; /* NULL if job.bare */
    trib_opts_t opts;  /* arguments of trib_init */
    void *arg;
    struct ranks_slot *slot;
};

/* Returns 0 on success. Must not use asserts of cmocka; use ranks_die instead. */
typedef int (*ranks_fn)(struct ranks_self *self);

struct ranks_job {
    int size;
    ranks_fn fn;
    void *arg;          /* processes get a copy */
    const char *config; /* trib_opts_t.config; NULL for none */
    unsigned seconds;   /* of the watchdog, times tribtest_slowness; 0: 100 */
    bool threads;       /* run threads instead of processes */
    bool bare;          /* fn calls trib_init and trib_free_comm itself */
    bool noisy;         /* warnings are expected */
};

/* A running job. */
struct ranks {
    struct ranks_job job;
    struct ranks_slot *slots; /* [job.size], shared */
    trib_local_t *local;
    int n_processes;
    pid_t pids[RANKS_MAX];
    int wait_status[RANKS_MAX];
    bool ended[RANKS_MAX];
    bool hung; /* the watchdog ended it */
    /* The threads' rendezvous is memory that each maps elsewhere, so a race detector
     * does not see its order. The barrier makes initialization happen before use. */
    pthread_barrier_t threads_begun;
    double deadline;
};

/** ranks_start - start the ranks; false: the system refused (the reason is on standard
 * error). */
bool ranks_start(struct ranks *r, const struct ranks_job *job);

/** ranks_poll - check once; true when all processes have ended and were reaped. */
bool ranks_poll(struct ranks *r);

/** ranks_wait - wait until all have ended or the watchdog has ended them. */
void ranks_wait(struct ranks *r);

/** ranks_failed - return the number of failed ranks; reports each. */
int ranks_failed(const struct ranks *r);

/**
 * ranks_outlive - wait until all ranks outside the mask `lost` have ended, then kill
 * the rest.
 */
void ranks_outlive(struct ranks *r, unsigned lost);

/**
 * ranks_survived - fail the test, with the text, unless all ranks outside the mask
 * `lost` succeeded and the watchdog ended none. Then close.
 */
void ranks_survived(struct ranks *r, unsigned lost, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** ranks_close - free the job. All processes must have ended. */
void ranks_close(struct ranks *r);

/** ranks_run - run a job from start to close; return the number of failed ranks. */
int ranks_run(const struct ranks_job *job);

/* Assert that all ranks of a job succeed; the arguments are its fields. */
#define ranks_pass(...) \
    assert_int_equal(ranks_run(&(struct ranks_job){__VA_ARGS__}), 0)

/** ranks_seconds - return the monotonic time in seconds. */
double ranks_seconds(void);

/** ranks_signal - send a signal to the process of a rank. */
void ranks_signal(struct ranks *r, int rank, int number);

/* Inside a rank: report the reason and exit the process, all threads, with status 1. */
void ranks_die(const struct ranks_self *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** ranks_say - write a message to slot->text. */
void ranks_say(const struct ranks_self *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** ranks_expect - die unless a call returned the expected status. */
void ranks_expect(const struct ranks_self *self, trib_status_t status,
                  trib_status_t expected, const char *what);

/** ranks_refused - as ranks_expect; trib_last_error must contain all words, too. */
void ranks_refused(const struct ranks_self *self, trib_status_t status,
                   trib_status_t expected, const char *const *words);

/** ranks_make_plan - create a plan; dies unless that succeeds. */
trib_plan_t *ranks_make_plan(const struct ranks_self *self, trib_comm_t *comm,
                             trib_coll_t coll, const trib_desc_t *desc);

/** ranks_step - start a plan and wait for it; dies unless both succeed. */
void ranks_step(const struct ranks_self *self, trib_plan_t *plan);

/* ranks_make_plan with the fields of the description: ranks_plan(self, TRIB_ALLREDUCE,
 * .recv = x, .count = 8). */
#define ranks_plan_on(self, comm, coll, ...) \
    ranks_make_plan(self, comm, coll, &sized(trib_desc_t, __VA_ARGS__))
#define ranks_plan(self, ...) ranks_plan_on(self, (self)->comm, __VA_ARGS__)

#define ranks_ok(self, call) ranks_expect(self, call, TRIB_OK, #call)

#define ranks_assert(self, cond) \
    do { \
        if (!(cond)) \
            ranks_die(self, "%s:%d: %s", __FILE__, __LINE__, #cond); \
    } while (0)

/** ranks_has - return whether a text contains all these words; NULL ends the list. */
bool ranks_has(const char *text, const char *const *words);

/* Define a case by the code that each rank runs with `self`. The fields of its job
 * follow the name: RANKS_TEST(test_sum, .size = 2) { ... return 0; } */
#define RANKS_TEST(id, ...) \
    static int id##_rank(struct ranks_self *self); \
    TEST(id) \
    { \
        ranks_pass(.fn = id##_rank, __VA_ARGS__); \
    } \
    static int id##_rank(struct ranks_self *self)

/* The same on each of these transports:
 * RANKS_TEST_ON(test_sum, ("shm", "tcp"), .size = 2) { ... return 0; } */
#define RANKS_TEST_ON(id, transports, ...) \
    static int id##_rank(struct ranks_self *self); \
    TEST_ON(id, RANKS_LIST transports) \
    { \
        ranks_pass(.fn = id##_rank, .config = *state, __VA_ARGS__); \
    } \
    static int id##_rank(struct ranks_self *self)
#define RANKS_LIST(...) __VA_ARGS__

#endif
