/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Join a first communicator.
 */
#ifndef COMM_LIFE_JOIN_H
#define COMM_LIFE_JOIN_H

#include <stddef.h>

#include <tributary.h>

struct trib_boot;
struct trib_comm;

/** trib_boot_exchange - allgather of a struct trib_exchange; arg is a struct
 * trib_boot. */
trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out);

/**
 * trib_comm_join - find rank, size and the other ranks from opts, settings or the
 * launcher.
 *
 * comm     has cfg, log and err; receives the secret
 * boot_out receives an open struct trib_boot, which the caller closes
 * rank_out, size_out  as far as known, even after an error
 * errors   the message is in comm->err
 */
trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out);

#endif
