/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for calls on which the server must not block: munged, and the user database,
 * which may be a remote directory. Both may take seconds or hang.
 *
 *     server thread                                     request worker
 *      request_worker_submit(task) ────── queue ────────▶ task->work, one after the
 *                                  ◀───── wake_fd ────── other
 *      request_worker_poll: task->done
 *
 * A task that is not started before its deadline is skipped, so a stopped munged leaves
 * no backlog. Only the server thread calls these functions.
 */
#ifndef AGG_DAEMON_REQUEST_WORKER_H
#define AGG_DAEMON_REQUEST_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct request_worker;
struct trib_error;

struct request_worker_task {
    struct request_worker_task *next; /* owned by the request worker */
    uint64_t until; /* latest start, on the clock of trib_now_ns; 0: none */
    bool worked; /* `work` was called; for use by `done` */
    /* Runs on the thread of the request worker. */
    void (*work)(struct request_worker_task *task);
    /* Runs on the server thread. The task belongs to its owner again. */
    void (*done)(struct request_worker_task *task);
};

/**
 * request_worker_start - start the thread.
 *
 * wake_fd  eventfd written when request_worker_poll has work
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t request_worker_start(int wake_fd, struct trib_error *err,
                                   struct request_worker **out);

/** request_worker_submit - queue a task; the request worker owns it until `done` is
 * called, or until request_worker_cancel. */
void request_worker_submit(struct request_worker *worker,
                           struct request_worker_task *task);

/** request_worker_cancel - dequeue a task; false: it was started, and its `done` will
 * be called. */
bool request_worker_cancel(struct request_worker *worker,
                           struct request_worker_task *task);

/** request_worker_poll - call `done` of all finished tasks. */
void request_worker_poll(struct request_worker *worker);

/**
 * request_worker_stop - end the thread and call `done` of all tasks, started or not.
 *
 * A thread blocked in munged or in the user database for more than 5 s is detached with
 * its task and ends with the process. NULL is allowed.
 */
void request_worker_stop(struct request_worker *worker);

#endif
