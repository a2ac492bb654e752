/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread drives started plans.
 */
#ifndef COMM_CORE_PROGRESS_THREAD_H
#define COMM_CORE_PROGRESS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <tributary/status.h>

struct trib_comm;

/* The progress thread drives started plans. The first trib_plan_start creates it. */
struct trib_progress_thread {
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stop; /* under mutex */
    _Atomic int active; /* 1: some started plan may still be running */
    _Atomic int callers; /* threads in trib_plan_wait, which drive the engine
                          * themselves */
};

/** trib_progress_thread_start - make the progress thread drive a started plan; with the
 * lock held. */
trib_status_t trib_progress_thread_start(struct trib_comm *comm);

/** trib_progress_thread_caller_enter - drive the engine on the calling thread until
 * trib_progress_thread_caller_leave; the progress thread rests. Any thread, without the
 * lock. */
void trib_progress_thread_caller_enter(struct trib_comm *comm);
void trib_progress_thread_caller_leave(struct trib_comm *comm);
void trib_progress_thread_stop(struct trib_comm *comm);

#endif
