/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for calls on which the server must not block: munged, and the user database,
 * which may be a remote directory. Both may take seconds or hang.
 *
 *     server thread                              clerk thread
 *      clerk_give(task) ──────── queue ────────▶ task->work, one after the other
 *                        ◀────── wake_fd ──────
 *      clerk_tend: task->done
 *
 * A task that is not started before its deadline is skipped, so a stopped munged leaves
 * no backlog. Only the server thread calls these functions.
 */
#ifndef AGG_DAEMON_CLERK_H
#define AGG_DAEMON_CLERK_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct clerk;
struct trib_error;

struct clerk_task {
    struct clerk_task *next; /* owned by the clerk */
    uint64_t until;          /* latest start, on the clock of trib_now_ns; 0: none */
    bool worked;             /* `work` was called; for use by `done` */
    void (*work)(struct clerk_task *task); /* runs on the clerk thread */
    void (*done)(struct clerk_task *task); /* on the server thread, as its owner */
};

/**
 * clerk_start - start the thread.
 *
 * wake_fd  eventfd written when clerk_tend has work
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t clerk_start(int wake_fd, struct trib_error *err, struct clerk **out);

/** clerk_give - queue a task; the clerk owns it until `done` is called, or until
 * clerk_take_back. */
void clerk_give(struct clerk *clerk, struct clerk_task *task);

/** clerk_take_back - dequeue a task; false: it was started, and its `done` will be
 * called. */
bool clerk_take_back(struct clerk *clerk, struct clerk_task *task);

/** clerk_tend - call `done` of all finished tasks. */
void clerk_tend(struct clerk *clerk);

/**
 * clerk_stop - end the thread and call `done` of all tasks, started or not.
 *
 * A thread blocked in munged or in the user database for more than 5 s is detached with
 * its task and ends with the process. NULL is allowed.
 */
void clerk_stop(struct clerk *clerk);

#endif
