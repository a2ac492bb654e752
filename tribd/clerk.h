/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for what the server must not wait for: munged, and the database of users,
 * which may be a directory on another host. Both may take seconds, or be stopped.
 *
 *     server's thread                            clerk's thread
 *      clerk_give(task) ──────── queue ────────▶ task->work, one after the other
 *                        ◀──── the wake_fd ────
 *      clerk_tend: task->done
 *
 * A task whose time is over before its turn comes is not begun: so a munged that is
 * stopped leaves no work behind that nobody waits for. Functions are the server's
 * thread's.
 */
#ifndef TRIBD_CLERK_H
#define TRIBD_CLERK_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct clerk;
struct trib_error;

struct clerk_task {
    struct clerk_task *next; /* the clerk's */
    uint64_t until;          /* latest start, on the clock of trib_now_ns; 0: any
                              * time */
    bool worked;             /* work has been called, as done may want to know */
    void (*work)(struct clerk_task *task); /* runs on the clerk's thread */
    void (*done)(struct clerk_task *task); /* runs on the server's thread, which owns
                                            * the task again */
};

/**
 * clerk_start - a clerk without tasks.
 *
 * wake_fd  an eventfd that it writes to when clerk_tend has something to do
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t clerk_start(int wake_fd, struct trib_error *err, struct clerk **out);

/** clerk_give - a task: the clerk has it until its done is called, or
 * clerk_take_back. */
void clerk_give(struct clerk *clerk, struct clerk_task *task);

/** clerk_take_back - false: it is being worked on, or has been; its done will be
 * called. */
bool clerk_take_back(struct clerk *clerk, struct clerk_task *task);

/** clerk_tend - call the done of all that are finished. */
void clerk_tend(struct clerk *clerk);

/**
 * clerk_stop - end the thread, and call the done of all tasks, whether worked on or
 * not.
 *
 * A thread that munged or the database of users keeps for longer than 5 s is left
 * behind with its task, for the end of the process to end it. NULL is allowed.
 */
void clerk_stop(struct clerk *clerk);

#endif
