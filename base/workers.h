/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few threads that work for one other, their owner, while it does something else.
 *
 * Work is in cells:
 *
 *     FREE ──post──▶ POSTED ──a worker──▶ BEGUN ──the worker──▶ DONE
 *       ▲              │ retract                                  │ release
 *       └──────────────┴──────────────────────────────────────────┘
 *
 * A cell is memory of the workers, not of the work: one that comes late to a cell whose
 * work was retracted looks at nothing that the owner may have freed since. What the
 * owner wrote before post the work sees, and what the work wrote the owner sees once it
 * is DONE. Nothing locks or allocates. Who finds no work sleeps; posting wakes nobody
 * before trib_workers_rouse, and that is a system call only where somebody sleeps.
 *
 * Threads: the owner is one thread at a time; it calls everything here.
 */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_workers;

struct trib_work {
    /* cell: which one it was posted in; worker: 0 … threads - 1, or threads where the
     * owner does it. Two of a number never run at the same time. */
    void (*run)(void *arg, uint32_t cell, uint32_t worker);
    void *arg;
};

struct trib_workers_opts {
    uint32_t threads; /* at least 1 */
    uint32_t cells;
    const char *name; /* name of the threads, at most 15 characters */
    /* Called by a worker when work is done for which trib_workers_done was asked in
     * vain. */
    void (*wake)(void *arg);
    void *arg;
};

/**
 * trib_workers_create - start the threads; no signal interrupts them.
 *
 * errors   0, or an errno
 * owner    trib_workers_destroy
 */
int trib_workers_create(const struct trib_workers_opts *opts,
                        struct trib_workers **out);

/** trib_workers_destroy - end the threads: after work that was begun; NULL is
 * allowed. */
void trib_workers_destroy(struct trib_workers *workers);

/** trib_workers_forget - free the memory in a forked child, which has no such
 * threads. */
void trib_workers_forget(struct trib_workers *workers);

/** trib_workers_free - the number of free cells. */
uint32_t trib_workers_free(const struct trib_workers *workers);

/** trib_workers_cell - the free cell to post in next; there must be one. */
uint32_t trib_workers_cell(const struct trib_workers *workers);

/** trib_workers_post - put work into a free cell. */
void trib_workers_post(struct trib_workers *workers, uint32_t cell,
                       struct trib_work work);

/** trib_workers_rouse - wake as many as were posted since the last time, if they
 * sleep. */
void trib_workers_rouse(struct trib_workers *workers);

/** trib_workers_help - do what was posted first, here; false: all was begun. */
bool trib_workers_help(struct trib_workers *workers);

/** trib_workers_retract - if nobody has begun it the work is the owner's, the cell
 * free. */
bool trib_workers_retract(struct trib_workers *workers, uint32_t cell);

/** trib_workers_done - is it? If not, somebody will call wake. */
bool trib_workers_done(struct trib_workers *workers, uint32_t cell);

/** trib_workers_release - a cell whose work is done is free. */
void trib_workers_release(struct trib_workers *workers, uint32_t cell);

/**
 * trib_workers_clear - retract what nobody has begun, wait for the rest: all cells are
 * free.
 *
 * Waits for as long as one piece of work takes.
 */
void trib_workers_clear(struct trib_workers *workers);

#endif
