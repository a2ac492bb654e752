/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks through trib_init: n processes, or n threads of one process, on any transport,
 * under a watchdog. What a rank has to say is in memory that it shares with the test.
 */
#ifndef TESTS_HARNESS_RANKS_H
#define TESTS_HARNESS_RANKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tributary.h>

#define RANKS_MAX 16
#define RANKS_TEXT 700
#define RANKS_NEVER INT32_MIN /* status of a rank whose function has not returned */

/* The test's view of a rank, while it runs and after it ended. */
struct ranks_slot {
    _Atomic int phase;       /* ranks_phase: free for the test */
    _Atomic uint64_t count;  /* free for the test */
    _Atomic int warnings;    /* log lines of level warn and error */
    int status;              /* what the rank's function returned */
    double begin;            /* seconds, monotonic */
    double end;              /* when its function returned */
    char text[RANKS_TEXT];   /* why it failed, or what it wants to say */
    char warning[RANKS_TEXT]; /* the first log line of that kind */
};

/* A rank, as its function sees it. */
struct ranks_self {
    int rank;
    int size;
    trib_comm_t *comm; /* NULL where job.bare */
    trib_opts_t opts;  /* what trib_init was or is to be called with */
    void *arg;
    struct ranks_slot *slot;
};

/* 0 means well. No cmocka asserts inside: ranks_die instead. */
typedef int (*ranks_fn)(struct ranks_self *self);

struct ranks_job {
    int size;
    ranks_fn fn;
    void *arg;          /* processes see a copy */
    const char *config; /* trib_opts_t.config; NULL for none */
    unsigned seconds;   /* of the watchdog, times tribtest_slowness; 0: 100 */
    bool threads;       /* else processes */
    bool bare;          /* fn calls trib_init and trib_free_comm itself */
    bool noisy;         /* warnings are expected */
};

/* A job under way. */
struct ranks {
    struct ranks_job job;
    struct ranks_slot *slots; /* [job.size], shared */
    trib_local_t *local;
    int n_processes;
    pid_t pids[RANKS_MAX];
    int wait_status[RANKS_MAX];
    bool ended[RANKS_MAX];
    bool hung; /* the watchdog ended it */
    /* Threads meet in memory that each maps elsewhere, where a race detector does not
     * see that the one had initialised what the other uses: they meet here as well. */
    pthread_barrier_t threads_begun;
    double deadline;
};

/** ranks_start - begin; false: the machine refuses (the reason is on standard
 * error). */
bool ranks_start(struct ranks *r, const struct ranks_job *job);

/** ranks_poll - look once; true when all processes have ended and were waited for. */
bool ranks_poll(struct ranks *r);

/** ranks_wait - until all have ended or the watchdog ended them. */
void ranks_wait(struct ranks *r);

/** ranks_failed - the number of ranks that did not do well; tells about each. */
int ranks_failed(const struct ranks *r);

/** ranks_close - free what start made. All processes must have ended. */
void ranks_close(struct ranks *r);

/** ranks_run - all of it; the number of ranks that did not do well. */
int ranks_run(const struct ranks_job *job);

/* A job passes in which all ranks do well; its fields are the arguments. */
#define ranks_pass(...) \
    assert_int_equal(ranks_run(&(struct ranks_job){__VA_ARGS__}), 0)

/** ranks_seconds - monotonic. */
double ranks_seconds(void);

/** ranks_signal - kill(2) the process of one rank of a job of processes. */
void ranks_signal(struct ranks *r, int rank, int number);

/* Inside a rank: say why, end the process (all threads of it) with status 1. */
void ranks_die(const struct ranks_self *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** ranks_say - put a sentence into slot->text. */
void ranks_say(const struct ranks_self *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** ranks_expect - die unless a call gave the status that it should. */
void ranks_expect(const struct ranks_self *self, trib_status_t status,
                  trib_status_t expected, const char *what);

/** ranks_refused - the same, and trib_last_error has all words (ranks_has). */
void ranks_refused(const struct ranks_self *self, trib_status_t status,
                   trib_status_t expected, const char *const *words);

#define ranks_ok(self, call) ranks_expect(self, call, TRIB_OK, #call)

#define ranks_assert(self, cond) \
    do { \
        if (!(cond)) \
            ranks_die(self, "%s:%d: %s", __FILE__, __LINE__, #cond); \
    } while (0)

/** ranks_has - does a sentence contain all these words? NULL ends the list. */
bool ranks_has(const char *text, const char *const *words);

/* A test over a transport, whose state is the configuration of its jobs. */
#define RANKS_ON(test, config) \
    {#test " [" config "]", test, NULL, NULL, (char *)(uintptr_t)"transport=" config}

#endif
