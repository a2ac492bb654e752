/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continue without lost ranks.
 */
#ifndef COMM_MEMBERS_SURVIVE_H
#define COMM_MEMBERS_SURVIVE_H

#include <tributary/status.h>

struct trib_comm;
struct trib_error;

/**
 * trib_comm_survive - create a communicator of the surviving ranks; the
 * service-independent part of trib_comm_shrink.
 *
 * errors   as trib_comm_shrink, with the message in err
 */
trib_status_t trib_comm_survive(struct trib_comm *comm, struct trib_error *err,
                                struct trib_comm **out);

/**
 * trib_comm_commit - switch all ranks to the wired-up communicator, or none; the end of
 * trib_comm_grow. comm is idle.
 *
 * bigger   freed after an error
 * errors   as trib_comm_grow, with the message in err
 */
trib_status_t trib_comm_commit(struct trib_comm *comm, struct trib_comm *bigger,
                               struct trib_error *err);

/** trib_comm_end_all - fail everything in flight in a failed communicator. */
void trib_comm_end_all(struct trib_comm *comm, const char *call);

#endif
