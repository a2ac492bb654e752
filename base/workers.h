/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few threads that work for their owner, another thread, in the background.
 *
 * Work is posted in cells:
 *
 *     FREE ──post──▶ POSTED ──a worker──▶ BEGUN ──the worker──▶ DONE
 *       ▲              │ retract                                  │ release
 *       └──────────────┴──────────────────────────────────────────┘
 *
 * Cells belong to the workers, not to the work: a worker that comes late to a retracted
 * cell accesses nothing that the owner may have freed. Writes of the owner before post
 * are visible to the work, and writes of the work are visible to the owner once DONE.
 * No locks, no allocation. Idle workers poll for spin_us, then sleep; posting wakes
 * none before trib_workers_rouse, which makes a system call only if a worker sleeps.
 *
 * Work that the owner needs at once is split instead (trib_workers_split): all threads,
 * the owner's included, take parts until none is left.
 *
 * Threads: all functions are called by the owner, one thread at a time.
 */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_workers;

struct trib_work {
    /* cell: index of the work's cell; worker: 0 … threads - 1, or threads if run by the
     * owner. Work with the same worker index never runs concurrently. */
    void (*run)(void *arg, uint32_t cell, uint32_t worker);
    void *arg;
};

enum {
    TRIB_WORKERS_MAX = 64, /* threads */
    TRIB_WORKERS_CELLS = 4, /* cells per thread: one in progress, the others done or
                             * queued */
};

struct trib_workers_opts {
    uint32_t threads; /* 1 to TRIB_WORKERS_MAX */
    uint32_t cells;
    uint32_t spin_us; /* time that an idle worker polls before it sleeps; for workers
                       * with cores of their own */
    const char *name; /* thread name, at most 15 characters */
    /* Called by a worker that finishes work after trib_workers_done returned false for
     * it. */
    void (*wake)(void *arg);
    void *arg;
};

/**
 * trib_workers_create - start the threads, with all signals blocked.
 *
 * errors   0, or an errno
 * owner    trib_workers_destroy
 */
int trib_workers_create(const struct trib_workers_opts *opts,
                        struct trib_workers **out);

/** trib_workers_destroy - stop the threads after the work in progress; NULL is
 * allowed. */
void trib_workers_destroy(struct trib_workers *workers);

/** trib_workers_forget - free the memory in a forked child, where the threads do not
 * exist. */
void trib_workers_forget(struct trib_workers *workers);

/** trib_workers_asleep - return true if all workers sleep, so that the next post has to
 * wake them. */
bool trib_workers_asleep(const struct trib_workers *workers);

/** trib_workers_free - return the number of free cells. */
uint32_t trib_workers_free(const struct trib_workers *workers);

/** trib_workers_cell - return the free cell to post in next; one must be free. */
uint32_t trib_workers_cell(const struct trib_workers *workers);

/** trib_workers_post - post work in a free cell. */
void trib_workers_post(struct trib_workers *workers, uint32_t cell,
                       struct trib_work work);

/** trib_workers_rouse - wake one sleeping worker per cell posted since the last
 * call. */
void trib_workers_rouse(struct trib_workers *workers);

/** trib_workers_help - run the oldest posted work in this thread; false: none left. */
bool trib_workers_help(struct trib_workers *workers);

/** trib_workers_retract - take back work that has not begun, and free its cell; false:
 * it has begun. */
bool trib_workers_retract(struct trib_workers *workers, uint32_t cell);

/** trib_workers_done - return true if the work is done; else a worker will call
 * wake. */
bool trib_workers_done(struct trib_workers *workers, uint32_t cell);

/** trib_workers_release - free a cell whose work is done. */
void trib_workers_release(struct trib_workers *workers, uint32_t cell);

/**
 * trib_workers_split - run parts 0 … n - 1 on the workers and in this thread.
 *
 * Returns once all parts are done. A worker that is late leaves its parts to the other
 * threads; with no free cell, this thread runs all of them. Which thread runs a part is
 * undefined, so parts must not depend on each other.
 * run      called once for each part
 * returns  the number of parts that workers ran
 */
uint32_t trib_workers_split(struct trib_workers *workers, uint32_t n,
                            void (*run)(void *arg, uint32_t part), void *arg);

/**
 * trib_workers_clear - retract work that has not begun and wait for the rest; all cells
 * are then free.
 *
 * Blocks at most as long as one piece of work takes.
 */
void trib_workers_clear(struct trib_workers *workers);

#endif
