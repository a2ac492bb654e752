/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators created from another.
 */
#ifndef COMM_MEMBERS_SPLIT_H
#define COMM_MEMBERS_SPLIT_H

#include <stdbool.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_config;
struct trib_error;
struct trib_exchange;

/* A communicator created from another. */
struct trib_child {
    const struct trib_config *cfg; /* copied */
    int rank, size;
    bool within; /* the parent outlives it: they share the idle callback */
    const char *made; /* how it was created, for its label */
};

/**
 * trib_comm_make_child - create a communicator whose ranks exchange addresses over the
 * parent.
 *
 * errors   as trib_comm_wireup, with the message in err; *out is unchanged
 */
trib_status_t trib_comm_make_child(struct trib_comm *parent, const struct trib_child *c,
                                   const struct trib_exchange *x,
                                   struct trib_error *err, struct trib_comm **out);

/**
 * trib_comm_dup - create another communicator of the same ranks with other settings;
 * collective.
 *
 * cfg      copied; settings on which ranks must agree are the same on all ranks
 */
trib_status_t trib_comm_dup(struct trib_comm *comm, const struct trib_config *cfg,
                            struct trib_comm **out);

/** trib_comm_split_within - trib_split with all ranks, for a communicator that its
 * parent outlives. They share the idle callback and its result, as with
 * trib_comm_dup. */
trib_status_t trib_comm_split_within(struct trib_comm *comm, struct trib_comm **out);

#endif
