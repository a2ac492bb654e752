/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prepare a communicator before wireup.
 */
#ifndef COMM_CORE_COMM_SETUP_H
#define COMM_CORE_COMM_SETUP_H

#include <tributary.h>

struct trib_comm;
struct trib_error;

/**
 * trib_opts_take - convert the caller's options to this library's struct.
 *
 * theirs   NULL: all defaults. A program built with an older header passes a smaller
 *          struct
 * errors   TRIB_ERR_INVALID with a message in err
 */
trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err);

/** trib_comm_set_idle - set the callback to invoke while a call on the communicator
 * waits; NULL: none. Call before trib_comm_wireup. */
void trib_comm_set_idle(struct trib_comm *comm, trib_idle_fn call, void *arg);

/**
 * trib_comm_give_way - make waits release the lock between polls, for the idle callback
 * and completion callbacks; with the lock held, or during wireup.
 */
void trib_comm_give_way(struct trib_comm *comm);

/** trib_comm_share_lock - make waiting threads yield the lock to other threads; once a
 * transport is open. */
void trib_comm_share_lock(struct trib_comm *comm);

/** trib_say_error - set the message of trib_last_error(NULL). */
void trib_say_error(const char *text);

#endif
