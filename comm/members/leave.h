/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leave and free communicators.
 */
#ifndef COMM_MEMBERS_LEAVE_H
#define COMM_MEMBERS_LEAVE_H

struct trib_comm;

/** trib_comm_drop_copy - free a forked child's copy without notifying peers. */
void trib_comm_drop_copy(struct trib_comm *comm);

/** trib_comm_dispose - free a communicator in any state. */
void trib_comm_dispose(struct trib_comm *comm);

/**
 * trib_comm_dispose_dup - free a result of trib_comm_dup, in any state.
 *
 * If `of` has failed, its error is first sent over dup. A peer that polls only dup
 * would otherwise see a disconnect without its cause.
 *
 * dup      may be NULL
 */
void trib_comm_dispose_dup(struct trib_comm *dup, const struct trib_comm *of);

#endif
