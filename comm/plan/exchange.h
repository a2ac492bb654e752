/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of control data between the ranks of a communicator.
 */
#ifndef COMM_PLAN_EXCHANGE_H
#define COMM_PLAN_EXCHANGE_H

#include <stddef.h>

#include <tributary/coll.h>

struct trib_comm;

/**
 * trib_comm_exchange - all-gather or broadcast control data of the ranks; blocks.
 *
 * bytes    per rank. For a broadcast from rank 0: all bytes, at out; in is NULL
 */
trib_status_t trib_comm_exchange(struct trib_comm *comm, trib_coll_t coll,
                                 const void *in, size_t bytes, void *out);

/** trib_comm_broadcast - broadcast control data from `root`; blocks. */
trib_status_t trib_comm_broadcast(struct trib_comm *comm, int root, size_t bytes,
                                  void *data);

#endif
