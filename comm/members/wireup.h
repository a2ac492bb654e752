/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open a communicator's transport and exchange wireup data.
 */
#ifndef COMM_MEMBERS_WIREUP_H
#define COMM_MEMBERS_WIREUP_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_config;
struct trib_error;
struct trib_kernels;

/* An all-gather of `bytes` from every rank, through the launcher or another
 * communicator. */
struct trib_exchange {
    trib_status_t (*allgather)(void *arg, const char *phase, const void *in,
                               size_t bytes, void *out);
    void *arg;
};

/**
 * trib_comm_wireup - open transport and engine, and exchange wireup data with all
 * peers. Rank and size are known.
 *
 * errors   the message is in comm->err; the caller disposes of comm
 */
trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x);

/** trib_settings_kernels - find the kernels of TRIB_CPU; TRIB_ERR_CONFIG if this CPU
 * lacks them. */
trib_status_t trib_settings_kernels(const struct trib_config *cfg,
                                    const struct trib_kernels **out,
                                    struct trib_error *err);

/** trib_wireup_machine - return a number shared by ranks within load/store reach. */
uint64_t trib_wireup_machine(void);

/** trib_wireup_bytes - return the bytes that each rank contributes to exchange 0, 1, …
 * of trib_comm_wireup; 0: no such exchange. */
size_t trib_wireup_bytes(int exchange);

#endif
